//! Hand-made results for the tests of the report.

use super::{CurrentKernel, Record, Settings};
use crate::results::schema::*;
use crate::units::{AxisValue, Context};
use std::collections::BTreeMap;

pub(crate) const GPU_MACHINE: &str = "ryzen9-7950x+rtx4090-3fa9c1d2";
pub(crate) const CPU_MACHINE: &str = "xeon-123f4241";

/// A duration that only the GPU arm of [`CPU_MACHINE`] holds: software adapters must not get as far as the page.
pub(super) const FORBIDDEN_NS: u64 = 77_731_000;

pub(crate) struct Fixture {
    kernel: String,
    machine_id: String,
    day: u32,
    verdict: Verdict,
    reason: Option<String>,
}

impl Fixture {
    pub(crate) fn new(kernel: &str, machine_id: &str) -> Self {
        Self { kernel: kernel.into(), machine_id: machine_id.into(), day: 1, verdict: Verdict::Pass, reason: None }
    }

    pub(super) fn day(mut self, day: u32) -> Self {
        self.day = day;
        self
    }

    pub(crate) fn verdict(mut self, verdict: Verdict, reason: Option<&str>) -> Self {
        self.verdict = verdict;
        self.reason = reason.map(str::to_owned);
        self
    }

    fn gpu(&self) -> bool {
        self.machine_id.contains('+')
    }

    /// Speed-up at the gate size, as the verdict wants it.
    fn at_gate(&self) -> f64 {
        match (self.verdict, self.reason.as_deref()) {
            (Verdict::Fail, Some("slower")) => 0.6,
            (Verdict::Fail, Some("parity")) => 1.0,
            (Verdict::Fail, _) => 1.8,
            (Verdict::Inconclusive, _) => 5.02,
            _ => 7.9,
        }
    }

    pub(crate) fn record(&self) -> Record {
        let started = format!("2026-09-{:02}T10:00:00Z", self.day);
        let stamp = format!("202609{:02}T100000Z", self.day);
        let result = ResultFile {
            schema: SCHEMA.into(),
            kernel: self.kernel.clone(),
            run: Run {
                id: format!("{:08x}", self.day),
                ended_utc: started.replace("T10:00", "T10:24"),
                started_utc: started,
                argv: vec!["gate".into(), self.kernel.clone()],
                seed: 42,
                mode: Mode::Full,
                looks: 1,
                complete: true,
                resumed: Vec::new(),
            },
            protocol: self.protocol(),
            code: code(self.gpu()),
            machine: self.machine(),
            planned: Vec::new(),
            state: (1..=8).map(|launch| self.state(launch)).collect(),
            agreement: self.agreement(),
            rows: self.rows(),
            gates: self.gates(),
            crossovers: self.crossovers(),
            verdict: KernelVerdict { verdict: self.verdict, reason: self.reason.clone() },
            samples: Samples { path: "x.samples.csv".into(), sha256: "5a".repeat(32), rows: 4_000 },
        };
        let path = format!("{}/{}/{stamp}-a1b2c3d4-{:08x}.json", self.machine_id, self.kernel, self.day);
        Record { path, result, withdrawn: None }
    }

    fn machine(&self) -> Machine {
        let adapter = |name: &str, software: bool| Adapter {
            name: name.into(),
            vendor: 0x10de,
            device: 0x2684,
            device_type: if software { "cpu" } else { "discrete" }.into(),
            software,
            backend: "vulkan".into(),
            driver: if software { "llvmpipe" } else { "NVIDIA" }.into(),
            driver_info: if software { "Mesa 22.3.6" } else { "570.86" }.into(),
            limits: BTreeMap::from([("max_buffer_size".into(), 2_147_483_647)]),
            timestamp_period: Some(1.0),
        };
        Machine {
            machine_id: self.machine_id.clone(),
            env_id: "c2205dd2".into(),
            cpu: Cpu {
                brand: if self.gpu() { "AMD Ryzen 9 7950X 16-Core Processor" } else { "Intel(R) Xeon(R) Processor" }
                    .into(),
                cores_physical: Some(2),
                cores_logical: 2,
                simd_used: "avx512".into(),
                simd_available: vec!["avx512".into(), "avx2".into(), "sse4.2".into(), "sse2".into()],
                l1d_bytes: Some(48 << 10),
                l2_bytes: Some(2 << 20),
                l3_bytes: Some(32 << 20),
            },
            ram_bytes: 24 << 30,
            os: "Linux (Debian GNU/Linux 12)".into(),
            kernel: "6.18.44".into(),
            container: None,
            hypervisor: (!self.gpu()).then(|| "KVM".into()),
            adapter: Some(if self.gpu() {
                adapter("NVIDIA GeForce RTX 4090", false)
            } else {
                adapter("llvmpipe (LLVM 15.0.6, 256 bits)", true)
            }),
            ceilings: Ceilings {
                fma_1t_flops: Some(150e9),
                fma_1t_median_flops: Some(148e9),
                fma_flops: Some(300e9),
                fma_median_flops: Some(291e9),
                read_1t_bytes_per_s: Some(15e9),
                read_1t_median_bytes_per_s: Some(14.2e9),
                read_bytes_per_s: Some(30e9),
                read_median_bytes_per_s: Some(28e9),
                read_buffer_bytes: Some(2 << 30),
                threads: Some(2),
                upload_bytes_per_s: Some(12e9),
                download_bytes_per_s: Some(11e9),
                floor_ns: Some(31_000),
            },
        }
    }

    fn state(&self, launch: u32) -> LaunchState {
        LaunchState {
            launch,
            load1: Some(0.1),
            foreign_cores: Some(0.02),
            steal: Some(0.001),
            cpu_mhz: Some(4_500.0),
            governor: Some("schedutil".into()),
            on_battery: Some(false),
            canary_1t_ns: Some(1_000_000 + u64::from(launch) * 2_000),
            canary_ns: Some(1_010_000 + u64::from(launch) * 1_000),
            canary_gpu_ns: self.gpu().then_some(500_000 + u64::from(launch) * 500),
            gpu_clock_mhz: None,
            gpu_celsius: None,
            throttle_reasons: None,
        }
    }

    fn agreement(&self) -> Vec<AgreementRow> {
        let mut rows = Vec::new();
        let tolerance = self.protocol().tolerance;
        for (context, size) in self.cells() {
            for arm in ["simd", "simd_1t", "gpu"] {
                let wrong = arm == "gpu" && self.verdict == Verdict::Invalid;
                rows.push(AgreementRow {
                    size,
                    context: context.clone(),
                    arm: arm.into(),
                    row: "resident".into(),
                    launch: 1,
                    checks: 8,
                    compared: 2_560,
                    exact: if wrong { 2_559 } else { 2_560 },
                    max_error: if wrong { 0.25 } else { 0.12 * tolerance },
                    tolerance,
                    mismatch: wrong.then(|| "query 3, rank 7: expected row 12, found row 13".into()),
                    checksum: "0123456789abcdef".into(),
                });
            }
        }
        rows
    }

    /// CPU: 5 us and 2 ns a row and query pair over 16. GPU: a floor and a slope that give the wanted ratio at the gate.
    fn times(&self, context: &Context, size: u64) -> (f64, f64) {
        let slope = columns(context) as f64 / 16.0 * 20.0;
        let cpu = |size: f64| 5_000.0 + slope * size;
        let gate = 100_000.0;
        let gpu_at_gate = cpu(gate) / self.at_gate();
        let floor = 40_000.0_f64.min(gpu_at_gate / 2.0);
        let size = size as f64;
        (cpu(size), floor + (gpu_at_gate - floor) * size / gate)
    }

    fn rows(&self) -> Vec<TimingRow> {
        let mut rows = Vec::new();
        let first = self.cells()[0].clone();
        for (context, size) in self.cells() {
            let (cpu, gpu) = self.times(&context, size);
            let queries = columns(&context);
            let mut push = |arm: &str, row: &str, threads: Option<u32>, ns: Option<u64>| {
                let reason = ns.is_none().then(|| "software adapter".to_owned());
                rows.push(TimingRow {
                    size,
                    context: context.clone(),
                    arm: arm.into(),
                    row: row.into(),
                    threads,
                    method: ns.map(|_| "host".into()),
                    upload_path: (arm == "gpu").then(|| "staging_ring".into()),
                    wait: (arm == "gpu").then(|| "poll_wait".into()),
                    up_bytes: queries * 384 * 4,
                    down_bytes: queries * 10 * 8,
                    touched_bytes: size * 384 * 4,
                    operations: (2 * 384 * size * queries) as f64,
                    calls_per_slot: Some(10),
                    slots: 96,
                    median_ns: ns,
                    p25_ns: ns.map(|ns| ns - ns / 50),
                    p75_ns: ns.map(|ns| ns + ns / 40),
                    min_ns: ns.map(|ns| ns - ns / 20),
                    max_ns: ns.map(|ns| ns + ns / 5),
                    reason,
                });
            };
            push("simd", "resident", Some(2), Some(whole(cpu)));
            push("simd_1t", "resident", Some(1), Some(whole(cpu * 1.9)));
            push("simd", "one_shot", Some(2), Some(whole(cpu * 1.5)));
            push("simd_1t", "one_shot", Some(1), Some(whole(cpu * 2.6)));
            // The software adapter's result holds a duration that must not be published: the report has to refuse it.
            let gpu_ns = |ns: f64| Some(if self.gpu() { whole(ns) } else { FORBIDDEN_NS });
            if self.verdict != Verdict::Invalid {
                push("gpu", "resident", None, gpu_ns(gpu));
                push("gpu", "one_shot", None, gpu_ns(gpu * 3.0));
                push("gpu", "kernel_only", None, gpu_ns(gpu * 0.7));
                push("gpu", "upload", None, gpu_ns(gpu * 0.15));
                push("gpu", "download", None, gpu_ns(gpu * 0.05));
                push("gpu", "floor", None, gpu_ns(31_000.0));
                push("gpu", "e2e_fresh", None, gpu_ns(gpu * 1.4));
                push("gpu", "idle_start", None, gpu_ns(gpu * 2.2));
                push("gpu", "cold_pipeline", None, gpu_ns(40_000_000.0));
                push("gpu", "cold_first_call", None, gpu_ns(gpu * 5.0));
                if (&context, size) == (&first.0, first.1) {
                    push("gpu", "cold_init", None, gpu_ns(150_000_000.0));
                }
            }
        }
        rows
    }

    fn gates(&self) -> Vec<Gate> {
        let mut gates = Vec::new();
        for (context, size) in self.cells() {
            let (cpu, gpu) = self.times(&context, size);
            for (row, factor) in [("resident", 1.0), ("one_shot", 0.5)] {
                let decides = row == "resident" && size == 100_000;
                let point = cpu / gpu * factor;
                let (lo, hi) = (point * 0.97, point * 1.03);
                let known = self.gpu() && self.verdict != Verdict::Invalid;
                let reason = if hi < 1.0 {
                    "slower"
                } else if lo <= 1.0 {
                    "parity"
                } else {
                    "below_gate"
                };
                let (verdict, reason) = match () {
                    () if !self.gpu() => (Verdict::NoGpu, None),
                    () if self.verdict == Verdict::Invalid => (Verdict::Invalid, Some("mismatch".to_owned())),
                    () if lo >= 5.0 => (Verdict::Pass, None),
                    () if hi < 5.0 => (Verdict::Fail, Some(reason.to_owned())),
                    () => (Verdict::Inconclusive, Some("straddles".to_owned())),
                };
                let flags = if size == 10_000 && self.gpu() {
                    vec![Flag {
                        name: "throttle".into(),
                        effect: FlagEffect::Widens,
                        bound: Some(0.02),
                        detail: "canary 6.1% slower in launch 5".into(),
                    }]
                } else {
                    Vec::new()
                };
                gates.push(Gate {
                    size,
                    context: context.clone(),
                    row: row.into(),
                    decides,
                    baseline: "simd".into(),
                    point: known.then_some(point),
                    lo: known.then_some(lo),
                    hi: known.then_some(hi),
                    i1: known.then_some([lo, hi]),
                    i2: known.then_some([lo, hi]),
                    launches: Vec::new(),
                    launch_sd: known.then_some(0.01),
                    null_cpu: known.then_some(0.001),
                    null_gpu: known.then_some(-0.002),
                    flags,
                    verdict,
                    reason,
                });
            }
        }
        gates
    }

    fn cells(&self) -> Vec<(Context, u64)> {
        let protocol = self.protocol();
        let of = |context: &Context| protocol.sizes.iter().map(|size| (context.clone(), *size)).collect::<Vec<_>>();
        protocol.contexts.iter().flat_map(of).collect()
    }

    /// Of numbers alone, but for `spmm`, which pins names too.
    fn protocol(&self) -> Protocol {
        let protocol = protocol();
        if self.kernel != "spmm" {
            return protocol;
        }
        let matrices =
            [("tf-idf", "f32", 64), ("tf-idf", "f64", 64), ("power-law", "f64", 64), ("power-law", "f64", 512)];
        let contexts = matrices.map(|(matrix, values, width): (_, _, u64)| {
            context([("matrix", matrix.into()), ("values", values.into()), ("width", width.into())])
        });
        Protocol { contexts: contexts.into(), tolerance: 1.0, ..protocol }
    }

    fn crossovers(&self) -> Vec<Crossover> {
        if !self.gpu() || self.verdict != Verdict::Pass {
            return Vec::new();
        }
        let crossover = |context: &Context, level: f64, lo: u64, hi: u64| Crossover {
            context: context.clone(),
            row: "resident".into(),
            level,
            lo: Some(lo),
            hi: Some(hi),
            point: Some(((lo * hi) as f64).sqrt()),
            status: "ok".into(),
        };
        let contexts = self.protocol().contexts;
        contexts
            .iter()
            .flat_map(|context| [crossover(context, 1.0, 1_600, 2_100), crossover(context, 5.0, 31_000, 38_000)])
            .collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a fixture")]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

/// What a call is about: columns of its per-call operand.
fn columns(context: &Context) -> u64 {
    match context.get("queries").or_else(|| context.get("width")) {
        Some(AxisValue::Number(columns)) => *columns,
        other => panic!("no number of columns: {other:?}"),
    }
}

fn context<const N: usize>(axes: [(&str, AxisValue); N]) -> Context {
    axes.map(|(name, value)| (name.to_owned(), value)).into()
}

fn protocol() -> Protocol {
    let context = |queries: u64| context([("dim", 384.into()), ("k", 10.into()), ("queries", queries.into())]);
    Protocol {
        path: "protocols/cosine.toml".into(),
        sha256: "c0".repeat(32),
        gate_row: "resident".into(),
        residency: "the corpus is resident, queries arrive per call".into(),
        gate: 5.0,
        size_axis: "rows".into(),
        gate_sizes: vec![100_000],
        sizes: vec![1_000, 10_000, 100_000],
        contexts: vec![context(16), context(256)],
        alpha: 0.01,
        launches: 8,
        blocks: 6,
        slot_ms: 20,
        rewarm_ms: 50,
        max_seconds_per_size: 120,
        tolerance: 0.0,
        inputs: Inputs { distribution: "clustered".into(), seed: 42, ring: 4, generator_hash: "9e".repeat(32) },
        analysis: Some("The scan reads the corpus once per batch, so the ratio is that of the two memories.".into()),
    }
}

fn code(gpu: bool) -> Code {
    Code {
        version: "0.1.0".into(),
        commit: Some("a1b2c3d4".repeat(5)),
        dirty: Some(false),
        binary_sha256: if gpu { "b1" } else { "b2" }.repeat(32),
        rustc: "rustc 1.95.0".into(),
        profile: "release".into(),
        target: "x86_64-unknown-linux-gnu".into(),
        wgpu: Some("30.0.2".into()),
        kernel_hash: "4e".repeat(32),
        baseline_hash: "ba".repeat(32),
    }
}

pub(super) fn kernels() -> Vec<CurrentKernel> {
    let kernel = |id: &str, title: &str| CurrentKernel {
        id: id.into(),
        title: title.into(),
        kernel_hash: Some("4e".repeat(32)),
        baseline_hash: "ba".repeat(32),
        protocol_path: "protocols/cosine.toml".into(),
        protocol_sha256: Some("c0".repeat(32)),
    };
    vec![kernel("cosine", "Tiled cosine + top-k"), kernel("myers", "Bit-parallel Myers"), kernel("spmm", "CSR SpMM")]
}

pub(super) fn settings() -> Settings {
    Settings { kernels: kernels(), results_link: "../../results".into(), command: "lodestar report".into() }
}
