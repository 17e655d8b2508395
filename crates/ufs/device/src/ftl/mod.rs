// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation: the map and where it lies, what of it SRAM knows better, the cache of map pages, the write
//! buffer, superblocks and their collection, the journal, checkpoints and recovery.
//!
//! It works with the firmware core and the array ([`crate::back::Hardware`]) that it is handed, and knows nothing of
//! SCSI, HPB or host memory. What concerns those above it waits in a line of [`Effect`]s, which its caller empties
//! after every call.
//!
//! *What may be known.* Inside, the map is kept as it will be found: who moves a block notes so at once. Outside, it
//! can be asked for two things only: what SRAM knows ([`Ftl::known`]), and what a map page says that was paid for
//! ([`Ftl::translate`]).

mod background;
mod booster;
pub(crate) mod booster_config;
mod booster_state;
mod buffer;
pub(crate) mod bytes;
mod collect;
pub(crate) mod config;
mod consistency;
mod durable;
mod journal;
pub(crate) mod map;
mod meta;
mod power_cut;
mod precondition;
mod pump;
mod recovered;
mod recovery;
mod recovery_time;
mod relocate;
pub(crate) mod space;
mod spare_refs;
mod stalls;
#[cfg(test)]
mod tests;
mod trims;
mod waiting;
mod writes;

pub use booster_config::WriteBoosterConfig;
pub(crate) use booster_state::BoosterFlags;
pub use config::{FaultConfig, FtlConfig, Without};
pub(crate) use map::{FrameState, InReadBuffer, Mapping, Paid};
pub use precondition::Layout;
pub use recovery_time::Recovery;
pub use space::{ANCHORS, NoSpace, State, Stream, Superblock, VictimPolicy, Wear};
pub use stalls::Stall;
pub(crate) use waiting::{Effect, Incoming};

use crate::SramTable;
use crate::back::{Hardware, Op};
use crate::config::{CellMode, DeviceConfig};
use crate::host_map::Held;
use crate::ids::{Lpn, MapPage, Mark, TagRef};
use booster_state::Booster;
use buffer::WriteBuffer;
use bytes::Told;
use collect::Collector;
use durable::{Checkpoint, Durable, Record};
use journal::Journal;
use map::Map;
use meta::{Checkpoints, Meta, Numbers};
use readpath_flash::{Geometry, OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use space::Space;
use stalls::StallClock;
use std::collections::VecDeque;
use std::sync::Arc;
use waiting::Unmap;

/// HPB generations that may be given out before the journal has to name more.
const FIRST_GENERATIONS: u64 = 1 << 20;

/// See the module.
pub(crate) struct Ftl {
    config: Arc<DeviceConfig>,
    geometry: Geometry,
    settings: FtlConfig,
    logical_blocks: u32,
    map: Map,
    buffer: WriteBuffer,
    waiting_writes: VecDeque<Incoming>,
    waiting_trims: VecDeque<Unmap>,
    /// Lists of ranges to be used again.
    unused_ranges: Vec<Vec<(Lpn, u32)>>,
    /// Recovery has found more changes than their table holds, and they lie in the SRAM of the write buffer. It is free
    /// again when they have been written back and a checkpoint says so: otherwise one power cut after the other would
    /// add to them.
    buffer_is_lent: bool,
    space: Space,
    journal: Journal,
    /// The record that has to be in flash before the open superblock of each stream is written.
    announced: [Mark; Stream::COUNT],
    /// Who waits for a record of the journal.
    journal_waiters: Vec<(TagRef, Mark)>,
    meta: Meta,
    checkpoint: Checkpoints,
    collector: Collector,
    durable: Durable,
    /// Number of the newest write or trim, and how far numbers go.
    sequence: u32,
    numbers: Numbers,
    /// Openings of superblocks and map pages put together.
    ticks: u32,
    /// Logical pages written not long ago, plus one, by hash.
    written_recently: Vec<u32>,
    /// When to see whether the host is idle, and since when it was known to be.
    background: Ns,
    may_work_when_idle: bool,
    idle_from: Ns,
    booster: Booster,
    /// The device gives out HPB entries, each hand-out under a generation of its own.
    gives_out_entries: bool,
    /// Generations up to these have been named in the journal, and are in flash there.
    generations_named: u64,
    generations_durable: u64,
    generations_mark: Mark,
    stalls: StallClock,
    /// What the write buffer waited for when it was looked at last.
    waits_for: Option<Stall>,
    effects: VecDeque<Effect>,
    /// Space was so short that all changes are being written back.
    settles_changes: bool,
    told: Told,
}

impl Ftl {
    /// Fresh from the factory: nothing is mapped, everything but the map's superblocks is erased.
    pub(crate) fn new(config: Arc<DeviceConfig>) -> Self {
        let g = config.geometry;
        let map = Map::new(&config);
        let settings = config.ftl;
        let mut space = Space::new(&config);
        space.open(Stream::Meta, 0).expect("the configuration leaves erased superblocks");
        let factory = Checkpoint {
            sequence: 0,
            oldest: 0,
            ticks: 0,
            generations: FIRST_GENERATIONS,
            journal: 0,
            directory: vec![None; map.pages() as usize],
            superblocks: space.snapshot(),
            changes: Some(Vec::new()),
            used: 0,
            trims: Vec::new(),
            slots: 1,
            places: Vec::new(),
        };
        Ftl {
            geometry: g,
            settings,
            logical_blocks: config.logical_blocks() as u32,
            buffer: WriteBuffer::new(config.write_buffer_blocks),
            waiting_writes: VecDeque::new(),
            waiting_trims: VecDeque::new(),
            unused_ranges: Vec::new(),
            buffer_is_lent: false,
            space,
            journal: Journal::default(),
            announced: [0; Stream::COUNT],
            journal_waiters: Vec::new(),
            meta: Meta::new(&config),
            checkpoint: Checkpoints::new(),
            collector: Collector::new(map.pages(), &config),
            durable: Durable::new(factory),
            sequence: 0,
            numbers: Numbers::ALL,
            ticks: 0,
            written_recently: vec![0; settings.hot_table_entries as usize],
            background: Ns::NEVER,
            may_work_when_idle: true,
            idle_from: Ns::ZERO,
            booster: Booster::default(),
            gives_out_entries: config.standard_hpb().is_some_and(|_| config.lus.iter().any(|lu| lu.hpb)),
            generations_named: FIRST_GENERATIONS,
            generations_durable: FIRST_GENERATIONS,
            generations_mark: 0,
            stalls: StallClock::default(),
            waits_for: None,
            effects: VecDeque::with_capacity(256),
            settles_changes: false,
            told: Told::default(),
            map,
            config,
        }
    }

    /// Takes the next thing that those above have to know.
    #[inline(always)]
    pub(crate) fn take_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When to see whether the host is idle.
    pub(crate) fn background(&self) -> Ns {
        self.background
    }

    /// What SRAM knows of a block: the write buffer's index or the table of changes. `None` if only its map page knows.
    #[inline(always)]
    pub(crate) fn known(&self, lpn: Lpn) -> Option<Mapping> {
        self.map.known(lpn)
    }

    /// Where a block is, whose map page has been paid for.
    #[inline(always)]
    pub(crate) fn translate(&self, paid: Paid, lpn: Lpn) -> Mapping {
        self.map.translate(paid, lpn)
    }

    /// What the map page of a block says as far as flash is concerned, whatever the write buffer holds.
    #[inline]
    pub(crate) fn translate_in_flash(&self, paid: Paid, lpn: Lpn) -> Mapping {
        self.map.translate_in_flash(paid, lpn)
    }

    /// Looks a map page up for a translation.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, page: MapPage) -> FrameState {
        self.map.look_up(page)
    }

    /// A map page that does not exist, which the directory says: nothing in it is mapped.
    #[inline(always)]
    pub(crate) fn missing(&self, page: MapPage) -> Option<Paid> {
        self.map.missing(page)
    }

    /// An operation waits for a map page, whose load begins unless it is under way.
    pub(crate) fn wait_for_map(&mut self, now: Ns, id: OpId, page: MapPage, state: FrameState, hw: &mut impl Hardware) {
        self.map.wait_for(now, id, page, state, hw);
    }

    /// The load `op` has ended: its map page is in SRAM.
    pub(crate) fn map_page_loaded(&mut self, op: &Op) -> Paid {
        self.map.loaded(op)
    }

    /// Takes the operations that wait for the page in `frame`: the first of a chain, in order of arrival.
    pub(crate) fn take_waiters(&mut self, frame: u32, hw: &mut impl Hardware) -> OpId {
        self.map.take_waiters(frame, hw)
    }

    /// Reads whose map page found every frame taken by a load.
    pub(crate) fn stalled(&self) -> usize {
        self.map.stalled()
    }

    /// Takes the first of them.
    pub(crate) fn next_stalled(&mut self) -> Option<OpId> {
        self.map.next_stalled()
    }

    /// A map page is read into the buffer of the HPB READ BUFFER `tag`, unless SRAM holds it or there is none. Returns
    /// whether a read begins.
    pub(crate) fn load_to_buffer(&self, now: Ns, page: MapPage, tag: TagRef, hw: &mut impl Hardware) -> bool {
        self.map.load_to_buffer(now, page, tag, hw)
    }

    /// Where a block is whose map page is in the buffer of an HPB READ BUFFER.
    pub(crate) fn translate_in_buffer(&self, buffer: InReadBuffer, lpn: Lpn) -> Mapping {
        self.map.translate(self.map.in_read_buffer(buffer, lpn), lpn)
    }

    /// Where a block is whose map page was fetched from its copy in host memory.
    pub(crate) fn translate_fetched(&self, copy: Held, lpn: Lpn) -> Mapping {
        self.map.translate(self.map.fetched(copy, lpn), lpn)
    }

    /// The map page of a block.
    #[inline(always)]
    pub(crate) fn page_of(&self, lpn: Lpn) -> MapPage {
        self.map.page_of(lpn)
    }

    /// Entries of a map page.
    #[inline(always)]
    pub(crate) fn page_entries(&self) -> u32 {
        self.map.page_entries()
    }

    /// Brings near what the translation of a block will touch.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        self.map.prefetch(lpn);
    }

    /// Slices from `ppn` to the end of its page.
    #[inline(always)]
    pub(crate) fn slices_to_page_end(&self, ppn: Ppn) -> u32 {
        self.geometry.slices_to_page_end(ppn)
    }

    /// The logical page that the spare area of a slice names. Who asks has read that.
    pub(crate) fn spare_area(&self, ppn: Ppn) -> Option<Lpn> {
        self.space.spares().lpn(ppn)
    }

    /// How the superblock of a slice is written.
    pub(crate) fn mode_of(&self, ppn: Ppn) -> CellMode {
        self.space.mode_of(ppn)
    }

    /// Whether somebody waits for records of the journal that are not on their way.
    pub(crate) fn must_write_journal(&self) -> bool {
        self.journal.must_write()
    }

    /// After a recovery: generations up to this one may have been given out.
    pub(crate) fn generations_durable(&self) -> u64 {
        self.generations_durable
    }

    /// Programs may fail from now on.
    pub(crate) fn expect_failing_programs(&mut self) {
        self.space.expect_failing_programs();
    }

    /// How worn the superblocks are, over the device's life.
    pub(crate) fn wear(&self) -> Wear {
        self.space.wear()
    }

    /// Slots of the write buffer.
    pub(crate) fn buffer_slots(&self) -> usize {
        self.buffer.capacity()
    }

    /// Blocks that flash holds, for tests of conservation.
    pub(crate) fn valid_slices(&self) -> u64 {
        let in_flash = |&lpn: &Lpn| self.map.flash_entry(lpn).mapping().flash().is_some();
        Lpn(0).run(self.logical_blocks).filter(in_flash).count() as u64
    }

    /// Superblocks that are retired, and bad blocks.
    pub(crate) fn given_up(&self) -> (u32, u32) {
        self.space.given_up()
    }

    /// Whether a block was written and not trimmed since.
    pub(crate) fn holds_data(&self, lpn: Lpn) -> bool {
        self.map.get(lpn) != Mapping::Unmapped
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub(crate) fn process_bytes(&self) -> u64 {
        self.map.process_bytes() + self.space.spares().process_bytes()
    }

    /// Frames of the map cache.
    pub(crate) fn map_cache_frames(&self) -> u32 {
        self.map.cache_frames()
    }

    /// SRAM of the modelled device beside the map cache, by table: what it is and its bytes.
    pub(crate) fn sram(&self) -> Vec<(SramTable, u64)> {
        let settings = &self.settings;
        let slices = u64::from(self.geometry.slices_per_superblock());
        vec![
            (SramTable::MapDirectory, self.map.directory_bytes()),
            // Logical page and state of each slot.
            (SramTable::WriteBufferIndex, self.buffer.capacity() as u64 * 8),
            (SramTable::Superblocks, u64::from(self.geometry.superblocks()) * Superblock::SRAM_BYTES),
            (SramTable::WriteBuffer, self.buffer.capacity() as u64 * u64::from(BLOCK_BYTES)),
            (SramTable::Changes, self.map.changes().sram_bytes()),
            (SramTable::Journal, Journal::MOST_TRIMS * u64::from(Record::BYTES)),
            // Each with the moment when the one that it replaces was put together.
            (SramTable::MapWrites, u64::from(settings.map_write_pages) * u64::from(self.config.map_page_bytes + 4)),
            (SramTable::MoveBuffer, u64::from(settings.move_buffer_blocks) * u64::from(BLOCK_BYTES)),
            // Logical page of each slice of the superblocks that are emptied, and whether it is current.
            (SramTable::SlicesToMove, u64::from(settings.collect_together) * slices * 4),
            // Logical page of each slice of the superblocks of data that are being written.
            (
                SramTable::OpenSuperblocks,
                match settings.superblock_tables {
                    true => u64::from(3 + u32::from(settings.hot_table_entries > 0)) * slices * 4,
                    false => 0,
                },
            ),
            (SramTable::WrittenBlocks, u64::from(settings.hot_table_entries) * 4),
        ]
    }
}
