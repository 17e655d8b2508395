// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offsets of the registers and their bits (JESD223; Linux `include/ufs/ufshci.h`). All are 32 bits wide.

/// Bytes of the register space, the size of BAR 0.
pub const SPACE_BYTES: u32 = 0x1000;

/// CAP: controller capabilities.
pub const CAP: u32 = 0x00;
/// VER: the version of UFSHCI.
pub const VER: u32 = 0x08;
/// IS: interrupt status, written 1 to clear.
pub const IS: u32 = 0x20;
/// IE: interrupt enable.
pub const IE: u32 = 0x24;
/// HCS: host controller status.
pub const HCS: u32 = 0x30;
/// HCE: host controller enable.
pub const HCE: u32 = 0x34;
/// UECPA, the first of five registers with error codes of UIC layers, which are cleared when read.
pub const UECPA: u32 = 0x38;
/// UECDL.
pub const UECDL: u32 = 0x3C;
/// UECDME, the last of them.
pub const UECDME: u32 = 0x48;
/// UTRIACR: interrupt aggregation.
pub const UTRIACR: u32 = 0x4C;
/// UTRLBA: transfer list, lower half of its address.
pub const UTRLBA: u32 = 0x50;
/// UTRLBAU: upper half.
pub const UTRLBAU: u32 = 0x54;
/// UTRLDBR: transfer list doorbell.
pub const UTRLDBR: u32 = 0x58;
/// UTRLCLR: transfer list clear, by zeros.
pub const UTRLCLR: u32 = 0x5C;
/// UTRLRSR: transfer list run and stop.
pub const UTRLRSR: u32 = 0x60;
/// UTRLCNR: transfer list completion notification, written 1 to clear.
pub const UTRLCNR: u32 = 0x64;
/// UTMRLBA: task management list, lower half of its address.
pub const UTMRLBA: u32 = 0x70;
/// UTMRLBAU: upper half.
pub const UTMRLBAU: u32 = 0x74;
/// UTMRLDBR: task management list doorbell.
pub const UTMRLDBR: u32 = 0x78;
/// UTMRLCLR: task management list clear, by zeros.
pub const UTMRLCLR: u32 = 0x7C;
/// UTMRLRSR: task management list run and stop.
pub const UTMRLRSR: u32 = 0x80;
/// UICCMD: the write starts a UIC command.
pub const UICCMD: u32 = 0x90;
/// UCMDARG1: attribute and selector.
pub const UCMDARG1: u32 = 0x94;
/// UCMDARG2: type of a set; then the result.
pub const UCMDARG2: u32 = 0x98;
/// UCMDARG3: value.
pub const UCMDARG3: u32 = 0x9C;

/// Bits of IS and IE.
pub mod interrupt {
    /// A transfer has completed.
    pub const TRANSFER: u32 = 1 << 0;
    /// UE: an error of a UIC layer, which UECPA to UECDME report.
    pub const UIC_ERROR: u32 = 1 << 2;
    /// UPMS: the power mode has changed.
    pub const POWER_MODE: u32 = 1 << 4;
    /// UHXS: hibernation was left.
    pub const HIBERNATE_EXIT: u32 = 1 << 5;
    /// UHES: hibernation was entered.
    pub const HIBERNATE_ENTER: u32 = 1 << 6;
    /// A task management request has completed.
    pub const TASK: u32 = 1 << 9;
    /// A UIC command has completed.
    pub const UIC_COMMAND: u32 = 1 << 10;
    /// DFES: the device has failed.
    pub const DEVICE_FATAL: u32 = 1 << 11;
    /// HCFES: the controller has failed.
    pub const CONTROLLER_FATAL: u32 = 1 << 16;
    /// SBFES: the bus has failed.
    pub const BUS_FATAL: u32 = 1 << 17;
    /// All existing bits.
    pub const ALL: u32 = 0x0017_1FFF;
}

/// Bits of HCS.
pub mod status {
    /// DP: a device is present.
    pub const DEVICE_PRESENT: u32 = 1 << 0;
    /// UTRLRDY: the transfer list may be used.
    pub const TRANSFERS_READY: u32 = 1 << 1;
    /// UTMRLRDY: the task management list may be used.
    pub const TASKS_READY: u32 = 1 << 2;
    /// UCRDY: a UIC command may be given.
    pub const UIC_READY: u32 = 1 << 3;
    /// UPMCRS, bits 10:8: the result of the last change of power.
    pub const POWER_RESULT: u32 = 7 << 8;
    /// UPMCRS: completed on this side.
    pub const POWER_LOCAL: u32 = 1 << 8;
}
