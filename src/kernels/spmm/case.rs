//! Axis values -> seeded inputs; bytes and operations per call; how close is close enough.

use crate::error::Error;
use crate::kernels::{Axes, Axis, Case, Footprint, Platform, Prepared};

pub(super) const AXES: Axes = Axes {
    size: "rows",
    context: &[Axis::named("matrix", MATRICES), Axis::number("width"), Axis::named("values", VALUES)],
};
const MATRICES: &[&str] = &["tf-idf", "zipf", "power-law", "banded", "skewed"];
const VALUES: &[&str] = &["f32", "f64"];
pub(super) const DISTRIBUTIONS: &[&str] = &["gaussian"];
pub(super) const INPUT_SOURCES: &[(&str, &str)] = &[];
pub(super) const CPU_SOURCES: &[(&str, &str)] = &[("simd.rs", include_str!("simd.rs"))];
pub(super) const GPU_SOURCES: &[(&str, &str)] = &[];

pub(super) fn footprint(_: &Case) -> Result<Footprint, Error> {
    Err(Error::argument("case", "one that can be built", "none yet"))
}

pub(super) fn prepare(_: &Case, _: &Platform) -> Result<Box<dyn Prepared>, Error> {
    Err(Error::argument("case", "one that can be built", "none yet"))
}

pub(super) fn check_cases() -> Vec<Case> {
    Vec::new()
}
