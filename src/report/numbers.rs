//! How numbers are written on the page. An interval is never printed narrower than it is.

/// `5.43x`: three digits.
pub(super) fn ratio(value: f64) -> String {
    format!("{value:.*}x", decimals(value))
}

/// `5.43x [5.21, 5.66]`, the lower end rounded down, the upper one up.
pub(super) fn interval(point: f64, lo: f64, hi: f64) -> String {
    format!("{} {}", ratio(point), band(lo, hi))
}

/// `[5.21, 5.66]`, the lower end rounded down, the upper one up.
pub(super) fn band(lo: f64, hi: f64) -> String {
    let decimals = decimals(lo).max(decimals(hi));
    let scale = 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
    let (mut low, mut high) = ((lo * scale).floor(), (hi * scale).ceil());
    // The product is rounded too.
    if low / scale > lo {
        low -= 1.0;
    }
    if high / scale < hi {
        high += 1.0;
    }
    format!("[{:.decimals$}, {:.decimals$}]", low / scale, high / scale)
}

fn decimals(value: f64) -> usize {
    match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        value if value >= 0.0995 => 3,
        _ => 4,
    }
}

/// `1,048,576`.
pub(super) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `41k`, `1.05M`: at most three digits.
pub(super) fn short(value: u64) -> String {
    let scaled = |divisor: f64, unit: &str| {
        let value = value as f64 / divisor;
        let decimals = if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        let text = format!("{value:.decimals$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text}{unit}")
    };
    match value {
        0..=999 => value.to_string(),
        1_000..=999_499 => scaled(1e3, "k"),
        999_500..=999_499_999 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

/// `92%`, `0.4%`.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() >= 9.95 || percent == 0.0 { format!("{percent:.0}%") } else { format!("{percent:.1}%") }
}

/// First 8 characters: of a commit or a hash.
pub(super) fn short_hash(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_never_printed_narrower_than_it_is() {
        assert_eq!(interval(5.0, 4.999_9, 5.000_1), "5.00x [4.99, 5.01]");
        assert_eq!(interval(7.942, 7.401, 8.299), "7.94x [7.40, 8.30]");
        assert_eq!(interval(0.31, 0.309_99, 0.312_01), "0.310x [0.309, 0.313]");
        assert_eq!(interval(42.0, 41.99, 42.01), "42.0x [41.9, 42.1]");
        assert_eq!(interval(123.4, 120.9, 130.1), "123x [120, 131]");
        assert_eq!(band(0.991, 1.007_2), "[0.991, 1.008]");
        assert_eq!(band(9.91, 10.02), "[9.91, 10.02]");
        for index in 1..2_000 {
            let value = f64::from(index) * 0.013_7;
            let text = interval(value, value, value);
            let (lo, hi) = text.split_once('[').unwrap().1.trim_end_matches(']').split_once(", ").unwrap();
            assert!(lo.parse::<f64>().unwrap() <= value && value <= hi.parse::<f64>().unwrap(), "{value}: {text}");
        }
    }

    #[test]
    fn sizes_are_readable() {
        for (value, long, brief) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1_000, "1,000", "1k"),
            (41_250, "41,250", "41.2k"),
            (100_000, "100,000", "100k"),
            (999_600, "999,600", "1M"),
            (1_048_576, "1,048,576", "1.05M"),
            (16_777_216, "16,777,216", "16.8M"),
            (2_000_000_000, "2,000,000,000", "2G"),
        ] {
            assert_eq!((grouped(value).as_str(), short(value).as_str()), (long, brief));
        }
        assert_eq!((percent(0.918), percent(0.004), percent(0.0)), ("92%".into(), "0.4%".into(), "0%".into()));
    }
}
