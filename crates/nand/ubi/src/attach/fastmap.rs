// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaching by a fastmap: a summary of all blocks that UBI wrote at some time. The headers of the few blocks (the
//! pools) from which UBI has taken new ones since bring it up to date (Linux, drivers/mtd/ubi/fastmap.c). An
//! inconsistent fastmap is not an error: the caller scans.

use super::compare::{Verdict, compare};
use super::info::{AttachInfo, FoundLeb, FoundVolume, Method, ToErase};
use super::scan::Scanner;
use crate::crc::crc32;
use crate::error::UbiError;
use crate::headers::{FASTMAP_DATA_VOLUME, FASTMAP_SB_VOLUME, LAYOUT_VOLUME, VidHeader, VolumeId, be16, be32};
use crate::io::{Header, Io};
use crate::layout::MAX_VOLUMES;
use crate::mtd::{MAX_PEBS, Mtd, ReadOutcome, Why};
use std::collections::BTreeMap;

/// The superblock of a fastmap is in one of this many first blocks (`UBI_FM_MAX_START`).
pub(super) const FIRST_PEBS: u32 = 64;

const MAX_BLOCKS: u32 = 32;
const MAX_POOL: u16 = 256;
const SB_BYTES: usize = 312;
const HEADER_BYTES: usize = 32;
const POOL_BYTES: usize = 1048;
const VOLUME_BYTES: usize = 32;

const SB_MAGIC: u32 = 0x7B11_D69F;
const HEADER_MAGIC: u32 = 0xD4B8_2EF7;
const VOLUME_MAGIC: u32 = 0xFA37_0ED1;
const POOL_MAGIC: u32 = 0x67AF_4D08;
const EBA_MAGIC: u32 = 0xF0C0_40A8;

/// Why a fastmap is not used.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is inconsistent; a scan may succeed.
    Unusable(String),
    /// The device cannot be read.
    Fatal(UbiError),
}

impl From<UbiError> for Fault {
    fn from(e: UbiError) -> Self {
        match e {
            UbiError::Peb { .. } | UbiError::Sizes(_) => Fault::Unusable(e.to_string()),
            e => Fault::Fatal(e),
        }
    }
}

fn bad<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Unusable(what.into()))
}

/// Bytes of the fastmap, read from front to back.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        let Some(piece) = self.at.checked_add(n).and_then(|end| self.bytes.get(self.at..end)) else {
            return bad(format!("it goes beyond its {} bytes", self.bytes.len()));
        };
        self.at += n;
        Ok(piece)
    }

    /// The next `n` bytes, which begin with `magic`.
    fn part(&mut self, n: usize, magic: u32) -> Result<&'a [u8], Fault> {
        let at = self.at;
        let piece = self.take(n)?;
        if be32(piece, 0) != magic {
            return bad(format!("byte {at} has {:#010x} where {magic:#010x} is expected", be32(piece, 0)));
        }
        Ok(piece)
    }
}

/// Attaches by the newest fastmap among `scanner.anchors`, which are not empty.
pub(super) fn attach<M: Mtd>(io: &mut Io<M>, scanner: &Scanner) -> Result<AttachInfo, Fault> {
    let mut anchor = (u32::MAX, 0);
    for &(peb, sqnum) in scanner.anchors.iter().filter(|a| a.0 < FIRST_PEBS) {
        if anchor.0 == u32::MAX || sqnum > anchor.1 {
            anchor = (peb, sqnum);
        }
    }
    let mut sb = [0; SB_BYTES];
    readable(io.read_data(anchor.0, 0, &mut sb, Why::Fastmap).map_err(UbiError::Mtd)?, anchor.0)?;
    if be32(&sb, 0) != SB_MAGIC || sb[4] != 1 {
        return bad(format!("PEB {}: no superblock of version 1", anchor.0));
    }
    let blocks = be32(&sb, 12);
    let [old, new] = io.layout.fastmap_pebs(io.pebs());
    if blocks == 0 || blocks > MAX_BLOCKS || blocks != old && blocks != new {
        let right = if old == new { old.to_string() } else { format!("{old} or {new}") };
        return bad(format!("PEB {}: it has {blocks} blocks where {right} are expected", anchor.0));
    }
    let (method, image_seq) = (Method::Fastmap { anchor: anchor.0 }, scanner.found.image_seq);
    let mut found = AttachInfo { method, image_seq, ..AttachInfo::default() };
    let leb_bytes = io.layout.leb_bytes as usize;
    let mut bytes = vec![0; leb_bytes * blocks as usize];
    for (i, piece) in bytes.chunks_exact_mut(leb_bytes).enumerate() {
        let (peb, ec) = (be32(&sb, 16 + 4 * i), be32(&sb, 144 + 4 * i));
        let volume = if i == 0 { FASTMAP_SB_VOLUME } else { FASTMAP_DATA_VOLUME };
        let header = headers(io, peb, found.image_seq)?.1;
        let Some((header, _)) = header.filter(|h| h.0.volume == volume) else {
            return bad(format!("PEB {peb} does not hold its block {i}"));
        };
        found.max_sqnum = found.max_sqnum.max(header.sqnum);
        found.fastmap.push((peb, ec));
        readable(io.read_data(peb, 0, piece, Why::Fastmap).map_err(UbiError::Mtd)?, peb)?;
    }
    let stored = be32(&bytes, 8);
    bytes[8..12].fill(0);
    if crc32(&bytes) != stored {
        return bad(format!("its CRC is {stored:#010x} instead of {:#010x}", crc32(&bytes)));
    }
    let found = parse(io, found, &bytes)?;
    // Older fastmaps must be queued for erasure; otherwise this one does not describe the device.
    let older = scanner.anchors.iter().find(|a| a.0 != anchor.0 && found.erase.iter().all(|work| work.peb != a.0));
    match older {
        Some((peb, _)) => bad(format!("PEB {peb} holds another fastmap, which it does not name for erasure")),
        None => Ok(found),
    }
}

fn readable(outcome: ReadOutcome, peb: u32) -> Result<(), Fault> {
    if outcome == ReadOutcome::Uncorrectable { bad(format!("PEB {peb} cannot be read")) } else { Ok(()) }
}

/// Erase counter of a block; its VID header, if it has one, and whether there were flips.
type BothHeaders = (u32, Option<(VidHeader, bool)>);

fn headers<M: Mtd>(io: &mut Io<M>, peb: u32, image_seq: u32) -> Result<BothHeaders, Fault> {
    if peb >= io.pebs() || io.mtd.is_bad(peb) {
        return bad(format!("PEB {peb} is bad or does not exist"));
    }
    let Header::Good { header: ec, flips } = io.read_ec(peb)? else {
        return bad(format!("PEB {peb} has no good EC header"));
    };
    if ec.image_seq != 0 && ec.image_seq != image_seq {
        return bad(format!("PEB {peb} has image sequence {} instead of {image_seq}", ec.image_seq));
    }
    let vid = match io.read_vid(peb)? {
        Header::Good { header, flips: vid_flips } => Some((header, flips || vid_flips)),
        Header::Empty { .. } => None,
        Header::Bad { .. } => return bad(format!("PEB {peb} has a damaged VID header")),
    };
    Ok((ec.erase_counter as u32, vid))
}

fn parse<M: Mtd>(io: &mut Io<M>, mut found: AttachInfo, bytes: &[u8]) -> Result<AttachInfo, Fault> {
    let mut rest = Bytes { bytes, at: SB_BYTES };
    let header = rest.part(HEADER_BYTES, HEADER_MAGIC)?;
    let pools = [rest.part(POOL_BYTES, POOL_MAGIC)?, rest.part(POOL_BYTES, POOL_MAGIC)?];
    let mut seen = vec![false; io.pebs() as usize];
    let mut counters = (0u64, 0u64);
    found.min_ec = u32::MAX;
    let mut list = |rest: &mut Bytes, count: u32| -> Result<Vec<(u32, u32)>, Fault> {
        let mut pebs = Vec::new();
        for _ in 0..count {
            let entry = rest.take(8)?;
            let (peb, ec) = (be32(entry, 0), be32(entry, 4));
            match seen.get_mut(peb as usize) {
                Some(seen) if !*seen && ec <= i32::MAX as u32 => *seen = true,
                _ => return bad(format!("PEB {peb} is named twice, does not exist or has the erase counter {ec}")),
            }
            counters = (counters.0 + u64::from(ec), counters.1 + 1);
            found.min_ec = found.min_ec.min(ec);
            found.max_ec = found.max_ec.max(ec);
            pebs.push((peb, ec));
        }
        Ok(pebs)
    };
    let free = list(&mut rest, be32(header, 4))?;
    let used = list(&mut rest, be32(header, 8))?;
    let scrub = list(&mut rest, be32(header, 12))?;
    let erase = list(&mut rest, be32(header, 20))?;
    if counters.1 == 0 {
        return bad("it names no PEB");
    }
    found.mean_ec = (counters.0 / counters.1) as u32;
    found.free = free;
    // As in Linux, blocks that wait for their erasure come first.
    for (peb, erase_counter) in erase {
        found.erase.push_back(ToErase { peb, erase_counter });
    }
    let mut used: BTreeMap<u32, (u32, bool)> = used.into_iter().map(|(peb, ec)| (peb, (ec, false))).collect();
    used.extend(scrub.into_iter().map(|(peb, ec)| (peb, (ec, true))));
    for _ in 0..be32(header, 24) {
        volume(io, &mut rest, &mut found, &mut used)?;
    }
    for pool in pools {
        let size = be16(pool, 4);
        if size > MAX_POOL || be16(pool, 6) > MAX_POOL {
            return bad(format!("a pool of {size} PEBs, at most {MAX_POOL} are possible"));
        }
        for i in 0..usize::from(size) {
            from_pool(io, &mut found, be32(pool, 8 + 4 * i))?;
        }
    }
    // Used, but not mapped: a block that was being written or moved.
    found.erase.extend(used.into_iter().map(|(peb, (erase_counter, _))| ToErase { peb, erase_counter }));
    check_every_block_once(io, &mut found, be32(header, 16))?;
    Ok(found)
}

/// The blocks of one volume.
fn volume<M: Mtd>(
    io: &Io<M>,
    rest: &mut Bytes,
    found: &mut AttachInfo,
    used: &mut BTreeMap<u32, (u32, bool)>,
) -> Result<(), Fault> {
    let header = rest.part(VOLUME_BYTES, VOLUME_MAGIC)?;
    let eba = rest.part(8, EBA_MAGIC)?;
    let id = be32(header, 4);
    if id >= MAX_VOLUMES && id != LAYOUT_VOLUME {
        return bad(format!("volume {id:#x} is neither below {MAX_VOLUMES} nor the layout volume"));
    }
    let mut volume = FoundVolume {
        vol_type: header[8],
        used_lebs: be32(header, 16),
        data_pad: be32(header, 12),
        compat: if id == LAYOUT_VOLUME { crate::headers::compat::REJECT } else { 0 },
        lebs: BTreeMap::new(),
        last_data_bytes: be32(header, 20),
    };
    // In memory Linux numbers the types 3 (dynamic) and 4 (static), and writes those numbers here.
    volume.vol_type = match volume.vol_type {
        1 | 3 => 1,
        2 | 4 => 2,
        other => return bad(format!("volume {id} has the type {other}")),
    };
    // For a static volume this is the number of its blocks; for a dynamic one Linux writes the reserved number.
    if volume.vol_type == 1 {
        volume.used_lebs = 0;
        volume.last_data_bytes = 0;
    }
    if volume.data_pad >= io.layout.leb_bytes / 2 || volume.last_data_bytes > io.layout.leb_bytes {
        return bad(format!("volume {id} has data_pad {} or too large a last LEB", volume.data_pad));
    }
    for lnum in 0..be32(eba, 4) {
        let peb = be32(rest.take(4)?, 0);
        if peb > i32::MAX as u32 {
            continue;
        }
        check_lnum(id, lnum)?;
        let Some((erase_counter, scrub)) = used.remove(&peb) else {
            return bad(format!("LEB {lnum} of volume {id} is in PEB {peb}, which is not in use"));
        };
        // The fastmap has no sequence numbers; blocks of the pools are newer in any case.
        volume.lebs.insert(lnum, FoundLeb { peb, erase_counter, sqnum: 0, copy: false, scrub });
    }
    match found.volumes.insert(id, volume) {
        Some(_) => bad(format!("volume {id} comes twice")),
        None => Ok(()),
    }
}

/// Checks a logical block number before any allocation, because it decides the size of a table.
fn check_lnum(volume: u32, lnum: u32) -> Result<(), Fault> {
    let lebs = if volume == LAYOUT_VOLUME { 2 } else { MAX_PEBS };
    if lnum < lebs { Ok(()) } else { bad(format!("LEB {lnum} of {}, of at most {lebs} LEBs", VolumeId(volume))) }
}

/// Adds a block of a pool: still free, or taken since the fastmap was written.
fn from_pool<M: Mtd>(io: &mut Io<M>, found: &mut AttachInfo, peb: u32) -> Result<(), Fault> {
    let (ec, vid) = headers(io, peb, found.image_seq)?;
    let Some((header, flips)) = vid else {
        // A block that was taken and is empty again was unmapped after the fastmap was written.
        for volume in found.volumes.values_mut() {
            volume.lebs.retain(|_, leb| leb.peb != peb);
        }
        found.free.push((peb, ec));
        return Ok(());
    };
    found.max_sqnum = found.max_sqnum.max(header.sqnum);
    if header.volume == FASTMAP_SB_VOLUME || header.volume == FASTMAP_DATA_VOLUME {
        // The block belongs to this fastmap or to an older one.
        if found.fastmap.iter().all(|&(used, _)| used != peb) {
            found.erase.push_back(ToErase { peb, erase_counter: ec });
        }
        return Ok(());
    }
    let Some(volume) = found.volumes.get_mut(&header.volume) else {
        return bad(format!("PEB {peb} of a pool holds {}, which is unknown", VolumeId(header.volume)));
    };
    if let Err(Fault::Unusable(what)) = check_lnum(header.volume, header.lnum) {
        return bad(format!("PEB {peb} of a pool: {what}"));
    }
    let new = FoundLeb { peb, erase_counter: ec, sqnum: header.sqnum, copy: header.copy_flag != 0, scrub: flips };
    let Some(&old) = volume.lebs.get(&header.lnum) else {
        if volume.highest_lnum() <= header.lnum {
            volume.last_data_bytes = header.data_bytes;
        }
        volume.lebs.insert(header.lnum, new);
        return Ok(());
    };
    if old.peb == peb {
        volume.lebs.insert(header.lnum, new);
        return Ok(());
    }
    let mut old = old;
    if let Header::Good { header, .. } = io.read_vid(old.peb)? {
        (old.sqnum, old.copy) = (header.sqnum, header.copy_flag != 0);
    }
    let loser = match compare(io, &old, peb, &header)? {
        Verdict::LaterWins { flips: data_flips, .. } => {
            volume.lebs.insert(header.lnum, FoundLeb { scrub: flips || data_flips, ..new });
            ToErase { peb: old.peb, erase_counter: old.erase_counter }
        }
        Verdict::EarlierWins { .. } => ToErase { peb, erase_counter: ec },
    };
    found.erase.push_back(loser);
    Ok(())
}

/// Checks that every block is listed exactly once.
fn check_every_block_once<M: Mtd>(io: &mut Io<M>, found: &mut AttachInfo, bad_count: u32) -> Result<(), Fault> {
    let mut count = vec![0u8; io.pebs() as usize];
    let lebs = found.volumes.values().flat_map(|v| v.lebs.values().map(|leb| leb.peb));
    let free = found.free.iter().chain(&found.fastmap).map(|&(peb, _)| peb);
    for peb in lebs.chain(free).chain(found.erase.iter().map(|work| work.peb)) {
        count[peb as usize] = count[peb as usize].saturating_add(1);
    }
    for (peb, &count) in (0..).zip(&count) {
        match count {
            0 if io.mtd.is_bad(peb) => found.bad.push(peb),
            1 => {}
            n => return bad(format!("PEB {peb} appears {n} times")),
        }
    }
    if found.bad.len() as u32 != bad_count {
        return bad(format!("{} bad PEBs, it says {bad_count}", found.bad.len()));
    }
    Ok(())
}
