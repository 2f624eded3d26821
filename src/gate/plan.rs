//! What a launch will do, in which order: from a seed, fixed before the first sample.
//!
//! A plan is data: the parent writes it as JSON to the process that follows it, and tests follow it on a scripted clock.

use crate::kernels::{Row, Variant};
use crate::units::Context;
use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Who is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Our SIMD path on all threads.
    Simd,
    /// The same on one thread.
    #[serde(rename = "simd_1t")]
    Simd1t,
    /// The WGSL path.
    Gpu,
    /// The SIMD path on all threads once more: the second arm of the null control.
    SimdAgain,
}

impl Arm {
    /// All arms, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Simd, Self::Simd1t, Self::Gpu, Self::SimdAgain];

    /// The name in samples and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simd => "simd",
            Self::Simd1t => "simd_1t",
            Self::Gpu => "gpu",
            Self::SimdAgain => "simd_again",
        }
    }

    /// What to ask a prepared case for, when all threads are this many.
    pub fn variant(self, threads: usize) -> Variant {
        match self {
            Self::Simd | Self::SimdAgain => Variant::Simd { threads },
            Self::Simd1t => Variant::Simd { threads: 1 },
            Self::Gpu => Variant::Gpu,
        }
    }
}

/// A row by its name in results.
pub fn row_named(name: &str) -> Option<Row> {
    Row::ALL.into_iter().find(|row| row.name() == name)
}

/// The order of the four slots of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Order {
    /// First arm outside.
    Abba,
    /// Second arm outside.
    Baab,
}

impl Order {
    /// For each of the four positions, whether the first arm has it.
    pub fn first_arm_at(self) -> [bool; 4] {
        match self {
            Self::Abba => [true, false, false, true],
            Self::Baab => [false, true, true, false],
        }
    }
}

/// An arm of a series and the number of calls in each of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// Who.
    pub arm: Arm,
    /// Calls per slot, at least 1.
    pub calls: u32,
}

/// Slots that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// Two arms in blocks of four slots.
    Pair {
        /// Row, by name.
        row: String,
        /// The first arm: the baseline.
        a: ArmPlan,
        /// The second arm.
        b: ArmPlan,
        /// One entry per block, exactly half of each kind.
        orders: Vec<Order>,
    },
    /// One arm alone, slot after slot: what is shown but not judged.
    Single {
        /// Row, by name.
        row: String,
        /// The arm.
        arm: ArmPlan,
        /// How many slots.
        slots: u32,
    },
}

/// One size of one context in one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPlan {
    /// Index of the context in the protocol.
    pub context_index: u32,
    /// The context.
    pub context: Context,
    /// The size.
    pub size: u64,
    /// Ring inputs whose results are compared with the reference, before timing and after it.
    pub checks: Vec<u32>,
    /// What to time, in this order. Empty in the pilot, which times a few calls of everything.
    pub series: Vec<Series>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The kernel's id.
    pub kernel: String,
    /// Its number; 0 is the pilot.
    pub launch: u32,
    /// Whether the CPU arm is measured against itself: then no device is opened.
    pub null: bool,
    /// The rows that get a verdict, by name.
    pub rows: Vec<String>,
    /// Which device, as on the command line.
    pub device: String,
    /// Threads of the CPU arm.
    pub threads: usize,
    /// Seed of the inputs.
    pub seed: u64,
    /// Distribution of the inputs.
    pub distribution: String,
    /// How many inputs the calls rotate through.
    pub ring: u32,
    /// Largest difference from the reference that counts as agreement.
    pub tolerance: f64,
    /// Shortest slot.
    pub slot_ns: u64,
    /// Re-warming before a slot.
    pub rewarm_ns: u64,
    /// What to visit, in this order.
    pub cells: Vec<CellPlan>,
}

/// The generator of everything random in one launch of a run.
pub fn generator(seed: u64, launch: u32) -> Xoshiro256PlusPlus {
    // Launches must differ by more than a small number: the generator's own expansion mixes the seed.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(launch) << 40))
}

/// The orders of `blocks` blocks (an even number): exactly half of each kind, shuffled.
pub fn orders(blocks: u32, generator: &mut Xoshiro256PlusPlus) -> Vec<Order> {
    debug_assert!(blocks.is_multiple_of(2), "an odd number of blocks would favour one arm");
    let mut orders: Vec<Order> =
        (0..blocks).map(|block| if block % 2 == 0 { Order::Abba } else { Order::Baab }).collect();
    orders.shuffle(generator);
    orders
}

/// The cells in random order.
pub fn shuffled<T>(mut cells: Vec<T>, generator: &mut Xoshiro256PlusPlus) -> Vec<T> {
    cells.shuffle(generator);
    cells
}

/// Bytes by which a launch shifts its environment and its heap, so that luck with the layout is sampled, not frozen.
pub fn padding(generator: &mut Xoshiro256PlusPlus) -> usize {
    generator.random_range(0..4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_half_of_the_blocks_start_with_either_arm() {
        for seed in 0..100 {
            let orders = orders(6, &mut generator(seed, 1));
            assert_eq!(orders.iter().filter(|order| **order == Order::Abba).count(), 3, "seed {seed}");
        }
    }

    #[test]
    fn each_arm_has_two_slots_of_a_block_with_the_same_mean_position() {
        for order in [Order::Abba, Order::Baab] {
            let first: Vec<usize> = (0..4).filter(|position| order.first_arm_at()[*position]).collect();
            assert_eq!((first.len(), first.iter().sum::<usize>()), (2, 3));
        }
    }

    #[test]
    fn a_seed_gives_the_same_plan_and_launches_differ() {
        let plan = |seed, launch| {
            let mut generator = generator(seed, launch);
            (orders(20, &mut generator), shuffled((0..20).collect::<Vec<u32>>(), &mut generator))
        };
        assert_eq!(plan(7, 1), plan(7, 1));
        assert_ne!(plan(7, 1), plan(7, 2));
        assert_ne!(plan(7, 1), plan(8, 1));
    }

    #[test]
    fn names_of_arms_are_those_that_serde_writes() {
        for arm in Arm::ALL {
            assert_eq!(serde_json::to_string(&arm).unwrap(), format!("\"{}\"", arm.name()));
        }
        assert_eq!(row_named("one_shot"), Some(Row::OneShot));
        assert_eq!(row_named("gate"), None);
    }
}
