//! What the device takes: timestamps and whether they tell the truth, the dispatch floor, the transfer ceilings; and
//! the probe for drivers that cut loops short.

use super::shader::params;
use super::{Device, LOOP_CAP, Shader, nanos};
use crate::error::DeviceError;
use std::time::Instant;

params! {
    /// See `loop_probe.wgsl`.
    struct LoopProbe {
        steps: u32,
    }
}

pub(super) fn loop_probe() -> Shader {
    Shader::new("loop probe", &[include_str!("loop_probe.wgsl")], "count").with_params(LoopProbe::LAYOUT)
}

/// More than any known cap.
const PROBE_STEPS: u32 = 70_000;

/// Runs a loop of 70,000 iterations and looks whether all of them happened.
pub(super) fn probe_loop_cap(device: &Device) -> Result<Option<u32>, DeviceError> {
    let pipeline = device.pipeline(&loop_probe())?;
    let counted = device.buffer::<u32>("loop probe", 2)?;
    let params = device.uniforms("loop probe", &[LoopProbe { steps: PROBE_STEPS }])?;
    let group = device.bind(&pipeline, 0, &[counted.binding(), params.binding()])?;
    let mut commands = device.commands("loop probe");
    commands.pass().dispatch(&pipeline, &[(&group, &[params.offset(0)])], [1, 1, 1]);
    let download = commands.download(&counted, 0, 2)?;
    let submission = commands.submit()?;
    let mut values = [0; 2];
    submission.read(&download, &mut values)?;
    match values[0] {
        PROBE_STEPS => Ok(None),
        // The cap is shared by all loops of an invocation; what this one reached is an upper bound of it.
        fewer if fewer >= 1_000 => Ok(Some(fewer.min(LOOP_CAP))),
        wrong => Err(DeviceError::Internal {
            what: "loop probe".to_owned(),
            message: format!("counted {wrong} instead of {PROBE_STEPS}: this driver does not compute"),
        }),
    }
}

/// Two timestamps around a pass.
pub struct Timer {
    pub(super) set: wgpu::QuerySet,
    pub(super) resolved: wgpu::Buffer,
    period: f64,
}

impl Timer {
    pub(super) fn writes(&self) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        }
    }

    /// Nanoseconds between two ticks read back. `None` where they make no sense: some drivers give zeros, and on tiled
    /// GPUs a pass can end before it began.
    pub(super) fn nanoseconds(&self, [begin, end]: [u64; 2]) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, reason = "a duration in nanoseconds, rounded")]
        #[expect(clippy::cast_sign_loss, reason = "positive by the filter")]
        (begin != 0 && end > begin).then(|| ((end - begin) as f64 * self.period).round() as u64)
    }
}

/// Measured ceilings of moving data and of starting work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceilings {
    /// Bytes per second from host memory to the device.
    pub upload_bytes_per_s: f64,
    /// Bytes per second from the device to host memory.
    pub download_bytes_per_s: f64,
    /// Nanoseconds of an empty submission and its wait.
    pub floor_ns: u64,
}

impl Device {
    /// A timer, where the adapter has timestamps.
    ///
    /// # Errors
    /// What the device reports.
    pub fn timer(&self) -> Result<Option<Timer>, DeviceError> {
        let Some(period) = self.info.timestamp_period else { return Ok(None) };
        let set = self.scoped("timer", 0, || {
            self.raw.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("timer"),
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            })
        })?;
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        Ok(Some(Timer { set, resolved: self.raw_buffer("timer", 16, usage)?, period }))
    }

    /// Whether timestamps exist and tell the truth: durations above 0, none longer than the host saw, and twice the
    /// work takes 1.8 to 2.2 times as long. Checked once. Always `false` on a software adapter, whose times are not
    /// published.
    pub fn timestamps_hold(&self) -> bool {
        *self.timestamps.get_or_init(|| !self.is_software() && self.check_timestamps().unwrap_or(false))
    }

    pub(super) fn check_timestamps(&self) -> Result<bool, DeviceError> {
        let Some(timer) = self.timer()? else { return Ok(false) };
        let pipeline = self.pipeline(&loop_probe())?;
        let counted = self.buffer::<u32>("timestamp check", 2)?;
        let params = self.uniforms("timestamp check", &[LoopProbe { steps: 60_000 }])?;
        let group = self.bind(&pipeline, 0, &[counted.binding(), params.binding()])?;
        let time = |dispatches: u32| -> Result<Option<u64>, DeviceError> {
            let start = Instant::now();
            let mut commands = self.commands("timestamp check");
            let mut pass = commands.timed_pass(&timer);
            for _ in 0..dispatches {
                pass.dispatch(&pipeline, &[(&group, &[params.offset(0)])], [1, 1, 1]);
            }
            drop(pass);
            let device = commands.submit_timed(&timer)?;
            let host = nanos(start.elapsed());
            Ok(device.filter(|device| *device <= host))
        };
        // The fastest of a few: the clock ramps up during the first ones.
        let fastest = |dispatches: u32| -> Result<Option<u64>, DeviceError> {
            let mut best: Option<u64> = None;
            for _ in 0..5 {
                let Some(once) = time(dispatches)? else { return Ok(None) };
                best = Some(best.map_or(once, |best| best.min(once)));
            }
            Ok(best)
        };
        let (Some(once), Some(twice)) = (fastest(8)?, fastest(16)?) else { return Ok(false) };
        let ratio = twice as f64 / once as f64;
        Ok((1.8..=2.2).contains(&ratio))
    }

    /// An empty submission, waited for: the least any call costs.
    ///
    /// # Errors
    /// What the device reports.
    pub fn floor(&self) -> Result<(), DeviceError> {
        self.commands("floor").submit()?.wait()
    }

    /// Measures upload, download and floor. `None` on a software adapter: nothing of it is published.
    ///
    /// # Errors
    /// What the device reports.
    pub fn ceilings(&self) -> Result<Option<Ceilings>, DeviceError> {
        if self.is_software() { Ok(None) } else { self.measure_ceilings().map(Some) }
    }

    pub(super) fn measure_ceilings(&self) -> Result<Ceilings, DeviceError> {
        let bytes = self.segment_bytes().min(128 << 20);
        let len = usize::try_from(bytes / 4).unwrap_or(usize::MAX).max(1);
        let buffer = self.buffer::<u32>("ceilings", len)?;
        let mut values = vec![1_u32; len];
        let mut best = [u64::MAX; 3];
        for _ in 0..5 {
            self.wait("ceilings")?;
            let start = Instant::now();
            self.upload(&buffer, 0, &values)?;
            self.wait("ceilings")?;
            best[0] = best[0].min(nanos(start.elapsed()));
            let start = Instant::now();
            self.download(&buffer, 0, &mut values)?;
            best[1] = best[1].min(nanos(start.elapsed()));
        }
        for _ in 0..50 {
            let start = Instant::now();
            self.floor()?;
            best[2] = best[2].min(nanos(start.elapsed()));
        }
        let rate = |ns: u64| (len * 4) as f64 * 1e9 / ns.max(1) as f64;
        Ok(Ceilings { upload_bytes_per_s: rate(best[0]), download_bytes_per_s: rate(best[1]), floor_ns: best[2] })
    }
}
