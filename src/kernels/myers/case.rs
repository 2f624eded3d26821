//! Axis values -> seeded strings; bytes and operations per call; the comparison with the reference.
//!
//! The workload keeps its texts: they are resident, and what they are compared with comes in every call. Distances are whole
//! numbers, so every variant has to give the same ones.

mod distances;
mod inputs;
#[cfg(feature = "gpu")]
mod on_device;

use crate::data::generate_texts;
use crate::error::Error;
use crate::kernels::{Axes, Axis, Case, Footprint, Platform, Prepared};
use distances::Distances;

pub(super) const AXES: Axes = Axes {
    size: "texts",
    context: &[
        Axis::named("form", FORMS),
        Axis::named("strings", STRINGS),
        // With how many patterns each text is compared in a call: with one, but for all pairs.
        Axis::number("patterns"),
        Axis::number("pattern_length"),
        // Symbols. Real strings have lengths of their own, and stand at their mean.
        Axis::number("text_length"),
        Axis::named("edits", EDITS),
        Axis::named("cutoff", CUTOFFS),
    ],
};

/// One pattern and all texts; each text and a pattern of its own; every pattern and every text.
const FORMS: &[&str] = &["one-to-many", "pairs", "all-pairs"];

/// Every seeded kind of [`generate_texts`], and the real ones of [`inputs::REAL`].
#[cfg(feature = "cli")]
const STRINGS: &[&str] = &["letters", "dna", "bytes", "cjk", "words", "names"];
#[cfg(not(feature = "cli"))]
const STRINGS: &[&str] = generate_texts::STRINGS;

/// What makes a text a pattern: so many edits for a hundred symbols. Or patterns and texts are drawn independently.
const EDITS: &[&str] = &["unrelated", "1% edits", "5% edits", "10% edits", "20% edits"];

/// What is above a cutoff is not asked for.
const CUTOFFS: &[&str] =
    &["no cutoff", "cutoff 0", "cutoff 1", "cutoff 2", "cutoff 3", "cutoff 8", "cutoff 16", "cutoff 64"];

/// Of the lengths of seeded strings: all as the axes say, or any up to twice that, empty strings among them.
pub(super) const DISTRIBUTIONS: &[&str] = &["equal lengths", "mixed lengths"];

pub(super) const INPUT_SOURCES: &[(&str, &str)] = &[
    ("generate_texts.rs", include_str!("../../data/generate_texts.rs")),
    ("case/inputs.rs", include_str!("case/inputs.rs")),
];
pub(super) const CPU_SOURCES: &[(&str, &str)] = &[
    ("all_pairs.rs", include_str!("all_pairs.rs")),
    ("batches.rs", include_str!("batches.rs")),
    ("filter.rs", include_str!("filter.rs")),
    ("lanes.rs", include_str!("lanes.rs")),
    ("many_patterns.rs", include_str!("many_patterns.rs")),
    ("one_pattern.rs", include_str!("one_pattern.rs")),
    ("long_pairs.rs", include_str!("long_pairs.rs")),
    ("pairs.rs", include_str!("pairs.rs")),
    ("short_pairs.rs", include_str!("short_pairs.rs")),
    ("simd.rs", include_str!("simd.rs")),
    ("sums.rs", include_str!("sums.rs")),
    ("tile.rs", include_str!("tile.rs")),
    ("../parallel.rs", include_str!("../parallel.rs")),
    ("../../simd/blocks.rs", include_str!("../../simd/blocks.rs")),
];
#[cfg(feature = "gpu")]
pub(super) const GPU_SOURCES: &[(&str, &str)] = super::gpu::SOURCES;
#[cfg(not(feature = "gpu"))]
pub(super) const GPU_SOURCES: &[(&str, &str)] = &[];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneToMany,
    Pairs,
    AllPairs,
}

/// A case in numbers, checked.
#[derive(Debug, Clone, Copy)]
struct Shape<'a> {
    form: Form,
    strings: &'a str,
    texts: usize,
    /// Patterns of a call.
    patterns: usize,
    pattern_length: usize,
    text_length: usize,
    /// Whether lengths are only the mean ones.
    mixed: bool,
    /// Per cent; nothing for unrelated strings.
    edits: Option<u64>,
    cutoff: Option<u32>,
}

impl<'a> Shape<'a> {
    fn of(case: &'a Case) -> Result<Self, Error> {
        for axis in AXES.context {
            if let Some(value) = case.context.get(axis.name) {
                axis.check(value)?;
            }
        }
        let Some(distribution) = DISTRIBUTIONS.iter().position(|name| *name == case.distribution) else {
            let expected = format!("one of {}", DISTRIBUTIONS.join(", "));
            return Err(Error::argument("distribution", expected, &case.distribution));
        };
        let (texts, per_text) = (case.size()?, case.axis("patterns")?);
        for (what, value) in [("texts", texts), ("patterns", per_text)] {
            if value == 0 {
                return Err(Error::argument(what, "at least 1", value));
            }
        }
        let form = match case.name("form")? {
            "one-to-many" => Form::OneToMany,
            "pairs" => Form::Pairs,
            _ => Form::AllPairs,
        };
        if form != Form::AllPairs && per_text != 1 {
            let expected = format!("1 for {}: a text is compared with one pattern", case.name("form")?);
            return Err(Error::argument("patterns", expected, per_text));
        }
        let shape = Self {
            form,
            strings: case.name("strings")?,
            texts,
            patterns: if form == Form::Pairs { texts } else { per_text },
            pattern_length: case.axis("pattern_length")?,
            text_length: case.axis("text_length")?,
            mixed: distribution == 1,
            edits: number_of(case.name("edits")?, |name| name.strip_suffix("% edits")),
            cutoff: number_of(case.name("cutoff")?, |name| name.strip_prefix("cutoff ")),
        };
        shape.check()?;
        Ok(shape)
    }

    fn check(&self) -> Result<(), Error> {
        if self.edits.is_some() && self.pattern_length != self.text_length {
            let expected = format!("{}, as long as the text that is edited", self.text_length);
            return Err(Error::argument("pattern_length", expected, self.pattern_length));
        }
        #[cfg(feature = "cli")]
        if let Some(real) = inputs::real(self.strings) {
            for (what, length) in [("text_length", self.text_length), ("pattern_length", self.pattern_length)] {
                if length != real.mean {
                    let expected = format!("{}, the mean of {}", real.mean, self.strings);
                    return Err(Error::argument(what, expected, length));
                }
            }
            at_most(self.strings, self.texts.max(self.patterns), real.strings)?;
        }
        for (what, length) in [("text_length", self.text_length), ("pattern_length", self.pattern_length)] {
            at_most(what, length, crate::data::LONGEST / 2)?;
        }
        Ok(())
    }

    /// Distances of a call.
    fn pairs(&self) -> u64 {
        match self.form {
            Form::OneToMany | Form::Pairs => self.texts as u64,
            Form::AllPairs => (self.texts as u64).saturating_mul(self.patterns as u64),
        }
    }

    /// So many strings as [`Texts`](crate::data::Texts): symbols and offsets.
    fn bytes(&self, strings: usize, length: usize) -> u64 {
        // Insertions and deletions are as many; a little more for chance.
        let symbols = (strings as u64).saturating_mul(length as u64 + 1 + length as u64 / 50);
        let width = if self.strings == "cjk" { 4 } else { 1 };
        symbols.saturating_mul(width).saturating_add((strings as u64).saturating_mul(8)).saturating_add(8)
    }

    fn texts_bytes(&self) -> u64 {
        self.bytes(self.texts, self.text_length)
    }

    fn patterns_bytes(&self) -> u64 {
        self.bytes(self.patterns, self.pattern_length)
    }
}

/// The number in a name, or nothing for a name without one.
fn number_of<N: std::str::FromStr>(name: &str, strip: impl Fn(&str) -> Option<&str>) -> Option<N> {
    strip(name).and_then(|number| number.parse().ok())
}

fn at_most(what: &str, requested: usize, max: usize) -> Result<(), Error> {
    if requested <= max {
        return Ok(());
    }
    Err(Error::Limit { what: what.into(), requested: requested as u64, max: max as u64 })
}

/// Lengths around the widths of words and of several words.
const AWKWARD: [u64; 14] = [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257];

/// Every form with every kind of strings at lengths around words' widths, empty strings, cutoffs that some distances meet
/// exactly; real strings; a few long ones.
pub(super) fn check_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |form: &str, strings: &str, counts: [u64; 2], lengths: [u64; 2], edits: &str, cutoff: &str, mixed| {
        let [texts, patterns] = counts;
        let [pattern_length, text_length] = lengths;
        let context = [
            ("form", form.into()),
            ("strings", strings.into()),
            ("patterns", patterns.into()),
            ("pattern_length", pattern_length.into()),
            ("text_length", text_length.into()),
            ("edits", edits.into()),
            ("cutoff", cutoff.into()),
        ];
        let context = context.map(|(name, value)| (name.to_owned(), value)).into();
        let distribution = DISTRIBUTIONS[usize::from(mixed)].into();
        cases.push(Case { size: texts, context, seed: 42, ring: 2, distribution });
    };
    for (at, &length) in AWKWARD.iter().enumerate() {
        // Neighbouring lengths with different kinds, every kind with short, middle and long ones.
        let strings = |form: usize| generate_texts::STRINGS[(at + form) % generate_texts::STRINGS.len()];
        let other = AWKWARD[(5 * at + 3) % AWKWARD.len()];
        let cutoff = |form: usize| CUTOFFS[[0, 2, 4, 5, 6, 7][(at + form) % 6]];
        let mixed = at % 3 == 2;
        let (long, longest) = (length.max(other) > 100, length > 200);
        add(
            "one-to-many",
            strings(0),
            [if long { 67 } else { 135 }, 1],
            [length, other],
            "unrelated",
            cutoff(0),
            mixed,
        );
        add("pairs", strings(1), [if longest { 67 } else { 133 }, 1], [length; 2], EDITS[2 + at % 3], cutoff(1), mixed);
        let counts = if long { [35, 3] } else { [67, 9] };
        add("all-pairs", strings(2), counts, [length, other], "unrelated", cutoff(3), !mixed);
    }
    add("pairs", "bytes", [70, 1], [40, 90], "unrelated", "no cutoff", true);
    add("pairs", "dna", [200, 1], [3, 3], "20% edits", "cutoff 1", true);
    add("one-to-many", "letters", [100, 1], [64, 64], "10% edits", "cutoff 8", false);
    add("all-pairs", "cjk", [100, 50], [14, 14], "10% edits", "cutoff 2", false);
    // Long ones: many words, and of the last several texts only one.
    add("pairs", "dna", [3, 1], [1_000, 1_000], "5% edits", "no cutoff", false);
    add("pairs", "dna", [2, 1], [1_500, 1_500], "5% edits", "cutoff 64", false);
    add("one-to-many", "cjk", [3, 1], [700, 1_100], "unrelated", "no cutoff", true);
    add("one-to-many", "letters", [1, 1], [2_000, 600], "unrelated", "no cutoff", false);
    #[cfg(feature = "cli")]
    {
        add("one-to-many", "words", [5_000, 1], [8, 8], "20% edits", "no cutoff", false);
        add("all-pairs", "words", [1_000, 20], [8, 8], "20% edits", "cutoff 2", false);
        add("pairs", "words", [2_000, 1], [8, 8], "unrelated", "cutoff 3", false);
        add("all-pairs", "names", [500, 67], [7, 7], "unrelated", "no cutoff", false);
        add("pairs", "names", [1_000, 1], [7, 7], "20% edits", "cutoff 0", false);
        add("one-to-many", "names", [3_000, 1], [7, 7], "20% edits", "cutoff 1", false);
    }
    cases
}

pub(super) fn footprint(case: &Case) -> Result<Footprint, Error> {
    let shape = Shape::of(case)?;
    let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    let (texts, patterns) = (shape.texts_bytes(), shape.patterns_bytes());
    let results = shape.pairs().saturating_mul(4);
    let ring = patterns.saturating_mul(case.ring.max(1) as u64);
    // Blocks of strings before they are joined; the whole list where strings are real.
    let building = sum(&[texts.max(patterns), 8 << 20]);
    // The CPU's texts made ready once more and its distances, beside those of a device.
    let comparing = sum(&[texts, results]);
    // Texts, and what the CPU made of them: a copy, their symbols side by side, and their order.
    let host =
        sum(&[texts, texts, texts, (shape.texts as u64).saturating_mul(8), ring, results, building.max(comparing)]);
    Ok(Footprint { host_bytes: host, device_bytes: device_bytes(&shape) })
}

#[cfg(feature = "gpu")]
fn device_bytes(shape: &Shape<'_>) -> u64 {
    let (texts, patterns) = (shape.texts as u64, shape.patterns as u64);
    let is_pairs = shape.form == Form::Pairs;
    super::gpu::device_bytes(texts, shape.texts_bytes(), patterns, shape.pattern_length as u64, is_pairs)
}

#[cfg(not(feature = "gpu"))]
fn device_bytes(_shape: &Shape<'_>) -> u64 {
    0
}

pub(super) fn prepare(case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
    let shape = Shape::of(case)?;
    let (texts, patterns) = inputs::build(&shape, case)?;
    Ok(Box::new(Distances::new(shape.form, shape.cutoff, texts, patterns, case.seed, platform)?))
}

#[cfg(test)]
mod tests;
