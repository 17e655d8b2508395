// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error number that Linux gives where a parameter is not taken.

use readpath_host::ParamError;
use readpath_run::StoreError;
use rustix::io::Errno;

pub(crate) fn of_store(error: StoreError) -> Errno {
    let StoreError::Refused(error) = error else { return Errno::NODEV };
    match error {
        ParamError::NoHpb { .. } => Errno::NODEV,
        // Not in this control mode.
        ParamError::NotHostControl { .. } | ParamError::NotOfPolicy { .. } | ParamError::CannotShrink => {
            Errno::OPNOTSUPP
        }
        ParamError::OutOfRange { .. } | ParamError::TooLittleMemory { .. } => Errno::INVAL,
    }
}
