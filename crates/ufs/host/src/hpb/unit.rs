// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which HPB a logical unit has on the host, if any, and the operations that both kinds share.

use super::prototype::GroupLu;
use super::{HostMemory, HpbCounters, HpbLu, LuState, Port};
use readpath_kit::Ns;
use readpath_proto::groups::GroupNotice;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::{Cdb, HpbEntry, SubRegion};

/// A unit's HPB according to the device's descriptors.
#[derive(Clone, Debug)]
pub(crate) struct UnitSetup {
    /// Its regions and sub-regions.
    pub geometry: HpbGeometry,
    /// wLUMaxActiveHPBRegions.
    pub max_active: u32,
    /// Regions that are always active; they count as active.
    pub pinned: std::ops::Range<u32>,
    /// Blocks that one HPB READ may cover with the entry of the first.
    pub single_blocks: u8,
    /// Blocks that one HPB READ may cover.
    pub max_blocks: u8,
    /// bHPBControl = 00h: host control mode.
    pub host_control: bool,
    /// Commands that the unit accepts at the same time.
    pub queue_depth: u32,
}

#[expect(clippy::large_enum_variant, reason = "every read looks into it: a box would be one more step")]
pub(crate) enum UnitHpb {
    /// The unit has no HPB, or it is not used.
    None,
    /// HPB of JESD220-3.
    Standard(HpbLu),
    /// The prototype of 2017.
    Prototype(Box<GroupLu>),
}

impl UnitHpb {
    /// HPB of JESD220-3, if the unit has it.
    #[inline(always)]
    pub(crate) fn standard(&self) -> Option<&HpbLu> {
        if let UnitHpb::Standard(lu) = self { Some(lu) } else { None }
    }

    #[inline(always)]
    pub(crate) fn standard_mut(&mut self) -> Option<&mut HpbLu> {
        if let UnitHpb::Standard(lu) = self { Some(lu) } else { None }
    }

    pub(crate) fn suspend(&mut self) {
        match self {
            UnitHpb::None => {}
            UnitHpb::Standard(lu) => lu.suspend(),
            UnitHpb::Prototype(lu) => lu.set_asleep(true),
        }
    }

    pub(crate) fn resume(&mut self, now: Ns) {
        match self {
            UnitHpb::None => {}
            UnitHpb::Standard(lu) => lu.resume(now),
            UnitHpb::Prototype(lu) => lu.set_asleep(false),
        }
    }

    pub(crate) fn reset(&mut self) {
        match self {
            UnitHpb::None => {}
            UnitHpb::Standard(lu) => lu.reset(),
            UnitHpb::Prototype(lu) => lu.reset(),
        }
    }

    /// A load has ended, with its entries or (`None`) an error. Returns whether the worker may have work.
    pub(crate) fn loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) -> bool {
        match self {
            UnitHpb::None => return false,
            UnitHpb::Standard(lu) => lu.loaded(at, entries),
            UnitHpb::Prototype(lu) => lu.loaded(at, entries),
        }
        true
    }

    /// Lets the worker send its commands; returns whether it has to run again.
    pub(crate) fn run_worker(&mut self, now: Ns, port: &mut impl Port) -> bool {
        match self {
            UnitHpb::None => {}
            UnitHpb::Standard(lu) => lu.run_worker(now, port),
            UnitHpb::Prototype(lu) => lu.run_worker(port),
        }
        self.is_kicked()
    }

    pub(crate) fn is_kicked(&self) -> bool {
        match self {
            UnitHpb::None => false,
            UnitHpb::Standard(lu) => lu.is_kicked(),
            UnitHpb::Prototype(lu) => lu.is_kicked(),
        }
    }

    /// The command for a read with an `entry`.
    pub(crate) fn read_with(&self, block: u32, blocks: u32, entry: HpbEntry) -> Cdb {
        match self {
            UnitHpb::Prototype(_) => GroupLu::read_with(block, blocks, entry),
            _ => Cdb::HpbRead { lba: block, blocks: blocks as u8, entry, flags: 0, read_id: 0 },
        }
    }

    /// Handles the prototype's notice in a GOOD response. Returns the number of the update that it carries, if any.
    pub(crate) fn noticed(&mut self, notice: &GroupNotice) -> Option<u8> {
        if let UnitHpb::Prototype(lu) = self { lu.notified(notice) } else { None }
    }

    /// Notes that a response of any unit brought this update of the prototype.
    pub(crate) fn saw(&mut self, update: u8) {
        if let UnitHpb::Prototype(lu) = self {
            lu.saw(update);
        }
    }

    /// Counters so far, unless HPB was given up.
    pub(crate) fn counters(&self) -> Option<&HpbCounters> {
        match self {
            UnitHpb::None => None,
            UnitHpb::Standard(lu) => (lu.state() != LuState::Failed).then(|| lu.counters()),
            UnitHpb::Prototype(lu) => Some(lu.counters()),
        }
    }

    pub(crate) fn memory(&self) -> Option<HostMemory> {
        match self {
            UnitHpb::None => None,
            UnitHpb::Standard(lu) => Some(lu.memory()),
            UnitHpb::Prototype(lu) => Some(lu.memory()),
        }
    }
}
