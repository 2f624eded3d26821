//! Properties and edges of this kernel, on the CPU: every walk at every level against the reference.

use super::plan::Plan;
use super::simd::{Strategy, Walk, run};
use super::{LONG_ROW, PIECE, Value, multiply, multiply_into, reference};
use crate::data::{Csr, Matrix};
use crate::kernels::Platform;
use crate::simd::Level;
use proptest::prelude::{prop_assert_eq, proptest};
use proptest::strategy::Strategy as Generated;
use rand_distr::{Distribution as _, StandardNormal, Uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const WALKS: [Walk; 5] = [
    Walk::Tiles { bytes: 64, ahead: 0 },
    Walk::Tiles { bytes: 256, ahead: 2 },
    Walk::Tiles { bytes: 512, ahead: 0 },
    Walk::Tiles { bytes: 4_096, ahead: 1 },
    Walk::Panels,
];

fn platform(threads: usize) -> Platform {
    Platform::cpu(Level::detect(), threads)
}

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Rows of these lengths, columns anywhere: unsorted, and repeated where chance has it.
fn sparse(lengths: &[usize], cols: usize, seed: u64) -> Csr<f64> {
    let mut random = random(seed);
    let columns = Uniform::new(0, u32::try_from(cols).unwrap()).unwrap();
    let mut indptr = vec![0];
    indptr.extend(lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    }));
    let entries = *indptr.last().unwrap();
    let indices = (0..entries).map(|_| columns.sample(&mut random)).collect();
    let values = (0..entries).map(|_| StandardNormal.sample(&mut random)).collect();
    Csr::new(lengths.len(), cols, indptr, indices, values).unwrap()
}

fn dense(rows: usize, cols: usize, seed: u64) -> Matrix<f64> {
    let mut random = random(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| StandardNormal.sample(&mut random)).collect()).unwrap()
}

trait Narrowed: Value {
    fn of(value: f64) -> Self;
    fn bits(self) -> u64;
}

impl Narrowed for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    fn of(value: f64) -> Self {
        value as f32
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Narrowed for f64 {
    fn of(value: f64) -> Self {
        value
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

fn narrowed<T: Narrowed>(a: &Csr<f64>, b: &Matrix<f64>) -> (Csr<T>, Matrix<T>) {
    let values = b.values().iter().map(|&value| T::of(value)).collect();
    (a.clone().map(T::of), Matrix::new(b.rows(), b.cols(), values).unwrap())
}

/// NaN everywhere: whoever leaves an element alone is found.
fn unwritten<T: Narrowed>(rows: usize, cols: usize) -> Matrix<T> {
    Matrix::new(rows, cols, vec![T::of(f64::NAN); rows * cols]).unwrap()
}

fn bits<T: Narrowed>(matrix: &Matrix<T>) -> Vec<u64> {
    matrix.values().iter().map(|value| value.bits()).collect()
}

/// Compares with the reference within the bound of the module's documentation.
fn assert_close<T: Narrowed>(what: &str, a: &Csr<T>, b: &Matrix<T>, c: &Matrix<T>) {
    for row in 0..a.rows() {
        let (expected, magnitudes) = reference::row(a, b, row);
        // The reference has errors of its own, in f64.
        let roundings = (a.row(row).0.len() + 2) as f64 * (T::EPSILON + f64::EPSILON / 2.0);
        for (column, ((expected, magnitude), &found)) in expected.iter().zip(magnitudes).zip(c.row(row)).enumerate() {
            let difference = (found.into() - expected).abs();
            assert!(
                difference <= roundings * magnitude,
                "{what}: row {row}, column {column}: expected {expected}, found {found:?}, off by {difference:e}"
            );
        }
    }
}

/// Every walk, at every level, on one thread and on three, gives the reference's values, and at each level the same bits.
fn differential<T: Narrowed>(a: &Csr<f64>, b: &Matrix<f64>) {
    let (a, b) = narrowed::<T>(a, b);
    for level in Level::available() {
        let mut first: Option<Vec<u64>> = None;
        for walk in WALKS {
            for (threads, streamed) in [(1, false), (3, true)] {
                let strategy = Strategy { walk, streamed, threads };
                let mut c = unwritten(a.rows(), b.cols());
                run(&a, &Plan::new(&a, threads), &b, &mut c, level, strategy).unwrap();
                let what = format!("{} {level} {strategy:?} width {}", T::NAME, b.cols());
                match &first {
                    None => {
                        assert_close(&what, &a, &b, &c);
                        first = Some(bits(&c));
                    }
                    Some(first) => assert!(*first == bits(&c), "{what}: other bits than the first walk"),
                }
            }
        }
    }
}

fn both_types(a: &Csr<f64>, b: &Matrix<f64>) {
    differential::<f32>(a, b);
    differential::<f64>(a, b);
}

#[test]
fn every_width_around_vectors_and_tiles_agrees() {
    let a = sparse(&[3, 0, 1, 17, 4, 8, 0, 2, 5, 40, 6, 7], 23, 1);
    // Four times the longest vector of f32, and the tiles' ends beyond.
    for width in (0..=66).chain([95, 96, 97, 127, 128, 129, 160, 255, 256, 257]) {
        both_types(&a, &dense(23, width, 2));
    }
}

#[test]
fn the_smallest_matrices_agree() {
    for rows in [0, 1, 2] {
        for inner in [1, 2] {
            for width in [0, 1, 2] {
                for length in [0, 1, 3] {
                    both_types(&sparse(&vec![length; rows], inner, 3), &dense(inner, width, 4));
                }
            }
        }
    }
    // Nothing to multiply with: B has no rows.
    let none = Csr::<f64>::new(3, 0, vec![0; 4], vec![], vec![]).unwrap();
    both_types(&none, &dense(0, 5, 0));
}

#[test]
fn long_rows_and_empty_rows_agree() {
    for lengths in [
        vec![LONG_ROW],
        vec![LONG_ROW + 1],
        vec![0, LONG_ROW + PIECE - 1, 0, 5],
        vec![5, 0, 0, 2 * LONG_ROW, LONG_ROW + 3, 7, 0, 0, 0, 0, 0, 1],
    ] {
        let a = sparse(&lengths, 300, 5);
        for width in [1, 9, 33] {
            both_types(&a, &dense(300, width, 6));
        }
    }
}

#[test]
fn a_product_large_enough_for_every_thread_has_the_same_bits_on_any_number() {
    let lengths: Vec<_> = (0..3_000).map(|row| if row % 3 == 0 { 0 } else { row % 61 }).collect();
    let a = sparse(&lengths, 700, 7);
    for width in [5, 64, 200] {
        let b = dense(700, width, 8);
        let expected = multiply(&a, &b, &platform(1)).unwrap();
        assert_close("one thread", &a, &b, &expected);
        for threads in [2, 3, 4, 7, 16] {
            let mut c = unwritten::<f64>(a.rows(), width);
            multiply_into(&a, &b, &mut c, &platform(threads)).unwrap();
            assert!(bits(&c) == bits(&expected), "{threads} threads, width {width}");
        }
    }
}

#[test]
fn one_plan_serves_product_after_product() {
    let a = sparse(&[40; 500], 50, 9);
    let plan = Plan::new(&a, 2);
    for (seed, width) in [(1, 64), (2, 64), (3, 20), (4, 130)] {
        let b = dense(50, width, seed);
        let mut c = unwritten::<f64>(a.rows(), width);
        let strategy = Strategy { walk: Walk::Panels, streamed: true, threads: 2 };
        run(&a, &plan, &b, &mut c, Level::detect(), strategy).unwrap();
        assert_close("again", &a, &b, &c);
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let a = sparse(&[1, 1], 3, 1);
    let message = |b: &Matrix<f64>, c: &mut Matrix<f64>| multiply_into(&a, b, c, &platform(1)).unwrap_err().to_string();
    let b = dense(3, 4, 1);
    assert_eq!(message(&dense(2, 4, 1), &mut dense(2, 4, 1)), "B: rows (A has as many columns): expected 3, found 2");
    assert_eq!(message(&b, &mut dense(3, 4, 1)), "C: rows (A has as many): expected 2, found 3");
    assert_eq!(message(&b, &mut dense(2, 5, 1)), "C: columns (B has as many): expected 4, found 5");
    assert!(multiply(&a, &dense(4, 1, 1), &platform(1)).is_err());
}

#[test]
fn what_is_not_stored_is_not_multiplied_and_what_is_stored_is() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    // Row 0: a stored zero meets infinity. Row 1: nothing meets NaN. Row 2: 1 - 1 of infinities. Row 3: plain.
    let indptr = vec![0, 1, 1, 3, 4];
    let a = Csr::new(4, 3, indptr, vec![0, 0, 1, 2], vec![0.0, 1.0, -1.0, 2.0]).unwrap();
    for width in [1, 7, 8, 9, 70] {
        let values = [inf, inf, 3.0].into_iter().flat_map(|value| std::iter::repeat_n(value, width)).collect();
        let c = multiply(&a, &Matrix::new(3, width, values).unwrap(), &platform(2)).unwrap();
        assert!(c.row(0).iter().all(|value| value.is_nan()), "zero times infinity, width {width}");
        assert_eq!(c.row(1), vec![0.0; width]);
        assert!(c.row(2).iter().all(|value| value.is_nan()), "infinity less infinity, width {width}");
        assert_eq!(c.row(3), vec![6.0; width]);
        let values = [1.0, 1.0, nan].into_iter().flat_map(|value| std::iter::repeat_n(value, width)).collect();
        let c = multiply(&a, &Matrix::new(3, width, values).unwrap(), &platform(2)).unwrap();
        assert_eq!(
            (c.row(0), c.row(1), c.row(2)),
            (&vec![0.0; width][..], &vec![0.0; width][..], &vec![0.0; width][..])
        );
        assert!(c.row(3).iter().all(|value| value.is_nan()));
    }
}

#[test]
fn a_sum_of_nothing_but_negative_zeros_is_zero() {
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![-0.0_f64]).unwrap();
    for width in [1, 8, 9] {
        let c = multiply(&a, &Matrix::new(1, width, vec![1.0; width]).unwrap(), &platform(1)).unwrap();
        assert!(c.values().iter().all(|value| value.bits() == 0), "as 0 + -0 is, width {width}");
    }
}

/// Small whole numbers: every sum is exact, so the laws hold to the bit.
fn whole(rows: usize, cols: usize) -> impl Generated<Value = Matrix<f64>> {
    proptest::collection::vec(-8_i8..8, rows * cols)
        .prop_map(move |values| Matrix::new(rows, cols, values.into_iter().map(f64::from).collect()).unwrap())
}

fn whole_sparse(rows: usize, cols: usize) -> impl Generated<Value = Csr<f64>> {
    let entry = (0..rows as u64, 0..u32::try_from(cols).unwrap(), -8_i8..8);
    proptest::collection::vec(entry, 0..120).prop_map(move |entries| {
        let row_of: Vec<_> = entries.iter().map(|entry| entry.0).collect();
        let values = entries.iter().map(|entry| f64::from(entry.2)).collect();
        Csr::from_coordinates(rows, cols, &row_of, entries.iter().map(|entry| entry.1).collect(), values).unwrap().0
    })
}

fn product(a: &Csr<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    multiply(a, b, &platform(2)).unwrap()
}

fn sum(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    let values = a.values().iter().zip(b.values()).map(|(a, b)| a + b).collect();
    Matrix::new(a.rows(), a.cols(), values).unwrap()
}

fn as_dense(a: &Csr<f64>) -> Matrix<f64> {
    let mut dense = Matrix::new(a.rows(), a.cols(), vec![0.0; a.rows() * a.cols()]).unwrap();
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        for (&column, value) in columns.iter().zip(values) {
            dense.values_mut()[row * a.cols() + column as usize] += value;
        }
    }
    dense
}

fn transposed(a: &Matrix<f64>) -> Matrix<f64> {
    let values = (0..a.cols()).flat_map(|column| (0..a.rows()).map(move |row| a.row(row)[column])).collect();
    Matrix::new(a.cols(), a.rows(), values).unwrap()
}

proptest! {
    #[test]
    fn products_are_linear(
        (a, b, c) in (1..12_usize, 1..12_usize, 1..20_usize)
            .prop_flat_map(|(rows, inner, width)| (whole_sparse(rows, inner), whole(inner, width), whole(inner, width)))
    ) {
        prop_assert_eq!(product(&a, &sum(&b, &c)), sum(&product(&a, &b), &product(&a, &c)));
    }

    #[test]
    fn rows_of_a_in_another_order_give_rows_of_c_in_that_order(
        (a, b, turn) in (1..12_usize, 1..12_usize, 1..20_usize)
            .prop_flat_map(|(rows, inner, width)| (whole_sparse(rows, inner), whole(inner, width), 0..rows))
    ) {
        let c = product(&a, &b);
        let turned = |part: std::ops::Range<usize>| product(&a.slice_rows(part), &b);
        let (first, second) = (turned(turn..a.rows()), turned(0..turn));
        let expected: Vec<_> = [&c.values()[turn * b.cols()..], &c.values()[..turn * b.cols()]].concat();
        prop_assert_eq!([first.values(), second.values()].concat(), expected);
    }

    #[test]
    fn products_associate(
        (a, b, c) in (1..10_usize, 1..10_usize, 1..10_usize, 1..20_usize).prop_flat_map(|(rows, inner, next, width)| {
            (whole_sparse(rows, inner), whole_sparse(inner, next), whole(next, width))
        })
    ) {
        // (A B) C by way of a dense A B, and A (B C).
        let ab = product(&a, &as_dense(&b));
        let (ab_rows, next) = (ab.rows(), ab.cols());
        let indptr = (0..=ab_rows).map(|row| row * next).collect();
        let indices = (0..ab_rows).flat_map(|_| 0..u32::try_from(next).unwrap()).collect();
        let ab = Csr::new(ab_rows, next, indptr, indices, ab.values().to_vec()).unwrap();
        prop_assert_eq!(product(&ab, &c), product(&a, &product(&b, &c)));
    }

    #[test]
    fn the_transpose_of_a_product_is_the_product_of_the_transposes(
        (a, b) in (1..12_usize, 1..12_usize, 1..12_usize)
            .prop_flat_map(|(rows, inner, width)| (whole_sparse(rows, inner), whole_sparse(inner, width)))
    ) {
        let left = transposed(&product(&a, &as_dense(&b)));
        let right = product(&b.transpose().unwrap(), &as_dense(&a.transpose().unwrap()));
        prop_assert_eq!(left, right);
    }
}
