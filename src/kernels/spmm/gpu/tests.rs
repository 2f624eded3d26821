//! The GPU arm on whatever adapter there is, against the reference.

use super::super::reference;
use super::*;
use crate::device::{
    Options, ShaderPatch,
    tests::{Noise, device},
};
use crate::simd::Level;

impl Noise {
    /// Between -1 and 1, of different magnitudes.
    fn value(&mut self) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (2.0 * unit - 1.0) * 10.0_f64.powi(i32::try_from(self.next() % 5).unwrap() - 3)
    }
}

/// The numbers of both types.
trait FromF64: Value {
    fn from_f64(value: f64) -> Self;
}

impl FromF64 for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl FromF64 for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Rows of these lengths; columns unsorted and repeated.
fn sparse<T: FromF64>(lengths: &[usize], cols: usize, seed: u64) -> Csr<T> {
    let mut noise = Noise(seed);
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for &length in lengths {
        for _ in 0..length {
            indices.push(u32::try_from(noise.below(cols)).unwrap());
            values.push(T::from_f64(noise.value()));
        }
        indptr.push(indices.len());
    }
    Csr::new(lengths.len(), cols, indptr, indices, values).unwrap()
}

fn dense<T: FromF64>(rows: usize, cols: usize, seed: u64) -> Matrix<T> {
    let mut noise = Noise(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| T::from_f64(noise.value())).collect()).unwrap()
}

/// Row lengths from 0 on, a third of them 0.
fn lengths(rows: usize, cols: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut noise = Noise(seed);
    (0..rows).map(|_| if cols == 0 || noise.below(3) == 0 { 0 } else { noise.below(most + 1) }).collect()
}

/// Memory that was something else before: what the kernel does not write stays NaN.
fn garbage<T: FromF64>(rows: usize, cols: usize) -> Matrix<T> {
    Matrix::new(rows, cols, vec![T::from_f64(f64::NAN); rows * cols]).unwrap()
}

/// Every element within the bound of the reference.
fn compare<T: Value>(a: &Csr<T>, b: &Matrix<T>, c: &Matrix<T>, case: &str) {
    assert_eq!((c.rows(), c.cols()), (a.rows(), b.cols()), "{case}");
    for row in 0..a.rows() {
        let (sums, magnitudes) = reference::row(a, b, row);
        let entries = a.row(row).0.len() as f64;
        // The reference rounds as well, in f64.
        let relative = (entries + 4.0) * T::EPSILON + (entries + 1.0) * f64::EPSILON / 2.0;
        for (column, ((&found, sum), magnitude)) in c.row(row).iter().zip(sums).zip(magnitudes).enumerate() {
            let found: f64 = found.into();
            let off = (found - sum).abs();
            assert!(
                off <= relative * magnitude,
                "{case}, row {row}, column {column}: {found} instead of {sum}, {} of the bound",
                off / (relative * magnitude)
            );
        }
    }
}

fn product<T: FromF64>(device: &Arc<Device>, a: &Csr<T>, b: &Matrix<T>) -> Matrix<T> {
    let mut c = garbage(a.rows(), b.cols());
    DeviceProduct::upload(device, a, b.cols()).unwrap().multiply(b, &mut c).unwrap();
    c
}

fn agree<T: FromF64>(device: &Arc<Device>, a: &Csr<T>, b: &Matrix<T>) {
    let case = format!("{} {} x {} x {}, {} entries", T::NAME, a.rows(), a.cols(), b.cols(), a.entries());
    compare(a, b, &product(device, a, b), &case);
}

/// Whether f64 can be tested here: where not, that is said.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn has_f64(test: &str, device: &Device) -> bool {
    if !device.has_f64() {
        eprintln!("{test}: f64 skipped, {} has none", device.info().name);
    }
    device.has_f64()
}

const SIZES: [usize; 18] = [0, 1, 2, 3, 4, 5, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 257];

fn every_size<T: FromF64>(device: &Arc<Device>) {
    // Every pair of two of the three sizes once.
    for (i, &rows) in SIZES.iter().enumerate() {
        for (j, &width) in SIZES.iter().enumerate() {
            let inner = SIZES[(i + j) % SIZES.len()];
            let seed = (i * SIZES.len() + j) as u64;
            let a = sparse::<T>(&lengths(rows, inner, 9, seed), inner, seed);
            agree(device, &a, &dense(inner, width, seed + 1));
        }
    }
}

#[test]
fn every_awkward_size_agrees_with_the_reference() {
    let Some(device) = device("sizes", Options::default()) else { return };
    every_size::<f32>(&device);
    if has_f64("sizes", &device) {
        every_size::<f64>(&device);
    }
}

fn long_rows<T: FromF64>(device: &Arc<Device>) {
    // Around one piece, sixteen, and more entries than a driver with the loop cap counts.
    let lengths = [0, 255, 256, 257, 0, 259, 511, 512, 513, 4_095, 4_096, 4_097, 4_400, 0, 70_000, 3, 0];
    for width in [1, 5, 70] {
        agree(device, &sparse::<T>(&lengths, 900, width as u64), &dense(900, width, 5));
    }
}

#[test]
fn long_rows_agree_with_the_reference() {
    let Some(device) = device("long rows", Options::default()) else { return };
    long_rows::<f32>(&device);
    if has_f64("long rows", &device) {
        long_rows::<f64>(&device);
    }
}

#[test]
fn one_full_row_among_empty_ones_agrees_with_the_reference() {
    let Some(device) = device("full row", Options::default()) else { return };
    let inner = 70_000;
    let mut noise = Noise(3);
    let mut columns: Vec<u32> = (0..u32::try_from(inner).unwrap()).collect();
    // Sorted in the first half, then the other way round.
    columns[inner / 2..].reverse();
    let values: Vec<f32> = (0..inner).map(|_| f32::from_f64(noise.value())).collect();
    let mut indptr = vec![0; 40];
    indptr[20..].fill(inner);
    let a = Csr::new(39, inner, indptr, columns, values).unwrap();
    agree(&device, &a, &dense(inner, 12, 4));
}

#[test]
fn ones_are_counted_exactly_in_rows_beyond_the_loop_cap() {
    let Some(device) = device("counting", Options::default()) else { return };
    // A sum that stops early is off by whole numbers.
    let lengths = [70_000, 131_072, 1_000_000];
    let total = lengths.iter().sum();
    let indptr = vec![0, lengths[0], lengths[0] + lengths[1], total];
    let a = Csr::new(3, 2, indptr, vec![1; total], vec![1.0_f32; total]).unwrap();
    let b = Matrix::new(2, 3, vec![9.0, 9.0, 9.0, 1.0, -2.0, 0.5]).unwrap();
    let c = product(&device, &a, &b);
    assert_eq!(c.values(), [7e4, -1.4e5, 3.5e4, 131_072.0, -262_144.0, 65_536.0, 1e6, -2e6, 5e5]);
}

#[test]
fn a_matrix_without_entries_gives_zeros_over_whatever_was_there() {
    let Some(device) = device("no entries", Options::default()) else { return };
    for (rows, inner, width) in [(1, 1, 1), (300, 0, 7), (257, 40, 64), (5, 3, 129)] {
        let c = product(&device, &sparse::<f32>(&vec![0; rows], inner, 1), &dense(inner, width, 2));
        // Positive zeros.
        assert!(c.values().iter().all(|value| value.to_bits() == 0), "{rows} x {inner} x {width}");
    }
}

#[test]
fn stored_zeros_and_repeated_columns_are_entries_like_any_other() {
    let Some(device) = device("repeated", Options::default()) else { return };
    let a = Csr::new(3, 3, vec![0, 5, 5, 7], vec![2, 0, 2, 2, 1, 1, 1], vec![1.0, 0.0, 2.0, 4.0, 8.0, 3.0, -3.0]);
    let b = Matrix::new(3, 2, vec![100.0_f32, 200.0, 10.0, 20.0, 1.0, 2.0]).unwrap();
    assert_eq!(product(&device, &a.unwrap(), &b).values(), [87.0, 174.0, 0.0, 0.0, 0.0, 0.0]);
}

fn split<T: FromF64>(whole: &Arc<Device>, cut: &Arc<Device>) {
    let mut row_lengths = lengths(600, 90, 60, 7);
    row_lengths[10] = 5_000;
    row_lengths[11] = 300;
    row_lengths[599] = 1_000;
    let a = sparse::<T>(&row_lengths, 90, 8);
    for width in [1, 30, 300] {
        let b = dense(90, width, 9);
        let mut once = DeviceProduct::upload(whole, &a, width).unwrap();
        let mut pieces = DeviceProduct::upload(cut, &a, width).unwrap();
        assert_eq!((once.layout.tiles.len(), once.layout.blocks.len()), (1, 1));
        assert!(pieces.layout.blocks.len() > 3, "{} blocks", pieces.layout.blocks.len());
        assert!(width < 300 || pieces.layout.tiles.len() > 3, "{} tiles", pieces.layout.tiles.len());
        let (mut one, mut many) = (garbage(600, width), garbage(600, width));
        once.multiply(&b, &mut one).unwrap();
        pieces.multiply(&b, &mut many).unwrap();
        compare(&a, &b, &many, "split");
        assert!(one == many, "{} {width}: how operands are cut shows in the result", T::NAME);
        assert_eq!(once.call_bytes(), pieces.call_bytes());
        assert_eq!(once.a_bytes(), pieces.a_bytes());
    }
}

#[test]
fn operands_cut_into_many_buffers_give_the_same_bits() {
    let Some(whole) = device("in one piece", Options::default()) else { return };
    let Some(cut) = device("cut", Options { segment_bytes: Some(20_000), ..Options::default() }) else { return };
    split::<f32>(&whole, &cut);
    if has_f64("cut", &cut) {
        split::<f64>(&whole, &cut);
    }
}

#[test]
fn many_dispatches_over_one_buffer_give_the_same_bits() {
    let Some(device) = device("dispatches", Options::default()) else { return };
    let a = sparse::<f32>(&[40, 0, 0, 700, 3, 256, 257, 1, 0, 5], 30, 1);
    let b = dense(30, 9, 2);
    let limits = Limits { steps: 1_000, ..Limits::of(&device) };
    let mut cut = DeviceProduct::upload_within(limits, &device, &a, 9).unwrap();
    assert!(cut.layout.blocks[0].dispatches.len() > 3);
    let mut c = garbage(10, 9);
    cut.multiply(&b, &mut c).unwrap();
    assert!(c == product(&device, &a, &b));
}

#[test]
fn an_element_has_the_same_bits_whatever_is_beside_it_and_in_every_run() {
    let Some(device) = device("same bits", Options::default()) else { return };
    let a = sparse::<f32>(&[3, 100, 0, 256, 300, 5_000, 17], 50, 1);
    let b = dense::<f32>(50, 140, 2);
    let whole = product(&device, &a, &b);
    assert!(whole == product(&device, &a, &b), "two runs differ");
    for (first, width) in [(0, 1), (3, 2), (7, 7), (20, 33), (1, 139)] {
        let columns = (0..50).flat_map(|row| b.row(row)[first..first + width].to_vec()).collect();
        let part = product(&device, &a, &Matrix::new(50, width, columns).unwrap());
        for row in 0..a.rows() {
            assert!(part.row(row) == &whole.row(row)[first..first + width], "{width} columns, row {row}");
        }
    }
    let rows = product(&device, &a.slice_rows(4..6), &b);
    assert!(rows.values() == &whole.values()[4 * 140..6 * 140], "other rows show in the result");
}

#[test]
fn more_workgroups_than_one_dimension_has_write_every_row() {
    let Some(device) = device("many rows", Options::default()) else { return };
    // 16 rows a workgroup: one more than 65,535 workgroups.
    let (rows, width) = (1_048_561, 30);
    let last = device.max_workgroups() as usize * 16 + 1;
    assert!(layout::lanes(8) == 8 && (last == rows || device.max_workgroups() > 65_535));
    let indices = (0..rows).map(|row| u32::from(row % 3 == 0)).collect();
    let values = (0..rows).map(|row| (row % 1_000) as f32 + 1.0).collect();
    let a = Csr::new(rows, 2, (0..=rows).collect(), indices, values).unwrap();
    let b = Matrix::new(2, width, (0..2 * width).map(|i| (i + 1) as f32).collect()).unwrap();
    let c = product(&device, &a, &b);
    for row in 0..rows {
        let (first, factor) = (if row % 3 == 0 { width } else { 0 }, (row % 1_000) as f32 + 1.0);
        let right = c.row(row).iter().zip(1..).all(|(&found, column)| found == factor * (first + column) as f32);
        assert!(right, "row {row}: {:?}", c.row(row));
    }
}

#[test]
fn another_a_takes_the_place_of_the_one_before() {
    let Some(device) = device("refill", Options::default()) else { return };
    let row_lengths = lengths(200, 70, 40, 1);
    let mut a = sparse::<f32>(&row_lengths, 70, 2);
    let b = dense(70, 20, 3);
    let mut resident = DeviceProduct::upload(&device, &a, 20).unwrap();
    let mut c = garbage(200, 20);
    resident.multiply(&b, &mut c).unwrap();
    compare(&a, &b, &c, "first");
    // The same rows with other columns and values, then the same number of entries in other rows.
    a = sparse(&row_lengths, 70, 4);
    for _ in 0..3 {
        resident.refill(&a).unwrap();
    }
    let before = device.allocations();
    resident.refill(&a).unwrap();
    resident.multiply(&b, &mut c).unwrap();
    assert_eq!(device.allocations(), before, "memory that fits was not used again");
    compare(&a, &b, &c, "other values");
    let mut row_lengths = row_lengths;
    row_lengths.reverse();
    row_lengths[3] += row_lengths[4..150].iter().sum::<usize>();
    row_lengths[4..150].fill(0);
    a = sparse(&row_lengths, 70, 5);
    assert!(a.indptr()[4] - a.indptr()[3] > 256);
    resident.refill(&a).unwrap();
    resident.multiply(&b, &mut c).unwrap();
    compare(&a, &b, &c, "other rows");
    for other in [sparse(&row_lengths[1..], 70, 6), sparse(&row_lengths, 71, 6), sparse(&[0; 200], 70, 6)] {
        let error = resident.refill(&other).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error}");
    }
}

#[test]
fn an_a_with_other_row_lengths_is_laid_out_anew() {
    let Some(device) = device("laid out anew", Options::default()) else { return };
    // Tiles of the first are narrow, since the pieces of its one row have to fit; those of the second are wide.
    let limits = Limits { segment: 2_048, ..Limits::of(&device) };
    let lengths = [vec![0, 6_400, 0], vec![2_000, 2_400, 2_000]];
    let b = dense(5, 700, 1);
    let mut resident = DeviceProduct::upload_within(limits, &device, &sparse::<f32>(&lengths[0], 5, 2), 700).unwrap();
    let narrow = resident.layout.widest();
    let mut c = garbage(3, 700);
    for turn in 0..4 {
        let a = sparse(&lengths[turn % 2], 5, turn as u64);
        resident.refill(&a).unwrap();
        resident.multiply(&b, &mut c).unwrap();
        compare(&a, &b, &c, "laid out anew");
        assert_eq!(resident.layout.widest() > narrow, turn % 2 == 1);
    }
}

#[test]
fn operands_beyond_a_binding_are_left_to_the_cpu() {
    let Some(device) = device("beyond a binding", Options::default()) else { return };
    let limits = Limits { segment: 1_024, binding: 1_024, ..Limits::of(&device) };
    for (lengths, inner) in [(&[1, 257][..], 64), (&[1, 2], 65)] {
        let a = sparse::<f32>(lengths, inner, 1);
        let error = DeviceProduct::upload_within(limits, &device, &a, 8).err().unwrap();
        assert!(matches!(error, Error::Limit { max: 256 | 1_024, .. }) && is_for_the_cpu(&error), "{error}");
    }
    // All that fits by a hair.
    let a = sparse::<f32>(&[256, 0, 255, 256], 64, 1);
    let b = dense(64, 8, 2);
    let mut resident = DeviceProduct::upload_within(limits, &device, &a, 8).unwrap();
    assert_eq!((resident.layout.tiles.len(), resident.layout.blocks.len()), (2, 3));
    let mut c = garbage(4, 8);
    resident.multiply(&b, &mut c).unwrap();
    compare(&a, &b, &c, "by a hair");
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let Some(device) = device("shapes", Options::default()) else { return };
    let mut resident = DeviceProduct::upload(&device, &sparse::<f32>(&[1, 2], 3, 1), 4).unwrap();
    let mut message = |b: (usize, usize), c: (usize, usize)| {
        resident.multiply(&dense(b.0, b.1, 1), &mut garbage(c.0, c.1)).unwrap_err().to_string()
    };
    assert_eq!(message((2, 4), (2, 4)), "B: rows (A has as many columns): expected 3, found 2");
    assert_eq!(message((3, 5), (2, 5)), "B: columns (what A was uploaded for): expected 4, found 5");
    assert_eq!(message((3, 4), (3, 4)), "C: rows (A has as many): expected 2, found 3");
    assert_eq!(message((3, 4), (2, 3)), "C: columns (B has as many): expected 4, found 3");
}

fn platform(device: Option<Arc<Device>>) -> Platform {
    Platform { level: Level::detect(), threads: 1, device }
}

#[test]
fn the_public_function_multiplies_or_says_why_not() {
    let (a, b) = (sparse::<f32>(&[2, 0, 3], 4, 1), dense(4, 6, 2));
    let error = multiply_on_device(&a, &b, &platform(None)).unwrap_err();
    assert!(matches!(error, Error::Device(DeviceError::NoAdapter { .. })) && !is_for_the_cpu(&error), "{error}");
    let Some(device) = device("public", Options::default()) else { return };
    let platform = platform(Some(device));
    compare(&a, &b, &multiply_on_device(&a, &b, &platform).unwrap(), "public");
    let error = multiply_on_device(&a, &dense(5, 6, 2), &platform).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 4, found: 5, .. }) && !is_for_the_cpu(&error), "{error}");
}

fn odd_values<T: FromF64>(device: &Arc<Device>) {
    let platform = platform(Some(Arc::clone(device)));
    let (a, b) = (sparse::<T>(&[2, 0, 3], 4, 1), dense::<T>(4, 6, 2));
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        // The last entry, in row 2; in B, a row that no entry may ask for.
        let mut values = a.values().to_vec();
        values[4] = T::from_f64(odd);
        let bad = Csr::new(3, 4, a.indptr().to_vec(), a.indices().to_vec(), values).unwrap();
        let error = multiply_on_device(&bad, &b, &platform).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 2, .. }) && is_for_the_cpu(&error), "{error}");
        let mut values = b.values().to_vec();
        values[13] = T::from_f64(odd);
        let error = multiply_on_device(&a, &Matrix::new(4, 6, values).unwrap(), &platform).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 2, column: 1, .. }) && is_for_the_cpu(&error), "{error}");
    }
    // Each finite, and so is every single product; the sum is not.
    let large = T::from_f64(if size_of::<T>() == 4 { 1.7e19 } else { 1.2e154 });
    let a = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![large; 2]).unwrap();
    let error = multiply_on_device(&a, &Matrix::new(2, 1, vec![large; 2]).unwrap(), &platform).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && is_for_the_cpu(&error), "{error}");
}

#[test]
fn values_that_wgsl_does_not_promise_to_handle_are_left_to_the_cpu() {
    let Some(device) = device("odd values", Options::default()) else { return };
    odd_values::<f32>(&device);
    if has_f64("odd values", &device) {
        odd_values::<f64>(&device);
    }
}

#[test]
fn a_refused_b_is_not_multiplied_by() {
    let Some(device) = device("refused", Options::default()) else { return };
    let a = sparse::<f32>(&[2, 1], 3, 1);
    let mut resident = DeviceProduct::upload(&device, &a, 4).unwrap();
    assert!(resident.kernel_only().unwrap_err().to_string().contains("no B was uploaded"));
    assert!(resident.download_c(&mut garbage(2, 4)).unwrap_err().to_string().contains("there is no C yet"));
    resident.upload_b(&dense(3, 4, 2)).unwrap();
    assert!(resident.download_c(&mut garbage(2, 4)).is_err(), "zeros are no result");
    resident.kernel_only().unwrap();
    let bad = Matrix::new(3, 4, vec![f32::INFINITY; 12]).unwrap();
    assert!(resident.upload_b(&bad).is_err());
    assert!(resident.kernel_only().is_err());
    let mut bad = sparse::<f32>(&[2, 1], 3, 1).map(|_| f32::NAN);
    assert!(resident.refill(&bad).is_err());
    let error = resident.multiply(&dense(3, 4, 2), &mut garbage(2, 4)).unwrap_err();
    assert!(error.to_string().contains("A was not uploaded whole"), "{error}");
    bad = bad.map(|_| 1.0);
    resident.refill(&bad).unwrap();
    resident.multiply(&dense(3, 4, 2), &mut garbage(2, 4)).unwrap();
}

#[test]
fn f64_without_an_adapter_that_has_it_names_the_way_out() {
    check_type::<f32>(false, "Card").unwrap();
    check_type::<f64>(true, "Card").unwrap();
    let error = check_type::<f64>(false, "Card").unwrap_err();
    assert!(!is_for_the_cpu(&error));
    assert_eq!(error.to_string(), "values: expected f32 on Card, which has no f64 (--device cpu has), found f64");
}

#[test]
fn the_parts_of_a_call_run_by_themselves() {
    let Some(device) = device("parts", Options::default()) else { return };
    let a = sparse::<f32>(&[4, 0, 300, 2, 9], 30, 1);
    let b = dense(30, 10, 2);
    let mut resident = DeviceProduct::upload(&device, &a, 10).unwrap();
    // Entries of 8 bytes; six items of 16, one of them a piece more; one long row of 12.
    assert_eq!(resident.a_bytes(), 315 * 8 + 6 * 16 + 12);
    assert_eq!(resident.call_bytes(), (30 * 48, 5 * 48));
    assert!(device_bytes::<f32>(5, 30, 315, 10) >= resident.a_bytes() + 35 * 48);
    resident.upload_b(&b).unwrap();
    let time = resident.kernel_only().unwrap();
    assert!(time.is_none() || !device.is_software(), "a software adapter gave a time");
    let (mut parts, mut call) = (garbage(5, 10), garbage(5, 10));
    resident.download_c(&mut parts).unwrap();
    compare(&a, &b, &parts, "parts");
    resident.multiply(&b, &mut call).unwrap();
    assert!(parts == call);
    resident.floor().unwrap();
}

#[test]
fn a_resident_call_allocates_nothing_and_a_forgotten_one_everything() {
    let Some(device) = device("forgotten", Options::default()) else { return };
    let a = sparse::<f32>(&[4, 0, 300], 30, 1);
    let b = dense(30, 10, 2);
    let mut resident = DeviceProduct::upload(&device, &a, 10).unwrap();
    let mut c = garbage(3, 10);
    for _ in 0..4 {
        resident.multiply(&b, &mut c).unwrap();
    }
    let mut allocated = |forget: bool| {
        let before = device.allocations();
        if forget {
            resident.forget_call();
        }
        resident.multiply(&b, &mut c).unwrap();
        compare(&a, &b, &c, "forgotten");
        device.allocations() - before
    };
    assert_eq!(allocated(false), 0);
    // B, C, partial rows, and the parameters of the two kernels.
    assert!(allocated(true) >= 5);
    assert_eq!(allocated(false), 0);
}

#[test]
fn a_c_larger_than_the_staging_memory_comes_down_whole() {
    let Some(device) = device("large C", Options::default()) else { return };
    // 26 MB straight, and 26 MB with padding to be left out.
    for width in [64, 62] {
        let rows = 100_000;
        let a = Csr::new(
            rows,
            3,
            (0..=rows).collect(),
            (0..rows).map(|row| u32::from(row % 2 == 0)).collect(),
            vec![1.0_f32; rows],
        )
        .unwrap();
        let b = dense::<f32>(3, width, 1);
        let c = product(&device, &a, &b);
        for row in 0..rows {
            assert!(c.row(row) == b.row(usize::from(row % 2 == 0)), "row {row} of {width} columns");
        }
    }
}

#[test]
fn a_broken_shader_does_not_give_the_right_answer() {
    let a = sparse::<f32>(&[3, 0, 40, 700, 5_000, 1], 60, 1);
    let b = dense::<f32>(60, 21, 2);
    let right = |c: &Matrix<f32>| {
        (0..a.rows()).all(|row| {
            let (sums, magnitudes) = reference::row(&a, &b, row);
            let bound = (a.row(row).0.len() as f64 + 4.0) * f32::EPSILON as f64;
            let mut elements = c.row(row).iter().zip(sums).zip(magnitudes);
            elements.all(|((&found, sum), magnitude)| (f64::from(found) - sum).abs() <= bound * magnitude)
        })
    };
    for fault in [
        "columns[at + 2u]=>columns[at + 3u]",
        "at < item.end; at++=>at + 1u < item.end; at++",
        "(sum0 + sum1) + (sum2 + sum3)=>(sum0 + sum1) + (sum2 - sum3)",
        "number >= p.end || vector=>number + 1u >= p.end || vector",
        "item.slot == TO_C=>item.slot != TO_C",
        "(local.y + 1u) * share=>local.y * share + 1u",
        "other < SHARES=>other + 1u < SHARES - 8u",
        "long_rows[number].row=>number",
    ] {
        let patch = ShaderPatch::parse(fault).unwrap();
        assert!(shaders().iter().any(|shader| shader.source().contains(&patch.from)), "no shader contains {fault}");
        let Some(device) = device("broken shader", Options { shader_patch: Some(patch), ..Options::default() }) else {
            return;
        };
        let mut c = garbage(6, 21);
        let answer = DeviceProduct::upload(&device, &a, 21).and_then(|mut resident| resident.multiply(&b, &mut c));
        assert!(answer.is_err() || !right(&c), "{fault}: nobody noticed");
    }
}

#[test]
fn every_shader_of_the_kernel_compiles_on_this_adapter() {
    let Some(device) = device("shaders", Options::default()) else { return };
    for shader in shaders() {
        if device.has_f64() || !shader.name().contains("f64") {
            device.pipeline(&shader).unwrap();
        }
    }
}
