//! Computing distances where they are to be computed.

#[cfg(feature = "gpu")]
use super::super::{DeviceTexts, is_for_the_cpu, pairs_on_device};
use super::super::{all_pairs, one_to_many, pairs};
use super::form::Form;
use super::inputs::Inputs;
use crate::cli::Io;
use crate::error::Error;
use crate::kernels::Platform;
use rayon::ThreadPool;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Computes distances: on the platform's device where it has one that takes this work, else on the CPU. They are the same.
pub(super) struct Engine<'a> {
    inputs: &'a Inputs<'a>,
    cutoff: Option<u32>,
    platform: &'a Platform,
    threads: &'a ThreadPool,
    /// Whether there is a device that has taken all that it was given.
    on_device: bool,
    /// The right side, once it is there.
    #[cfg(feature = "gpu")]
    texts: Option<DeviceTexts>,
    /// How long it took so far.
    pub(super) comparing: Duration,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        inputs: &'a Inputs<'a>,
        cutoff: Option<u32>,
        platform: &'a Platform,
        threads: &'a ThreadPool,
    ) -> Self {
        Self {
            inputs,
            cutoff,
            platform,
            threads,
            #[cfg(feature = "gpu")]
            on_device: platform.device.is_some(),
            #[cfg(not(feature = "gpu"))]
            on_device: false,
            #[cfg(feature = "gpu")]
            texts: None,
            comparing: Duration::ZERO,
        }
    }

    /// Whether rows are computed whole at no more cost than in part.
    pub(super) fn takes_whole_rows(&self) -> bool {
        self.on_device
    }

    /// Where it computes, in words.
    pub(super) fn place(&self) -> String {
        if self.on_device {
            return self.platform.place();
        }
        Platform::cpu(self.platform.level, self.platform.threads).place()
    }

    /// Distances of some left strings to some right ones, row by row; of all right ones on a device.
    pub(super) fn rows(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        distances: &mut [u32],
        io: &Io,
    ) -> Result<(), Error> {
        let started = Instant::now();
        #[cfg(feature = "gpu")]
        if self.on_device && columns == (0..self.inputs.right().len()) {
            let answer = self.rows_on_device(rows.clone(), distances);
            if self.is_done(&answer, io) {
                self.comparing += started.elapsed();
                return answer;
            }
        }
        #[cfg(not(feature = "gpu"))]
        let _ = io;
        let (left, right) = (&self.inputs.left, self.inputs.right());
        let (cutoff, platform) = (self.cutoff, self.platform);
        self.threads.install(|| match self.inputs.form {
            Form::Pattern(..) => one_to_many(left.get(0), right, cutoff, distances, platform),
            _ => all_pairs(left, rows, right, columns, cutoff, distances, platform),
        })?;
        self.comparing += started.elapsed();
        Ok(())
    }

    /// Distances of each left string to its neighbour on the right.
    pub(super) fn pairs(&mut self, distances: &mut [u32], io: &Io) -> Result<(), Error> {
        let started = Instant::now();
        let (left, right) = (&self.inputs.left, self.inputs.right());
        #[cfg(feature = "gpu")]
        if let Some(device) = self.platform.device.as_ref().filter(|_| self.on_device) {
            let answer = pairs_on_device(device, left, right, self.cutoff, distances);
            if self.is_done(&answer, io) {
                self.comparing += started.elapsed();
                return answer;
            }
        }
        #[cfg(not(feature = "gpu"))]
        let _ = io;
        self.threads.install(|| pairs(left, right, self.cutoff, distances, self.platform))?;
        self.comparing += started.elapsed();
        Ok(())
    }

    #[cfg(feature = "gpu")]
    fn rows_on_device(&mut self, rows: Range<usize>, distances: &mut [u32]) -> Result<(), Error> {
        let Some(device) = &self.platform.device else { return Ok(()) };
        let texts = match &mut self.texts {
            Some(texts) => texts,
            empty => empty.insert(DeviceTexts::new(device, self.inputs.right())?),
        };
        texts.all_pairs(&self.inputs.left, rows, self.cutoff, distances)
    }

    /// Whether an answer of the device stands. If not, the work is none for it, and the CPU takes all that is left.
    #[cfg(feature = "gpu")]
    fn is_done(&mut self, answer: &Result<(), Error>, io: &Io) -> bool {
        match answer {
            Err(error) if is_for_the_cpu(error) => {
                io.note(format_args!("{}: {error}; the CPU compares instead", self.platform.place()));
                self.on_device = false;
                self.texts = None;
                false
            }
            _ => true,
        }
    }
}
