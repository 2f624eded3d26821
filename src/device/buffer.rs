//! Buffers that live on the device: typed, sized, resident until dropped.

use super::{Device, fault};
use crate::error::DeviceError;
use bytemuck::Pod;
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::atomic::Ordering;

/// `len` values of `T` in device memory, readable and writable by kernels. All zero when made.
pub struct DeviceBuffer<T> {
    pub(super) raw: wgpu::Buffer,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Pod> DeviceBuffer<T> {
    /// Copies move whole 4-byte words, so an element has to be made of them.
    const WORDS: () = assert!(size_of::<T>() > 0 && size_of::<T>().is_multiple_of(4));

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.len as u64 * size_of::<T>() as u64
    }

    /// The whole buffer, to be bound to a shader's variable.
    pub fn binding(&self) -> Binding<'_> {
        Binding { raw: &self.raw, size: None }
    }
}

/// A buffer bound to a shader's variable.
#[derive(Clone, Copy)]
pub struct Binding<'a> {
    pub(super) raw: &'a wgpu::Buffer,
    /// The bytes seen by one dispatch, where it sees one of many slots.
    pub(super) size: Option<NonZero<u64>>,
}

/// Parameters of several dispatches, one slot each, written once; a dispatch names its slot.
pub struct Uniforms<P> {
    raw: wgpu::Buffer,
    stride: u32,
    slots: u32,
    kind: PhantomData<P>,
}

impl<P: Pod> Uniforms<P> {
    /// All slots, to be bound to the shader's uniform variable.
    pub fn binding(&self) -> Binding<'_> {
        Binding { raw: &self.raw, size: NonZero::new(size_of::<P>() as u64) }
    }

    /// What a dispatch passes to see slot `index`.
    pub fn offset(&self, index: usize) -> u32 {
        debug_assert!(index < self.slots as usize, "slot {index} of {}", self.slots);
        // Fits: the buffer's size was checked against the adapter's limit when it was made.
        u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(self.stride)
    }
}

impl Device {
    /// Allocates `len` zeroed values.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] above the largest buffer or binding of the adapter, [`DeviceError::OutOfMemory`].
    pub fn buffer<T: Pod>(&self, what: &str, len: usize) -> Result<DeviceBuffer<T>, DeviceError> {
        let () = DeviceBuffer::<T>::WORDS;
        // A binding cannot be empty: an empty operand gets one value that no kernel looks at. 16 bytes hold a vec4.
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64).max(16);
        let max = self.limits.max_buffer_size.min(self.limits.max_storage_buffer_binding_size);
        if bytes > max {
            return Err(DeviceError::Limit { what: format!("{what}: bytes in one buffer"), requested: bytes, max });
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let raw = self.raw_buffer(what, bytes, usage)?;
        // wgpu zeroes a fresh buffer when it is first used, inside whatever is being timed then. Do it now.
        let mut encoder = self.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(what) });
        encoder.clear_buffer(&raw, 0, None);
        self.scoped(what, bytes, || self.queue.submit([encoder.finish()]))?;
        Ok(DeviceBuffer { raw, len, kind: PhantomData })
    }

    /// One slot of parameters per dispatch.
    ///
    /// # Errors
    /// As [`buffer`](Self::buffer).
    pub fn uniforms<P: Pod>(&self, what: &str, slots: &[P]) -> Result<Uniforms<P>, DeviceError> {
        let alignment = self.limits.min_uniform_buffer_offset_alignment.max(16) as usize;
        let stride = size_of::<P>().next_multiple_of(alignment);
        let mut bytes = vec![0_u8; stride * slots.len().max(1)];
        for (slot, values) in bytes.chunks_exact_mut(stride).zip(slots) {
            slot[..size_of::<P>()].copy_from_slice(bytemuck::bytes_of(values));
        }
        let max = self.limits.max_buffer_size.min(u64::from(u32::MAX));
        let limit =
            || DeviceError::Limit { what: format!("{what}: bytes of parameters"), requested: bytes.len() as u64, max };
        if bytes.len() as u64 > max {
            return Err(limit());
        }
        let size = bytes.len() as u64;
        let raw = self.raw_buffer(what, size, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST)?;
        self.scoped(what, size, || self.queue.write_buffer(&raw, 0, &bytes))?;
        let stride = u32::try_from(stride).map_err(|_| limit())?;
        let slots = u32::try_from(slots.len()).map_err(|_| limit())?;
        Ok(Uniforms { raw, stride, slots, kind: PhantomData })
    }

    pub(super) fn raw_buffer(
        &self,
        what: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, DeviceError> {
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size: bytes, usage, mapped_at_creation: false };
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.scoped(what, bytes, || self.raw.create_buffer(&descriptor)).map_err(|error| match error {
            // A driver that refuses an allocation in other words is still out of memory for the caller.
            DeviceError::Internal { what, message } if message.to_lowercase().contains("out of memory") => {
                DeviceError::OutOfMemory { what, bytes }
            }
            other => other,
        })
    }

    /// The device in other words, for an error of a mapping.
    pub(super) fn map_failed(&self, what: &str, message: &str) -> DeviceError {
        self.check()
            .err()
            .unwrap_or_else(|| DeviceError::Internal { what: what.to_owned(), message: fault::one_line(message) })
    }
}
