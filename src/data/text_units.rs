//! [`Reading`]: how strings become [`Texts`]: what counts as one symbol, and which differences do not count.

use super::{ByteStrings, Symbols, Texts};
use crate::error::Error;
use std::borrow::Cow;
use std::collections::HashMap;
use unicase::UniCase;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};
use unicode_segmentation::UnicodeSegmentation;

/// What one symbol of a string is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// A byte.
    Byte,
    /// A Unicode code point.
    #[default]
    Char,
    /// An extended grapheme cluster (UAX 29): what a reader takes for one character, whatever number of code points it is.
    Grapheme,
}

/// Which spellings of the same text are made one before they are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Normalization {
    /// None: text is compared as it stands.
    #[default]
    None,
    /// Canonical equivalents are the same (NFC): `é` as one code point or as `e` and an accent.
    Nfc,
    /// Compatibility equivalents too (NFKC): also the ligature `ﬁ` and `fi`, full-width and plain letters.
    Nfkc,
}

/// How strings are read.
///
/// Text is normalised, then folded, then normalised again, as folding can undo a normalisation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// What one symbol is.
    pub unit: Unit,
    /// Which spellings are the same.
    pub normalization: Normalization,
    /// Whether upper and lower case are the same: Unicode's default case folding, full, so that `ß` is `ss`.
    pub ignore_case: bool,
}

/// Numbers for the grapheme clusters of several code points. All that is to be compared shares one table.
#[derive(Debug, Clone, Default)]
pub struct Clusters {
    numbers: HashMap<Box<str>, u32>,
}

/// The first number that is no code point.
const FIRST_CLUSTER: u32 = 0x11_0000;

impl Clusters {
    fn number(&mut self, cluster: &str) -> u32 {
        if let Some(&number) = self.numbers.get(cluster) {
            return number;
        }
        let number =
            FIRST_CLUSTER + u32::try_from(self.numbers.len()).expect("each takes more than one byte of memory");
        self.numbers.insert(cluster.into(), number);
        number
    }
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 3] = [Self::Char, Self::Byte, Self::Grapheme];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Grapheme => "grapheme",
        }
    }
}

impl Normalization {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Nfc, Self::Nfkc];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nfc => "nfc",
            Self::Nfkc => "nfkc",
        }
    }

    fn apply(self, text: Cow<'_, str>) -> Cow<'_, str> {
        match self {
            Self::Nfc if is_nfc_quick(text.chars()) != IsNormalized::Yes => text.nfc().collect::<String>().into(),
            Self::Nfkc if is_nfkc_quick(text.chars()) != IsNormalized::Yes => text.nfkc().collect::<String>().into(),
            Self::None | Self::Nfc | Self::Nfkc => text,
        }
    }
}

impl Reading {
    /// The strings as sequences of symbols.
    ///
    /// Cost: bytes, and text that is all ASCII, are taken over as they are, after one look at each byte. Other text takes
    /// 4 bytes a symbol, or 1 where no symbol is above 255.
    ///
    /// # Errors
    /// [`Error::Argument`] with the number of the string and the byte that is not UTF-8, unless bytes are the unit; and
    /// when bytes are to be normalised or folded. [`Error::Limit`] when there is no memory, or a string is too long.
    pub fn texts(&self, strings: ByteStrings, clusters: &mut Clusters) -> Result<Texts, Error> {
        if self.unit == Unit::Byte {
            if self.ignore_case || self.normalization != Normalization::None {
                let found = "bytes, which are compared as they are";
                return Err(Error::argument("texts: unit", "char or grapheme, to normalise or fold", found));
            }
            return Texts::of_bytes(strings);
        }
        let (mut pool, mut offsets) = strings.into_parts();
        if pool.is_ascii() && !self.has_clusters(&pool) {
            if self.ignore_case {
                pool.make_ascii_lowercase();
            }
            return Texts::new(Symbols::Narrow(pool), offsets);
        }
        let mut symbols: Vec<u32> = Vec::new();
        symbols.try_reserve_exact(pool.len()).map_err(|_| Error::Limit {
            what: "memory for texts, in symbols".into(),
            requested: pool.len() as u64,
            max: (isize::MAX as usize / size_of::<u32>()) as u64,
        })?;
        for index in 0..offsets.len() - 1 {
            // The end of the one before has been replaced by its end among the symbols; of this one, only the end is needed.
            let start = symbols.len();
            let bytes = &pool[offsets[index]..offsets[index + 1]];
            if bytes.is_ascii() && !self.has_clusters(bytes) {
                if self.ignore_case {
                    symbols.extend(bytes.iter().map(|byte| u32::from(byte.to_ascii_lowercase())));
                } else {
                    symbols.extend(bytes.iter().map(|&byte| u32::from(byte)));
                }
            } else {
                let text = std::str::from_utf8(bytes).map_err(|error| {
                    let at = error.valid_up_to();
                    let found = format!("{:#04x}", bytes[at]);
                    Error::argument(format!("texts: string {index}, byte {at}"), "UTF-8", found)
                })?;
                self.append(text, &mut symbols, clusters);
            }
            offsets[index] = start;
        }
        let last = offsets.len() - 1;
        offsets[last] = symbols.len();
        Texts::new(Symbols::Wide(symbols), offsets)
    }

    /// Whether ASCII may hold a cluster of several bytes: CR LF is the only one.
    fn has_clusters(&self, ascii: &[u8]) -> bool {
        self.unit == Unit::Grapheme && ascii.contains(&b'\r')
    }

    fn append(&self, text: &str, symbols: &mut Vec<u32>, clusters: &mut Clusters) {
        let mut text = self.normalization.apply(text.into());
        if self.ignore_case {
            text = self.normalization.apply(UniCase::unicode(text).to_folded_case().into());
        }
        if self.unit != Unit::Grapheme {
            symbols.extend(text.chars().map(u32::from));
            return;
        }
        symbols.extend(text.graphemes(true).map(|cluster| {
            let mut points = cluster.chars();
            match (points.next(), points.next()) {
                (Some(point), None) => u32::from(point),
                _ => clusters.number(cluster),
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Text;

    fn texts(reading: Reading, strings: &[&str]) -> Texts {
        reading.texts(strings.iter().collect(), &mut Clusters::default()).unwrap()
    }

    fn symbols(reading: Reading, string: &str) -> Vec<u32> {
        texts(reading, &[string]).get(0).iter().collect()
    }

    fn reading(unit: Unit) -> Reading {
        Reading { unit, ..Reading::default() }
    }

    const FOLDED: Reading = Reading { unit: Unit::Char, normalization: Normalization::None, ignore_case: true };

    #[test]
    fn lengths_are_counted_in_the_unit() {
        for (string, bytes, chars, graphemes) in [
            ("", 0, 0, 0),
            ("abc", 3, 3, 3),
            ("\u{e9}", 2, 1, 1),
            ("e\u{301}", 3, 2, 1),
            ("\u{1f431}", 4, 1, 1),
            ("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", 18, 5, 1),
            ("\u{1f1eb}\u{1f1f7}\u{1f1e9}\u{1f1ea}", 16, 4, 2),
            ("a\r\nb\n\rc", 7, 7, 6),
            ("\r", 1, 1, 1),
            ("a\0b", 3, 3, 3),
            ("\u{4f60}\u{597d}", 6, 2, 2),
        ] {
            for (unit, length) in [(Unit::Byte, bytes), (Unit::Char, chars), (Unit::Grapheme, graphemes)] {
                // Alone, and among strings that lead to wide symbols.
                for strings in [&[string][..], &["\u{100}", string, "z"]] {
                    let texts = texts(reading(unit), strings);
                    let found = texts.length(strings.iter().position(|other| *other == string).unwrap());
                    assert_eq!(found, length, "{string:?} as {unit:?}");
                }
            }
        }
    }

    #[test]
    fn strings_keep_their_places_among_wide_ones() {
        let strings = ["", "plain", "\u{100}", "", "caf\u{e9}", "x\r\ny", "\u{1f431}\u{1f431}", ""];
        let texts = texts(Reading::default(), &strings);
        assert_eq!(texts.len(), strings.len());
        for (text, string) in texts.iter().zip(strings) {
            assert!(text.iter().eq(string.chars().map(u32::from)), "{string:?}");
        }
    }

    #[test]
    fn ascii_and_latin_1_are_narrow_and_the_rest_is_wide() {
        let is_narrow = |strings: &[&str]| matches!(texts(Reading::default(), strings).symbols(), Symbols::Narrow(_));
        assert!(is_narrow(&["abc", ""]) && is_narrow(&["abc", "\u{ff}"]) && is_narrow(&[]));
        assert!(!is_narrow(&["abc", "\u{100}"]));
    }

    #[test]
    fn a_cluster_has_one_number_in_all_that_shares_the_table() {
        let (mut clusters, graphemes) = (Clusters::default(), reading(Unit::Grapheme));
        let first = graphemes.texts(["e\u{301}a\u{30a}x"].iter().collect(), &mut clusters).unwrap();
        let second = graphemes.texts(["a\u{30a}o\u{308}e\u{301}"].iter().collect(), &mut clusters).unwrap();
        let (first, second) = (first.get(0), second.get(0));
        assert_eq!((first.symbol(0), first.symbol(1), first.symbol(2)), (0x11_0000, 0x11_0001, 0x78));
        assert_eq!((second.symbol(0), second.symbol(1), second.symbol(2)), (0x11_0001, 0x11_0002, 0x11_0000));
        // As it stands, a letter with its accent is not the composed letter.
        assert_eq!(symbols(graphemes, "\u{e9}"), [0xe9]);
    }

    #[test]
    fn normalisation_makes_one_of_two_spellings() {
        let of = |normalization, string| symbols(Reading { normalization, ..Reading::default() }, string);
        assert_eq!(of(Normalization::None, "e\u{301}"), [0x65, 0x301]);
        assert_eq!(of(Normalization::Nfc, "e\u{301}"), [0xe9]);
        assert_eq!(of(Normalization::Nfc, "\u{fb01}"), [0xfb01]);
        assert_eq!(of(Normalization::Nfkc, "\u{fb01}e\u{301}"), [0x66, 0x69, 0xe9]);
        // Longer than its bytes.
        assert_eq!(of(Normalization::Nfkc, "\u{fdfa}").len(), 18);
    }

    #[test]
    fn case_is_folded_by_the_full_table() {
        let same = |a: &str, b: &str| assert_eq!(symbols(FOLDED, a), symbols(FOLDED, b), "{a} {b}");
        same("ABC", "abc");
        same("MASSE", "Ma\u{df}e");
        same("\u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}", "\u{3c3}\u{38a}\u{3a3}\u{3a5}\u{3a6}\u{39f}\u{3a3}");
        same("\u{416}\u{41e}\u{420}\u{410}", "\u{436}\u{43e}\u{440}\u{430}");
        same("\u{fb03}", "FFI");
        same("\u{212a}", "k");
        // Plain strings among others.
        let mixed = texts(FOLDED, &["ABC", "\u{100}"]);
        assert!(mixed.get(0).iter().eq("abc".chars().map(u32::from)));
        assert_eq!(mixed.get(1), Text::Wide(&[0x101]));
    }

    #[test]
    fn text_is_normalised_again_after_folding() {
        let reading = Reading { normalization: Normalization::Nfc, ..FOLDED };
        // The combining iota folds to a letter, so that what stood before it can take up the accent that stood behind it.
        let (decomposed, composed) = ("\u{391}\u{345}\u{301}", "\u{1fb4}");
        assert_eq!(symbols(reading, decomposed), symbols(reading, composed));
        // J with caron has a composed lower case only.
        assert_eq!(symbols(reading, "J\u{30c}"), [0x1f0]);
        assert_eq!(symbols(reading, "\u{1f0}"), [0x1f0]);
    }

    #[test]
    fn what_is_not_utf8_is_named_by_string_and_byte() {
        let strings = || [&b"ok"[..], b"caf\xe9", b"\xff"].into_iter().collect::<ByteStrings>();
        for unit in [Unit::Char, Unit::Grapheme] {
            let error = reading(unit).texts(strings(), &mut Clusters::default()).unwrap_err();
            assert_eq!(error.to_string(), "texts: string 1, byte 3: expected UTF-8, found 0xe9");
        }
        let bytes = reading(Unit::Byte).texts(strings(), &mut Clusters::default()).unwrap();
        assert_eq!(bytes.get(2), Text::Narrow(&[0xff]));
        // Two halves of a code point are not one, though they lie side by side in memory.
        let halves = [&b"\xc3"[..], b"\xa9"].into_iter().collect::<ByteStrings>();
        let error = Reading::default().texts(halves, &mut Clusters::default()).unwrap_err();
        assert_eq!(error.to_string(), "texts: string 0, byte 0: expected UTF-8, found 0xc3");
    }

    #[test]
    fn bytes_are_neither_normalised_nor_folded() {
        for reading in [
            Reading { unit: Unit::Byte, ..FOLDED },
            Reading { unit: Unit::Byte, normalization: Normalization::Nfc, ignore_case: false },
        ] {
            let error = reading.texts(["a"].iter().collect(), &mut Clusters::default()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "texts: unit: expected char or grapheme, to normalise or fold, found bytes, which are compared as they are"
            );
        }
    }
}
