//! A run: a pilot that finds out what things cost, then the launches, then the verdict. Whoever starts a launch and
//! whoever keeps the result are given, so that tests run all of it without a process or a file.

use super::budget::{ArmCost, Cost};
use super::evaluate::{baseline, evaluate, slot_ns};
use super::launch::{CellReport, Event, IDLE_NS, PARTS};
use super::plan::{self, Arm, ArmPlan, CellPlan, LaunchPlan, Series};
use super::protocol::Protocol;
use super::statistics::median;
use crate::error::Error;
use crate::kernels::Row;
use crate::results::schema::{Mode, PlannedCell, ResultFile, Sample, TimingRow, Verdict};
use crate::units::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Launches at which `--extend` looks at the data.
const LOOKS: [u32; 3] = [8, 12, 16];
const MS: u64 = 1_000_000;
/// The row that belongs to a launch and to none of its cells.
const COLD_INIT: &str = "cold_init";

/// Starts launches.
pub trait Launcher {
    /// Follows a plan and hands on every event; ends early when `report` breaks or `stop` says so.
    ///
    /// # Errors
    /// What kept the launch from being finished, and what `report` returns.
    fn launch(
        &mut self,
        plan: &LaunchPlan,
        stop: &dyn Fn() -> bool,
        report: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error>;
}

/// Keeps what was measured and tells how far it is.
pub trait Keeper {
    /// Called after each finished cell: the new samples, and the result so far, which is valid as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    fn keep(&mut self, result: &mut ResultFile, new: &[Sample]) -> Result<(), Error>;

    /// What is going on: a phase, how much of it is done, and where it is. The units are those of the phase.
    fn progress(&mut self, phase: &str, done: u64, total: u64, detail: &str);
}

/// What is not in the protocol.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which device, as on the command line.
    pub device: String,
    /// Threads of the CPU arm.
    pub threads: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything planned was measured.
    Complete,
    /// It was asked to stop; what was finished is kept.
    Interrupted,
}

/// Where a cell stands: index of the context, and size.
type Key = (u32, u64);

/// Two arms of a row.
type Pair = (Row, ArmPlan, ArmPlan);

/// What the pilot made of a cell.
struct Schedule {
    launches: u32,
    /// Of pairs.
    blocks: u32,
    /// Of arms alone.
    slots: u32,
    /// Time of one launch.
    launch_ns: u64,
    /// Whether each launch compares every ring input, or one of them in turn after the first launch.
    all_checks: bool,
    pairs: Vec<Pair>,
    singles: Vec<(Row, ArmPlan)>,
}

struct Run<'a> {
    protocol: &'a Protocol,
    settings: &'a Settings,
    result: &'a mut ResultFile,
    samples: Vec<Sample>,
    /// How many of the samples the keeper has.
    kept: usize,
    keeper: &'a mut dyn Keeper,
    schedules: BTreeMap<Key, Schedule>,
    /// What an interrupted part of this run had finished: launch and cell. None of it is measured again.
    finished: BTreeSet<(u32, Key)>,
    done: u64,
    total: u64,
}

/// Measures. `result` has its header (run, protocol, code, machine) filled in and is kept up to date all the time; its
/// `run.complete` tells whether everything was measured. A run that was interrupted goes on with the result and the
/// samples it left, which the keeper has already: they stay as they are, and only what is missing is measured.
///
/// # Errors
/// What ended the run early; `result` then holds what was finished before.
pub fn measure(
    protocol: &Protocol,
    settings: &Settings,
    result: &mut ResultFile,
    before: Vec<Sample>,
    launcher: &mut dyn Launcher,
    keeper: &mut dyn Keeper,
    stop: &dyn Fn() -> bool,
) -> Result<Ended, Error> {
    let mut run = Run {
        protocol,
        settings,
        result,
        kept: before.len(),
        samples: before,
        keeper,
        schedules: BTreeMap::new(),
        finished: BTreeSet::new(),
        done: 0,
        total: 0,
    };
    run.take_up();
    run.result.run.complete = false;
    let ended = run.all(launcher, stop);
    run.result.run.complete = matches!(ended, Ok(Ended::Complete));
    run.keep()?;
    ended
}

impl Run<'_> {
    fn null(&self) -> bool {
        self.result.run.mode == Mode::Null
    }

    /// Finds out what was finished before, and what the pilot planned then.
    fn take_up(&mut self) {
        let index = |context: &Context| {
            let known = self.protocol.contexts.iter().position(|known| known.axes == *context);
            known.and_then(|at| u32::try_from(at).ok())
        };
        for planned in &self.result.planned {
            let Some(key) = index(&planned.context).map(|context| (context, planned.size)) else { continue };
            let of_pilot = |sample: &&Sample| (sample.launch, sample.context, sample.size) == (0, key.0, key.1);
            let pilot: Vec<Sample> = self.samples.iter().filter(of_pilot).cloned().collect();
            let (cost, pairs, singles) = self.costs(&pilot);
            let PlannedCell { launches, blocks, slots, every_input: all_checks, .. } = *planned;
            // Building inputs and comparing results was in the plan; what is left to show is progress.
            let launch_ns = cost.launch_ns(blocks, slots);
            self.finished.insert((0, key));
            let schedule = Schedule { launches, blocks, slots, launch_ns, all_checks, pairs, singles };
            self.schedules.insert(key, schedule);
        }
        // Every visit of a launch leaves samples, or, where nothing was right, its comparisons. The time to open the
        // device is of no visit.
        let samples = self.samples.iter().filter(|sample| sample.launch > 0 && sample.row != COLD_INIT);
        self.finished.extend(samples.map(|sample| (sample.launch, (sample.context, sample.size))));
        let checks = self.result.agreement.iter().filter(|check| check.launch > 0);
        let checks = checks.filter_map(|check| Some((check.launch, (index(&check.context)?, check.size))));
        self.finished.extend(checks);
    }

    /// Whether a launch has to visit a cell.
    fn open(&self, launch: u32, key: Key, schedule: &Schedule) -> bool {
        visited(schedule, launch, self.protocol.plan.launches) && !self.finished.contains(&(launch, key))
    }

    fn all(&mut self, launcher: &mut dyn Launcher, stop: &dyn Fn() -> bool) -> Result<Ended, Error> {
        let cells = self.protocol.cells();
        self.total = cells.len() as u64;
        self.done = self.finished.iter().filter(|(launch, _)| *launch == 0).count() as u64;
        let seen = self.finished.last().map_or(0, |(launch, _)| *launch);
        let pilot = self.plan(0, cells.iter().map(|(context, size)| self.pilot_cell(*context, *size)).collect());
        if !pilot.cells.is_empty() && self.one(&pilot, launcher, stop)?.is_break() {
            return Ok(Ended::Interrupted);
        }
        // A debug build shows that results are right, and never how long they take.
        if self.result.code.profile != "release" {
            return Ok(Ended::Complete);
        }
        let planned = self.protocol.plan.launches;
        let looks = if self.result.run.looks > 1 { LOOKS.to_vec() } else { vec![planned] };
        let mut first = 1;
        for last in looks {
            let cells = |launch: u32| {
                let open = self.schedules.iter().filter(|(key, cell)| self.open(launch, **key, cell));
                open.map(|(_, cell)| cell.launch_ns / MS).sum::<u64>()
            };
            self.total = (first..=last).map(cells).sum();
            self.done = 0;
            for launch in first..=last {
                let plan = self.launch_plan(launch);
                if !plan.cells.is_empty() && self.one(&plan, launcher, stop)?.is_break() {
                    return Ok(Ended::Interrupted);
                }
            }
            first = last + 1;
            // This look was taken before the interruption; on what has been measured since it would be another one.
            if seen > last {
                continue;
            }
            self.result.run.complete = true;
            evaluate(self.result, &self.samples);
            self.result.run.complete = false;
            let undecided = |verdict| matches!(verdict, Verdict::Inconclusive);
            if !self.result.gates.iter().any(|gate| gate.decides && undecided(gate.verdict)) {
                break;
            }
        }
        Ok(Ended::Complete)
    }

    fn plan(&self, launch: u32, cells: Vec<CellPlan>) -> LaunchPlan {
        let mut generator = plan::generator(self.result.run.seed, launch);
        // Shuffled with those that are finished: what is left is visited in the order it always had.
        let mut cells = plan::shuffled(cells, &mut generator);
        cells.retain(|cell| !self.finished.contains(&(launch, (cell.context_index, cell.size))));
        let rows = if self.null() { vec![self.protocol.gate_row] } else { vec![Row::Resident, Row::OneShot] };
        LaunchPlan {
            kernel: self.protocol.kernel.clone(),
            launch,
            null: self.null(),
            rows: rows.into_iter().map(|row| row.name().to_owned()).collect(),
            device: self.settings.device.clone(),
            threads: self.settings.threads,
            seed: self.protocol.inputs.seed,
            distribution: self.protocol.inputs.distribution.clone(),
            ring: self.protocol.inputs.ring,
            tolerance: self.protocol.tolerance,
            slot_ns: self.protocol.plan.slot_ms * MS,
            rewarm_ns: self.protocol.plan.rewarm_ms * MS,
            cells,
        }
    }

    fn pilot_cell(&self, context: usize, size: u64) -> CellPlan {
        // A debug build ends after the pilot, so there the pilot looks at every input.
        let checks = if self.result.code.profile == "release" { 1 } else { self.protocol.inputs.ring };
        self.cell(context, size, (0..checks).collect(), Vec::new())
    }

    fn cell(&self, context: usize, size: u64, checks: Vec<u32>, series: Vec<Series>) -> CellPlan {
        CellPlan {
            context_index: u32::try_from(context).unwrap_or(u32::MAX),
            context: self.protocol.contexts[context].axes.clone(),
            size,
            checks,
            series,
        }
    }

    fn launch_plan(&self, launch: u32) -> LaunchPlan {
        let planned = self.protocol.plan.launches;
        let mut generator = plan::generator(self.result.run.seed.rotate_left(17), launch);
        let ring = self.protocol.inputs.ring;
        let mut cells = Vec::new();
        for (context, size) in self.protocol.cells() {
            let key = (u32::try_from(context).unwrap_or(u32::MAX), size);
            let Some(schedule) = self.schedules.get(&key).filter(|cell| visited(cell, launch, planned)) else {
                continue;
            };
            let checks = if schedule.all_checks || launch == 1 { (0..ring).collect() } else { vec![launch % ring] };
            let pairs = schedule.pairs.iter().map(|(row, a, b)| Series::Pair {
                row: row.name().into(),
                a: *a,
                b: *b,
                orders: plan::orders(schedule.blocks, &mut generator),
            });
            let mut series: Vec<Series> = pairs.collect();
            series.extend(schedule.singles.iter().map(|(row, arm)| Series::Single {
                row: row.name().into(),
                arm: *arm,
                slots: schedule.slots,
            }));
            cells.push(self.cell(context, size, checks, series));
        }
        self.plan(launch, cells)
    }

    /// One launch, whose cells are kept as they come.
    fn one(
        &mut self,
        plan: &LaunchPlan,
        launcher: &mut dyn Launcher,
        stop: &dyn Fn() -> bool,
    ) -> Result<ControlFlow<()>, Error> {
        let phase = if plan.launch == 0 { "pilot".to_owned() } else { format!("launch {}", plan.launch) };
        // Where this process keeps its state: it is brought up to date as long as the process lives.
        let mut place = None;
        launcher.launch(plan, stop, &mut |event| {
            match event {
                Event::Ready { adapter, init_ns } => {
                    let name = |adapter: Option<&crate::machine::Adapter>| {
                        adapter.map_or_else(
                            || "none".into(),
                            |adapter| format!("{} ({})", adapter.name, adapter.driver_info),
                        )
                    };
                    let (expected, found) = (name(self.result.machine.adapter.as_ref()), name(adapter.as_deref()));
                    if !plan.null && expected != found {
                        return Err(Error::argument("adapter, which must not change in a run", expected, found));
                    }
                    self.opened(plan.launch, init_ns);
                }
                Event::Step(detail) => self.keeper.progress(&phase, self.done, self.total, &detail),
                Event::Cell(report) => {
                    self.finished(plan.launch, *report)?;
                    self.keeper.progress(&phase, self.done, self.total, "");
                }
                Event::State(state) | Event::Done(state) if plan.launch > 0 => {
                    let states = &mut self.result.state;
                    match place.and_then(|at: usize| states.get_mut(at)) {
                        Some(known) => *known = *state,
                        None => {
                            place = Some(states.len());
                            states.push(*state);
                        }
                    }
                }
                Event::State(_) | Event::Done(_) => {}
                Event::Failed(message) => {
                    return Err(Error::argument(phase.clone(), "a launch that ends", message));
                }
            }
            Ok(if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    /// The time to open the device: a sample of the first cell, since it belongs to none.
    fn opened(&mut self, launch: u32, init_ns: Option<u64>) {
        let gpu = self.result.machine.adapter.as_ref().is_some_and(|adapter| !adapter.software);
        let (Some(ns), Some((context, size)), true) = (init_ns, self.protocol.cells().first().copied(), gpu) else {
            return;
        };
        if launch == 0 || self.null() {
            return;
        }
        self.samples.push(Sample {
            launch,
            context: u32::try_from(context).unwrap_or(u32::MAX),
            size,
            row: COLD_INIT.into(),
            arm: Arm::Gpu.name().into(),
            phase: "slot".into(),
            // A launch that was interrupted opens the device once more.
            block: u32::try_from(self.result.run.resumed.len()).unwrap_or(u32::MAX),
            calls: 1,
            total_ns: ns,
            min_ns: ns,
            median_ns: ns,
            max_ns: ns,
            ..Sample::default()
        });
    }

    /// The row of those samples, once the pilot has described that cell.
    fn cold_init(&mut self, report: &CellReport) {
        let first = self.protocol.cells().first().copied();
        let here =
            first.is_some_and(|(context, size)| (context as u64, size) == (report.context_index.into(), report.size));
        let like = report.rows.iter().find(|row| row.row == "cold_first_call");
        self.result.rows.extend(like.filter(|_| here).map(|row| TimingRow {
            row: COLD_INIT.into(),
            up_bytes: 0,
            down_bytes: 0,
            touched_bytes: 0,
            operations: 0.0,
            ..row.clone()
        }));
    }

    fn finished(&mut self, launch: u32, report: CellReport) -> Result<(), Error> {
        let key = (report.context_index, report.size);
        if launch == 0 {
            self.result.rows.extend(report.rows.iter().cloned());
            self.cold_init(&report);
            let schedule = self.schedule(&report);
            self.result.planned.push(PlannedCell {
                size: report.size,
                context: self.protocol.contexts[report.context_index as usize].axes.clone(),
                launches: schedule.launches,
                blocks: schedule.blocks,
                slots: schedule.slots,
                every_input: schedule.all_checks,
            });
            self.schedules.insert(key, schedule);
            self.done += 1;
        } else if let Some(schedule) = self.schedules.get(&key) {
            self.done += schedule.launch_ns / MS;
        }
        self.result.agreement.extend(report.agreement);
        self.samples.extend(report.samples);
        let contexts = &self.result.protocol.contexts;
        let context = |context: &Context| contexts.iter().position(|known| known == context);
        let order = |row: &TimingRow| {
            let row_order =
                ["resident", "one_shot", "kernel_only", "upload", "download", "floor", "e2e_fresh", "idle_start"];
            let place = row_order.iter().position(|name| *name == row.row).unwrap_or(row_order.len());
            let arm = Arm::ALL.iter().position(|arm| arm.name() == row.arm);
            (context(&row.context), row.size, place, arm)
        };
        self.result.rows.sort_by_key(order);
        self.result.planned.sort_by_key(|planned| (context(&planned.context), planned.size));
        self.result
            .agreement
            .sort_by_key(|row| (context(&row.context), row.size, row.row.clone(), row.arm.clone(), row.launch));
        self.keep()
    }

    fn keep(&mut self) -> Result<(), Error> {
        evaluate(self.result, &self.samples);
        let new = std::mem::replace(&mut self.kept, self.samples.len());
        self.keeper.keep(self.result, &self.samples[new..])
    }

    /// What is to be timed at a cell and what a launch costs without what comes before and after timing, from the samples
    /// of the pilot and nothing else: it comes out the same whenever it is asked for.
    fn costs(&self, pilot: &[Sample]) -> (Cost, Vec<Pair>, Vec<(Row, ArmPlan)>) {
        let plan = &self.protocol.plan;
        let (slot_ns_, rewarm_ns) = (plan.slot_ms * MS, plan.rewarm_ms * MS);
        let call = |row: Row, arm: Arm| -> Option<ArmCost> {
            let of = |sample: &&Sample| sample.phase == "pilot" && sample.row == row.name() && sample.arm == arm.name();
            let calls: Vec<f64> = pilot.iter().filter(of).map(slot_ns).collect();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, far below 2^53 ns")]
            median(&calls).map(|ns| ArmCost { call_ns: ns as u64 })
        };
        let plan_of = |arm: Arm, cost: ArmCost| ArmPlan { arm, calls: cost.calls(slot_ns_) };
        let mut cost = Cost { fixed_ns: 0, pairs: Vec::new(), singles: Vec::new(), slot_ns: slot_ns_, rewarm_ns };
        let (mut pairs, mut singles) = (Vec::new(), Vec::new());
        let mut alone = |cost: &mut Cost, row: Row, arm: Arm, warm: bool| {
            if let Some(found) = call(row, arm) {
                singles.push((row, plan_of(arm, found)));
                cost.singles.push((found, warm));
            }
        };
        for row in [Row::Resident, Row::OneShot] {
            let of_row: Vec<&Sample> = pilot.iter().filter(|sample| sample.row == row.name()).collect();
            let best = if baseline(&of_row) == Arm::Simd1t.name() { Arm::Simd1t } else { Arm::Simd };
            let (first, second) = if self.null() { (Arm::Simd, Arm::SimdAgain) } else { (best, Arm::Gpu) };
            if let (Some(a), Some(b)) = (call(row, first), call(row, second)) {
                pairs.push((row, plan_of(first, a), plan_of(second, b)));
                cost.pairs.push([a, b]);
                if !self.null() {
                    let other = if best == Arm::Simd { Arm::Simd1t } else { Arm::Simd };
                    alone(&mut cost, row, other, true);
                }
            } else if !self.null() {
                alone(&mut cost, row, Arm::Simd, true);
                alone(&mut cost, row, Arm::Simd1t, true);
            }
        }
        for row in PARTS {
            alone(&mut cost, row, Arm::Gpu, false);
        }
        (cost, pairs, singles)
    }

    /// How often and how long, from what the pilot found.
    fn schedule(&self, report: &CellReport) -> Schedule {
        let plan = &self.protocol.plan;
        let (mut cost, pairs, singles) = self.costs(&report.samples);
        let paired = !pairs.is_empty();
        let budget_ns = self.result.protocol.max_seconds_per_size.saturating_mul(1_000 * MS);
        // Comparing every ring input is dear where the reference is: then only the first launch does it, and the others
        // take one input in turn. What was compared is recorded.
        let ring = u64::from(self.protocol.inputs.ring);
        let all_checks = 2 * ring * report.check_ns <= budget_ns / 4 / u64::from(plan.launches);
        let per_launch = if all_checks { ring } else { 1 };
        let idle_ns = if report.rows.iter().any(|row| row.row == "idle_start") { IDLE_NS } else { 0 };
        cost.fixed_ns = report.prepare_ns + 2 * per_launch * report.check_ns + idle_ns;
        let (launches, blocks, slots) = if paired {
            let (launches, blocks) = cost.fit_pairs(plan.launches, plan.blocks, budget_ns);
            (launches, blocks, 2 * blocks)
        } else {
            let (launches, slots) = cost.fit_singles(plan.launches, plan.blocks, budget_ns);
            (launches, 0, slots)
        };
        Schedule { launches, blocks, slots, launch_ns: cost.launch_ns(blocks, slots), all_checks, pairs, singles }
    }
}

/// Whether a launch visits a cell. A further look visits all that had their full number of launches.
fn visited(cell: &Schedule, launch: u32, planned: u32) -> bool {
    launch <= cell.launches || (launch > planned && cell.launches == planned)
}
