// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write order of units with zones: at most one command that moves a write pointer is in flight in a zone, and others
//! wait in their order. Linux comes to the same by locking zones (6.1, `blk_req_zone_write_trylock`) and by plugging
//! writes (6.12, `blk_zone_wplug_handle_write`). Reads and flushes pass. Where data lies is not known here.

use super::joins::JoinId;
use super::tags::{TagState, Use};
use super::{Driver, take_part};
use crate::block::{BlockDone, BlockOp, BlockRequest};
use readpath_proto::typed::Sense;
use std::collections::VecDeque;

/// Requests that wait for their zone, and whether a command of it is in flight.
#[derive(Default)]
struct Line {
    busy: bool,
    waiting: VecDeque<(BlockRequest, JoinId)>,
}

/// A unit with zones.
struct Zoned {
    lun: u8,
    /// Blocks from the start of a zone to that of the next.
    stride: u32,
    lines: Vec<Line>,
}

/// The zones of all units that have any.
#[derive(Default)]
pub(super) struct ZoneOrder {
    units: Vec<Zoned>,
    resets: u64,
}

impl ZoneOrder {
    fn unit(&self, lun: u8) -> Option<&Zoned> {
        self.units.iter().find(|unit| unit.lun == lun)
    }

    fn line(&mut self, lun: u8, block: u32) -> Option<&mut Line> {
        let unit = self.units.iter_mut().find(|unit| unit.lun == lun)?;
        unit.lines.get_mut((block / unit.stride) as usize)
    }

    /// The power was lost: nothing is in flight, and nothing waits.
    pub(super) fn clear(&mut self) {
        for line in self.units.iter_mut().flat_map(|unit| &mut unit.lines) {
            *line = Line::default();
        }
    }
}

impl Driver {
    /// Tells the host that unit `lun` of `blocks` blocks has zones whose starts are `stride` blocks apart, at least 1,
    /// as REPORT ZONES would. Before the probe.
    pub fn know_zones(&mut self, lun: u8, blocks: u32, stride: u32) {
        let lines = (0..blocks.div_ceil(stride)).map(|_| Line::default()).collect();
        self.zones.get_or_insert_default().units.push(Zoned { lun, stride, lines });
    }

    /// Zones that were reset.
    pub fn zone_resets(&self) -> u64 {
        self.zones.as_ref().map_or(0, |zones| zones.resets)
    }

    /// Whether a unit has zones.
    pub(super) fn has_zones(&self, lun: u8) -> bool {
        self.zones.as_ref().is_some_and(|zones| zones.unit(lun).is_some())
    }

    /// Whether a request moves a write pointer.
    pub(super) fn is_ordered(&self, part: &BlockRequest) -> bool {
        part.op.moves_pointer() && self.has_zones(part.lun)
    }

    /// Submits a request of a unit with zones, or one beyond the end of its unit.
    #[inline(never)]
    pub(super) fn submit_apart(&mut self, request: &BlockRequest) {
        let end = u64::from(request.block) + u64::from(request.blocks);
        if self.unit_blocks(request.lun).is_none_or(|blocks| end > u64::from(blocks)) {
            let error = Some(Sense::LBA_OUT_OF_RANGE);
            return self.done.push_back(BlockDone { cookie: request.cookie, tag: 0, error });
        }
        let most = u32::from(self.config.max_transfer_blocks);
        if !self.is_ordered(request) {
            return if request.blocks <= most {
                self.send_or_wait(*request, JoinId::NONE);
            } else {
                self.submit_large(request);
            };
        }
        let moves = request.op.moves_data() && request.blocks > most;
        let join = if moves { self.joins.begin(request.cookie, request.blocks.div_ceil(most)) } else { JoinId::NONE };
        if let Some(line) = self.zones.as_mut().and_then(|zones| zones.line(request.lun, request.block)) {
            line.waiting.push_back((*request, join));
            self.next_in_zone(request.lun, request.block);
        }
    }

    /// Sends the next command of the zone of a block, unless one is in flight.
    fn next_in_zone(&mut self, lun: u8, block: u32) {
        let most = u32::from(self.config.max_transfer_blocks);
        let Some(line) = self.zones.as_mut().and_then(|zones| zones.line(lun, block)) else { return };
        if line.busy {
            return;
        }
        let Some((part, join)) = take_part(&mut line.waiting, most) else { return };
        line.busy = true;
        match self.tags.take() {
            Some(tag) => self.send(tag, part, join, Use::Ordered),
            None => self.waiting.push_back((part, join)),
        }
    }

    /// A command has ended that was the only one of its zone.
    pub(super) fn zone_is_free(&mut self, state: &TagState, good: bool) {
        let Some(zones) = &mut self.zones else { return };
        zones.resets += u64::from(good && state.op == BlockOp::ResetZone);
        if let Some(line) = zones.line(state.lun, state.block) {
            line.busy = false;
            self.next_in_zone(state.lun, state.block);
        }
    }
}
