//! Texts in device memory, each to be compared with a pattern of its own.

use super::alphabet::Alphabet;
use super::call::PIECE;
use super::layout::{LANES, Limits, NOWHERE, TILE};
use super::plan::{Lengths, LongPair, Pair, Plan, STRIP};
use super::texts::{Segment, upload};
use super::{LongPairs, Pairs, check, long_pairs_shader, pairs_shader, wrong};
use crate::data::Texts;
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Pass, Pipeline, Timer, Uniforms};
use crate::error::Error;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Arc;

/// The patterns of some neighbouring blocks in device memory, and the steps over them.
struct Part {
    segment: usize,
    /// Long pairs by place, whose distances are cut on the host.
    long: Vec<u32>,
    patterns: DeviceBuffer<u32>,
    pairs: DeviceBuffer<Pair>,
    long_pairs: DeviceBuffer<LongPair>,
    edges: DeviceBuffer<[u32; 2]>,
    long_edges: DeviceBuffer<[u32; 2]>,
    kept: DeviceBuffer<[u32; 4]>,
    short: Kernel<Pairs>,
    long_kernel: Kernel<LongPairs>,
}

/// Dispatches of a kernel.
struct Kernel<P> {
    works: Vec<P>,
    slots: Uniforms<P>,
    group: BindGroup,
    steps: Vec<[u32; 3]>,
}

impl<P: Pod> Kernel<P> {
    fn record(&self, pass: &mut Pass<'_>, pipeline: &Pipeline) {
        for (slot, &workgroups) in self.steps.iter().enumerate() {
            pass.dispatch(pipeline, &[(&self.group, &[self.slots.offset(slot)])], workgroups);
        }
    }
}

/// A buffer of at least so many values: that of the call before, where it is large enough.
fn at_least<T: Pod>(
    device: &Device,
    what: &str,
    old: Option<DeviceBuffer<T>>,
    len: usize,
) -> Result<(DeviceBuffer<T>, bool), Error> {
    match old {
        Some(old) if old.len() >= len => Ok((old, true)),
        _ => Ok((device.buffer(what, len)?, false)),
    }
}

/// Texts in device memory, to be compared with one list of patterns after another, each text with the pattern at its place.
///
/// Results are those of the CPU path.
pub struct DevicePairs {
    device: Arc<Device>,
    limits: Limits,
    lengths: Lengths,
    alphabet: Alphabet,
    pipelines: Option<[Arc<Pipeline>; 2]>,
    segments: Vec<Segment>,
    texts: usize,
    /// Of each segment.
    distances: Vec<DeviceBuffer<u32>>,
    /// The cutoff.
    call: DeviceBuffer<u32>,
    parts: Vec<Part>,
    cutoff: Option<u32>,
    has_patterns: bool,
    has_distances: bool,
    timer: Option<Timer>,
}

impl DevicePairs {
    /// Uploads texts.
    ///
    /// Cost: reads each symbol twice; 1, 2 or 4 bytes a symbol and 8 a text up, where there are up to 256, up to 65,536
    /// or more distinct symbols.
    ///
    /// # Errors
    /// [`Error::Limit`] for a text that does not fit into one buffer; what the device reports. Where
    /// [`is_for_the_cpu`](super::is_for_the_cpu) holds, the CPU path can do what the device cannot.
    pub fn new(device: &Arc<Device>, texts: &Texts) -> Result<Self, Error> {
        Self::within(Limits::of(device), Lengths::USUAL, device, texts)
    }

    pub(super) fn within(limits: Limits, lengths: Lengths, device: &Arc<Device>, texts: &Texts) -> Result<Self, Error> {
        device.check_iterations("edit distance of pairs", lengths.most_of_one.max(lengths.most_of_few) as u64)?;
        device.check_iterations("edit distance of long pairs", (lengths.steps * 33 + 64) as u64)?;
        let mut this = Self {
            limits,
            lengths,
            alphabet: Alphabet::of(&[]),
            pipelines: None,
            segments: Vec::new(),
            texts: 0,
            distances: Vec::new(),
            call: device.buffer("cutoff", 1)?,
            parts: Vec::new(),
            cutoff: None,
            has_patterns: false,
            has_distances: false,
            timer: if device.timestamps_hold() { device.timer()? } else { None },
            device: Arc::clone(device),
        };
        this.refill(texts)?;
        Ok(this)
    }

    /// Uploads other texts in place of these: into the same memory where they have the same lengths and as many symbols.
    ///
    /// # Errors
    /// As [`new`](Self::new); there are no texts then.
    pub fn refill(&mut self, texts: &Texts) -> Result<(), Error> {
        (self.texts, self.has_patterns, self.has_distances) = (0, false, false);
        let call = (std::mem::take(&mut self.parts), std::mem::take(&mut self.distances));
        let is_same = upload(&self.device, self.limits, texts, &mut self.alphabet, &mut self.segments)?;
        if is_same {
            (self.parts, self.distances) = call;
        } else {
            let (planes, bits) = (planes(self.alphabet.size()), self.alphabet.bits());
            self.pipelines = Some([
                self.device.pipeline(&pairs_shader(planes, bits))?,
                self.device.pipeline(&long_pairs_shader(planes, bits))?,
            ]);
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

    /// The distance of each text to the pattern at its place; [`BEYOND`](super::super::BEYOND) for those above the cutoff.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are not as many patterns, or places in `distances`, as texts; [`Error::Limit`] for a
    /// pattern that does not fit into one buffer; what the device reports.
    pub fn distances(&mut self, patterns: &Texts, cutoff: Option<u32>, distances: &mut [u32]) -> Result<(), Error> {
        check("distances", self.texts, distances.len())?;
        let device = Arc::clone(&self.device);
        let mut commands = device.commands("edit distance of pairs");
        self.record_patterns(&mut commands, patterns, cutoff)?;
        self.record_clear(&mut commands);
        self.record_kernels(&mut commands.pass());
        self.has_distances = true;
        self.take(commands, distances)
    }

    /// Patterns up, and nothing else; it is with these that [`kernel_only`](Self::kernel_only) works.
    ///
    /// # Errors
    /// As [`distances`](Self::distances).
    pub(in super::super) fn upload_patterns(&mut self, patterns: &Texts, cutoff: Option<u32>) -> Result<(), Error> {
        let device = Arc::clone(&self.device);
        let mut commands = device.commands("upload of patterns");
        self.record_patterns(&mut commands, patterns, cutoff)?;
        commands.submit()?.wait()?;
        Ok(())
    }

    /// The kernels alone on the patterns that were uploaded last, dispatch to completion; the device's own nanoseconds
    /// where its timestamps hold.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn kernel_only(&mut self) -> Result<Option<u64>, Error> {
        if !self.has_patterns {
            return Err(wrong("no pattern was uploaded"));
        }
        let mut commands = self.device.commands("kernel only");
        self.record_clear(&mut commands);
        let time = match &self.timer {
            None => {
                self.record_kernels(&mut commands.pass());
                commands.submit()?.wait()?;
                None
            }
            Some(timer) => {
                self.record_kernels(&mut commands.timed_pass(timer));
                commands.submit_timed(timer)?
            }
        };
        self.has_distances = true;
        Ok(time)
    }

    /// Distances down, and nothing else: those of the last call.
    ///
    /// # Errors
    /// [`Error::Shape`]; what the device reports.
    pub(in super::super) fn download(&mut self, distances: &mut [u32]) -> Result<(), Error> {
        if !self.has_distances {
            return Err(wrong("there are no distances yet"));
        }
        check("distances", self.texts, distances.len())?;
        self.take(self.device.commands("download of distances"), distances)
    }

    /// Gives up the patterns, the distances and what binds them: the next call allocates its own. Texts and pipelines stay.
    pub(in super::super) fn forget_call(&mut self) {
        self.parts.clear();
        self.distances.clear();
        (self.has_patterns, self.has_distances) = (false, false);
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
        let of = |part: &Part| part.patterns.bytes() + part.pairs.bytes() + part.long_pairs.bytes();
        (self.parts.iter().map(of).sum(), self.texts as u64 * 4)
    }

    fn record_patterns(
        &mut self,
        commands: &mut Commands<'_>,
        patterns: &Texts,
        cutoff: Option<u32>,
    ) -> Result<(), Error> {
        check("pairs: right side", self.texts, patterns.len())?;
        (self.has_patterns, self.has_distances) = (false, false);
        let mut old = std::mem::take(&mut self.parts).into_iter();
        if self.distances.len() != self.segments.len() {
            self.distances.clear();
            for segment in &self.segments {
                self.distances.push(self.device.buffer("distances", segment.texts.len())?);
            }
        }
        commands.upload(&self.call, 0, &[cutoff.unwrap_or(u32::MAX)])?;
        self.cutoff = cutoff;
        for number in 0..self.segments.len() {
            for blocks in self.cut(number, patterns)? {
                let segment = &self.segments[number];
                let plan = Plan::new(&self.alphabet, segment, blocks, patterns, self.lengths, self.limits);
                let part = self.part(number, plan, old.next().filter(|part| part.segment == number), commands)?;
                self.parts.push(part);
            }
        }
        self.has_patterns = true;
        Ok(())
    }

    /// Cuts the blocks of a segment into runs whose patterns fit into one buffer.
    fn cut(&self, number: usize, patterns: &Texts) -> Result<Vec<Range<usize>>, Error> {
        let segment = &self.segments[number];
        let words_of_rows = 1 + self.alphabet.bits();
        let (max, segment_words) = (self.limits.binding / 4, self.limits.segment / 4);
        let (mut all, mut current, mut sum) = (Vec::new(), 0..0, 0);
        for (block, places) in segment.blocks.places.chunks_exact(LANES).enumerate() {
            let mut mine = 0_u64;
            for &place in places.iter().filter(|place| **place != NOWHERE) {
                let rows = patterns.length(segment.texts.start + place as usize);
                // What a pattern takes, with what its strips keep.
                mine += (rows.div_ceil(TILE) * words_of_rows) as u64 + (rows / STRIP * LANES * 4) as u64;
            }
            if mine > max {
                let what = format!("patterns of {LANES} texts on the device, in words");
                return Err(Error::Limit { what, requested: mine, max });
            }
            if !current.is_empty() && sum + mine > segment_words {
                all.push(current);
                (current, sum) = (block..block, 0);
            }
            (current.end, sum) = (block + 1, sum + mine);
        }
        if !current.is_empty() {
            all.push(current);
        }
        Ok(all)
    }

    /// Uploads a plan, into the memory of an old part where it fits.
    fn part(&self, number: usize, plan: Plan, old: Option<Part>, commands: &mut Commands<'_>) -> Result<Part, Error> {
        let (device, segment) = (&*self.device, &self.segments[number]);
        let Some([short_pipeline, long_pipeline]) = &self.pipelines else {
            return Err(wrong("there are no kernels yet"));
        };
        let (mut patterns, mut pairs, mut long_pairs, mut edges, mut long_edges, mut kept) =
            (None, None, None, None, None, None);
        let (mut short, mut long_kernel) = (None, None);
        if let Some(old) = old {
            (patterns, pairs, long_pairs) = (Some(old.patterns), Some(old.pairs), Some(old.long_pairs));
            (edges, long_edges, kept) = (Some(old.edges), Some(old.long_edges), Some(old.kept));
            (short, long_kernel) = (Some(old.short), Some(old.long_kernel));
        }
        let edges_len = if plan.has_edges { segment.blocks.edges } else { 0 };
        let (patterns, same_patterns) = at_least(device, "patterns", patterns, plan.words.len())?;
        let (pairs, same_pairs) = at_least(device, "pairs", pairs, plan.pairs.len())?;
        let (long_pairs, same_long) = at_least(device, "long pairs", long_pairs, plan.long.len())?;
        let (edges, same_edges) = at_least(device, "edges of pairs", edges, edges_len)?;
        let (long_edges, same_long_edges) = at_least(device, "edges of long pairs", long_edges, plan.long_tiles)?;
        let (kept, same_kept) = at_least(device, "kept columns", kept, plan.strips * LANES)?;
        commands.upload(&patterns, 0, &plan.words)?;
        commands.upload(&pairs, 0, &plan.pairs)?;
        commands.upload(&long_pairs, 0, &plan.long)?;
        let distances = &self.distances[number];
        let short = match short.filter(|old| old.works == plan.short_works) {
            Some(old) if same_patterns && same_pairs && same_edges => old,
            _ => {
                let slots = device.uniforms("parameters of pairs", &plan.short_works)?;
                let bindings = [
                    patterns.binding(),
                    segment.codes.binding(),
                    segment.starts.binding(),
                    pairs.binding(),
                    self.call.binding(),
                    edges.binding(),
                    distances.binding(),
                    slots.binding(),
                ];
                let group = device.bind(short_pipeline, 0, &bindings)?;
                Kernel { works: plan.short_works, slots, group, steps: plan.short_steps }
            }
        };
        let long_kernel = match long_kernel.filter(|old| old.works == plan.long_works) {
            Some(old) if same_patterns && same_long && same_long_edges && same_kept => old,
            _ => {
                let slots = device.uniforms("parameters of long pairs", &plan.long_works)?;
                let bindings = [
                    patterns.binding(),
                    segment.codes.binding(),
                    long_pairs.binding(),
                    long_edges.binding(),
                    kept.binding(),
                    distances.binding(),
                    slots.binding(),
                ];
                let group = device.bind(long_pipeline, 0, &bindings)?;
                Kernel { works: plan.long_works, slots, group, steps: plan.long_steps }
            }
        };
        let long = plan.long.iter().map(|pair| pair[7]).collect();
        Ok(Part { segment: number, long, patterns, pairs, long_pairs, edges, long_edges, kept, short, long_kernel })
    }

    /// Long pairs add to their distances.
    fn record_clear(&self, commands: &mut Commands<'_>) {
        for part in self.parts.iter().filter(|part| !part.long.is_empty()) {
            commands.clear(&self.distances[part.segment]);
        }
    }

    fn record_kernels(&self, pass: &mut Pass<'_>) {
        let Some([short, long]) = &self.pipelines else { return };
        for part in &self.parts {
            part.short.record(pass, short);
            part.long_kernel.record(pass, long);
        }
    }

    fn take(&self, mut commands: Commands<'_>, distances: &mut [u32]) -> Result<(), Error> {
        match (self.segments.as_slice(), self.distances.as_slice()) {
            // One copy in the same submission, where it is small.
            ([segment], [found]) if segment.texts.len() <= PIECE => {
                let download = commands.download(found, 0, segment.texts.len())?;
                commands.submit()?.read(&download, distances)?;
            }
            (segments, all) => {
                commands.submit()?.wait()?;
                for (segment, found) in segments.iter().zip(all) {
                    self.device.download(found, 0, &mut distances[segment.texts.clone()])?;
                }
            }
        }
        for part in &self.parts {
            let first = self.segments[part.segment].texts.start;
            for &place in &part.long {
                let distance = &mut distances[first + place as usize];
                *distance = super::super::cut(*distance, self.cutoff);
            }
        }
        Ok(())
    }

    /// Segments, and parts of the call made last.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> (usize, usize) {
        (self.segments.len(), self.parts.len())
    }
}

/// Bit planes for codes of this many symbols: as few of 2, 5, 8, 16 and 32 as they need.
pub(super) fn planes(symbols: usize) -> usize {
    [2, 5, 8, 16].into_iter().find(|planes| symbols <= 1 << planes).unwrap_or(32)
}
