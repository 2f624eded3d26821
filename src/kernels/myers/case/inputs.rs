//! The strings of a case.

use super::{Form, Shape};
use crate::data::{Texts, generate_texts};
use crate::error::Error;
use crate::kernels::Case;

/// A list of the corpus folder; a case takes a sample of it.
#[cfg(feature = "cli")]
pub(super) struct Real {
    name: &'static str,
    path: &'static str,
    pub(super) strings: usize,
    /// Mean number of symbols, rounded.
    pub(super) mean: usize,
}

#[cfg(feature = "cli")]
pub(super) const REAL: &[Real] = &[
    Real { name: "words", path: "corpus/words/american-english.txt.gz", strings: 104_334, mean: 8 },
    Real { name: "names", path: "corpus/names/surnames.txt.gz", strings: 88_799, mean: 7 },
];

#[cfg(feature = "cli")]
pub(super) fn real(name: &str) -> Option<&'static Real> {
    REAL.iter().find(|real| real.name == name)
}

/// The texts, and the ring of patterns.
pub(super) fn build(shape: &Shape<'_>, case: &Case) -> Result<(Texts, Vec<Texts>), Error> {
    let source = Source::of(shape)?;
    let texts = source.strings(shape, shape.texts, shape.text_length, case.seed, 0)?;
    let patterns = (1..=case.ring.max(1) as u64).map(|call| match shape.edits {
        None => source.strings(shape, shape.patterns, shape.pattern_length, case.seed, call),
        Some(percent) => {
            let alphabet = source.alphabet()?;
            let edited = |texts: &Texts| generate_texts::edited(texts, percent, &alphabet, case.seed, call);
            match shape.form {
                Form::Pairs => edited(&texts),
                Form::OneToMany | Form::AllPairs => {
                    edited(&generate_texts::sample(&texts, shape.patterns, case.seed, call)?)
                }
            }
        }
    });
    let patterns = patterns.collect::<Result<_, _>>()?;
    Ok((texts, patterns))
}

/// Where strings come from.
enum Source<'a> {
    Kind(&'a str),
    #[cfg(feature = "cli")]
    List(Texts),
}

impl<'a> Source<'a> {
    fn of(shape: &Shape<'a>) -> Result<Self, Error> {
        #[cfg(feature = "cli")]
        if let Some(real) = real(shape.strings) {
            return Ok(Self::List(read(real)?));
        }
        Ok(Self::Kind(shape.strings))
    }

    fn strings(&self, shape: &Shape<'_>, count: usize, length: usize, seed: u64, call: u64) -> Result<Texts, Error> {
        match self {
            Self::Kind(kind) => {
                let lengths = if shape.mixed { 0..=2 * length } else { length..=length };
                generate_texts::texts(kind, count, lengths, seed, call)
            }
            #[cfg(feature = "cli")]
            Self::List(list) => generate_texts::sample(list, count, seed, call),
        }
    }

    /// What is inserted and substituted.
    fn alphabet(&self) -> Result<Vec<u32>, Error> {
        match self {
            Self::Kind(kind) => generate_texts::alphabet(kind),
            #[cfg(feature = "cli")]
            Self::List(_) => generate_texts::alphabet("letters"),
        }
    }
}

/// Code points are the symbols.
#[cfg(feature = "cli")]
fn read(real: &Real) -> Result<Texts, Error> {
    use crate::data::Symbols;
    let path = std::path::Path::new(real.path);
    let names = crate::formats::Names::read_lines(path)?;
    let (mut symbols, mut offsets) = (Vec::new(), vec![0]);
    for name in names.iter() {
        symbols.extend(name.chars().map(u32::from));
        offsets.push(symbols.len());
    }
    let (strings, mean) = (names.len(), (symbols.len() + names.len() / 2) / names.len().max(1));
    if (strings, mean) != (real.strings, real.mean) {
        let words = |strings, mean| format!("{strings} lines of {mean} symbols in the mean");
        return Err(Error::format(path, "list", words(real.strings, real.mean), words(strings, mean)));
    }
    Texts::new(Symbols::Wide(symbols), offsets)
}
