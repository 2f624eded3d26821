//! Pairs of texts in device memory.

use super::alphabet::Alphabet;
use super::layout::{Blocks, LANES, Limits, TILE, as_u32};
use super::{LongPairs, Pairs, check, long_pairs_shader, pairs_shader, wrong};
use crate::data::{Text, Texts};
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Pass, Pipeline, Timer, Uniforms, fold};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a strip of a long pair: 32 for each invocation.
const STRIP: usize = 32 * LANES;

/// Iterations of one invocation in a pair at most: below the 65,535 after which some drivers leave a loop in silence.
const MOST_OF_ONE: usize = 50_000;

/// Fewer pairs than this leave most of an adapter idle where one invocation owns one, if they are longer than that.
const FEW_PAIRS: usize = 4_096;
const FEW_STEPS: usize = 4_096;

/// Where pairs become long, and how they are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Iterations of one invocation in a pair, at most.
    pub(super) most_of_one: usize,
    /// The same where there are few pairs.
    pub(super) most_of_few: usize,
    /// Steps of a round, at least [`LANES`].
    pub(super) steps: usize,
}

impl Lengths {
    pub(super) const USUAL: Self = Self { most_of_one: MOST_OF_ONE, most_of_few: FEW_STEPS, steps: 128 };
}

/// Iterations of an invocation that owns a pair: for each word of the pattern its rows, and the columns and their tiles.
/// 0 where the pattern is empty.
fn iterations(rows: usize, columns: usize) -> usize {
    rows.div_ceil(32).saturating_mul(columns + columns / TILE + 34)
}

/// Two lists of the same length. The pattern of a pair is the one that makes less work.
#[derive(Clone, Copy)]
struct Sides<'a> {
    left: &'a Texts,
    right: &'a Texts,
}

impl<'a> Sides<'a> {
    /// Pattern and text.
    fn get(self, pair: usize) -> (Text<'a>, Text<'a>) {
        let (rows, columns) = self.lengths(pair);
        let (left, right) = (self.left.get(pair), self.right.get(pair));
        if (left.len(), right.len()) == (rows, columns) { (left, right) } else { (right, left) }
    }

    /// Their lengths.
    fn lengths(self, pair: usize) -> (usize, usize) {
        let (left, right) = (self.left.length(pair), self.right.length(pair));
        if iterations(left, right) <= iterations(right, left) { (left, right) } else { (right, left) }
    }
}

/// See `long_pairs.wgsl`.
type LongPair = [u32; 8];

/// Where neighbouring pairs lie.
struct Layout {
    pairs: Range<usize>,
    /// Short pairs, by their place in the range.
    patterns: Blocks,
    texts: Blocks,
    long: Vec<LongPair>,
    /// Words of all codes, of short pairs and then of long ones.
    pattern_words: usize,
    text_words: usize,
    /// Tiles and strips of long pairs.
    long_tiles: usize,
    strips: usize,
}

impl Layout {
    fn new(pairs: Range<usize>, sides: Sides<'_>, bits: usize, lengths: Lengths) -> Self {
        let at = |place: usize| sides.lengths(pairs.start + place);
        let steps = |place: usize| iterations(at(place).0, at(place).1);
        let most = if pairs.len() < FEW_PAIRS { lengths.most_of_few } else { lengths.most_of_one };
        let (mut long, mut short): (Vec<u32>, Vec<u32>) =
            (0..as_u32(pairs.len())).partition(|&place| steps(place as usize) > most);
        // Neighbours with as many words and about as many columns.
        short.sort_by_key(|&place| {
            let (rows, columns) = at(place as usize);
            std::cmp::Reverse((rows.div_ceil(32), columns))
        });
        long.sort_by_key(|&place| std::cmp::Reverse(steps(place as usize)));
        let patterns = Blocks::new(short.clone(), bits, |place| at(place).0);
        let texts = Blocks::new(short, bits, |place| at(place).1);
        let mut layout = Self {
            pattern_words: patterns.words,
            text_words: texts.words,
            pairs: pairs.clone(),
            patterns,
            texts,
            long: Vec::new(),
            long_tiles: 0,
            strips: 0,
        };
        for place in long {
            let (rows, columns) = at(place as usize);
            let strips = rows.div_ceil(STRIP);
            layout.long.push([
                as_u32(layout.pattern_words),
                as_u32(rows),
                as_u32(layout.text_words),
                as_u32(columns),
                as_u32(layout.long_tiles),
                as_u32(layout.strips),
                place,
                as_u32(strips),
            ]);
            layout.pattern_words += rows.div_ceil(32 / bits);
            layout.text_words += columns.div_ceil(32 / bits);
            layout.long_tiles += columns.div_ceil(TILE);
            layout.strips += strips;
        }
        layout
    }

    /// Bytes of its largest buffer.
    fn largest(&self) -> u64 {
        let edges = self.texts.tiles * LANES * 8;
        let words = self.pattern_words.max(self.text_words) * 4;
        let per_pair = self.patterns.places.len().max(self.pairs.len()) * 16;
        words.max(edges).max(per_pair).max(self.strips * LANES * 16).max(self.long_tiles * 8) as u64
    }

    /// Cuts pairs into runs of neighbours that fit.
    fn cut(
        pairs: Range<usize>,
        sides: Sides<'_>,
        bits: usize,
        lengths: Lengths,
        limits: Limits,
        all: &mut Vec<Self>,
    ) -> Result<(), Error> {
        if pairs.is_empty() {
            return Ok(());
        }
        let layout = Self::new(pairs.clone(), sides, bits, lengths);
        let (requested, max) = (layout.largest(), if pairs.len() == 1 { limits.binding } else { limits.segment });
        if requested <= max {
            all.push(layout);
            return Ok(());
        }
        if pairs.len() == 1 {
            let what = format!("pair {} on the device, in bytes of one buffer", pairs.start);
            return Err(Error::Limit { what, requested, max });
        }
        let middle = pairs.start + pairs.len() / 2;
        Self::cut(pairs.start..middle, sides, bits, lengths, limits, all)?;
        Self::cut(middle..pairs.end, sides, bits, lengths, limits, all)
    }
}

/// Neighbouring pairs in device memory, and the steps over them.
struct Segment {
    pairs: Range<usize>,
    /// Long pairs by place, whose distances are cut on the host.
    long: Vec<u32>,
    patterns: DeviceBuffer<u32>,
    texts: DeviceBuffer<u32>,
    distances: DeviceBuffer<u32>,
    short_works: Uniforms<Pairs>,
    short_group: Option<BindGroup>,
    short_steps: Vec<[u32; 3]>,
    long_works: Uniforms<LongPairs>,
    long_group: Option<BindGroup>,
    long_steps: Vec<[u32; 3]>,
}

/// The kernels, for one alphabet.
struct Pipelines {
    short: Arc<Pipeline>,
    long: Arc<Pipeline>,
}

/// Pairs of texts in device memory.
///
/// Results are those of the CPU path.
pub struct DevicePairs {
    device: Arc<Device>,
    limits: Limits,
    lengths: Lengths,
    pairs: usize,
    pipelines: Option<Pipelines>,
    segments: Vec<Segment>,
    /// The cutoff.
    call: DeviceBuffer<u32>,
    has_distances: bool,
    timer: Option<Timer>,
}

impl DevicePairs {
    /// Uploads the texts of both sides.
    ///
    /// Cost: reads each symbol twice; 1, 2 or 4 bytes a symbol and 16 a pair up, where there are up to 256, up to 65,536
    /// or more distinct symbols.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are not as many of both; [`Error::Limit`] for a pair that does not fit into one buffer;
    /// what the device reports. Where [`is_for_the_cpu`](super::is_for_the_cpu) holds, the CPU path can do what the device
    /// cannot.
    pub fn new(device: &Arc<Device>, left: &Texts, right: &Texts) -> Result<Self, Error> {
        Self::within(Limits::of(device), Lengths::USUAL, device, left, right)
    }

    pub(super) fn within(
        limits: Limits,
        lengths: Lengths,
        device: &Arc<Device>,
        left: &Texts,
        right: &Texts,
    ) -> Result<Self, Error> {
        device.check_iterations("edit distance of pairs", lengths.most_of_one.max(lengths.most_of_few) as u64)?;
        device.check_iterations("edit distance of long pairs", (lengths.steps * 33 + 64) as u64)?;
        let mut this = Self {
            limits,
            lengths,
            pairs: 0,
            pipelines: None,
            segments: Vec::new(),
            call: device.buffer("cutoff", 1)?,
            has_distances: false,
            timer: if device.timestamps_hold() { device.timer()? } else { None },
            device: Arc::clone(device),
        };
        this.refill(left, right)?;
        Ok(this)
    }

    /// Uploads other pairs in place of these.
    ///
    /// # Errors
    /// As [`new`](Self::new); there are no pairs then.
    pub fn refill(&mut self, left: &Texts, right: &Texts) -> Result<(), Error> {
        check("pairs: right side", left.len(), right.len())?;
        // The old memory first.
        self.segments.clear();
        (self.pairs, self.has_distances) = (0, false);
        let alphabet = Alphabet::of(&[left, right]);
        let (planes, bits) = (planes(alphabet.size()), alphabet.bits());
        let pipelines = Pipelines {
            short: self.device.pipeline(&pairs_shader(planes, bits))?,
            long: self.device.pipeline(&long_pairs_shader(planes, bits))?,
        };
        let sides = Sides { left, right };
        let mut layouts = Vec::new();
        Layout::cut(0..left.len(), sides, bits, self.lengths, self.limits, &mut layouts)?;
        let mut segments = Vec::new();
        for layout in layouts {
            segments.push(self.segment(&layout, sides, &alphabet, &pipelines)?);
        }
        self.pipelines = Some(pipelines);
        self.segments = segments;
        self.pairs = left.len();
        Ok(())
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// The distance of each pair; [`BEYOND`](super::super::BEYOND) for those above the cutoff.
    ///
    /// # Errors
    /// [`Error::Shape`] when `distances` has not as many places as there are pairs; what the device reports.
    pub fn distances(&mut self, cutoff: Option<u32>, distances: &mut [u32]) -> Result<(), Error> {
        check("distances", self.pairs, distances.len())?;
        let mut commands = self.device.commands("edit distance of pairs");
        self.record_call(&mut commands, cutoff)?;
        self.record_kernels(&mut commands.pass());
        self.has_distances = true;
        self.take(commands, cutoff, distances)
    }

    /// The kernels alone, dispatch to completion; the device's own nanoseconds where its timestamps hold.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn kernel_only(&mut self, cutoff: Option<u32>) -> Result<Option<u64>, Error> {
        let mut commands = self.device.commands("kernel only");
        self.record_call(&mut commands, cutoff)?;
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

    /// Distances down, and nothing else: those of the last call, which had this cutoff.
    ///
    /// # Errors
    /// [`Error::Shape`]; what the device reports.
    pub(in super::super) fn download(&mut self, cutoff: Option<u32>, distances: &mut [u32]) -> Result<(), Error> {
        if !self.has_distances {
            return Err(wrong("there are no distances yet"));
        }
        check("distances", self.pairs, distances.len())?;
        self.take(self.device.commands("download of distances"), cutoff, distances)
    }

    /// An empty submission and its wait.
    ///
    /// # Errors
    /// What the device reports.
    pub(in super::super) fn floor(&self) -> Result<(), Error> {
        Ok(self.device.floor()?)
    }

    /// Bytes that went up for the pairs.
    pub(in super::super) fn pairs_bytes(&self) -> u64 {
        let of = |segment: &Segment| segment.patterns.bytes() + segment.texts.bytes() + segment.pairs.len() as u64 * 16;
        self.segments.iter().map(of).sum()
    }

    fn segment(
        &self,
        layout: &Layout,
        sides: Sides<'_>,
        alphabet: &Alphabet,
        pipelines: &Pipelines,
    ) -> Result<Segment, Error> {
        let (device, first, bits) = (&*self.device, layout.pairs.start, alphabet.bits());
        let patterns = device.buffer("codes of patterns", layout.pattern_words)?;
        let texts = device.buffer("codes of texts", layout.text_words)?;
        let distances = device.buffer("distances", layout.pairs.len())?;
        let mut commands = device.commands("upload of pairs");
        layout.patterns.pack(
            alphabet,
            bits,
            |place| sides.get(first + place).0,
            |at, words| Ok(commands.upload(&patterns, at, words)?),
        )?;
        layout.texts.pack(
            alphabet,
            bits,
            |place| sides.get(first + place).1,
            |at, words| Ok(commands.upload(&texts, at, words)?),
        )?;
        let mut scratch = Vec::new();
        for &[pattern_at, _, text_at, _, _, _, place, _] in &layout.long {
            let (pattern, text) = sides.get(first + place as usize);
            for (buffer, at, symbols) in [(&patterns, pattern_at, pattern), (&texts, text_at, text)] {
                scratch.clear();
                scratch.resize(symbols.len().div_ceil(32 / bits), 0);
                alphabet.pack(symbols, bits, 1, &mut scratch);
                commands.upload(buffer, at as usize, &scratch)?;
            }
        }
        let mut segment = Segment {
            pairs: layout.pairs.clone(),
            long: layout.long.iter().map(|pair| pair[6]).collect(),
            patterns,
            texts,
            distances,
            short_works: device.uniforms("parameters of pairs", &[])?,
            short_group: None,
            short_steps: Vec::new(),
            long_works: device.uniforms("parameters of long pairs", &[])?,
            long_group: None,
            long_steps: Vec::new(),
        };
        if !layout.texts.starts.is_empty() {
            self.short(&mut segment, &mut commands, layout, &pipelines.short)?;
        }
        if !layout.long.is_empty() {
            self.long(&mut segment, &mut commands, layout, &pipelines.long)?;
        }
        commands.submit()?;
        Ok(segment)
    }

    /// Everything of a segment's short pairs beside their codes.
    fn short(
        &self,
        segment: &mut Segment,
        commands: &mut Commands<'_>,
        layout: &Layout,
        pipeline: &Pipeline,
    ) -> Result<(), Error> {
        let device = &*self.device;
        let both = layout.patterns.starts.iter().zip(&layout.texts.starts);
        let starts: Vec<_> = both.map(|(pattern, text)| [pattern[0], text[0], text[1], 0]).collect();
        let lengths = layout.patterns.lengths.iter().zip(&layout.texts.lengths);
        let pairs = lengths.zip(&layout.texts.places).map(|((&rows, &columns), &place)| [rows, columns, place, 0]);
        let pairs: Vec<[u32; 4]> = pairs.collect();
        let starts_buffer = device.buffer("blocks of pairs", starts.len())?;
        let pairs_buffer = device.buffer("lengths of pairs", pairs.len())?;
        let edges: DeviceBuffer<[u32; 2]> = device.buffer("edges of pairs", layout.texts.tiles * LANES)?;
        commands.upload(&starts_buffer, 0, &starts)?;
        commands.upload(&pairs_buffer, 0, &pairs)?;
        let mut works = Vec::new();
        let (mut first, mut sum) = (0, 0);
        for block in 0..starts.len() {
            let lanes = &pairs[block * LANES..(block + 1) * LANES];
            let longest = lanes.iter().map(|pair| iterations(pair[0] as usize, pair[1] as usize));
            let mine = (longest.max().unwrap_or(0).max(TILE) * LANES) as u64;
            if block > first && sum + mine > self.limits.steps {
                works.push((first, block));
                (first, sum) = (block, 0);
            }
            sum += mine;
        }
        works.push((first, starts.len()));
        let mut slots = Vec::new();
        for (first, end) in works {
            let [x, y] = fold((end - first) as u64, self.limits.workgroups);
            segment.short_steps.push([x, y, 1]);
            slots.push(Pairs { first: as_u32(first), end: as_u32(end), groups_x: x });
        }
        segment.short_works = device.uniforms("parameters of pairs", &slots)?;
        let bindings = [
            segment.patterns.binding(),
            segment.texts.binding(),
            starts_buffer.binding(),
            pairs_buffer.binding(),
            self.call.binding(),
            edges.binding(),
            segment.distances.binding(),
            segment.short_works.binding(),
        ];
        segment.short_group = Some(device.bind(pipeline, 0, &bindings)?);
        Ok(())
    }

    /// Everything of a segment's long pairs beside their codes.
    fn long(
        &self,
        segment: &mut Segment,
        commands: &mut Commands<'_>,
        layout: &Layout,
        pipeline: &Pipeline,
    ) -> Result<(), Error> {
        let device = &*self.device;
        let pairs = device.buffer("long pairs", layout.long.len())?;
        let edges: DeviceBuffer<[u32; 2]> = device.buffer("edges of long pairs", layout.long_tiles)?;
        let kept: DeviceBuffer<[u32; 4]> = device.buffer("kept columns", layout.strips * LANES)?;
        commands.upload(&pairs, 0, &layout.long)?;
        let steps = self.lengths.steps;
        // Strips of a pair, and rounds that one of them takes.
        let shape = |pair: &LongPair| (pair[7] as usize, ((pair[3] as usize).div_ceil(TILE) + LANES).div_ceil(steps));
        let most = usize::try_from(self.limits.steps / (steps * TILE * LANES) as u64).unwrap_or(usize::MAX).max(1);
        let mut slots = Vec::new();
        let mut first = 0;
        while first < layout.long.len() {
            let (mut end, mut sum, mut strips, mut rounds) = (first, 0, 0, 0);
            while end < layout.long.len() {
                let (its_strips, its_rounds) = shape(&layout.long[end]);
                // Strips at work in one round.
                sum += its_strips.min(its_rounds / 2 + 1);
                if end > first && sum > most {
                    break;
                }
                (strips, rounds) = (strips.max(its_strips), rounds.max(its_rounds));
                end += 1;
            }
            let [x, y] = fold((end - first) as u64, self.limits.workgroups);
            for round in 0..rounds + 2 * (strips - 1) {
                let from = (round + 1).saturating_sub(rounds).div_ceil(2);
                let to = strips.min(round / 2 + 1);
                // Strips lie along z, which is not folded.
                for from in (from..to).step_by(65_535) {
                    segment.long_steps.push([x, y, as_u32((to - from).min(65_535))]);
                    slots.push(LongPairs {
                        first: as_u32(first),
                        end: as_u32(end),
                        groups_x: x,
                        strip: as_u32(from),
                        round: as_u32(round),
                        steps: as_u32(steps),
                    });
                }
            }
            first = end;
        }
        segment.long_works = device.uniforms("parameters of long pairs", &slots)?;
        let bindings = [
            segment.patterns.binding(),
            segment.texts.binding(),
            pairs.binding(),
            edges.binding(),
            kept.binding(),
            segment.distances.binding(),
            segment.long_works.binding(),
        ];
        segment.long_group = Some(device.bind(pipeline, 0, &bindings)?);
        Ok(())
    }

    fn record_call(&self, commands: &mut Commands<'_>, cutoff: Option<u32>) -> Result<(), Error> {
        commands.upload(&self.call, 0, &[cutoff.unwrap_or(u32::MAX)])?;
        for segment in self.segments.iter().filter(|segment| segment.long_group.is_some()) {
            // Long pairs add to their distances.
            commands.clear(&segment.distances);
        }
        Ok(())
    }

    fn record_kernels(&self, pass: &mut Pass<'_>) {
        let Some(pipelines) = &self.pipelines else { return };
        for segment in &self.segments {
            if let Some(group) = &segment.short_group {
                for (slot, &workgroups) in segment.short_steps.iter().enumerate() {
                    pass.dispatch(&pipelines.short, &[(group, &[segment.short_works.offset(slot)])], workgroups);
                }
            }
            if let Some(group) = &segment.long_group {
                for (slot, &workgroups) in segment.long_steps.iter().enumerate() {
                    pass.dispatch(&pipelines.long, &[(group, &[segment.long_works.offset(slot)])], workgroups);
                }
            }
        }
    }

    fn take(&self, commands: Commands<'_>, cutoff: Option<u32>, distances: &mut [u32]) -> Result<(), Error> {
        let mut commands = commands;
        match self.segments.as_slice() {
            [] => commands.submit()?.wait()?,
            // One copy in the same submission, where it is small.
            [segment] if segment.pairs.len() <= super::texts::PIECE => {
                let download = commands.download(&segment.distances, 0, segment.pairs.len())?;
                commands.submit()?.read(&download, distances)?;
            }
            segments => {
                commands.submit()?;
                for segment in segments {
                    self.device.download(&segment.distances, 0, &mut distances[segment.pairs.clone()])?;
                }
            }
        }
        if cutoff.is_some() {
            for segment in &self.segments {
                for &place in &segment.long {
                    let distance = &mut distances[segment.pairs.start + place as usize];
                    *distance = super::super::cut(*distance, cutoff);
                }
            }
        }
        Ok(())
    }
}

/// Bit planes for codes of this many symbols: as few of 2, 5, 8, 16 and 32 as they need.
pub(super) fn planes(symbols: usize) -> usize {
    [2, 5, 8, 16].into_iter().find(|planes| symbols <= 1 << planes).unwrap_or(32)
}
