//! A kernel, a canary and a launcher that run on a scripted clock: the whole gate in milliseconds.

use lodestar::error::Error;
use lodestar::gate::canary::Canary;
use lodestar::gate::clock::{Clock, ScriptedClock};
use lodestar::gate::launch::{self, Event, OpenDevice, Stage};
use lodestar::gate::plan::LaunchPlan;
use lodestar::gate::protocol::{self, Protocol};
use lodestar::gate::run::{Ended, Keeper, Launcher, Settings, measure};
use lodestar::kernels::{
    Agreement, Axes, Axis, Case, Footprint, Kernel, Mismatch, Platform, Prepared, Row, Variant, Work,
};
use lodestar::machine::{Adapter, Ceilings, Cpu, Machine};
use lodestar::results::schema::{
    Code, KernelVerdict, LaunchState, Mode, ResultFile, Resumed, Run, SCHEMA, Sample, Samples, Verdict,
};
use lodestar::simd::Level;
use sha2::Digest;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// Seeded noise: SplitMix64, Box-Muller.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * a.ln()).sqrt() * (2.0 * std::f64::consts::PI * b).cos()
    }
}

/// How time is disturbed, in log units.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    /// Independent error of each call.
    pub(crate) error: f64,
    /// Share of calls with an exponential spike of mean 15%.
    pub(crate) spikes: f64,
    /// Rise of all times over a launch.
    pub(crate) ramp: f64,
    /// Standard deviation of an offset that each arm has in each launch.
    pub(crate) launch: f64,
    /// Cost of whatever runs first after the edge of a block.
    pub(crate) first: f64,
    /// Size of the slow wander of all times.
    pub(crate) wander: f64,
}

/// The simulator's fourth scenario: all of it at once.
pub(crate) const STORM: Weather =
    Weather { error: 0.02, spikes: 0.02, ramp: 0.10, launch: 0.02, first: 0.03, wander: 0.005 };
/// Its first scenario.
pub(crate) const QUIET: Weather =
    Weather { error: 0.02, spikes: 0.02, ramp: 0.0, launch: 0.0, first: 0.0, wander: 0.0 };

/// What the scripted kernel does.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    /// Time of a call at size 1000, per arm.
    pub(crate) cpu_ns: f64,
    pub(crate) gpu_ns: f64,
    pub(crate) weather: Weather,
    /// Arm whose results are wrong.
    pub(crate) wrong: Option<Variant>,
    /// Whether the device is lost in the fourth launch.
    pub(crate) lost: bool,
    pub(crate) axes: Axes,
    /// Why the device has no version of the knotted cases.
    pub(crate) no_gpu: Option<&'static str>,
}

/// Axes of numbers alone.
pub(crate) const NUMBERS: Axes = Axes { size: "rows", context: &[Axis::number("dim")] };
/// Axes of which one has names; knotted takes twice as long.
pub(crate) const NAMES: Axes =
    Axes { size: "rows", context: &[Axis::named("matrix", &["plain", "knotted"]), Axis::number("dim")] };

pub(crate) struct State {
    noise: Noise,
    offsets: [f64; 2],
    wander: f64,
    started_ns: u64,
    after_edge: bool,
    last: Option<Variant>,
    launches: u32,
    /// Whether the device's pipelines are there, and what making them took so far.
    compiled: bool,
    compile_ns: u64,
}

pub(crate) struct Scripted {
    pub(crate) clock: Arc<ScriptedClock>,
    pub(crate) script: Script,
    pub(crate) state: Arc<Mutex<State>>,
}

pub(crate) const THREADS: usize = 1;

impl Scripted {
    pub(crate) fn new(script: Script, seed: u64) -> Self {
        let state = State {
            noise: Noise(seed),
            offsets: [0.0; 2],
            wander: 0.0,
            started_ns: 0,
            after_edge: false,
            last: None,
            launches: 0,
            compiled: false,
            compile_ns: 0,
        };
        Self { clock: Arc::default(), script, state: Arc::new(Mutex::new(state)) }
    }
}

impl Kernel for Scripted {
    fn id(&self) -> &'static str {
        "scripted"
    }
    fn title(&self) -> &'static str {
        "Scripted"
    }
    fn summary(&self) -> &'static str {
        "takes the time it is told to take"
    }
    fn axes(&self) -> Axes {
        self.script.axes
    }
    fn distributions(&self) -> &'static [&'static str] {
        &["none"]
    }
    fn footprint(&self, _: &Case) -> Result<Footprint, Error> {
        Ok(Footprint::default())
    }
    fn prepare(&self, case: &Case, _: &Platform) -> Result<Box<dyn Prepared>, Error> {
        let mut state = self.state.lock().unwrap();
        let launch = self.script.weather.launch;
        state.offsets = [launch * state.noise.normal(), launch * state.noise.normal()];
        state.started_ns = self.clock.now_ns();
        state.launches += 1;
        self.clock.advance_ns(1_000_000);
        if !state.compiled {
            state.compiled = true;
            state.compile_ns += COMPILE_NS;
        }
        let knotted = self.script.axes == NAMES && case.name("matrix")? == "knotted";
        let scale = case.size as f64 / 1000.0 * if knotted { 2.0 } else { 1.0 };
        // What a device lacks is a matter of the case, as a type of values is.
        let no_gpu = self.script.no_gpu.filter(|_| knotted);
        let (clock, script, state) = (self.clock.clone(), self.script, self.state.clone());
        Ok(Box::new(Running { clock, script, state, scale, no_gpu }))
    }
    fn protocol(&self) -> &'static str {
        ""
    }

    fn check_cases(&self) -> Vec<Case> {
        Vec::new()
    }

    fn input_sources(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    fn gpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    fn cpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    #[cfg(feature = "gpu")]
    fn shaders(&self) -> Vec<lodestar::device::Shader> {
        Vec::new()
    }
    fn command(&self) -> clap::Command {
        clap::Command::new("scripted")
    }
    fn run_command(&self, _: &clap::ArgMatches, _: &mut lodestar::cli::Io) -> anyhow::Result<()> {
        Ok(())
    }
}

struct Running {
    clock: Arc<ScriptedClock>,
    script: Script,
    state: Arc<Mutex<State>>,
    scale: f64,
    no_gpu: Option<&'static str>,
}

impl Prepared for Running {
    fn variants(&self) -> Vec<Variant> {
        let all = [Variant::Simd { threads: THREADS }, Variant::Gpu];
        all.into_iter().filter(|variant| *variant != Variant::Gpu || self.no_gpu.is_none()).collect()
    }
    fn no_gpu(&self) -> Option<String> {
        self.no_gpu.map(str::to_owned)
    }
    fn has_row(&self, variant: Variant, row: Row) -> bool {
        matches!(row, Row::Resident) || (matches!(row, Row::Upload | Row::E2eFresh) && variant == Variant::Gpu)
    }
    fn run(&mut self, variant: Variant, _: Row, _: usize) -> Result<Option<u64>, Error> {
        let state = &mut *self.state.lock().unwrap();
        let weather = self.script.weather;
        let gpu = variant == Variant::Gpu;
        if gpu && self.script.lost && state.launches > 4 {
            return Err(lodestar::DeviceError::Lost { message: "fell off the bus".into() }.into());
        }
        if state.last != Some(variant) {
            // An edge costs until the other arm is switched to.
            state.after_edge = state.after_edge && state.last.is_none();
        }
        state.last = Some(variant);
        state.wander = 0.9 * state.wander + weather.wander * state.noise.normal();
        let spike =
            if state.noise.uniform() < weather.spikes { -0.15 * state.noise.uniform().max(1e-12).ln() } else { 0.0 };
        let share = ((self.clock.now_ns() - state.started_ns) as f64 / 10e9).min(1.0);
        let log = state.offsets[usize::from(gpu)]
            + state.wander
            + spike
            + weather.ramp * share
            + if state.after_edge { weather.first } else { 0.0 }
            + weather.error * state.noise.normal();
        let base = if gpu { self.script.gpu_ns } else { self.script.cpu_ns };
        #[expect(clippy::cast_possible_truncation, reason = "a time of a scripted call")]
        let ns = (base * self.scale * log.exp()).round() as u64;
        self.clock.advance_ns(ns);
        Ok(None)
    }
    fn work(&self, _: Row) -> Work {
        Work { bytes_up: 8, bytes_down: 16, bytes_touched: 24, operations: 100.0 * self.scale, items: 1 }
    }
    fn check(&mut self, variant: Variant, _: Row, input: usize) -> Result<Agreement, Mismatch> {
        if self.script.wrong == Some(variant) && input == 2 {
            let (expected, found) = ("0.5".into(), "0.25".into());
            return Err(Mismatch { position: "query 3, rank 7".into(), expected, found });
        }
        Ok(Agreement { compared: 10, exact: 10, max_error: 0.0, tolerance: 0.0, checksum: format!("{input:016x}") })
    }
}

/// Takes a millisecond, and marks the edge of a block.
struct ScriptedCanary(Arc<ScriptedClock>, Arc<Mutex<State>>);

impl Canary for ScriptedCanary {
    fn one_core(&self) {
        self.0.advance_ns(1_000_000);
        let mut state = self.1.lock().unwrap();
        (state.after_edge, state.last) = (true, None);
    }
    fn all_cores(&self) {
        self.one_core();
    }
}

/// A device whose pipelines take [`COMPILE_NS`] when they are not there.
struct ScriptedDevice {
    adapter: Adapter,
    state: Arc<Mutex<State>>,
}

/// Of a cell.
pub(crate) const COMPILE_NS: u64 = 40_000_000;

impl OpenDevice for ScriptedDevice {
    fn adapter(&self) -> &Adapter {
        &self.adapter
    }
    fn upload_path(&self) -> &str {
        "scripted_path"
    }
    fn wait_strategy(&self) -> &str {
        "scripted_wait"
    }
    fn compile_ns(&self) -> u64 {
        self.state.lock().unwrap().compile_ns
    }
    fn forget_pipelines(&self) {
        self.state.lock().unwrap().compiled = false;
    }
}

pub(crate) struct InProcess<'a> {
    pub(crate) kernel: &'a Scripted,
    pub(crate) adapter: Option<Adapter>,
}

impl Launcher for InProcess<'_> {
    fn launch(
        &mut self,
        plan: &LaunchPlan,
        _: &dyn Fn() -> bool,
        report: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let platform = Platform::cpu(Level::detect(), THREADS);
        // Each launch is a new process: its clock starts at zero, but a scripted one may as well go on.
        let canary = ScriptedCanary(self.kernel.clock.clone(), self.kernel.state.clone());
        let device = self.adapter.clone().map(|adapter| ScriptedDevice { adapter, state: self.kernel.state.clone() });
        let stage = Stage {
            kernel: self.kernel,
            platform: &platform,
            device: device.as_ref().map(|device| device as &dyn OpenDevice),
            clock: &*self.kernel.clock,
            canary: &canary,
        };
        let ready = Event::Ready { adapter: self.adapter.clone().map(Box::new), init_ns: Some(150_000_000) };
        if report(ready)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        // Stopping is an error inside of the launch, as it is for a process that is killed.
        let stopped = Cell::new(false);
        let ended = launch::run(plan, &stage, &mut |event| {
            if matches!(event, Event::Cell(_)) && report(Event::State(Box::new(quiet_state(plan.launch))))?.is_break() {
                stopped.set(true);
                return Err(Error::argument("stop", "", ""));
            }
            let stop = report(event)?.is_break();
            stopped.set(stop);
            if stop { Err(Error::argument("stop", "", "")) } else { Ok(()) }
        });
        if stopped.get() {
            return Ok(ControlFlow::Break(()));
        }
        ended?;
        report(Event::Done(Box::new(quiet_state(plan.launch))))
    }
}

pub(crate) fn quiet_state(launch: u32) -> LaunchState {
    LaunchState {
        launch,
        load1: Some(0.1),
        foreign_cores: Some(0.01),
        steal: Some(0.0),
        cpu_mhz: None,
        governor: None,
        on_battery: Some(false),
        canary_1t_ns: Some(1_000_000),
        canary_ns: Some(1_000_000),
        canary_gpu_ns: None,
        gpu_clock_mhz: None,
        gpu_celsius: None,
        throttle_reasons: None,
    }
}

pub(crate) fn adapter(software: bool) -> Adapter {
    Adapter {
        name: if software { "llvmpipe (LLVM 19, 256 bits)" } else { "Scripted GPU" }.into(),
        vendor: 0x1234,
        device: 0x5678,
        device_type: if software { "cpu" } else { "discrete" }.into(),
        software,
        backend: "vulkan".into(),
        driver: "scripted".into(),
        driver_info: "1.0".into(),
        limits: BTreeMap::from([("max_buffer_size".into(), 1 << 30)]),
        timestamp_period: None,
    }
}

pub(crate) const PROTOCOL: &str = r#"
version = 1
[scripted]
gate = 5.0
gate_row = "resident"
residency = "nothing to keep"
gate_sizes = [1_000]
sizes = [500, 1_000, 2_000]
contexts = [{ dim = 8 }]
inputs = { distribution = "none", seed = 1, ring = 4 }
tolerance = 0
sources = []
"#;

pub(crate) fn protocol(kernel: &Scripted, text: &str) -> Protocol {
    protocol::parse("scripted.toml", text, &[kernel]).unwrap().remove(0)
}

pub(crate) fn header(protocol: &Protocol, mode: Mode, adapter: Option<Adapter>, seed: u64) -> ResultFile {
    ResultFile {
        schema: SCHEMA.into(),
        kernel: "scripted".into(),
        run: Run {
            id: "0123abcd".into(),
            started_utc: "2026-01-01T00:00:00Z".into(),
            ended_utc: "2026-01-01T00:10:00Z".into(),
            argv: vec!["gate".into(), "scripted".into()],
            seed,
            mode,
            looks: 1,
            complete: false,
            resumed: vec![],
        },
        protocol: protocol.record("0".repeat(64).as_str(), protocol.plan.max_seconds_per_size),
        code: Code {
            version: "0.1.0".into(),
            commit: Some("a".repeat(40)),
            dirty: Some(false),
            binary_sha256: "0".repeat(64),
            rustc: "rustc 1.95.0".into(),
            profile: "release".into(),
            target: "x86_64-unknown-linux-gnu".into(),
            wgpu: Some("30.0.2".into()),
            kernel_hash: "1".repeat(64),
            baseline_hash: "2".repeat(64),
        },
        machine: Machine {
            machine_id: "scripted-00000000".into(),
            env_id: "00000000".into(),
            cpu: Cpu {
                brand: "Scripted CPU".into(),
                cores_physical: Some(1),
                cores_logical: 1,
                simd_used: "scalar".into(),
                simd_available: vec!["scalar".into()],
                l1d_bytes: None,
                l2_bytes: None,
                l3_bytes: None,
            },
            ram_bytes: 1 << 34,
            os: "Scripted 1".into(),
            kernel: "1.0".into(),
            container: None,
            hypervisor: None,
            adapter,
            ceilings: Ceilings::default(),
        },
        planned: vec![],
        state: vec![],
        agreement: vec![],
        rows: vec![],
        gates: vec![],
        crossovers: vec![],
        verdict: KernelVerdict { verdict: Verdict::Inconclusive, reason: None },
        samples: Samples { path: String::new(), sha256: String::new(), rows: 0 },
    }
}

/// Keeps everything in memory and stops after so many cells.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) samples: Vec<Sample>,
    pub(crate) kept: u32,
    pub(crate) stop_after: Option<u32>,
    pub(crate) stop: std::rc::Rc<Cell<bool>>,
}

impl Keeper for Memory {
    fn keep(&mut self, result: &mut ResultFile, new: &[Sample]) -> Result<(), Error> {
        self.samples.extend_from_slice(new);
        result.samples.rows = self.samples.len() as u64;
        self.kept += 1;
        self.stop.set(self.stop_after.is_some_and(|after| self.kept >= after));
        Ok(())
    }
    fn progress(&mut self, _: &str, done: u64, total: u64, _: &str) {
        assert!(done <= total, "{done} of {total}");
    }
}

pub(crate) struct Outcome {
    pub(crate) result: ResultFile,
    pub(crate) samples: Vec<Sample>,
    pub(crate) ended: Result<Ended, Error>,
}

/// A whole run.
pub(crate) struct Setup<'a> {
    pub(crate) script: Script,
    pub(crate) text: &'a str,
    pub(crate) mode: Mode,
    pub(crate) looks: u32,
    pub(crate) adapter: Option<Adapter>,
    pub(crate) seed: u64,
    pub(crate) stop_after: Option<u32>,
    pub(crate) profile: &'a str,
}

impl Setup<'_> {
    pub(crate) fn new(ratio: f64, weather: Weather, seed: u64) -> Self {
        let script = Script {
            cpu_ns: ratio * 7.5e6,
            gpu_ns: 7.5e6,
            weather,
            wrong: None,
            lost: false,
            axes: NUMBERS,
            no_gpu: None,
        };
        Self {
            script,
            text: PROTOCOL,
            mode: Mode::Full,
            looks: 1,
            adapter: Some(adapter(false)),
            seed,
            stop_after: None,
            profile: "release",
        }
    }

    pub(crate) fn run(&self) -> Outcome {
        self.go_on(None)
    }

    /// From what an interrupted run left, or from nothing.
    pub(crate) fn go_on(&self, left: Option<(ResultFile, Vec<Sample>)>) -> Outcome {
        let kernel = Scripted::new(self.script, self.seed);
        let mut protocol = protocol(&kernel, self.text);
        if self.mode == Mode::Null {
            protocol = protocol.null_control();
        }
        if self.mode == Mode::Quick {
            protocol = protocol.quick();
        }
        let mut result = header(&protocol, self.mode, self.adapter.clone(), self.seed);
        result.run.looks = self.looks;
        result.code.profile = self.profile.into();
        let mut before = Vec::new();
        if let Some((left, samples)) = left {
            (result, before) = (left, samples);
            result.run.resumed.push(Resumed {
                interrupted_utc: result.run.ended_utc.clone(),
                resumed_utc: "2026-01-01T01:00:00Z".into(),
                samples: before.len() as u64,
                sha256: sha256(&before),
            });
        }
        let mut keeper = Memory { samples: before.clone(), stop_after: self.stop_after, ..Memory::default() };
        let stop = keeper.stop.clone();
        let mut launcher = InProcess { kernel: &kernel, adapter: self.adapter.clone() };
        let settings = Settings { device: "auto".into(), threads: THREADS };
        let ended = measure(&protocol, &settings, &mut result, before, &mut launcher, &mut keeper, &|| stop.get());
        Outcome { result, samples: keeper.samples, ended }
    }
}

fn sha256(samples: &[Sample]) -> String {
    let csv = lodestar::results::samples::to_csv(samples, true).unwrap();
    lodestar::results::hex(&sha2::Sha256::digest(csv))
}

/// The protocol with one size, for tests that run many times.
pub(crate) fn one_size() -> String {
    PROTOCOL.replace("[500, 1_000, 2_000]", "[1_000]")
}
