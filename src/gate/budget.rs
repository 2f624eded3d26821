//! How much of the plan fits into the time a size may take: blocks are lowered before launches.

use super::warmup;

/// What a pilot found an arm to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmCost {
    /// Median call.
    pub call_ns: u64,
}

impl ArmCost {
    /// Calls that make a slot of at least `slot_ns`.
    pub fn calls(self, slot_ns: u64) -> u32 {
        let calls = slot_ns.div_ceil(self.call_ns.max(1)).clamp(1, 1 << 20);
        u32::try_from(calls).unwrap_or(1)
    }

    fn slot_ns(self, slot_ns: u64) -> u64 {
        u64::from(self.calls(slot_ns)).saturating_mul(self.call_ns)
    }

    fn warm_up_ns(self) -> u64 {
        let enough = (u64::from(warmup::MIN_CALLS) * self.call_ns).max(warmup::MIN_NS);
        enough.min(warmup::MAX_NS.max(2 * self.call_ns))
    }

    fn rewarm_ns(self, rewarm_ns: u64) -> u64 {
        rewarm_ns.max(if self.call_ns < rewarm_ns { rewarm_ns + self.call_ns / 2 } else { 0 })
    }
}

/// What one launch costs for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Building inputs and comparing results.
    pub fixed_ns: u64,
    /// Pairs of arms, in blocks.
    pub pairs: Vec<[ArmCost; 2]>,
    /// Arms alone, with the full warm-up or without it.
    pub singles: Vec<(ArmCost, bool)>,
    /// Shortest slot.
    pub slot_ns: u64,
    /// Re-warming.
    pub rewarm_ns: u64,
}

impl Cost {
    /// Time of a launch with this many blocks for pairs and this many slots for arms alone.
    pub fn launch_ns(&self, blocks: u32, slots: u32) -> u64 {
        // The canary at the edges of blocks takes a few milliseconds.
        let edge_ns = 10_000_000;
        let pair = |arms: &[ArmCost; 2]| {
            let slot = |arm: &ArmCost| arm.slot_ns(self.slot_ns) + arm.rewarm_ns(self.rewarm_ns);
            let warm = arms.iter().map(|arm| arm.warm_up_ns()).sum::<u64>();
            let slots = arms.iter().map(slot).sum::<u64>() * u64::from(2 * blocks);
            warm + slots + edge_ns * u64::from(blocks + 1)
        };
        let single = |(arm, warm): &(ArmCost, bool)| {
            let before = if *warm { arm.warm_up_ns() } else { arm.rewarm_ns(self.rewarm_ns) };
            before + arm.slot_ns(self.slot_ns) * u64::from(slots) + 2 * edge_ns
        };
        self.fixed_ns + self.pairs.iter().map(pair).sum::<u64>() + self.singles.iter().map(single).sum::<u64>()
    }

    /// Launches and blocks that fit, for arms in pairs: blocks go down to 4 first, then launches to 5; what does not fit
    /// then is measured as far as it goes, down to one launch of two blocks, and cannot be decided.
    pub fn fit_pairs(&self, launches: u32, blocks: u32, budget_ns: u64) -> (u32, u32) {
        let fits = |launches: u32, blocks: u32| {
            u64::from(launches).saturating_mul(self.launch_ns(blocks, 2 * blocks)) <= budget_ns
        };
        let even = |from: u32, to: u32| (to..=from).rev().filter(|blocks| blocks.is_multiple_of(2));
        let fewer_blocks = even(blocks, blocks.min(4)).map(|blocks| (launches, blocks));
        let fewer_launches = (1..launches).rev().map(|launches| (launches, blocks.min(4)));
        let mut plans = fewer_blocks.chain(fewer_launches);
        plans.find(|(launches, blocks)| fits(*launches, *blocks)).unwrap_or((1, 2))
    }

    /// Launches and slots that fit, where nothing is paired: as many slots as a paired arm would have, over at most
    /// three launches, since luck with the layout is all that launches are there to sample.
    pub fn fit_singles(&self, launches: u32, blocks: u32, budget_ns: u64) -> (u32, u32) {
        let slots = 2 * launches * blocks;
        let fits =
            |launches: u32, slots: u32| u64::from(launches).saturating_mul(self.launch_ns(0, slots)) <= budget_ns;
        let whole = (1..=launches.min(3)).rev().map(|launches| (launches, slots.div_ceil(launches)));
        let fewer = (2..slots).rev().map(|slots| (1, slots));
        whole.chain(fewer).find(|(launches, slots)| fits(*launches, *slots)).unwrap_or((1, 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn cost(call_ns: u64) -> Cost {
        let arm = ArmCost { call_ns };
        Cost { fixed_ns: 0, pairs: vec![[arm, arm]], singles: vec![], slot_ns: 20 * MS, rewarm_ns: 50 * MS }
    }

    #[test]
    fn a_slot_is_at_least_as_long_as_asked() {
        assert_eq!(ArmCost { call_ns: 3 * MS }.calls(20 * MS), 7);
        assert_eq!(ArmCost { call_ns: 20 * MS }.calls(20 * MS), 1);
        assert_eq!(ArmCost { call_ns: 900 * MS }.calls(20 * MS), 1);
        assert_eq!(ArmCost { call_ns: 0 }.calls(20 * MS), 1 << 20);
    }

    #[test]
    fn the_full_plan_is_kept_where_it_fits() {
        assert_eq!(cost(MS).fit_pairs(8, 6, 120_000 * MS), (8, 6));
        assert_eq!(cost(MS).fit_singles(8, 6, 120_000 * MS), (3, 32));
    }

    #[test]
    fn blocks_are_lowered_before_launches() {
        let cost = cost(MS);
        let full = 8 * cost.launch_ns(6, 12);
        assert_eq!(cost.fit_pairs(8, 6, full - 1), (8, 4));
        assert_eq!(cost.fit_pairs(8, 6, 8 * cost.launch_ns(4, 8) - 1), (7, 4));
        assert_eq!(cost.fit_pairs(8, 6, 5 * cost.launch_ns(4, 8)), (5, 4));
        assert_eq!(cost.fit_pairs(8, 6, 5 * cost.launch_ns(4, 8) - 1), (4, 4));
    }

    #[test]
    fn what_cannot_fit_is_still_measured_once() {
        assert_eq!(cost(5_000 * MS).fit_pairs(8, 6, MS), (1, 2));
        assert_eq!(cost(5_000 * MS).fit_singles(8, 6, MS), (1, 2));
    }

    #[test]
    fn long_calls_are_warmed_for_5_s_or_two_calls() {
        assert_eq!(ArmCost { call_ns: MS }.warm_up_ns(), 500 * MS);
        assert_eq!(ArmCost { call_ns: 200 * MS }.warm_up_ns(), 1_000 * MS);
        assert_eq!(ArmCost { call_ns: 2_000 * MS }.warm_up_ns(), 5_000 * MS);
        assert_eq!(ArmCost { call_ns: 4_000 * MS }.warm_up_ns(), 8_000 * MS);
    }
}
