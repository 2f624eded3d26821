//! Texts in device memory.

use super::alphabet::Alphabet;
use super::call::{Call, Kind};
use super::layout::{Blocks, Limits, as_u32};
use super::{check, wrong};
use crate::data::{Text, Texts};
use crate::device::{Device, DeviceBuffer, Timer};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// Neighbouring texts in device memory.
pub(super) struct Segment {
    pub(super) texts: Range<usize>,
    pub(super) blocks: Blocks,
    /// Blocks, from the first on, whose texts one dispatch does not get through.
    pub(super) long: usize,
    pub(super) codes: DeviceBuffer<u32>,
    pub(super) starts: DeviceBuffer<[u32; 2]>,
    pub(super) lengths: DeviceBuffer<u32>,
    pub(super) places: DeviceBuffer<u32>,
}

impl Segment {
    fn allocate(device: &Device, texts: Range<usize>, blocks: Blocks, limits: Limits) -> Result<Self, Error> {
        Ok(Self {
            long: blocks.longer_than(limits.columns),
            codes: device.buffer("codes of texts", blocks.words)?,
            starts: device.buffer("blocks of texts", blocks.starts.len())?,
            lengths: device.buffer("lengths of texts", blocks.lengths.len())?,
            places: device.buffer("places of texts", blocks.places.len())?,
            texts,
            blocks,
        })
    }

    fn fill(&self, device: &Device, alphabet: &Alphabet, texts: &Texts) -> Result<(), Error> {
        let mut commands = device.commands("upload of texts");
        commands.upload(&self.starts, 0, &self.blocks.starts)?;
        commands.upload(&self.lengths, 0, &self.blocks.lengths)?;
        commands.upload(&self.places, 0, &self.blocks.places)?;
        let text = |place: usize| texts.get(self.texts.start + place);
        self.blocks
            .pack(alphabet, alphabet.bits(), text, |first, words| Ok(commands.upload(&self.codes, first, words)?))?;
        commands.submit()?;
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.codes.bytes() + self.starts.bytes() + self.lengths.bytes() + self.places.bytes()
    }
}

/// Uploads texts in place of those of some segments: into the same memory where they are as many, as long and of as many
/// symbols as those before, which is what it returns. Where it fails there are no segments.
pub(super) fn upload(
    device: &Device,
    limits: Limits,
    texts: &Texts,
    alphabet: &mut Alphabet,
    segments: &mut Vec<Segment>,
) -> Result<bool, Error> {
    let mut old = std::mem::take(segments);
    let symbols = alphabet.size();
    *alphabet = Alphabet::of(&[texts]);
    let mut layouts = Vec::new();
    for range in super::layout::segments(texts, alphabet.bits(), limits)? {
        let mut order: Vec<u32> = (0..as_u32(range.len())).collect();
        let length = |place: usize| texts.length(range.start + place);
        order.sort_by_key(|&place| std::cmp::Reverse(length(place as usize)));
        let blocks = Blocks::new(order, alphabet.bits(), length);
        layouts.push((range, blocks));
    }
    let fits = |(old, (range, blocks)): (&Segment, &(Range<usize>, Blocks))| {
        old.texts == *range && old.blocks.lengths == blocks.lengths
    };
    let same = symbols == alphabet.size() && old.len() == layouts.len() && old.iter().zip(&layouts).all(fits);
    if same {
        for (segment, (_, blocks)) in old.iter_mut().zip(layouts) {
            segment.blocks = blocks;
            segment.fill(device, alphabet, texts)?;
        }
        *segments = old;
        return Ok(true);
    }
    // The old memory first.
    drop(old);
    let mut all = Vec::new();
    for (range, blocks) in layouts {
        let segment = Segment::allocate(device, range, blocks, limits)?;
        segment.fill(device, alphabet, texts)?;
        all.push(segment);
    }
    *segments = all;
    Ok(false)
}

/// Texts in device memory, to be compared with one pattern after another.
///
/// Results are those of the CPU path, in the order of the texts.
pub struct DeviceTexts {
    device: Arc<Device>,
    limits: Limits,
    alphabet: Alphabet,
    segments: Vec<Segment>,
    texts: usize,
    call: Option<Call>,
    timer: Option<Timer>,
}

impl DeviceTexts {
    /// Uploads texts.
    ///
    /// Cost: reads each symbol twice; 1, 2 or 4 bytes a symbol and 8 a text up, where there are up to 256, up to 65,536
    /// or more distinct symbols.
    ///
    /// # Errors
    /// [`Error::Limit`] for a text that does not fit into one buffer; what the device reports. Where
    /// [`is_for_the_cpu`](super::is_for_the_cpu) holds, the CPU path can do what the device cannot.
    pub fn new(device: &Arc<Device>, texts: &Texts) -> Result<Self, Error> {
        Self::within(Limits::of(device), device, texts)
    }

    pub(super) fn within(limits: Limits, device: &Arc<Device>, texts: &Texts) -> Result<Self, Error> {
        // The strip kernel: a column is one iteration, a tile one more; the other makes at most two for a column.
        device.check_iterations("edit distance", 2 * limits.columns as u64 + 512)?;
        let timer = if device.timestamps_hold() { device.timer()? } else { None };
        let alphabet = Alphabet::of(&[]);
        let device = Arc::clone(device);
        let mut this = Self { device, limits, alphabet, segments: Vec::new(), texts: 0, call: None, timer };
        this.refill(texts)?;
        Ok(this)
    }

    /// Uploads other texts in place of these: into the same memory where they have the same lengths and as many symbols.
    ///
    /// # Errors
    /// As [`new`](Self::new); there are no texts then.
    pub fn refill(&mut self, texts: &Texts) -> Result<(), Error> {
        self.texts = 0;
        let call = self.call.take();
        let is_same = upload(&self.device, self.limits, texts, &mut self.alphabet, &mut self.segments)?;
        self.call = call.filter(|_| is_same);
        if let Some(call) = &mut self.call {
            (call.has_patterns, call.has_distances) = (false, false);
        }
        self.texts = texts.len();
        Ok(())
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.texts
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.texts == 0
    }

    /// The distances of one pattern to all texts, in their order; [`BEYOND`](super::super::BEYOND) for those above the
    /// cutoff.
    ///
    /// # Errors
    /// [`Error::Shape`] when `distances` has not as many places as there are texts; what the device reports.
    pub fn one_to_many(&mut self, pattern: Text<'_>, cutoff: Option<u32>, distances: &mut [u32]) -> Result<(), Error> {
        self.compare(&[pattern], cutoff, distances)
    }

    /// The distances of some rows to all texts, row by row.
    ///
    /// # Errors
    /// [`Error::Shape`] when `distances` has not `rows.len()` x [`len`](Self::len) places; what the device reports.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn all_pairs(
        &mut self,
        row_texts: &Texts,
        rows: Range<usize>,
        cutoff: Option<u32>,
        distances: &mut [u32],
    ) -> Result<(), Error> {
        let patterns: Vec<_> = rows.map(|row| row_texts.get(row)).collect();
        self.compare(&patterns, cutoff, distances)
    }

    /// Tables up, distances, distances down, in one submission: `patterns.len()` rows of them.
    ///
    /// # Errors
    /// As [`all_pairs`](Self::all_pairs).
    pub(in super::super) fn compare(
        &mut self,
        patterns: &[Text<'_>],
        cutoff: Option<u32>,
        distances: &mut [u32],
    ) -> Result<(), Error> {
        check("distances", patterns.len().saturating_mul(self.texts), distances.len())?;
        self.ready(patterns)?;
        let Self { device, segments, alphabet, call: Some(call), texts, .. } = self else { return Ok(()) };
        let mut commands = device.commands("edit distance");
        call.record_patterns(&mut commands, alphabet, patterns, cutoff)?;
        call.record_kernels(&mut commands.pass());
        call.take(device, commands, segments, *texts, distances)
    }

    /// The tables of some patterns up, and nothing else; it is with these that [`kernel_only`](Self::kernel_only) works.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn upload_patterns(
        &mut self,
        patterns: &[Text<'_>],
        cutoff: Option<u32>,
    ) -> Result<(), Error> {
        self.ready(patterns)?;
        let Self { device, alphabet, call: Some(call), .. } = self else { return Ok(()) };
        let mut commands = device.commands("upload of patterns");
        call.record_patterns(&mut commands, alphabet, patterns, cutoff)?;
        commands.submit()?.wait()?;
        Ok(())
    }

    /// The kernels alone on the patterns that were uploaded last, dispatch to completion; the device's own nanoseconds
    /// where its timestamps hold.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn kernel_only(&mut self) -> Result<Option<u64>, Error> {
        let Some(call) = self.call.as_mut().filter(|call| call.has_patterns) else {
            return Err(wrong("no pattern was uploaded"));
        };
        let mut commands = self.device.commands("kernel only");
        let Some(timer) = &self.timer else {
            call.record_kernels(&mut commands.pass());
            commands.submit()?.wait()?;
            return Ok(None);
        };
        call.record_kernels(&mut commands.timed_pass(timer));
        Ok(commands.submit_timed(timer)?)
    }

    /// Distances down, and nothing else: those of the last call.
    ///
    /// # Errors
    /// [`Error::Shape`]; what the device reports.
    pub(in super::super) fn download(&mut self, distances: &mut [u32]) -> Result<(), Error> {
        let Self { device, segments, call, texts, .. } = self;
        let Some(call) = call.as_mut().filter(|call| call.has_distances) else {
            return Err(wrong("there are no distances yet"));
        };
        check("distances", call.kinds.len() * *texts, distances.len())?;
        call.take(device, device.commands("download of distances"), segments, *texts, distances)
    }

    /// Gives up the tables, the distances and what binds them: the next call allocates its own. Texts and pipelines stay.
    pub(in super::super) fn forget_call(&mut self) {
        self.call = None;
    }

    /// An empty submission and its wait.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn floor(&self) -> Result<(), Error> {
        Ok(self.device.floor()?)
    }

    /// Bytes that went up for the texts.
    pub(in super::super) fn texts_bytes(&self) -> u64 {
        self.segments.iter().map(Segment::bytes).sum()
    }

    /// Bytes that go up, and come down, for the call made last.
    pub(in super::super) fn call_bytes(&self) -> (u64, u64) {
        let Some(call) = &self.call else { return (0, 0) };
        let up = call.batches.iter().map(|batch| batch.patterns.bytes()).sum();
        (up, (call.kinds.len() * self.texts * 4) as u64)
    }

    fn ready(&mut self, patterns: &[Text<'_>]) -> Result<(), Error> {
        let kinds: Vec<_> = patterns.iter().map(|pattern| Kind::of(pattern.len())).collect();
        if self.call.as_ref().is_none_or(|call| call.kinds != kinds) {
            // The old memory first.
            self.call = None;
            self.call = Some(Call::new(&self.device, self.limits, &self.alphabet, &self.segments, kinds)?);
        }
        Ok(())
    }

    /// Segments, and the batches of the call made last.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> (usize, usize) {
        (self.segments.len(), self.call.as_ref().map_or(0, |call| call.batches.len()))
    }
}
