//! What a call needs beside A: B and C on the device, the partial rows, and the steps that fill C.

use super::super::Value;
use super::layout::{Block, Layout, Tile, as_u32};
use super::{AddPieces, Multiply, Pipelines, Segment, magnitude};
use crate::data::Matrix;
use crate::device::{BindGroup, Commands, Device, DeviceBuffer, Download, Pass, Submission, Uniforms, fold};
use crate::error::{DeviceError, Error};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

/// Invocations of a workgroup of `multiply.wgsl`, and vectors of one of `add_pieces.wgsl`.
const THREADS: usize = 128;
const ADD_WIDTH: usize = 16;

/// C comes down in pieces of about this size: the device copies one while the host copies the one before.
const PIECE_BYTES: usize = 8 << 20;

/// Buffers of a call and the steps over them, kept between calls.
pub(super) struct Call<T> {
    /// Per tile, all rows of B.
    b: Vec<DeviceBuffer<T>>,
    /// Per tile and block.
    c: Vec<DeviceBuffer<T>>,
    multiply_slots: Uniforms<Multiply>,
    add_slots: Uniforms<AddPieces>,
    multiply_groups: Vec<BindGroup>,
    add_groups: Vec<BindGroup>,
    steps: Vec<Step>,
    scratch: Vec<T>,
    /// Whether `b` holds the whole of a B, and one that the device may see.
    pub(super) has_b: bool,
    /// Whether `c` holds a product. Set where work is only recorded from what does not change, too.
    pub(super) has_c: Cell<bool>,
}

enum Step {
    Multiply { block: usize, group: usize, slot: usize, workgroups: [u32; 3] },
    Add { group: usize, slot: usize, workgroups: [u32; 3] },
}

/// A part of C on its way down.
struct Piece<T> {
    download: Download<T>,
    tile: Tile,
    rows: Range<usize>,
}

impl<T: Value> Call<T> {
    pub(super) fn new(
        device: &Device,
        layout: &Layout,
        pipelines: &Pipelines,
        segments: &[Segment<T>],
    ) -> Result<Self, Error> {
        let row = |tile: &Tile| tile.vectors * layout.per_vector;
        let (mut b, mut c) = (Vec::new(), Vec::new());
        for tile in &layout.tiles {
            b.push(device.buffer("B", layout.inner * row(tile))?);
            for block in &layout.blocks {
                c.push(device.buffer("C", block.rows.len() * row(tile))?);
            }
        }
        let partials = device.buffer::<T>("partial rows", layout.most_slots() * layout.widest() * layout.per_vector)?;
        let mut plan = Plan { device, pipelines, multiply: Vec::new(), add: Vec::new(), steps: Vec::new() };
        for (number, tile) in layout.tiles.iter().enumerate() {
            for (at, block) in layout.blocks.iter().enumerate() {
                plan.block(tile, block, at, number * layout.blocks.len() + at);
            }
        }
        let multiply_slots = device.uniforms("product parameters", &plan.multiply)?;
        let add_slots = device.uniforms("piece parameters", &plan.add)?;
        let (mut multiply_groups, mut add_groups) = (Vec::new(), Vec::new());
        for (number, c) in c.iter().enumerate() {
            let b = &b[number / segments.len().max(1)];
            let bindings = [b.binding(), c.binding(), partials.binding(), multiply_slots.binding()];
            multiply_groups.push(device.bind(&pipelines.multiply, 1, &bindings)?);
            let long_rows = segments[number % segments.len().max(1)].long_rows.binding();
            let bindings = [long_rows, partials.binding(), c.binding(), add_slots.binding()];
            add_groups.push(device.bind(&pipelines.add, 0, &bindings)?);
        }
        Ok(Self {
            b,
            c,
            multiply_slots,
            add_slots,
            multiply_groups,
            add_groups,
            steps: plan.steps,
            scratch: Vec::new(),
            has_b: false,
            has_c: Cell::new(false),
        })
    }

    /// Records the upload of B; its largest magnitude. Whether the device may see it is for the caller to say, in `has_b`.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; what the device reports.
    pub(super) fn record_b(
        &mut self,
        commands: &mut Commands<'_>,
        layout: &Layout,
        b: &Matrix<T>,
    ) -> Result<f64, Error> {
        self.has_b = false;
        let mut largest = 0.0_f64;
        let block = magnitude::BLOCK_BYTES / size_of::<T>();
        for (tile, buffer) in layout.tiles.iter().zip(&self.b) {
            let stride = tile.vectors * layout.per_vector;
            let mut done = 0;
            let mut upload = |values: &[T]| -> Result<(), Error> {
                let found = magnitude::largest(values).ok_or_else(|| magnitude::not_finite_in_b(b))?;
                largest = largest.max(found);
                commands.upload(buffer, done, values)?;
                done += values.len();
                Ok(())
            };
            if stride == b.cols() {
                b.values().chunks(block).try_for_each(upload)?;
                continue;
            }
            let first = tile.first * layout.per_vector;
            let columns = first..(first + stride).min(b.cols());
            for rows in b.values().chunks((block / stride).max(1) * b.cols()) {
                self.scratch.clear();
                self.scratch.resize(rows.len() / b.cols() * stride, T::default());
                for (padded, row) in self.scratch.chunks_exact_mut(stride).zip(rows.chunks_exact(b.cols())) {
                    padded[..columns.len()].copy_from_slice(&row[columns.clone()]);
                }
                upload(&self.scratch)?;
            }
        }
        Ok(largest)
    }

    /// Records C = A B.
    pub(super) fn record_product(&self, pass: &mut Pass<'_>, pipelines: &Pipelines, segments: &[Segment<T>]) {
        for step in &self.steps {
            match *step {
                Step::Multiply { block, group, slot, workgroups } => {
                    let groups: [(_, &[u32]); 2] = [
                        (&segments[block].group, &[]),
                        (&self.multiply_groups[group], &[self.multiply_slots.offset(slot)]),
                    ];
                    pass.dispatch(&pipelines.multiply, &groups, workgroups);
                }
                Step::Add { group, slot, workgroups } => {
                    let groups: [(_, &[u32]); 1] = [(&self.add_groups[group], &[self.add_slots.offset(slot)])];
                    pass.dispatch(&pipelines.add, &groups, workgroups);
                }
            }
        }
        self.has_c.set(true);
    }

    /// Submits `commands` and copies C out, the first piece of it in the same submission.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn take_c<'a>(
        &mut self,
        device: &'a Device,
        commands: Commands<'a>,
        layout: &Layout,
        c: &mut Matrix<T>,
    ) -> Result<(), Error> {
        let mut left = Self::pieces(layout).into_iter().peekable();
        let mut commands = Some(commands);
        let mut ahead: VecDeque<(Submission<'a>, Vec<Piece<T>>)> = VecDeque::new();
        loop {
            while ahead.len() < 2 && (left.peek().is_some() || commands.is_some()) {
                let mut commands = commands.take().unwrap_or_else(|| device.commands("download of C"));
                let (mut pieces, mut bytes) = (Vec::new(), 0);
                while let Some((buffer, tile, block, rows)) = left.next_if(|_| bytes < PIECE_BYTES) {
                    let stride = tile.vectors * layout.per_vector;
                    let download = commands.download(&self.c[buffer], rows.start * stride, rows.len() * stride)?;
                    bytes += rows.len() * stride * size_of::<T>();
                    let first = layout.blocks[block].rows.start;
                    pieces.push(Piece { download, tile, rows: first + rows.start..first + rows.end });
                }
                ahead.push_back((commands.submit()?, pieces));
            }
            let Some((submission, pieces)) = ahead.pop_front() else { return Ok(()) };
            if pieces.is_empty() {
                submission.wait()?;
            }
            for piece in &pieces {
                self.take_piece(&submission, piece, layout, c)?;
            }
        }
    }

    /// Buffer, tile, block and rows within the block of each piece of C.
    fn pieces(layout: &Layout) -> Vec<(usize, Tile, usize, Range<usize>)> {
        let mut pieces = Vec::new();
        let mut buffer = 0;
        for &tile in &layout.tiles {
            let rows = (PIECE_BYTES / (tile.vectors * layout.per_vector * size_of::<T>())).max(1);
            for (number, block) in layout.blocks.iter().enumerate() {
                for first in (0..block.rows.len()).step_by(rows) {
                    pieces.push((buffer, tile, number, first..block.rows.len().min(first + rows)));
                }
                buffer += 1;
            }
        }
        pieces
    }

    fn take_piece(
        &mut self,
        submission: &Submission<'_>,
        piece: &Piece<T>,
        layout: &Layout,
        c: &mut Matrix<T>,
    ) -> Result<(), DeviceError> {
        let (stride, width) = (piece.tile.vectors * layout.per_vector, c.cols());
        let rows = &mut c.values_mut()[piece.rows.start * width..piece.rows.end * width];
        if stride == width {
            return submission.read(&piece.download, rows);
        }
        let first = piece.tile.first * layout.per_vector;
        let columns = first..(first + stride).min(width);
        self.scratch.resize(piece.rows.len() * stride, T::default());
        submission.read(&piece.download, &mut self.scratch)?;
        for (row, padded) in rows.chunks_exact_mut(width).zip(self.scratch.chunks_exact(stride)) {
            row[columns.clone()].copy_from_slice(&padded[..columns.len()]);
        }
        Ok(())
    }
}

/// Steps and their parameters, as they are found.
struct Plan<'a> {
    device: &'a Device,
    pipelines: &'a Pipelines,
    multiply: Vec<Multiply>,
    add: Vec<AddPieces>,
    steps: Vec<Step>,
}

impl Plan<'_> {
    /// Everything that one tile and block need, whose bind groups have number `group`.
    fn block(&mut self, tile: &Tile, block: &Block, number: usize, group: usize) {
        let vectors = as_u32(tile.vectors);
        let most = self.device.max_workgroups();
        let lanes = self.pipelines.lanes;
        let mut first = 0;
        for &end in &block.dispatches {
            let [x, y] = fold((end - first).div_ceil(THREADS / lanes) as u64, most);
            let workgroups = [x, y, as_u32(tile.vectors.div_ceil(lanes))];
            self.steps.push(Step::Multiply { block: number, group, slot: self.multiply.len(), workgroups });
            self.multiply.push(Multiply { first: as_u32(first), end: as_u32(end), vectors, groups_x: x });
            first = end;
        }
        if block.long_rows > 0 {
            let [x, y] = fold(block.long_rows as u64, most);
            let workgroups = [x, y, as_u32(tile.vectors.div_ceil(ADD_WIDTH))];
            self.steps.push(Step::Add { group, slot: self.add.len(), workgroups });
            self.add.push(AddPieces { rows: as_u32(block.long_rows), vectors, groups_x: x });
        }
    }
}
