//! `lodestar spmm`: arguments, and running on files.

mod operands;
mod product;

use crate::cli::Io;
use crate::formats::{Banner, DenseFormat, Dtype, SparseFormat};
use crate::kernels::Platform;
use crate::units::Bytes;
use clap::{Args, FromArgMatches};
use operands::Operands;
use product::{Done, Memory, Sink};
use std::io::Write;
use std::path::{Path, PathBuf};

const LONG_ABOUT: &str = "\
The product C = A B of a sparse matrix A and a dense matrix B, in f32 or f64.

Reads A from Matrix Market (.mtx, .mm: coordinate or array; general, symmetric, skew-symmetric; real, integer, pattern; \
also .gz and .zst) and from what scipy.sparse.save_npz writes (.npz: csr, csc, coo, bsr, dia; compressed or not), and B from \
.npy (f32, f16, f64, u8, i8; C and Fortran order), .csv, .tsv and Matrix Market arrays. Writes C as .npy, .csv, .tsv or a \
Matrix Market array.

What A does not store is not multiplied: NaN or infinity in B counts only where A has an entry, and a stored zero times \
infinity is NaN. Repeated entries add up. Without --dtype the product is computed in f64 if A or B holds f64 (text does), \
else in f32.

Every element of C is summed in an order that depends on nothing but how A stores the row. So the CPU gives the same bytes for any \
number of threads, and whether or not the work is cut into blocks.

A is held in memory. B and C are cut into blocks where they do not fit into --memory together, if B is a .npy file and C is \
written to one; in other formats they are held whole.";

const EXAMPLES: &str = "\
Examples:
  Every word of 20,000 glosses as the weighted sum of the glosses it stands in, from scipy's .npz and numpy's .npy:
    lodestar spmm corpus/sparse/wordnet-tfidf.npz corpus/wordnet/embeddings.npy --transpose-a --output words.npy

  The same in f64, and where the time went, as one line of JSON:
    lodestar spmm corpus/sparse/wordnet-tfidf.npz corpus/wordnet/embeddings.npy --transpose-a --dtype f64 \\
      --output words.npy --json

  A Matrix Market file times a table of 85 rows, as csv on stdout:
    lodestar spmm corpus/sparse/ash219.mtx table.csv

  From a pipe and into one:
    make-features | lodestar spmm corpus/sparse/bcspwr10.mtx.gz - --format-b csv | sort -n | head

  A network without the first line of a Matrix Market file:
    lodestar spmm web.mtx features.npy --assume \"coordinate pattern general\" --output c.npy

  Larger than memory: 4 GiB of B and C at a time:
    lodestar spmm graph.npz features.npy --memory 4GiB --output c.npy";

#[derive(Args)]
struct Arguments {
    /// The sparse matrix: Matrix Market or scipy's .npz; - is stdin (then --format-a says what it holds)
    #[arg(value_name = "A", help_heading = "Input")]
    a: PathBuf,
    /// The dense matrix, with as many rows as A has columns; - is stdin (then --format-b says what it holds)
    #[arg(value_name = "B", help_heading = "Input")]
    b: PathBuf,
    /// Format of A, where neither its extension nor its first bytes say it: mtx, npz
    #[arg(long, value_name = "FORMAT", help_heading = "Input", value_parser = sparse_format)]
    format_a: Option<SparseFormat>,
    /// Format of B, where its extension does not say it: npy, csv, tsv, mtx
    #[arg(long, value_name = "FORMAT", help_heading = "Input", value_parser = dense_format)]
    format_b: Option<DenseFormat>,
    /// What A holds, where it is a Matrix Market file without its first line: layout, field and symmetry, such as
    /// "coordinate real general"
    #[arg(long, value_name = "BANNER", help_heading = "Input", value_parser = str::parse::<Banner>)]
    assume: Option<Banner>,

    /// Multiply by A transposed
    #[arg(long, help_heading = "Product")]
    transpose_a: bool,
    /// The type of A, B and C while computing and in the output [default: f64 if A or B holds f64, else f32]
    #[arg(long, value_name = "f32|f64", help_heading = "Product", value_parser = dtype)]
    dtype: Option<Dtype>,

    /// Where to write C; the extension says the format (.npy, .csv, .tsv, .mtx). Default: stdout
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of C, where the extension does not say it: npy, csv, tsv, mtx. Default on stdout: csv
    #[arg(long, value_name = "FORMAT", help_heading = "Output", value_parser = dense_format)]
    output_format: Option<DenseFormat>,
    /// Also write one line of JSON with shapes and milliseconds, as --json does; to stderr where C goes to stdout
    #[arg(long, help_heading = "Output")]
    timing: bool,
    /// Say on stderr where the product is computed, and why
    #[arg(long, help_heading = "Output")]
    explain: bool,

    /// Memory for B and C together, e.g. 500MB or 4GiB [default: half of what is available]
    #[arg(long, value_name = "SIZE", help_heading = "Machine", value_parser = str::parse::<Bytes>)]
    memory: Option<Bytes>,
    /// Where to compute. auto is the CPU: results do not record yet from which size on a device is faster
    #[arg(long, value_name = "auto|cpu|gpu|software|NAME", default_value = "auto", help_heading = "Machine")]
    device: String,
    /// Threads of the CPU [default: all]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    threads: Option<usize>,
}

fn sparse_format(name: &str) -> Result<SparseFormat, String> {
    let format = SparseFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
    format.ok_or_else(|| format!("expected one of {SPARSE_FORMATS}"))
}

fn dense_format(name: &str) -> Result<DenseFormat, String> {
    let format = DenseFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
    format.ok_or_else(|| format!("expected one of {DENSE_FORMATS}"))
}

const SPARSE_FORMATS: &str = "mtx, npz";
const DENSE_FORMATS: &str = "npy, csv, tsv, mtx";

fn dtype(name: &str) -> Result<Dtype, String> {
    [Dtype::F32, Dtype::F64].into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| "expected f32 or f64".into())
}

pub(super) fn command() -> clap::Command {
    Arguments::augment_args(
        clap::Command::new("spmm")
            .about("The product of a sparse and a dense matrix, in f32 or f64")
            .long_about(LONG_ABOUT)
            .after_long_help(EXAMPLES)
            .after_help("Examples and all details: lodestar spmm --help"),
    )
}

pub(super) fn run(arguments: &clap::ArgMatches, io: &mut Io) -> anyhow::Result<()> {
    let arguments = Arguments::from_arg_matches(arguments)?;
    let sink = Sink::new(&arguments, io)?;
    let platform = io.platform(&arguments.device, arguments.threads)?;
    if arguments.explain {
        io.explain(&arguments.device, &platform);
    }
    let memory = Memory::new(arguments.memory.map(|Bytes(bytes)| bytes), io);
    let threads = io.threads(&platform)?;
    let operands = Operands::read(&arguments, &memory, &threads, io)?;
    let is_file = sink.is_file();
    let done = product::write(operands, sink, &memory, &platform, &threads, io)?;
    if arguments.timing || io.json {
        let line = timing(&done, &platform);
        if is_file {
            writeln!(io.out, "{line}")?;
        } else {
            io.out.flush()?;
            io.note(line);
        }
    }
    Ok(())
}

fn timing(done: &Done, platform: &Platform) -> String {
    let Done { rows, inner, width, entries, .. } = *done;
    let operations = 2.0 * entries as f64 * width as f64;
    let seconds = done.multiplying.as_secs_f64();
    serde_json::json!({
        "a": [rows, inner],
        "b": [inner, width],
        "c": [rows, width],
        "entries": entries,
        "dtype": done.dtype.name(),
        "ms": seconds * 1e3,
        "gflops": if seconds > 0.0 { operations / seconds / 1e9 } else { 0.0 },
        "read_ms": done.reading.as_secs_f64() * 1e3,
        "write_ms": done.writing.as_secs_f64() * 1e3,
        "blocks": done.blocks,
        "device": done.place,
        "simd": platform.level.name(),
        "threads": platform.threads,
    })
    .to_string()
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
