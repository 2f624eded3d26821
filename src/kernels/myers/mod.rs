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

mod batches;
#[allow(dead_code, reason = "until the kernel is registered")]
mod case;
#[cfg(feature = "cli")]
#[allow(dead_code, reason = "the kernel is not in the list yet")]
mod command;
#[cfg(feature = "gpu")]
mod gpu;
mod lanes;
mod many_patterns;
mod one_pattern;
mod pairs;
pub mod reference;
mod simd;
#[cfg(test)]
mod tests;
mod tile;

#[cfg(feature = "gpu")]
pub use gpu::{DevicePairs, DeviceTexts, all_pairs_on_device, is_for_the_cpu, pairs_on_device};
pub use simd::{PreparedTexts, all_pairs, one_to_many, pairs};

use crate::data::{Text, Texts};

/// Stands for every distance above the cutoff.
pub const BEYOND: u32 = u32::MAX;

/// As the results have it: the distance, or [`BEYOND`] if it is above the cutoff.
fn cut(distance: u32, cutoff: Option<u32>) -> u32 {
    if cutoff.is_some_and(|cutoff| distance > cutoff) { BEYOND } else { distance }
}
