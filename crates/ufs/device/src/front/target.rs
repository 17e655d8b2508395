// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the SCSI target: which units accept commands, and the state of the query manager. It knows no command.

use super::query_state::QueryState;
use crate::config::DeviceConfig;
use readpath_proto::scsi::Identity;

/// Bytes of the data buffer: bMaxInBufferSize and bMaxOutBufferSize.
pub(crate) const DATA_BUFFER_BYTES: usize = 4096;

pub(crate) struct Target {
    /// Units that have to report UNIT ATTENTION after a reset, one bit each.
    attention: u8,
    active: bool,
    /// Units whose reads are looked at first, one bit each: by the engine that checks entries, or for zones.
    checks_first: u8,
    /// Units whose reads begin without a check, one bit each; derived from the three fields above.
    direct: u8,
    identity: Identity,
    /// Tells devices of the same kind apart.
    serial: u64,
    /// What a host has put into the data buffer by WRITE BUFFER; zeros as long as it is empty.
    pub buffer: Vec<u8>,
    /// What a host has set by queries.
    pub query: QueryState,
}

impl Target {
    /// A target that is active, as after power-on.
    pub(crate) fn new(config: &DeviceConfig, serial: u64) -> Self {
        let engine_checks = config.hpb.as_ref().is_some_and(|hpb| hpb.entries.engine_checks());
        let zoned = config.lus.iter().zip(0..).map(|(lu, lun)| u8::from(lu.zones.is_some()) << lun);
        let checks_first = if engine_checks { u8::MAX } else { zoned.sum() };
        Target {
            attention: 0,
            active: true,
            checks_first,
            direct: !checks_first,
            identity: Identity::new("READPATH", &config.product_name, "0001"),
            serial,
            buffer: Vec::new(),
            query: QueryState::new(),
        }
    }

    /// Whether `lun` accepts media commands: the device is active and no unit attention is pending.
    #[inline]
    pub(crate) fn is_ready(&self, lun: u8) -> bool {
        self.active && self.attention >> lun & 1 == 0
    }

    /// Whether a read of `lun`, which exists, begins as soon as it arrives.
    #[inline(always)]
    pub(crate) fn is_direct(&self, lun: u8) -> bool {
        u32::from(self.direct) >> (lun & 31) & 1 == 1
    }

    /// Whether commands other than START STOP UNIT are accepted.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Starts or stops the device.
    pub(crate) fn set_active(&mut self, active: bool) {
        self.set(active, self.attention);
    }

    /// Identity that INQUIRY reports.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// The number that tells devices of the same kind apart.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    /// The serial number as descriptors and VPD page 80h have it.
    pub(crate) fn serial_text(&self) -> String {
        format!("{:016X}", self.serial)
    }

    /// The locally assigned name of a unit (NAA 3): 52 bits of the serial number, 8 of the unit's.
    pub(crate) fn naa(&self, lun: u8) -> u64 {
        3 << 60 | self.serial << 12 >> 4 | u64::from(lun)
    }

    /// Every unit reports UNIT ATTENTION.
    pub(crate) fn attention_after_reset(&mut self) {
        self.set(self.active, u8::MAX);
    }

    /// A unit reports UNIT ATTENTION.
    pub(crate) fn attention(&mut self, lun: u8) {
        if lun < 8 {
            self.set(self.active, self.attention | 1 << lun);
        }
    }

    /// Takes the UNIT ATTENTION of a unit, if there is one.
    pub(crate) fn take_attention(&mut self, lun: u8) -> bool {
        let is_pending = self.attention >> lun & 1 == 1;
        if is_pending {
            self.set(self.active, self.attention & !(1 << lun));
        }
        is_pending
    }

    fn set(&mut self, active: bool, attention: u8) {
        (self.active, self.attention) = (active, attention);
        self.direct = if active { !(attention | self.checks_first) } else { 0 };
    }
}
