//! Recording work, submitting it, waiting for it, reading back.

use super::transfer::Chunk;
use super::{Binding, Device, DeviceBuffer, Pipeline, Timer};
use crate::error::DeviceError;
use bytemuck::Pod;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// A device that has not answered for this long is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Between two looks at the sticky fault.
const SLICE: Duration = Duration::from_secs(1);

/// The word for it in results: the host sleeps in the driver's wait, it does not spin.
const WAIT: &str = "poll_wait";

/// Buffers bound to the variables of one `@group` of a pipeline.
pub struct BindGroup {
    raw: wgpu::BindGroup,
}

impl Device {
    /// Binds buffers to the variables of `@group(group)`, in the order of their `@binding`s.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] when the shader declares others.
    pub fn bind(&self, pipeline: &Pipeline, group: usize, bindings: &[Binding<'_>]) -> Result<BindGroup, DeviceError> {
        let Some((layout, slots)) = pipeline.groups.get(group).filter(|(_, slots)| slots.len() == bindings.len())
        else {
            return Err(DeviceError::Internal {
                what: pipeline.name.clone(),
                message: format!("{} buffers for group {group}, which the shader does not declare", bindings.len()),
            });
        };
        let entries: Vec<_> = slots
            .iter()
            .zip(bindings)
            .map(|(slot, binding)| wgpu::BindGroupEntry {
                binding: *slot,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: binding.raw,
                    offset: 0,
                    size: binding.size,
                }),
            })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: Some(&pipeline.name), layout, entries: &entries };
        let raw = self.scoped(&pipeline.name, 0, || self.raw.create_bind_group(&descriptor))?;
        Ok(BindGroup { raw })
    }

    /// Starts recording. `what` names the work in errors.
    pub fn commands<'a>(&'a self, what: &'a str) -> Commands<'a> {
        Commands {
            device: self,
            what,
            encoder: self.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(what) }),
            filling: None,
            filled: Vec::new(),
            downloads: Vec::new(),
        }
    }

    /// How the host waits for the device, in the word of results.
    pub fn wait_strategy(&self) -> &'static str {
        WAIT
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], [`DeviceError::Timeout`].
    pub fn wait(&self, what: &str) -> Result<(), DeviceError> {
        self.wait_for(what, None)
    }

    fn wait_for(&self, what: &str, index: Option<wgpu::SubmissionIndex>) -> Result<(), DeviceError> {
        let start = Instant::now();
        loop {
            if self.poll_slice(what, index.clone(), start)? {
                return Ok(());
            }
        }
    }

    /// Polls until `done` says so.
    pub(super) fn poll_until(
        &self,
        what: &str,
        index: Option<wgpu::SubmissionIndex>,
        mut done: impl FnMut() -> Result<bool, DeviceError>,
    ) -> Result<(), DeviceError> {
        let start = Instant::now();
        loop {
            if done()? {
                return Ok(());
            }
            if self.poll_slice(what, index.clone(), start)? && !done()? && start.elapsed() > SLICE {
                // The queue is empty and still nobody called back: a lost device says nothing else.
                self.check()?;
                if start.elapsed() > PATIENCE {
                    return Err(DeviceError::Timeout { what: what.to_owned(), seconds: PATIENCE.as_secs() });
                }
            }
        }
    }

    /// One slice of waiting; `true` when the submission is done.
    fn poll_slice(
        &self,
        what: &str,
        index: Option<wgpu::SubmissionIndex>,
        start: Instant,
    ) -> Result<bool, DeviceError> {
        let result = self.raw.poll(wgpu::PollType::Wait { submission_index: index, timeout: Some(SLICE) });
        self.check()?;
        match result {
            Ok(_) => Ok(true),
            Err(wgpu::PollError::Timeout) if start.elapsed() < PATIENCE => Ok(false),
            Err(wgpu::PollError::Timeout) => {
                Err(DeviceError::Timeout { what: what.to_owned(), seconds: start.elapsed().as_secs() })
            }
            Err(error) => Err(DeviceError::Internal { what: what.to_owned(), message: error.to_string() }),
        }
    }
}

/// Work being recorded: uploads, passes of dispatches, downloads, in this order on the device.
pub struct Commands<'a> {
    device: &'a Device,
    what: &'a str,
    encoder: wgpu::CommandEncoder,
    /// The staging chunk being filled and how far.
    filling: Option<(Chunk, u64)>,
    filled: Vec<Chunk>,
    downloads: Vec<(Chunk, u64)>,
}

/// Values on their way to the host; see [`Submission::read`].
pub struct Download<T> {
    index: usize,
    len: usize,
    kind: PhantomData<T>,
}

impl<'a> Commands<'a> {
    pub(super) fn what(&self) -> &str {
        self.what
    }

    /// Starts a pass: its dispatches run one after another, each seeing what the ones before it wrote.
    pub fn pass(&mut self) -> Pass<'_> {
        self.begin_pass(None)
    }

    /// The same, and the device notes when it begins and ends.
    pub fn timed_pass(&mut self, timer: &Timer) -> Pass<'_> {
        self.begin_pass(Some(timer))
    }

    fn begin_pass(&mut self, timer: Option<&Timer>) -> Pass<'_> {
        let descriptor =
            wgpu::ComputePassDescriptor { label: Some(self.what), timestamp_writes: timer.map(Timer::writes) };
        Pass { raw: self.encoder.begin_compute_pass(&descriptor) }
    }

    /// Sets a whole buffer to zero.
    pub fn clear<T: Pod>(&mut self, buffer: &DeviceBuffer<T>) {
        self.encoder.clear_buffer(&buffer.raw, 0, None);
    }

    /// Records a copy of `len` values to the host, from value `first` of `source` on.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] where there are not as many; [`DeviceError::OutOfMemory`] for the staging memory.
    pub fn download<T: Pod>(
        &mut self,
        source: &DeviceBuffer<T>,
        first: usize,
        len: usize,
    ) -> Result<Download<T>, DeviceError> {
        if first.checked_add(len).is_none_or(|end| end > source.len()) {
            return Err(DeviceError::Limit {
                what: format!("{}: values in the buffer", self.what),
                requested: first as u64 + len as u64,
                max: source.len() as u64,
            });
        }
        let size = size_of::<T>() as u64;
        self.copy_down(&source.raw, first as u64 * size, len as u64 * size).map(|index| Download {
            index,
            len,
            kind: PhantomData,
        })
    }

    /// Records a copy of `bytes` to the host; the position in the list of downloads.
    fn copy_down(&mut self, source: &wgpu::Buffer, offset: u64, bytes: u64) -> Result<usize, DeviceError> {
        let chunk = self.device.take_down_chunk(bytes.max(4))?;
        if bytes > 0 {
            self.encoder.copy_buffer_to_buffer(source, offset, &chunk.raw, 0, bytes);
        }
        self.downloads.push((chunk, bytes));
        Ok(self.downloads.len() - 1)
    }

    /// Turns a timer's notes into a download of two ticks.
    fn resolve(&mut self, timer: &Timer) -> Result<Download<u64>, DeviceError> {
        self.encoder.resolve_query_set(&timer.set, 0..2, &timer.resolved, 0);
        self.copy_down(&timer.resolved, 0, 16).map(|index| Download { index, len: 2, kind: PhantomData })
    }

    /// How many bytes the chunk being filled takes; at least one word, after a submission if need be.
    pub(super) fn staging_room(&mut self) -> Result<u64, DeviceError> {
        let size = self.device.staging.chunk_bytes;
        if let Some((_, used)) = &self.filling
            && *used < size
        {
            return Ok(size - used);
        }
        self.filled.extend(self.filling.take().map(|(chunk, _)| chunk));
        // A chunk that is full is on its way at once, so that the device copies it while the host fills the next.
        if !self.filled.is_empty() {
            self.flush()?;
        }
        let chunk = match self.device.take_up_chunk()? {
            Some(chunk) => chunk,
            None => self.device.extra_up_chunk()?,
        };
        self.filling = Some((chunk, 0));
        Ok(size)
    }

    /// Writes `bytes` into the chunk being filled and records their copy to `target`.
    pub(super) fn stage(&mut self, target: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let Some((chunk, used)) = &mut self.filling else { return Ok(()) };
        let len = bytes.len() as u64;
        let mut view = chunk
            .raw
            .slice(*used..*used + len)
            .get_mapped_range_mut()
            .map_err(|error| self.device.map_failed(self.what, &error.to_string()))?;
        view.copy_from_slice(bytes);
        drop(view);
        self.encoder.copy_buffer_to_buffer(&chunk.raw, *used, target, offset, len);
        // Mappings begin at multiples of 8.
        *used = (*used + len).next_multiple_of(8);
        Ok(())
    }

    /// Submits what is recorded so far and goes on recording.
    ///
    /// # Errors
    /// What the device reports.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        let next = self.device.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(self.what) });
        let encoder = std::mem::replace(&mut self.encoder, next);
        self.submit_encoder(encoder).map(drop)
    }

    fn submit_encoder(&mut self, encoder: wgpu::CommandEncoder) -> Result<wgpu::SubmissionIndex, DeviceError> {
        let mut chunks = std::mem::take(&mut self.filled);
        chunks.extend(self.filling.take().map(|(chunk, _)| chunk));
        for chunk in &chunks {
            chunk.raw.unmap();
        }
        let device = self.device;
        let index = device.scoped(self.what, 0, || device.queue.submit([encoder.finish()]));
        for chunk in chunks {
            device.return_up_chunk(chunk);
        }
        index
    }

    /// Submits everything and waits; the nanoseconds of the timed pass, by the device's own clock, where they make sense.
    ///
    /// # Errors
    /// What the device reports.
    pub fn submit_timed(mut self, timer: &Timer) -> Result<Option<u64>, DeviceError> {
        let download = self.resolve(timer)?;
        let submission = self.submit()?;
        let mut ticks = [0; 2];
        submission.read(&download, &mut ticks)?;
        Ok(timer.nanoseconds(ticks))
    }

    /// Submits everything.
    ///
    /// # Errors
    /// What the device reports.
    pub fn submit(mut self) -> Result<Submission<'a>, DeviceError> {
        let next = self.device.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let encoder = std::mem::replace(&mut self.encoder, next);
        let index = self.submit_encoder(encoder)?;
        let downloads = std::mem::take(&mut self.downloads);
        for (chunk, bytes) in &downloads {
            chunk.map(wgpu::MapMode::Read, (*bytes).max(4));
        }
        Ok(Submission { device: self.device, what: self.what, index, downloads })
    }
}

impl Drop for Commands<'_> {
    fn drop(&mut self) {
        // Work that is given up half-way leaves its chunks mapped; they go back to the ring as they are.
        for chunk in self.filled.drain(..).chain(self.filling.take().map(|(chunk, _)| chunk)) {
            chunk.raw.unmap();
            self.device.return_up_chunk(chunk);
        }
    }
}

/// Dispatches of one pass.
pub struct Pass<'a> {
    raw: wgpu::ComputePass<'a>,
}

impl Pass<'_> {
    /// Runs a pipeline on `workgroups`. `groups` are the bind groups from `@group(0)` on, each with the slots of its
    /// uniforms (see [`Uniforms::offset`](super::Uniforms::offset)).
    pub fn dispatch(&mut self, pipeline: &Pipeline, groups: &[(&BindGroup, &[u32])], workgroups: [u32; 3]) {
        self.raw.set_pipeline(&pipeline.raw);
        for (index, (group, offsets)) in (0..).zip(groups) {
            self.raw.set_bind_group(index, &group.raw, offsets);
        }
        let [x, y, z] = workgroups;
        self.raw.dispatch_workgroups(x, y, z);
    }
}

/// Submitted work.
pub struct Submission<'a> {
    device: &'a Device,
    what: &'a str,
    index: wgpu::SubmissionIndex,
    downloads: Vec<(Chunk, u64)>,
}

impl Submission<'_> {
    /// Waits until it is done.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], [`DeviceError::Timeout`].
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.device.wait_for(self.what, Some(self.index.clone()))
    }

    /// Waits until it is done and copies the values of a download, which has `into.len()` of them.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], [`DeviceError::Timeout`], [`DeviceError::Internal`] where the copy could not be mapped.
    pub fn read<T: Pod>(&self, download: &Download<T>, into: &mut [T]) -> Result<(), DeviceError> {
        let found = self.downloads.get(download.index).filter(|_| download.len == into.len());
        let Some((chunk, bytes)) = found else {
            return Err(DeviceError::Internal {
                what: self.what.to_owned(),
                message: format!("{} values asked for, {} downloaded", into.len(), download.len),
            });
        };
        self.wait()?;
        chunk.wait(self.device, self.what)?;
        if *bytes > 0 {
            let view = chunk
                .raw
                .slice(..*bytes)
                .get_mapped_range()
                .map_err(|error| self.device.map_failed(self.what, &error.to_string()))?;
            bytemuck::cast_slice_mut::<T, u8>(into).copy_from_slice(&view);
        }
        self.device.check()
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        // The staging memory goes back for the next download.
        for (chunk, _) in self.downloads.drain(..) {
            chunk.raw.unmap();
            self.device.return_down_chunk(chunk);
        }
    }
}

/// Workgroups in two dimensions: at most `max` in each, all of `groups` covered. The shader computes its number as
/// `y * x_count + x` and leaves those beyond the last one alone.
pub fn fold(groups: u64, max: u32) -> [u32; 2] {
    let max = u64::from(max.max(1));
    let x = groups.clamp(1, max);
    let y = groups.max(1).div_ceil(x);
    // Both fit after the clamp; more than max * max workgroups are refused by wgpu, not wrapped.
    [u32::try_from(x).unwrap_or(u32::MAX), u32::try_from(y).unwrap_or(u32::MAX)]
}
