//! Runs the schedule: operands bound, passes recorded, candidates read back and checked.

use super::super::Search;
use super::super::exact::ExactQuery;
use super::super::rank::row_values;
use super::schedule::{self, CANDIDATE_WORDS, Shape, Step};
use super::segments::{Layout, Segment};
use super::{Merge, Score, merge_shader, score_shader};
use crate::data::{Matrix, Rows};
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Pass, Pipeline, Timer, Uniforms, fold};
use crate::error::{DeviceError, Error};
use crate::simd::Level;
use std::sync::Arc;

/// Candidates and queries of one batch take at most this much of the device.
const BATCH_BYTES: u64 = 256 << 20;

/// Queries whose candidates overflowed are searched again, this many at a time.
pub(super) const CROWDED_BATCH: usize = 64;

/// Queries of one batch: which they are, and what goes to the device.
pub(super) struct Batch {
    /// Numbers of the queries in the caller's matrix.
    pub(super) numbers: Vec<usize>,
    pub(super) values: Vec<[f32; 4]>,
    /// |q| and slack_q.
    pub(super) terms: Vec<[f32; 2]>,
}

impl Batch {
    /// Some of the queries of a batch.
    pub(super) fn subset(&self, positions: &[usize], quads: usize) -> Self {
        Self {
            numbers: positions.iter().map(|&at| self.numbers[at]).collect(),
            values: positions.iter().flat_map(|&at| self.values[at * quads..][..quads].iter().copied()).collect(),
            terms: positions.iter().map(|&at| self.terms[at]).collect(),
        }
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// Buffers of a batch, kept between calls.
struct Workspace {
    queries: DeviceBuffer<[f32; 4]>,
    terms: DeviceBuffer<[f32; 2]>,
    /// Per query: count, threshold, overflowed, kept.
    state: DeviceBuffer<[u32; 4]>,
    candidates: DeviceBuffer<u32>,
    found: DeviceBuffer<u32>,
}

/// What a pass does, with all its bindings.
struct Program {
    score: Arc<Pipeline>,
    merge: Arc<Pipeline>,
    segments: Vec<BindGroup>,
    score_slots: Uniforms<Score>,
    score_group: BindGroup,
    merge_slots: Uniforms<Merge>,
    merge_group: BindGroup,
    operations: Vec<Operation>,
    queries: u32,
}

enum Operation {
    Score { segment: usize, slot: usize, workgroups: [u32; 3] },
    Merge { slot: usize },
}

/// Modes of `merge.wgsl`, and the slots of their parameters.
const FORGET: u32 = 0;
const KEEP: u32 = 1;
const EMIT: u32 = 2;

/// What a batch found: the rows of each query, or that there were too many.
pub(super) enum Found {
    Rows(Vec<u32>),
    Crowded,
}

/// Everything for searching one corpus layout with one `k`.
pub(super) struct Engine {
    device: Arc<Device>,
    layout: Layout,
    k: usize,
    /// Queries that the workspace holds.
    room: usize,
    work: Workspace,
    /// The program of the resident corpus, and its number of queries.
    resident: Option<(usize, Program)>,
    timer: Option<Timer>,
}

impl Engine {
    /// Allocates for batches of `queries`.
    pub(super) fn new(device: &Arc<Device>, layout: Layout, k: usize, queries: usize) -> Result<Self, Error> {
        let room = Self::batch_size(device, k).min(queries).max(1);
        let work = Workspace {
            queries: device.buffer("queries", room * layout.quads)?,
            terms: device.buffer("query terms", room)?,
            state: device.buffer("search state", room)?,
            candidates: device.buffer("candidates", room * schedule::capacity(k) * CANDIDATE_WORDS)?,
            found: device.buffer("found rows", room * (schedule::room(k) + 1))?,
        };
        device.check_iterations("merge", schedule::merge_iterations(schedule::capacity(k)))?;
        let timer = if device.timestamps_hold() { device.timer()? } else { None };
        Ok(Self { device: Arc::clone(device), layout, k, room, work, resident: None, timer })
    }

    /// Queries of one batch at most.
    pub(super) fn batch_size(device: &Device, k: usize) -> usize {
        schedule::batch(k, device.binding_bytes().min(BATCH_BYTES))
    }

    /// Whether it was made for this `k` and at least as many queries.
    pub(super) fn fits(&self, k: usize, queries: usize) -> bool {
        self.k == k && self.room >= queries.min(Self::batch_size(&self.device, k))
    }

    /// Builds the program over `segments`, of which `seen` earlier rows have raised the thresholds.
    fn program(&self, segments: &[Segment], queries: usize, seen: u64, emit: bool) -> Result<Program, Error> {
        let rows: Vec<_> = segments.iter().map(|segment| segment.rows).collect();
        let mut steps = schedule::steps(&rows, seen, self.k, queries, self.layout.dim);
        if emit && steps.last().is_none_or(|step| matches!(step, Step::Score { .. })) {
            steps.push(Step::Merge { keep: true });
        }
        self.program_of(segments, queries, &steps, emit)
    }

    fn program_of(&self, segments: &[Segment], queries: usize, steps: &[Step], emit: bool) -> Result<Program, Error> {
        let (device, work) = (&self.device, &self.work);
        let shape = Shape::of(queries);
        device.check_iterations("cosine scores", shape.iterations(self.layout.quads as u64))?;
        let score = device.pipeline(&score_shader(shape, self.layout.storage))?;
        let merge = device.pipeline(&merge_shader())?;
        let (queries, quads, k) = (as_u32(queries), as_u32(self.layout.quads), as_u32(self.k));
        let cap = as_u32(schedule::capacity(self.k));
        let room = as_u32(schedule::room(self.k));
        let merge_slots: Vec<_> = [FORGET, KEEP, EMIT].map(|mode| Merge { queries, k, cap, mode, room }).into();
        let mut scores = Vec::new();
        let mut operations = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            operations.push(match *step {
                Step::Score { segment, first, stride, count } => {
                    let tiles = u64::from(count.div_ceil(shape.rows()));
                    let [x, y] = fold(tiles, device.max_workgroups());
                    let base = segments[segment].first;
                    scores.push(Score { first, stride, count, base, queries, quads, cap, tiles_x: x });
                    let workgroups = [x, y, shape.query_groups(queries)];
                    Operation::Score { segment, slot: scores.len() - 1, workgroups }
                }
                Step::Merge { keep: false } => Operation::Merge { slot: FORGET as usize },
                Step::Merge { keep: true } if emit && number + 1 == steps.len() => {
                    Operation::Merge { slot: EMIT as usize }
                }
                Step::Merge { keep: true } => Operation::Merge { slot: KEEP as usize },
            });
        }
        let score_slots = device.uniforms("score parameters", &scores)?;
        let merge_slots = device.uniforms("merge parameters", &merge_slots)?;
        let bindings = [
            work.queries.binding(),
            work.terms.binding(),
            work.state.binding(),
            work.candidates.binding(),
            score_slots.binding(),
        ];
        let score_group = device.bind(&score, 1, &bindings)?;
        let bindings = [work.state.binding(), work.candidates.binding(), work.found.binding(), merge_slots.binding()];
        let merge_group = device.bind(&merge, 0, &bindings)?;
        let segments = segments
            .iter()
            .map(|segment| device.bind(&score, 0, &[segment.values.binding(), segment.terms.binding()]))
            .collect::<Result<_, _>>()?;
        Ok(Program { score, merge, segments, score_slots, score_group, merge_slots, merge_group, operations, queries })
    }

    /// Searches a corpus that is on the device.
    pub(super) fn resident(
        &mut self,
        segments: &[Segment],
        batch: &Batch,
        rows: RowCheck,
    ) -> Result<Vec<Found>, Error> {
        self.prepare_resident(segments, batch.len())?;
        let Some((_, program)) = &self.resident else { return Ok(Vec::new()) };
        let mut commands = self.device.commands("top-k");
        self.record_queries(&mut commands, batch)?;
        self.record(&mut commands.pass(), program);
        self.read_found(commands, batch.len(), rows)
    }

    /// The program for this many queries, made once.
    pub(super) fn prepare_resident(&mut self, segments: &[Segment], queries: usize) -> Result<(), Error> {
        if self.resident.as_ref().is_none_or(|(made_for, _)| *made_for != queries) {
            self.resident = Some((queries, self.program(segments, queries, 0, true)?));
        }
        Ok(())
    }

    /// Searches a part of the corpus; `seen` rows came before it. The result stays on the device.
    pub(super) fn part(&self, segment: &Segment, batch: &Batch, seen: u64) -> Result<(), Error> {
        let mut commands = self.device.commands("top-k of a part");
        if seen == 0 {
            self.record_queries(&mut commands, batch)?;
        }
        let program = self.program(std::slice::from_ref(segment), batch.len(), seen, false)?;
        self.record(&mut commands.pass(), &program);
        commands.submit()?;
        Ok(())
    }

    /// Reads what all parts together found.
    pub(super) fn parts_found(&self, queries: usize, rows: RowCheck) -> Result<Vec<Found>, Error> {
        let program = self.program_of(&[], queries, &[Step::Merge { keep: true }], true)?;
        let mut commands = self.device.commands("top-k of the parts");
        self.record(&mut commands.pass(), &program);
        self.read_found(commands, queries, rows)
    }

    fn record_queries(&self, commands: &mut Commands<'_>, batch: &Batch) -> Result<(), Error> {
        commands.upload(&self.work.queries, 0, &batch.values)?;
        commands.upload(&self.work.terms, 0, &batch.terms)?;
        commands.clear(&self.work.state);
        Ok(())
    }

    fn record(&self, pass: &mut Pass<'_>, program: &Program) {
        let Program { score, merge, score_slots, score_group, merge_slots, merge_group, .. } = program;
        for operation in &program.operations {
            match *operation {
                Operation::Score { segment, slot, workgroups } => {
                    let groups: [(_, &[u32]); 2] =
                        [(&program.segments[segment], &[]), (score_group, &[score_slots.offset(slot)])];
                    pass.dispatch(score, &groups, workgroups);
                }
                Operation::Merge { slot } => {
                    let groups: [(_, &[u32]); 1] = [(merge_group, &[merge_slots.offset(slot)])];
                    pass.dispatch(merge, &groups, [program.queries, 1, 1]);
                }
            }
        }
    }

    fn read_found(&self, mut commands: Commands<'_>, queries: usize, rows: RowCheck) -> Result<Vec<Found>, Error> {
        let stride = schedule::room(self.k) + 1;
        let download = commands.download(&self.work.found, 0, queries * stride)?;
        let submission = commands.submit()?;
        let mut words = vec![0; queries * stride];
        submission.read(&download, &mut words)?;
        drop(submission);
        let mut found = Vec::with_capacity(queries);
        for (query, words) in words.chunks_exact(stride).enumerate() {
            let kept = words[0];
            if kept == u32::MAX {
                found.push(Found::Crowded);
                continue;
            }
            let kept = kept as usize;
            if kept > schedule::capacity(self.k) {
                return Err(wrong(format!("query {query}: {kept} candidates")));
            }
            let mut list = words[1..].iter().copied().take(kept).collect::<Vec<_>>();
            if kept > list.len() {
                list = self.candidates_of(query, kept)?.into_iter().map(|(_, row)| row).collect();
            }
            rows.check(query, &list)?;
            found.push(Found::Rows(list));
        }
        Ok(found)
    }

    /// Upper bounds (ordered bits) and rows of a query's candidates.
    fn candidates_of(&self, query: usize, count: usize) -> Result<Vec<(u32, u32)>, Error> {
        let mut words = vec![0; count * CANDIDATE_WORDS];
        let first = query * schedule::capacity(self.k) * CANDIDATE_WORDS;
        self.device.download(&self.work.candidates, first, &mut words)?;
        Ok(words.chunks_exact(CANDIDATE_WORDS).map(|words| (words[1], words[2])).collect())
    }

    /// The candidates of queries whose list overflowed: piece by piece, each short enough to fit, with the threshold
    /// carried on.
    pub(super) fn crowded(
        &self,
        segment: &Segment,
        batch: &Batch,
        first_segment: bool,
        lists: &mut [Crowd<'_>],
    ) -> Result<(), Error> {
        let piece = as_u32(schedule::capacity(self.k));
        let mut first = 0;
        while first < segment.rows {
            let count = piece.min(segment.rows - first);
            // Thresholds stay, the candidates of the piece before go.
            let steps = [
                Step::Merge { keep: false },
                Step::Score { segment: 0, first, stride: 1, count },
                Step::Merge { keep: true },
            ];
            let program = self.program_of(std::slice::from_ref(segment), batch.len(), &steps, false)?;
            let mut commands = self.device.commands("top-k of crowded queries");
            if first_segment && first == 0 {
                self.record_queries(&mut commands, batch)?;
            }
            self.record(&mut commands.pass(), &program);
            let download = commands.download(&self.work.state, 0, batch.len())?;
            let submission = commands.submit()?;
            let mut states = vec![[0; 4]; batch.len()];
            submission.read(&download, &mut states)?;
            for (query, (list, [kept, threshold, overflowed, _])) in lists.iter_mut().zip(states).enumerate() {
                if overflowed != 0 || kept > count {
                    return Err(wrong(format!("query {query}: {kept} candidates of {count} rows")));
                }
                list.add(self.candidates_of(query, kept as usize)?, threshold)?;
            }
            first += count;
        }
        Ok(())
    }

    /// The queries up, and nothing else.
    pub(super) fn upload_queries(&self, batch: &Batch) -> Result<(), Error> {
        let mut commands = self.device.commands("query upload");
        self.record_queries(&mut commands, batch)?;
        Ok(commands.submit()?.wait()?)
    }

    /// The kernel alone, on queries that were uploaded: dispatch to completion. The device's own nanoseconds where its
    /// timestamps hold.
    pub(super) fn kernel_only(&self) -> Result<Option<u64>, Error> {
        let Some((_, program)) = &self.resident else {
            return Err(wrong("no queries were uploaded".to_owned()));
        };
        let mut commands = self.device.commands("kernel only");
        commands.clear(&self.work.state);
        let Some(timer) = &self.timer else {
            self.record(&mut commands.pass(), program);
            commands.submit()?.wait()?;
            return Ok(None);
        };
        self.record(&mut commands.timed_pass(timer), program);
        Ok(commands.submit_timed(timer)?)
    }

    /// The results down, and nothing else.
    pub(super) fn download_found(&self, queries: usize) -> Result<(), Error> {
        let mut words = vec![0; queries * (schedule::room(self.k) + 1)];
        Ok(self.device.download(&self.work.found, 0, &mut words)?)
    }

    /// Bytes that come back for a batch.
    pub(super) fn found_bytes(k: usize, queries: usize) -> u64 {
        (queries * (schedule::room(k) + 1) * 4) as u64
    }
}

fn as_u32(value: usize) -> u32 {
    // Rows, queries and capacities are checked against far smaller limits.
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The device gave something that cannot be: reported, never returned as an answer.
fn wrong(message: String) -> Error {
    Error::Device(DeviceError::Internal { what: "cosine on the device gave a wrong result".to_owned(), message })
}

/// What every list of rows from the device has to fulfil.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowCheck {
    /// Rows of the corpus.
    pub(super) rows: usize,
    /// Candidates that there are at least.
    pub(super) least: usize,
}

impl RowCheck {
    fn check(self, query: usize, list: &[u32]) -> Result<(), Error> {
        if list.len() < self.least {
            return Err(wrong(format!("query {query}: {} candidates, at least {} expected", list.len(), self.least)));
        }
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        if let Some(&last) = sorted.last()
            && last as usize >= self.rows
        {
            return Err(wrong(format!("query {query}: row {last} of {}", self.rows)));
        }
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(wrong(format!("query {query}: row {} twice", pair[0]))),
            None => Ok(()),
        }
    }
}

/// The growing list of a crowded query.
pub(super) struct Crowd<'a> {
    pub(super) query: ExactQuery,
    pub(super) corpus: &'a dyn Rows,
    /// Upper bound (ordered bits) and row.
    list: Vec<(u32, u32)>,
    k: usize,
    decided_at: usize,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(queries: &Matrix, number: usize, corpus: &'a dyn Rows, search: Search, level: Level) -> Self {
        let query = ExactQuery::new(level, search.metric, queries.row(number));
        let k = search.candidates(corpus.rows());
        Self { query, corpus, list: Vec::new(), k, decided_at: 4 * schedule::capacity(k) }
    }

    /// Takes the candidates of one more piece, and drops those that the threshold has left behind.
    fn add(&mut self, candidates: Vec<(u32, u32)>, threshold: u32) -> Result<(), Error> {
        self.list.extend(candidates);
        if self.list.len() < self.decided_at {
            return Ok(());
        }
        self.list.retain(|&(upper, _)| upper >= threshold);
        // Duplicates of the k-th best never fall below it: decide between them by their exact scores, so that the list
        // stays short however many there are.
        if 2 * self.list.len() > self.decided_at {
            let mut scratch = Vec::new();
            let mut scored = Vec::with_capacity(self.list.len());
            for &(upper, row) in &self.list {
                let score = self.query.score(row_values(self.corpus, row as usize, &mut scratch)?);
                scored.push((score, row, upper));
            }
            scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            scored.truncate(self.k);
            self.list = scored.into_iter().map(|(_, row, upper)| (upper, row)).collect();
        }
        Ok(())
    }

    pub(super) fn into_rows(self) -> Vec<u32> {
        self.list.into_iter().map(|(_, row)| row).collect()
    }
}
