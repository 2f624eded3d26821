//! One launch: both arms in one process, following a [`LaunchPlan`].
//!
//! For each cell: inputs are built, every arm's results are compared with the reference, arms are warmed, slots are
//! timed, results are compared once more. The clock, the canary and the kernel are given, so that tests script them.

use super::canary::Canary;
use super::clock::Clock;
use super::evaluate::slot_ns;
use super::plan::{Arm, ArmPlan, CellPlan, LaunchPlan, Order, Series, row_named};
use super::warmup;
use crate::error::Error;
use crate::kernels::{Case, Kernel, Platform, Prepared, Row};
use crate::results::schema::{Adapter, AgreementRow, LaunchState, Sample, TimingRow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// A call longer than this is not repeated to re-warm a CPU arm; the canary is run instead.
const LONG_CALL_NS: u64 = 50_000_000;
/// Runs of the canary that make one sample.
const CANARY_RUNS: u32 = 5;
/// A software adapter is asked for at most this many operations per call. It runs on the CPU, and slowly; larger cases
/// would take minutes to show nothing new.
pub const SOFTWARE_OPERATIONS: f64 = 2e9;
/// Calls of a pilot: at least so many, unless they take long.
const PILOT_CALLS: u32 = 3;
/// Time after which a pilot stops repeating a call.
const PILOT_NS: u64 = 100_000_000;
/// Calls after which it stops in any case: each is a sample in the file.
const PILOT_CALLS_MAX: u32 = 100;

/// What a launch tells the one who started it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The device is open, or there is none.
    Ready {
        /// The adapter, also a software one.
        adapter: Option<Box<Adapter>>,
        /// Time to open it.
        init_ns: Option<u64>,
    },
    /// What is going on, for a progress line.
    Step(String),
    /// A cell is finished.
    Cell(Box<CellReport>),
    /// All cells are finished.
    Done(Box<LaunchState>),
    /// The launch cannot go on; what was reported before stays valid.
    Failed(String),
}

/// What one launch found out about one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// Index of the context in the protocol.
    pub context_index: u32,
    /// Size.
    pub size: u64,
    /// All samples, in time order.
    pub samples: Vec<Sample>,
    /// One entry per arm and row.
    pub agreement: Vec<AgreementRow>,
    /// What is to be timed, without statistics: from the pilot only.
    pub rows: Vec<TimingRow>,
    /// Time to build the inputs.
    pub prepare_ns: u64,
    /// Time of all comparisons with the reference.
    pub check_ns: u64,
}

/// Where a launch takes place.
pub struct Stage<'a> {
    /// The kernel.
    pub kernel: &'a dyn Kernel,
    /// Level, threads, device.
    pub platform: &'a Platform,
    /// The device's adapter.
    pub adapter: Option<&'a Adapter>,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// Fixed work.
    pub canary: &'a dyn Canary,
}

/// How a series can end early.
enum Stop {
    /// The arm failed: the cell is invalid, the launch goes on.
    Broken(String),
    /// Nothing can go on.
    Fatal(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            Error::Device(error) => Self::Broken(error.to_string()),
            other => Self::Fatal(other),
        }
    }
}

/// Follows the plan and reports each cell as it is finished.
///
/// # Errors
/// What building the inputs reports, and what `report` returns.
pub fn run(
    plan: &LaunchPlan,
    stage: &Stage<'_>,
    report: &mut dyn FnMut(Event) -> Result<(), Error>,
) -> Result<(), Error> {
    for cell in &plan.cells {
        report(Event::Step(describe(cell)))?;
        let found = visit(plan, cell, stage)?;
        report(Event::Cell(Box::new(found)))?;
    }
    Ok(())
}

/// A cell in words: `384 dim, 10 k, 256 queries; 100000`.
pub fn describe(cell: &CellPlan) -> String {
    let axes: Vec<_> = cell.context.iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{}, size {}", axes.join(", "), cell.size)
}

fn visit(plan: &LaunchPlan, cell: &CellPlan, stage: &Stage<'_>) -> Result<CellReport, Error> {
    let case = Case {
        size: cell.size,
        context: cell.context.clone(),
        seed: plan.seed,
        ring: plan.ring as usize,
        distribution: plan.distribution.clone(),
    };
    let before = stage.clock.now_ns();
    let prepared = stage.kernel.prepare(&case, stage.platform)?;
    let prepare_ns = stage.clock.now_ns() - before;
    let mut visit = Visit {
        plan,
        cell,
        stage,
        prepared,
        samples: Vec::new(),
        agreement: BTreeMap::new(),
        broken: BTreeSet::new(),
        next_input: BTreeMap::new(),
        last_call_ns: BTreeMap::new(),
        marks: Vec::new(),
        check_ns: 0,
    };
    let rows = if plan.launch == 0 { visit.pilot()? } else { visit.timed().map(|()| Vec::new())? };
    Ok(CellReport {
        context_index: cell.context_index,
        size: cell.size,
        samples: visit.samples,
        agreement: visit.agreement.into_values().map(|agreement| agreement.row).collect(),
        rows,
        prepare_ns,
        check_ns: visit.check_ns,
    })
}

struct Agreed {
    row: AgreementRow,
    hash: Sha256,
}

struct Visit<'a> {
    plan: &'a LaunchPlan,
    cell: &'a CellPlan,
    stage: &'a Stage<'a>,
    prepared: Box<dyn Prepared>,
    samples: Vec<Sample>,
    agreement: BTreeMap<(Arm, Row), Agreed>,
    broken: BTreeSet<(Arm, Row)>,
    next_input: BTreeMap<(Arm, Row), usize>,
    last_call_ns: BTreeMap<(Arm, Row), u64>,
    marks: Vec<u64>,
    check_ns: u64,
}

/// Where a sample belongs.
#[derive(Clone, Copy)]
struct Place {
    phase: &'static str,
    block: u32,
    pos: u32,
}

impl Visit<'_> {
    fn gate_rows(&self) -> Vec<Row> {
        self.plan.rows.iter().filter_map(|row| row_named(row)).collect()
    }

    fn has(&self, arm: Arm, row: Row) -> bool {
        let variant = arm.variant(self.plan.threads);
        self.prepared.variants().contains(&variant) && self.prepared.has_row(variant, row)
    }

    fn software(&self) -> bool {
        self.stage.adapter.is_none_or(|adapter| adapter.software)
    }

    /// The launch of a measured run: check, time, check.
    fn timed(&mut self) -> Result<(), Error> {
        let mut arms: BTreeSet<(Arm, Row)> = BTreeSet::new();
        for series in &self.cell.series {
            let (row, members): (_, &[ArmPlan]) = match series {
                Series::Pair { row, a, b, .. } => (row, &[*a, *b]),
                Series::Single { row, arm, .. } => (row, &[*arm]),
            };
            if let Some(row) = row_named(row).filter(|row| matches!(row, Row::Resident | Row::OneShot)) {
                arms.extend(members.iter().map(|member| (member.arm, row)));
            }
        }
        self.first_call()?;
        self.check_all(&arms)?;
        for series in &self.cell.series {
            self.series(series)?;
        }
        self.check_all(&arms)
    }

    /// The very first call on a GPU, with whatever is still to be compiled or cached.
    fn first_call(&mut self) -> Result<(), Error> {
        let row = Row::Resident;
        if self.plan.null || self.software() || !self.has(Arm::Gpu, row) {
            return Ok(());
        }
        let place = Place { phase: "slot", block: 0, pos: 0 };
        match self.chunk(place, "cold_first_call", Arm::Gpu, row, 1) {
            Err(Stop::Broken(message)) => self.mark_broken(Arm::Gpu, row, message),
            Err(Stop::Fatal(error)) => return Err(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// The pilot: which rows there are, one comparison with the reference, and a few calls of everything.
    fn pilot(&mut self) -> Result<Vec<TimingRow>, Error> {
        let mut rows = Vec::new();
        let gate_rows = self.gate_rows();
        let cpu = if self.plan.null { [Arm::Simd, Arm::SimdAgain] } else { [Arm::Simd, Arm::Simd1t] };
        let threads = self.plan.threads;
        for row in &gate_rows {
            for arm in cpu {
                // With one thread there is one CPU arm; the second one of the null control is always there.
                if (arm != Arm::Simd1t || threads > 1) && self.has(arm, *row) {
                    self.check_all(&BTreeSet::from([(arm, *row)]))?;
                    self.pilot_calls(arm, *row)?;
                    rows.push(self.facts(arm, row.name(), *row, None));
                }
            }
        }
        if self.plan.null {
            return Ok(rows);
        }
        // A row that the kernel does not have at all is no row of the GPU either.
        for row in gate_rows.iter().filter(|row| rows.iter().any(|known| known.row == row.name())).collect::<Vec<_>>() {
            let reason = self.pilot_gpu(*row)?;
            rows.push(self.facts(Arm::Gpu, row.name(), *row, reason));
        }
        if !self.software() && self.has(Arm::Gpu, Row::Resident) {
            for row in [Row::KernelOnly, Row::Upload, Row::Download, Row::Floor] {
                if self.has(Arm::Gpu, row) {
                    self.pilot_calls(Arm::Gpu, row)?;
                    rows.push(self.facts(Arm::Gpu, row.name(), row, None));
                }
            }
            rows.push(self.facts(Arm::Gpu, "cold_first_call", Row::Resident, None));
        }
        Ok(rows)
    }

    /// The GPU arm in the pilot. Returns why it will not be timed.
    fn pilot_gpu(&mut self, row: Row) -> Result<Option<String>, Error> {
        let Some(adapter) = self.stage.adapter else { return Ok(Some("no adapter".into())) };
        if !self.has(Arm::Gpu, row) {
            return Ok(Some("no GPU version".into()));
        }
        if !adapter.software {
            self.check_all(&BTreeSet::from([(Arm::Gpu, row)]))?;
            self.pilot_calls(Arm::Gpu, row)?;
            return Ok(None);
        }
        let operations = self.prepared.work(row).operations;
        if operations > SOFTWARE_OPERATIONS {
            return Ok(Some(format!(
                "software adapter: not run, {operations:.1e} operations per call, at most {SOFTWARE_OPERATIONS:.0e} are tried"
            )));
        }
        // Correctness is all that a software adapter can show, so here every input is looked at.
        let inputs: Vec<u32> = (0..self.plan.ring).collect();
        self.check(Arm::Gpu, row, &inputs)?;
        Ok(Some("software adapter: checked, never timed".into()))
    }

    fn pilot_calls(&mut self, arm: Arm, row: Row) -> Result<(), Error> {
        if self.broken.contains(&(arm, row)) {
            return Ok(());
        }
        let (start, mut calls) = (self.stage.clock.now_ns(), 0);
        loop {
            let place = Place { phase: "pilot", block: 0, pos: 0 };
            match self.chunk(place, row.name(), arm, row, 1) {
                Ok(()) => {}
                Err(Stop::Broken(message)) => {
                    self.mark_broken(arm, row, message);
                    return Ok(());
                }
                Err(Stop::Fatal(error)) => return Err(error),
            }
            calls += 1;
            let spent = self.stage.clock.now_ns() - start;
            let enough = calls >= PILOT_CALLS && spent >= PILOT_NS;
            if enough || spent >= 20 * PILOT_NS || calls >= PILOT_CALLS_MAX {
                return Ok(());
            }
        }
    }

    fn facts(&self, arm: Arm, name: &str, row: Row, reason: Option<String>) -> TimingRow {
        let work = self.prepared.work(row);
        let gpu = arm == Arm::Gpu;
        let threads = if arm == Arm::Simd1t { 1 } else { self.plan.threads };
        let by_device = self.samples.iter().any(|sample| sample.arm == "gpu" && sample.row == name && sample.pos == 1);
        TimingRow {
            size: self.cell.size,
            context: self.cell.context.clone(),
            arm: arm.name().into(),
            row: name.into(),
            threads: u32::try_from(threads).ok().filter(|_| !gpu),
            method: reason.is_none().then(|| if by_device { "timestamps".into() } else { "host".into() }),
            upload_path: gpu.then(|| "write_buffer".into()),
            wait: gpu.then(|| "poll_wait".into()),
            up_bytes: if gpu { work.bytes_up } else { 0 },
            down_bytes: if gpu { work.bytes_down } else { 0 },
            touched_bytes: work.bytes_touched,
            operations: work.operations,
            calls_per_slot: None,
            slots: 0,
            median_ns: None,
            p25_ns: None,
            p75_ns: None,
            min_ns: None,
            max_ns: None,
            reason,
        }
    }

    fn check_all(&mut self, arms: &BTreeSet<(Arm, Row)>) -> Result<(), Error> {
        let inputs = self.cell.checks.clone();
        arms.iter().try_for_each(|(arm, row)| self.check(*arm, *row, &inputs))
    }

    /// Runs an arm on these inputs and compares each result with the reference.
    fn check(&mut self, arm: Arm, row: Row, inputs: &[u32]) -> Result<(), Error> {
        let variant = arm.variant(self.plan.threads);
        let start = self.stage.clock.now_ns();
        for input in inputs {
            if self.broken.contains(&(arm, row)) {
                break;
            }
            match self.prepared.run(variant, row, *input as usize).map_err(Stop::from) {
                Ok(_) => {}
                Err(Stop::Fatal(error)) => return Err(error),
                Err(Stop::Broken(message)) => {
                    self.mark_broken(arm, row, message);
                    break;
                }
            }
            let tolerance = self.plan.tolerance;
            match self.prepared.check(variant, row, *input as usize) {
                Err(mismatch) => self.mark_broken(arm, row, format!("input {input}: {mismatch}")),
                Ok(found) => {
                    let agreed = self.agreed(arm, row);
                    agreed.row.checks += 1;
                    agreed.row.compared += found.compared;
                    agreed.row.exact += found.exact;
                    agreed.row.max_error = agreed.row.max_error.max(found.max_error);
                    agreed.hash.update(format!("{input}:{};", found.checksum));
                    let digest = agreed.hash.clone().finalize();
                    agreed.row.checksum = crate::results::hex(&digest[..8]);
                    if found.max_error > tolerance {
                        let message =
                            format!("input {input}: largest difference {:e}, allowed {tolerance:e}", found.max_error);
                        self.mark_broken(arm, row, message);
                    }
                }
            }
        }
        self.check_ns += self.stage.clock.now_ns() - start;
        Ok(())
    }

    fn agreed(&mut self, arm: Arm, row: Row) -> &mut Agreed {
        self.agreement.entry((arm, row)).or_insert_with(|| Agreed {
            row: AgreementRow {
                size: self.cell.size,
                context: self.cell.context.clone(),
                arm: arm.name().into(),
                row: row.name().into(),
                launch: self.plan.launch,
                checks: 0,
                compared: 0,
                exact: 0,
                max_error: 0.0,
                tolerance: self.plan.tolerance,
                mismatch: None,
                checksum: String::new(),
            },
            hash: Sha256::new(),
        })
    }

    fn mark_broken(&mut self, arm: Arm, row: Row, message: String) {
        self.agreed(arm, row).row.mismatch.get_or_insert(message);
        self.broken.insert((arm, row));
    }

    fn series(&mut self, series: &Series) -> Result<(), Error> {
        let (row, arms): (_, Vec<Arm>) = match series {
            Series::Pair { row, a, b, .. } => (row, vec![a.arm, b.arm]),
            Series::Single { row, arm, .. } => (row, vec![arm.arm]),
        };
        let Some(row) = row_named(row) else { return Ok(()) };
        // A wrong result has no time.
        if arms.iter().any(|arm| self.broken.contains(&(*arm, row))) {
            return Ok(());
        }
        let ended = match series {
            Series::Pair { a, b, orders, .. } => self.pair(row, *a, *b, orders),
            Series::Single { arm, slots, .. } => self.single(row, *arm, *slots),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(Stop::Fatal(error)) => Err(error),
            // Only the device can fail in the middle of a call.
            Err(Stop::Broken(message)) => {
                self.mark_broken(Arm::Gpu, row, message);
                Ok(())
            }
        }
    }

    fn pair(&mut self, row: Row, a: ArmPlan, b: ArmPlan, orders: &[Order]) -> Result<(), Stop> {
        self.warm_up(row, a)?;
        self.warm_up(row, b)?;
        self.canaries(row, &[a.arm, b.arm], 0)?;
        for (block, order) in (0_u32..).zip(orders) {
            for (pos, first) in (0_u32..).zip(order.first_arm_at()) {
                let arm = if first { a } else { b };
                self.rewarm(row, arm, block, pos)?;
                self.chunk(Place { phase: "slot", block, pos }, row.name(), arm.arm, row, arm.calls)?;
            }
            self.canaries(row, &[a.arm, b.arm], block + 1)?;
        }
        Ok(())
    }

    /// Slots of one arm, one after the other. No other arm runs in between, so it stays as warm as it was.
    fn single(&mut self, row: Row, arm: ArmPlan, slots: u32) -> Result<(), Stop> {
        if matches!(row, Row::Resident | Row::OneShot) {
            self.warm_up(row, arm)?;
        } else {
            self.rewarm(row, arm, 0, 0)?;
        }
        self.canaries(row, &[arm.arm], 0)?;
        for slot in 0..slots {
            let place = Place { phase: "slot", block: slot / 4, pos: slot % 4 };
            self.chunk(place, row.name(), arm.arm, row, arm.calls)?;
        }
        self.canaries(row, &[arm.arm], slots / 4 + 1)
    }

    fn warm_up(&mut self, row: Row, arm: ArmPlan) -> Result<(), Stop> {
        let first = self.samples.len();
        loop {
            self.chunk(Place { phase: "warmup", block: 0, pos: 0 }, row.name(), arm.arm, row, arm.calls)?;
            let chunks: Vec<&Sample> = self.samples[first..].iter().collect();
            if warmup::is_warm(&chunks) || warmup::is_over(&chunks) {
                return Ok(());
            }
        }
    }

    /// Runs an arm for a while before its slot, so that both arms pay the same for being switched to.
    fn rewarm(&mut self, row: Row, arm: ArmPlan, block: u32, pos: u32) -> Result<(), Stop> {
        // Before its first call in this launch, an arm is expected to be as fast as the pilot found it.
        let expected_ns = self.plan.slot_ns / u64::from(arm.calls.max(1));
        let call_ns = self.last_call_ns.get(&(arm.arm, row)).copied().unwrap_or(expected_ns);
        let place = Place { phase: "rewarm", block, pos };
        let start = self.stage.clock.now_ns();
        if call_ns < LONG_CALL_NS || arm.arm == Arm::Gpu {
            // Whole calls; on a GPU also a long one, since nothing else is sure to bring its clock up.
            let calls = self.plan.rewarm_ns.div_ceil(call_ns.max(1)).clamp(1, 1 << 20);
            return self.chunk(place, row.name(), arm.arm, row, u32::try_from(calls).unwrap_or(1));
        }
        let mut runs = 0_u32;
        loop {
            self.run_canary(arm.arm);
            runs += 1;
            let spent = self.stage.clock.now_ns() - start;
            if spent >= self.plan.rewarm_ns || runs >= 1_000 {
                let each = spent / u64::from(runs);
                self.push(place, row.name(), arm.arm, start, [u64::from(runs), spent, each, each, each]);
                return Ok(());
            }
        }
    }

    fn run_canary(&self, arm: Arm) {
        if arm == Arm::Simd1t { self.stage.canary.one_core() } else { self.stage.canary.all_cores() }
    }

    /// Fixed work at the edge of a block.
    fn canaries(&mut self, row: Row, arms: &[Arm], block: u32) -> Result<(), Stop> {
        for arm in [Arm::Simd1t, Arm::Simd] {
            let mut times = Vec::new();
            let start = self.stage.clock.now_ns();
            let mut last = start;
            for _ in 0..CANARY_RUNS {
                self.run_canary(arm);
                let now = self.stage.clock.now_ns();
                times.push(now - last);
                last = now;
            }
            times.sort_unstable();
            let (calls, middle) = (u64::from(CANARY_RUNS), times[times.len() / 2]);
            let numbers = [calls, last - start, times[0], middle, times[times.len() - 1]];
            self.push(Place { phase: "canary", block, pos: 0 }, row.name(), arm, start, numbers);
        }
        // The kernel itself without transfers is the fixed dispatch of the GPU.
        let fixed = Row::KernelOnly;
        let short = self.last_call_ns.get(&(Arm::Gpu, row)).is_some_and(|ns| *ns < LONG_CALL_NS);
        if arms.contains(&Arm::Gpu) && self.has(Arm::Gpu, fixed) && short {
            self.chunk(Place { phase: "canary", block, pos: 0 }, row.name(), Arm::Gpu, fixed, CANARY_RUNS)?;
        }
        Ok(())
    }

    /// Times some calls in a row, each of them, on the next inputs of the ring.
    fn chunk(&mut self, place: Place, name: &str, arm: Arm, row: Row, calls: u32) -> Result<(), Stop> {
        let variant = arm.variant(self.plan.threads);
        let ring = self.plan.ring.max(1) as usize;
        let mut input = self.next_input.get(&(arm, row)).copied().unwrap_or(0);
        self.marks.clear();
        self.marks.reserve(calls as usize + 1);
        let mut device_ns = Vec::new();
        self.marks.push(self.stage.clock.now_ns());
        for _ in 0..calls {
            let on_device = self.prepared.run(variant, row, input)?;
            self.marks.push(self.stage.clock.now_ns());
            input = (input + 1) % ring;
            device_ns.extend(on_device);
        }
        self.next_input.insert((arm, row), input);
        let start = self.marks[0];
        let by_device = row == Row::KernelOnly && device_ns.len() == calls as usize;
        let mut times =
            if by_device { device_ns } else { self.marks.windows(2).map(|pair| pair[1] - pair[0]).collect() };
        let total: u64 = times.iter().sum();
        times.sort_unstable();
        let (middle, last) = (times.len() / 2, times.len() - 1);
        let median = if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2 };
        self.last_call_ns.insert((arm, row), median);
        // In the pilot, whose slots have no position, it tells who measured.
        let place = if place.phase == "pilot" && by_device { Place { pos: 1, ..place } } else { place };
        self.push(place, name, arm, start, [u64::from(calls), total, times[0], median, times[last]]);
        Ok(())
    }

    fn push(&mut self, place: Place, name: &str, arm: Arm, start: u64, numbers: [u64; 5]) {
        let [calls, total_ns, min_ns, median_ns, max_ns] = numbers;
        self.samples.push(Sample {
            launch: self.plan.launch,
            context: self.cell.context_index,
            size: self.cell.size,
            row: name.into(),
            arm: arm.name().into(),
            phase: place.phase.into(),
            block: place.block,
            pos: place.pos,
            t_start_ns: start,
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
            total_ns,
            min_ns,
            median_ns,
            max_ns,
        });
    }
}

/// The canary's median over a launch, for its state.
pub fn canary_median(samples: &[Sample], arm: Arm) -> Option<u64> {
    let runs = samples.iter().filter(|sample| sample.phase == "canary" && sample.arm == arm.name());
    let median = super::statistics::median(&runs.map(slot_ns).collect::<Vec<_>>())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time of a canary, far below 2^53 ns"
    )]
    Some(median.round() as u64)
}
