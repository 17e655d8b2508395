// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long recovery takes: each page that it reads passes the firmware, a die and its channel. Also an upper bound
//! of that time, which follows from the configuration.

use super::spare_refs;
use crate::config::{ANCHORS, CellMode, DeviceConfig};
use crate::ftl::space::Superblock;
use readpath_kit::{BLOCK_BYTES, Ns};

/// Streams that have one open superblock each, on any device.
const ONE_EACH: u32 = 6;

/// The work of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovery {
    /// When the device is ready.
    pub ready_at: Ns,
    /// Pages read to find the newest anchor.
    pub anchor_reads: u32,
    /// Pages of the checkpoint.
    pub checkpoint_reads: u32,
    /// Units programmed since the checkpoint whose spare areas or journal were read.
    pub units_read: u32,
    /// Units found erased or torn, at which the search for further units ended.
    pub end_reads: u32,
    /// Of those, torn.
    pub torn: u32,
    /// Map pages read to count references, because the changes of one did not fit into its spare area.
    pub map_page_reads: u32,
    /// Places of the table of changes that are in use after recovery.
    pub changes: u32,
}

impl Recovery {
    /// All pages read.
    pub fn reads(&self) -> u32 {
        self.anchor_reads + self.checkpoint_reads + self.units_read + self.end_reads + self.map_page_reads
    }
}

/// Kind of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// The spare areas of a unit in this mode.
    Spares(CellMode),
    /// A whole part of the meta stream, as long as a map page.
    Part,
    /// Spare areas or a part, as long as the longer of them.
    Either,
}

/// Pages read to find the newest anchor by bisection of its superblock.
pub(crate) fn anchor_reads(config: &DeviceConfig) -> u32 {
    ANCHORS + config.geometry.units_per_superblock().ilog2() + 1
}

/// The firmware, dies and channels during recovery: all reads are queued from the start, in order.
pub(crate) struct Readers<'a> {
    config: &'a DeviceConfig,
    /// Reads begin at this time: the earlier ones decided what is read next.
    now: Ns,
    firmware: Ns,
    dies: Vec<Ns>,
    channels: Vec<Ns>,
    end: Ns,
}

impl<'a> Readers<'a> {
    pub(crate) fn new(config: &'a DeviceConfig, now: Ns) -> Self {
        let g = &config.geometry;
        let (dies, channels) = (vec![now; g.dies() as usize], vec![now; g.channels as usize]);
        Readers { config, now, firmware: now, dies, channels, end: now }
    }

    pub(crate) fn read(&mut self, die: u32, what: What) {
        let t = &self.config.flash;
        let channel = &mut self.channels[self.config.geometry.channel_of(die) as usize];
        let die = &mut self.dies[die as usize];
        self.firmware = self.firmware.max(self.now) + self.config.firmware.flash_op;
        let (array, transfer) = match what {
            What::Spares(mode) => (self.config.cell_times(mode).read, self.config.spare_transfer()),
            What::Part => (t.map_read, t.map_transfer),
            What::Either => {
                let longest =
                    CellMode::ALL.iter().fold(t.map_read, |most, mode| most.max(self.config.cell_times(*mode).read));
                (longest, self.config.spare_transfer().max(t.map_transfer))
            }
        };
        *die = self.firmware.max(*die) + array;
        *channel = (*die).max(*channel) + transfer;
        self.end = self.end.max(*channel);
    }

    /// Reads from all dies in turn.
    pub(crate) fn read_all_dies(&mut self, count: u32, what: What) {
        let dies = self.config.geometry.dies();
        (0..count).for_each(|i| self.read(i % dies, what));
    }

    /// Reads anchors, each of which decides the next one read, and then the checkpoint.
    pub(crate) fn find_checkpoint(&mut self, recovery: &Recovery) {
        for _ in 0..recovery.anchor_reads {
            self.read(0, What::Part);
            self.now = self.end;
        }
        self.read_all_dies(recovery.checkpoint_reads, What::Part);
        self.now = self.end;
    }

    /// Waits for all reads: the next ones depend on them.
    pub(crate) fn wait(&mut self) {
        self.now = self.end;
    }

    /// When everything has been read.
    pub(crate) fn end(&self) -> Ns {
        self.end
    }
}

impl DeviceConfig {
    /// Superblocks that may be open for data, map and journal at the same time.
    fn most_open(&self) -> u32 {
        let zones = self.zone_blocks().count() as u32;
        ONE_EACH + if zones > 0 { 1 + zones } else { 0 }
    }

    /// Channel time of the spare areas of a unit.
    pub(crate) fn spare_transfer(&self) -> Ns {
        let bytes = u64::from(self.geometry.slices_per_unit() * spare_refs::SPARE_BYTES);
        Ns(self.flash.transfer_block.0 * bytes / u64::from(BLOCK_BYTES))
    }

    /// The most units that recovery may have to read behind a checkpoint: those after which the next one is due, and
    /// those programmed until its anchor is in flash. The latter are the units handed out when the checkpoint became
    /// due and, while a die programs each of its parts or the anchor, at most one unit of data on every other die, or
    /// in other modes as many more as their programs are faster.
    fn units_behind(&self, checkpoint_parts: u32) -> u32 {
        let unit = self.geometry.slices_per_unit();
        let handed_out = (self.write_buffer_blocks + self.ftl.move_buffer_blocks) / unit + self.geometry.dies();
        let parts = checkpoint_parts.div_ceil(unit * BLOCK_BYTES / self.map_page_bytes);
        let shortest = CellMode::ALL.map(|mode| self.cell_times(mode).program.0.max(1)).into_iter().min();
        let meanwhile = (self.flash.program.0.div_ceil(shortest.unwrap_or(1)) as u32).clamp(1, 64);
        // A table is written as soon as the last program of its superblock has ended, even if other programs have to
        // wait.
        let tables = 2 * self.table_units() * ONE_EACH;
        self.ftl.checkpoint_after_units + 2 * handed_out + tables + self.geometry.dies() * (parts + 1) * meanwhile
    }

    /// The most parts, each as long as a map page, of a checkpoint. The largest checkpoint follows a recovery, when
    /// every slice programmed since the checkpoint before may be a change.
    pub(crate) fn checkpoint_parts(&self) -> u32 {
        const TOO_MANY: u32 = 1 << 17;
        let fixed = u64::from(self.map_pages()) * 4
            + u64::from(self.geometry.superblocks()) * Superblock::SRAM_BYTES
            + self.zone_bytes();
        let parts_with = |changes: u64| ((fixed + changes * 8).div_ceil(u64::from(self.map_page_bytes))) as u32;
        let mut parts = parts_with(u64::from(self.ftl.map_changes));
        loop {
            // A longer checkpoint takes longer to write, and more is programmed meanwhile. This converges, unless
            // there are hundreds of dies in SLC mode: then no length is enough, and no superblock holds it.
            if parts > TOO_MANY {
                return parts;
            }
            let more = parts_with(u64::from(self.ftl.map_changes) + self.changes_behind(parts));
            if more <= parts {
                return parts;
            }
            parts = more;
        }
    }

    fn changes_behind(&self, checkpoint_parts: u32) -> u64 {
        u64::from(self.units_behind(checkpoint_parts)) * u64::from(self.geometry.slices_per_unit())
    }

    /// Changes that recovery may find beyond the capacity of the table of changes. They lie in the SRAM of the write
    /// buffer, which accepts no data until they are written back.
    pub(crate) fn surplus_changes(&self) -> u64 {
        self.changes_behind(self.checkpoint_parts())
    }

    /// The most that recovery reads after a power cut, and when it is then ready, counted from 0: the longest
    /// checkpoint, and the most units behind it.
    pub fn longest_recovery(&self) -> Recovery {
        let mut recovery = Recovery {
            anchor_reads: anchor_reads(self),
            checkpoint_reads: self.checkpoint_parts(),
            units_read: self.units_behind(self.checkpoint_parts()),
            map_page_reads: if spare_refs::always_fit(self) { 0 } else { self.map_pages() },
            changes: self.ftl.map_changes + self.surplus_changes() as u32,
            ..Recovery::default()
        };
        // A superblock in SLC mode has fewer units, so the same units may be spread over more superblocks.
        let units = CellMode::ALL.map(|mode| self.units_in(mode)).into_iter().filter(|units| *units > 0);
        let opened = recovery.units_read.div_ceil(units.min().unwrap_or(1)) + self.most_open();
        recovery.end_reads = (opened + self.most_open()) * self.geometry.dies();
        let mut readers = Readers::new(self, Ns::ZERO);
        readers.find_checkpoint(&recovery);
        // Each stream uses the dies in turn, so no die has more than one unit above its share.
        readers.read_all_dies(recovery.units_read + self.most_open() * self.geometry.dies(), What::Either);
        readers.read_all_dies(recovery.end_reads, What::Spares(CellMode::Full));
        readers.wait();
        // Map pages may lie anywhere; it takes longest if one die has them all.
        (0..recovery.map_page_reads).for_each(|_| readers.read(0, What::Part));
        recovery.ready_at = readers.end();
        recovery
    }
}
