// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's side of HPB: what hosts hold and which of it is still good ([`HpbUnit`], or [`Groups`] of the
//! prototype), the codec of entries, their generations, and recommendations.
//!
//! It is SRAM of the modelled device. It knows neither the map, nor flash, nor the requests that entries come with,
//! and no time but that of a read.

mod entry;
mod pre_requests;
pub(crate) mod prototype;
mod read_buffers;
mod recommend;
mod unit;

pub(crate) use entry::EntryCodec;
pub(crate) use unit::{HpbUnit, Verdict};

use crate::SramTable;
use crate::back::DeviceStats;
use crate::config::{DeviceConfig, EntryConfig, Hpb2Config, MOST_ENTRIES};
use crate::ids::{Lpn, TagRef};
use pre_requests::PreRequests;
use prototype::Groups;
use read_buffers::ReadBuffers;
use readpath_flash::Ppn;
use readpath_kit::Ns;
use readpath_proto::typed::{HpbEntry, HpbNotification, SubRegion};
use recommend::Recommendations;
use std::ops::Range;

/// Bits of the generation of an entry.
const GENERATION_BITS: u32 = 32;

/// The HPB of all units of a device.
enum Side {
    None,
    /// HPB of JESD220-3, by logical unit.
    Standard(Vec<Option<HpbUnit>>),
    /// Its prototype of 2017.
    Prototype(Box<Groups>),
}

pub(crate) struct Hpb {
    side: Side,
    /// First logical page of each unit.
    bases: Vec<Lpn>,
    codec: EntryCodec,
    /// The configured key.
    key: [u64; 2],
    v2: Option<Hpb2Config>,
    array_slices: u32,
    /// The newest generation handed out. The bits above its lowest [`Hpb::generation_bits`] number the keys.
    generations_used: u64,
    generation_bits: u32,
    recommendations: Recommendations,
    read_buffers: ReadBuffers,
    pre_requests: PreRequests,
    /// fHPBEn, which survives the loss of power; always on with HPB 1.0.
    enabled: bool,
    /// The host has asked for an HPB reset, so it knows HPB, or did before a loss of power: only then are
    /// recommendations worth making.
    in_use: bool,
    /// `in_use`, regardless of fHPBEn.
    is_known: bool,
    /// Reads of up to this many blocks count for recommendations: those for which an HPB READ could be sent.
    noted_blocks: u32,
}

impl Hpb {
    pub(crate) fn new(config: &DeviceConfig, bases: Vec<Lpn>) -> Self {
        let unit = |(lun, lu): (usize, &crate::config::LuConfig)| {
            let hpb = config.standard_hpb().filter(|_| lu.hpb)?;
            Some(HpbUnit::new(bases[lun].0, lu, hpb))
        };
        let side = match config.prototype() {
            Some(prototype) => {
                Side::Prototype(Box::new(Groups::new(prototype, config.lus.iter().map(|lu| (lu.blocks, lu.hpb)))))
            }
            None if config.hpb.is_some() => Side::Standard(config.lus.iter().enumerate().map(unit).collect()),
            None => Side::None,
        };
        let recommendations = Recommendations::new(config.lus.iter().position(|lu| lu.hpb).unwrap_or(0) as u8);
        let v2 = config.hpb.and_then(|hpb| hpb.v2);
        let codec =
            EntryCodec::new(config.entry_key).protecting(&config.hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries));
        Hpb {
            recommendations: match side {
                Side::Prototype(_) => recommendations.never_empty(),
                _ => recommendations,
            },
            side,
            bases,
            codec: if v2.is_some() { codec.with_runs() } else { codec },
            key: config.entry_key,
            v2,
            array_slices: config.geometry.slices(),
            generations_used: 0,
            generation_bits: GENERATION_BITS,
            read_buffers: ReadBuffers::new(config.hpb.map_or(0, |hpb| hpb.read_buffers)),
            pre_requests: PreRequests::new(v2.map_or(0, |v2| v2.pre_requests)),
            enabled: v2.is_none_or(|v2| v2.enabled),
            in_use: false,
            is_known: false,
            noted_blocks: v2.map_or(1, |_| u32::from(MOST_ENTRIES)),
        }
    }

    /// JESD220-3 HPB of a unit, if it has it.
    #[inline(always)]
    pub(crate) fn standard(&self, lun: u8) -> Option<&HpbUnit> {
        match &self.side {
            Side::Standard(units) => units.get(usize::from(lun))?.as_ref(),
            _ => None,
        }
    }

    #[inline(always)]
    fn standard_mut(&mut self, lun: u8) -> Option<&mut HpbUnit> {
        match &mut self.side {
            Side::Standard(units) => units.get_mut(usize::from(lun))?.as_mut(),
            _ => None,
        }
    }

    /// The groups of a device that is a prototype.
    #[inline]
    pub(crate) fn prototype(&self) -> Option<&Groups> {
        match &self.side {
            Side::Prototype(groups) => Some(groups),
            _ => None,
        }
    }

    /// The groups of a device that is a prototype, to change.
    #[inline]
    pub(crate) fn prototype_mut(&mut self) -> Option<&mut Groups> {
        match &mut self.side {
            Side::Prototype(groups) => Some(groups),
            _ => None,
        }
    }

    /// Configuration of HPB 2.0, if the device has it.
    pub(crate) fn v2(&self) -> Option<&Hpb2Config> {
        self.v2.as_ref()
    }

    /// Entries that the host holds for these logical pages are stale.
    pub(crate) fn blocks_changed(&mut self, first: Lpn, blocks: u32) {
        match &mut self.side {
            Side::None => {}
            Side::Standard(units) => {
                for lpn in first.run(blocks) {
                    let lun = self.bases.partition_point(|&base| base <= lpn) - 1;
                    if let Some(unit) = &mut units[lun] {
                        unit.block_changed(lpn - self.bases[lun]);
                    }
                }
            }
            Side::Prototype(groups) => first.run(blocks).for_each(|lpn| groups.changed(lpn.0)),
        }
    }

    /// Judges the entry that came with an HPB READ of `block` to a unit that has HPB.
    #[inline(always)]
    pub(crate) fn judge(&self, unit: &HpbUnit, block: u32, entry: HpbEntry) -> Verdict {
        unit.verify(&self.codec, block, entry, self.array_slices)
    }

    /// The address of `block` according to `entry`, and how many of `blocks` blocks lie in a row from there.
    pub(crate) fn place(
        &self,
        unit: &HpbUnit,
        block: u32,
        entry: HpbEntry,
        blocks: u32,
    ) -> Result<(Ppn, u32), Verdict> {
        match self.judge(unit, block, entry) {
            Verdict::Good(ppn) => Ok((ppn, unit.run(&self.codec, block, entry, blocks))),
            bad => Err(bad),
        }
    }

    /// The slice that an entry names, verified or not, if it exists.
    pub(crate) fn named(&self, entry: HpbEntry) -> Option<Ppn> {
        Some(self.codec.address(entry)).filter(|ppn| ppn.0 < self.array_slices)
    }

    /// Whether `entry` was made for the logical page `lpn`, in the current hand-out or the one before. `None` if the
    /// page belongs to a unit without HPB.
    pub(crate) fn was_made_for(&self, lpn: Lpn, entry: HpbEntry) -> Option<bool> {
        let lun = self.bases.partition_point(|&base| base <= lpn) - 1;
        let unit = self.standard(lun as u8)?;
        Some(unit.made(&self.codec, lpn - self.bases[lun], entry))
    }

    /// Whether reads of `blocks` blocks are noted.
    #[inline(always)]
    pub(crate) fn notes(&self, blocks: u32) -> bool {
        blocks <= self.noted_blocks && self.in_use
    }

    /// Notes a read of `block`.
    #[inline(always)]
    pub(crate) fn note_read(&mut self, lun: u8, block: u32) {
        let Side::Standard(units) = &mut self.side else { return };
        if let Some(unit) = &mut units[usize::from(lun)] {
            unit.note_read(block);
        }
    }

    /// Notes a read of `block`, which is mapped, without a good entry. May queue a recommendation.
    pub(crate) fn note_miss(&mut self, now: Ns, lun: u8, block: u32) {
        let Side::Standard(units) = &mut self.side else { return };
        // HPB may have been disabled since the read arrived.
        let Some(unit) = units[usize::from(lun)].as_mut().filter(|_| self.in_use) else { return };
        if let Some(what) = unit.note_miss(now, block)
            && !self.recommendations.push(lun, what)
        {
            unit.not_recommended(what.activate);
        }
    }

    /// Whether the next response may carry a notification.
    #[inline(always)]
    pub(crate) fn has_nothing_to_tell(&self) -> bool {
        self.recommendations.is_empty()
    }

    /// The notification of the next GOOD response.
    pub(crate) fn next_notification(&mut self, stats: &mut DeviceStats) -> Option<HpbNotification> {
        let n = self.recommendations.take()?;
        stats.hpb_notifications += 1;
        stats.recommended_active += u64::from(n.active_count);
        stats.recommended_inactive += u64::from(n.inactive_count);
        stats.resets_announced += u64::from(n.operation == HpbNotification::RESET);
        Some(n)
    }

    /// A number for the next hand-out; 0 if there is none. `may_use` says whether a number is named in flash, where a
    /// power cut does not lose it: none is used twice under one key. After the last number the key is changed, and
    /// the host, whose entries are then invalid, is informed.
    pub(crate) fn next_generation(&mut self, may_use: impl FnOnce(u64) -> bool) -> u32 {
        // A host that loads entries has seen every reset announced before.
        self.recommendations.reset_seen();
        let mut next = self.generations_used + 1;
        next += u64::from(self.generation_of(next) == 0);
        if !self.enabled || !may_use(next) {
            return 0;
        }
        if self.set_generation(next) {
            self.reset();
            self.recommendations.announce_reset();
        }
        self.generation_of(next)
    }

    /// The generation of entries under the number `used`.
    fn generation_of(&self, used: u64) -> u32 {
        (used & ((1 << self.generation_bits) - 1)) as u32
    }

    /// Sets that generations up to `used` may have been handed out. Returns whether that changes the key.
    fn set_generation(&mut self, used: u64) -> bool {
        let key = used >> self.generation_bits;
        let changes = key != self.generations_used >> self.generation_bits;
        if changes {
            let [first, second] = self.key;
            self.codec = self.codec.with_key([first.wrapping_add(key), second]);
        }
        self.generations_used = used;
        changes
    }

    /// For tests: changes the key after 2^`bits` generations. None may have been handed out yet.
    pub(crate) fn limit_generations(&mut self, bits: u32) {
        assert!(self.generations_used == 0 && (1..=GENERATION_BITS).contains(&bits), "from the beginning");
        self.generation_bits = bits;
    }

    /// Appends the present entries of the first blocks of a sub-region to `out`, as many as fit into `alloc` bytes:
    /// under `generation`, or all zeros if it is 0. `place` gives the slice of a logical page.
    pub(crate) fn hand_out(
        &mut self,
        lun: u8,
        at: SubRegion,
        alloc: u32,
        generation: u32,
        place: impl Fn(Lpn) -> Option<Ppn>,
        out: &mut Vec<u8>,
    ) {
        let base = self.bases[usize::from(lun)];
        let unit = self.standard_mut(lun).expect("an HPB unit");
        let blocks = unit.blocks_of(at).expect("checked on arrival");
        let is_granted = generation != 0 && unit.hand_out(at, generation);
        let entries = (alloc as usize / HpbEntry::BYTES).min(blocks.len());
        out.clear();
        if is_granted {
            let place = |lpn| place(Lpn(lpn));
            self.codec.make_all((base + blocks.start).0, entries as u32, generation, place, out);
        } else {
            out.resize(entries * HpbEntry::BYTES, 0);
        }
    }

    /// The blocks of a sub-region, or group, of a unit, if it exists.
    pub(crate) fn blocks_of(&self, lun: u8, at: SubRegion) -> Option<Range<u32>> {
        match &self.side {
            Side::None => None,
            Side::Standard(_) => self.standard(lun)?.blocks_of(at),
            Side::Prototype(groups) => groups.blocks_of(lun, readpath_proto::groups::group_of(at)),
        }
    }

    /// The host no longer holds `region`, or any region. In device control mode the device ignores this advice. False
    /// if there is no such region.
    pub(crate) fn inactivate(&mut self, lun: u8, region: Option<u16>) -> bool {
        let unit = self.standard_mut(lun).expect("an HPB unit");
        let named = region.map_or(0..unit.regions(), |r| u32::from(r)..u32::from(r) + 1);
        if named.end > unit.regions() {
            return false;
        }
        if unit.is_host_control() {
            named.for_each(|region| unit.inactivate(region));
        }
        true
    }

    pub(crate) fn read_buffers(&mut self) -> &mut ReadBuffers {
        &mut self.read_buffers
    }

    /// Stores the entries that came ahead of their HPB READ.
    pub(crate) fn store_pre_request(&mut self, lun: u8, read_id: u8, lba: u32, entries: &[u8]) {
        self.pre_requests.store(lun, read_id, lba, entries);
    }

    /// Takes the entries stored for this HPB READ, if any.
    pub(crate) fn take_pre_request(&mut self, lun: u8, read_id: u8, lba: u32, blocks: u32, into: &mut Vec<u8>) -> bool {
        self.pre_requests.take(lun, read_id, lba, blocks, into)
    }

    /// fHPBEn.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Sets fHPBEn. Without it there are no recommendations, no entry is believed and none is handed out: HPB READ is
    /// served as READ, HPB READ BUFFER returns zeros.
    pub(crate) fn set_enabled(&mut self, on: bool) {
        self.enabled = on;
        self.in_use = on && self.is_known;
        if !on {
            self.reset();
        }
    }

    /// The host has asked for a reset, so it knows HPB.
    pub(crate) fn host_reset(&mut self) {
        self.is_known = true;
        self.in_use = self.enabled;
        self.reset();
    }

    /// The device was reset: the host is informed, if it uses HPB.
    pub(crate) fn hardware_reset(&mut self) {
        self.read_buffers.clear();
        self.reset();
        if self.in_use {
            self.recommendations.announce_reset();
        }
    }

    pub(crate) fn lose_power(&mut self) {
        self.read_buffers.clear();
        self.reset();
        (self.in_use, self.is_known) = (false, false);
    }

    /// The power is back; generations up to `used` may have been handed out. The host may have kept running, with old
    /// entries or without, or may not know HPB. Such a host ignores the notification.
    pub(crate) fn recover(&mut self, used: u64) {
        self.set_generation(used);
        let has_units = matches!(&self.side, Side::Standard(units) if units.iter().any(Option::is_some));
        if has_units {
            self.is_known = true;
            self.in_use = self.enabled;
            if self.enabled {
                self.recommendations.announce_reset();
            }
        }
    }

    /// Forgets what the host holds.
    fn reset(&mut self) {
        match &mut self.side {
            Side::None => {}
            Side::Standard(units) => units.iter_mut().flatten().for_each(HpbUnit::reset),
            Side::Prototype(groups) => groups.reset(),
        }
        self.pre_requests.clear();
        self.recommendations.clear();
    }

    /// Bytes of SRAM of the tables of all units.
    fn table_bytes(&self) -> u64 {
        match &self.side {
            Side::None => 0,
            Side::Standard(units) => units.iter().flatten().map(HpbUnit::sram_bytes).sum(),
            Side::Prototype(groups) => groups.sram_bytes(),
        }
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub(crate) fn process_bytes(&self) -> u64 {
        if matches!(self.side, Side::Standard(_)) { self.table_bytes() } else { 0 }
    }

    /// SRAM of the modelled device for its units: each table and its bytes. The read buffers take `read_buffers`
    /// bytes.
    pub(crate) fn sram(&self, read_buffers: u64) -> [(SramTable, u64); 3] {
        // The prototype recommends nothing.
        let line = if self.prototype().is_some() { 0 } else { Recommendations::CAPACITY as u64 * 4 };
        [
            (SramTable::Hpb, self.table_bytes()),
            (SramTable::Recommendations, line),
            (SramTable::HpbReadBuffers, read_buffers),
        ]
    }

    /// SRAM for entries of commands, of which `commands` may be in progress at the same time.
    pub(crate) fn sram_of_entries(&self, commands: u32) -> Vec<(SramTable, u64)> {
        let Some(v2) = self.v2 else { return Vec::new() };
        let kept = Hpb2Config::PRE_REQUEST_BYTES;
        vec![
            (SramTable::PreRequests, u64::from(v2.pre_requests) * kept),
            // Entries of a command are kept from its pre-request or header until its last block is translated.
            (SramTable::HpbReadEntries, u64::from(commands) * kept),
        ]
    }

    /// The next command that waits for a read buffer, if one is free.
    pub(crate) fn next_reader(&mut self) -> Option<TagRef> {
        self.read_buffers.next()
    }
}
