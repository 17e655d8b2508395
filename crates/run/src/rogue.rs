// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that is not honest: it speaks to a device without a driver, keeps every entry that it ever got, sends any
//! command, and knows what an ordinary READ of each block would return. It does not know the attacks that use it.

use readpath_device::{
    ConfigError, Control, Delays, DeviceConfig, DeviceStats, EntryConfig, FtlConfig, Hpb2Config, HpbConfig, Layout,
    LuConfig, MOST_ENTRIES, MediaOp, NoSpace, UfsDevice, Verification, WithMedia,
};
use readpath_flash::{Geometry, Lean};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::scsi;
use readpath_proto::typed::{Cdb, Command, Form, HpbEntry, ReplyBody, Request, RequestBody, Status, SubRegion};

/// Blocks of each of the two units.
pub const BLOCKS: u32 = 2048;
/// Blocks of a sub-region, and sub-regions of a region.
const SUB_REGION: u32 = 64;
const PER_REGION: u32 = 4;
const TAG: u8 = 0;
/// The READ ID of every pre-request: there is never more than one.
const READ_ID: u8 = 1;

/// How entries reach the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// HPB READ of one block, HPB 1.0.
    OneEntry,
    /// HPB READ of up to 255 blocks, whose entries came before it in HPB WRITE BUFFER 02h (HPB 2.0).
    PreRequest,
    /// HPB READ with its entries in an extra header segment.
    HeaderSegment,
}

impl Means {
    /// Entries of one read.
    pub fn most(self) -> usize {
        if self == Means::OneEntry { 1 } else { usize::from(MOST_ENTRIES) }
    }
}

/// What a slice holds: logical page plus one, and which write of it. Zero = nothing, or zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Content(u64);

impl Content {
    fn of(lpn: u32, version: u32) -> Content {
        Content(u64::from(lpn + 1) << 32 | u64::from(version))
    }
}

/// The small device that is attacked: two units with HPB, flash of which little is spare, and the times of `times`.
pub fn device(
    times: &DeviceConfig,
    entries: EntryConfig,
    means: Means,
    key: [u64; 2],
) -> Result<DeviceConfig, ConfigError> {
    let v2 = Hpb2Config {
        enabled: true,
        single_blocks: MOST_ENTRIES,
        pre_requests: 1,
        entries_in_ehs: means == Means::HeaderSegment,
    };
    let lu =
        LuConfig { blocks: BLOCKS, hpb: true, max_active_regions: 16, pinned_start: 0, pinned_regions: 0, zones: None };
    let mut config = DeviceConfig {
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes: 1,
            blocks_per_plane: 32,
            pages_per_block: 16,
            page_bytes: 16_384,
        },
        map_cache_bytes: 2 * 4096,
        map_page_bytes: 4096,
        map_runs_bytes: 0,
        map_read_ahead: 0,
        write_buffer_blocks: 64,
        lus: vec![lu; 2],
        ftl: FtlConfig { map_changes: 1024, ..FtlConfig::DEFAULT },
        slc: None,
        slc_cache: None,
        hpb: Some(HpbConfig {
            control: Control::Device,
            region_size: 11,
            sub_region_size: 9,
            max_active_regions: 16,
            activate_after: 255,
            refresh_after: 255,
            replace_after: 255,
            repeat_after: Ns::from_secs(1),
            freshness_chunk_entries: 1,
            read_buffers: 1,
            verification: Verification::On,
            entries,
            v2: (means != Means::OneEntry).then_some(v2),
            prototype: None,
        }),
        entry_key: key,
        ..times.clone()
    };
    // As few superblocks as possible, so that writes make garbage collection move other blocks.
    while let Err(e) = config.check() {
        if e.field != "geometry.blocks_per_plane" || config.geometry.blocks_per_plane > 1000 {
            return Err(e);
        }
        config.geometry.blocks_per_plane += 1;
    }
    config.geometry.blocks_per_plane += 4;
    Ok(config)
}

/// What became of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Got {
    /// Blocks that were read from where an entry said.
    pub believed: u64,
    /// Blocks whose data is not what an ordinary READ would have returned.
    pub leaked: u64,
}

/// A dishonest host and its device.
pub struct Rogue {
    device: UfsDevice<Lean, WithMedia, ()>,
    now: Ns,
    slices: Vec<Content>,
    buffer: Vec<Content>,
    /// What ordinary READs return.
    truth: Vec<Content>,
    /// Writes so far.
    versions: u32,
    /// The data of the command under way.
    moving: Vec<Content>,
}

impl Rogue {
    /// A host and a device whose blocks all lie in random order in flash.
    pub fn new(config: &DeviceConfig, seed: u64) -> Result<Rogue, ConfigError> {
        let mut device: UfsDevice<Lean, WithMedia, ()> = UfsDevice::new(config, Delays::default(), ())?;
        let mut slices = vec![Content::default(); device.array_slices() as usize];
        let mut truth = vec![Content::default(); config.logical_blocks() as usize];
        for lun in 0..config.lus.len() as u8 {
            let preset = |lpn: u32, ppn: readpath_flash::Ppn| {
                slices[ppn.0 as usize] = Content::of(lpn, 0);
                truth[lpn as usize] = Content::of(lpn, 0);
            };
            device.precondition([(lun, 0, BLOCKS)], Layout::Random, seed, preset).map_err(|NoSpace| ConfigError {
                field: "geometry.blocks_per_plane",
                lun: None,
                says_value: false,
                message: "is too few".into(),
            })?;
        }
        let buffer = vec![Content::default(); device.buffer_slots()];
        Ok(Rogue { device, now: Ns::ZERO, slices, buffer, truth, versions: 0, moving: Vec::new() })
    }

    /// What the device has counted.
    pub fn stats(&self) -> &DeviceStats {
        self.device.stats()
    }

    /// Virtual time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Slices of the flash array, which is what an entry can name.
    pub fn slices(&self) -> u32 {
        self.device.array_slices()
    }

    /// Slices of a page of flash, which are read together.
    pub fn page_slices(&self) -> u32 {
        self.device.config().geometry.page_bytes / BLOCK_BYTES
    }

    /// The entries of every block of every unit, in order, as they are now.
    pub fn load(&mut self) -> Vec<HpbEntry> {
        let mut all = Vec::with_capacity(self.truth.len());
        for lun in 0..2 {
            for first in (0..BLOCKS).step_by(SUB_REGION as usize) {
                let sub = first / SUB_REGION;
                let at = SubRegion { region: (sub / PER_REGION) as u16, index: (sub % PER_REGION) as u16 };
                let alloc = SUB_REGION * HpbEntry::BYTES as u32;
                self.ask(lun, Cdb::HpbReadBuffer { buffer_id: 1, at, alloc }, alloc, &[]);
                let (entries, _) = self.device.data_in(TAG).as_chunks::<{ HpbEntry::BYTES }>();
                all.extend(entries.iter().map(|bytes| HpbEntry(*bytes)));
            }
        }
        all
    }

    /// Writes a block, by its number across units.
    pub fn write(&mut self, lpn: u32) {
        self.versions += 1;
        let content = Content::of(lpn, self.versions);
        self.moving = vec![content];
        let (lun, lba) = place(lpn);
        self.ask(lun, Cdb::Write { form: Form::Ten, lba: u64::from(lba), blocks: 1, flags: 0 }, BLOCK_BYTES, &[]);
        self.truth[lpn as usize] = content;
    }

    /// Discards a block.
    pub fn trim(&mut self, lpn: u32) {
        let (lun, lba) = place(lpn);
        let mut list = Vec::new();
        scsi::encode_unmap(&[(u64::from(lba), 1)], &mut list);
        let cdb = Cdb::Unmap { list_bytes: list.len() as u16 };
        self.ask(lun, cdb, list.len() as u32, &list);
        self.truth[lpn as usize] = Content::default();
    }

    /// Has everything written to flash.
    pub fn flush(&mut self) {
        let cdb = Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false };
        self.ask(0, cdb, 0, &[]);
    }

    /// HPB READ of as many blocks as there are entries, of one unit, from `first` on, by its number across units. Each
    /// entry is that of its block, but with [`Means::OneEntry`] only the first is sent; the device has to know the
    /// others, and for more than one block one of them.
    pub fn read(&mut self, first: u32, entries: &[HpbEntry], means: Means) -> Got {
        let hits = self.device.stats().hpb_hits;
        let (lun, lba) = place(first);
        let blocks = entries.len() as u32;
        let list: Vec<u8> =
            if means == Means::OneEntry { Vec::new() } else { entries.iter().flat_map(|e| e.0).collect() };
        if means == Means::PreRequest {
            let cdb = Cdb::HpbPreRequest { lba, read_id: READ_ID, list_bytes: list.len() as u16 };
            self.ask(lun, cdb, list.len() as u32, &list);
        }
        self.moving.clear();
        self.moving.resize(entries.len(), Content(u64::MAX));
        match means {
            Means::OneEntry => {
                self.device.submit_read(self.now, lun, TAG, lba, blocks, Some(entries[0]));
                self.wait();
            }
            _ => {
                let (read_id, in_header) = if means == Means::PreRequest { (READ_ID, &[][..]) } else { (0, &list[..]) };
                let cdb = Cdb::HpbRead { lba, blocks: blocks as u8, entry: entries[0], flags: 0, read_id };
                self.ask(lun, cdb, blocks * BLOCK_BYTES, in_header);
            }
        }
        let truth = &self.truth[first as usize..][..entries.len()];
        let leaked = self.moving.iter().zip(truth).filter(|(got, true_one)| got != true_one).count() as u64;
        Got { believed: self.device.stats().hpb_hits - hits, leaked }
    }

    fn ask(&mut self, lun: u8, cdb: Cdb, expected_bytes: u32, data_out: &[u8]) {
        let body = RequestBody::Command(Command { expected_bytes, cdb });
        self.device.submit(self.now, &Request { lun, tag: TAG, body }, data_out);
        self.wait();
    }

    /// Waits for the reply, which must be GOOD.
    fn wait(&mut self) {
        loop {
            self.now = self.device.advance_to_reply(Ns::NEVER);
            assert_ne!(self.now, Ns::NEVER, "every command has a reply");
            while let Some(op) = self.device.poll_media() {
                self.execute(op);
            }
            if self.device.take_reply(self.now) {
                let good = matches!(&self.device.reply().body, ReplyBody::Response(r) if r.status == Status::Good);
                assert!(good, "{:?}", self.device.reply());
                return;
            }
        }
    }

    fn execute(&mut self, op: MediaOp) {
        match op {
            MediaOp::Fill { slot, .. } => self.buffer[usize::from(slot)] = self.moving[0],
            MediaOp::Program { slot, ppn, .. } => self.slices[ppn.0 as usize] = self.buffer[usize::from(slot)],
            MediaOp::Move { from, to, .. } => self.slices[to.0 as usize] = self.slices[from.0 as usize],
            MediaOp::ReadFlash { index, ppn, .. } => self.moving[index as usize] = self.slices[ppn.0 as usize],
            MediaOp::ReadBuffer { index, slot, .. } => self.moving[index as usize] = self.buffer[usize::from(slot)],
            MediaOp::ReadZeros { index, .. } => self.moving[index as usize] = Content::default(),
            MediaOp::Programmed { .. } | MediaOp::Own => {}
            MediaOp::Erase { first, slices } | MediaOp::Torn { first, slices } => {
                self.slices[first.0 as usize..(first.0 + slices) as usize].fill(Content::default());
            }
        }
    }
}

/// Unit and block of a block's number across units.
fn place(lpn: u32) -> (u8, u32) {
    ((lpn / BLOCKS) as u8, lpn % BLOCKS)
}
