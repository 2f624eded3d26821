//! The GPU arm of a case.

use super::super::gpu::{DevicePairs, DeviceTexts};
use super::Form;
use crate::data::{Text, Texts};
use crate::device::Device;
use crate::error::Error;
use crate::kernels::Row;
use std::sync::Arc;

/// What lies on the device, everything allocated and compiled before the first call is timed.
pub(super) struct OnDevice {
    texts: Resident,
    /// Whether the distances that are on the device are those of the patterns that are there.
    has_distances: bool,
}

enum Resident {
    /// To be compared with every pattern of a call.
    All(DeviceTexts),
    /// To be compared with a pattern of its own each.
    Pairs(DevicePairs),
}

/// What one call gave.
pub(super) enum Ran {
    /// All distances.
    Distances,
    /// A part of a call: perhaps the device's own nanoseconds.
    Part(Option<u64>),
}

impl OnDevice {
    pub(super) fn new(
        device: &Arc<Device>,
        form: Form,
        texts: &Texts,
        first: &Texts,
        cutoff: Option<u32>,
    ) -> Result<Self, Error> {
        let texts = match form {
            Form::OneToMany | Form::AllPairs => Resident::All(DeviceTexts::new(device, texts)?),
            Form::Pairs => Resident::Pairs(DevicePairs::new(device, texts)?),
        };
        let mut this = Self { texts, has_distances: false };
        this.upload(first, cutoff)?;
        Ok(this)
    }

    pub(super) fn run(
        &mut self,
        row: Row,
        texts: &Texts,
        patterns: &Texts,
        cutoff: Option<u32>,
        distances: &mut [u32],
    ) -> Result<Ran, Error> {
        let part = match row {
            Row::Resident => return self.compare(patterns, cutoff, distances),
            Row::OneShot => {
                match &mut self.texts {
                    Resident::All(on_device) => on_device.refill(texts)?,
                    Resident::Pairs(on_device) => on_device.refill(texts)?,
                }
                return self.compare(patterns, cutoff, distances);
            }
            Row::E2eFresh => {
                match &mut self.texts {
                    Resident::All(on_device) => on_device.forget_call(),
                    Resident::Pairs(on_device) => on_device.forget_call(),
                }
                return self.compare(patterns, cutoff, distances);
            }
            // On the patterns that are there: those of the last call.
            Row::KernelOnly => self.kernel_only()?,
            Row::Upload => {
                self.upload(patterns, cutoff)?;
                None
            }
            Row::Download => {
                // An upload may have made the distances those of other patterns. Only the first call of a warm-up finds it so.
                if !self.has_distances {
                    self.kernel_only()?;
                }
                match &mut self.texts {
                    Resident::All(on_device) => on_device.download(distances)?,
                    Resident::Pairs(on_device) => on_device.download(distances)?,
                }
                None
            }
            Row::Floor => {
                match &self.texts {
                    Resident::All(on_device) => on_device.floor()?,
                    Resident::Pairs(on_device) => on_device.floor()?,
                }
                None
            }
        };
        Ok(Ran::Part(part))
    }

    fn compare(&mut self, patterns: &Texts, cutoff: Option<u32>, distances: &mut [u32]) -> Result<Ran, Error> {
        self.has_distances = false;
        match &mut self.texts {
            Resident::All(on_device) => on_device.all_pairs(patterns, 0..patterns.len(), cutoff, distances)?,
            Resident::Pairs(on_device) => on_device.distances(patterns, cutoff, distances)?,
        }
        self.has_distances = true;
        Ok(Ran::Distances)
    }

    fn upload(&mut self, patterns: &Texts, cutoff: Option<u32>) -> Result<(), Error> {
        self.has_distances = false;
        match &mut self.texts {
            Resident::All(on_device) => {
                let patterns: Vec<Text<'_>> = patterns.iter().collect();
                on_device.upload_patterns(&patterns, cutoff)
            }
            Resident::Pairs(on_device) => on_device.upload_patterns(patterns, cutoff),
        }
    }

    fn kernel_only(&mut self) -> Result<Option<u64>, Error> {
        let time = match &mut self.texts {
            Resident::All(on_device) => on_device.kernel_only()?,
            Resident::Pairs(on_device) => on_device.kernel_only()?,
        };
        self.has_distances = true;
        Ok(time)
    }

    /// Bytes to the device for the texts alone and for a call, and bytes from the device for a call.
    pub(super) fn moved_bytes(&self) -> (u64, u64, u64) {
        let (texts, (up, down)) = match &self.texts {
            Resident::All(on_device) => (on_device.texts_bytes(), on_device.call_bytes()),
            Resident::Pairs(on_device) => (on_device.texts_bytes(), on_device.call_bytes()),
        };
        (texts, up, down)
    }
}
