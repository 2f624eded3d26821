//! `lodestar topk`: arguments, and running on files.

mod answer;

use super::{Metric, Neighbors, Search, top_k};
#[cfg(feature = "gpu")]
use super::{Storage, is_for_the_cpu, top_k_on_device};
use crate::cli::Io;
use crate::data::{Matrix, Rows};
use crate::error::Error;
use crate::formats::{self, Format, Input, ListFormat, Names, Options};
use crate::kernels::Platform;
use answer::{Answer, View};
use clap::{Args, FromArgMatches, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LONG_ABOUT: &str = "\
The k nearest rows of a corpus for each query, exactly.

Reads matrices from .npy (f32, f16, f64, u8, i8; C and Fortran order), .fvecs, .bvecs, .csv and .tsv (also .gz and .zst), \
each row an embedding. Every row is compared with every query; memory grows with queries x k, never with queries x rows, \
and a corpus may be larger than memory.

The order is total: the better score first, then the lower row. So the answer for k is the beginning of the answer for a \
larger k, and the output is the same, byte for byte, on every CPU, device and number of threads.

Rows and queries count from 0, ranks from 1. A query with fewer than k results has fewer lines; .npy and .ivecs have one \
width and are padded with row -1 and score NaN.";

const EXAMPLES: &str = "\
Examples:
  The 5 rows nearest to each query, as csv:
    lodestar topk --corpus corpus/wordnet/embeddings.npy --queries corpus/wordnet/queries.npy -k 5

  With names instead of numbers only, for people:
    lodestar topk --corpus corpus/wordnet/embeddings.npy --ids corpus/wordnet/titles.tsv \\
      --queries corpus/wordnet/queries.npy --query-ids corpus/wordnet/queries.txt -k 5 --output-format table

  What is near a row of the corpus itself:
    lodestar topk --corpus corpus/wordnet/embeddings.npy --ids corpus/wordnet/titles.tsv --like lightship -k 5

  Near duplicates: for each row the nearest other row, if its cosine is at least 0.95:
    lodestar topk --corpus rows.npy --queries rows.npy --exclude-self -k 1 --threshold 0.95 --output pairs.csv

  Ground truth for an approximate index, as truth.ivecs and truth.fvecs:
    lodestar topk --corpus base.fvecs --queries query.fvecs --metric l2 -k 100 --output truth.ivecs

  From a pipe, as JSON:
    make-embeddings | lodestar topk --corpus rows.npy --queries - --format csv --json";

#[derive(Args)]
struct Arguments {
    /// The matrix to search: one row an item
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    corpus: PathBuf,
    /// The matrix of queries, as wide as the corpus; - is stdin (then --format says what it holds)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Input",
        required_unless_present = "like",
        conflicts_with = "like"
    )]
    queries: Option<PathBuf>,
    /// Search for what is near this row of the corpus, by its name in --ids or its number; may be repeated. All rows of
    /// that name are queries, and none is in its own answer
    #[arg(long, value_name = "NAME|ROW", help_heading = "Input")]
    like: Vec<String>,
    /// Only this query, by its name in --query-ids or its number; may be repeated
    #[arg(long = "query", value_name = "NAME|NUMBER", help_heading = "Input", requires = "queries")]
    picked: Vec<String>,
    /// Format of the input files whose extension does not say it: npy, fvecs, bvecs, csv, tsv
    #[arg(long, value_name = "FORMAT", help_heading = "Input", value_parser = input_format, ignore_case = true)]
    format: Option<Format>,
    /// Names of the corpus rows: one a line, or the first column of a .tsv
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    ids: Option<PathBuf>,
    /// Names of the queries: one a line, or the first column of a .tsv
    #[arg(long, value_name = "FILE", help_heading = "Input", requires = "queries")]
    query_ids: Option<PathBuf>,

    /// Neighbours for each query
    #[arg(short, long = "top", value_name = "K", default_value_t = 10, help_heading = "Search")]
    k: usize,
    /// What makes a row near: the cosine, the dot product (both: larger is nearer), or the Euclidean distance (smaller)
    #[arg(long, default_value = "cosine", value_parser = metric, value_name = "cosine|dot|l2", help_heading = "Search")]
    metric: Metric,
    /// Query i and row i are the same item: leave it out of its own answer
    #[arg(long, help_heading = "Search")]
    exclude_self: bool,
    /// Only results at least this near: a cosine or dot product of S or more, a distance of S or less
    #[arg(long, value_name = "S", allow_negative_numbers = true, help_heading = "Search")]
    threshold: Option<f32>,
    /// Leave rows and queries with NaN or infinity out and count them, instead of refusing the file
    #[arg(long, help_heading = "Search")]
    skip_bad: bool,

    /// Where to write; the extension says the format (.csv, .tsv, .jsonl, .npy, .ivecs). X.npy becomes X.indices.npy and
    /// X.scores.npy, X.ivecs also X.fvecs. Default: stdout
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the output, where the extension does not say it. Default on stdout: a table on a terminal, else csv
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    output_format: Option<OutputFormat>,
    /// Also write one line of JSON with the milliseconds of the search: to stdout when --output is a file, else to stderr
    #[arg(long, help_heading = "Output")]
    timing: bool,
    /// Say on stderr where the search runs, and why
    #[arg(long, help_heading = "Output")]
    explain: bool,

    /// Where to search. auto is the CPU: results do not record yet from which size on a device is faster
    #[arg(long, value_name = "auto|cpu|gpu|software|NAME", default_value = "auto", help_heading = "Machine")]
    device: String,
    /// Threads of the CPU [default: all]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For reading, on a terminal
    Table,
    Csv,
    Tsv,
    /// One JSON object a query
    Jsonl,
    /// X.indices.npy (i64) and X.scores.npy (f32)
    Npy,
    /// X.ivecs (rows) and X.fvecs (scores)
    Ivecs,
}

fn input_format(name: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    let format = Format::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
    format.ok_or_else(|| format!("expected one of {}", names()))
}

fn metric(name: &str) -> Result<Metric, String> {
    Metric::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| "expected cosine, dot or l2".into())
}

pub(super) fn command() -> clap::Command {
    Arguments::augment_args(
        clap::Command::new("topk")
            .about("The k nearest rows of a corpus for each query, exactly")
            .long_about(LONG_ABOUT)
            .after_long_help(EXAMPLES)
            .after_help("Examples and all details: lodestar topk --help"),
    )
}

pub(super) fn run(arguments: &clap::ArgMatches, io: &mut Io) -> anyhow::Result<()> {
    let arguments = Arguments::from_arg_matches(arguments)?;
    let view = view(&arguments, io)?;
    let platform = io.platform(&arguments.device, arguments.threads)?;
    let inputs = Inputs::open(&arguments, io)?;
    let rows = inputs.corpus.rows();
    if arguments.explain {
        io.explain(&arguments.device, &platform);
    }
    let started = Instant::now();
    let mut neighbors = inputs.search(&arguments, &platform, io)?;
    let elapsed = started.elapsed();
    if arguments.k > rows {
        io.note(format_args!(
            "k is {}, and {} has {rows} rows: all of them are returned",
            arguments.k,
            inputs.corpus.name()
        ));
    }
    counts(&neighbors, &arguments, &inputs, io);
    if let Some(threshold) = arguments.threshold {
        neighbors = retain(neighbors, |_, _, score| match arguments.metric {
            Metric::Cosine | Metric::Dot => score >= threshold,
            Metric::L2 => score <= threshold,
        });
    }
    let width = arguments.k.min(rows);
    Answer { neighbors: &neighbors, inputs: &inputs, metric: arguments.metric, width }.write(&view, io)?;
    if arguments.timing {
        let line = timing(&inputs, &arguments, &platform, elapsed);
        if view.is_file() {
            writeln!(io.out, "{line}")?;
        } else {
            io.out.flush()?;
            io.note(line);
        }
    }
    Ok(())
}

/// Where the answer goes and how; refuses what could only fail after the search.
fn view(arguments: &Arguments, io: &Io) -> anyhow::Result<View> {
    let list = |format| match format {
        OutputFormat::Table => None,
        OutputFormat::Csv => Some(ListFormat::Csv),
        OutputFormat::Tsv => Some(ListFormat::Tsv),
        OutputFormat::Jsonl => Some(ListFormat::Jsonl),
        OutputFormat::Npy => Some(ListFormat::Npy),
        OutputFormat::Ivecs => Some(ListFormat::Ivecs),
    };
    if arguments.k == 0 {
        return Err(Error::argument("-k", "at least 1", 0).into());
    }
    if arguments.threshold.is_some_and(f32::is_nan) {
        return Err(Error::argument("--threshold", "a number", "NaN").into());
    }
    let output = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    let Some(path) = output else {
        return Ok(match arguments.output_format {
            None if io.json => View::Text(ListFormat::Jsonl),
            None if io.is_terminal() => View::Table,
            None => View::Text(ListFormat::Csv),
            Some(format) => match list(format) {
                None => View::Table,
                Some(format @ (ListFormat::Npy | ListFormat::Ivecs)) => {
                    let expected = format!("a file name: {} is two files", format.name());
                    return Err(Error::argument("--output", expected, "stdout").into());
                }
                Some(format) => View::Text(format),
            },
        });
    };
    let format = match arguments.output_format {
        Some(OutputFormat::Table) => {
            return Err(Error::argument("--output-format", "a format for files", "table, which is for stdout").into());
        }
        Some(format) => list(format).unwrap_or(ListFormat::Csv),
        // What a file is called says what it holds; --json is about stdout.
        None => ListFormat::of(path)?,
    };
    format.check_writable(path)?;
    Ok(View::Files(format, path.to_owned()))
}

/// What the search made of unusual rows.
fn counts(neighbors: &Neighbors, arguments: &Arguments, inputs: &Inputs, io: &Io) {
    let corpus = inputs.corpus.name();
    if neighbors.zero_rows > 0 && arguments.metric == Metric::Cosine {
        let verb = if neighbors.zero_rows == 1 { "row has" } else { "rows have" };
        io.note(format_args!("{corpus}: {} {verb} norm 0, so cosine 0 with everything", neighbors.zero_rows));
    }
    let verb = |count| if count == 1 { "row is" } else { "rows are" };
    if neighbors.bad_rows > 0 {
        io.note(format_args!(
            "{corpus}: {} {} left out for NaN or infinity",
            neighbors.bad_rows,
            verb(neighbors.bad_rows)
        ));
    }
    if neighbors.bad_queries > 0 {
        let queries = inputs.queries_name();
        io.note(format_args!(
            "{queries}: {} {} without an answer for NaN or infinity",
            neighbors.bad_queries,
            verb(neighbors.bad_queries)
        ));
    }
}

fn timing(inputs: &Inputs, arguments: &Arguments, platform: &Platform, elapsed: Duration) -> String {
    let (rows, dim, queries) = (inputs.corpus.rows(), inputs.corpus.cols(), inputs.queries.rows());
    let seconds = elapsed.as_secs_f64();
    let operations = 2.0 * rows as f64 * dim as f64 * queries as f64;
    serde_json::json!({
        "ms": seconds * 1e3,
        "rows": rows,
        "dim": dim,
        "queries": queries,
        "k": arguments.k,
        "metric": arguments.metric.name(),
        "gflops": operations / seconds / 1e9,
        "device": platform.place(),
        "simd": platform.level.name(),
        "threads": platform.threads,
    })
    .to_string()
}

/// All that is searched, and what it is called.
struct Inputs {
    corpus: Box<dyn Rows + Send>,
    queries: Matrix,
    /// The file of the queries; none where rows of the corpus are the queries.
    queries_path: Option<PathBuf>,
    /// The number that each query has in its file, where not all of it was taken.
    numbers: Option<Vec<usize>>,
    ids: Option<Names>,
    query_ids: Option<Names>,
    /// Whether f16 holds every value of the corpus, so that half the bytes need to go to a device.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "there is no device to send it to"))]
    fits_f16: bool,
}

impl Inputs {
    fn open(arguments: &Arguments, io: &Io) -> anyhow::Result<Self> {
        // The extension comes first: the corpus may be .npy while stdin needs a format.
        let options = |path: &Path| Options { format: arguments.format.filter(|_| Format::of(path).is_err()) };
        let is_stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        let stdin = [&Some(arguments.corpus.clone()), &arguments.queries, &arguments.ids, &arguments.query_ids];
        if stdin.into_iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(Error::argument("-", "stdin for one file only", "it several times").into());
        }
        let open = |path: &Path| -> Result<Input, Error> {
            let mut input = formats::open(path, &options(path))?;
            input.note.take().into_iter().for_each(|note| io.note(note));
            Ok(input)
        };
        let Input { rows: corpus, fits_f16, .. } = open(&arguments.corpus)?;
        if corpus.rows() == 0 || corpus.cols() == 0 {
            let found = format!("{} rows of {}", corpus.rows(), corpus.cols());
            return Err(Error::format(corpus.name(), "shape", "at least one row of one column", found).into());
        }
        let ids = arguments.ids.as_deref().map(|path| names(path, corpus.rows(), &corpus.name())).transpose()?;
        let Some(path) = &arguments.queries else {
            let mut numbers = Vec::new();
            for wanted in &arguments.like {
                let file = arguments.ids.as_deref();
                numbers.extend(resolve("--like", wanted, ids.as_ref(), file, "--ids", corpus.rows(), "row")?);
            }
            let queries = pick(corpus.as_ref(), &numbers)?;
            let query_ids = ids.clone();
            return Ok(Self { corpus, queries, queries_path: None, numbers: Some(numbers), ids, query_ids, fits_f16 });
        };
        let all = open(path)?.rows;
        if all.rows() > 0 && all.cols() != corpus.cols() {
            let expected = format!("{} columns, as in {}", corpus.cols(), corpus.name());
            return Err(Error::format(all.name(), "shape", expected, all.cols().to_string()).into());
        }
        let query_ids = arguments.query_ids.as_deref().map(|path| names(path, all.rows(), &all.name())).transpose()?;
        let (queries, numbers) = if arguments.picked.is_empty() {
            (formats::matrix(all.as_ref())?, None)
        } else {
            let mut numbers = Vec::new();
            for wanted in &arguments.picked {
                let file = arguments.query_ids.as_deref();
                let count = all.rows();
                numbers.extend(resolve("--query", wanted, query_ids.as_ref(), file, "--query-ids", count, "query")?);
            }
            (pick(all.as_ref(), &numbers)?, Some(numbers))
        };
        if queries.rows() == 0 {
            io.note(format_args!("{}: there are no queries", all.name()));
        }
        Ok(Self { corpus, queries, queries_path: Some(path.clone()), numbers, ids, query_ids, fits_f16 })
    }

    fn queries_name(&self) -> String {
        self.queries_path.as_ref().map_or_else(|| self.corpus.name(), |path| path.display().to_string())
    }

    fn search(&self, arguments: &Arguments, platform: &Platform, io: &Io) -> anyhow::Result<Neighbors> {
        if self.queries.rows() == 0 {
            return Ok(Neighbors { offsets: vec![0], ..Neighbors::default() });
        }
        let exclude_self = arguments.exclude_self || self.queries_path.is_none();
        let mut search = Search {
            k: arguments.k,
            metric: arguments.metric,
            exclude_self: exclude_self && self.numbers.is_none(),
            skip_bad: arguments.skip_bad,
        };
        let own = self.numbers.as_ref().filter(|_| exclude_self);
        if own.is_some() {
            search.k = search.k.saturating_add(1);
        }
        let neighbors = self.nearest(&search, platform, io).map_err(|error| match error {
            // Where the query stands in its file, not among those that were taken.
            Error::NotFinite { what, row, column, value } if what == "queries" => Error::NotFinite {
                what: self.queries_name(),
                row: self.numbers.as_ref().map_or(row, |numbers| numbers[row]),
                column,
                value,
            },
            other => other,
        })?;
        let Some(own) = own else { return Ok(neighbors) };
        let without = retain(neighbors, |query, row, _| row as usize != own[query]);
        Ok(truncate(without, arguments.k))
    }

    /// On the platform's device where it has one and the search is one for it, else on the CPU: the same answer.
    fn nearest(&self, search: &Search, platform: &Platform, io: &Io) -> Result<Neighbors, Error> {
        #[cfg(feature = "gpu")]
        if platform.device.is_some() {
            let storage = if self.fits_f16 { Storage::F16 } else { Storage::F32 };
            match top_k_on_device(&self.queries, self.corpus.as_ref(), search, storage, platform) {
                Err(error) if is_for_the_cpu(&error) => {
                    io.note(format_args!("{}: {error}; the CPU searches instead", platform.place()));
                }
                other => return other,
            }
        }
        #[cfg(not(feature = "gpu"))]
        let _ = io;
        top_k(&self.queries, self.corpus.as_ref(), search, platform)
    }
}

/// Names for `count` items.
fn names(path: &Path, count: usize, of: &str) -> Result<Names, Error> {
    let names = Names::read(path)?;
    if names.len() != count {
        let expected = format!("{count}, one for each row of {of}");
        return Err(Error::format(path, "names", expected, names.len().to_string()));
    }
    Ok(names)
}

/// The rows that a name or number on the command line means.
fn resolve(
    flag: &str,
    wanted: &str,
    names: Option<&Names>,
    file: Option<&Path>,
    file_flag: &str,
    count: usize,
    item: &str,
) -> Result<Vec<usize>, Error> {
    let named: Vec<_> = names.iter().flat_map(|names| names.rows_named(wanted)).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    match wanted.parse() {
        Ok(number) if number < count => return Ok(vec![number]),
        Ok(number) => {
            return Err(Error::argument(flag, format!("a {item} number below {count}"), number));
        }
        Err(_) => {}
    }
    let (Some(names), Some(file)) = (names, file) else {
        return Err(Error::argument(flag, format!("a {item} number, or {file_flag} to find names in"), wanted));
    };
    let similar = names.similar(wanted, 5);
    let hint = if similar.is_empty() { String::new() } else { format!(" (such as {})", similar.join(", ")) };
    Err(Error::argument(flag, format!("a name in {}{hint}", file.display()), wanted))
}

/// Some rows, in this order.
fn pick(rows: &dyn Rows, numbers: &[usize]) -> Result<Matrix, Error> {
    let mut values = Vec::with_capacity(numbers.len() * rows.cols());
    let mut scratch = Vec::new();
    for &number in numbers {
        values.extend_from_slice(rows.block(number, 1, &mut scratch)?);
    }
    Matrix::new(numbers.len(), rows.cols(), values)
}

/// Keeps the results for which `keep(query, row, score)` holds.
fn retain(neighbors: Neighbors, keep: impl Fn(usize, u32, f32) -> bool) -> Neighbors {
    let mut kept = Neighbors { offsets: vec![0], rows: Vec::new(), scores: Vec::new(), ..neighbors };
    for query in 0..neighbors.offsets.len().saturating_sub(1) {
        for at in neighbors.offsets[query]..neighbors.offsets[query + 1] {
            if keep(query, neighbors.rows[at], neighbors.scores[at]) {
                kept.rows.push(neighbors.rows[at]);
                kept.scores.push(neighbors.scores[at]);
            }
        }
        kept.offsets.push(kept.rows.len());
    }
    kept
}

/// Keeps the first `k` results of each query.
fn truncate(neighbors: Neighbors, k: usize) -> Neighbors {
    let mut kept = Neighbors { offsets: vec![0], rows: Vec::new(), scores: Vec::new(), ..neighbors };
    for range in neighbors.offsets.windows(2) {
        let end = range[1].min(range[0].saturating_add(k));
        kept.rows.extend_from_slice(&neighbors.rows[range[0]..end]);
        kept.scores.extend_from_slice(&neighbors.scores[range[0]..end]);
        kept.offsets.push(kept.rows.len());
    }
    kept
}
