// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster on the host: whether a device has it, and how it is enabled, as in Linux 6.1 (`ufshcd_wb_probe`,
//! `ufshcd_configure_wb`). It holds no state; the probe and the driver go through the steps.
//!
//! Linux also sets fWriteBoosterBufferFlushEn, unless the controller's driver leaves flushing to the device
//! (`UFSHCI_QUIRK_SKIP_MANUAL_WB_FLUSH_CTRL`), as this host does.

use readpath_proto::booster::{BUFFER_SHARED, FEATURE_WRITE_BOOSTER, LIFE_EXCEEDED};
use readpath_proto::desc::DeviceDescriptor;
use readpath_proto::query::{flag, opcode};
use readpath_proto::typed::{QueryRequest, RequestBody};

/// Flags to set, in order. They are volatile: they have to be set again after a reset.
const FLAGS: [u8; 2] = [flag::WB_EN, flag::WB_FLUSH_DURING_HIBERNATE];

/// Whether the device offers a shared buffer. Linux also supports a buffer of a single unit.
pub(crate) fn is_offered(device: &DeviceDescriptor) -> bool {
    device.spec_version >= 0x0310
        && device.extended_features & FEATURE_WRITE_BOOSTER != 0
        && device.wb_type == BUFFER_SHARED
        && device.wb_shared_alloc_units > 0
}

/// Whether the buffer may still be written, by bWriteBoosterBufferLifeTimeEst.
pub(crate) fn is_alive(life_time: u32) -> bool {
    life_time != u32::from(LIFE_EXCEEDED)
}

/// The request of step `step`, from 0 on; `None` when all steps are done.
pub(crate) fn request(step: u8) -> Option<RequestBody> {
    let idn = *FLAGS.get(usize::from(step))?;
    Some(RequestBody::Query(QueryRequest { opcode: opcode::SET_FLAG, idn, index: 0, selector: 0, length: 0, value: 0 }))
}
