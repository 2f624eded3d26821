//! What the device layer knows, in the words of a result file.

use super::{Adapter, Ceilings};
use crate::device::{AdapterInfo, Device};
use crate::error::DeviceError;

impl From<&AdapterInfo> for Adapter {
    fn from(info: &AdapterInfo) -> Self {
        Self {
            name: info.name.clone(),
            vendor: info.vendor,
            device: info.device,
            device_type: info.kind.name().to_owned(),
            software: info.is_software(),
            backend: info.backend.clone(),
            driver: info.driver.clone(),
            driver_info: info.driver_info.clone(),
            limits: info.limits.clone(),
            timestamp_period: info.timestamp_period,
        }
    }
}

impl Ceilings {
    /// Measures what belongs to the device. Stays null on a software adapter, whose times are never published.
    ///
    /// # Errors
    /// What the device reports.
    pub fn measure_device(&mut self, device: &Device) -> Result<(), DeviceError> {
        if let Some(measured) = device.ceilings()? {
            self.upload_bytes_per_s = Some(measured.upload_bytes_per_s);
            self.download_bytes_per_s = Some(measured.download_bytes_per_s);
            self.floor_ns = Some(measured.floor_ns);
        }
        Ok(())
    }
}
