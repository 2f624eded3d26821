//! What can be said on the command line.

use crate::data::{Normalization, Unit};
use crate::error::Error;
use crate::formats::{Column, StringFormat};
use crate::units::Bytes;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const LONG_ABOUT: &str = "\
Edit distances (Levenshtein): the least number of insertions, deletions and substitutions of single symbols that turn one \
string into another. Exact.

  distance PATTERN FILE   from one text to every string of a file
  distance A B            from every string of file A to every string of file B
  distance FILE           between the strings of a file, each pair once
  distance --pairs FILE   between two columns, line by line

Of two arguments, the first is a file where a file of that name exists (or it is -, stdin), else the text itself. A text that \
looks like the name of a file, and is none, is refused: --pattern takes any text. --explain says what was taken for what.

Reads lists of strings, compressed (.gz, .zst) or not:
  .txt, no extension, stdin   a line; LF or CR LF ends it; an empty line is the empty string
  .csv, .tsv                  the field of --column; quotes are those of RFC 4180 in .csv, and
                              letters in .tsv; blank lines are skipped
  .jsonl, .ndjson             the field of --column (a.b is b inside a), or each line a JSON string
  .fasta, .fa, .fas, .fna, .ffn, .faa, .fastq, .fq
                              the sequence of each record, lines joined, without blanks and (fasta)
                              lines beginning with ;. Records go by the first word of their heading
A byte order mark (UTF-8) at the start of a file is left out. All else counts, spaces and NUL too. A column is given by its name, \
which makes the first line a header, or by its number from 1; then the first line is a string like the others unless --header \
is given. Of two files, --column is about those that have columns, and --columns may leave one out (,NAME). A missing \
field, in JSON also null, is an error and never the empty string; an empty field is the empty string.

A symbol is a code point of Unicode (--unit char), a byte, or a grapheme cluster: what a reader takes for one character. \
--normalize makes one of several spellings of the same text, --ignore-case folds by Unicode's full table (so that ß is ss). \
Text that is not UTF-8 is refused by its line; --unit byte takes any bytes.

--max-distance D keeps what is at most D apart; what is farther is not reported, and costs less. --nearest K keeps, for each \
string of A, the K nearest of B (of one text: the K nearest in the file; of pairs: the K nearest pairs), nearest first; of \
equally near ones the lower row comes first. So the answer for K is the beginning of the answer for a larger K.

--similarity gives 1 - distance / length of the longer string, from 0 to 1; 1 where both are empty.

Rows count from 0. Columns of csv, tsv and jsonl:
  one text      row, distance, text
  pairs         row, distance, left_text, right_text
  A B, FILE     left, right, distance, left_text, right_text
Where strings have names, these take the place of texts (id, left_id, right_id); --no-text leaves both out. txt is the number \
alone, one a line, in the order of rows. npy is an array of the smallest of u8, u16 and u32 that holds every possible distance (f32 for \
similarities): one number a row for one text and for pairs, else a matrix; with --max-distance its largest number (NaN) \
stands for all that is farther. txt takes neither --nearest, --exclude-self nor --max-distance, npy neither of the first two.

All pairs are computed and written in blocks of rows within --memory: the matrix is never held whole. The output is the same, \
byte for byte, on every CPU, device and number of threads.";

pub(super) const EXAMPLES: &str = "\
Examples:
  The ten English words nearest to a misspelt one:
    lodestar distance recieve corpus/words/american-english.txt.gz --nearest 10

  All words at most two edits away, as JSON:
    lodestar distance recieve corpus/words/american-english.txt.gz --max-distance 2 --json

  Numbers only, one for each line of the file:
    lodestar distance recieve corpus/words/american-english.txt.gz --output-format txt | sort -n | uniq -c

  Pairs of surnames one edit apart, each pair once:
    lodestar distance corpus/names/surnames.txt.gz --max-distance 1 --output pairs.csv

  For every surname the three most similar words, whatever their case:
    lodestar distance corpus/names/surnames.txt.gz corpus/words/american-english.txt.gz --nearest 3 --similarity --ignore-case

  Two columns of a table, by the names in its header:
    lodestar distance --pairs people.csv --columns name,name_in_register --normalize nfc

  Two files line by line, from a pipe:
    paste old.txt new.txt | lodestar distance --pairs - --format tsv

  The matrix of all distances of a set of sequences, for numpy:
    lodestar distance genes.fasta --output distances.npy";

#[derive(Args)]
pub(super) struct Arguments {
    /// A text, or a file of strings; - is stdin
    #[arg(
        value_name = "PATTERN|FILE",
        help_heading = "Input",
        required_unless_present = "pairs",
        conflicts_with = "pairs"
    )]
    pub(super) first: Option<OsString>,
    /// A file of strings; - is stdin
    #[arg(value_name = "FILE", help_heading = "Input", conflicts_with = "pattern")]
    pub(super) second: Option<PathBuf>,
    /// The text to compare with every string of the file, whatever it looks like
    #[arg(long, value_name = "TEXT", help_heading = "Input", allow_hyphen_values = true, conflicts_with = "pairs")]
    pub(super) pattern: Option<OsString>,
    /// Compare two columns of this file line by line: .csv, .tsv, .jsonl; - is stdin (then --format says what it holds)
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(super) pairs: Option<PathBuf>,
    /// Format of stdin, and of files whose extension does not say it: txt, csv, tsv, jsonl, fasta, fastq [default: txt]
    #[arg(long, value_name = "FORMAT", help_heading = "Input", value_parser = string_format)]
    pub(super) format: Option<StringFormat>,
    /// The column of a .csv or .tsv that holds the strings, by name or number, or the field of a .jsonl; needed where there are several
    #[arg(long, visible_alias = "field", value_name = "NAME|NUMBER", help_heading = "Input", value_parser = column)]
    pub(super) column: Option<Column>,
    /// Two columns: the two that --pairs compares, or one of A and one of B (A, or ,B where the other has none)
    #[arg(
        long,
        visible_alias = "fields",
        value_name = "A,B",
        help_heading = "Input",
        value_delimiter = ',',
        conflicts_with = "column",
        value_parser = column_or_none
    )]
    pub(super) columns: Vec<Option<Column>>,
    /// The first line of a .csv or .tsv is a header, even though columns are given by number or not at all
    #[arg(long, help_heading = "Input")]
    pub(super) header: bool,

    /// What one symbol is
    #[arg(long, value_name = "char|byte|grapheme", default_value = "char", help_heading = "Distance", value_parser = unit)]
    pub(super) unit: Unit,
    /// Which spellings of the same text are the same
    #[arg(long, value_name = "nfc|nfkc|none", default_value = "none", help_heading = "Distance", value_parser = normalization)]
    pub(super) normalize: Normalization,
    /// Upper and lower case are the same
    #[arg(long, help_heading = "Distance")]
    pub(super) ignore_case: bool,
    /// Only what is at most this far apart
    #[arg(long, short = 'd', value_name = "D", allow_negative_numbers = true, help_heading = "Distance")]
    pub(super) max_distance: Option<u32>,
    /// Only the K nearest, nearest first
    #[arg(long, short = 'k', value_name = "K", allow_negative_numbers = true, help_heading = "Distance")]
    pub(super) nearest: Option<usize>,
    /// Similarities from 0 to 1 in place of distances
    #[arg(long, help_heading = "Distance")]
    pub(super) similarity: bool,
    /// String i of A and string i of B are the same item: leave this pair out
    #[arg(long, help_heading = "Distance")]
    pub(super) exclude_self: bool,

    /// Where to write; the extension says the format (.csv, .tsv, .jsonl, .txt, .npy). Default: stdout
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Format of the output, where the extension does not say it. Default on stdout: csv, with --json jsonl
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(super) output_format: Option<OutputFormat>,
    /// Only numbers: neither texts nor names
    #[arg(long, help_heading = "Output")]
    pub(super) no_text: bool,
    /// Also write one line of JSON with sizes and milliseconds: to stdout when --output is a file, else to stderr
    #[arg(long, help_heading = "Output")]
    pub(super) timing: bool,
    /// Say on stderr what the arguments are taken for, where distances are computed, and why
    #[arg(long, help_heading = "Output")]
    pub(super) explain: bool,

    /// Memory for the distances that are computed at a time, e.g. 500MB or 4GiB; one row of a matrix is the least [default: 64MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Machine", value_parser = str::parse::<Bytes>)]
    pub(super) memory: Option<Bytes>,
    /// Where to compute. auto is the CPU: results do not record yet from which size on a device is faster
    #[arg(long, value_name = "auto|cpu|gpu|software|NAME", default_value = "auto", help_heading = "Machine")]
    pub(super) device: String,
    /// Threads of the CPU [default: all]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    pub(super) threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Csv,
    /// As csv, with tabs and without quotes
    Tsv,
    /// One JSON object a line
    Jsonl,
    /// One number a line
    Txt,
    /// An array for numpy
    Npy,
}

impl OutputFormat {
    pub(super) const NAMES: &str = "csv, tsv, jsonl, txt, npy";

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
            Self::Txt => "txt",
            Self::Npy => "npy",
        }
    }
}

impl Arguments {
    /// Refuses what cannot be meant, before anything is read.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.nearest == Some(0) {
            return Err(Error::argument("--nearest", "at least 1", 0));
        }
        if self.unit == Unit::Byte {
            let refuse = |flag: &str| {
                Err(Error::argument(flag, "--unit char or grapheme with it, as bytes are compared as they are", "byte"))
            };
            if self.ignore_case {
                return refuse("--ignore-case");
            }
            if self.normalize != Normalization::None {
                return refuse("--normalize");
            }
        }
        if !matches!(self.columns.len(), 0 | 2) {
            return Err(Error::argument("--columns", "two, with a comma between them", self.columns.len()));
        }
        if !self.columns.is_empty() && self.columns.iter().all(Option::is_none) {
            return Err(Error::argument("--columns", "a name or a number", "only a comma"));
        }
        Ok(())
    }
}

fn string_format(name: &str) -> Result<StringFormat, String> {
    let format = StringFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
    format.ok_or_else(|| format!("expected one of {}", StringFormat::names()))
}

fn column(name: &str) -> Result<Column, String> {
    if name.is_empty() { Err("expected a name or a number".into()) } else { Ok(Column::new(name)) }
}

/// Of two, one may be left out.
fn column_or_none(name: &str) -> Result<Option<Column>, String> {
    Ok((!name.is_empty()).then(|| Column::new(name)))
}

fn unit(name: &str) -> Result<Unit, String> {
    Unit::ALL.into_iter().find(|unit| unit.name() == name).ok_or_else(|| "expected char, byte or grapheme".into())
}

fn normalization(name: &str) -> Result<Normalization, String> {
    let found = Normalization::ALL.into_iter().find(|normalization| normalization.name() == name);
    found.ok_or_else(|| "expected nfc, nfkc or none".into())
}
