//! `lodestar corpus tfidf`: from lines of text to a sparse matrix of weighted terms.
//!
//! Weights are those that scikit-learn's `TfidfVectorizer` gives by default: the count of a term in the document, times
//! ln((1 + n) / (1 + df)) + 1 for a term in df of n documents, every row scaled to length 1. Words are found differently:
//! by the Unicode standard, which keeps "don't" and "3.5" whole and knows words of one letter.

use super::super::Io;
use super::sparse_format;
use crate::atomic_file::AtomicFile;
use crate::data::Csr;
use crate::error::Error;
use crate::formats::{Names, write_sparse};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use unicode_segmentation::UnicodeSegmentation;

const HELP: &str = "\
The terms are words, lower-cased, as the Unicode standard (UAX 29) divides text. Weights are the counts times
ln((1 + n) / (1 + df)) + 1, for a term that is in df of n lines; every row is scaled to length 1. Columns are in the
order of the terms' code points. A line without any term gives a row without entries.

Example (how the committed matrix was made):
  lodestar corpus tfidf corpus/wordnet/titles.tsv --column 3 --min-df 2 --output corpus/sparse/wordnet-tfidf.npz";

/// Make a matrix of TF-IDF weights from text, one document a line, as .npz or .mtx
///
/// The terms are written beside it, one a line, with the extension .txt.
#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub(super) struct Arguments {
    /// Text, .gz or .zst or neither; - is stdin
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Take this column of each line only, counted from 1; columns are separated by tabs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    column: Option<u32>,
    /// Leave out terms that are in fewer lines than this
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_df: usize,
    /// Where to write
    #[arg(long, short, value_name = "FILE.npz")]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<()> {
    let Arguments { input, column, min_df, output } = arguments;
    let format = sparse_format(output)?;
    let vocabulary = output.with_extension("txt");
    let same =
        |path: &Path| path.canonicalize().is_ok_and(|path| input.canonicalize().is_ok_and(|input| input == path));
    if let Some(path) = [output, &vocabulary].into_iter().find(|path| same(path)) {
        let expected = "a name under which nothing overwrites the input";
        return Err(Error::argument("--output", expected, path.display()).into());
    }
    let documents = match column {
        Some(column) => Names::read_column(input, *column as usize - 1)?,
        None => Names::read_lines(input)?,
    };
    let Weighted { matrix, terms } = weigh(documents.iter(), *min_df)?;
    if terms.is_empty() {
        let expected = format!("at least one word that is in {min_df} or more of the {} lines", documents.len());
        return Err(Error::format(input, "terms", expected, "none").into());
    }
    // The terms first, but under their name last: neither file appears without the other, short of a failing disk.
    let mut list = AtomicFile::create(&vocabulary)?;
    let written = terms.iter().try_for_each(|term| writeln!(list, "{term}"));
    written.map_err(|error| Error::file(&vocabulary, error))?;
    write_sparse(output, format, &matrix)?;
    list.commit()?;
    let (rows, cols, entries) = (matrix.rows(), matrix.cols(), matrix.entries());
    if io.json {
        let [output, vocabulary] = [output, &vocabulary].map(|path| path.display().to_string());
        let about = serde_json::json!({
            "output": output, "vocabulary": vocabulary, "rows": rows, "cols": cols, "entries": entries,
        });
        writeln!(io.out, "{about}")?;
    }
    let what = format_args!("{rows} x {cols} f32, {entries} entries; terms in {}", vocabulary.display());
    io.note(format_args!("wrote {}: {what}", output.display()));
    Ok(())
}

struct Weighted {
    matrix: Csr<f32>,
    /// What the columns stand for.
    terms: Vec<String>,
}

/// The terms that are in at least `min_df` documents, and their weights in each document.
fn weigh<'a>(documents: impl Iterator<Item = &'a str>, min_df: usize) -> Result<Weighted, Error> {
    // Terms are numbered as they turn up: the number of each, and how many documents it is in.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut frequencies: Vec<usize> = Vec::new();
    // Of each document its terms and their counts, the terms in increasing order of their numbers.
    let mut counts: Vec<Vec<(usize, usize)>> = Vec::new();
    for document in documents {
        let document = document.to_lowercase();
        let mut of_document: Vec<usize> = Vec::new();
        for word in document.unicode_words() {
            let number = numbers.get(word).copied().unwrap_or_else(|| {
                numbers.insert(word.to_owned(), frequencies.len());
                frequencies.push(0);
                frequencies.len() - 1
            });
            of_document.push(number);
        }
        of_document.sort_unstable();
        let of_document: Vec<_> = of_document.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect();
        of_document.iter().for_each(|&(number, _)| frequencies[number] += 1);
        counts.push(of_document);
    }
    let mut kept: Vec<_> = numbers.into_iter().filter(|(_, number)| frequencies[*number] >= min_df).collect();
    kept.sort_unstable();
    let mut columns = vec![None; frequencies.len()];
    for (column, (_, number)) in kept.iter().enumerate() {
        let column = u32::try_from(column).map_err(|_| Error::Limit {
            what: "terms".into(),
            requested: kept.len() as u64,
            max: u32::MAX.into(),
        })?;
        let rarity = (1 + counts.len()) as f64 / (1 + frequencies[*number]) as f64;
        columns[*number] = Some((column, rarity.ln() + 1.0));
    }
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for of_document in &counts {
        let mut row: Vec<(u32, f64)> = of_document
            .iter()
            .filter_map(|&(number, count)| columns[number].map(|(column, idf)| (column, count as f64 * idf)))
            .collect();
        row.sort_unstable_by_key(|&(column, _)| column);
        let length = row.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        for (column, weight) in row {
            indices.push(column);
            #[expect(clippy::cast_possible_truncation, reason = "rounding to storage precision is what is wanted")]
            values.push((weight / length) as f32);
        }
        indptr.push(indices.len());
    }
    let matrix = Csr::new(counts.len(), kept.len(), indptr, indices, values)?;
    Ok(Weighted { matrix, terms: kept.into_iter().map(|(term, _)| term).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_scikit_learn() {
        // What version 1.9.1 gives for these, with the token pattern \w+.
        let documents = ["The cat sat on the mat", "the dog sat", "", "Cat, dog; cat!"];
        let Weighted { matrix, terms } = weigh(documents.into_iter(), 1).unwrap();
        assert_eq!(terms, ["cat", "dog", "mat", "on", "sat", "the"]);
        assert_eq!(matrix.indptr(), [0, 5, 8, 8, 10]);
        assert_eq!(matrix.indices(), [0, 2, 3, 4, 5, 1, 4, 5, 0, 1]);
        let first = [0.329_376_37, 0.417_772_17, 0.417_772_17, 0.329_376_37, 0.658_752_74];
        let others = [0.577_350_26, 0.577_350_26, 0.577_350_26, 0.894_427_2, 0.447_213_6];
        assert_eq!(matrix.values(), [first, others].concat());
        let Weighted { matrix, terms } = weigh(documents.into_iter(), 2).unwrap();
        assert_eq!(terms, ["cat", "dog", "sat", "the"]);
        assert_eq!(matrix.indptr(), [0, 3, 6, 6, 8]);
        assert_eq!(matrix.row(0), (&[0, 2, 3][..], &[0.408_248_3, 0.408_248_3, 0.816_496_6][..]));
    }

    #[test]
    fn words_are_those_of_the_unicode_standard_in_lower_case() {
        let terms = |text: &str| weigh(std::iter::once(text), 1).unwrap().terms;
        assert_eq!(terms("Don't pay 3.5 (three-and-a-half)!"), ["3.5", "a", "and", "don't", "half", "pay", "three"]);
        assert_eq!(terms("\u{c4}pfel \u{c4}PFEL \u{e4}pfel"), ["\u{e4}pfel"]);
        assert_eq!(terms("\u{39f}\u{394}\u{39f}\u{3a3}"), ["\u{3bf}\u{3b4}\u{3bf}\u{3c2}"], "a final sigma");
        assert_eq!(terms(" -- ... !"), [""; 0]);
    }

    #[test]
    fn nothing_gives_nothing() {
        let Weighted { matrix, terms } = weigh([].into_iter(), 1).unwrap();
        assert_eq!((matrix.rows(), matrix.cols(), terms.len()), (0, 0, 0));
        let Weighted { matrix, terms } = weigh(["a", "b"].into_iter(), 2).unwrap();
        assert_eq!((matrix.rows(), matrix.cols(), matrix.entries(), terms.len()), (2, 0, 0, 0));
    }
}
