// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a configuration.

/// Why a device cannot exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} {message}", self.path())]
pub struct ConfigError {
    /// The field at fault, as a path of [`crate::DeviceConfig`] (`hpb.sub_region_size`, `lus[].blocks`).
    pub field: &'static str,
    /// The logical unit, if it is a field of one.
    pub lun: Option<usize>,
    /// Whether the message begins with the value of the field, in the unit of the field.
    pub says_value: bool,
    /// The fault, and what would be valid.
    pub message: String,
}

impl ConfigError {
    /// The path of the field, with the number of its logical unit (`lus[0].blocks`).
    pub fn path(&self) -> String {
        self.lun.map_or(self.field.to_owned(), |lun| self.field.replacen("[]", &format!("[{lun}]"), 1))
    }
}

/// An invalid combination of fields.
pub(crate) fn bad<T>(field: &'static str, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { field, lun: None, says_value: false, message: message.into() })
}

/// An invalid value; `message` begins with it.
pub(crate) fn bad_value<T>(field: &'static str, message: String) -> Result<T, ConfigError> {
    Err(ConfigError { field, lun: None, says_value: true, message })
}

/// An invalid field of a logical unit.
pub(crate) fn bad_unit<T>(lun: usize, field: &'static str, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { field, lun: Some(lun), says_value: false, message: message.into() })
}
