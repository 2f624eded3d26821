//! The result file, `lodestar.result/1.2.0`. 1.1.0 added `planned` and `run.resumed`, both of them optional; in 1.2.0 the
//! value of an axis is a number or a name. So files of older versions are read as they are.
//!
//! Durations are integers of nanoseconds in fields that end in `_ns`; sizes are integers of bytes in fields that end in
//! `_bytes`. No units inside values, no formatted numbers, no NaN or infinity: what is not known is `null`, and a
//! `reason` beside it says why. Floats are written with all their digits. On a software adapter every GPU duration is `null`.

pub use crate::machine::{Adapter, Ceilings, Cpu, Machine};

use crate::units::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The schema this build writes.
pub const SCHEMA: &str = "lodestar.result/1.2.0";

/// The schemas this build reads.
pub const READ: [&str; 3] = ["lodestar.result/1.0.0", "lodestar.result/1.1.0", SCHEMA];

/// One run of one kernel's gate on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultFile {
    /// [`SCHEMA`] when it was written, one of [`READ`] when it is read.
    pub schema: String,
    /// The kernel's id.
    pub kernel: String,
    /// When, how and by whom it was started.
    pub run: Run,
    /// What was to be measured.
    pub protocol: Protocol,
    /// Which code was measured.
    pub code: Code,
    /// On which machine.
    pub machine: Machine,
    /// What the pilot planned for each size, in the order of `rows`; from 1.1.0 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<PlannedCell>,
    /// The machine's state, one entry per process: a launch that was interrupted and resumed has one for each of its parts.
    pub state: Vec<LaunchState>,
    /// Agreement of each arm with the reference, on every ring input, before and after timing.
    pub agreement: Vec<AgreementRow>,
    /// Statistics of every row that was timed (and of those that could not be, with the reason).
    pub rows: Vec<TimingRow>,
    /// One entry per gate: size x context x row.
    pub gates: Vec<Gate>,
    /// Where one arm overtakes the other. Empty until crossover search is implemented or when there is no GPU.
    pub crossovers: Vec<Crossover>,
    /// The verdict over the declared gate sizes.
    pub verdict: KernelVerdict,
    /// The raw samples beside this file.
    pub samples: Samples,
}

/// The run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// 8 hex digits.
    pub id: String,
    /// RFC 3339, UTC, whole seconds.
    pub started_utc: String,
    /// RFC 3339, UTC, whole seconds.
    pub ended_utc: String,
    /// The command line without the program's path.
    pub argv: Vec<String>,
    /// Seed of the order of slots.
    pub seed: u64,
    /// What kind of run.
    pub mode: Mode,
    /// How many looks at the data the plan allows (1, or 3 with `--extend`).
    pub looks: u32,
    /// Whether every planned size was measured (an interrupted run that was never resumed leaves `false`).
    pub complete: bool,
    /// Every time that it was resumed after an interruption, in order; from 1.1.0 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumed>,
}

/// One resumption: what was there is kept, what was missing is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// When it was last saved before: RFC 3339, UTC, whole seconds.
    pub interrupted_utc: String,
    /// When the run went on: RFC 3339, UTC, whole seconds.
    pub resumed_utc: String,
    /// How many samples were there; they are the first of the samples file, unchanged.
    pub samples: u64,
    /// SHA-256 of the samples file as it was.
    pub sha256: String,
}

/// What the pilot planned for one size of one context, fixed before the first slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedCell {
    /// Size.
    pub size: u64,
    /// Context.
    pub context: Context,
    /// Launches that visit it.
    pub launches: u32,
    /// Blocks of paired arms in each.
    pub blocks: u32,
    /// Slots of arms alone in each.
    pub slots: u32,
    /// Whether each launch compares every ring input with the reference, or after the first launch one in turn.
    pub every_input: bool,
}

/// Kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The full plan: may be published.
    Full,
    /// A shorter plan: never published.
    Quick,
    /// The CPU arm against itself.
    Null,
}

/// What was to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// File name, relative to the repository where it lies in it.
    pub path: String,
    /// SHA-256 of its canonical text without `analysis`.
    pub sha256: String,
    /// The row that decides: `resident` or `one_shot`.
    pub gate_row: String,
    /// What is resident and why, in the protocol's words.
    pub residency: String,
    /// The ratio to reach.
    pub gate: f64,
    /// Name of the size axis.
    pub size_axis: String,
    /// Sizes at which the gate is judged.
    pub gate_sizes: Vec<u64>,
    /// All sizes of the sweep.
    pub sizes: Vec<u64>,
    /// All contexts of the sweep.
    pub contexts: Vec<Context>,
    /// Error rate of the interval.
    pub alpha: f64,
    /// Processes per run.
    pub launches: u32,
    /// Blocks per size and launch.
    pub blocks: u32,
    /// Shortest slot.
    pub slot_ms: u64,
    /// Re-warming before each slot.
    pub rewarm_ms: u64,
    /// Time limit of a size.
    pub max_seconds_per_size: u64,
    /// Largest difference from the reference that counts as agreement, as a share of the bound of what rounding can do; 0 =
    /// equal.
    pub tolerance: f64,
    /// Inputs.
    pub inputs: Inputs,
    /// Why it wins or loses, in one sentence, written by hand. Not hashed.
    pub analysis: Option<String>,
}

/// How inputs are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Name of the distribution.
    pub distribution: String,
    /// Seed.
    pub seed: u64,
    /// How many per-call inputs the calls rotate through.
    pub ring: u32,
    /// SHA-256 over the sources of the generators.
    pub generator_hash: String,
}

/// Which code was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Version of the package.
    pub version: String,
    /// Full commit hash, or null outside a checkout.
    pub commit: Option<String>,
    /// Whether the work tree differed from the commit when the program was built.
    pub dirty: Option<bool>,
    /// SHA-256 of the running executable.
    pub binary_sha256: String,
    /// `rustc --version` of the build.
    pub rustc: String,
    /// `release` or `dev`.
    pub profile: String,
    /// Target triple.
    pub target: String,
    /// Version of wgpu, or null without the feature.
    pub wgpu: Option<String>,
    /// SHA-256 over all sources that decide what the GPU arm does.
    pub kernel_hash: String,
    /// SHA-256 over all sources that decide what the CPU arm does.
    pub baseline_hash: String,
}

/// The machine's state around one launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchState {
    /// Which launch.
    pub launch: u32,
    /// One-minute load average before the launch.
    pub load1: Option<f64>,
    /// Cores' worth of CPU that other processes used during the launch.
    pub foreign_cores: Option<f64>,
    /// Share of CPU time the hypervisor took, 0 to 1.
    pub steal: Option<f64>,
    /// Mean clock of the cores.
    pub cpu_mhz: Option<f64>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Whether the machine ran on battery.
    pub on_battery: Option<bool>,
    /// Canary, a fixed integer loop on one core: median over the launch.
    pub canary_1t_ns: Option<u64>,
    /// The same loop on every core at once.
    pub canary_ns: Option<u64>,
    /// A fixed dispatch on the GPU; null on software adapters.
    pub canary_gpu_ns: Option<u64>,
    /// GPU clock, temperature, power and throttle reasons are not read by wgpu; null unless the system tells.
    pub gpu_clock_mhz: Option<f64>,
    /// Degrees Celsius.
    pub gpu_celsius: Option<f64>,
    /// Reasons the driver gives for a lowered clock.
    pub throttle_reasons: Option<Vec<String>>,
}

/// Agreement of one arm with the reference at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgreementRow {
    /// Size.
    pub size: u64,
    /// Context.
    pub context: Context,
    /// `simd`, `simd_1t`, `gpu`, or `simd_again` (the second arm of the null control).
    pub arm: String,
    /// `resident` or `one_shot`.
    pub row: String,
    /// Which launch.
    pub launch: u32,
    /// Ring inputs checked before timing and after it.
    pub checks: u32,
    /// Values compared.
    pub compared: u64,
    /// Values equal bit by bit.
    pub exact: u64,
    /// Largest difference seen.
    pub max_error: f64,
    /// Largest difference allowed.
    pub tolerance: f64,
    /// First mismatch, or null when all agree.
    pub mismatch: Option<String>,
    /// Hash over the results of all ring inputs: the same wherever they are equal bit by bit.
    pub checksum: String,
}

/// Statistics of one row of one arm at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimingRow {
    /// Size.
    pub size: u64,
    /// Context.
    pub context: Context,
    /// `simd`, `simd_1t`, `gpu` or `simd_again`.
    pub arm: String,
    /// `resident`, `one_shot`, `kernel_only`, `upload`, `download`, `floor`, `e2e_fresh`, `idle_start`, `cold_init`,
    /// `cold_pipeline`, `cold_first_call`.
    pub row: String,
    /// Threads of a CPU arm.
    pub threads: Option<u32>,
    /// How it was timed: `host`, `timestamps`, or null.
    pub method: Option<String>,
    /// Path of the upload (`staging_ring`), for GPU rows.
    pub upload_path: Option<String>,
    /// How the host waited (`poll_wait`), for GPU rows.
    pub wait: Option<String>,
    /// Bytes to the device per call.
    pub up_bytes: u64,
    /// Bytes from the device per call.
    pub down_bytes: u64,
    /// Bytes that have to be read at least once per call.
    pub touched_bytes: u64,
    /// Operations per call.
    pub operations: f64,
    /// Calls per slot.
    pub calls_per_slot: Option<u32>,
    /// Number of slots.
    pub slots: u32,
    /// Median over slots of the slot's statistic; null when not timed or not to be published.
    pub median_ns: Option<u64>,
    /// Lower quartile.
    pub p25_ns: Option<u64>,
    /// Upper quartile.
    pub p75_ns: Option<u64>,
    /// Fastest slot.
    pub min_ns: Option<u64>,
    /// Slowest slot.
    pub max_ns: Option<u64>,
    /// Why there is no duration.
    pub reason: Option<String>,
}

/// One gate: one size, one context, one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Size.
    pub size: u64,
    /// Context.
    pub context: Context,
    /// `resident` or `one_shot`.
    pub row: String,
    /// Whether the verdict of the kernel depends on it (a gate size, and the protocol's gate row).
    pub decides: bool,
    /// CPU variant used as the baseline, chosen in the pilot: `simd` or `simd_1t`.
    pub baseline: String,
    /// Speed-up, time of the CPU arm over time of the GPU arm.
    pub point: Option<f64>,
    /// Lower end of the interval that is judged (widened by flags).
    pub lo: Option<f64>,
    /// Upper end of the interval that is judged.
    pub hi: Option<f64>,
    /// Interval over launches (Student), before widening.
    pub i1: Option<[f64; 2]>,
    /// Interval over blocks (signed rank), before widening.
    pub i2: Option<[f64; 2]>,
    /// Log ratio of each launch.
    pub launches: Vec<f64>,
    /// Standard deviation of the launches' log ratios.
    pub launch_sd: Option<f64>,
    /// Offset between the two CPU slots of a block, log units.
    pub null_cpu: Option<f64>,
    /// The same for the GPU.
    pub null_gpu: Option<f64>,
    /// Everything that speaks against the measurement.
    pub flags: Vec<Flag>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in a word: `below_gate`, `parity`, `slower`, `straddles`, `too_few`, `budget`, `busy`, a mismatch, ...
    pub reason: Option<String>,
}

/// Something that speaks against a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// `null`, `drift`, `order`, `throttle`, `quantised`, `busy`, `env`, `budget`, `too_few`, `warmup_capped`, `bimodal`, `outliers`.
    pub name: String,
    /// What it does to the verdict.
    pub effect: FlagEffect,
    /// Bias bound in log units, for a bounded flag.
    pub bound: Option<f64>,
    /// What was seen, in words.
    pub detail: String,
}

/// What a flag does to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagEffect {
    /// Widens the interval by its bound.
    Widens,
    /// Caps the verdict at inconclusive.
    Caps,
    /// Information only.
    Informs,
}

/// A verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The lower end of the interval reaches the gate.
    Pass,
    /// The upper end of the interval is below the gate.
    Fail,
    /// Neither.
    Inconclusive,
    /// Wrong output, a debug build, a lost device: no ratio at all.
    Invalid,
    /// There was no GPU to measure.
    NoGpu,
}

/// Where one arm overtakes the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crossover {
    /// Context.
    pub context: Context,
    /// `resident` or `one_shot`.
    pub row: String,
    /// The ratio that is crossed: 1, or the gate.
    pub level: f64,
    /// Largest size proven below.
    pub lo: Option<u64>,
    /// Smallest size above it proven above.
    pub hi: Option<u64>,
    /// Point estimate.
    pub point: Option<f64>,
    /// `ok`, `censored_above`, `censored_below`, `non_monotone`, `unstable`.
    pub status: String,
}

/// The verdict over all deciding gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in a word or two.
    pub reason: Option<String>,
}

/// The raw samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// File name, in the same folder.
    pub path: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Number of samples.
    pub rows: u64,
}

/// One line of the samples file, in time order, warm-up included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Which launch, from 1; 0 is the pilot.
    pub launch: u32,
    /// Index of the context in the protocol.
    pub context: u32,
    /// Size.
    pub size: u64,
    /// Row.
    pub row: String,
    /// Arm.
    pub arm: String,
    /// `pilot`, `warmup`, `rewarm`, `slot`, `canary`.
    pub phase: String,
    /// Block, from 0.
    pub block: u32,
    /// Position of the slot in its block, 0 to 3.
    pub pos: u32,
    /// Start, from the start of the launch.
    pub t_start_ns: u64,
    /// Calls.
    pub calls: u32,
    /// Total of all calls.
    pub total_ns: u64,
    /// Fastest call.
    pub min_ns: u64,
    /// Median call.
    pub median_ns: u64,
    /// Slowest call.
    pub max_ns: u64,
}
