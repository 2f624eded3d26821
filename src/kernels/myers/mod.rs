//! Edit distance: the least number of insertions, deletions and substitutions of single symbols that turn one string into
//! another (Levenshtein), exact, by bit-parallel dynamic programming.
//!
//! What a symbol is, [`Texts`] decides: bytes, Unicode code points, grapheme clusters. Symbols are equal or not, nothing
//! else; all alphabets take the same paths.
//!
//! # Cutoff
//! With a cutoff k, distances up to and including k are exact, and [`BEYOND`] stands for all above: no number that could be
//! a distance, so that "more than k" and "k + 1" are not taken for each other. A cutoff never changes a distance that it
//! lets through.
//!
//! # Sources
//! G. Myers, *A fast bit-vector algorithm for approximate string matching based on dynamic programming*, J. ACM 46 (1999),
//! section 3; the recurrence in the form of H. Hyyrö, *A bit-vector algorithm for computing Levenshtein and Damerau edit
//! distances*, Nordic J. Computing 10 (2003), section 4.

mod all_pairs;
mod batches;
mod case;
#[cfg(feature = "cli")]
mod command;
mod filter;
#[cfg(feature = "gpu")]
mod gpu;
mod lanes;
mod long_pairs;
mod many_patterns;
mod one_pattern;
mod pairs;
pub mod reference;
mod short_pairs;
mod simd;
mod sums;
#[cfg(test)]
mod tests;
mod tile;

pub use all_pairs::all_pairs;
#[cfg(feature = "gpu")]
pub use gpu::{DevicePairs, DeviceTexts, all_pairs_on_device, is_for_the_cpu, pairs_on_device};
pub use simd::{PreparedTexts, one_to_many, pairs};

use super::{Axes, Case, Footprint, Kernel, Platform, Prepared};
use crate::data::{Text, Texts};
use crate::error::Error;

/// Stands for every distance above the cutoff.
pub const BEYOND: u32 = u32::MAX;

/// As the results have it: the distance, or [`BEYOND`] if it is above the cutoff.
fn cut(distance: u32, cutoff: Option<u32>) -> u32 {
    if cutoff.is_some_and(|cutoff| distance > cutoff) { BEYOND } else { distance }
}

/// A length of a text, which [`Texts`] lets be no longer.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The registered kernel.
pub struct Myers;

impl Kernel for Myers {
    fn id(&self) -> &'static str {
        "myers"
    }

    fn title(&self) -> &'static str {
        "Bit-parallel Myers"
    }

    fn summary(&self) -> &'static str {
        "Levenshtein distance: one to many, pairs, all pairs"
    }

    fn axes(&self) -> Axes {
        case::AXES
    }

    fn distributions(&self) -> &'static [&'static str] {
        case::DISTRIBUTIONS
    }

    fn footprint(&self, case: &Case) -> Result<Footprint, Error> {
        case::footprint(case)
    }

    fn prepare(&self, case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
        case::prepare(case, platform)
    }

    fn protocol(&self) -> &'static str {
        include_str!("../../../protocols/myers.toml")
    }

    fn check_cases(&self) -> Vec<Case> {
        case::check_cases()
    }

    fn input_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::INPUT_SOURCES
    }

    fn gpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::GPU_SOURCES
    }

    fn cpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::CPU_SOURCES
    }

    #[cfg(feature = "gpu")]
    fn shaders(&self) -> Vec<crate::device::Shader> {
        gpu::shaders()
    }

    #[cfg(feature = "cli")]
    fn command(&self) -> clap::Command {
        command::command()
    }

    #[cfg(feature = "cli")]
    fn run_command(&self, arguments: &clap::ArgMatches, io: &mut crate::cli::Io) -> anyhow::Result<()> {
        command::run(arguments, io)
    }
}
