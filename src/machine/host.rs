//! What the operating system says about this computer.

use std::path::Path;
use sysinfo::System;

/// What was found. What is not known is `None`, or `unknown` where a name is needed.
pub(super) struct Host {
    pub(super) brand: String,
    pub(super) cores_physical: Option<u32>,
    /// Logical cores of the machine, whatever this process may use.
    pub(super) cores_online: u32,
    pub(super) caches: Caches,
    pub(super) ram_bytes: u64,
    pub(super) os: String,
    pub(super) kernel: String,
    pub(super) container: Option<String>,
    pub(super) hypervisor: Option<String>,
}

/// Data caches as one core sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Caches {
    pub(super) l1d_bytes: Option<u64>,
    pub(super) l2_bytes: Option<u64>,
    pub(super) l3_bytes: Option<u64>,
}

pub(super) fn detect() -> Host {
    let system = system();
    let cpu = system.as_ref().and_then(|system| system.cpus().first());
    let brand =
        cpu.map(|cpu| cpu.brand().split_whitespace().collect::<Vec<_>>().join(" ")).filter(|brand| !brand.is_empty());
    let cores_online = system.as_ref().map_or(0, |system| system.cpus().len());
    let container_variable = std::env::var("container").ok();
    Host {
        brand: brand.unwrap_or_else(System::cpu_arch),
        cores_physical: System::physical_core_count().ok().and_then(|cores| u32::try_from(cores).ok()),
        cores_online: u32::try_from(cores_online).unwrap_or(u32::MAX),
        caches: caches(Path::new("/")),
        ram_bytes: system.as_ref().map_or(0, System::total_memory),
        os: System::long_os_version().map_or_else(|_| std::env::consts::OS.to_owned(), |os| os.trim().to_owned()),
        kernel: System::kernel_version().unwrap_or_else(|_| "unknown".to_owned()),
        container: container(Path::new("/"), container_variable.as_deref()),
        hypervisor: hypervisor(Path::new("/")),
    }
}

fn system() -> Option<System> {
    use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind};
    let wanted =
        RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()).with_memory(MemoryRefreshKind::nothing().with_ram());
    System::new_with_specifics(wanted).ok()
}

/// Bytes that a process may still take without the system having to swap or to kill; `None` where it does not say.
pub(super) fn available_memory() -> Option<u64> {
    use sysinfo::{MemoryRefreshKind, RefreshKind};
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory).ok()?;
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    Some(limit.min(system.available_memory())).filter(|&bytes| bytes > 0)
}

/// How large a buffer has to be to measure memory and not a cache, within what the machine can spare.
pub(super) fn read_buffer_bytes() -> u64 {
    let system = system();
    let memory = system.as_ref().map(|system| {
        let limits = system.cgroup_limits();
        let total = limits.as_ref().map_or(u64::MAX, |limits| limits.total_memory).min(system.total_memory());
        let free = limits.as_ref().map_or(u64::MAX, |limits| limits.free_memory).min(system.available_memory());
        (total, free)
    });
    buffer_bytes(caches(Path::new("/")).l3_bytes, memory)
}

fn buffer_bytes(l3_bytes: Option<u64>, memory: Option<(u64, u64)>) -> u64 {
    let wanted = l3_bytes.map_or(0, |l3| 4 * l3).max(2 << 30);
    memory.map_or(wanted, |(total, free)| wanted.min(total / 4).min(free / 2))
}

/// First line of a file below `root`, trimmed; `None` when it cannot be read or is empty.
fn line(root: &Path, path: &str) -> Option<String> {
    let text = std::fs::read_to_string(root.join(path)).ok()?;
    let line = text.lines().next()?.trim_matches(['\0', ' ', '\t']).to_owned();
    (!line.is_empty()).then_some(line)
}

/// Linux tells the caches of each core; other systems leave them unknown.
fn caches(root: &Path) -> Caches {
    let mut caches = Caches::default();
    for index in 0..10 {
        let entry = |name: &str| line(root, &format!("sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        let (Some(level), Some(kind), Some(size)) = (entry("level"), entry("type"), entry("size")) else { continue };
        let Some(bytes) = cache_bytes(&size) else { continue };
        match (level.as_str(), kind.as_str()) {
            ("1", "Data" | "Unified") => caches.l1d_bytes = Some(bytes),
            ("2", "Data" | "Unified") => caches.l2_bytes = Some(bytes),
            ("3", "Data" | "Unified") => caches.l3_bytes = Some(bytes),
            _ => {}
        }
    }
    caches
}

/// `2048K` -> 2097152.
fn cache_bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// Container runtimes by the marks they leave; the most specific first.
fn container(root: &Path, variable: Option<&str>) -> Option<String> {
    let name = |name: &str| Some(name.to_owned());
    let control_groups = std::fs::read_to_string(root.join("proc/1/cgroup")).unwrap_or_default();
    if control_groups.contains("kubepods") || root.join("var/run/secrets/kubernetes.io").exists() {
        return name("kubernetes");
    }
    if root.join("run/.containerenv").exists() {
        return name("podman");
    }
    if root.join(".dockerenv").exists() || control_groups.contains("/docker") {
        return name("docker");
    }
    if let Some(runtime) = line(root, "run/systemd/container") {
        return Some(runtime);
    }
    if control_groups.contains("/lxc") {
        return name("lxc");
    }
    let version = line(root, "proc/sys/kernel/osrelease").unwrap_or_default().to_lowercase();
    if version.contains("microsoft") {
        return name("wsl");
    }
    // Set by runtimes for their first process; a word, or it is something else.
    variable
        .filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
        .map(str::to_owned)
}

/// The hypervisor below this system, if any: asked of the CPU, else of the firmware's tables.
fn hypervisor(root: &Path) -> Option<String> {
    hypervisor_of_cpu().unwrap_or_else(|| hypervisor_of_firmware(root))
}

/// `None`: this kind of CPU cannot be asked.
#[cfg(target_arch = "x86_64")]
fn hypervisor_of_cpu() -> Option<Option<String>> {
    use std::arch::x86_64::__cpuid;
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return Some(None);
    }
    let leaf = __cpuid(0x4000_0000);
    let signature: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    Some(Some(hypervisor_name(&signature)))
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_of_cpu() -> Option<Option<String>> {
    None
}

#[cfg(any(target_arch = "x86_64", test))]
fn hypervisor_name(signature: &[u8]) -> String {
    let signature = signature.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = match signature {
        b"KVMKVMKVM" | b"Linux KVM Hv" => "KVM",
        b"Microsoft Hv" => "Hyper-V",
        b"VMwareVMware" => "VMware",
        b"XenVMMXenVMM" => "Xen",
        b"VBoxVBoxVBox" => "VirtualBox",
        b"TCGTCGTCGTCG" => "QEMU (emulated CPU)",
        b" lrpepyh  vr" | b"prl hyperv  " => "Parallels",
        b"bhyve bhyve " => "bhyve",
        b"ACRNACRNACRN" => "ACRN",
        _ => "unrecognised",
    };
    name.to_owned()
}

fn hypervisor_of_firmware(root: &Path) -> Option<String> {
    if let Some(kind) = line(root, "sys/hypervisor/type") {
        return Some(kind);
    }
    let table = |name: &str| line(root, &format!("sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (table("sys_vendor"), table("product_name"));
    let known = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google Compute Engine", "Google Compute Engine"),
        ("Virtual Machine", "Hyper-V"),
        ("Parallels", "Parallels"),
        ("Apple Virtualization", "Apple Virtualization"),
    ];
    let name = known.iter().find(|(mark, _)| vendor.contains(mark) || product.contains(mark));
    // Bare metal in a cloud carries the cloud's name too.
    name.filter(|_| !product.contains("metal")).map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn caches_are_read_by_level_and_instructions_are_not_data() {
        let cache = "sys/devices/system/cpu/cpu0/cache";
        let mut files = Vec::new();
        let entries = [
            ("0", "1", "Data", "48K"),
            ("1", "1", "Instruction", "32K"),
            ("2", "2", "Unified", "2048K"),
            ("3", "3", "Unified", "260M"),
        ];
        for (index, level, kind, size) in entries {
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                files.push((format!("{cache}/index{index}/{name}"), format!("{text}\n")));
            }
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let found = caches(root(&files).path());
        assert_eq!(
            (found.l1d_bytes, found.l2_bytes, found.l3_bytes),
            (Some(49_152), Some(2_097_152), Some(272_629_760))
        );
        assert_eq!(caches(root(&[]).path()), Caches::default());
    }

    #[test]
    fn cache_sizes_have_a_binary_unit() {
        for (text, bytes) in
            [("48K", Some(49_152)), ("1M", Some(1 << 20)), ("512", Some(512)), ("K", None), ("4X", None)]
        {
            assert_eq!(cache_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn containers_are_known_by_their_marks() {
        type Marks = &'static [(&'static str, &'static str)];
        let cases: [(Marks, Option<&str>, Option<&str>); 9] = [
            (&[], None, None),
            (&[(".dockerenv", "")], None, Some("docker")),
            (&[("run/.containerenv", "engine=podman")], Some("oci"), Some("podman")),
            (&[("proc/1/cgroup", "0::/kubepods/besteffort/pod1")], None, Some("kubernetes")),
            (&[("proc/1/cgroup", "4:memory:/docker/0123abc")], None, Some("docker")),
            (&[("run/systemd/container", "systemd-nspawn\n")], None, Some("systemd-nspawn")),
            (&[("proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n")], None, Some("wsl")),
            (&[], Some("lxc"), Some("lxc")),
            (&[], Some("/home/user/x"), None),
        ];
        for (files, variable, expected) in cases {
            assert_eq!(container(root(files).path(), variable).as_deref(), expected, "{files:?}");
        }
    }

    #[test]
    fn hypervisors_are_known_by_signature_or_firmware() {
        assert_eq!(hypervisor_name(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(hypervisor_name(b"Microsoft Hv"), "Hyper-V");
        assert_eq!(hypervisor_name(b"???"), "unrecognised");
        let firmware = |vendor: &str, product: &str| {
            let root = root(&[("sys/class/dmi/id/sys_vendor", vendor), ("sys/class/dmi/id/product_name", product)]);
            hypervisor_of_firmware(root.path())
        };
        assert_eq!(firmware("QEMU\n", "Standard PC\n").as_deref(), Some("QEMU"));
        assert_eq!(firmware("Microsoft Corporation\n", "Virtual Machine\n").as_deref(), Some("Hyper-V"));
        assert_eq!(firmware("Amazon EC2", "c7g.metal"), None);
        assert_eq!(firmware("Dell Inc.", "XPS 13"), None);
        assert_eq!(hypervisor_of_firmware(root(&[("sys/hypervisor/type", "xen\n")]).path()).as_deref(), Some("xen"));
    }

    #[test]
    fn the_buffer_exceeds_the_cache_but_not_the_memory() {
        const GIB: u64 = 1 << 30;
        assert_eq!(buffer_bytes(Some(32 << 20), Some((64 * GIB, 60 * GIB))), 2 * GIB);
        assert_eq!(buffer_bytes(Some(GIB), Some((64 * GIB, 60 * GIB))), 4 * GIB);
        assert_eq!(buffer_bytes(Some(GIB), Some((8 * GIB, 7 * GIB))), 2 * GIB);
        assert_eq!(buffer_bytes(None, Some((64 * GIB, GIB))), GIB / 2);
        assert_eq!(buffer_bytes(None, None), 2 * GIB);
    }
}
