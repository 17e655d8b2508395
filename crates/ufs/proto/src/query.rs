// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes of the query protocol: functions, opcodes, results and the identification numbers (IDN) of descriptors,
//! attributes and flags.
//!
//! Sources: JESD220 (query UPIUs, attribute and flag tables), JESD220-3 for HPB, Linux `include/ufs/ufs.h`. Only names
//! and sizes live here; values, access rights and persistence are the device's business.

/// Query function, byte 5 of the UPIU.
pub mod function {
    use super::opcode;

    /// STANDARD READ REQUEST.
    pub const READ: u8 = 0x01;
    /// STANDARD WRITE REQUEST.
    pub const WRITE: u8 = 0x81;

    /// The function under which JESD220 lists `opcode`.
    pub const fn of(opcode: u8) -> u8 {
        match opcode {
            opcode::READ_DESCRIPTOR | opcode::READ_ATTRIBUTE | opcode::READ_FLAG => READ,
            _ => WRITE,
        }
    }
}

/// Query opcodes, byte 12 of the UPIU (Linux `enum query_opcode`).
pub mod opcode {
    /// NOP.
    pub const NOP: u8 = 0x0;
    /// READ DESCRIPTOR.
    pub const READ_DESCRIPTOR: u8 = 0x1;
    /// WRITE DESCRIPTOR.
    pub const WRITE_DESCRIPTOR: u8 = 0x2;
    /// READ ATTRIBUTE.
    pub const READ_ATTRIBUTE: u8 = 0x3;
    /// WRITE ATTRIBUTE.
    pub const WRITE_ATTRIBUTE: u8 = 0x4;
    /// READ FLAG.
    pub const READ_FLAG: u8 = 0x5;
    /// SET FLAG.
    pub const SET_FLAG: u8 = 0x6;
    /// CLEAR FLAG.
    pub const CLEAR_FLAG: u8 = 0x7;
    /// TOGGLE FLAG.
    pub const TOGGLE_FLAG: u8 = 0x8;
}

/// Query response codes, byte 6 of the QUERY RESPONSE UPIU (JESD220, Linux `enum { QUERY_RESULT_... }`).
pub mod result {
    /// Success.
    pub const SUCCESS: u8 = 0x00;
    /// Parameter not readable.
    pub const NOT_READABLE: u8 = 0xF6;
    /// Parameter not writable.
    pub const NOT_WRITABLE: u8 = 0xF7;
    /// Parameter already written, for write-once parameters.
    pub const ALREADY_WRITTEN: u8 = 0xF8;
    /// Invalid value.
    pub const INVALID_VALUE: u8 = 0xFA;
    /// Invalid index.
    pub const INVALID_INDEX: u8 = 0xFC;
    /// Invalid IDN.
    pub const INVALID_IDN: u8 = 0xFD;
    /// Invalid opcode.
    pub const INVALID_OPCODE: u8 = 0xFE;
    /// General failure.
    pub const GENERAL_FAILURE: u8 = 0xFF;
}

/// Descriptor IDNs (Linux `enum desc_idn`).
pub mod descriptor {
    /// Device descriptor.
    pub const DEVICE: u8 = 0x0;
    /// Configuration descriptor.
    pub const CONFIGURATION: u8 = 0x1;
    /// Unit descriptor; index = LUN, C4h for the RPMB unit.
    pub const UNIT: u8 = 0x2;
    /// Interconnect descriptor.
    pub const INTERCONNECT: u8 = 0x4;
    /// String descriptor; index from the device descriptor.
    pub const STRING: u8 = 0x5;
    /// Geometry descriptor.
    pub const GEOMETRY: u8 = 0x7;
    /// Power parameters descriptor.
    pub const POWER: u8 = 0x8;
    /// Device health descriptor.
    pub const HEALTH: u8 = 0x9;
}

/// Attribute IDNs (Linux `enum attr_idn`).
pub mod attribute {
    /// bBootLunEn.
    pub const BOOT_LUN_EN: u8 = 0x00;
    /// bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD: (value + 1) * 4 KiB is the most that one HPB READ carries.
    pub const MAX_HPB_SINGLE_CMD: u8 = 0x01;
    /// bCurrentPowerMode.
    pub const CURRENT_POWER_MODE: u8 = 0x02;
    /// bActiveICCLevel.
    pub const ACTIVE_ICC_LEVEL: u8 = 0x03;
    /// bOutOfOrderDataEn.
    pub const OUT_OF_ORDER_DATA_EN: u8 = 0x04;
    /// bBackgroundOpStatus: 0 none, 1 non-critical, 2 performance impact, 3 critical.
    pub const BACKGROUND_OP_STATUS: u8 = 0x05;
    /// bPurgeStatus.
    pub const PURGE_STATUS: u8 = 0x06;
    /// bMaxDataInSize, in 512 bytes.
    pub const MAX_DATA_IN_SIZE: u8 = 0x07;
    /// bMaxDataOutSize, in 512 bytes.
    pub const MAX_DATA_OUT_SIZE: u8 = 0x08;
    /// dDynCapNeeded, per logical unit.
    pub const DYN_CAP_NEEDED: u8 = 0x09;
    /// bRefClkFreq: 0 19.2 MHz, 1 26 MHz, 2 38.4 MHz, 3 52 MHz.
    pub const REF_CLK_FREQ: u8 = 0x0A;
    /// bConfigDescrLock.
    pub const CONFIG_DESCR_LOCK: u8 = 0x0B;
    /// bMaxNumOfRTT.
    pub const MAX_NUM_OF_RTT: u8 = 0x0C;
    /// wExceptionEventControl.
    pub const EXCEPTION_EVENT_CONTROL: u8 = 0x0D;
    /// wExceptionEventStatus.
    pub const EXCEPTION_EVENT_STATUS: u8 = 0x0E;
    /// dSecondsPassed.
    pub const SECONDS_PASSED: u8 = 0x0F;
    const CONTEXT_CONF: u8 = 0x10;
    const CORR_PRG_BLK_NUM: u8 = 0x11;
    /// bDeviceFFUStatus.
    pub const DEVICE_FFU_STATUS: u8 = 0x14;
    /// bPSAState.
    pub const PSA_STATE: u8 = 0x15;
    /// dPSADataSize.
    pub const PSA_DATA_SIZE: u8 = 0x16;
    const REF_CLK_GATING_WAIT_TIME: u8 = 0x17;
    /// bWriteBoosterBufferFlushStatus.
    pub const WB_FLUSH_STATUS: u8 = 0x1C;
    /// bAvailableWriteBoosterBufferSize.
    pub const WB_AVAILABLE_SIZE: u8 = 0x1D;
    /// bWriteBoosterBufferLifeTimeEst.
    pub const WB_LIFE_TIME_EST: u8 = 0x1E;
    /// dCurrentWriteBoosterBufferSize.
    pub const WB_CURRENT_SIZE: u8 = 0x1F;

    /// Not in JESD220: HPB entries that one HPB READ may carry in its extra header segment, 0 if none
    /// ([`crate::upiu::EHS_HPB_ENTRIES`]). From the range that JESD220 leaves to vendors.
    pub const EHS_HPB_ENTRIES: u8 = 0xC0;
    /// Not in JESD220: entries of a group of the prototype of HPB ([`crate::groups`]); from the same range. The paper
    /// does not say how its host learns the number.
    pub const GROUP_ENTRIES: u8 = 0xC1;

    /// Bytes of the attribute (1, 2 or 4: the prefixes b, w, d of its JESD220 name), if it has a name here.
    pub const fn bytes(idn: u8) -> Option<u8> {
        Some(match idn {
            DYN_CAP_NEEDED | SECONDS_PASSED | CORR_PRG_BLK_NUM | PSA_DATA_SIZE | WB_CURRENT_SIZE | GROUP_ENTRIES => 4,
            EXCEPTION_EVENT_CONTROL | EXCEPTION_EVENT_STATUS | CONTEXT_CONF => 2,
            BOOT_LUN_EN..=MAX_DATA_OUT_SIZE
            | REF_CLK_FREQ..=MAX_NUM_OF_RTT
            | DEVICE_FFU_STATUS
            | PSA_STATE
            | REF_CLK_GATING_WAIT_TIME..=WB_LIFE_TIME_EST
            | EHS_HPB_ENTRIES => 1,
            _ => return None,
        })
    }
}

/// Flag IDNs (Linux `enum flag_idn`).
pub mod flag {
    /// fDeviceInit: the host sets it, the device clears it when it is ready.
    pub const DEVICE_INIT: u8 = 0x01;
    /// fPermanentWPEn.
    pub const PERMANENT_WP_EN: u8 = 0x02;
    /// fPowerOnWPEn.
    pub const POWER_ON_WP_EN: u8 = 0x03;
    /// fBackgroundOpsEn.
    pub const BACKGROUND_OPS_EN: u8 = 0x04;
    /// fDeviceLifeSpanModeEn.
    pub const LIFE_SPAN_MODE_EN: u8 = 0x05;
    /// fPhyResourceRemoval.
    pub const PHY_RESOURCE_REMOVAL: u8 = 0x08;
    /// fBusyRTC.
    pub const BUSY_RTC: u8 = 0x09;
    /// fPermanentlyDisableFwUpdate.
    pub const DISABLE_FW_UPDATE: u8 = 0x0B;
    /// fWriteBoosterEn.
    pub const WB_EN: u8 = 0x0E;
    /// fWriteBoosterBufferFlushEn.
    pub const WB_FLUSH_EN: u8 = 0x0F;
    /// fWriteBoosterBufferFlushDuringHibernate.
    pub const WB_FLUSH_DURING_HIBERNATE: u8 = 0x10;
    /// fHPBReset: the host sets it, the device clears it when its HPB state is reset.
    pub const HPB_RESET: u8 = 0x11;
    /// fHPBEn.
    pub const HPB_EN: u8 = 0x12;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions() {
        let reads: Vec<u8> = (0..=8).filter(|o| function::of(*o) == 0x01).collect();
        assert_eq!(reads, [1, 3, 5]);
        assert_eq!(function::of(opcode::SET_FLAG), 0x81);
    }

    #[test]
    fn attribute_sizes() {
        let with = |n| (0..=255u8).filter(|i| attribute::bytes(*i) == Some(n)).collect::<Vec<_>>();
        assert_eq!(with(2), [0x0D, 0x0E, 0x10]);
        assert_eq!(with(4), [0x09, 0x0F, 0x11, 0x16, 0x1F, 0xC1]);
        assert_eq!(with(1).len(), 32 - 8 - 2 + 1);
        assert_eq!(attribute::bytes(0x12), None);
        assert_eq!(attribute::bytes(0x13), None);
        assert_eq!(attribute::bytes(0x20), None);
    }
}
