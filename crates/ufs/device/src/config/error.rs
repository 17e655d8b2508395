// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a configuration.

/// Why a device cannot exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The field at fault, as a path of [`crate::DeviceConfig`] (`hpb.sub_region_size`, `lus[0].blocks`).
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}

impl std::error::Error for ConfigError {}

/// The error of a field.
pub(crate) fn bad<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { field: field.into(), message: message.into() })
}
