//! Slots of a cell: warming up, re-warming, blocks of two arms, arms alone, canaries. How a visit times; what it visits
//! and whether results are right is its parent's.

use super::Visit;
use crate::error::Error;
use crate::gate::evaluate::slot_ns;
use crate::gate::plan::{Arm, ArmPlan, Order, Series, row_named};
use crate::gate::warmup;
use crate::kernels::Row;
use crate::results::schema::Sample;

/// A call longer than this is not repeated to re-warm a CPU arm; the canary is run instead.
const LONG_CALL_NS: u64 = 50_000_000;
/// Runs of the canary that make one sample.
const CANARY_RUNS: u32 = 5;

/// How a series can end early.
pub(super) enum Stop {
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

/// Where a sample belongs.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) phase: &'static str,
    pub(super) block: u32,
    pub(super) pos: u32,
}

impl Visit<'_> {
    pub(super) fn series(&mut self, series: &Series) -> Result<(), Error> {
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
    pub(super) fn chunk(&mut self, place: Place, name: &str, arm: Arm, row: Row, calls: u32) -> Result<(), Stop> {
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

    pub(super) fn push(&mut self, place: Place, name: &str, arm: Arm, start: u64, numbers: [u64; 5]) {
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
    let median = crate::gate::statistics::median(&runs.map(slot_ns).collect::<Vec<_>>())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time of a canary, far below 2^53 ns"
    )]
    Some(median.round() as u64)
}
