//! The machine's state around a launch: what it tells on Linux, and nothing where it tells nothing.

use crate::results::schema::LaunchState;
use std::path::Path;

/// CPU time since boot, in ticks of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuTime {
    total: u64,
    busy: u64,
    steal: u64,
}

/// Watches the machine from its creation on.
pub struct Watch {
    load1: Option<f64>,
    before: Option<CpuTime>,
    own_before: Option<u64>,
}

impl Watch {
    /// Starts watching.
    pub fn start() -> Self {
        Self { load1: load(), before: read("/proc/stat").and_then(|text| cpu_time(&text)), own_before: own_time() }
    }

    /// What happened so far. The canary's fields are left to the caller.
    pub fn so_far(&self, launch: u32) -> LaunchState {
        let after = read("/proc/stat").and_then(|text| cpu_time(&text));
        let spent = self.before.zip(after).map(|(before, after)| CpuTime {
            total: after.total.saturating_sub(before.total),
            busy: after.busy.saturating_sub(before.busy),
            steal: after.steal.saturating_sub(before.steal),
        });
        let spent = spent.filter(|spent| spent.total > 0);
        let own = self.own_before.zip(own_time()).map(|(before, after)| after.saturating_sub(before));
        let cores = read("/proc/stat").map(|text| cores(&text));
        LaunchState {
            launch,
            load1: self.load1,
            foreign_cores: spent.zip(own).zip(cores).map(|((spent, own), cores)| foreign(spent, own, cores)),
            steal: spent.map(|spent| spent.steal as f64 / spent.total as f64),
            cpu_mhz: read("/proc/cpuinfo").and_then(|text| mean_mhz(&text)),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").map(|text| text.trim().to_owned()),
            on_battery: on_battery(Path::new("/sys/class/power_supply")),
            canary_1t_ns: None,
            canary_ns: None,
            canary_gpu_ns: None,
            gpu_clock_mhz: None,
            gpu_celsius: None,
            throttle_reasons: None,
        }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn load() -> Option<f64> {
    read("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

/// The line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal. Guests are counted in user already.
fn cpu_time(stat: &str) -> Option<CpuTime> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).take(8).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = fields[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTime { total: busy + idle + iowait + steal, busy, steal })
}

fn cores(stat: &str) -> usize {
    stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count()
}

/// CPU time of this process, in the same ticks: fields utime and stime, after the name in parentheses.
fn own_time() -> Option<u64> {
    let text = read("/proc/self/stat")?;
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

fn foreign(spent: CpuTime, own: u64, cores: usize) -> f64 {
    spent.busy.saturating_sub(own) as f64 / spent.total as f64 * cores as f64
}

fn mean_mhz(cpuinfo: &str) -> Option<f64> {
    let clocks = cpuinfo.lines().filter(|line| line.starts_with("cpu MHz"));
    let clocks: Vec<f64> = clocks.filter_map(|line| line.split(':').nth(1)?.trim().parse().ok()).collect();
    super::statistics::mean(&clocks)
}

/// Whether a battery gives the power; unknown where there is no folder of supplies, no where there is no battery.
fn on_battery(folder: &Path) -> Option<bool> {
    let supplies = std::fs::read_dir(folder).ok()?;
    let discharging = |path: &Path| {
        let field = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        field("type").trim() == "Battery"
            && field("scope").trim() != "Device"
            && field("status").trim() == "Discharging"
    };
    Some(supplies.flatten().any(|supply| discharging(&supply.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 10 50 800 20 5 15 7 0 0\ncpu0 50 5 25 400 10 2 8 3 0 0\ncpu1 50 5 25 400 10 3 7 4 0 0\nintr 1\n";

    #[test]
    fn cpu_time_leaves_idle_and_steal_out_of_busy() {
        assert_eq!(cpu_time(STAT), Some(CpuTime { total: 1007, busy: 180, steal: 7 }));
        assert_eq!(cores(STAT), 2);
        assert_eq!(cpu_time("cpu  1 2 3"), None);
    }

    #[test]
    fn what_we_used_ourselves_is_not_foreign() {
        let spent = CpuTime { total: 1000, busy: 600, steal: 0 };
        assert!((foreign(spent, 500, 2) - 0.2).abs() < 1e-12);
        assert_eq!(foreign(spent, 700, 2), 0.0);
    }

    #[test]
    fn clocks_are_averaged_and_absent_ones_are_unknown() {
        assert_eq!(mean_mhz("cpu MHz\t\t: 2000.0\nflags: x\ncpu MHz\t\t: 3000.0\n"), Some(2500.0));
        assert_eq!(mean_mhz("Processor: ARM\n"), None);
    }

    #[test]
    fn only_a_discharging_battery_of_the_machine_counts() {
        let folder = tempfile::tempdir().unwrap();
        let supply = |name: &str, fields: &[(&str, &str)]| {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            fields.iter().for_each(|(field, text)| std::fs::write(folder.path().join(name).join(field), text).unwrap());
        };
        assert_eq!(on_battery(&folder.path().join("none")), None);
        assert_eq!(on_battery(folder.path()), Some(false));
        supply("mouse", &[("type", "Battery\n"), ("scope", "Device\n"), ("status", "Discharging\n")]);
        supply("AC", &[("type", "Mains\n"), ("online", "1\n")]);
        assert_eq!(on_battery(folder.path()), Some(false));
        supply("BAT0", &[("type", "Battery\n"), ("status", "Discharging\n")]);
        assert_eq!(on_battery(folder.path()), Some(true));
    }
}
