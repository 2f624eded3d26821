//! Quantities that print themselves: [`Bytes`], [`Nanos`], [`PerSecond`].

use std::fmt;

/// Three significant digits, no exponent: 9.87, 98.7, 987, 9870.
fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude >= 99.95 || magnitude == 0.0 {
        0
    } else if magnitude >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

fn scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(f64, &str)]) -> fmt::Result {
    let (scale, unit) = units.iter().find(|(scale, _)| value >= *scale * 0.9995).unwrap_or(&units[units.len() - 1]);
    f.pad(&format!("{} {unit}", three_digits(value / scale)))
}

/// A number of bytes; prints in powers of 1,024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 5] = [
            (1_099_511_627_776.0, "TiB"),
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1_024.0, "KiB"),
            (1.0, "B"),
        ];
        scaled(f, self.0 as f64, &UNITS)
    }
}

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0 as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
    }
}

/// A rate: so many of a unit per second, in powers of 1,000. `PerSecond(1.5e9, "B")` prints `1.50 GB/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSecond(pub f64, pub &'static str);

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
        let (scale, prefix) = SCALES.iter().find(|(scale, _)| self.0 >= *scale * 0.9995).unwrap_or(&SCALES[4]);
        f.pad(&format!("{} {prefix}{}/s", three_digits(self.0 / scale), self.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_three_digits_and_a_unit() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(1_023).to_string(), "1023 B");
        assert_eq!(Bytes(1_024).to_string(), "1.00 KiB");
        assert_eq!(Bytes(153_600_000).to_string(), "146 MiB");
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Nanos(999_960).to_string(), "1.00 ms");
        assert_eq!(Nanos(12_345_678).to_string(), "12.3 ms");
        assert_eq!(PerSecond(13.2e9, "B").to_string(), "13.2 GB/s");
        assert_eq!(PerSecond(152.6e9, "FLOP").to_string(), "153 GFLOP/s");
    }
}
