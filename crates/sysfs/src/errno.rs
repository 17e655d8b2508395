// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error numbers that Linux gives for files of sysfs.

use readpath_host::ParamError;
use readpath_run::StoreError;

/// An error number of Linux (`include/uapi/asm-generic/errno-base.h` and `errno.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Errno {
    /// Operation not permitted: sysfs has no such operation.
    Eperm = 1,
    /// There is no such file.
    Enoent = 2,
    /// Permission denied: the file is not for that.
    Eacces = 13,
    /// The logical unit has no HPB, or its host is gone.
    Enodev = 19,
    /// It is no directory.
    Enotdir = 20,
    /// It is a directory.
    Eisdir = 21,
    /// No number, or one out of range; or the device refused a query.
    Einval = 22,
    /// A number that does not fit.
    Erange = 34,
    /// Not in this control mode.
    Eopnotsupp = 95,
}

impl Errno {
    /// The number.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl From<StoreError> for Errno {
    fn from(error: StoreError) -> Errno {
        match error {
            StoreError::NotRunning | StoreError::Refused(ParamError::NoHpb { .. }) => Errno::Enodev,
            StoreError::Refused(
                ParamError::NotHostControl { .. } | ParamError::NotOfPolicy { .. } | ParamError::CannotShrink,
            ) => Errno::Eopnotsupp,
            StoreError::Refused(ParamError::OutOfRange { .. } | ParamError::TooLittleMemory { .. }) => Errno::Einval,
        }
    }
}
