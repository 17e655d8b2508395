// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster on the host: whether a device has it, and what is asked of it, as Linux 6.1 does (`ufshcd_wb_probe`,
//! `ufshcd_configure_wb`). It holds no state; the probe and the driver go through the steps.
//!
//! Linux also sets fWriteBoosterBufferFlushEn, unless the driver of the controller says that the device is better left
//! to flush by itself (`UFSHCI_QUIRK_SKIP_MANUAL_WB_FLUSH_CTRL`). This host is one of those.

use readpath_proto::booster::{BUFFER_SHARED, FEATURE_WRITE_BOOSTER, LIFE_EXCEEDED};
use readpath_proto::desc::DeviceDescriptor;
use readpath_proto::query::{flag, opcode};
use readpath_proto::typed::{QueryRequest, RequestBody};

/// Flags that are set, in order. They are volatile: after a reset they have to be set again.
const FLAGS: [u8; 2] = [flag::WB_EN, flag::WB_FLUSH_DURING_HIBERNATE];

/// Whether the device offers a shared buffer. Linux also looks for one of a single unit.
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

/// What is asked in step `step`, from 0 on; `None` when all is done.
pub(crate) fn request(step: u8) -> Option<RequestBody> {
    let idn = *FLAGS.get(usize::from(step))?;
    Some(RequestBody::Query(QueryRequest { opcode: opcode::SET_FLAG, idn, index: 0, selector: 0, length: 0, value: 0 }))
}
