//! Moving bytes between host and device through staging memory that is kept: fresh memory costs more in page faults
//! than the copy itself.

use super::{AdapterKind, Commands, Device, DeviceBuffer, lock};
use crate::error::DeviceError;
use bytemuck::Pod;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

const PENDING: u8 = 0;
const MAPPED: u8 = 1;
const FAILED: u8 = 2;

/// A staging buffer and whether the host may touch it now.
pub(super) struct Chunk {
    pub(super) raw: wgpu::Buffer,
    state: Arc<AtomicU8>,
}

impl Chunk {
    /// Asks for the mapping; it is there once the submissions that use the chunk are done.
    pub(super) fn map(&self, mode: wgpu::MapMode, bytes: u64) {
        self.state.store(PENDING, Ordering::Release);
        let state = Arc::clone(&self.state);
        self.raw.slice(..bytes).map_async(mode, move |result| {
            state.store(if result.is_ok() { MAPPED } else { FAILED }, Ordering::Release);
        });
    }

    pub(super) fn wait(&self, device: &Device, what: &str) -> Result<(), DeviceError> {
        device.poll_until(what, None, || match self.state.load(Ordering::Acquire) {
            PENDING => Ok(false),
            MAPPED => Ok(true),
            _ => Err(device.map_failed(what, "the staging buffer could not be mapped")),
        })
    }
}

/// The staging memory of a device.
pub(super) struct Staging {
    /// Bytes of one chunk.
    pub(super) chunk_bytes: u64,
    up: Mutex<Ring>,
    down: Mutex<Vec<Chunk>>,
}

#[derive(Default)]
struct Ring {
    /// Chunks that are mapped or will be, the oldest first.
    free: std::collections::VecDeque<Chunk>,
    made: usize,
}

/// Chunks of the upload ring: one being filled, one being copied, one on its way back.
const UP_CHUNKS: usize = 3;

/// The word for this path in results: the host writes into a ring of mapped chunks, the device copies out of them.
const UPLOAD_PATH: &str = "staging_ring";

impl Staging {
    pub(super) fn new(kind: AdapterKind) -> Self {
        // Small chunks stay in the cache where host and device share memory; a bus wants longer runs.
        let chunk_bytes = if kind == AdapterKind::Discrete { 32 << 20 } else { 8 << 20 };
        Self { chunk_bytes, up: Mutex::default(), down: Mutex::default() }
    }
}

impl Device {
    /// How bytes go up, in the word of results.
    pub fn upload_path(&self) -> &'static str {
        UPLOAD_PATH
    }

    /// Copies `values` into `target` from its value `first` on. When this returns the host memory is free again; the
    /// device sees the values in everything submitted afterwards.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] where they do not fit; what the device reports.
    pub fn upload<T: Pod>(&self, target: &DeviceBuffer<T>, first: usize, values: &[T]) -> Result<(), DeviceError> {
        let mut commands = self.commands("upload");
        commands.upload(target, first, values)?;
        commands.submit()?;
        Ok(())
    }

    /// Copies values out of `source`, from its value `first` on, once everything submitted so far is done.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] where there are not as many; what the device reports.
    pub fn download<T: Pod>(&self, source: &DeviceBuffer<T>, first: usize, into: &mut [T]) -> Result<(), DeviceError> {
        let piece = (usize::try_from(self.staging.chunk_bytes).unwrap_or(usize::MAX) / size_of::<T>()).max(1);
        // Two pieces are on their way at once: the device copies one while the host copies the other.
        let mut ahead = std::collections::VecDeque::new();
        let mut asked = 0;
        let mut done = 0;
        while done < into.len() {
            while asked < into.len() && ahead.len() < 2 {
                let count = piece.min(into.len() - asked);
                let mut commands = self.commands("download");
                let download = commands.download(source, first + asked, count)?;
                ahead.push_back((commands.submit()?, download, count));
                asked += count;
            }
            let Some((submission, download, count)) = ahead.pop_front() else { break };
            submission.read(&download, &mut into[done..done + count])?;
            done += count;
        }
        Ok(())
    }

    /// A mapped chunk to write into; `None` where all are held by work that is not submitted yet.
    pub(super) fn take_up_chunk(&self) -> Result<Option<Chunk>, DeviceError> {
        let bytes = self.staging.chunk_bytes;
        let (chunk, make) = {
            let mut ring = lock(&self.staging.up);
            let make = ring.made < UP_CHUNKS;
            // Growing first keeps the host ahead of the copies; afterwards the oldest is the next one to come back.
            let chunk = if make { None } else { ring.free.pop_front() };
            ring.made += usize::from(make);
            (chunk, make)
        };
        if let Some(chunk) = chunk {
            chunk.wait(self, "upload staging")?;
            return Ok(Some(chunk));
        }
        if !make {
            return Ok(None);
        }
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let chunk = Chunk { raw: self.raw_buffer("upload staging", bytes, usage)?, state: Arc::default() };
        chunk.map(wgpu::MapMode::Write, bytes);
        chunk.wait(self, "upload staging")?;
        Ok(Some(chunk))
    }

    /// Makes one more chunk than the ring has: another thread holds the others.
    pub(super) fn extra_up_chunk(&self) -> Result<Chunk, DeviceError> {
        let bytes = self.staging.chunk_bytes;
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let chunk = Chunk { raw: self.raw_buffer("upload staging", bytes, usage)?, state: Arc::default() };
        chunk.map(wgpu::MapMode::Write, bytes);
        chunk.wait(self, "upload staging")?;
        Ok(chunk)
    }

    /// Gives a chunk back after its copies were submitted.
    pub(super) fn return_up_chunk(&self, chunk: Chunk) {
        chunk.map(wgpu::MapMode::Write, self.staging.chunk_bytes);
        lock(&self.staging.up).free.push_back(chunk);
    }

    /// An unmapped chunk of at least `bytes` to read back through.
    pub(super) fn take_down_chunk(&self, bytes: u64) -> Result<Chunk, DeviceError> {
        {
            let mut chunks = lock(&self.staging.down);
            let fits = chunks
                .iter()
                .enumerate()
                .filter(|(_, chunk)| chunk.raw.size() >= bytes)
                .min_by_key(|(_, chunk)| chunk.raw.size())
                .map(|(position, _)| position);
            if let Some(position) = fits {
                return Ok(chunks.swap_remove(position));
            }
        }
        let size = bytes.next_power_of_two().max(64 << 10);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(Chunk { raw: self.raw_buffer("download staging", size, usage)?, state: Arc::default() })
    }

    pub(super) fn return_down_chunk(&self, chunk: Chunk) {
        lock(&self.staging.down).push(chunk);
    }
}

impl Commands<'_> {
    /// Records a copy of `values` into `target` from its value `first` on. The host memory is free again when this
    /// returns. More than the staging memory holds is submitted in between.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] where they do not fit; what the device reports.
    pub fn upload<T: Pod>(&mut self, target: &DeviceBuffer<T>, first: usize, values: &[T]) -> Result<(), DeviceError> {
        if first.checked_add(values.len()).is_none_or(|end| end > target.len()) {
            return Err(DeviceError::Limit {
                what: format!("{}: values in the buffer", self.what()),
                requested: first as u64 + values.len() as u64,
                max: target.len() as u64,
            });
        }
        let mut bytes: &[u8] = bytemuck::cast_slice(values);
        let mut offset = first as u64 * size_of::<T>() as u64;
        while !bytes.is_empty() {
            let room = self.staging_room()?;
            let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            self.stage(&target.raw, offset, &bytes[..count])?;
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }
}
