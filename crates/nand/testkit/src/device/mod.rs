// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UBI device that is written as Linux writes it: a [`Ubi`] for reads, and the states of all erase blocks. It has
//! no thread and no clock: the caller does background work step by step with [`Device::work`].

mod erase;
mod moves;
mod volumes;
mod wear;
mod write;

use crate::write::MtdWrite;
use readpath_ubi::headers::LAYOUT_VOLUME;
use readpath_ubi::io::Header;
use readpath_ubi::layout::Layout;
use readpath_ubi::mtd::ReadOutcome;
use readpath_ubi::{NoCache, ReadCache, Ubi, UbiError, attach};
use std::ops::{Deref, DerefMut};

pub use erase::Work;
pub use volumes::NewVolume;
pub use wear::{PebState, Wear};

/// Options of an attach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Offset of the VID header, if not UBI's default.
    pub vid_offset: Option<u32>,
    /// Use a fastmap if there is one.
    pub fastmap: bool,
    /// Image sequence number of an empty device, which is formatted.
    pub image_seq_if_empty: u32,
    /// Difference of erase counters from which on contents are moved to even out wear (`UBI_WL_THRESHOLD`).
    pub wear_threshold: u32,
    /// Blocks of 1024 that may go bad: this many are reserved (`max_beb_per1024`).
    pub bad_pebs_per_1024: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { vid_offset: None, fastmap: true, image_seq_if_empty: 0, wear_threshold: 4096, bad_pebs_per_1024: 20 }
    }
}

impl Options {
    fn bad_peb_limit(&self, pebs: u32) -> u32 {
        (u64::from(pebs) * u64::from(self.bad_pebs_per_1024)).div_ceil(1024) as u32
    }
}

/// A UBI device on `M`, whose reads of logical blocks pass `C`. The inner [`Ubi`] has all that only reads.
#[derive(Debug)]
pub struct Device<M, C = NoCache> {
    ubi: Ubi<M, C>,
    options: Options,
    /// The states of its erase blocks.
    pub wear: Wear,
    image_seq: u32,
    /// Highest sequence number so far.
    sqnum: u64,
    /// Why writes are refused, if they are.
    read_only: Option<String>,
    /// Erase blocks that are neither in a volume nor reserved.
    pub available: u32,
    /// Erase blocks reserved to replace bad ones.
    pub bad_reserve: u32,
    /// Logical blocks that were moved since the attach.
    pub moves: u64,
    /// Logical blocks that were rescued after a failed write since the attach.
    pub recoveries: u64,
    /// Buffer of a logical block.
    buffer: Vec<u8>,
}

impl<M, C> Deref for Device<M, C> {
    type Target = Ubi<M, C>;

    fn deref(&self) -> &Ubi<M, C> {
        &self.ubi
    }
}

impl<M, C> DerefMut for Device<M, C> {
    fn deref_mut(&mut self) -> &mut Ubi<M, C> {
        &mut self.ubi
    }
}

/// Erase blocks needed besides the volumes: one for moves, one for atomic changes (`WL_RESERVED_PEBS`,
/// `EBA_RESERVED_PEBS`), and the layout volume.
const OVERHEAD_PEBS: u32 = 1 + 1 + 2;

/// More headers than any device has written.
const LAST_SQNUM: u64 = 1 << 63;

impl<M: MtdWrite, C: ReadCache> Device<M, C> {
    /// Attaches `mtd`. An empty device is formatted, a fastmap is invalidated, damaged copies of the volume table are
    /// rewritten, and a volume with the autoresize flag grows. [`Device::work`] does the erasures.
    pub fn attach(mtd: M, cache: C, options: &Options) -> Result<Self, UbiError> {
        let layout = Layout::new(mtd.geometry(), options.vid_offset)?;
        if layout.headers_share_subpage() {
            let offset = layout.vid_offset;
            return Err(UbiError::Refused(format!(
                "the VID header, at {offset}, is in the sub-page of the EC header, which would have to be programmed \
                 twice: such a device can only be attached read-only"
            )));
        }
        let &Options { vid_offset, fastmap, .. } = options;
        let ubi = Ubi::attach(mtd, cache, &attach::Options { partial: false, vid_offset, fastmap })?;
        let found = ubi.found();
        if found.max_sqnum >= LAST_SQNUM {
            // No device lives long enough to write that many: after the last one, old blocks would look newer.
            return Err(UbiError::Refused(format!(
                "a VID header has the sequence number {}, beyond what is ever written: the device can only be attached \
                 read-only",
                found.max_sqnum
            )));
        }
        let wear = Wear::new(ubi.mtd().geometry().pebs, found);
        let reserved: u64 = ubi.volumes().map(|v| u64::from(v.record.reserved_pebs)).sum();
        let needed = reserved + u64::from(OVERHEAD_PEBS);
        let usable = wear.good - found.corrupted.len() as u32 - found.alien.len() as u32;
        if needed > u64::from(usable) {
            return Err(UbiError::Refused(format!("{needed} PEBs are needed, but only {usable} can be used")));
        }
        let read_only = found.read_only.then(|| "an internal volume that is not known asks for it".into());
        let image_seq = if found.is_empty { options.image_seq_if_empty } else { found.image_seq };
        let rewrite = ubi.found_table().rewrite;
        let mut device = Device {
            options: *options,
            wear,
            image_seq,
            sqnum: found.max_sqnum,
            read_only,
            available: usable - needed as u32,
            bad_reserve: 0,
            moves: 0,
            recoveries: 0,
            buffer: vec![0; layout.leb_bytes as usize],
            ubi,
        };
        device.fill_bad_reserve();
        if device.read_only.is_none() {
            device.end_fastmaps()?;
            device.repair(rewrite)?;
        }
        Ok(device)
    }

    /// [`Ubi::read`]; a block with flips is queued to be moved.
    pub fn read(
        &mut self,
        volume: u32,
        lnum: u32,
        offset: u32,
        out: &mut [u8],
        tag: u16,
    ) -> Result<ReadOutcome, UbiError> {
        self.proven_peb(volume, lnum)?;
        let outcome = self.ubi.read(volume, lnum, offset, out, tag)?;
        // Data of a static volume that only its checksum confirms is in such a block, too.
        if outcome == ReadOutcome::BitFlips
            && let Some(peb) = self.ubi.volume(volume)?.peb(lnum)
        {
            self.wear.scrub(peb);
        }
        Ok(outcome)
    }

    /// [`Ubi::proven_peb`]; a block without contents is queued to be erased, and one with other contents makes the
    /// device read-only.
    fn proven_peb(&mut self, volume: u32, lnum: u32) -> Result<Option<u32>, UbiError> {
        let told = self.ubi.volume(volume)?.peb(lnum);
        let proven = self.ubi.proven_peb(volume, lnum);
        match (&proven, told) {
            (Ok(None), Some(peb)) => {
                let worn = !matches!(self.ubi.io_mut().read_vid(peb), Ok(Header::Empty { flips: false }));
                self.wear.put(peb, worn);
            }
            (Err(e @ UbiError::Peb { .. }), _) => {
                self.read_only.get_or_insert_with(|| e.to_string());
            }
            _ => {}
        }
        proven
    }

    /// Handles a used erase block that turned out to be empty; returns whether a wrong fastmap explains it, which is
    /// corrected.
    fn was_erased(&mut self, peb: u32) -> Result<bool, UbiError> {
        let layout = self.ubi.volume(LAYOUT_VOLUME).into_iter();
        let told = self.ubi.volumes().chain(layout).find_map(|v| {
            let (lnum, _) = v.pebs().find(|&(_, p)| p == peb)?;
            Some((v.id, lnum))
        });
        let Some((volume, lnum)) = told else { return Ok(false) };
        Ok(self.proven_peb(volume, lnum)?.is_none())
    }

    fn check_writable(&self) -> Result<(), UbiError> {
        match &self.read_only {
            Some(why) => Err(read_only(why)),
            None => Ok(()),
        }
    }

    fn next_sqnum(&mut self) -> u64 {
        self.sqnum += 1;
        self.sqnum
    }

    fn pebs(&self) -> u32 {
        self.ubi.mtd().geometry().pebs
    }

    /// Ends the use of the device, without any further writes.
    pub fn into_mtd(self) -> M {
        self.ubi.into_mtd()
    }
}

/// The error of a write to a read-only device.
fn read_only(why: &str) -> UbiError {
    UbiError::Refused(format!("UBI is read-only: {why}"))
}

/// The checksum of headers and data.
fn crc32(bytes: &[u8]) -> u32 {
    !crc32fast::hash(bytes)
}

/// Bytes of data in whole pages, without the pages of 0xFF at their end.
fn data_len(data: &[u8], page_bytes: u32) -> u32 {
    let used = data.iter().rposition(|&b| b != 0xFF).map_or(0, |last| last + 1);
    (used as u32).next_multiple_of(page_bytes)
}
