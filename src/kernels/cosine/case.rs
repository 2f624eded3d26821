//! Axis values -> seeded inputs; bytes and operations per call; how close is close enough.

use crate::error::Error;
use crate::kernels::{Case, Footprint, Platform, Prepared};

pub(super) const DISTRIBUTIONS: &[&str] = &["gaussian"];
pub(super) const GPU_SOURCES: &[(&str, &str)] = &[];
pub(super) const CPU_SOURCES: &[(&str, &str)] = &[];

pub(super) fn footprint(_case: &Case) -> Result<Footprint, Error> {
    Ok(Footprint::default())
}

pub(super) fn prepare(_case: &Case, _platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
    Err(Error::argument("cosine", "an implementation", "none"))
}
