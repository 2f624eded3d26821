//! Quantities that print themselves: [`Bytes`], [`Nanos`], [`PerSecond`], and the values of axes: [`AxisValue`].

use std::collections::BTreeMap;
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

/// From what a person writes: `4096`, `1.5GiB`, `500 MB`. The message says what is expected.
impl std::str::FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a size such as 500MB or 4GiB".to_owned();
        let text = text.trim();
        let digits = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let number: f64 = text[..digits].parse().map_err(|_| expected())?;
        let unit = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1_048_576.0,
            "g" | "gib" => 1_073_741_824.0,
            "t" | "tib" => 1_099_511_627_776.0,
            _ => return Err(expected()),
        };
        let bytes = number * unit;
        if !(1.0..9e18).contains(&bytes) {
            return Err("expected at least one byte".into());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range above")]
        Ok(Self(bytes as u64))
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

/// Where a case stands on one of its axes: at a number (256 queries), or at one of the names that the kernel lists (the kind
/// of a matrix, the type of its values). In files it is what it is: a number or a string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "cli", derive(serde::Serialize, schemars::JsonSchema), serde(untagged))]
pub enum AxisValue {
    /// A whole number.
    Number(u64),
    /// A name.
    Name(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl From<u64> for AxisValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for AxisValue {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

/// By hand, so that a value of another kind is refused in words a reader of the file understands.
#[cfg(feature = "cli")]
impl<'de> serde::Deserialize<'de> for AxisValue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = AxisValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 or a name")
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<AxisValue, E> {
                Ok(AxisValue::Number(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<AxisValue, E> {
                let unsigned = u64::try_from(number);
                unsigned
                    .map(AxisValue::Number)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<AxisValue, E> {
                Ok(AxisValue::from(name))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The pinned axes of a case by their names.
pub type Context = BTreeMap<String, AxisValue>;

/// A context in words: `dim 384, k 10, queries 256`. A name says itself what it is: `tf-idf, f64, width 64`.
pub fn in_words<'a>(axes: impl IntoIterator<Item = (&'a String, &'a AxisValue)>) -> String {
    let word = |(axis, value): (&String, &AxisValue)| match value {
        AxisValue::Number(number) => format!("{axis} {number}"),
        AxisValue::Name(name) => name.clone(),
    };
    axes.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_with_its_axis_and_a_name_alone() {
        let axis = |name: &str, value: AxisValue| (name.to_owned(), value);
        let context =
            Context::from([axis("width", 64.into()), axis("values", "f64".into()), axis("matrix", "tf-idf".into())]);
        assert_eq!(in_words(&context), "tf-idf, f64, width 64");
        assert_eq!(context["width"].to_string(), "64");
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_value_is_read_and_written_as_what_it_is() {
        for (text, value) in [("64", AxisValue::Number(64)), ("\"64\"", "64".into()), ("\"f64\"", "f64".into())] {
            assert_eq!(serde_json::from_str::<AxisValue>(text).unwrap(), value);
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
        for text in ["-1", "1.5", "true", "null", "[1]"] {
            let message = serde_json::from_str::<AxisValue>(text).unwrap_err().to_string();
            assert!(message.contains("expected a whole number from 0 or a name"), "{message}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, value) in [
            ("1", 1),
            ("4096 B", 4096),
            ("500MB", 500_000_000),
            ("4GiB", 4 << 30),
            ("1.5g", 3 << 29),
            ("2 kib", 2048),
            ("1tb", 1_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(value)), "{text}");
        }
        for text in ["", "0", "GiB", "-1", "1.2.3", "4 parsecs", "1e30", "99999999TiB", "nan"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

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
