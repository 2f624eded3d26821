//! One launch: both arms in one process, following a [`LaunchPlan`].
//!
//! For each cell: inputs are built, every arm's results are compared with the reference, arms are warmed, slots are
//! timed, results are compared once more. The clock, the canary and the kernel are given, so that tests script them.

mod timing;

pub use timing::canary_median;

use super::canary::Canary;
use super::clock::Clock;
use super::evaluate::NO_GPU_VERSION;
use super::plan::{Arm, ArmPlan, CellPlan, LaunchPlan, Series, row_named};
use crate::error::Error;
use crate::kernels::{Case, Kernel, Platform, Prepared, Row};
use crate::results::schema::{Adapter, AgreementRow, LaunchState, Sample, TimingRow};
use crate::units::in_words;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use timing::{Place, Stop};

/// A software adapter is asked for at most this many operations per call. It runs on the CPU, and slowly; larger cases
/// would take minutes to show nothing new.
pub const SOFTWARE_OPERATIONS: f64 = 2e9;
/// Calls of a pilot: at least so many, unless they take long.
const PILOT_CALLS: u32 = 3;
/// Time after which a pilot stops repeating a call.
const PILOT_NS: u64 = 100_000_000;
/// Calls after which it stops in any case: each is a sample in the file.
const PILOT_CALLS_MAX: u32 = 100;
/// Rows of the GPU that are shown beside the verdict and never judged.
pub const PARTS: [Row; 5] = [Row::KernelOnly, Row::Upload, Row::Download, Row::Floor, Row::E2eFresh];
/// How long everything rests before the call of `idle_start`: about what passes between two commands of a person.
pub const IDLE_NS: u64 = 500_000_000;

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
    /// The machine's state from the start of the launch to now: before each cell is reported, so that it is not lost with
    /// a launch that does not come to its end.
    State(Box<LaunchState>),
    /// A cell is finished.
    Cell(Box<CellReport>),
    /// All cells are finished: the state over the whole launch.
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

/// The open device, as far as a launch asks it about itself. Work goes to it through the kernel only.
pub trait OpenDevice {
    /// What it is.
    fn adapter(&self) -> &Adapter;
    /// How bytes go up, in the word of results.
    fn upload_path(&self) -> &str;
    /// How the host waits for it, in the word of results.
    fn wait_strategy(&self) -> &str;
    /// Nanoseconds spent so far turning WGSL into pipelines.
    fn compile_ns(&self) -> u64;
    /// Has pipelines compiled again by whoever needs one next.
    fn forget_pipelines(&self);
}

/// Where a launch takes place.
pub struct Stage<'a> {
    /// The kernel.
    pub kernel: &'a dyn Kernel,
    /// Level, threads, device.
    pub platform: &'a Platform,
    /// The platform's device.
    pub device: Option<&'a dyn OpenDevice>,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// Fixed work.
    pub canary: &'a dyn Canary,
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

/// A cell in words: `dim 384, k 10, queries 256, size 100000`.
pub fn describe(cell: &CellPlan) -> String {
    format!("{}, size {}", in_words(&cell.context), cell.size)
}

fn visit(plan: &LaunchPlan, cell: &CellPlan, stage: &Stage<'_>) -> Result<CellReport, Error> {
    let case = Case {
        size: cell.size,
        context: cell.context.clone(),
        seed: plan.seed,
        ring: plan.ring as usize,
        distribution: plan.distribution.clone(),
    };
    let gpu = stage.device.filter(|device| !device.adapter().software);
    // Every cell compiles what it needs, whichever cells came before it in this process.
    if let Some(gpu) = gpu {
        gpu.forget_pipelines();
    }
    let compiled_ns = gpu.map_or(0, OpenDevice::compile_ns);
    let before = stage.clock.now_ns();
    let prepared = stage.kernel.prepare(&case, stage.platform)?;
    let prepare_ns = stage.clock.now_ns() - before;
    let mut visit = Visit {
        plan,
        cell,
        stage,
        gpu,
        prepared,
        started_ns: before,
        compiled_ns,
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
    /// The device, unless it is none or a software adapter: no time of anything else is ever taken.
    gpu: Option<&'a dyn OpenDevice>,
    prepared: Box<dyn Prepared>,
    /// When the inputs began to be built, and what the device had spent on pipelines before.
    started_ns: u64,
    compiled_ns: u64,
    samples: Vec<Sample>,
    agreement: BTreeMap<(Arm, Row), Agreed>,
    broken: BTreeSet<(Arm, Row)>,
    next_input: BTreeMap<(Arm, Row), usize>,
    last_call_ns: BTreeMap<(Arm, Row), u64>,
    marks: Vec<u64>,
    check_ns: u64,
}

impl Visit<'_> {
    fn gate_rows(&self) -> Vec<Row> {
        self.plan.rows.iter().filter_map(|row| row_named(row)).collect()
    }

    fn has(&self, arm: Arm, row: Row) -> bool {
        let variant = arm.variant(self.plan.threads);
        self.prepared.variants().contains(&variant) && self.prepared.has_row(variant, row)
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
        // The very first call on a GPU, with whatever is still to be compiled or cached.
        self.one_call("cold_first_call")?;
        self.pipelines();
        self.check_all(&arms)?;
        for series in &self.cell.series {
            self.series(series)?;
        }
        if self.shows(Row::Resident) {
            self.stage.clock.sleep_ns(IDLE_NS);
            self.one_call("idle_start")?;
        }
        self.check_all(&arms)
    }

    /// Whether this row of the GPU is timed: there is one, and its results are right so far.
    fn shows(&self, row: Row) -> bool {
        let there = !self.plan.null && self.gpu.is_some() && self.has(Arm::Gpu, row);
        there && !self.broken.contains(&(Arm::Gpu, row))
    }

    /// One call on the GPU as a row of its own, from what has just happened to it.
    fn one_call(&mut self, name: &str) -> Result<(), Error> {
        let row = Row::Resident;
        if !self.shows(row) {
            return Ok(());
        }
        let place = Place { phase: "slot", block: 0, pos: 0 };
        match self.chunk(place, name, Arm::Gpu, row, 1) {
            Err(Stop::Broken(message)) => self.mark_broken(Arm::Gpu, row, message),
            Err(Stop::Fatal(error)) => return Err(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// What it took to turn the WGSL of this cell into pipelines.
    fn pipelines(&mut self) {
        let Some(gpu) = self.gpu.filter(|_| self.shows(Row::Resident)) else { return };
        let ns = gpu.compile_ns() - self.compiled_ns;
        // Nothing compiled is no time of compiling.
        if ns > 0 {
            let place = Place { phase: "slot", block: 0, pos: 0 };
            self.push(place, "cold_pipeline", Arm::Gpu, self.started_ns, [1, ns, ns, ns, ns]);
        }
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
        if self.gpu.is_some() && self.has(Arm::Gpu, Row::Resident) {
            for row in PARTS {
                if self.has(Arm::Gpu, row) {
                    self.pilot_calls(Arm::Gpu, row)?;
                    rows.push(self.facts(Arm::Gpu, row.name(), row, None));
                }
            }
            for name in ["idle_start", "cold_first_call"] {
                rows.push(self.facts(Arm::Gpu, name, Row::Resident, None));
            }
            let call = self.facts(Arm::Gpu, "cold_pipeline", Row::Resident, None);
            rows.push(TimingRow { up_bytes: 0, down_bytes: 0, touched_bytes: 0, operations: 0.0, ..call });
        }
        Ok(rows)
    }

    /// The GPU arm in the pilot. Returns why it will not be timed.
    fn pilot_gpu(&mut self, row: Row) -> Result<Option<String>, Error> {
        let Some(adapter) = self.stage.device.map(OpenDevice::adapter) else { return Ok(Some("no adapter".into())) };
        if !self.has(Arm::Gpu, row) {
            let why = self.prepared.no_gpu().map(|why| format!("{NO_GPU_VERSION}{why}"));
            return Ok(Some(why.unwrap_or_else(|| "no GPU version".into())));
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
        let device = self.stage.device.filter(|_| gpu);
        let threads = if arm == Arm::Simd1t { 1 } else { self.plan.threads };
        let by_device = self.samples.iter().any(|sample| sample.arm == "gpu" && sample.row == name && sample.pos == 1);
        TimingRow {
            size: self.cell.size,
            context: self.cell.context.clone(),
            arm: arm.name().into(),
            row: name.into(),
            threads: u32::try_from(threads).ok().filter(|_| !gpu),
            method: reason.is_none().then(|| if by_device { "timestamps".into() } else { "host".into() }),
            upload_path: device.map(|device| device.upload_path().into()),
            wait: device.map(|device| device.wait_strategy().into()),
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
}
