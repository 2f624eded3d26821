//! The GPU arm: a row of A, or a piece of a long one, times a column tile of B, in registers.
//!
//! ```text
//! once per A:   column tiles of B and C, row blocks of A and C; every row of A becomes an item, a row of more than 256
//!               entries several: all items are short, so one huge row costs nothing extra, nor do a million empty ones
//! per call:     B up, tile by tile
//!   multiply    per tile and block: an item times the tile; a short row goes to C, a piece of a long row to a partial row
//!   add pieces  per tile and block with long rows: partial rows added up in order
//! C down
//! ```
//!
//! All of it is one submission. There are no atomics: an element is summed in an order that its own row of A decides (see
//! `multiply.wgsl` and `add_pieces.wgsl`), so results are the same bits in every run, and for any width, tile or block; they
//! differ in the last bits from the CPU's, and from another adapter's.
//!
//! Rows of B and C are padded to whole vectors of 16 bytes on the device (4 columns of f32, 2 of f64).
//!
//! # What is split
//! Every buffer stays below what the adapter binds, at most 1 GiB: A and C are cut by rows, B and C by columns. What cannot
//! be cut is refused with the limit's name: a row of A that alone is larger than a binding, or a B with more rows than a
//! binding has vectors. A dispatch gathers at most 16 GiB of B. Operands that do not fit into the device's memory together
//! are out of memory, which [`is_for_the_cpu`].
//!
//! # Counted
//! Against an adapter with G bytes/s of gather (its cache where B fits into it, else its memory), M bytes/s of memory, U and
//! D bytes/s up and down; n entries, R rows, K inner rows, w bytes of a row of B:
//!
//! - kernel: n (w + 4 + value) / G or (n (4 + value) + 16 R + K w + R w) / M seconds, whichever is longer. The
//!   arithmetic, 8 operations (f32) or 4 (f64) for 16 bytes gathered, decides nowhere but where f64 runs at 1/32.
//! - resident call: K w bytes up, R w down. On a bus, that is longer than the kernel below about
//!   n / (K + R) = G / U entries a row: 100 or more on a card. The gain is in staying on the device.
//! - one-shot call: n (4 + value) + 16 R more up.
//!
//! # Precision
//! Each of the n products of an element is rounded once, and passes through at most n / 4 + 9 additions: less than the n
//! that the bound of [`multiply_on_device`] allows for. What an adapter does with subnormal numbers is part of that bound.
//!
//! WGSL may assume that there is no NaN or infinity: operands that hold one, and operands large enough for a sum to
//! overflow, are refused with an error that [`is_for_the_cpu`].

mod call;
mod layout;
mod magnitude;
#[cfg(test)]
mod tests;

use super::Value;
use crate::data::{Buffer, Csr, Matrix};
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Pipeline, Shader, Timer, params};
use crate::error::{DeviceError, Error};
use crate::kernels::Platform;
use call::Call;
use layout::{Block, Item, Items, Layout, Limits, LongRow};
use std::sync::Arc;

params! {
    /// See `multiply.wgsl`.
    struct Multiply {
        first: u32,
        end: u32,
        vectors: u32,
        groups_x: u32,
    }
}

params! {
    /// See `add_pieces.wgsl`.
    struct AddPieces {
        rows: u32,
        vectors: u32,
        groups_x: u32,
    }
}

/// Text of the shaders and of the host path, for the hash of the GPU arm.
pub(super) const SOURCES: &[(&str, &str)] = &[
    ("../../device/buffer.rs", include_str!("../../device/buffer.rs")),
    ("../../device/shader.rs", include_str!("../../device/shader.rs")),
    ("../../device/submit.rs", include_str!("../../device/submit.rs")),
    ("../../device/transfer.rs", include_str!("../../device/transfer.rs")),
    ("gpu.rs", include_str!("gpu.rs")),
    ("gpu/call.rs", include_str!("gpu/call.rs")),
    ("gpu/layout.rs", include_str!("gpu/layout.rs")),
    ("gpu/magnitude.rs", include_str!("gpu/magnitude.rs")),
    ("gpu/add_pieces.wgsl", ADD_PIECES),
    ("gpu/multiply.wgsl", MULTIPLY),
    ("gpu/value_f32.wgsl", VALUE_F32),
    ("gpu/value_f64.wgsl", VALUE_F64),
];

const ADD_PIECES: &str = include_str!("gpu/add_pieces.wgsl");
const MULTIPLY: &str = include_str!("gpu/multiply.wgsl");
const VALUE_F32: &str = include_str!("gpu/value_f32.wgsl");
const VALUE_F64: &str = include_str!("gpu/value_f64.wgsl");

/// Every shader of this kernel, in every shape that is used.
pub(super) fn shaders() -> Vec<Shader> {
    let mut all = Vec::new();
    for value_bytes in [size_of::<f32>(), size_of::<f64>()] {
        all.extend(layout::LANES.map(|lanes| multiply_shader(value_bytes, lanes)));
        all.push(add_pieces_shader(value_bytes));
    }
    all
}

fn multiply_shader(value_bytes: usize, lanes: usize) -> Shader {
    let (name, value) =
        if value_bytes == 4 { ("spmm multiply f32", VALUE_F32) } else { ("spmm multiply f64", VALUE_F64) };
    let shader = Shader::new(name, &[value, MULTIPLY], "multiply").with_params(Multiply::LAYOUT);
    shader.set("LANES", layout::as_u32(lanes))
}

fn add_pieces_shader(value_bytes: usize) -> Shader {
    let (name, value) =
        if value_bytes == 4 { ("spmm add pieces f32", VALUE_F32) } else { ("spmm add pieces f64", VALUE_F64) };
    Shader::new(name, &[value, ADD_PIECES], "add_pieces").with_params(AddPieces::LAYOUT)
}

/// Whether an error of [`multiply_on_device`] only says that this product is none for this device, so that the CPU path
/// should take it: beyond a limit, out of device memory, a NaN, an infinity, or a sum that could become one. Anything else
/// is a failure to be reported.
pub fn is_for_the_cpu(error: &Error) -> bool {
    matches!(
        error,
        Error::Limit { .. }
            | Error::NotFinite { .. }
            | Error::Device(DeviceError::Limit { .. } | DeviceError::OutOfMemory { .. })
    )
}

/// [`multiply`](super::multiply) on the platform's device.
///
/// Cost: A and B up, C down, and for each entry of A a row of B read from the device's cache or memory. One copy of A, B
/// and C in the device's memory.
///
/// # Errors
/// [`Error::Shape`] when B has not as many rows as A has columns; [`Error::Argument`] for f64 on an adapter without it;
/// [`DeviceError`]. Where [`is_for_the_cpu`] holds, the CPU path can do what the device cannot.
///
/// # Precision
/// The bound of the CPU, (n + 4) eps times the sum of the magnitudes for a row of n entries, on an adapter that rounds to
/// nearest; WGSL allows it to round either way, which at most doubles n / 4 + 10 such errors. Subnormal numbers, in the
/// operands and on the way, may count as zero: that adds at most 2 n times the smallest normal number, and that number
/// times the sum of the magnitudes in the row of A and, at its columns, in the column of B. The same bits in every run on
/// one adapter, not those of the CPU or of another adapter.
pub fn multiply_on_device<T: Value>(a: &Csr<T>, b: &Matrix<T>, platform: &Platform) -> Result<Matrix<T>, Error> {
    let Some(device) = &platform.device else {
        let (wanted, hint) = ("open".to_owned(), "the platform has no device".to_owned());
        return Err(DeviceError::NoAdapter { wanted, hint }.into());
    };
    if b.rows() != a.cols() {
        let (expected, found) = (a.cols(), b.rows());
        return Err(Error::Shape { what: "B: rows (A has as many columns)".into(), expected, found });
    }
    let too_large = || Error::Limit { what: "C: values".into(), requested: u64::MAX, max: isize::MAX as u64 };
    let length = a.rows().checked_mul(b.cols()).ok_or_else(too_large)?;
    let mut c = Matrix::from_buffer(a.rows(), b.cols(), Buffer::zeroed(length)?)?;
    DeviceProduct::upload(device, a, b.cols())?.multiply(b, &mut c)?;
    Ok(c)
}

/// The adapter's arithmetic has to be that of `T`: there is no way to make up for it.
fn check_type<T: Value>(has_f64: bool, adapter: &str) -> Result<(), Error> {
    if size_of::<T>() == size_of::<f32>() || has_f64 {
        return Ok(());
    }
    let expected = format!("f32 on {adapter}, which has no f64 (--device cpu has)");
    Err(Error::argument("values", expected, T::NAME))
}

/// A block of A in device memory.
struct Segment<T> {
    items: DeviceBuffer<Item>,
    long_rows: DeviceBuffer<LongRow>,
    columns: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
    group: BindGroup,
}

impl<T: Value> Segment<T> {
    fn allocate(device: &Device, block: &Block, multiply: &Pipeline) -> Result<Self, Error> {
        let items = device.buffer("items of A", block.items)?;
        let long_rows = device.buffer("long rows of A", block.long_rows)?;
        let columns = device.buffer("columns of A", block.entries.len())?;
        let values = device.buffer("values of A", block.entries.len())?;
        let group = device.bind(multiply, 0, &[items.binding(), columns.binding(), values.binding()])?;
        Ok(Self { items, long_rows, columns, values, group })
    }
}

/// The kernels of a product.
struct Pipelines {
    multiply: Arc<Pipeline>,
    add: Arc<Pipeline>,
    /// Lanes of an item in `multiply`.
    lanes: usize,
}

impl Pipelines {
    fn new<T: Value>(device: &Device, layout: &Layout) -> Result<Self, Error> {
        let lanes = layout::lanes(layout.widest());
        let multiply = device.pipeline(&multiply_shader(size_of::<T>(), lanes))?;
        Ok(Self { multiply, add: device.pipeline(&add_pieces_shader(size_of::<T>()))?, lanes })
    }
}

/// A product whose A is in device memory, for any number of B of one width.
pub(super) struct DeviceProduct<T: Value> {
    device: Arc<Device>,
    limits: Limits,
    layout: Layout,
    pipelines: Pipelines,
    segments: Vec<Segment<T>>,
    /// The largest magnitude in A; `None` while A is not whole.
    largest: Option<f64>,
    call: Option<Call<T>>,
    timer: Option<Timer>,
}

impl<T: Value> DeviceProduct<T> {
    /// Allocates for A and uploads it, for B of `width` columns.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; [`Error::Limit`] for what does not fit into one buffer; [`Error::Argument`] for f64 on an
    /// adapter without it; what the device reports. See [`is_for_the_cpu`].
    pub(super) fn upload(device: &Arc<Device>, a: &Csr<T>, width: usize) -> Result<Self, Error> {
        Self::upload_within(Limits::of(device), device, a, width)
    }

    fn upload_within(limits: Limits, device: &Arc<Device>, a: &Csr<T>, width: usize) -> Result<Self, Error> {
        check_type::<T>(device.has_f64(), &device.info().name)?;
        let layout = Self::layout_of(device, a, width, limits)?;
        let pipelines = Pipelines::new::<T>(device, &layout)?;
        let timer = if device.timestamps_hold() { device.timer()? } else { None };
        let segments = Self::allocate(device, &layout, &pipelines)?;
        let device = Arc::clone(device);
        let mut product = Self { device, limits, layout, pipelines, segments, largest: None, call: None, timer };
        product.fill(a)?;
        Ok(product)
    }

    fn layout_of(device: &Device, a: &Csr<T>, width: usize, limits: Limits) -> Result<Layout, Error> {
        let layout = Layout::new(a.indptr(), a.cols(), width, size_of::<T>(), limits)?;
        device.check_iterations("sparse product", layout.iterations())?;
        Ok(layout)
    }

    fn allocate(device: &Device, layout: &Layout, pipelines: &Pipelines) -> Result<Vec<Segment<T>>, Error> {
        layout.blocks.iter().map(|block| Segment::allocate(device, block, &pipelines.multiply)).collect()
    }

    /// Uploads another A of the same shape and number of entries: into the same memory where its rows are as long as
    /// those of the one before. Items are made anew in any case.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); [`Error::Shape`] for another shape.
    pub(super) fn refill(&mut self, a: &Csr<T>) -> Result<(), Error> {
        for (what, expected, found) in [
            ("A on the device: rows", self.layout.rows, a.rows()),
            ("A on the device: columns", self.layout.inner, a.cols()),
            ("A on the device: entries", self.layout.entries, a.entries()),
        ] {
            if expected != found {
                return Err(Error::Shape { what: what.into(), expected, found });
            }
        }
        let layout = Self::layout_of(&self.device, a, self.layout.width, self.limits)?;
        if layout != self.layout {
            // The old memory first.
            (self.call, self.largest) = (None, None);
            self.segments.clear();
            self.pipelines = Pipelines::new::<T>(&self.device, &layout)?;
            self.segments = Self::allocate(&self.device, &layout, &self.pipelines)?;
            self.layout = layout;
        }
        self.fill(a)
    }

    fn fill(&mut self, a: &Csr<T>) -> Result<(), Error> {
        self.largest = None;
        let mut largest = 0.0_f64;
        let mut commands = self.device.commands("upload of A");
        let (mut items, mut long_rows) = (Vec::new(), Vec::new());
        for (block, segment) in self.layout.blocks.iter().zip(&self.segments) {
            let mut next = Items::new(a.indptr(), block);
            let (mut done, mut long_done) = (0, 0);
            loop {
                next.next(magnitude::BLOCK_BYTES / size_of::<Item>(), &mut items, &mut long_rows);
                if items.is_empty() {
                    break;
                }
                commands.upload(&segment.items, done, &items)?;
                commands.upload(&segment.long_rows, long_done, &long_rows)?;
                (done, long_done) = (done + items.len(), long_done + long_rows.len());
            }
            commands.upload(&segment.columns, 0, &a.indices()[block.entries.clone()])?;
            let mut done = 0;
            for values in a.values()[block.entries.clone()].chunks(magnitude::BLOCK_BYTES / size_of::<T>()) {
                let found = magnitude::largest(values).ok_or_else(|| magnitude::not_finite_in_a(a))?;
                largest = largest.max(found);
                commands.upload(&segment.values, done, values)?;
                done += values.len();
            }
        }
        commands.submit()?;
        self.largest = Some(largest);
        Ok(())
    }

    /// Bytes that go up for A.
    pub(super) fn a_bytes(&self) -> u64 {
        self.layout.a_bytes()
    }

    /// Bytes that go up, and come down, for a call.
    pub(super) fn call_bytes(&self) -> (u64, u64) {
        self.layout.call_bytes()
    }

    /// B up, the product, C down into memory that is there.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::NotFinite`] in B, [`Error::Limit`] for a sum that could overflow; what the device
    /// reports. See [`is_for_the_cpu`].
    pub(super) fn multiply(&mut self, b: &Matrix<T>, c: &mut Matrix<T>) -> Result<(), Error> {
        self.check_b(b)?;
        self.check_c(c)?;
        self.ready()?;
        let Self { device, layout, pipelines, segments, call: Some(call), .. } = self else { return Ok(()) };
        let mut commands = device.commands("sparse product");
        let largest_b = call.record_b(&mut commands, layout, b)?;
        magnitude::check_sum::<T>(layout.longest, self.largest, largest_b)?;
        call.has_b = true;
        call.record_product(&mut commands.pass(), pipelines, segments);
        call.take_c(device, commands, layout, c)
    }

    /// Gives up B, C and what binds them: the next call allocates its own. A and the pipelines stay.
    pub(super) fn forget_call(&mut self) {
        self.call = None;
    }

    /// B up, and nothing else; it is what [`kernel_only`](Self::kernel_only) then multiplies by.
    ///
    /// # Errors
    /// As [`multiply`](Self::multiply).
    pub(super) fn upload_b(&mut self, b: &Matrix<T>) -> Result<(), Error> {
        self.check_b(b)?;
        self.ready()?;
        let Self { device, layout, call: Some(call), .. } = self else { return Ok(()) };
        let mut commands = device.commands("upload of B");
        let largest_b = call.record_b(&mut commands, layout, b)?;
        commands.submit()?.wait()?;
        magnitude::check_sum::<T>(layout.longest, self.largest, largest_b)?;
        call.has_b = true;
        Ok(())
    }

    /// The kernels alone on the B that was uploaded last, dispatch to completion; the device's own nanoseconds where its
    /// timestamps hold.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn kernel_only(&self) -> Result<Option<u64>, Error> {
        let Some(call) = self.call.as_ref().filter(|call| call.has_b) else {
            return Err(wrong("no B was uploaded"));
        };
        let mut commands: Commands<'_> = self.device.commands("kernel only");
        let Some(timer) = &self.timer else {
            call.record_product(&mut commands.pass(), &self.pipelines, &self.segments);
            commands.submit()?.wait()?;
            return Ok(None);
        };
        call.record_product(&mut commands.timed_pass(timer), &self.pipelines, &self.segments);
        Ok(commands.submit_timed(timer)?)
    }

    /// C down, and nothing else: that of the last product.
    ///
    /// # Errors
    /// [`Error::Shape`]; what the device reports.
    pub(super) fn download_c(&mut self, c: &mut Matrix<T>) -> Result<(), Error> {
        self.check_c(c)?;
        let Self { device, layout, call, .. } = self;
        let Some(call) = call.as_mut().filter(|call| call.has_c.get()) else { return Err(wrong("there is no C yet")) };
        call.take_c(device, device.commands("download of C"), layout, c)
    }

    /// An empty submission and its wait.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn floor(&self) -> Result<(), Error> {
        Ok(self.device.floor()?)
    }

    fn ready(&mut self) -> Result<(), Error> {
        if self.call.is_none() {
            self.call = Some(Call::new(&self.device, &self.layout, &self.pipelines, &self.segments)?);
        }
        Ok(())
    }

    fn check_b(&self, b: &Matrix<T>) -> Result<(), Error> {
        let Layout { inner, width, .. } = self.layout;
        check("B: rows (A has as many columns)", inner, b.rows())?;
        check("B: columns (what A was uploaded for)", width, b.cols())
    }

    fn check_c(&self, c: &Matrix<T>) -> Result<(), Error> {
        let Layout { rows, width, .. } = self.layout;
        check("C: rows (A has as many)", rows, c.rows())?;
        check("C: columns (B has as many)", width, c.cols())
    }
}

fn check(what: &str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what: what.into(), expected, found }) }
}

/// A step that has nothing to work on: a mistake of the caller, reported and never answered with zeros.
fn wrong(message: &str) -> Error {
    let what = "sparse product on the device".to_owned();
    Error::Device(DeviceError::Internal { what, message: message.to_owned() })
}

/// Device memory of a product, at most, before anything is built: A of `entries` in `rows`, B of `inner` rows.
pub(super) fn device_bytes<T: Value>(rows: usize, inner: usize, entries: usize, width: usize) -> u64 {
    let row = (width as u64).saturating_mul(size_of::<T>() as u64).next_multiple_of(layout::VECTOR_BYTES);
    let (rows, inner, entries) = (rows as u64, inner as u64, entries as u64);
    // A row is one item, or one and a piece for every 256 entries; a piece is a partial row.
    let items = (rows + entries / 256).saturating_mul(16 + 12);
    let operands = rows.saturating_add(inner).saturating_add(entries / 128).saturating_mul(row);
    operands.saturating_add(items).saturating_add(entries.saturating_mul(4 + size_of::<T>() as u64))
}
