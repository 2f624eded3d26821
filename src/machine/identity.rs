//! The two ids: `machine_id` over the hardware, `env_id` over what runs on it.

use super::{Build, Machine};
use sha2::{Digest, Sha256};

/// `<cpu>[+<gpu>]-<8 hex digits>`, e.g. `ryzen9-7950x+rtx4090-3fa9c1d2`; over CPU brand, cores, memory in whole GiB, and
/// the GPU's name, PCI ids and type. A software adapter is not hardware: with and without one it is the same machine.
pub(super) fn machine_id(machine: &Machine, cores_online: u32) -> String {
    let ram_gib = (machine.ram_bytes as f64 / f64::from(1 << 30)).round();
    let mut hardware = format!(
        "cpu {}\ncores {:?} {cores_online}\nram {ram_gib} GiB\n",
        machine.cpu.brand.trim(),
        machine.cpu.cores_physical
    );
    let mut slug = slug(&machine.cpu.brand).unwrap_or_else(|| "cpu".to_owned());
    if let Some(gpu) = machine.gpu() {
        hardware += &format!("gpu {}\npci {:04x}:{:04x}\ntype {}\n", gpu.name, gpu.vendor, gpu.device, gpu.device_type);
        slug = format!("{slug}+{}", self::slug(&gpu.name).unwrap_or_else(|| "gpu".to_owned()));
    }
    format!("{slug}-{}", hex8(&hardware))
}

/// 8 hex digits over the hardware and OS, kernel, adapter driver, backend, wgpu, rustc.
pub(super) fn env_id(machine: &Machine, build: &Build) -> String {
    let adapter = machine.adapter.as_ref().map_or_else(
        || "none".to_owned(),
        |adapter| format!("{}\n{}\n{}\n{}", adapter.name, adapter.backend, adapter.driver, adapter.driver_info),
    );
    hex8(&format!(
        "machine {}\nos {}\nkernel {}\nadapter {adapter}\nwgpu {:?}\nrustc {}\n",
        machine.machine_id, machine.os, machine.kernel, build.wgpu, build.rustc
    ))
}

fn hex8(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A brand as a short name for folders: lower case, letters, digits and `-`. `None` when nothing is left of it.
///
/// `Intel(R) Core(TM) i7-10700K CPU @ 3.80GHz` -> `core-i7-10700k`; `NVIDIA GeForce RTX 4090` -> `rtx4090`.
fn slug(brand: &str) -> Option<String> {
    /// Says nothing that the rest of the name does not say.
    const BOILERPLATE: [&str; 15] = [
        "amd",
        "corporation",
        "cpu",
        "edition",
        "gen",
        "geforce",
        "generation",
        "gpu",
        "graphics",
        "inc",
        "intel",
        "nvidia",
        "processor",
        "series",
        "laptop",
    ];
    /// A family whose number belongs to its name: Ryzen 9, RTX 4090, RX 7900.
    const NUMBERED: [&str; 5] = ["ryzen", "rtx", "gtx", "rx", "ultra"];
    const LONGEST: usize = 40;

    let brand = brand.to_lowercase();
    let brand = without_parentheses(&brand);
    // What follows is the clock, the graphics inside a CPU, or the bus.
    let brand = [" @", " with ", " w/ ", "/pcie"]
        .iter()
        .fold(brand.as_str(), |rest, cut| rest.split(cut).next().unwrap_or(rest));
    let mut words: Vec<String> = Vec::new();
    for word in brand.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
        let word = word.trim_matches('-');
        let ordinal = word.ends_with("th") || word.ends_with("nd") || word.ends_with("rd") || word.ends_with("st");
        let generation = ordinal && word.starts_with(|c: char| c.is_ascii_digit());
        if word.is_empty() || BOILERPLATE.contains(&word) || generation || word.ends_with("-core") {
            continue;
        }
        match words.last_mut() {
            Some(last) if NUMBERED.contains(&last.as_str()) && word.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut slug = words.join("-");
    slug.truncate(LONGEST);
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                // `Core(TM)i7` is two words.
                kept.push(' ');
            }
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::{Adapter, Ceilings, Cpu};
    use super::*;

    fn machine(adapter: Option<Adapter>) -> Machine {
        Machine {
            machine_id: "xeon-00000000".into(),
            env_id: String::new(),
            cpu: Cpu {
                brand: "AMD Ryzen 9 7950X 16-Core Processor".into(),
                cores_physical: Some(16),
                cores_logical: 32,
                simd_used: "avx512".into(),
                simd_available: vec!["avx512".into(), "avx2".into()],
                l1d_bytes: None,
                l2_bytes: None,
                l3_bytes: None,
            },
            ram_bytes: 67_254_870_016,
            os: "Debian GNU/Linux 13".into(),
            kernel: "6.12.1".into(),
            container: None,
            hypervisor: None,
            adapter,
            ceilings: Ceilings::default(),
        }
    }

    fn adapter(name: &str, software: bool) -> Adapter {
        Adapter {
            name: name.into(),
            vendor: 0x10de,
            device: 0x2684,
            device_type: if software { "cpu" } else { "discrete" }.into(),
            software,
            backend: "vulkan".into(),
            driver: "NVIDIA".into(),
            driver_info: "570.1".into(),
            limits: std::collections::BTreeMap::new(),
            timestamp_period: Some(1.0),
        }
    }

    #[test]
    fn brands_become_short_names() {
        let brands = [
            ("Intel(R) Xeon(R) Processor", "xeon"),
            ("Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", "xeon-platinum-8370c"),
            ("Intel(R) Core(TM) i7-10700K CPU @ 3.80GHz", "core-i7-10700k"),
            ("13th Gen Intel(R) Core(TM) i7-13700K", "core-i7-13700k"),
            ("Intel(R) Core(TM) Ultra 7 155H", "core-ultra7-155h"),
            ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen9-7950x"),
            ("AMD Ryzen 7 5800U with Radeon Graphics", "ryzen7-5800u"),
            ("AMD EPYC 7763 64-Core Processor", "epyc-7763"),
            ("Apple M1 Pro", "apple-m1-pro"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
            ("NVIDIA GeForce RTX 4090/PCIe/SSE2", "rtx4090"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
            ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "radeon-rx7900-xtx"),
            ("Intel(R) Arc(tm) A770 Graphics (DG2)", "arc-a770"),
            ("Intel(R) UHD Graphics 630 (CFL GT2)", "uhd-630"),
            ("../../etc/passwd", "etc-passwd"),
        ];
        for (brand, expected) in brands {
            assert_eq!(slug(brand).as_deref(), Some(expected), "{brand}");
        }
        for nothing in ["", "   ", "Intel(R) CPU @ 2.00GHz", "(unclosed"] {
            assert_eq!(slug(nothing), None, "{nothing:?}");
        }
        assert!(slug(&"very long name ".repeat(20)).unwrap().len() <= 40);
    }

    #[test]
    fn the_machine_id_is_pinned_and_names_cpu_and_gpu() {
        let id = machine_id(&machine(Some(adapter("NVIDIA GeForce RTX 4090", false))), 32);
        assert_eq!(id, "ryzen9-7950x+rtx4090-1a02c0d1", "changing the hashed text gives every machine a new id");
    }

    #[test]
    fn only_hardware_changes_the_machine_id() {
        let bare = machine_id(&machine(None), 32);
        assert_eq!(machine_id(&machine(Some(adapter("llvmpipe (LLVM 15.0.6, 256 bits)", true))), 32), bare);
        let mut other = machine(None);
        other.os = "Fedora".into();
        other.kernel = "7.0".into();
        other.cpu.simd_used = "avx2".into();
        other.cpu.cores_logical = 4;
        // A few MiB more or less for the firmware are the same memory.
        other.ram_bytes += 5 << 20;
        assert_eq!(machine_id(&other, 32), bare);
        assert_ne!(machine_id(&machine(None), 16), bare);
        other.ram_bytes += 16 << 30;
        assert_ne!(machine_id(&other, 32), bare);
        let gpu = adapter("NVIDIA GeForce RTX 4090", false);
        let gpu_id = machine_id(&machine(Some(gpu.clone())), 32);
        assert_ne!(machine_id(&machine(Some(Adapter { device: 0x2685, ..gpu.clone() })), 32), gpu_id);
        assert_eq!(machine_id(&machine(Some(Adapter { driver_info: "580".into(), ..gpu })), 32), gpu_id);
    }

    #[test]
    fn the_environment_id_changes_with_everything_that_runs_on_the_hardware() {
        let build = Build { rustc: "rustc 1.95.0", wgpu: Some("30.0.0"), ..Build::default() };
        let gpu = adapter("NVIDIA GeForce RTX 4090", false);
        let base = machine(Some(gpu.clone()));
        let mut ids = vec![env_id(&base, &build)];
        ids.push(env_id(&machine(None), &build));
        ids.push(env_id(&machine(Some(Adapter { driver_info: "580".into(), ..gpu.clone() })), &build));
        ids.push(env_id(&machine(Some(Adapter { backend: "dx12".into(), ..gpu })), &build));
        ids.push(env_id(&Machine { os: "Fedora".into(), ..base.clone() }, &build));
        ids.push(env_id(&Machine { kernel: "7.0".into(), ..base.clone() }, &build));
        ids.push(env_id(&base, &Build { rustc: "rustc 1.96.0", ..build }));
        ids.push(env_id(&base, &Build { wgpu: None, ..build }));
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{ids:?}");
    }
}
