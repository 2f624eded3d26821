//! The kernels: what a kernel is ([`Kernel`], [`Prepared`]) and the list of them ([`KERNELS`]).
//!
//! The command line, the gate, the report and the tests iterate over the list; none of them names a kernel.

pub mod cosine;
pub mod myers;
pub(crate) mod parallel;
pub mod spmm;

use crate::error::Error;
use crate::simd::Level;
use crate::units::{AxisValue, Context};
#[cfg(feature = "gpu")]
use std::sync::Arc;

/// Every kernel, in the order of what they need.
pub static KERNELS: &[&dyn Kernel] = &[&cosine::Cosine, &spmm::Spmm, &myers::Myers];

/// A kernel by its id.
///
/// # Errors
/// [`Error::Argument`] when there is none; the message lists those there are.
pub fn kernel(id: &str) -> Result<&'static dyn Kernel, Error> {
    KERNELS.iter().find(|kernel| kernel.id() == id).copied().ok_or_else(|| {
        let ids: Vec<_> = KERNELS.iter().map(|kernel| kernel.id()).collect();
        Error::argument("kernel", format!("one of {}", ids.join(", ")), id)
    })
}

/// What a kernel is to the rest of the program.
pub trait Kernel: Sync {
    /// Its id: the folder name, the subcommand of `gate`, the section of the protocol. Lower case.
    fn id(&self) -> &'static str;

    /// Its name in tables and headings.
    fn title(&self) -> &'static str;

    /// What it computes, in one line.
    fn summary(&self) -> &'static str;

    /// The axes of a case: which one a sweep walks along, and which ones a context pins.
    fn axes(&self) -> Axes;

    /// Names of the input distributions that `prepare` knows; the first is the default.
    fn distributions(&self) -> &'static [&'static str];

    /// Bytes that a case needs, computed without building it.
    ///
    /// # Errors
    /// [`Error::Argument`] or [`Error::Limit`] for axis values the kernel is not defined for.
    fn footprint(&self, case: &Case) -> Result<Footprint, Error>;

    /// Builds the inputs of a case and allocates everything, on the host and (if the platform has one) on the device.
    ///
    /// # Errors
    /// As [`footprint`](Self::footprint), and whatever the device layer reports.
    fn prepare(&self, case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error>;

    /// The text of the protocol that ships with it, for use outside of a checkout: `protocols/<id>.toml`.
    fn protocol(&self) -> &'static str;

    /// Cases for `lodestar check`: real input, every distribution, awkward sizes; small enough for a software adapter.
    fn check_cases(&self) -> Vec<Case>;

    /// All source text that decides what its generated inputs are, for `generator_hash`.
    fn input_sources(&self) -> &'static [(&'static str, &'static str)];

    /// All source text that decides what the GPU arm does (WGSL and host path), for `kernel_hash`.
    fn gpu_sources(&self) -> &'static [(&'static str, &'static str)];

    /// All source text that decides what the CPU arm does, for `baseline_hash`.
    fn cpu_sources(&self) -> &'static [(&'static str, &'static str)];

    /// The shaders, for the tests that validate every one without a GPU.
    #[cfg(feature = "gpu")]
    fn shaders(&self) -> Vec<crate::device::Shader>;

    /// Its subcommand on files.
    #[cfg(feature = "cli")]
    fn command(&self) -> clap::Command;

    /// Runs the subcommand.
    ///
    /// # Errors
    /// Bad arguments and bad input, worded for the person who typed them.
    #[cfg(feature = "cli")]
    fn run_command(&self, arguments: &clap::ArgMatches, io: &mut crate::cli::Io) -> anyhow::Result<()>;
}

/// A kernel's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axes {
    /// The axis that a sweep of sizes walks along, e.g. `rows`: whole numbers.
    pub size: &'static str,
    /// The axes that a context pins, e.g. `dim`, `k`, `queries`; each context of a protocol gives all of them.
    pub context: &'static [Axis],
}

/// An axis that a context pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub values: AxisValues,
}

/// What the values of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisValues {
    /// Whole numbers; which of them make sense, [`footprint`](Kernel::footprint) says.
    Numbers,
    /// One of these names.
    Names(&'static [&'static str]),
}

impl Axis {
    /// An axis of numbers.
    pub const fn number(name: &'static str) -> Self {
        Self { name, values: AxisValues::Numbers }
    }

    /// An axis of names.
    pub const fn named(name: &'static str, names: &'static [&'static str]) -> Self {
        Self { name, values: AxisValues::Names(names) }
    }

    /// Whether a value lies on this axis.
    ///
    /// # Errors
    /// [`Error::Argument`]: the axis, what it accepts, and the value.
    pub fn check(&self, value: &AxisValue) -> Result<(), Error> {
        match (self.values, value) {
            (AxisValues::Numbers, AxisValue::Number(_)) => Ok(()),
            (AxisValues::Names(names), AxisValue::Name(name)) if names.contains(&name.as_str()) => Ok(()),
            // In quotes, for it may look like a number.
            (AxisValues::Numbers, AxisValue::Name(name)) => {
                Err(Error::argument(self.name, "a number", format!("{name:?}")))
            }
            (AxisValues::Names(names), found) => {
                Err(Error::argument(self.name, format!("one of {}", names.join(", ")), found))
            }
        }
    }
}

/// One point of a sweep: what to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Value of the size axis.
    pub size: u64,
    /// Values of the context axes, by name.
    pub context: Context,
    /// Seed of the inputs.
    pub seed: u64,
    /// How many different per-call inputs to build; calls rotate through them.
    pub ring: usize,
    /// Name of the input distribution.
    pub distribution: String,
}

impl Case {
    fn value(&self, name: &str) -> Result<&AxisValue, Error> {
        self.context.get(name).ok_or_else(|| Error::argument(name, "a value in the context", "none"))
    }

    /// A context axis of numbers as `usize`.
    ///
    /// # Errors
    /// [`Error::Argument`] when the context lacks it or has a name there, [`Error::Limit`] when it does not fit.
    pub fn axis(&self, name: &str) -> Result<usize, Error> {
        match self.value(name)? {
            &AxisValue::Number(number) => usize::try_from(number).map_err(|_| Error::Limit {
                what: name.into(),
                requested: number,
                max: usize::MAX as u64,
            }),
            found @ AxisValue::Name(_) => Err(Error::argument(name, "a number", found)),
        }
    }

    /// A context axis of names.
    ///
    /// # Errors
    /// [`Error::Argument`] when the context lacks it or has a number there.
    pub fn name(&self, name: &str) -> Result<&str, Error> {
        match self.value(name)? {
            AxisValue::Name(found) => Ok(found),
            found @ AxisValue::Number(_) => Err(Error::argument(name, "a name", found)),
        }
    }

    /// The size axis as `usize`.
    ///
    /// # Errors
    /// [`Error::Limit`] when it does not fit.
    pub fn size(&self) -> Result<usize, Error> {
        usize::try_from(self.size).map_err(|_| Error::Limit {
            what: "size".into(),
            requested: self.size,
            max: usize::MAX as u64,
        })
    }
}

/// Where a case runs: passed down, never global.
#[derive(Clone)]
pub struct Platform {
    /// The SIMD level of the CPU arm.
    pub level: Level,
    /// Threads of the CPU arm (the `simd` row; `simd_1t` uses one).
    pub threads: usize,
    /// The device of the GPU arm, if there is one.
    #[cfg(feature = "gpu")]
    pub device: Option<Arc<crate::device::Device>>,
}

impl Platform {
    /// The CPU alone.
    pub fn cpu(level: Level, threads: usize) -> Self {
        Self {
            level,
            threads,
            #[cfg(feature = "gpu")]
            device: None,
        }
    }

    /// Where it computes, in words: the CPU, or the adapter.
    pub fn place(&self) -> String {
        #[cfg(feature = "gpu")]
        if let Some(device) = &self.device {
            let kind = if device.is_software() { "software adapter" } else { "gpu" };
            return format!("{kind} ({})", device.info().name);
        }
        format!("cpu ({}, {} threads)", self.level, self.threads)
    }
}

/// Bytes a case needs, before it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Host memory at the peak of `prepare` and `run`.
    pub host_bytes: u64,
    /// Device memory.
    pub device_bytes: u64,
}

/// Who computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Our SIMD path with this many threads, at the platform's level.
    Simd {
        /// Number of threads, at least 1.
        threads: usize,
    },
    /// The WGSL path on the platform's device.
    Gpu,
}

/// What a call starts from and ends with. Both arms of a row start from the same host data and end with the same
/// host result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// Per-call operands up, kernel, results down; the operand that the workload keeps is prepared already, by both arms.
    Resident,
    /// Everything up, kernel, results down; the CPU arm starts from raw slices too.
    OneShot,
    /// Dispatch to completion, no transfers. GPU only, never a gate.
    KernelOnly,
    /// The per-call operands up, nothing else. GPU only.
    Upload,
    /// The results down, nothing else. GPU only.
    Download,
    /// An empty submit and its wait. GPU only.
    Floor,
    /// As `Resident`, with the buffers of the call allocated in it: nothing but the residents and the pipelines is there
    /// before. GPU only, never a gate.
    E2eFresh,
}

impl Row {
    /// All rows, in the order of tables.
    pub const ALL: [Self; 7] =
        [Self::Resident, Self::OneShot, Self::KernelOnly, Self::Upload, Self::Download, Self::Floor, Self::E2eFresh];

    /// The name in results, protocols and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::OneShot => "one_shot",
            Self::KernelOnly => "kernel_only",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Floor => "floor",
            Self::E2eFresh => "e2e_fresh",
        }
    }
}

/// Inputs built, buffers allocated: only [`run`](Self::run) is timed.
pub trait Prepared {
    /// The variants that [`run`](Self::run) accepts on this platform: `Simd` with all threads, `Simd` with one, `Gpu`.
    fn variants(&self) -> Vec<Variant>;

    /// Why the platform's device computes nothing here, where it cannot: the reason in the words of results.
    fn no_gpu(&self) -> Option<String> {
        None
    }

    /// Whether a row is defined for a variant (`KernelOnly` is not, on the CPU).
    fn has_row(&self, variant: Variant, row: Row) -> bool;

    /// One call: host data ready to host result ready. `input` is an index into the ring.
    /// The result is kept inside for [`check`](Self::check). Returns the device's own measure of the kernel where
    /// timestamps are available, pass their self-check, and `row` is [`Row::KernelOnly`].
    ///
    /// # Errors
    /// Whatever the device layer reports; the CPU arm does not fail.
    fn run(&mut self, variant: Variant, row: Row, input: usize) -> Result<Option<u64>, Error>;

    /// What one call moves and computes.
    fn work(&self, row: Row) -> Work;

    /// Compares the last result of `run(variant, row, input)` (rows that give a result: `Resident` and `OneShot`) with
    /// the reference. The reference is computed on first use, never inside a timed region.
    ///
    /// # Errors
    /// [`Mismatch`]: where the two differ first, and by how much.
    fn check(&mut self, variant: Variant, row: Row, input: usize) -> Result<Agreement, Mismatch>;
}

/// What one call moves and computes, for throughput figures and the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Bytes from host to device.
    pub bytes_up: u64,
    /// Bytes from device to host.
    pub bytes_down: u64,
    /// Bytes of operands that have to be read at least once.
    pub bytes_touched: u64,
    /// Arithmetic operations (a multiply-add counts as two).
    pub operations: f64,
    /// Items of the workload (queries, documents, pairs).
    pub items: u64,
}

/// How far a result and the reference agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// How many values were compared.
    pub compared: u64,
    /// How many were equal bit by bit.
    pub exact: u64,
    /// The largest difference, as a share of the bound of what rounding can do at that place; 0 where results must be equal.
    pub max_error: f64,
    /// The largest difference allowed: 1, or 0 where results must be equal.
    pub tolerance: f64,
    /// First 16 hex digits of a hash over the result; equal results have equal checksums, whatever the variant.
    pub checksum: String,
}

/// The first place where a result is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{position}: expected {expected}, found {found}")]
pub struct Mismatch {
    /// Where, in the terms of the kernel: `query 3, rank 7`.
    pub position: String,
    /// What the reference says.
    pub expected: String,
    /// What was computed.
    pub found: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_refuses_what_does_not_lie_on_it() {
        let (width, values) = (Axis::number("width"), Axis::named("values", &["f32", "f64"]));
        assert!(width.check(&64.into()).is_ok() && values.check(&"f32".into()).is_ok());
        let message = |axis: Axis, value: AxisValue| axis.check(&value).unwrap_err().to_string();
        assert_eq!(message(width, "64".into()), "width: expected a number, found \"64\"");
        assert_eq!(message(values, "f16".into()), "values: expected one of f32, f64, found f16");
        assert_eq!(message(values, 64.into()), "values: expected one of f32, f64, found 64");
    }

    #[test]
    fn a_case_gives_numbers_as_numbers_and_names_as_names() {
        let context = [("width", AxisValue::from(64)), ("values", "f32".into())];
        let context = context.map(|(name, value)| (name.to_owned(), value)).into();
        let case = Case { size: 1, context, seed: 1, ring: 1, distribution: String::new() };
        assert_eq!((case.axis("width").unwrap(), case.name("values").unwrap()), (64, "f32"));
        let message = |error: Error| error.to_string();
        assert_eq!(message(case.axis("values").unwrap_err()), "values: expected a number, found f32");
        assert_eq!(message(case.name("width").unwrap_err()), "width: expected a name, found 64");
        assert_eq!(message(case.axis("dim").unwrap_err()), "dim: expected a value in the context, found none");
    }
}
