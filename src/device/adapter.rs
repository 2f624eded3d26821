//! Which adapters there are, which of them are GPUs, and which one a [`Choice`] takes.

use crate::error::DeviceError;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The value of `--device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The caller decides whether a GPU is worth it; the device layer takes the best GPU, never a software adapter.
    Auto,
    /// No adapter at all.
    Cpu,
    /// The best GPU; an error where there is none.
    Gpu,
    /// The software adapter (lavapipe, WARP, SwiftShader): right results, no published times.
    Software,
    /// The adapter with this number in the list of `lodestar adapters`.
    Index(usize),
    /// The adapter whose name contains this, upper or lower case.
    Named(String),
}

impl FromStr for Choice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "software" => Self::Software,
            _ => text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Index),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu => f.write_str("gpu"),
            Self::Software => f.write_str("software"),
            Self::Index(index) => write!(f, "{index}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// What kind of processor an adapter says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterKind {
    /// A card with its own memory.
    Discrete,
    /// Shares the memory of the CPU.
    Integrated,
    /// A share of a GPU, handed out by a hypervisor.
    Virtual,
    /// A program that runs on the CPU.
    Cpu,
    /// The driver does not say.
    Other,
}

impl AdapterKind {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Cpu => "cpu",
            Self::Other => "other",
        }
    }

    fn of(kind: wgpu::DeviceType) -> Self {
        match kind {
            wgpu::DeviceType::DiscreteGpu => Self::Discrete,
            wgpu::DeviceType::IntegratedGpu => Self::Integrated,
            wgpu::DeviceType::VirtualGpu => Self::Virtual,
            wgpu::DeviceType::Cpu => Self::Cpu,
            wgpu::DeviceType::Other => Self::Other,
        }
    }

    /// Lower is taken first.
    fn rank(self) -> u8 {
        match self {
            Self::Discrete => 0,
            Self::Virtual => 1,
            Self::Integrated => 2,
            Self::Other => 3,
            Self::Cpu => 4,
        }
    }
}

/// An adapter as its driver describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterInfo {
    /// Number in the list of adapters; what `--device N` takes.
    pub index: usize,
    /// Name as the driver gives it.
    pub name: String,
    /// PCI vendor id.
    pub vendor: u32,
    /// PCI device id.
    pub device: u32,
    /// What kind of processor it says it is.
    pub kind: AdapterKind,
    /// Why it counts as a software adapter; `None` for a GPU.
    pub software: Option<String>,
    /// `vulkan`, `metal`, `dx12`.
    pub backend: String,
    /// Driver name.
    pub driver: String,
    /// Driver version.
    pub driver_info: String,
    /// Limits that shape the kernels, by wgpu's name; and `loop_iterations_per_invocation` where a device was opened
    /// and its driver silently cuts loops short.
    pub limits: BTreeMap<String, u64>,
    /// Whether it has timestamp queries. Whether they tell the truth is found out on the open device.
    pub has_timestamps: bool,
    /// Nanoseconds per timestamp tick; only known of an open device with timestamps.
    pub timestamp_period: Option<f64>,
}

impl AdapterInfo {
    /// Whether it is a software adapter: its results count, its times never do.
    pub fn is_software(&self) -> bool {
        self.software.is_some()
    }

    pub(super) fn of(index: usize, adapter: &wgpu::Adapter) -> Self {
        let info = adapter.get_info();
        let kind = AdapterKind::of(info.device_type);
        Self {
            index,
            software: software_reason(kind, &info.name, &info.driver, &info.driver_info),
            name: info.name,
            vendor: info.vendor,
            device: info.device,
            kind,
            backend: info.backend.to_str().to_owned(),
            driver: info.driver,
            driver_info: info.driver_info,
            limits: limits(&adapter.limits()),
            has_timestamps: adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY),
            timestamp_period: None,
        }
    }
}

/// Names by which software adapters are known when their type does not say so. Speed says nothing: a software adapter
/// can be faster than a card on short work.
const SOFTWARE_NAMES: [&str; 6] =
    ["llvmpipe", "lavapipe", "swiftshader", "microsoft basic render driver", "warp", "softpipe"];

fn software_reason(kind: AdapterKind, name: &str, driver: &str, driver_info: &str) -> Option<String> {
    if kind == AdapterKind::Cpu {
        return Some("its device type is CPU".to_owned());
    }
    [("name", name), ("driver", driver), ("driver", driver_info)].iter().find_map(|(what, text)| {
        let lower = text.to_lowercase();
        let words: Vec<_> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        SOFTWARE_NAMES
            .iter()
            // Short names as whole words only: "warp" is also part of other words.
            .find(|known| if known.len() > 4 { lower.contains(*known) } else { words.contains(known) })
            .map(|known| format!("its {what} says {known}"))
    })
}

fn limits(limits: &wgpu::Limits) -> BTreeMap<String, u64> {
    [
        ("max_buffer_size", limits.max_buffer_size),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into()),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into()),
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
        ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment.into()),
        ("min_uniform_buffer_offset_alignment", limits.min_uniform_buffer_offset_alignment.into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// How to get a GPU or a software adapter on this operating system.
pub fn adapter_hint() -> &'static str {
    if cfg!(target_os = "linux") {
        "on Debian or Ubuntu, `apt install libvulkan1 mesa-vulkan-drivers` brings the software adapter; \
         a GPU needs its vendor's Vulkan driver"
    } else if cfg!(target_os = "windows") {
        "install the GPU's driver; the software adapter (WARP) is part of Windows"
    } else if cfg!(target_os = "macos") {
        "macOS brings Metal with it on every supported Mac"
    } else {
        "install a Vulkan driver"
    }
}

/// The one instance of this process: making another costs a tenth of a second.
pub(super) fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(new_instance)
}

fn new_instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    // No validation layers: a debug build must compute as a release build does, and indirect-call validation would
    // cap every buffer at 4 GiB.
    descriptor.flags = wgpu::InstanceFlags::empty();
    wgpu::Instance::new(descriptor)
}

/// Every adapter that wgpu sees, the best first, numbered in that order. Empty where there is no driver.
pub fn adapters() -> Vec<AdapterInfo> {
    enumerate(instance()).into_iter().map(|(info, _)| info).collect()
}

pub(super) fn enumerate(instance: &wgpu::Instance) -> Vec<(AdapterInfo, wgpu::Adapter)> {
    let all = wgpu::Backends::all();
    let adapters = pollster::block_on(instance.enumerate_adapters(all));
    let mut listed: Vec<_> = adapters.into_iter().map(|adapter| (AdapterInfo::of(0, &adapter), adapter)).collect();
    // A stable sort: among equals the driver's own order stays. DX12 after the others, since the same card is usually
    // listed by both.
    listed.sort_by_key(|(info, _)| (info.is_software(), info.kind.rank(), info.backend == "dx12"));
    for (index, (info, _)) in listed.iter_mut().enumerate() {
        info.index = index;
    }
    listed
}

/// The position in `adapters` of the one that `choice` takes.
///
/// # Errors
/// [`DeviceError::NoAdapter`], with what was wanted and how to get it.
pub fn choose(choice: &Choice, adapters: &[AdapterInfo]) -> Result<usize, DeviceError> {
    let missing = |wanted: &str, hint: String| DeviceError::NoAdapter { wanted: wanted.to_owned(), hint };
    let seen = || match adapters {
        [] => format!("wgpu finds none on this computer; {}", adapter_hint()),
        some => {
            let names: Vec<_> = some.iter().map(|info| format!("{} = {}", info.index, info.name)).collect();
            format!("there {} {}", if some.len() == 1 { "is" } else { "are" }, names.join(", "))
        }
    };
    match choice {
        Choice::Auto | Choice::Gpu => adapters.iter().position(|info| !info.is_software()).ok_or_else(|| {
            let hint = match adapters {
                [] => seen(),
                [software, ..] => format!(
                    "the only adapters are software ({}), taken with --device software; a GPU needs its vendor's driver",
                    software.name
                ),
            };
            missing("GPU", hint)
        }),
        Choice::Software => adapters.iter().position(AdapterInfo::is_software).ok_or_else(|| {
            let hint = if adapters.is_empty() { seen() } else { format!("{}; {}", seen(), adapter_hint()) };
            missing("software", hint)
        }),
        Choice::Cpu => Err(missing("CPU", "--device cpu computes without any adapter".to_owned())),
        Choice::Index(index) => {
            if *index < adapters.len() {
                Ok(*index)
            } else {
                Err(missing(&format!("number {index}"), seen()))
            }
        }
        Choice::Named(name) => {
            let wanted = name.to_lowercase();
            let matches: Vec<_> =
                adapters.iter().filter(|info| info.name.to_lowercase().contains(&wanted)).collect();
            let Some(first) = matches.first() else {
                let hint = format!("{}; --device takes auto, cpu, gpu, software, a name or a number", seen());
                return Err(missing(&format!("`{name}`"), hint));
            };
            if let Some(other) = matches.iter().find(|info| info.name != first.name) {
                let hint = format!(
                    "the name fits {} = {} and {} = {}; give more of it, or the number",
                    first.index, first.name, other.index, other.name
                );
                return Err(missing(&format!("single `{name}`"), hint));
            }
            Ok(first.index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(index: usize, name: &str, kind: AdapterKind) -> AdapterInfo {
        AdapterInfo {
            index,
            name: name.into(),
            vendor: 0,
            device: 0,
            kind,
            software: software_reason(kind, name, "", ""),
            backend: "vulkan".into(),
            driver: String::new(),
            driver_info: String::new(),
            limits: BTreeMap::new(),
            has_timestamps: false,
            timestamp_period: None,
        }
    }

    #[test]
    fn a_device_flag_reads_words_numbers_and_names() {
        for (text, choice) in [
            ("auto", Choice::Auto),
            ("cpu", Choice::Cpu),
            ("gpu", Choice::Gpu),
            ("software", Choice::Software),
            ("1", Choice::Index(1)),
            ("RTX 4090", Choice::Named("RTX 4090".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice.clone()));
            assert_eq!(choice.to_string(), text);
        }
    }

    #[test]
    fn software_is_recognised_by_type_and_by_name_but_not_inside_words() {
        use AdapterKind::{Cpu, Discrete, Other};
        assert!(software_reason(Cpu, "some renderer", "", "").is_some());
        for name in
            ["llvmpipe (LLVM 15.0.6, 256 bits)", "SwiftShader Device (LLVM 10)", "Microsoft Basic Render Driver"]
        {
            assert!(software_reason(Other, name, "", "").is_some(), "{name}");
        }
        assert!(software_reason(Discrete, "Device 7", "lavapipe", "").is_some());
        assert!(software_reason(Other, "Direct3D WARP", "", "").is_some());
        for name in ["NVIDIA GeForce RTX 4090", "Warpspeed 9000", "AMD Radeon RX 7900 XTX", "Apple M3"] {
            assert_eq!(software_reason(Discrete, name, "NVIDIA", "570.1"), None, "{name}");
        }
    }

    #[test]
    fn no_adapter_at_all_names_the_package() {
        for choice in [Choice::Auto, Choice::Gpu, Choice::Software, Choice::Index(0), Choice::Named("x".into())] {
            let message = choose(&choice, &[]).unwrap_err().to_string();
            assert!(message.contains("wgpu finds none on this computer"), "{message}");
            if cfg!(target_os = "linux") {
                assert!(message.contains("mesa-vulkan-drivers"), "{message}");
            }
        }
    }

    #[test]
    fn gpu_never_takes_a_software_adapter() {
        let software = [adapter(0, "llvmpipe", AdapterKind::Cpu)];
        let message = choose(&Choice::Gpu, &software).unwrap_err().to_string();
        assert!(message.starts_with("no GPU adapter: the only adapters are software (llvmpipe)"), "{message}");
        assert_eq!(choose(&Choice::Software, &software).unwrap(), 0);
        let both = [adapter(0, "RTX", AdapterKind::Discrete), adapter(1, "llvmpipe", AdapterKind::Cpu)];
        assert_eq!(choose(&Choice::Gpu, &both).unwrap(), 0);
        assert_eq!(choose(&Choice::Auto, &both).unwrap(), 0);
        assert_eq!(choose(&Choice::Software, &both).unwrap(), 1);
    }

    #[test]
    fn a_name_that_fits_two_cards_is_refused_and_both_are_named() {
        let two = [adapter(0, "RTX 4090", AdapterKind::Discrete), adapter(1, "RTX 3090", AdapterKind::Discrete)];
        assert_eq!(choose(&Choice::Named("3090".into()), &two).unwrap(), 1);
        let message = choose(&Choice::Named("rtx".into()), &two).unwrap_err().to_string();
        assert!(message.contains("0 = RTX 4090 and 1 = RTX 3090"), "{message}");
        assert!(choose(&Choice::Index(2), &two).unwrap_err().to_string().contains("no number 2 adapter"));
        assert!(choose(&Choice::Named("voodoo".into()), &two).is_err());
    }
}
