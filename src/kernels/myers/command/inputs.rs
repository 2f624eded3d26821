//! Reading what is compared, and what is shown of it.

use super::arguments::{Arguments, OutputFormat};
use super::form::Form;
use crate::cli::Io;
use crate::data::{ByteStrings, Clusters, Reading, Texts, Unit};
use crate::error::Error;
use crate::formats::{Column, StringFormat, StringList, StringOptions, read_string_pairs, read_strings};
use memchr::{memchr, memchr3};
use std::ffi::OsStr;

/// What is compared, as symbols, and what of it is shown.
pub(super) struct Inputs<'a> {
    pub(super) form: &'a Form,
    /// The one text, or the left side. Of one file, both sides.
    pub(super) left: Texts,
    right: Option<Texts>,
    left_shown: Option<Shown>,
    right_shown: Option<Shown>,
    /// What the right side is called in messages.
    pub(super) right_name: String,
}

/// What stands for a string in the output.
pub(super) struct Shown {
    /// The strings, or their names.
    pub(super) strings: ByteStrings,
    /// Whether they are names.
    pub(super) are_names: bool,
    /// Whether one of them has to be quoted in csv.
    pub(super) quoted: bool,
}

impl<'a> Inputs<'a> {
    pub(super) fn read(form: &'a Form, arguments: &Arguments, format: OutputFormat, io: &Io) -> Result<Self, Error> {
        let options = StringOptions { format: arguments.format, header: arguments.header };
        let mut reader = Reader {
            reading: Reading {
                unit: arguments.unit,
                normalization: arguments.normalize,
                ignore_case: arguments.ignore_case,
            },
            clusters: Clusters::default(),
            shown: if arguments.no_text { None } else { Some(format) },
            io,
        };
        let (one, two) = (arguments.column.as_ref(), arguments.columns.as_slice());
        let (left, right) = match form {
            Form::Pattern(text, path) => {
                let right = read_strings(path, one, &options)?;
                let left =
                    reader.reading.texts([bytes(text, reader.reading.unit)?].iter().collect(), &mut reader.clusters)?;
                let right_name = right.path().display().to_string();
                let (right, right_shown) = reader.take(right)?;
                return Ok(Self { form, left, right: Some(right), left_shown: None, right_shown, right_name });
            }
            Form::Within(path) => (read_strings(path, one, &options)?, None),
            Form::Two(a, b) => {
                let (of_a, of_b) = if let [of_a, of_b] = two {
                    (of_a.as_ref(), of_b.as_ref())
                } else {
                    // One column is of those files that have columns; if none has, the first says so.
                    let has = |path| StringFormat::of(path, options.format).map(StringFormat::has_columns);
                    let (has_a, has_b) = (has(a)?, has(b)?);
                    (one.filter(|_| has_a || !has_b), one.filter(|_| has_b))
                };
                (read_strings(a, of_a, &options)?, Some(read_strings(b, of_b, &options)?))
            }
            Form::Pairs(path) => {
                let columns: Option<[Column; 2]> = match two {
                    [Some(left), Some(right)] => Some([left.clone(), right.clone()]),
                    _ => None,
                };
                let [left, right] = read_string_pairs(path, columns.as_ref(), &options)?;
                (left, Some(right))
            }
        };
        let right_name = right.as_ref().unwrap_or(&left).path().display().to_string();
        let (left, left_shown) = reader.take(left)?;
        let (right, right_shown) = match right {
            Some(right) => {
                let (right, shown) = reader.take(right)?;
                (Some(right), shown)
            }
            None => (None, None),
        };
        Ok(Self { form, left, right, left_shown, right_shown, right_name })
    }

    pub(super) fn right(&self) -> &Texts {
        self.right.as_ref().unwrap_or(&self.left)
    }

    pub(super) fn left_shown(&self) -> Option<&Shown> {
        self.left_shown.as_ref()
    }

    pub(super) fn right_shown(&self) -> Option<&Shown> {
        if self.right.is_some() { self.right_shown.as_ref() } else { self.left_shown.as_ref() }
    }

    /// Symbols of the longer of two strings.
    pub(super) fn longer(&self, left: usize, right: usize) -> usize {
        self.left.length(left).max(self.right().length(right))
    }

    /// The largest distance that there can be.
    pub(super) fn largest(&self) -> u32 {
        let longest = |texts: &Texts| texts.offsets().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        u32::try_from(longest(&self.left).max(longest(self.right()))).unwrap_or(u32::MAX)
    }

    /// Cells of the tables that the definition would fill.
    pub(super) fn cells(&self) -> f64 {
        let total = |texts: &Texts| texts.total() as f64;
        match self.form {
            Form::Pattern(..) | Form::Two(..) => total(&self.left) * total(self.right()),
            Form::Within(_) => {
                let squares: f64 = (0..self.left.len()).map(|i| (self.left.length(i) as f64).powi(2)).sum();
                (total(&self.left).powi(2) - squares) / 2.0
            }
            Form::Pairs(_) => {
                let cells = |i| self.left.length(i) as f64 * self.right().length(i) as f64;
                (0..self.left.len()).map(cells).sum()
            }
        }
    }
}

struct Reader<'a> {
    reading: Reading,
    /// One table for all that is compared.
    clusters: Clusters,
    /// The format of the output, where it shows texts.
    shown: Option<OutputFormat>,
    io: &'a Io,
}

impl Reader<'_> {
    fn take(&mut self, list: StringList) -> Result<(Texts, Option<Shown>), Error> {
        list.note.iter().for_each(|note| self.io.note(note));
        if list.strings.is_empty() {
            self.io.note(format_args!("{}: there are no strings", list.path().display()));
        }
        if self.reading.unit != Unit::Byte {
            list.check_utf8("--unit byte takes any bytes")?;
        }
        let shown = match self.shown {
            Some(format @ (OutputFormat::Csv | OutputFormat::Tsv | OutputFormat::Jsonl)) => {
                Some(Shown::of(&list, format)?)
            }
            _ => None,
        };
        Ok((self.reading.texts(list.strings, &mut self.clusters)?, shown))
    }
}

impl Shown {
    /// Refuses what the format cannot hold.
    fn of(list: &StringList, format: OutputFormat) -> Result<Self, Error> {
        let strings = list.names.as_ref().unwrap_or(&list.strings).clone();
        let refuse = |index: usize, expected: &str, found: String| {
            Err(Error::format(list.path(), format!("line {}", list.line(index)), expected, found))
        };
        match format {
            OutputFormat::Jsonl => {
                if let Some((index, at)) = strings.not_utf8() {
                    let expected = "UTF-8 for jsonl (csv and tsv take any bytes, --no-text leaves the texts out)";
                    return refuse(index, expected, format!("{:#04x}", strings.get(index)[at]));
                }
            }
            OutputFormat::Tsv => {
                let broken = |string: &[u8]| memchr3(b'\t', b'\n', b'\r', string).is_some();
                if let Some(index) = strings.iter().position(broken) {
                    let expected = "a text without tabs and line ends for tsv (csv and jsonl take any)";
                    return refuse(index, expected, "one with them".into());
                }
            }
            OutputFormat::Csv | OutputFormat::Txt | OutputFormat::Npy => {}
        }
        let quoted = format == OutputFormat::Csv && strings.iter().any(is_quoted);
        Ok(Self { strings, are_names: list.names.is_some(), quoted })
    }
}

/// Whether a field of csv has to stand in quotes.
pub(super) fn is_quoted(field: &[u8]) -> bool {
    memchr3(b',', b'"', b'\n', field).is_some() || memchr(b'\r', field).is_some()
}

/// The bytes of an argument.
fn bytes(text: &OsStr, unit: Unit) -> Result<&[u8], Error> {
    let not_utf8 = || Error::argument("PATTERN", "UTF-8 (--unit byte takes any bytes)", format!("{text:?}"));
    match text.to_str() {
        Some(text) => Ok(text.as_bytes()),
        #[cfg(unix)]
        None if unit == Unit::Byte => Ok(std::os::unix::ffi::OsStrExt::as_bytes(text)),
        None => {
            #[cfg(not(unix))]
            let _ = unit;
            Err(not_utf8())
        }
    }
}
