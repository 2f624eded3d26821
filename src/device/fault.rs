//! One sticky fault per device, and error scopes around every step.

use super::lock;
use crate::error::DeviceError;
use std::sync::{Arc, Mutex};

/// The first failure that the driver reported outside of an error scope. It never goes away: after it, wgpu answers
/// `Ok` to calls that do nothing.
#[derive(Default)]
pub(super) struct Fault(Mutex<Option<DeviceError>>);

impl Fault {
    /// Installs both of wgpu's callbacks. Without a handler an uncaptured error would be a panic.
    pub(super) fn watch(device: &wgpu::Device) -> Arc<Self> {
        let fault = Arc::new(Self::default());
        let lost = Arc::clone(&fault);
        device.set_device_lost_callback(move |reason, message| {
            lost.set(DeviceError::Lost { message: format!("{reason:?}: {}", one_line(&message)) });
        });
        let uncaptured = Arc::clone(&fault);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            uncaptured.set(translate("device", 0, &error));
        }));
        fault
    }

    fn set(&self, error: DeviceError) {
        lock(&self.0).get_or_insert(error);
    }

    pub(super) fn check(&self) -> Result<(), DeviceError> {
        lock(&self.0).clone().map_or(Ok(()), Err)
    }
}

/// Runs `step` inside one scope per class of error; then reads them, and the sticky fault.
pub(super) fn scoped<T>(
    device: &wgpu::Device,
    fault: &Fault,
    what: &str,
    bytes: u64,
    step: impl FnOnce() -> T,
) -> Result<T, DeviceError> {
    fault.check()?;
    let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let value = step();
    let errors =
        [pollster::block_on(memory.pop()), pollster::block_on(validation.pop()), pollster::block_on(internal.pop())];
    if let Some(error) = errors.into_iter().flatten().next() {
        return Err(translate(what, bytes, &error));
    }
    fault.check()?;
    Ok(value)
}

fn translate(what: &str, bytes: u64, error: &wgpu::Error) -> DeviceError {
    match error {
        wgpu::Error::OutOfMemory { .. } => DeviceError::OutOfMemory { what: what.to_owned(), bytes },
        other => DeviceError::Internal { what: what.to_owned(), message: one_line(&other.to_string()) },
    }
}

pub(super) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
