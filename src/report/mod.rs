//! Results -> pages: `docs/guides/performance.md` and its charts are a pure function of the result files.
//!
//! Nothing here runs a kernel or looks at the clock: two renders of the same files are equal byte by byte, and a page
//! can be made on a computer that has no GPU.

pub mod chart;
pub mod judge;
mod markdown;
mod numbers;
mod splice;
mod sweep;

#[cfg(test)]
pub(crate) mod fixtures;

pub use judge::{Currency, Judgement, State};
pub use splice::{Difference, differences, write};

use crate::results::schema::ResultFile;

/// A result file and what is known about it beside its content.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Relative to the results folder, with `/`.
    pub path: String,
    /// Its content.
    pub result: ResultFile,
    /// Why it was withdrawn, if it was.
    pub withdrawn: Option<String>,
}

/// A kernel as the program has it now: what a result must have measured not to be stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentKernel {
    /// Its id.
    pub id: String,
    /// Its name in tables and headings.
    pub title: String,
    /// Hash of what the GPU arm does; `None` in a program without GPU kernels, which cannot tell.
    pub kernel_hash: Option<String>,
    /// Hash of what the CPU arm does.
    pub baseline_hash: String,
    /// Where its protocol lies, from the root of the repository.
    pub protocol_path: String,
    /// Hash of its protocol; `None` where there is none to compare with.
    pub protocol_sha256: Option<String>,
}

/// What the page is made with, beside the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kernels there are now.
    pub kernels: Vec<CurrentKernel>,
    /// From the page to the results folder, e.g. `../../results`.
    pub results_link: String,
    /// The command that renders the page, as it is to be typed.
    pub command: String,
}

/// A rendered page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// What goes between the two markers.
    pub text: String,
    /// Charts: file name in the folder `charts` beside the page, and SVG text; sorted by name.
    pub charts: Vec<(String, String)>,
}

/// Renders the page and its charts.
///
/// # Errors
/// [`chart::Error`] if the drawing library refuses a chart: a bug, not a matter of the data.
pub fn render(records: &[Record], settings: &Settings) -> Result<Page, chart::Error> {
    let judgements = judge::judge(records, &settings.kernels);
    let mut charts = Vec::new();
    for judgement in &judgements {
        charts.extend(chart::charts(judgement)?);
    }
    charts.sort();
    Ok(Page { text: markdown::page(records, &judgements, settings), charts })
}
