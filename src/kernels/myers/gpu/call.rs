//! What a call with some patterns needs beside the texts: their tables and the distances on the device, and the steps
//! between.

use super::alphabet::Alphabet;
use super::groups::{self, Member, STRIP, STRIP_SHAPE, Shape};
use super::layout::{LANES, Limits, TILE, as_u32};
use super::texts::Segment;
use super::{Work, strip_shader, texts_shader, wrong};
use crate::data::Text;
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Download, Pass, Pipeline, Submission, Uniforms, fold};
use crate::error::Error;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Distances come down in pieces of about this many: the device copies one while the host copies the one before.
pub(super) const PIECE: usize = 2 << 20;

/// Groups of a dispatch at most, on every adapter.
const MOST_GROUPS: usize = 65_535;

/// Distances on their way down, and their places.
type Piece = (Download<u32>, Range<usize>);

/// What of a pattern decides which buffers and dispatches a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words of 32 rows: 1, 2, 4 or 8.
    Short(usize),
    /// Strips of 256.
    Long(usize),
}

impl Kind {
    pub(super) fn of(length: usize) -> Self {
        if length > STRIP { Self::Long(length.div_ceil(STRIP)) } else { Self::Short(Shape::of(length, true).per) }
    }
}

/// Neighbouring groups of one shape in the buffer of patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    base: usize,
    shape: Shape,
    work: Groups,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Groups {
    /// Patterns by number; for all blocks that are not long.
    Texts(Vec<usize>),
    /// The strips of a pattern; for all blocks, or for the long ones only.
    Strips { pattern: usize, strips: usize, all_blocks: bool },
}

/// Sections of some neighbouring patterns.
struct Plan {
    patterns: Range<usize>,
    sections: Vec<Section>,
    /// Words of all groups.
    words: usize,
}

impl Plan {
    fn new(patterns: Range<usize>, kinds: &[Kind], alphabet: &Alphabet, any_long: bool) -> Self {
        let alone = kinds.len() == 1;
        let mut plan = Self { patterns: patterns.clone(), sections: Vec::new(), words: 0 };
        for per in [1, 2, 4, 8] {
            let members: Vec<_> = patterns.clone().filter(|&pattern| kinds[pattern] == Kind::Short(per)).collect();
            let shape = Shape { words: if alone { per } else { STRIP_SHAPE.words }, per };
            let count = members.len().div_ceil(shape.patterns());
            if count > 0 {
                plan.push(shape, count, alphabet, Groups::Texts(members));
            }
        }
        for pattern in patterns {
            let (strips, all_blocks) = match kinds[pattern] {
                Kind::Long(strips) => (strips, true),
                Kind::Short(_) if any_long => (1, false),
                Kind::Short(_) => continue,
            };
            plan.push(STRIP_SHAPE, strips, alphabet, Groups::Strips { pattern, strips, all_blocks });
        }
        plan
    }

    fn push(&mut self, shape: Shape, count: usize, alphabet: &Alphabet, work: Groups) {
        self.sections.push(Section { base: self.words, shape, work });
        self.words += count * shape.stride(alphabet);
    }
}

/// Some neighbouring patterns of a call.
pub(super) struct Batch {
    plan: Plan,
    pub(super) patterns: DeviceBuffer<u32>,
    /// Of each segment.
    distances: Vec<DeviceBuffer<u32>>,
    bindings: Vec<BindGroup>,
    works: Uniforms<Work>,
    steps: Vec<Step>,
}

struct Step {
    pipeline: Arc<Pipeline>,
    segment: usize,
    is_strip: bool,
    slot: usize,
    workgroups: [u32; 3],
}

/// Buffers of a call and the steps over them, kept between calls with patterns of the same kinds.
pub(super) struct Call {
    pub(super) kinds: Vec<Kind>,
    pub(super) batches: Vec<Batch>,
    /// Of each segment: its texts, and what strips hand on.
    texts: Vec<BindGroup>,
    strips: Vec<BindGroup>,
    scratch: Vec<u32>,
    pub(super) has_patterns: bool,
    pub(super) has_distances: bool,
}

impl Call {
    pub(super) fn new(
        device: &Device,
        limits: Limits,
        alphabet: &Alphabet,
        segments: &[Segment],
        kinds: Vec<Kind>,
    ) -> Result<Self, Error> {
        let mut call = Self {
            kinds,
            batches: Vec::new(),
            texts: Vec::new(),
            strips: Vec::new(),
            scratch: Vec::new(),
            has_patterns: false,
            has_distances: false,
        };
        if segments.is_empty() || call.kinds.is_empty() {
            return Ok(call);
        }
        let any_long = segments.iter().any(|segment| segment.long > 0);
        let needs_strips = any_long || call.kinds.iter().any(|kind| matches!(kind, Kind::Long(_)));
        let strip = if needs_strips { Some(device.pipeline(&strip_shader(alphabet.bits()))?) } else { None };
        for segment in segments {
            if let Some(strip) = &strip {
                let edges: DeviceBuffer<[u32; 2]> = device.buffer("edges of strips", segment.blocks.edges)?;
                let kept = if segment.long > 0 { segment.blocks.lengths.len() * 2 * STRIP_SHAPE.words } else { 0 };
                let kept: DeviceBuffer<u32> = device.buffer("kept columns", kept)?;
                call.strips.push(device.bind(strip, 2, &[edges.binding(), kept.binding()])?);
            }
        }
        for range in batches(&call.kinds, alphabet, segments, limits) {
            let plan = Plan::new(range, &call.kinds, alphabet, any_long);
            let batch = Batch::new(device, limits, alphabet, segments, plan, strip.as_ref())?;
            call.batches.push(batch);
        }
        let Some(step) = call.batches.first().and_then(|batch| batch.steps.first()) else { return Ok(call) };
        for segment in segments {
            let bindings = [
                segment.codes.binding(),
                segment.starts.binding(),
                segment.lengths.binding(),
                segment.places.binding(),
            ];
            call.texts.push(device.bind(&step.pipeline, 0, &bindings)?);
        }
        Ok(call)
    }

    /// Records the upload of the tables.
    pub(super) fn record_patterns(
        &mut self,
        commands: &mut Commands<'_>,
        alphabet: &Alphabet,
        patterns: &[Text<'_>],
        cutoff: Option<u32>,
    ) -> Result<(), Error> {
        self.has_patterns = false;
        for batch in &self.batches {
            let first = batch.plan.patterns.start;
            let member = |pattern: usize, strip: usize| Member {
                pattern: patterns[pattern],
                first: strip * STRIP,
                row: pattern - first,
            };
            self.scratch.clear();
            for Section { shape, work, .. } in &batch.plan.sections {
                match work {
                    Groups::Texts(numbers) => {
                        for numbers in numbers.chunks(shape.patterns()) {
                            let members: Vec<_> = numbers.iter().map(|&pattern| member(pattern, 0)).collect();
                            groups::push(&mut self.scratch, *shape, alphabet, &members, cutoff);
                        }
                    }
                    Groups::Strips { pattern, strips, .. } => {
                        for strip in 0..*strips {
                            groups::push(&mut self.scratch, *shape, alphabet, &[member(*pattern, strip)], cutoff);
                        }
                    }
                }
            }
            commands.upload(&batch.patterns, 0, &self.scratch)?;
        }
        self.has_patterns = true;
        Ok(())
    }

    pub(super) fn record_kernels(&mut self, pass: &mut Pass<'_>) {
        for batch in &self.batches {
            for step in &batch.steps {
                let offset = [batch.works.offset(step.slot)];
                let mut groups: Vec<(&BindGroup, &[u32])> =
                    vec![(&self.texts[step.segment], &[]), (&batch.bindings[step.segment], &offset)];
                if step.is_strip {
                    groups.push((&self.strips[step.segment], &[]));
                }
                pass.dispatch(&step.pipeline, &groups, step.workgroups);
            }
        }
        self.has_distances = true;
    }

    /// Submits `commands` and copies the distances out, the first piece of them in the same submission.
    pub(super) fn take<'a>(
        &mut self,
        device: &'a Device,
        commands: Commands<'a>,
        segments: &[Segment],
        texts: usize,
        distances: &mut [u32],
    ) -> Result<(), Error> {
        let mut left = self.pieces(segments, texts).into_iter().peekable();
        let mut commands = Some(commands);
        let mut ahead: VecDeque<(Submission<'a>, Vec<Piece>)> = VecDeque::new();
        loop {
            while ahead.len() < 2 && (left.peek().is_some() || commands.is_some()) {
                let mut commands = commands.take().unwrap_or_else(|| device.commands("download of distances"));
                let (mut pieces, mut sum) = (Vec::new(), 0);
                while let Some((batch, segment, first, to)) = left.next_if(|_| sum < PIECE) {
                    let download = commands.download(&self.batches[batch].distances[segment], first, to.len())?;
                    sum += to.len();
                    pieces.push((download, to));
                }
                ahead.push_back((commands.submit()?, pieces));
            }
            let Some((submission, pieces)) = ahead.pop_front() else { return Ok(()) };
            if pieces.is_empty() {
                submission.wait()?;
            }
            for (download, to) in pieces {
                submission.read(&download, &mut distances[to])?;
            }
        }
    }

    /// Batch, segment, first place there, and places of the caller, of each run of distances that lies together.
    fn pieces(&self, segments: &[Segment], texts: usize) -> Vec<(usize, usize, usize, Range<usize>)> {
        let mut pieces = Vec::new();
        for (number, batch) in self.batches.iter().enumerate() {
            let rows = &batch.plan.patterns;
            if segments.len() == 1 {
                let (start, end) = (rows.start * texts, rows.end * texts);
                for first in (start..end).step_by(PIECE) {
                    pieces.push((number, 0, first - start, first..end.min(first + PIECE)));
                }
                continue;
            }
            for row in rows.clone() {
                for (at, segment) in segments.iter().enumerate() {
                    let first = row * texts + segment.texts.start;
                    let there = (row - rows.start) * segment.texts.len();
                    pieces.push((number, at, there, first..first + segment.texts.len()));
                }
            }
        }
        pieces
    }
}

/// Cuts patterns into runs of neighbours whose tables and distances fit into one buffer each.
fn batches(kinds: &[Kind], alphabet: &Alphabet, segments: &[Segment], limits: Limits) -> Vec<Range<usize>> {
    let widest = segments.iter().map(|segment| segment.texts.len()).max().unwrap_or(0).max(1);
    let most_rows = usize::try_from(limits.segment / (widest as u64 * 4)).unwrap_or(usize::MAX).clamp(1, MOST_GROUPS);
    let most_words = usize::try_from(limits.segment / 4).unwrap_or(usize::MAX);
    // A short pattern may have a group of its own, and a strip for long texts.
    let stride = STRIP_SHAPE.stride(alphabet);
    let words = |kind: &Kind| match kind {
        Kind::Short(_) => 2 * stride,
        Kind::Long(strips) => strips * stride,
    };
    let (mut all, mut current, mut sum) = (Vec::new(), 0..0, 0);
    for (pattern, kind) in kinds.iter().enumerate() {
        let mine = words(kind);
        if !current.is_empty() && (current.len() >= most_rows || sum + mine > most_words) {
            all.push(current);
            (current, sum) = (pattern..pattern, 0);
        }
        (current.end, sum) = (pattern + 1, sum + mine);
    }
    if !current.is_empty() {
        all.push(current);
    }
    all
}

impl Batch {
    fn new(
        device: &Device,
        limits: Limits,
        alphabet: &Alphabet,
        segments: &[Segment],
        plan: Plan,
        strip: Option<&Arc<Pipeline>>,
    ) -> Result<Self, Error> {
        let patterns = device.buffer("patterns", plan.words)?;
        let mut works = Vec::new();
        let mut steps = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            for section in &plan.sections {
                let mut dispatch =
                    Dispatches { limits, alphabet, segment, number, section, works: &mut works, steps: &mut steps };
                match (&section.work, strip) {
                    (Groups::Texts(patterns), _) => {
                        let pipeline = device.pipeline(&texts_shader(section.shape, alphabet.bits()))?;
                        dispatch.texts(&pipeline, patterns.len().div_ceil(section.shape.patterns()));
                    }
                    (Groups::Strips { strips, all_blocks, .. }, Some(pipeline)) => {
                        dispatch.strips(pipeline, *strips, *all_blocks);
                    }
                    (Groups::Strips { .. }, None) => return Err(wrong("strips without their kernel")),
                }
            }
        }
        let works = device.uniforms("edit distance parameters", &works)?;
        let (mut distances, mut bindings) = (Vec::new(), Vec::new());
        for segment in segments {
            let of_segment = device.buffer("distances", plan.patterns.len() * segment.texts.len())?;
            if let Some(step) = steps.first() {
                let buffers = [patterns.binding(), of_segment.binding(), works.binding()];
                bindings.push(device.bind(&step.pipeline, 1, &buffers)?);
            }
            distances.push(of_segment);
        }
        Ok(Self { plan, patterns, distances, bindings, works, steps })
    }
}

/// The dispatches of a section on a segment, as they are found.
struct Dispatches<'a> {
    limits: Limits,
    alphabet: &'a Alphabet,
    segment: &'a Segment,
    number: usize,
    section: &'a Section,
    works: &'a mut Vec<Work>,
    steps: &'a mut Vec<Step>,
}

impl Dispatches<'_> {
    fn texts(&mut self, pipeline: &Arc<Pipeline>, groups: usize) {
        let stride = self.section.shape.stride(self.alphabet);
        let (first, end) = (self.segment.long, self.segment.blocks.starts.len());
        for blocks in self.cut(first..end, self.limits.columns, groups * self.section.shape.words) {
            let work = Work { base: as_u32(self.section.base), stride: as_u32(stride), ..Work::default() };
            self.push(pipeline, false, blocks, as_u32(groups), work);
        }
    }

    fn strips(&mut self, pipeline: &Arc<Pipeline>, strips: usize, all_blocks: bool) {
        let stride = self.section.shape.stride(self.alphabet);
        let blocks = &self.segment.blocks;
        let end = if all_blocks { blocks.starts.len() } else { self.segment.long };
        if end == 0 {
            return;
        }
        let columns = self.limits.columns;
        for strip in 0..strips {
            for from in (0..blocks.longest(0).max(1)).step_by(columns) {
                let end = if from == 0 { end } else { end.min(blocks.longer_than(from)) };
                let work = Work {
                    base: as_u32(self.section.base + strip * stride),
                    from_column: as_u32(from),
                    to_column: as_u32(from + columns),
                    is_first: u32::from(strip == 0),
                    is_last: u32::from(strip + 1 == strips),
                    ..Work::default()
                };
                for blocks in self.cut(0..end, columns, STRIP_SHAPE.words) {
                    self.push(pipeline, true, blocks, 1, work);
                }
            }
        }
    }

    /// Cuts blocks so that a dispatch stays below the most steps: `words` of each column, of `columns` at most.
    fn cut(&self, blocks: Range<usize>, columns: usize, words: usize) -> Vec<Range<usize>> {
        let (mut all, mut current, mut sum) = (Vec::new(), blocks.start..blocks.start, 0);
        for block in blocks {
            let columns = self.segment.blocks.longest(block).min(columns).max(TILE);
            let mine = (columns * LANES * words) as u64;
            if !current.is_empty() && sum + mine > self.limits.steps {
                all.push(current);
                (current, sum) = (block..block, 0);
            }
            (current.end, sum) = (block + 1, sum + mine);
        }
        if !current.is_empty() {
            all.push(current);
        }
        all
    }

    fn push(&mut self, pipeline: &Arc<Pipeline>, is_strip: bool, blocks: Range<usize>, groups: u32, work: Work) {
        let [x, y] = fold(blocks.len() as u64, self.limits.workgroups);
        self.steps.push(Step {
            pipeline: Arc::clone(pipeline),
            segment: self.number,
            is_strip,
            slot: self.works.len(),
            workgroups: [x, y, groups],
        });
        self.works.push(Work {
            first: as_u32(blocks.start),
            end: as_u32(blocks.end),
            groups_x: x,
            texts: as_u32(self.segment.texts.len()),
            ..work
        });
    }
}
