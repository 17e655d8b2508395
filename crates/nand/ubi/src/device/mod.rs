// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UBI device: volumes of logical erase blocks on raw flash. It keeps no thread and no clock: background work waits
//! until the caller does it step by step with [`Ubi::work`].

mod cache;
mod engine;
mod erase;
mod erased;
mod findings;
mod moves;
mod read;
mod volumes;
mod wear;
mod write;

use crate::attach::{self, Found, FoundTable, HowTo, Method};
use crate::error::UbiError;
use crate::headers::{LAYOUT_VOLUME, STATIC};
use crate::io::Io;
use crate::layout::Layout;
use crate::mtd::Mtd;
use crate::vtbl::{Table, VolumeRecord};

pub use cache::{Media, NoCache, OnePage, ReadCache};
pub use erase::Work;
pub use findings::Finding;
pub use volumes::NewVolume;
use wear::Wear;
pub use wear::{PROTECTION, PebState};

/// Where a logical block has no block of flash.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// How to attach a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Never write: what should be repaired stays as it is.
    pub read_only: bool,
    /// Accept volumes that reserve more blocks than the device has, as in images that are flashed to larger devices. Only
    /// with `read_only`.
    pub partial: bool,
    /// Where the VID header is, if not at UBI's default.
    pub vid_offset: Option<u32>,
    /// Use a fastmap if there is one.
    pub fastmap: bool,
    /// Image sequence number of an empty device, which is formatted unless `read_only`.
    pub image_seq_if_empty: u32,
    /// Difference of erase counters from which contents are moved to even out wear (`UBI_WL_THRESHOLD`).
    pub wear_threshold: u32,
    /// Blocks of 1024 that may go bad: so many are held in reserve (`max_beb_per1024`).
    pub bad_pebs_per_1024: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            read_only: false,
            partial: false,
            vid_offset: None,
            fastmap: true,
            image_seq_if_empty: 0,
            wear_threshold: 4096,
            bad_pebs_per_1024: 20,
        }
    }
}

impl Options {
    /// For looking into an image.
    pub fn image() -> Self {
        Options { read_only: true, partial: true, ..Options::default() }
    }

    fn bad_peb_limit(&self, pebs: u32) -> u32 {
        (u64::from(pebs) * u64::from(self.bad_pebs_per_1024)).div_ceil(1024) as u32
    }
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Identifier.
    pub id: u32,
    /// What the volume table says.
    pub record: VolumeRecord,
    /// Bytes of a logical block that can be used: those of a block without the padding of the alignment.
    pub leb_bytes: u32,
    /// Logical blocks with data; those that are reserved for dynamic volumes.
    pub used_lebs: u32,
    /// Bytes of data of the last of them.
    pub last_leb_bytes: u32,
    /// Static volumes: whether logical blocks are missing or their data are damaged.
    pub corrupted: bool,
    /// Block of flash of each logical block. Shorter than the volume if nothing beyond is mapped.
    pub(crate) eba: Vec<u32>,
    /// After an attach by fastmap: the logical blocks whose block of flash was looked at since. Those beyond the end were not.
    proven: Vec<bool>,
}

impl Volume {
    /// The name, as text.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.record.name).into_owned()
    }

    /// Bytes of data: of a static volume those that were written, of a dynamic one all it has.
    pub fn bytes(&self) -> u64 {
        match self.used_lebs {
            0 => 0,
            lebs => u64::from(lebs - 1) * u64::from(self.leb_bytes) + u64::from(self.last_leb_bytes),
        }
    }

    /// Logical blocks that are mapped.
    pub fn mapped(&self) -> u32 {
        self.eba.iter().filter(|&&peb| peb != UNMAPPED).count() as u32
    }

    /// The block of flash that holds a logical block. After an attach by fastmap it may have been erased since the fastmap
    /// was written; the first read or write of the logical block finds out.
    pub fn peb(&self, lnum: u32) -> Option<u32> {
        self.eba.get(lnum as usize).copied().filter(|&peb| peb != UNMAPPED)
    }
}

/// A UBI device on `M`, whose reads of logical blocks pass `C`.
#[derive(Debug)]
pub struct Ubi<M, C = NoCache> {
    pub(crate) io: Io<M>,
    /// The read cache.
    pub cache: C,
    /// By slot; the layout volume is the last one.
    volumes: Vec<Option<Volume>>,
    /// Where logical blocks are was told by a fastmap, which knows of no erase after it.
    by_fastmap: bool,
    found: Found,
    table: FoundTable,
    options: Options,
    wear: Wear,
    image_seq: u32,
    /// Highest sequence number so far.
    sqnum: u64,
    /// Why nothing may be written.
    read_only: Option<String>,
    /// Erase blocks that no volume has and that are not held in reserve.
    available: u32,
    /// Erase blocks that are held in reserve for others that go bad.
    bad_reserve: u32,
    moves: u64,
    recoveries: u64,
    /// Room for a logical block.
    buffer: Vec<u8>,
}

/// Erase blocks that are needed beside the volumes: one for moves, one for atomic changes (`WL_RESERVED_PEBS`,
/// `EBA_RESERVED_PEBS`), and the layout volume.
const OVERHEAD_PEBS: u32 = 1 + 1 + 2;

/// No device has written so many headers.
const LAST_SQNUM: u64 = 1 << 63;

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// Attaches `mtd`. Unless read-only, a device without contents is formatted, a fastmap is made invalid, damaged copies
    /// of the volume table are written again, and a volume that asks for it grows. What is to be erased is left to
    /// [`Ubi::work`].
    pub fn attach(mtd: M, cache: C, options: &Options) -> Result<Self, UbiError> {
        let layout = Layout::new(mtd.geometry(), options.vid_offset)?;
        if options.partial && !options.read_only {
            return Err(UbiError::Refused("an image of a part of a device can only be attached read-only".into()));
        }
        if layout.headers_share_subpage() && !options.read_only {
            let offset = layout.vid_offset;
            return Err(UbiError::Refused(format!(
                "the VID header, at {offset}, is in the sub-page of the EC header, which would have to be programmed twice: \
                 such a device can only be attached read-only"
            )));
        }
        let mut io = Io::new(mtd, layout);
        let how = HowTo { fastmap: options.fastmap, partial: options.partial };
        let (found, table) = attach::attach(&mut io, how)?;
        if found.max_sqnum >= LAST_SQNUM && !options.read_only {
            // No device lives to write so many: after the last one, old blocks would pass for new.
            return Err(UbiError::Refused(format!(
                "a VID header has the sequence number {}, beyond what is ever written: the device can only be attached read-only",
                found.max_sqnum
            )));
        }
        let volumes = volumes(&layout, &found, &table.table);
        let wear = Wear::new(io.pebs(), &found);
        let reserved: u64 = volumes.iter().flatten().map(|v| u64::from(v.record.reserved_pebs)).sum();
        let needed = reserved - 2 + u64::from(OVERHEAD_PEBS);
        let usable = wear.good - found.corrupted.len() as u32 - found.alien.len() as u32;
        if needed > u64::from(usable) && !options.read_only {
            return Err(UbiError::Refused(format!("{needed} PEBs are needed, but only {usable} can be used")));
        }
        let read_only = match (options.read_only, found.read_only) {
            (true, _) => Some("it was attached so".into()),
            (false, true) => Some("an internal volume that is not known asks for it".into()),
            (false, false) => None,
        };
        let image_seq = if found.is_empty { options.image_seq_if_empty } else { found.image_seq };
        let rewrite = table.rewrite;
        let mut ubi = Ubi {
            cache,
            volumes,
            by_fastmap: found.method != Method::Scan,
            options: *options,
            wear,
            image_seq,
            sqnum: found.max_sqnum,
            read_only,
            available: u64::from(usable).saturating_sub(needed) as u32,
            bad_reserve: 0,
            moves: 0,
            recoveries: 0,
            buffer: vec![0; if options.read_only { 0 } else { layout.leb_bytes as usize }],
            found,
            table,
            io,
        };
        ubi.fill_bad_reserve();
        if ubi.read_only.is_none() {
            ubi.end_fastmaps()?;
            ubi.repair(rewrite)?;
        }
        Ok(ubi)
    }

    fn check_writable(&self) -> Result<(), UbiError> {
        match &self.read_only {
            Some(why) => Err(UbiError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    fn next_sqnum(&mut self) -> u64 {
        self.sqnum += 1;
        self.sqnum
    }

    /// Changes where a logical block is; where it was before.
    fn map_to(&mut self, volume: u32, lnum: u32, peb: Option<u32>) -> Option<u32> {
        let eba = &mut self.volume_mut(volume).ok()?.eba;
        let lnum = lnum as usize;
        if eba.len() <= lnum {
            peb?;
            eba.resize(lnum + 1, UNMAPPED);
        }
        let old = std::mem::replace(&mut eba[lnum], peb.unwrap_or(UNMAPPED));
        (old != UNMAPPED).then_some(old)
    }

    fn volume_mut(&mut self, id: u32) -> Result<&mut Volume, UbiError> {
        let slot = if id == LAYOUT_VOLUME { self.volumes.len() - 1 } else { id as usize };
        let volume = self.volumes.get_mut(slot).and_then(Option::as_mut).filter(|v| v.id == id);
        volume.ok_or_else(|| UbiError::NoVolume(id.to_string()))
    }

    /// State of an erase block.
    pub fn peb_state(&self, peb: u32) -> PebState {
        self.wear.state(peb)
    }

    /// Erase blocks in a state.
    pub fn count(&self, state: PebState) -> u32 {
        self.wear.count(state)
    }

    /// Erase counter of a block.
    pub fn erase_counter(&self, peb: u32) -> u32 {
        self.wear.ec(peb)
    }

    /// Least and highest erase counter of good blocks.
    pub fn erase_counters(&self) -> (u32, u32) {
        self.wear.ec_range()
    }

    /// Erase blocks that new volumes may have.
    pub fn available_pebs(&self) -> u32 {
        self.available
    }

    /// Erase blocks that are held in reserve for others that go bad.
    pub fn bad_reserve(&self) -> u32 {
        self.bad_reserve
    }

    /// Logical blocks that were moved since the attach.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Logical blocks that were rescued after a failed write since the attach.
    pub fn recoveries(&self) -> u64 {
        self.recoveries
    }

    /// Where things are in an erase block.
    pub fn layout(&self) -> &Layout {
        &self.io.layout
    }

    /// The device below.
    pub fn mtd(&self) -> &M {
        &self.io.mtd
    }

    /// The device below, for its log or its faults. Writing to it behind UBI's back spoils both.
    pub fn mtd_mut(&mut self) -> &mut M {
        &mut self.io.mtd
    }

    /// Ends the use of the device, without any last words to it.
    pub fn into_mtd(self) -> M {
        self.io.mtd
    }

    /// What the attach found.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The volume table as it was found.
    pub fn found_table(&self) -> &FoundTable {
        &self.table
    }

    /// The volumes of the table, in order of their identifiers.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().flatten().filter(|v| v.id != LAYOUT_VOLUME)
    }

    /// A volume by identifier, the layout volume among them.
    pub fn volume(&self, id: u32) -> Result<&Volume, UbiError> {
        let slot = if id == LAYOUT_VOLUME { self.volumes.len() - 1 } else { id as usize };
        let volume = self.volumes.get(slot).and_then(Option::as_ref).filter(|v| v.id == id);
        volume.ok_or_else(|| UbiError::NoVolume(id.to_string()))
    }

    /// A volume by name.
    pub fn volume_by_name(&self, name: &str) -> Result<&Volume, UbiError> {
        let volume = self.volumes().find(|v| v.record.name == name.as_bytes());
        volume.ok_or_else(|| UbiError::NoVolume(format!("named \"{name}\"")))
    }
}

fn volumes(layout: &Layout, found: &Found, table: &Table) -> Vec<Option<Volume>> {
    let layout_record = VolumeRecord {
        reserved_pebs: 2,
        alignment: 1,
        data_pad: 0,
        vol_type: 1,
        update_marker: false,
        name: b"layout volume".to_vec(),
        flags: 0,
    };
    let records = (0..).zip(table.iter().cloned()).map(|(id, record)| Some((id, record?)));
    records
        .chain([Some((LAYOUT_VOLUME, layout_record))])
        .map(|one| one.map(|(id, r)| volume(layout, found, id, r)))
        .collect()
}

fn volume(layout: &Layout, found: &Found, id: u32, record: VolumeRecord) -> Volume {
    let leb_bytes = layout.leb_bytes - record.data_pad;
    let mut volume = Volume {
        id,
        leb_bytes,
        used_lebs: record.reserved_pebs,
        last_leb_bytes: leb_bytes,
        corrupted: false,
        eba: Vec::new(),
        proven: Vec::new(),
        record,
    };
    let blocks = found.volumes.get(&id);
    if volume.record.vol_type == STATIC {
        // Without any block it cannot be told whether the volume is empty or lost.
        volume.used_lebs = blocks.map_or(0, |b| b.used_lebs);
        volume.last_leb_bytes = blocks.map_or(0, |b| b.last_data_bytes);
        volume.corrupted = blocks.is_some_and(|b| b.lebs.len() as u32 != b.used_lebs);
    }
    if let Some(blocks) = blocks.filter(|b| !b.lebs.is_empty()) {
        volume.eba = vec![UNMAPPED; blocks.highest_lnum() as usize + 1];
        for (&lnum, leb) in &blocks.lebs {
            volume.eba[lnum as usize] = leb.peb;
        }
    }
    volume
}

/// Bytes of data without the pages of 0xFF at their end, whole pages.
pub(crate) fn data_len(data: &[u8], page_bytes: u32) -> u32 {
    let used = data.iter().rposition(|&b| b != 0xFF).map_or(0, |last| last + 1);
    (used as u32).next_multiple_of(page_bytes)
}
