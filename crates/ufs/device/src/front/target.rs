// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the SCSI target: which units accept commands, and the state of the query manager. It knows no command.

use super::query_state::QueryState;
use crate::config::DeviceConfig;
use readpath_proto::scsi::Identity;

pub(crate) struct Target {
    /// Units that have to report UNIT ATTENTION after a reset, one bit each.
    attention: u8,
    active: bool,
    /// Units whose reads are looked at first, one bit each: by the engine that checks entries, or for zones.
    checks_first: u8,
    /// Units whose reads begin without a check, one bit each; derived from the three fields above.
    direct: u8,
    identity: Identity,
    /// What a host has set by queries.
    pub query: QueryState,
}

impl Target {
    /// A target that is active, as after power-on.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let engine_checks = config.hpb.as_ref().is_some_and(|hpb| hpb.entries.engine_checks());
        let zoned = config.lus.iter().zip(0..).map(|(lu, lun)| u8::from(lu.zones.is_some()) << lun);
        let checks_first = if engine_checks { u8::MAX } else { zoned.sum() };
        Target {
            attention: 0,
            active: true,
            checks_first,
            direct: !checks_first,
            identity: Identity::new("READPATH", &config.product_name, "0001"),
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
