// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UBI device for reading: volumes of logical erase blocks on raw flash. Nothing here writes. A writer, such as the
//! device of the tests, owns a [`Ubi`] and reports changes through [`Ubi::remap`] and [`Ubi::set_volume`].

mod erased;
mod findings;
mod read;

use crate::attach::{self, AttachInfo, FoundTable, Method, Options};
use crate::cache::{NoCache, ReadCache};
use crate::error::UbiError;
use crate::headers::{LAYOUT_VOLUME, STATIC};
use crate::io::Io;
use crate::layout::Layout;
use crate::mtd::Mtd;
use crate::vtbl::{Table, VolumeRecord};

pub use findings::Finding;

/// Stands for a logical block without a block of flash.
const UNMAPPED: u32 = u32::MAX;

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Identifier.
    pub id: u32,
    /// Its record in the volume table.
    pub record: VolumeRecord,
    /// Usable bytes of a logical block, without the padding of the alignment.
    pub leb_bytes: u32,
    /// Logical blocks with data; for dynamic volumes the reserved ones.
    pub used_lebs: u32,
    /// Bytes of data of the last of them.
    pub last_leb_bytes: u32,
    /// Static volumes: whether logical blocks are missing or their data is damaged.
    pub corrupted: bool,
    /// Block of flash of each logical block. Shorter than the volume if nothing beyond is mapped.
    eba: Vec<u32>,
    /// After an attach by fastmap: the logical blocks whose block of flash has been checked since; those beyond its
    /// end were not.
    proven: Vec<bool>,
}

impl Volume {
    /// A volume without contents.
    pub fn new(id: u32, record: VolumeRecord, layout: &Layout) -> Volume {
        let leb_bytes = layout.leb_bytes - record.data_pad;
        let (used_lebs, last_leb_bytes) =
            if record.vol_type == STATIC { (0, 0) } else { (record.reserved_pebs, leb_bytes) };
        let (eba, proven) = (Vec::new(), Vec::new());
        Volume { id, leb_bytes, used_lebs, last_leb_bytes, corrupted: false, eba, proven, record }
    }

    /// A volume with the blocks of flash that an attach found.
    fn found(id: u32, record: VolumeRecord, layout: &Layout, found: &AttachInfo) -> Volume {
        let mut volume = Volume::new(id, record, layout);
        let Some(blocks) = found.volumes.get(&id) else { return volume };
        if volume.record.vol_type == STATIC {
            // A volume without blocks may be empty or lost.
            volume.used_lebs = blocks.used_lebs;
            volume.last_leb_bytes = blocks.last_data_bytes;
            volume.corrupted = blocks.lebs.len() as u32 != blocks.used_lebs;
        }
        if !blocks.lebs.is_empty() {
            volume.eba = vec![UNMAPPED; blocks.highest_lnum() as usize + 1];
            for (&lnum, leb) in &blocks.lebs {
                volume.eba[lnum as usize] = leb.peb;
            }
        }
        volume
    }
    /// The name, as text.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.record.name).into_owned()
    }

    /// Bytes of data: of a static volume those that were written, of a dynamic one its capacity.
    pub fn bytes(&self) -> u64 {
        match self.used_lebs {
            0 => 0,
            lebs => u64::from(lebs - 1) * u64::from(self.leb_bytes) + u64::from(self.last_leb_bytes),
        }
    }

    /// Takes all blocks of flash out of the volume.
    pub fn take_pebs(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.eba).into_iter().filter(|&peb| peb != UNMAPPED).collect()
    }

    /// Logical blocks that are mapped, and the blocks of flash that hold them.
    pub fn pebs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).zip(self.eba.iter().copied()).filter(|&(_, peb)| peb != UNMAPPED)
    }

    /// How many logical blocks are mapped.
    pub fn mapped(&self) -> u32 {
        self.pebs().count() as u32
    }

    /// The block of flash of a logical block. After an attach by fastmap it may have been erased since the fastmap
    /// was written; the first read or write of the logical block checks that.
    pub fn peb(&self, lnum: u32) -> Option<u32> {
        self.eba.get(lnum as usize).copied().filter(|&peb| peb != UNMAPPED)
    }
}

/// A UBI device on `M`, whose reads of logical blocks pass `C`.
#[derive(Debug)]
pub struct Ubi<M, C = NoCache> {
    io: Io<M>,
    /// The read cache.
    pub cache: C,
    /// By slot; the layout volume is the last one.
    volumes: Vec<Option<Volume>>,
    /// Places of logical blocks come from a fastmap, which does not know of later erases.
    by_fastmap: bool,
    found: AttachInfo,
    table: FoundTable,
}

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// Attaches `mtd`. It is only read.
    pub fn attach(mtd: M, cache: C, options: &Options) -> Result<Self, UbiError> {
        let layout = Layout::new(mtd.geometry(), options.vid_offset)?;
        let mut io = Io::new(mtd, layout);
        let (found, table) = attach::attach(&mut io, options)?;
        let volumes = volumes(&layout, &found, &table.table);
        Ok(Ubi { cache, volumes, by_fastmap: found.method != Method::Scan, found, table, io })
    }

    /// Changes the place of a logical block; returns the old one.
    pub fn remap(&mut self, volume: u32, lnum: u32, peb: Option<u32>) -> Option<u32> {
        let eba = &mut self.volume_mut(volume).ok()?.eba;
        let lnum = lnum as usize;
        if eba.len() <= lnum {
            peb?;
            eba.resize(lnum + 1, UNMAPPED);
        }
        let old = std::mem::replace(&mut eba[lnum], peb.unwrap_or(UNMAPPED));
        (old != UNMAPPED).then_some(old)
    }

    /// Puts a volume, or none, into a slot of the table; returns the old one.
    pub fn set_volume(&mut self, id: u32, volume: Option<Volume>) -> Option<Volume> {
        std::mem::replace(&mut self.volumes[id as usize], volume)
    }

    /// A volume, to change.
    pub fn volume_mut(&mut self, id: u32) -> Result<&mut Volume, UbiError> {
        let slot = if id == LAYOUT_VOLUME { self.volumes.len() - 1 } else { id as usize };
        let volume = self.volumes.get_mut(slot).and_then(Option::as_mut).filter(|v| v.id == id);
        volume.ok_or_else(|| UbiError::NoVolume(id.to_string()))
    }

    /// Layout of an erase block.
    pub fn layout(&self) -> &Layout {
        &self.io.layout
    }

    /// The device below.
    pub fn mtd(&self) -> &M {
        &self.io.mtd
    }

    /// The device below, for its log.
    pub fn mtd_mut(&mut self) -> &mut M {
        &mut self.io.mtd
    }

    /// The device below and UBI's layout on it.
    pub fn io_mut(&mut self) -> &mut Io<M> {
        &mut self.io
    }

    /// Ends the use of the device.
    pub fn into_mtd(self) -> M {
        self.io.mtd
    }

    /// What the attach found.
    pub fn found(&self) -> &AttachInfo {
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

fn volumes(layout: &Layout, found: &AttachInfo, table: &Table) -> Vec<Option<Volume>> {
    let layout_record = VolumeRecord::dynamic("layout volume", 2);
    let records = (0..).zip(table.iter().cloned()).map(|(id, record)| Some((id, record?)));
    records
        .chain([Some((LAYOUT_VOLUME, layout_record))])
        .map(|one| one.map(|(id, record)| Volume::found(id, record, layout, found)))
        .collect()
}
