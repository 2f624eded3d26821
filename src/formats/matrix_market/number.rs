//! Numbers as they stand in a line of entries.

/// Powers of ten that f64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Up to here f64 holds every whole number.
const EXACT: u64 = 1 << 53;

/// Whether a word ends before this byte.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The word at the start of `text`.
pub(super) fn word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|&byte| is_blank(byte)).unwrap_or(text.len())]
}

/// A row or column number at the start of `text` and its length; `None` if there is none, or none below 10^19.
#[inline]
pub(super) fn index(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut length = 0;
    while let Some(digit) = text.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        if length == 19 {
            return None;
        }
        value = value * 10 + u64::from(digit);
        length += 1;
    }
    (length > 0 && text.get(length).is_none_or(|&byte| is_blank(byte))).then_some((value, length))
}

/// A number at the start of `text`, correctly rounded to f64, and its length.
#[inline]
pub(super) fn real(text: &[u8]) -> Option<(f64, usize)> {
    short(text).or_else(|| {
        let word = word(text);
        any(word).map(|value| (value, word.len()))
    })
}

/// A decimal whose digits make a whole number that f64 holds exactly and whose exponent is small. One multiplication or
/// division by an exact power of ten is then correctly rounded (Clinger, "How to Read Floating Point Numbers
/// Accurately", 1990). `None` for all others, right or wrong.
#[inline]
fn short(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative || text.first() == Some(&b'+'));
    let mut digits = 0_u64;
    let mut count = 0;
    let mut read = |at: &mut usize| {
        let start = *at;
        while let Some(digit) = text.get(*at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
            digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
            *at += 1;
        }
        count += *at - start;
        *at - start
    };
    read(&mut at);
    let mut exponent = 0_i64;
    if text.get(at) == Some(&b'.') {
        at += 1;
        exponent = -i64::try_from(read(&mut at)).ok()?;
    }
    // 19 digits cannot wrap.
    if count == 0 || count > 19 || digits > EXACT {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = text.get(at + 1);
        at += 1 + usize::from(matches!(sign, Some(b'-' | b'+')));
        let (written, length) = index(&text[at..])?;
        let written = i64::try_from(written).ok().filter(|&written| written < 1000)?;
        exponent += if sign == Some(&b'-') { -written } else { written };
        at += length;
    }
    if text.get(at).is_some_and(|&byte| !is_blank(byte)) {
        return None;
    }
    let power = *POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    let value = if exponent < 0 { digits as f64 / power } else { digits as f64 * power };
    Some((if negative { -value } else { value }, at))
}

/// Any number: of any length, nan and inf by name, or with an exponent as Fortran writes it.
fn any(word: &[u8]) -> Option<f64> {
    let word = std::str::from_utf8(word).ok()?;
    let value = word.parse().ok().or_else(|| fortran(word)?.parse::<f64>().ok())?;
    // A number too large for f64 is no infinity; that one is written as such.
    let named = || word.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'n'));
    (value.is_finite() || named()).then_some(value)
}

/// `1.2D-02`, `1.2d3` and `1.2-102` with an `e`.
fn fortran(word: &str) -> Option<String> {
    if let Some(at) = word.find(['d', 'D']) {
        return Some(format!("{}e{}", &word[..at], &word[at + 1..]));
    }
    // Where three digits of an exponent leave no room for its letter. Not where there is one already.
    let at = word.rfind(['-', '+']).filter(|&at| at > 0)?;
    let before = word.as_bytes()[at - 1];
    (before == b'.' || before.is_ascii_digit()).then(|| format!("{}e{}", &word[..at], &word[at..]))
}

/// A whole number at the start of `text`, its length, and whether f64 holds it exactly.
#[inline]
pub(super) fn whole(text: &[u8]) -> Option<(f64, usize, bool)> {
    let negative = text.first() == Some(&b'-');
    let sign = usize::from(negative || text.first() == Some(&b'+'));
    if let Some((value, length)) = index(&text[sign..])
        && value <= EXACT
    {
        let value = value as f64;
        return Some((if negative { -value } else { value }, sign + length, true));
    }
    let word = word(text);
    let digits = &word[sign..];
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let word = std::str::from_utf8(word).ok()?;
    let value: f64 = word.parse().ok().filter(|value: &f64| value.is_finite())?;
    // Beyond 38 digits nobody knows; then it counts as rounded.
    let exact = word.parse().is_ok_and(|whole: i128| format!("{value:.0}").parse() == Ok(whole));
    Some((value, word.len(), exact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fortran_exponents_are_read_as_exponents() {
        for (text, value) in
            [("1.2D-02", 1.2e-2), ("3.5D+01", 35.0), ("-1d3", -1e3), ("1.25-102", 1.25e-102), ("1.+100", 1e100)]
        {
            assert_eq!(real(text.as_bytes()), Some((value, text.len())), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "x",
            "1x",
            "1.2.3",
            "1e",
            "--1",
            "+-1",
            "1e5e5",
            "1d",
            "0x10",
            "1_0",
            "1,5",
            "e5",
            ".",
            "-",
            "1e400",
            "1D400",
            "-1-",
            "1e-5-3",
            "1e99999999999999999999",
        ] {
            assert_eq!(real(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_and_plain_forms_are_read() {
        assert!(real(b"NaN ").unwrap().0.is_nan());
        assert_eq!(real(b"-inf\n"), Some((f64::NEG_INFINITY, 4)));
        assert_eq!(real(b"Infinity"), Some((f64::INFINITY, 8)));
        assert_eq!(real(b"1. "), Some((1.0, 2)));
        assert_eq!(real(b".5\r\n"), Some((0.5, 2)));
        assert_eq!(real(b"+7\t"), Some((7.0, 2)));
        assert_eq!(real(b"1e-400"), Some((0.0, 6)));
        assert!(real(b"-0").unwrap().0.is_sign_negative());
        assert_eq!(real(b"1.0000000000000000000000000000"), Some((1.0, 30)));
    }

    #[test]
    fn whole_numbers_say_whether_they_are_exact() {
        assert_eq!(whole(b"-12 "), Some((-12.0, 3, true)));
        assert_eq!(whole(b"9007199254740992"), Some((9_007_199_254_740_992.0, 16, true)));
        assert_eq!(whole(b"9007199254740993"), Some((9_007_199_254_740_992.0, 16, false)));
        assert_eq!(whole(b"9007199254740994"), Some((9_007_199_254_740_994.0, 16, true)));
        assert_eq!(whole(b"18446744073709551616"), Some((18_446_744_073_709_551_616.0, 20, true)));
        assert!(!whole(b"18446744073709551617").unwrap().2);
        for text in ["", "-", "1.5", "1e3", "3.0", "x", "0x1"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn indices_end_at_blanks() {
        assert_eq!(index(b"12 3"), Some((12, 2)));
        assert_eq!(index(b"12"), Some((12, 2)));
        for text in ["-1", "1.", "12345678901234567890", "1x", ""] {
            assert_eq!(index(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_rounded_as_the_standard_library_does(
            digits in 0..u64::MAX, shift in 0..64_u32, point in 0..25_usize, exponent in -30..30_i32, sign in "[+-]?"
        ) {
            let mut text = (digits >> shift).to_string();
            text.insert(text.len() - point.min(text.len()), '.');
            for text in [format!("{sign}{text}"), format!("{sign}{text}e{exponent}")] {
                let (value, length) = real(text.as_bytes()).unwrap();
                prop_assert_eq!((value.to_bits(), length), (text.parse::<f64>().unwrap().to_bits(), text.len()), "{}", text);
            }
        }
    }
}
