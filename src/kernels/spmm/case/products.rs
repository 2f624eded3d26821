//! A built case: what is timed, and how its results are compared.

#[cfg(feature = "gpu")]
use super::super::gpu::DeviceProduct;
use super::super::plan::Plan;
use super::super::simd::multiply_planned;
use super::super::{Value, reference};
use crate::data::{Csr, Matrix};
use crate::error::Error;
use crate::kernels::{Agreement, Mismatch, Platform, Prepared, Row, Variant, Work};
use sha2::{Digest, Sha256};

/// Rows of C that are compared with the reference, beside the first, the last, the longest and empty ones.
const SAMPLED_ROWS: usize = 64;

/// Built inputs of a case; C is memory that every call of either arm overwrites.
pub(super) struct Products<T: Value> {
    platform: Platform,
    a: Csr<T>,
    /// The ring of per-call operands.
    b: Vec<Matrix<T>>,
    c: Matrix<T>,
    /// What the CPU works out once for A, by number of threads.
    plans: Vec<(usize, Plan)>,
    #[cfg(feature = "gpu")]
    gpu: Result<DeviceProduct<T>, String>,
    narrow: fn(f64) -> T,
    /// What C holds.
    last: Option<(Variant, Row, usize)>,
    /// Rows that are compared with the reference, ascending.
    sampled: Vec<usize>,
    /// For each input: what is known of its C.
    known: Vec<Known>,
}

/// What is known of the C of one input.
#[derive(Default)]
struct Known {
    /// Sampled rows with the sums of their magnitudes.
    reference: Option<Vec<(Vec<f64>, Vec<f64>)>>,
    /// Checksum of the first C of a CPU variant that agreed with it, and that variant's threads.
    cpu: Option<(String, usize)>,
}

/// Shares of the error bound that were found.
#[derive(Default)]
struct Found {
    compared: u64,
    exact: u64,
    largest: f64,
}

impl<T: Value> Products<T> {
    pub(super) fn new(a: Csr<T>, b: Vec<Matrix<T>>, platform: &Platform, narrow: fn(f64) -> T) -> Result<Self, Error> {
        let width = b[0].cols();
        let c = Matrix::zeroed(a.rows(), width)?;
        let mut threads = vec![platform.threads, 1];
        threads.dedup();
        let plans = threads.into_iter().map(|threads| (threads, Plan::new(&a, threads))).collect();
        #[cfg(feature = "gpu")]
        let gpu = on_device(&a, &b[0], platform)?;
        Ok(Self {
            platform: platform.clone(),
            plans,
            #[cfg(feature = "gpu")]
            gpu,
            narrow,
            last: None,
            sampled: sampled(&a),
            known: b.iter().map(|_| Known::default()).collect(),
            a,
            b,
            c,
        })
    }

    fn width(&self) -> usize {
        // Not of C, which is lent away while it is compared.
        self.b[0].cols()
    }

    /// Bytes to the device for A and for a call, and bytes from the device for a call.
    fn moved_bytes(&self) -> (u64, u64, u64) {
        #[cfg(feature = "gpu")]
        if let Ok(gpu) = &self.gpu {
            let (up, down) = gpu.call_bytes();
            return (gpu.a_bytes(), up, down);
        }
        (a_bytes(&self.a), bytes(&self.b[0]), bytes(&self.c))
    }

    #[cfg(feature = "gpu")]
    fn run_gpu(&mut self, row: Row, input: usize) -> Result<Ran, Error> {
        let gpu = match &mut self.gpu {
            Ok(gpu) => gpu,
            Err(why) => return Err(Error::argument("variant", "one that this platform has", format!("gpu: {why}"))),
        };
        let (a, b, c) = (&self.a, &self.b[input], &mut self.c);
        match row {
            Row::Resident => gpu.multiply(b, c)?,
            Row::OneShot => {
                gpu.refill(a)?;
                gpu.multiply(b, c)?;
            }
            Row::E2eFresh => {
                gpu.forget_call();
                gpu.multiply(b, c)?;
            }
            // By the B that is on the device: that of the last call.
            Row::KernelOnly => return Ok(Ran::Part(gpu.kernel_only()?)),
            Row::Upload => {
                gpu.upload_b(b)?;
                return Ok(Ran::Part(None));
            }
            Row::Download => {
                gpu.download_c(c)?;
                return Ok(Ran::Part(None));
            }
            Row::Floor => {
                gpu.floor()?;
                return Ok(Ran::Part(None));
            }
        }
        Ok(Ran::Product)
    }

    /// How far a CPU variant may be from the exact sum of `n` products, in units of eps times their magnitudes, and two more
    /// for the rounding of the bound itself.
    fn factor(variant: Variant, n: usize) -> f64 {
        let n = n as f64;
        match variant {
            Variant::Simd { .. } => n + 4.0,
            // A device may round either way, which counts double but over fewer additions; see the module of the GPU arm.
            Variant::Gpu => (n + 4.0).max(n / 2.0 + 20.0),
        }
    }

    /// What subnormal numbers can add where a device takes them for zero: a product, or a sum, each.
    fn subnormal(variant: Variant, n: usize) -> f64 {
        let smallest = if size_of::<T>() == 4 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        if variant == Variant::Gpu { 2.0 * n as f64 * smallest } else { 0.0 }
    }

    /// The sampled rows of a C against the reference.
    fn against_reference(&mut self, variant: Variant, input: usize, c: &Matrix<T>) -> Result<Found, Mismatch> {
        let (a, b) = (&self.a, &self.b[input]);
        let reference = self.known[input]
            .reference
            .get_or_insert_with(|| self.sampled.iter().map(|&row| reference::row(a, b, row)).collect());
        let mut found = Found::default();
        for (&row, (sums, magnitudes)) in self.sampled.iter().zip(reference.iter()) {
            let n = a.row(row).0.len();
            // The reference is summed in f64, and has an error of its own there.
            let factor = Self::factor(variant, n) * T::EPSILON + (n as f64 + 2.0) * f64::EPSILON / 2.0;
            for (column, (&value, (&sum, &magnitude))) in c.row(row).iter().zip(sums.iter().zip(magnitudes)).enumerate()
            {
                let allowed = factor * magnitude + Self::subnormal(variant, n);
                found
                    .add(value.into(), sum, (self.narrow)(sum).into(), allowed)
                    .map_err(|share| outside((row, column), share, allowed, value.into(), sum, "the reference's"))?;
            }
        }
        Ok(found)
    }

    /// All of C, computed by the CPU in the same way.
    fn by_cpu(&self, input: usize, threads: usize) -> Result<Matrix<T>, Error> {
        let mut c = Matrix::zeroed(self.a.rows(), self.width())?;
        multiply_planned(&self.a, &Plan::new(&self.a, threads), &self.b[input], &mut c, self.platform.level, threads)?;
        Ok(c)
    }

    /// The sums of the magnitudes of all elements of C.
    fn magnitudes(&self, input: usize) -> Result<Matrix<T>, Error> {
        let narrow = self.narrow;
        let magnitude = |value: T| narrow(Into::<f64>::into(value).abs());
        let a = Csr::new(
            self.a.rows(),
            self.a.cols(),
            self.a.indptr().to_vec(),
            self.a.indices().to_vec(),
            self.a.values().iter().map(|value| magnitude(*value)).collect(),
        )?;
        let mut b = Matrix::zeroed(self.b[input].rows(), self.width())?;
        for (to, from) in b.values_mut().iter_mut().zip(self.b[input].values()) {
            *to = magnitude(*from);
        }
        let mut sums = Matrix::zeroed(a.rows(), self.width())?;
        let (level, threads) = (self.platform.level, self.platform.threads);
        multiply_planned(&a, &Plan::new(&a, threads), &b, &mut sums, level, threads)?;
        Ok(sums)
    }

    /// All of the device's C against all of the CPU's, which is itself compared with the reference.
    fn against_cpu(&mut self, input: usize, c: &Matrix<T>) -> Result<Found, Mismatch> {
        let threads = self.platform.threads;
        let of_cpu = self.by_cpu(input, threads).map_err(not_comparable)?;
        self.against_reference(Variant::Simd { threads }, input, &of_cpu)?;
        let magnitudes = self.magnitudes(input).map_err(not_comparable)?;
        let mut found = Found::default();
        for row in 0..self.a.rows() {
            let n = self.a.row(row).0.len();
            // Both may be wrong, in opposite directions.
            let factor = Self::factor(Variant::Gpu, n) + Self::factor(Variant::Simd { threads }, n);
            for (column, &value) in c.row(row).iter().enumerate() {
                let (expected, magnitude) = (of_cpu.row(row)[column].into(), magnitudes.row(row)[column].into());
                let allowed = factor * T::EPSILON * magnitude + Self::subnormal(Variant::Gpu, n);
                found
                    .add(value.into(), expected, expected, allowed)
                    .map_err(|share| outside((row, column), share, allowed, value.into(), expected, "the CPU's"))?;
            }
        }
        Ok(found)
    }

    /// All CPU variants give the same bits; where they do not, the first element that differs.
    fn against_other_threads(&mut self, threads: usize, input: usize, c: &Matrix<T>) -> Result<String, Mismatch> {
        let checksum = checksum(c);
        let (known, by) = self.known[input].cpu.get_or_insert_with(|| (checksum.clone(), threads)).clone();
        if known == checksum {
            return Ok(checksum);
        }
        let other = self.by_cpu(input, by).map_err(not_comparable)?;
        let differs = |at: &usize| bytemuck::bytes_of(&c.values()[*at]) != bytemuck::bytes_of(&other.values()[*at]);
        Err(match (0..c.values().len()).find(differs) {
            Some(at) => Mismatch {
                position: place((at / c.cols(), at % c.cols())),
                expected: format!("{:e}, as on {by} threads", other.values()[at].into()),
                found: format!("{:e} on {threads}", c.values()[at].into()),
            },
            // It has changed since.
            None => Mismatch {
                position: format!("checksum on {by} threads"),
                expected: format!("{known} in every call"),
                found: checksum,
            },
        })
    }
}

/// What one call on the device gave.
#[cfg(feature = "gpu")]
enum Ran {
    /// C.
    Product,
    /// A part of a call: perhaps the device's own nanoseconds.
    Part(Option<u64>),
}

/// A on the device, everything allocated and compiled before the first call is timed; or why there is no such arm.
#[cfg(feature = "gpu")]
fn on_device<T: Value>(
    a: &Csr<T>,
    first: &Matrix<T>,
    platform: &Platform,
) -> Result<Result<DeviceProduct<T>, String>, Error> {
    let Some(device) = &platform.device else { return Ok(Err("the platform has no device".into())) };
    if size_of::<T>() == 8 && !device.has_f64() {
        return Ok(Err(format!("{} has no f64", device.info().name)));
    }
    let mut uploaded = DeviceProduct::upload(device, a, first.cols())?;
    uploaded.upload_b(first)?;
    Ok(Ok(uploaded))
}

impl<T: Value> Prepared for Products<T> {
    fn variants(&self) -> Vec<Variant> {
        #[cfg_attr(not(feature = "gpu"), expect(unused_mut, reason = "the device adds one"))]
        let mut variants: Vec<_> = self.plans.iter().map(|&(threads, _)| Variant::Simd { threads }).collect();
        #[cfg(feature = "gpu")]
        if self.gpu.is_ok() {
            variants.push(Variant::Gpu);
        }
        variants
    }

    fn no_gpu(&self) -> Option<String> {
        #[cfg(feature = "gpu")]
        if let Err(why) = &self.gpu {
            return Some(why.clone());
        }
        None
    }

    fn has_row(&self, variant: Variant, row: Row) -> bool {
        match variant {
            Variant::Simd { .. } => matches!(row, Row::Resident | Row::OneShot),
            Variant::Gpu => self.variants().contains(&Variant::Gpu),
        }
    }

    fn run(&mut self, variant: Variant, row: Row, input: usize) -> Result<Option<u64>, Error> {
        // A call that fails, or only a part of one, may have left anything in C.
        self.last = None;
        match (variant, row) {
            (Variant::Simd { threads }, Row::Resident | Row::OneShot) => {
                let resident = self.plans.iter().find(|plan| plan.0 == threads && row == Row::Resident);
                let made;
                let plan = match resident {
                    Some((_, plan)) => plan,
                    None => {
                        made = Plan::new(&self.a, threads);
                        &made
                    }
                };
                multiply_planned(&self.a, plan, &self.b[input], &mut self.c, self.platform.level, threads)?;
            }
            #[cfg(feature = "gpu")]
            (Variant::Gpu, row) => {
                if let Ran::Part(time) = self.run_gpu(row, input)? {
                    return Ok(time);
                }
            }
            _ => return Err(Error::argument("row", "one that this variant has", row.name())),
        }
        self.last = Some((variant, row, input));
        Ok(None)
    }

    fn work(&self, row: Row) -> Work {
        let (a_up, call_up, down) = self.moved_bytes();
        let up = call_up + if row == Row::OneShot { a_up } else { 0 };
        Work {
            bytes_up: if matches!(row, Row::KernelOnly | Row::Download | Row::Floor) { 0 } else { up },
            bytes_down: if matches!(row, Row::KernelOnly | Row::Upload | Row::Floor) { 0 } else { down },
            bytes_touched: a_bytes(&self.a) + bytes(&self.b[0]),
            operations: 2.0 * self.a.entries() as f64 * self.width() as f64,
            items: self.a.rows() as u64,
        }
    }

    fn check(&mut self, variant: Variant, row: Row, input: usize) -> Result<Agreement, Mismatch> {
        if self.last != Some((variant, row, input)) {
            return Err(Mismatch {
                position: format!("input {input}"),
                expected: format!("a result of {variant:?}, {}", row.name()),
                found: "none: it has not been run".into(),
            });
        }
        let c = std::mem::replace(&mut self.c, Matrix::zeroed(0, 0).map_err(not_comparable)?);
        let compared = self.compare(variant, input, &c);
        self.c = c;
        let (found, checksum) = compared?;
        Ok(Agreement {
            compared: found.compared,
            exact: found.exact,
            max_error: found.largest,
            tolerance: 1.0,
            checksum,
        })
    }
}

impl<T: Value> Products<T> {
    fn compare(&mut self, variant: Variant, input: usize, c: &Matrix<T>) -> Result<(Found, String), Mismatch> {
        let mut found = self.against_reference(variant, input, c)?;
        let checksum = match variant {
            Variant::Simd { threads } => self.against_other_threads(threads, input, c)?,
            Variant::Gpu => {
                let all = self.against_cpu(input, c)?;
                found.compared += all.compared;
                found.exact += all.exact;
                found.largest = found.largest.max(all.largest);
                checksum(c)
            }
        };
        Ok((found, checksum))
    }
}

impl Found {
    /// Counts a value. The share of what is allowed is the error where it is too much.
    fn add(&mut self, value: f64, expected: f64, rounded: f64, allowed: f64) -> Result<(), f64> {
        let error = (value - expected).abs();
        let share = if value == expected { 0.0 } else { error / allowed };
        self.compared += 1;
        self.exact += u64::from(value.to_bits() == rounded.to_bits());
        self.largest = self.largest.max(share);
        // So that a NaN is too much.
        if share <= 1.0 { Ok(()) } else { Err(share) }
    }
}

fn place((row, column): (usize, usize)) -> String {
    format!("row {row}, column {column}")
}

fn outside(at: (usize, usize), share: f64, allowed: f64, found: f64, expected: f64, whose: &str) -> Mismatch {
    Mismatch {
        position: place(at),
        expected: format!("{expected:e} within {allowed:.2e} ({whose})"),
        found: format!("{found:e}, {share:.3e} of that away"),
    }
}

fn not_comparable(error: Error) -> Mismatch {
    Mismatch { position: "comparison".into(), expected: "the CPU's result".into(), found: error.to_string() }
}

/// The first row, the last, the longest, empty ones, and some between.
fn sampled<T: Value>(a: &Csr<T>) -> Vec<usize> {
    let rows = a.rows();
    let length = |row: usize| a.indptr()[row + 1] - a.indptr()[row];
    let spread = (0..SAMPLED_ROWS).map(|sample| sample * rows / SAMPLED_ROWS);
    let longest = (0..rows).max_by_key(|&row| length(row));
    let empty = [(0..rows).find(|&row| length(row) == 0), (0..rows).rev().find(|&row| length(row) == 0)];
    let mut sampled: Vec<usize> =
        spread.chain(longest).chain(empty.into_iter().flatten()).chain(rows.checked_sub(1)).collect();
    sampled.sort_unstable();
    sampled.dedup();
    sampled
}

fn a_bytes<T: Value>(a: &Csr<T>) -> u64 {
    (size_of_val(a.indptr()) + size_of_val(a.indices()) + size_of_val(a.values())) as u64
}

fn bytes<T: Value>(matrix: &Matrix<T>) -> u64 {
    size_of_val(matrix.values()) as u64
}

fn checksum<T: Value>(c: &Matrix<T>) -> String {
    let mut hash = Sha256::new();
    hash.update((c.cols() as u64).to_le_bytes());
    hash.update(bytemuck::cast_slice(c.values()));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    /// Two rows of two entries, an empty one, and a long one.
    fn products(threads: usize) -> Products<f64> {
        let indptr = vec![0, 2, 2, 4, 104];
        let mut indices = vec![0, 2, 1, 2];
        indices.extend((0..100).map(|entry| entry % 3));
        let values = (0..104).map(|entry| 1.0 / f64::from(entry + 1)).collect();
        let a = Csr::new(4, 3, indptr, indices, values).unwrap();
        let b = Matrix::new(3, 2, vec![1.5, -2.25, 1e-3, 7.0, -1.0, 0.1]).unwrap();
        let platform = Platform::cpu(Level::detect(), threads);
        Products::new(a, vec![b], &platform, |value| value).unwrap()
    }

    fn ran(threads: usize) -> Products<f64> {
        let mut products = products(2);
        products.run(Variant::Simd { threads }, Row::Resident, 0).unwrap();
        products
    }

    #[test]
    fn an_element_that_is_wrong_is_named_with_both_values() {
        let variant = Variant::Simd { threads: 2 };
        let mut products = ran(2);
        let right = products.check(variant, Row::Resident, 0).unwrap();
        assert!(right.max_error < 1.0 && right.compared == 8, "{right:?}");
        products.c.values_mut()[2 * 2 + 1] += 1e-9;
        let message = products.check(variant, Row::Resident, 0).unwrap_err().to_string();
        assert!(
            message.starts_with("row 2, column 1: expected ") && message.contains("(the reference's), found "),
            "{message}"
        );
        products.c.values_mut()[2 * 2 + 1] = f64::NAN;
        assert!(products.check(variant, Row::Resident, 0).unwrap_err().to_string().contains("found NaN"));
        products.c.values_mut()[2 * 2 + 1] = 0.0;
        products.c.values_mut()[2] = f64::MIN_POSITIVE;
        let message = products.check(variant, Row::Resident, 0).unwrap_err().to_string();
        assert!(message.starts_with("row 1, column 0: expected 0e0 within 0.00e0"), "an empty row is zero: {message}");
    }

    #[test]
    fn one_bit_between_two_cpu_variants_is_a_mismatch() {
        let mut products = ran(1);
        let first = products.check(Variant::Simd { threads: 1 }, Row::Resident, 0).unwrap();
        products.run(Variant::Simd { threads: 2 }, Row::Resident, 0).unwrap();
        let again = products.check(Variant::Simd { threads: 2 }, Row::Resident, 0).unwrap();
        assert_eq!(first.checksum, again.checksum);
        let value = products.c.values()[7];
        products.c.values_mut()[7] = f64::from_bits(value.to_bits() + 1);
        let message = products.check(Variant::Simd { threads: 2 }, Row::Resident, 0).unwrap_err().to_string();
        assert!(message.starts_with("row 3, column 1: expected ") && message.contains("as on 1 threads"), "{message}");
    }

    #[test]
    fn a_device_may_differ_within_the_bound_and_not_beyond_it_anywhere() {
        let mut products = ran(2);
        let mut c = products.by_cpu(0, 2).unwrap();
        let found = products.against_cpu(0, &c).unwrap();
        assert_eq!((found.compared, found.exact, found.largest), (8, 8, 0.0));
        let magnitude = products.magnitudes(0).unwrap().row(3)[0];
        assert!(magnitude > c.row(3)[0].abs(), "products of both signs are added");
        let allowed = (104.0 + 104.0) * f64::EPSILON / 2.0 * magnitude;
        let right = c.row(3)[0];
        c.values_mut()[6] = right + 0.9 * allowed;
        let found = products.against_cpu(0, &c).unwrap();
        assert!(found.exact == 7 && (found.largest - 0.9).abs() < 0.02, "{}", found.largest);
        c.values_mut()[6] = right - 1.1 * allowed;
        let message = products.against_cpu(0, &c).err().unwrap().to_string();
        assert!(message.starts_with("row 3, column 0: ") && message.contains("(the CPU's)"), "{message}");
    }

    #[test]
    fn the_longest_row_and_empty_ones_are_among_those_compared() {
        // Two empty rows, 997 of one entry but for the 601st of them, which has six, and an empty one.
        let mut indptr = vec![0; 3];
        indptr.extend((1..=997).map(|row| row + usize::from(row > 600) * 5));
        indptr.push(1_002);
        let entries = indptr[indptr.len() - 1];
        let a = Csr::new(indptr.len() - 1, 1, indptr, vec![0; entries], vec![1.0_f32; entries]).unwrap();
        let rows = sampled(&a);
        for row in [0, 602, 999] {
            assert!(rows.contains(&row), "{row}: {rows:?}");
        }
        assert!((64..70).contains(&rows.len()) && rows.is_sorted());
    }
}
