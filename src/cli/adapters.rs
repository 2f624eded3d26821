//! `lodestar adapters`: what wgpu sees, and why each one is or is not a GPU.

use super::Io;
use crate::device::{AdapterInfo, Choice, adapter_hint, adapters, choose};
use crate::units::Bytes;
use serde_json::json;
use std::io::Write;

pub(super) fn run(io: &mut Io) -> anyhow::Result<super::Exit> {
    print(io, &adapters())?;
    Ok(0)
}

fn print(io: &mut Io, found: &[AdapterInfo]) -> anyhow::Result<()> {
    let taken = choose(&Choice::Gpu, found).ok();
    if io.json {
        let list: Vec<_> = found
            .iter()
            .map(|info| {
                json!({
                    "index": info.index,
                    "name": info.name,
                    "vendor": info.vendor,
                    "device": info.device,
                    "device_type": info.kind.name(),
                    "software": info.is_software(),
                    "software_reason": info.software,
                    "backend": info.backend,
                    "driver": info.driver,
                    "driver_info": info.driver_info,
                    "timestamps": info.has_timestamps,
                    "limits": info.limits,
                })
            })
            .collect();
        let hint = taken.is_none().then(adapter_hint);
        serde_json::to_writer_pretty(&mut io.out, &json!({ "adapters": list, "gpu": taken, "hint": hint }))?;
        writeln!(io.out)?;
        return Ok(());
    }
    for info in found {
        let of = |name: &str| Bytes(info.limits.get(name).copied().unwrap_or(0));
        writeln!(io.out, "{}  {}", info.index, info.name)?;
        match &info.software {
            Some(reason) => writeln!(
                io.out,
                "   software adapter, not a GPU: {reason}. It can check results; it never gives a time"
            )?,
            None => writeln!(io.out, "   GPU ({})", info.kind.name())?,
        }
        let driver = [info.driver.as_str(), info.driver_info.as_str()].join(" ");
        writeln!(io.out, "   {}, driver {}", info.backend, driver.trim())?;
        writeln!(
            io.out,
            "   largest buffer {}, largest binding {}, workgroup memory {}, timestamps {}",
            of("max_buffer_size"),
            of("max_storage_buffer_binding_size"),
            of("max_compute_workgroup_storage_size"),
            if info.has_timestamps { "yes" } else { "no" },
        )?;
    }
    match taken.and_then(|index| found.get(index)) {
        Some(info) => writeln!(io.out, "--device gpu takes {}  {}", info.index, info.name)?,
        None if found.is_empty() => {
            writeln!(io.out, "No adapter: --device auto computes on the CPU.")?;
            writeln!(io.out, "To get one: {}.", adapter_hint())?;
        }
        None => writeln!(io.out, "No GPU: --device auto computes on the CPU, --device software checks the shaders.")?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::AdapterKind;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Page(Rc<RefCell<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn page(found: &[AdapterInfo], json: bool) -> String {
        let page = Page::default();
        let mut io = Io::new(json, true);
        io.out = Box::new(page.clone());
        print(&mut io, found).unwrap();
        let bytes = page.0.borrow().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn software() -> AdapterInfo {
        AdapterInfo {
            index: 0,
            name: "llvmpipe (LLVM 15.0.6, 256 bits)".into(),
            vendor: 0x10005,
            device: 0,
            kind: AdapterKind::Cpu,
            software: Some("its device type is CPU".into()),
            backend: "vulkan".into(),
            driver: "llvmpipe".into(),
            driver_info: "Mesa 22.3.6".into(),
            limits: [("max_buffer_size".to_owned(), 2_147_483_647)].into(),
            has_timestamps: true,
            timestamp_period: None,
        }
    }

    #[test]
    fn no_adapter_says_how_to_get_one() {
        let page = page(&[], false);
        assert!(page.starts_with("No adapter: --device auto computes on the CPU.\nTo get one: "), "{page}");
        if cfg!(target_os = "linux") {
            assert!(page.contains("mesa-vulkan-drivers"), "{page}");
        }
    }

    #[test]
    fn a_software_adapter_is_said_not_to_be_a_gpu_and_why() {
        let page = page(&[software()], false);
        assert!(page.contains("software adapter, not a GPU: its device type is CPU."), "{page}");
        assert!(page.contains("No GPU: --device auto computes on the CPU"), "{page}");
    }

    #[test]
    fn a_gpu_is_the_one_that_auto_takes() {
        let gpu = AdapterInfo { name: "RTX 4090".into(), kind: AdapterKind::Discrete, software: None, ..software() };
        let page = page(&[gpu, AdapterInfo { index: 1, ..software() }], false);
        assert!(page.ends_with("--device gpu takes 0  RTX 4090\n"), "{page}");
    }

    #[test]
    fn json_holds_the_same() {
        let value: serde_json::Value = serde_json::from_str(&page(&[software()], true)).unwrap();
        assert_eq!(value["adapters"][0]["software"], true);
        assert_eq!(value["adapters"][0]["limits"]["max_buffer_size"], 2_147_483_647_u64);
        assert_eq!(value["gpu"], serde_json::Value::Null);
        assert!(value["hint"].is_string());
    }
}
