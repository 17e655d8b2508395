// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags and attributes that a host can change, and what it may do with them.

use readpath_proto::query::{attribute, flag};

/// See the module.
pub(crate) struct QueryState {
    flags: u32,
    /// Values of attributes with IDN below 20h.
    attributes: [u32; 0x20],
}

impl QueryState {
    /// As after power-on.
    pub(crate) fn new() -> Self {
        let mut attributes = [0; 0x20];
        attributes[usize::from(attribute::CURRENT_POWER_MODE)] = 0x11;
        attributes[usize::from(attribute::MAX_DATA_IN_SIZE)] = 8;
        attributes[usize::from(attribute::MAX_DATA_OUT_SIZE)] = 8;
        attributes[usize::from(attribute::MAX_NUM_OF_RTT)] = 2;
        QueryState { flags: 1 << flag::BACKGROUND_OPS_EN, attributes }
    }

    /// Whether a flag is set.
    #[inline]
    pub(crate) fn is_set(&self, idn: u8) -> bool {
        self.flags >> idn & 1 == 1
    }

    /// Flags, to change one: a bit each.
    pub(crate) fn flags_mut(&mut self) -> &mut u32 {
        &mut self.flags
    }

    /// The value of an attribute with an IDN below 20h.
    pub(crate) fn attribute(&self, idn: u8) -> u32 {
        self.attributes[usize::from(idn)]
    }

    /// Sets the value of an attribute with an IDN below 20h.
    pub(crate) fn set_attribute(&mut self, idn: u8, value: u32) {
        self.attributes[usize::from(idn)] = value;
    }

    /// Exception events that the host wants to hear of.
    #[inline]
    pub(crate) fn exceptions_wanted(&self) -> u32 {
        self.attributes[usize::from(attribute::EXCEPTION_EVENT_CONTROL)]
    }
}

/// Whether a host may read an attribute, and whether it may write it.
pub(crate) fn attribute_access(idn: u8) -> Option<(bool, bool)> {
    let (read, write) = match idn {
        attribute::BOOT_LUN_EN
        | attribute::ACTIVE_ICC_LEVEL
        | attribute::OUT_OF_ORDER_DATA_EN
        | attribute::MAX_DATA_IN_SIZE
        | attribute::MAX_DATA_OUT_SIZE
        | attribute::REF_CLK_FREQ
        | attribute::CONFIG_DESCR_LOCK
        | attribute::MAX_NUM_OF_RTT
        | attribute::EXCEPTION_EVENT_CONTROL => (true, true),
        attribute::SECONDS_PASSED => (false, true),
        _ => (true, false),
    };
    attribute::bytes(idn).map(|_| (read, write))
}
