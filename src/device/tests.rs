//! The device layer on whatever adapter there is. `LODESTAR_GPU=require|auto|off` says what to do without one.

use super::*;

/// A device for a test: `require` fails where there is none, `auto` says so and skips, `off` skips by name.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn device(test: &str, options: Options) -> Option<Arc<Device>> {
    let mode = std::env::var("LODESTAR_GPU").unwrap_or_else(|_| "auto".to_owned());
    if mode == "off" {
        eprintln!("{test}: skipped, LODESTAR_GPU=off");
        return None;
    }
    assert!(matches!(mode.as_str(), "auto" | "require"), "LODESTAR_GPU: expected require, auto or off, found {mode}");
    let choice = if choose(&Choice::Gpu, &adapters()).is_ok() { Choice::Gpu } else { Choice::Software };
    match Device::open_with(&choice, options) {
        Ok(device) => {
            eprintln!("{test}: on {}", device.info().name);
            Some(device)
        }
        Err(DeviceError::NoAdapter { wanted, hint }) if mode == "auto" => {
            eprintln!("{test}: skipped, no {wanted} adapter: {hint}");
            None
        }
        Err(error) => panic!("{test}: {error}"),
    }
}

/// Splitmix64: a stream for every seed.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

fn ramp(len: u32) -> Vec<u32> {
    (0..len).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

#[test]
fn what_goes_up_comes_down_at_every_size_around_a_staging_chunk() {
    let Some(device) = device("round trip", Options::default()) else { return };
    let chunk = u32::try_from(device.staging.chunk_bytes / 4).unwrap();
    for len in [1, 2, 3, 1_000, chunk - 1, chunk, chunk + 1, 4 * chunk + 3] {
        let values = ramp(len);
        let buffer = device.buffer("round trip", values.len()).unwrap();
        device.upload(&buffer, 0, &values).unwrap();
        let mut back = vec![0; values.len()];
        device.download(&buffer, 0, &mut back).unwrap();
        assert!(back == values, "{len} values");
    }
}

#[test]
fn many_small_uploads_share_a_chunk_and_keep_their_places() {
    let Some(device) = device("small uploads", Options::default()) else { return };
    let buffer = device.buffer::<u32>("small uploads", 3_000).unwrap();
    let mut commands = device.commands("small uploads");
    for first in (0..3_000_u32).step_by(3) {
        commands.upload(&buffer, first as usize, &[first, first + 1, first + 2]).unwrap();
    }
    let download = commands.download(&buffer, 0, 3_000).unwrap();
    let submission = commands.submit().unwrap();
    let mut back = vec![0; 3_000];
    submission.read(&download, &mut back).unwrap();
    assert!(back.iter().copied().eq(0..3_000));
}

#[test]
fn a_fresh_buffer_is_zero_and_an_empty_one_is_possible() {
    let Some(device) = device("fresh buffers", Options::default()) else { return };
    let mut values = [7_u32; 100];
    device.download(&device.buffer("fresh", 100).unwrap(), 0, &mut values).unwrap();
    assert_eq!(values, [0; 100]);
    let empty = device.buffer::<u32>("empty", 0).unwrap();
    assert!(empty.is_empty());
    device.upload(&empty, 0, &[]).unwrap();
    device.download(&empty, 0, &mut []).unwrap();
}

#[test]
fn copies_beyond_the_end_are_typed_errors() {
    let Some(device) = device("beyond the end", Options::default()) else { return };
    let buffer = device.buffer::<u32>("small", 4).unwrap();
    let error = device.upload(&buffer, 2, &[1, 2, 3]).unwrap_err();
    assert!(matches!(error, DeviceError::Limit { requested: 5, max: 4, .. }), "{error}");
    let error = device.download(&buffer, 4, &mut [0]).unwrap_err();
    assert!(matches!(error, DeviceError::Limit { requested: 5, max: 4, .. }), "{error}");
    device.check().unwrap();
}

#[test]
fn a_buffer_above_the_limit_is_a_typed_error_and_the_device_lives_on() {
    let Some(device) = device("too large", Options::default()) else { return };
    let error = device.buffer::<u32>("huge", usize::MAX / 8).err().unwrap();
    assert!(matches!(error, DeviceError::Limit { .. }), "{error}");
    assert_eq!(device.buffer::<u32>("small", 4).unwrap().len(), 4);
}

#[test]
fn a_validation_error_is_returned_and_not_a_panic() {
    let Some(device) = device("validation", Options::default()) else { return };
    let too_large = device.limits.max_buffer_size.saturating_add(4);
    let error = device.raw_buffer("unchecked", too_large, wgpu::BufferUsages::STORAGE).err().unwrap();
    assert!(matches!(error, DeviceError::Internal { .. } | DeviceError::OutOfMemory { .. }), "{error}");
    device.check().unwrap();
}

#[test]
fn a_broken_shader_is_an_error_with_the_compilers_message() {
    let patch = ShaderPatch::parse("n++=>n += true").unwrap();
    let Some(_) = device("good shader", Options::default()) else { return };
    let choice = if choose(&Choice::Gpu, &adapters()).is_ok() { Choice::Gpu } else { Choice::Software };
    let options = Options { shader_patch: Some(patch), ..Options::default() };
    let error = Device::open_with(&choice, options).unwrap_err();
    assert!(matches!(&error, DeviceError::Shader { shader, .. } if shader == "loop probe"), "{error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}

#[test]
fn a_patch_that_miscounts_is_caught_by_the_probe() {
    let patch = ShaderPatch::parse("n++=>n = 3u").unwrap();
    let Some(_) = device("good shader", Options::default()) else { return };
    let choice = if choose(&Choice::Gpu, &adapters()).is_ok() { Choice::Gpu } else { Choice::Software };
    let options = Options { shader_patch: Some(patch), ..Options::default() };
    let error = Device::open_with(&choice, options).unwrap_err();
    assert!(error.to_string().contains("counted 3 instead of 70000"), "{error}");
}

#[test]
fn a_lost_device_fails_every_later_step() {
    let Some(device) = device("lost", Options::default()) else { return };
    let buffer = device.buffer::<u32>("before", 4).unwrap();
    device.raw.destroy();
    // wgpu reports the loss at the next poll.
    let polled = device.wait("after the loss");
    let upload = device.upload(&buffer, 0, &[1, 2, 3, 4]);
    let fresh = device.buffer::<u32>("after", 4);
    assert!(polled.is_err() || upload.is_err(), "a lost device passed for a live one");
    assert!(fresh.is_err());
    assert!(device.download(&buffer, 0, &mut [0; 4]).is_err());
}

#[test]
fn the_loop_cap_is_known_and_iterations_above_it_are_refused() {
    let Some(device) = device("loop cap", Options::default()) else { return };
    device.check_iterations("short", 50_000).unwrap();
    match device.loop_cap() {
        Some(cap) => {
            assert_eq!(device.info().limits["loop_iterations_per_invocation"], u64::from(cap));
            let error = device.check_iterations("long", 60_000).unwrap_err();
            assert!(matches!(error, DeviceError::Limit { requested: 60_000, .. }), "{error}");
        }
        None => device.check_iterations("long", 10_000_000).unwrap(),
    }
}

#[test]
fn tiny_segments_can_be_forced() {
    let options = Options { segment_bytes: Some(4_096), ..Options::default() };
    let Some(device) = device("segments", options) else { return };
    assert_eq!(device.segment_bytes(), 4_096);
}

#[test]
fn folded_workgroups_cover_every_group_and_stay_under_the_limit() {
    for groups in [0, 1, 2, 65_534, 65_535, 65_536, 131_070, 131_071, 1_000_000, 65_535 * 65_535] {
        let [x, y] = fold(groups, 65_535);
        assert!(x <= 65_535 && y <= 65_535 && x >= 1 && y >= 1);
        assert!(u64::from(x) * u64::from(y) >= groups, "{groups}");
        assert!(u64::from(x) * u64::from(y - 1) < groups.max(1), "{groups}: a row too many");
    }
}

#[test]
fn a_software_adapter_gives_no_time() {
    let Some(device) = device("times", Options::default()) else { return };
    if device.is_software() {
        assert!(!device.timestamps_hold());
        assert_eq!(device.ceilings().unwrap(), None);
    }
    // The code behind it runs on any adapter.
    device.check_timestamps().unwrap();
    let ceilings = device.measure_ceilings().unwrap();
    assert!(ceilings.floor_ns > 0 && ceilings.upload_bytes_per_s > 0.0 && ceilings.download_bytes_per_s > 0.0);
}

#[test]
fn a_patch_is_read_as_two_texts() {
    assert_eq!(ShaderPatch::parse("a=>b"), Some(ShaderPatch { from: "a".into(), to: "b".into() }));
    assert_eq!(ShaderPatch::parse("a=>"), Some(ShaderPatch { from: "a".into(), to: String::new() }));
    assert_eq!(ShaderPatch::parse("=>b"), None);
    assert_eq!(ShaderPatch::parse("ab"), None);
}

#[test]
fn a_forgotten_pipeline_is_compiled_again_and_an_allocation_is_counted() {
    let Some(device) = device("forgotten", Options::default()) else { return };
    let shader = timing::loop_probe();
    let first = device.pipeline(&shader).unwrap();
    assert!(Arc::ptr_eq(&first, &device.pipeline(&shader).unwrap()));
    device.forget_pipelines();
    let compiled = device.compile_ns();
    assert!(!Arc::ptr_eq(&first, &device.pipeline(&shader).unwrap()));
    assert!(device.compile_ns() > compiled);
    let before = device.allocations();
    let buffer = device.buffer::<u32>("counted", 4).unwrap();
    assert_eq!(device.allocations(), before + 1);
    // The upload goes where its name says: through the ring, which is made at its first use and kept.
    assert_eq!((device.upload_path(), device.wait_strategy()), ("staging_ring", "poll_wait"));
    device.upload(&buffer, 0, &[1, 2, 3, 4]).unwrap();
    for _ in 0..4 {
        device.upload(&buffer, 0, &[5, 6, 7, 8]).unwrap();
    }
    let kept = device.allocations();
    assert!(kept > before + 1, "the ring's chunks are buffers");
    device.upload(&buffer, 0, &[1, 2, 3, 4]).unwrap();
    assert_eq!(device.allocations(), kept);
}
