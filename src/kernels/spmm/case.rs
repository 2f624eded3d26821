//! Axis values -> seeded inputs; bytes and operations per call; how close is close enough.
//!
//! Floats are summed, so agreement is a matter of bounds: a share of 1 is the error that the order of summation can make at
//! worst, and what is reported is the largest share found. Where the order is the same, as between all CPU variants, bits
//! have to be.

mod products;

use super::Value;
use crate::data::{Buffer, Csr, Matrix, generate_sparse};
use crate::error::Error;
use crate::kernels::{Axes, Axis, Case, Footprint, Platform, Prepared};
use products::Products;

pub(super) const AXES: Axes = Axes {
    size: "rows",
    context: &[Axis::named("matrix", MATRICES), Axis::number("width"), Axis::named("values", VALUES)],
};

/// Every seeded kind of [`generate_sparse`], and the real ones of [`REAL`].
#[cfg(feature = "cli")]
const MATRICES: &[&str] = &["tf-idf", "zipf", "power-law", "banded", "skewed", "wordnet", "power-grid", "arrow"];
#[cfg(not(feature = "cli"))]
const MATRICES: &[&str] = generate_sparse::MATRICES;

const VALUES: &[&str] = &["f32", "f64"];

/// Of the values, in A and in B.
pub(super) const DISTRIBUTIONS: &[&str] = &["gaussian"];

pub(super) const INPUT_SOURCES: &[(&str, &str)] =
    &[("generate_sparse.rs", include_str!("../../data/generate_sparse.rs"))];
pub(super) const CPU_SOURCES: &[(&str, &str)] = &[
    ("panel.rs", include_str!("panel.rs")),
    ("plan.rs", include_str!("plan.rs")),
    ("simd.rs", include_str!("simd.rs")),
    ("tile.rs", include_str!("tile.rs")),
    ("together.rs", include_str!("together.rs")),
    ("../parallel.rs", include_str!("../parallel.rs")),
    ("../../data/buffer.rs", include_str!("../../data/buffer.rs")),
    ("../../simd/memory.rs", include_str!("../../simd/memory.rs")),
];
#[cfg(feature = "gpu")]
pub(super) const GPU_SOURCES: &[(&str, &str)] = super::gpu::SOURCES;
#[cfg(not(feature = "gpu"))]
pub(super) const GPU_SOURCES: &[(&str, &str)] = &[];

/// A matrix of the corpus folder; a case takes its first rows.
#[cfg(feature = "cli")]
struct Real {
    name: &'static str,
    path: &'static str,
    rows: usize,
    cols: usize,
    entries: usize,
}

#[cfg(feature = "cli")]
const REAL: &[Real] = &[
    // TF-IDF weights of 20,000 glosses: real text, with empty rows.
    Real { name: "wordnet", path: "corpus/sparse/wordnet-tfidf.npz", rows: 20_000, cols: 11_174, entries: 176_881 },
    // The power network of the United States: a handful of entries a row.
    Real { name: "power-grid", path: "corpus/sparse/bcspwr10.mtx.gz", rows: 5_300, cols: 5_300, entries: 21_842 },
    // A full row, longer than what is summed in one piece, a full column and the diagonal.
    Real { name: "arrow", path: "corpus/sparse/arrow_33000.mtx.gz", rows: 33_000, cols: 33_000, entries: 98_998 },
];

#[cfg(feature = "cli")]
fn real(name: &str) -> Option<&'static Real> {
    REAL.iter().find(|real| real.name == name)
}

/// A case in numbers, checked.
#[derive(Debug, Clone, Copy)]
struct Shape<'a> {
    matrix: &'a str,
    rows: usize,
    /// Columns of A, rows of B.
    inner: usize,
    /// Entries of A: exact, or expected where they are drawn.
    entries: u64,
    width: usize,
    double: bool,
}

impl<'a> Shape<'a> {
    fn of(case: &'a Case) -> Result<Self, Error> {
        for axis in AXES.context {
            if let Some(value) = case.context.get(axis.name) {
                axis.check(value)?;
            }
        }
        if !DISTRIBUTIONS.contains(&case.distribution.as_str()) {
            let expected = format!("one of {}", DISTRIBUTIONS.join(", "));
            return Err(Error::argument("distribution", expected, &case.distribution));
        }
        let (matrix, rows, width) = (case.name("matrix")?, case.size()?, case.axis("width")?);
        for (what, value) in [("rows", rows), ("width", width)] {
            if value == 0 {
                return Err(Error::argument(what, "at least 1", value));
            }
        }
        let (inner, entries) = Self::of_matrix(matrix, rows)?;
        let most = 1_u64 << 32;
        for (what, value) in [("rows", rows), ("columns", inner)] {
            if value as u64 > most {
                return Err(Error::Limit { what: format!("{what} of {matrix}"), requested: value as u64, max: most });
            }
        }
        Ok(Self { matrix, rows, inner, entries, width, double: case.name("values")? == "f64" })
    }

    fn of_matrix(matrix: &str, rows: usize) -> Result<(usize, u64), Error> {
        #[cfg(feature = "cli")]
        if let Some(real) = real(matrix) {
            if rows > real.rows {
                let (requested, max) = (rows as u64, real.rows as u64);
                return Err(Error::Limit { what: format!("rows of {matrix}"), requested, max });
            }
            return Ok((real.cols, real.entries as u64));
        }
        Ok((generate_sparse::cols(matrix, rows)?, generate_sparse::entries(matrix, rows)?))
    }

    fn value_bytes(&self) -> u64 {
        if self.double { 8 } else { 4 }
    }

    /// A as slices.
    fn a_bytes(&self) -> u64 {
        self.entries.saturating_mul(4 + self.value_bytes()).saturating_add(8 * (self.rows as u64 + 1))
    }

    fn dense_bytes(&self, rows: usize, value_bytes: u64) -> u64 {
        (rows as u64).saturating_mul(self.width as u64).saturating_mul(value_bytes)
    }

    fn b_bytes(&self) -> u64 {
        self.dense_bytes(self.inner, self.value_bytes())
    }

    fn c_bytes(&self) -> u64 {
        self.dense_bytes(self.rows, self.value_bytes())
    }
}

/// Every kind of matrix and both types of values at sizes and widths around the tiles' edges, with empty rows and with rows
/// that are summed in pieces; real matrices.
pub(super) fn check_cases() -> Vec<Case> {
    let case = |matrix: &str, size, width: u64, values: &str| {
        let context = [("matrix", matrix.into()), ("width", width.into()), ("values", values.into())];
        let context = context.map(|(name, value)| (name.to_owned(), value)).into();
        Case { size, context, seed: 42, ring: 2, distribution: DISTRIBUTIONS[0].into() }
    };
    #[cfg_attr(not(feature = "cli"), expect(unused_mut, reason = "files add some"))]
    let mut cases = vec![
        case("tf-idf", 1, 1, "f32"),
        case("tf-idf", 1_003, 64, "f64"),
        case("tf-idf", 517, 100, "f32"),
        case("zipf", 777, 9, "f32"),
        case("zipf", 1_025, 8, "f64"),
        case("power-law", 3_001, 100, "f64"),
        case("power-law", 1_024, 3, "f32"),
        case("banded", 1_331, 64, "f32"),
        case("banded", 1_337, 3, "f64"),
        // Its long row has more than 37,000 entries.
        case("skewed", 8_000, 9, "f64"),
        case("skewed", 8_000, 64, "f32"),
        case("skewed", 30, 1, "f64"),
    ];
    #[cfg(feature = "cli")]
    cases.extend([
        case("wordnet", 20_000, 8, "f32"),
        case("wordnet", 5_003, 64, "f64"),
        case("power-grid", 5_300, 100, "f32"),
        case("power-grid", 1_001, 1, "f64"),
        case("arrow", 33_000, 3, "f64"),
        case("arrow", 33_000, 8, "f32"),
    ]);
    cases
}

pub(super) fn footprint(case: &Case) -> Result<Footprint, Error> {
    let shape = Shape::of(case)?;
    let ring = case.ring.max(1) as u64;
    let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    let (a, b, c) = (shape.a_bytes(), shape.b_bytes(), shape.c_bytes());
    // Inputs are made in f64, places of a graph as 64-bit numbers before that; drawn numbers of entries exceed the expected
    // one a little.
    let building = sum(&[shape.entries.saturating_mul(24), shape.dense_bytes(shape.inner, 8)]);
    // The CPU's C, the sums of magnitudes and their operands, beside a C of the device.
    let comparing = sum(&[a, b, 2_u64.saturating_mul(c)]);
    let host = sum(&[a, ring.saturating_mul(b), c, building.max(comparing), a / 50]);
    Ok(Footprint { host_bytes: host, device_bytes: device_bytes(&shape) })
}

#[cfg(feature = "gpu")]
fn device_bytes(shape: &Shape<'_>) -> u64 {
    let entries = usize::try_from(shape.entries).unwrap_or(usize::MAX);
    let bytes = if shape.double { super::gpu::device_bytes::<f64> } else { super::gpu::device_bytes::<f32> };
    bytes(shape.rows, shape.inner, entries, shape.width)
}

#[cfg(not(feature = "gpu"))]
fn device_bytes(shape: &Shape<'_>) -> u64 {
    shape.a_bytes().saturating_add(shape.b_bytes()).saturating_add(shape.c_bytes())
}

pub(super) fn prepare(case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
    let shape = Shape::of(case)?;
    if shape.double {
        return build(case, shape, platform, |value| value);
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
    build(case, shape, platform, |value| value as f32)
}

fn build<T: Value>(
    case: &Case,
    shape: Shape<'_>,
    platform: &Platform,
    narrow: fn(f64) -> T,
) -> Result<Box<dyn Prepared>, Error> {
    let a = a_of(case, &shape)?.map(narrow);
    let operands = (0..case.ring.max(1) as u64).map(|call| {
        let wide = generate_sparse::dense(a.cols(), shape.width, case.seed, call)?;
        narrowed(&wide, narrow)
    });
    let operands = operands.collect::<Result<_, Error>>()?;
    Ok(Box::new(Products::new(a, operands, platform, narrow)?))
}

fn a_of(case: &Case, shape: &Shape<'_>) -> Result<Csr<f64>, Error> {
    #[cfg(feature = "cli")]
    if let Some(real) = real(shape.matrix) {
        return read(real, shape.rows);
    }
    generate_sparse::matrix(shape.matrix, shape.rows, case.seed)
}

#[cfg(feature = "cli")]
fn read(real: &Real, rows: usize) -> Result<Csr<f64>, Error> {
    use crate::formats::{Dtype, SparseMatrix, SparseOptions, read_sparse};
    let path = std::path::Path::new(real.path);
    let matrix = read_sparse(path, &SparseOptions::default())?.matrix;
    let found = (matrix.rows(), matrix.cols(), matrix.entries());
    let expected = (real.rows, real.cols, real.entries);
    if found != expected {
        let words = |(rows, cols, entries)| format!("{rows} x {cols} with {entries} entries");
        return Err(Error::format(path, "shape", words(expected), words(found)));
    }
    let all = match matrix.convert(Dtype::F64).0 {
        SparseMatrix::F64(matrix) => matrix,
        SparseMatrix::F32(matrix) => matrix.map(f64::from),
    };
    Ok(if rows == all.rows() { all } else { all.slice_rows(0..rows) })
}

/// In the type that is asked for.
fn narrowed<T: Value>(wide: &Matrix<f64>, narrow: fn(f64) -> T) -> Result<Matrix<T>, Error> {
    let mut values = Buffer::zeroed(wide.values().len())?;
    for (to, from) in values.iter_mut().zip(wide.values()) {
        *to = narrow(*from);
    }
    Matrix::from_buffer(wide.rows(), wide.cols(), values)
}

#[cfg(test)]
mod tests;
