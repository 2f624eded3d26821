//! [`RankedLists`]: what a search found, written as .csv, .tsv, .jsonl, a pair of .npy files, or .ivecs and .fvecs.
//!
//! Numbers: queries and rows count from 0, ranks from 1. Scores are written so that reading them gives the same f32.
//!
//! The binary formats have one width. A query with fewer results than that is padded with row -1 and score NaN.

use super::{Names, npy_header};
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How lists are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    /// One line a result, commas: `query,rank,row,<score>`, and names where they are known.
    Csv,
    /// As [`Csv`](Self::Csv), with tabs.
    Tsv,
    /// One JSON object a query.
    Jsonl,
    /// `X.indices.npy` (i64) and `X.scores.npy` (f32), both queries x width.
    Npy,
    /// `X.ivecs` (rows) and `X.fvecs` (scores), one record a query.
    Ivecs,
}

impl ListFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Csv, Self::Tsv, Self::Jsonl, Self::Npy, Self::Ivecs];

    /// Its name on the command line, which is its extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
            Self::Npy => "npy",
            Self::Ivecs => "ivecs",
        }
    }

    /// The format by the extension of the output.
    ///
    /// # Errors
    /// [`Error::Format`] when the extension is missing or unknown.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "npy" => Ok(Self::Npy),
            "ivecs" | "fvecs" => Ok(Self::Ivecs),
            _ => {
                let names = Self::ALL.map(Self::name).join(", ");
                Err(Error::format(
                    path,
                    "extension",
                    format!("one of {names} (or name the format with --output-format)"),
                    super::dotted(&extension),
                ))
            }
        }
    }

    /// Whether all files of an output can be written; asked before long work.
    ///
    /// # Errors
    /// [`Error::File`] when a folder does not exist or cannot be written.
    pub fn check_writable(self, output: &Path) -> Result<(), Error> {
        self.files(output).iter().try_for_each(|path| AtomicFile::create(path).map(drop))
    }

    /// The files that an output of this name becomes.
    pub fn files(self, output: &Path) -> Vec<PathBuf> {
        match self {
            Self::Csv | Self::Tsv | Self::Jsonl => vec![output.to_owned()],
            Self::Npy => {
                let is_npy = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
                let stem = if is_npy { output.with_extension("") } else { output.to_owned() };
                ["indices.npy", "scores.npy"]
                    .map(|end| {
                        let mut name = stem.clone().into_os_string();
                        name.push(".");
                        name.push(end);
                        PathBuf::from(name)
                    })
                    .into()
            }
            Self::Ivecs => vec![output.with_extension("ivecs"), output.with_extension("fvecs")],
        }
    }
}

/// For each query its results, best first.
#[derive(Debug, Clone, Copy)]
pub struct RankedLists<'a> {
    /// Where each query's list begins in `rows` and `scores`; one more entry than queries.
    pub offsets: &'a [usize],
    /// Row numbers.
    pub rows: &'a [u32],
    /// Their scores.
    pub scores: &'a [f32],
    /// How many results a query can have; the width of the binary formats.
    pub width: usize,
    /// What the scores are, for the heading.
    pub score: &'a str,
    /// What number each query has; its position where there are none.
    pub numbers: Option<&'a [usize]>,
    /// What rows are called.
    pub ids: Option<&'a Names>,
    /// What queries are called, by their number.
    pub query_ids: Option<&'a Names>,
}

impl<'a> RankedLists<'a> {
    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The number of a query.
    pub fn number(&self, query: usize) -> usize {
        self.numbers.map_or(query, |numbers| numbers[query])
    }

    /// Rows and scores of one query.
    pub fn query(&self, query: usize) -> (&'a [u32], &'a [f32]) {
        let range = self.offsets[query]..self.offsets[query + 1];
        (&self.rows[range.clone()], &self.scores[range])
    }

    /// Writes to a file, or to two: whole or not at all. Returns the files' names.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Limit`] where a number does not fit into the format.
    pub fn write_files(&self, format: ListFormat, output: &Path) -> Result<Vec<PathBuf>, Error> {
        let paths = format.files(output);
        if format == ListFormat::Ivecs {
            self.check_ivecs(&paths[0])?;
        }
        let mut files = Vec::new();
        // All are written out before the first one gets its name, so that a full disk leaves none.
        for (part, path) in paths.iter().enumerate() {
            let mut file = AtomicFile::create(path)?;
            self.write(format, part, &mut file)
                .and_then(|()| file.flush())
                .map_err(|error| Error::file(path, error))?;
            files.push(file);
        }
        for (done, file) in files.into_iter().enumerate() {
            if let Err(error) = file.commit() {
                for path in &paths[..done] {
                    // A half of a pair is worse than nothing; the error that matters is the one being reported.
                    let _ = std::fs::remove_file(path);
                }
                return Err(error);
            }
        }
        Ok(paths)
    }

    /// Writes text to a stream.
    ///
    /// # Errors
    /// [`Error::Argument`] for a format that is two files; else what the stream says, unchanged.
    pub fn write_text(&self, format: ListFormat, stream: &mut dyn Write) -> Result<io::Result<()>, Error> {
        match format {
            ListFormat::Csv | ListFormat::Tsv | ListFormat::Jsonl => Ok(self.write(format, 0, stream)),
            ListFormat::Npy | ListFormat::Ivecs => {
                Err(Error::argument("--output", format!("a file name, as {} is two files", format.name()), "stdout"))
            }
        }
    }

    fn write(&self, format: ListFormat, part: usize, stream: &mut dyn Write) -> io::Result<()> {
        match (format, part) {
            (ListFormat::Csv, _) => self.delimited(b',', stream),
            (ListFormat::Tsv, _) => self.delimited(b'\t', stream),
            (ListFormat::Jsonl, _) => self.json_lines(stream),
            (ListFormat::Npy, 0) => {
                stream.write_all(&npy_header::write("<i8", self.queries(), self.width))?;
                self.padded(&[], |row| row.map_or(-1, i64::from).to_le_bytes(), |_| [], stream)
            }
            (ListFormat::Npy, _) => {
                stream.write_all(&npy_header::write("<f4", self.queries(), self.width))?;
                self.padded(&[], |_| [], |score| score.unwrap_or(f32::NAN).to_le_bytes(), stream)
            }
            (ListFormat::Ivecs, 0) => {
                self.padded(&self.head(), |row| row.map_or(u32::MAX, |row| row).to_le_bytes(), |_| [], stream)
            }
            (ListFormat::Ivecs, _) => {
                self.padded(&self.head(), |_| [], |score| score.unwrap_or(f32::NAN).to_le_bytes(), stream)
            }
        }
    }

    fn delimited(&self, delimiter: u8, stream: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(stream);
        let heading = [
            Some("query"),
            self.query_ids.map(|_| "query_id"),
            Some("rank"),
            Some("row"),
            self.ids.map(|_| "id"),
            Some(self.score),
        ];
        writer.write_record(heading.into_iter().flatten()).map_err(plain)?;
        let mut text = String::new();
        for query in 0..self.queries() {
            let (rows, scores) = self.query(query);
            for (rank, (&row, &score)) in rows.iter().zip(scores).enumerate() {
                writer.write_field(number(&mut text, self.number(query))).map_err(plain)?;
                if let Some(names) = self.query_ids {
                    writer.write_field(names.get(self.number(query))).map_err(plain)?;
                }
                writer.write_field(number(&mut text, rank + 1)).map_err(plain)?;
                writer.write_field(number(&mut text, row)).map_err(plain)?;
                if let Some(names) = self.ids {
                    writer.write_field(names.get(row as usize)).map_err(plain)?;
                }
                writer.write_field(number(&mut text, Score(score))).map_err(plain)?;
                writer.write_record(None::<&[u8]>).map_err(plain)?;
            }
        }
        writer.flush()
    }

    fn json_lines(&self, stream: &mut dyn Write) -> io::Result<()> {
        let mut buffer = io::BufWriter::new(stream);
        for query in 0..self.queries() {
            let (rows, scores) = self.query(query);
            write!(buffer, "{{\"query\":{}", self.number(query))?;
            if let Some(names) = self.query_ids {
                write!(buffer, ",\"query_id\":{}", json(names.get(self.number(query))))?;
            }
            write!(buffer, ",\"neighbors\":[")?;
            for (rank, (&row, &score)) in rows.iter().zip(scores).enumerate() {
                write!(buffer, "{}{{\"row\":{row}", if rank == 0 { "" } else { "," })?;
                if let Some(names) = self.ids {
                    write!(buffer, ",\"id\":{}", json(names.get(row as usize)))?;
                }
                // JSON has no infinity; a distance that overflows f32 is null.
                if score.is_finite() {
                    write!(buffer, ",\"{}\":{}}}", self.score, Score(score))?;
                } else {
                    write!(buffer, ",\"{}\":null}}", self.score)?;
                }
            }
            writeln!(buffer, "]}}")?;
        }
        buffer.flush()
    }

    /// Fixed-width records: `head`, then one or the other of the two parts of each result; `None` is padding.
    fn padded<const R: usize, const S: usize>(
        &self,
        head: &[u8],
        row_bytes: impl Fn(Option<u32>) -> [u8; R],
        score_bytes: impl Fn(Option<f32>) -> [u8; S],
        stream: &mut dyn Write,
    ) -> io::Result<()> {
        let mut buffer = io::BufWriter::new(stream);
        for query in 0..self.queries() {
            buffer.write_all(head)?;
            let (rows, scores) = self.query(query);
            for rank in 0..self.width {
                buffer.write_all(&row_bytes(rows.get(rank).copied()))?;
                buffer.write_all(&score_bytes(scores.get(rank).copied()))?;
            }
        }
        buffer.flush()
    }

    fn head(&self) -> [u8; 4] {
        u32::try_from(self.width).unwrap_or(u32::MAX).to_le_bytes()
    }

    /// .ivecs holds signed 32-bit numbers.
    fn check_ivecs(&self, path: &Path) -> Result<(), Error> {
        let largest = self.rows.iter().copied().max().map_or(0, u64::from).max(self.width as u64);
        if largest > i32::MAX as u64 {
            return Err(Error::Limit {
                what: format!("{}: a row number or width in .ivecs", path.display()),
                requested: largest,
                max: i32::MAX as u64,
            });
        }
        Ok(())
    }
}

/// A score in the fewest digits that give the same f32 back; with an exponent where it would be long.
pub(crate) struct Score(pub(crate) f32);

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let magnitude = self.0.abs();
        if magnitude == 0.0 || !magnitude.is_finite() || (1e-5..1e15).contains(&magnitude) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

fn number(text: &mut String, value: impl std::fmt::Display) -> &str {
    use std::fmt::Write;
    text.clear();
    // Writing to a String cannot fail.
    let _ = write!(text, "{value}");
    text
}

fn json(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

/// The I/O error inside, so that a closed pipe is still known as one.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
