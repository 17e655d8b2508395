// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags and attributes that a host can change, their access properties, and which of them are non-volatile.
//!
//! Access properties: JESD220E, tables of flags and attributes, as ufs-utils lists them (`ufs_attrs`, `ufs_flags`).
//! bActiveICCLevel counts as volatile: ufs-utils calls it persistent, but the device descriptor gives its value after
//! each reset (bInitActiveICCLevel).

use readpath_proto::query::{attribute, flag, opcode};
use readpath_proto::typed::QueryRequest;

/// Bytes of [`crate::Own::Settings`].
pub const SETTINGS_BYTES: usize = VALUES + IDNS;

/// Flags and attributes with higher IDNs are not stored.
const IDNS: usize = 0x20;
/// Offset of the values of attributes in settings: a byte for each IDN.
const VALUES: usize = 12;

/// Non-volatile attributes that can be rewritten. Each has one byte.
const PERSISTENT: u32 = 1 << attribute::BOOT_LUN_EN
    | 1 << attribute::MAX_DATA_IN_SIZE
    | 1 << attribute::MAX_DATA_OUT_SIZE
    | 1 << attribute::REF_CLK_FREQ
    | 1 << attribute::MAX_NUM_OF_RTT;
/// Non-volatile attributes that can be written once. Each has one byte.
const WRITE_ONCE: u32 = 1 << attribute::OUT_OF_ORDER_DATA_EN | 1 << attribute::CONFIG_DESCR_LOCK;
const PERSISTENT_FLAGS: u32 = 1 << flag::HPB_EN;
/// Flags that cannot be cleared once they are set.
const WRITE_ONCE_FLAGS: u32 = 1 << flag::PERMANENT_WP_EN | 1 << flag::DISABLE_FW_UPDATE;

/// Whether the request is about a non-volatile flag or attribute. If settings cannot be stored, it must be refused.
pub fn outlives_power(request: &QueryRequest) -> bool {
    let kept = match request.opcode {
        opcode::READ_ATTRIBUTE | opcode::WRITE_ATTRIBUTE => PERSISTENT | WRITE_ONCE,
        opcode::READ_FLAG | opcode::SET_FLAG | opcode::CLEAR_FLAG | opcode::TOGGLE_FLAG => {
            PERSISTENT_FLAGS | WRITE_ONCE_FLAGS
        }
        _ => 0,
    };
    usize::from(request.idn) < IDNS && kept >> request.idn & 1 == 1
}

pub(crate) struct QueryState {
    flags: u32,
    /// Values of attributes with IDN below 20h.
    attributes: [u32; IDNS],
    /// The non-volatile flags and attributes that a host has written, one bit each.
    written_flags: u32,
    written_attributes: u32,
}

impl QueryState {
    /// The state after the first power-on.
    pub(crate) fn new() -> Self {
        let mut attributes = [0; IDNS];
        attributes[usize::from(attribute::CURRENT_POWER_MODE)] = 0x11;
        attributes[usize::from(attribute::MAX_DATA_IN_SIZE)] = 8;
        attributes[usize::from(attribute::MAX_DATA_OUT_SIZE)] = 8;
        attributes[usize::from(attribute::MAX_NUM_OF_RTT)] = 2;
        QueryState { flags: 1 << flag::BACKGROUND_OPS_EN, attributes, written_flags: 0, written_attributes: 0 }
    }

    /// Whether a flag is set.
    #[inline]
    pub(crate) fn is_set(&self, idn: u8) -> bool {
        self.flags >> idn & 1 == 1
    }

    /// Sets or clears a flag.
    pub(crate) fn set_flag(&mut self, idn: u8, on: bool) {
        let bit = 1 << idn;
        self.flags = if on { self.flags | bit } else { self.flags & !bit };
        self.written_flags |= bit & (PERSISTENT_FLAGS | WRITE_ONCE_FLAGS);
    }

    /// Whether a flag can no longer be changed.
    pub(crate) fn is_final_flag(&self, idn: u8) -> bool {
        (self.flags & WRITE_ONCE_FLAGS) >> idn & 1 == 1
    }

    /// The value of a non-volatile flag, if a host has written it.
    pub(crate) fn written_flag(&self, idn: u8) -> Option<bool> {
        (self.written_flags >> idn & 1 == 1).then(|| self.is_set(idn))
    }

    /// The value of an attribute with an IDN below 20h.
    pub(crate) fn attribute(&self, idn: u8) -> u32 {
        self.attributes[usize::from(idn)]
    }

    /// Sets the value of an attribute with an IDN below 20h.
    pub(crate) fn set_attribute(&mut self, idn: u8, value: u32) {
        self.attributes[usize::from(idn)] = value;
        self.written_attributes |= 1 << idn & (PERSISTENT | WRITE_ONCE);
    }

    /// Whether an attribute with an IDN below 20h can no longer be written.
    pub(crate) fn is_final_attribute(&self, idn: u8) -> bool {
        (self.written_attributes & WRITE_ONCE) >> idn & 1 == 1
    }

    /// Whether a host has written a non-volatile flag or attribute.
    pub(crate) fn has_settings(&self) -> bool {
        self.written_attributes != 0 || self.written_flags != 0
    }

    /// The non-volatile state: which attributes and which flags a host has written (4 bytes each, little-endian, a
    /// bit for each IDN), which of those flags are set (4 bytes), and a byte for each IDN below 20h: the value, if it
    /// was written.
    pub(crate) fn settings(&self) -> [u8; SETTINGS_BYTES] {
        let mut bytes = [0; SETTINGS_BYTES];
        let words = [self.written_attributes, self.written_flags, self.written_flags & self.flags];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        for (idn, value) in self.attributes.iter().enumerate() {
            if self.written_attributes >> idn & 1 == 1 {
                bytes[VALUES + idn] = *value as u8;
            }
        }
        bytes
    }

    /// Restores the non-volatile state.
    pub(crate) fn restore(&mut self, settings: &[u8; SETTINGS_BYTES]) {
        let word = |at: usize| u32::from_le_bytes(*settings[at..].first_chunk().expect("four bytes"));
        let attributes = word(0) & (PERSISTENT | WRITE_ONCE);
        let (flags, set) = (word(4) & (PERSISTENT_FLAGS | WRITE_ONCE_FLAGS), word(8));
        for idn in 0..IDNS as u8 {
            if attributes >> idn & 1 == 1 {
                self.set_attribute(idn, settings[VALUES + usize::from(idn)].into());
            }
            if flags >> idn & 1 == 1 {
                self.set_flag(idn, set >> idn & 1 == 1);
            }
        }
    }

    /// Exception events that the host has enabled.
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

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_kit::Prng;

    #[test]
    fn settings_have_these_bytes() {
        let mut query = QueryState::new();
        assert!(!query.has_settings());
        assert_eq!(query.settings(), [0; 44]);
        query.set_attribute(attribute::BOOT_LUN_EN, 2);
        query.set_attribute(attribute::MAX_NUM_OF_RTT, 1);
        query.set_attribute(attribute::CONFIG_DESCR_LOCK, 0);
        query.set_flag(flag::DISABLE_FW_UPDATE, true);
        query.set_flag(flag::HPB_EN, false);
        let mut bytes = [0; 44];
        (bytes[0], bytes[1]) = (0x01, 0x18);
        (bytes[5], bytes[6], bytes[9]) = (0x08, 0x04, 0x08);
        (bytes[12], bytes[12 + 0x0C]) = (2, 1);
        assert_eq!(query.settings(), bytes);
    }

    /// After any sequence of writes, `restore` gives back the non-volatile state, and all else is as in a new device.
    #[test]
    fn what_is_kept_comes_back_and_nothing_else() {
        const KEPT: [u8; 7] = [0x00, 0x04, 0x07, 0x08, 0x0A, 0x0B, 0x0C];
        const KEPT_FLAGS: [u8; 3] = [0x02, 0x0B, 0x12];
        let new = QueryState::new();
        for seed in 0..200 {
            let rng = &mut Prng::stream(seed, "settings", 0);
            let mut query = QueryState::new();
            for _ in 0..rng.below(12) {
                query.set_attribute(rng.below(32) as u8, rng.below(256) as u32);
                query.set_flag(rng.below(32) as u8, rng.below(2) == 1);
            }
            let mut again = QueryState::new();
            again.restore(&query.settings());
            for idn in 0..32 {
                let from = if KEPT.contains(&idn) { &query } else { &new };
                assert_eq!(again.attribute(idn), from.attribute(idn), "seed {seed}: attribute {idn:#x}");
                let from = if KEPT_FLAGS.contains(&idn) { &query } else { &new };
                assert_eq!(again.is_set(idn), from.is_set(idn), "seed {seed}: flag {idn:#x}");
                assert_eq!(again.is_final_attribute(idn), query.is_final_attribute(idn), "seed {seed}: {idn:#x}");
                assert_eq!(again.is_final_flag(idn), query.is_final_flag(idn), "seed {seed}: {idn:#x}");
            }
            assert_eq!(again.settings(), query.settings(), "seed {seed}");
        }
        // Bits of volatile flags and attributes are ignored.
        let mut all = QueryState::new();
        all.restore(&[0xFF; SETTINGS_BYTES]);
        let told = |op, idn| {
            let request = QueryRequest { opcode: op, idn, index: 0, selector: 0, length: 0, value: 0 };
            outlives_power(&request)
        };
        for idn in 0..=255 {
            let is_kept = KEPT.contains(&idn);
            assert_eq!(told(opcode::READ_ATTRIBUTE, idn), is_kept);
            assert_eq!(told(opcode::WRITE_ATTRIBUTE, idn), is_kept);
            assert_eq!(told(opcode::SET_FLAG, idn), KEPT_FLAGS.contains(&idn));
            assert!(!told(opcode::READ_DESCRIPTOR, idn));
            if idn < 32 && !is_kept {
                assert_eq!(all.attribute(idn), new.attribute(idn));
            }
        }
    }
}
