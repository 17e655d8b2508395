// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scan: reads both headers of every erase block and classifies the block (Linux, drivers/mtd/ubi/attach.c:
//! `scan_peb`, `ubi_add_to_av`, `late_analysis`). It does not know the volume table.

use super::compare::{Verdict, compare};
use super::info::{AttachInfo, FoundLeb, FoundVolume, Note, NoteKind, ToErase, at};
use crate::error::UbiError;
use crate::headers::{
    EcHeader, FASTMAP_DATA_VOLUME, FASTMAP_SB_VOLUME, LAYOUT_VOLUME, MAX_ERASE_COUNTER, VidHeader, VolumeId, compat,
};
use crate::io::{Header, Io};
use crate::mtd::{Mtd, ReadOutcome, Why};

/// An unknown erase counter: no header has this value.
const UNKNOWN: u32 = u32::MAX;

/// State accumulated during the scan.
#[derive(Default)]
pub(super) struct Scanner {
    pub found: AttachInfo,
    ec_sum: u64,
    ec_count: u64,
    /// Fastmap superblocks: block and sequence number.
    pub anchors: Vec<(u32, u64)>,
}

impl Scanner {
    /// Blocks with superblocks of fastmaps, the oldest first.
    pub(super) fn anchors_by_age(&self) -> Vec<u32> {
        let mut anchors = self.anchors.clone();
        anchors.sort_unstable_by_key(|&(peb, sqnum)| (sqnum, peb));
        anchors.into_iter().map(|(peb, _)| peb).collect()
    }

    /// Scans one block.
    pub(super) fn peb<M: Mtd>(&mut self, io: &mut Io<M>, peb: u32) -> Result<(), UbiError> {
        if io.mtd.is_bad(peb) {
            self.found.bad.push(peb);
            return Ok(());
        }
        let (mut ec, mut flips, ec_fault) = match io.read_ec(peb)? {
            Header::Good { header, flips } => {
                self.check_image(peb, &header)?;
                (header.erase_counter as u32, flips, None)
            }
            Header::Empty { flips } => {
                self.found.empty_count += 1;
                self.erase(peb, UNKNOWN, flips);
                return Ok(());
            }
            // The VID header may be good. The block has to be moved to get an EC header again.
            Header::Bad { ecc } => (UNKNOWN, true, Some(ecc)),
        };
        match io.read_vid(peb)? {
            Header::Good { header, flips: vid_flips } => {
                flips |= vid_flips;
                if ec_fault.is_some() {
                    self.note(peb, NoteKind::BadEc { volume: header.volume, lnum: header.lnum });
                }
                if self.internal(peb, ec, &header)? {
                    return Ok(());
                }
                self.add(io, peb, ec, &header, flips)?;
            }
            Header::Empty { flips: vid_flips } => {
                if ec_fault.is_some() {
                    self.note(peb, NoteKind::BadEcOnly);
                }
                if vid_flips || flips {
                    self.erase(peb, ec, true);
                } else {
                    self.found.free.push((peb, ec));
                }
            }
            Header::Bad { ecc } => {
                if ecc && ec_fault == Some(true) {
                    self.found.maybe_bad_count += 1;
                }
                // With both headers damaged it looks like a block whose erase was interrupted.
                if ec_fault.is_some() || erase_was_cut(io, peb)? {
                    self.note(peb, if ec_fault.is_some() { NoteKind::BadHeaders } else { NoteKind::BadVidOnly });
                    self.erase(peb, ec, true);
                } else {
                    self.note(peb, NoteKind::BadVid);
                    self.found.corrupted.push((peb, ec));
                }
            }
        }
        if ec_fault.is_none() {
            ec = ec.min(MAX_ERASE_COUNTER as u32);
            self.count_ec(ec);
        }
        Ok(())
    }

    fn count_ec(&mut self, ec: u32) {
        self.found.min_ec = if self.ec_count == 0 { ec } else { self.found.min_ec.min(ec) };
        self.found.max_ec = self.found.max_ec.max(ec);
        self.ec_sum += u64::from(ec);
        self.ec_count += 1;
        self.found.mean_ec = (self.ec_sum / self.ec_count) as u32;
    }

    fn note(&mut self, peb: u32, kind: NoteKind) {
        self.found.notes.push(Note { peb, kind });
    }

    fn erase(&mut self, peb: u32, erase_counter: u32, first: bool) {
        let work = ToErase { peb, erase_counter };
        if first {
            self.found.erase.push_front(work);
        } else {
            self.found.erase.push_back(work);
        }
    }

    fn check_image(&mut self, peb: u32, header: &EcHeader) -> Result<(), UbiError> {
        let (known, this) = (self.found.image_seq, header.image_seq);
        if known == 0 {
            self.found.image_seq = this;
        } else if this != 0 && this != known {
            // A remainder of another image, which must not be mixed with this one.
            return Err(at(peb, 24, format!("EC header: image sequence {this}, but earlier PEBs have {known}")));
        }
        Ok(())
    }

    /// Handles a block of an internal volume by its compatibility; true if that is all.
    fn internal(&mut self, peb: u32, ec: u32, header: &VidHeader) -> Result<bool, UbiError> {
        let VidHeader { volume, lnum, .. } = *header;
        if volume <= LAYOUT_VOLUME {
            return Ok(false);
        }
        if volume == FASTMAP_SB_VOLUME {
            self.anchors.push((peb, header.sqnum));
        }
        if volume == FASTMAP_SB_VOLUME || volume == FASTMAP_DATA_VOLUME {
            self.found.max_sqnum = self.found.max_sqnum.max(header.sqnum);
            // Erased regardless of its compatibility: if kept, it would be believed later.
            self.erase(peb, ec, true);
            return Ok(true);
        }
        match header.compat {
            compat::DELETE => {
                self.erase(peb, ec, true);
                Ok(true)
            }
            compat::READ_ONLY => {
                self.found.read_only = true;
                Ok(false)
            }
            compat::PRESERVE => {
                self.found.alien.push(peb);
                Ok(true)
            }
            _ => {
                let what = format!("LEB {lnum} of {}, which is not supported", VolumeId(volume));
                Err(at(peb, 0, what))
            }
        }
    }

    /// Adds a block with a good VID header: the newer of two versions of its logical block is used.
    fn add<M: Mtd>(
        &mut self,
        io: &mut Io<M>,
        peb: u32,
        ec: u32,
        header: &VidHeader,
        flips: bool,
    ) -> Result<(), UbiError> {
        let vid_offset = io.layout.vid_offset;
        let VidHeader { volume: id, lnum, vol_type, used_lebs, data_pad, compat, sqnum, .. } = *header;
        if id == LAYOUT_VOLUME && lnum > 1 {
            return Err(at(peb, vid_offset, format!("LEB {lnum} of the layout volume, which has LEBs 0 and 1")));
        }
        let volume = self.found.volumes.entry(id).or_insert_with(|| FoundVolume {
            vol_type,
            used_lebs,
            data_pad,
            compat,
            lebs: Default::default(),
            last_data_bytes: 0,
        });
        // Only a block that will be used has to agree: an update leaves older ones of another size behind.
        let agrees = (volume.vol_type, volume.used_lebs, volume.data_pad) == (vol_type, used_lebs, data_pad);
        let check = || {
            let what =
                format!("VID header disagrees with earlier ones of {} on type, used_ebs or data_pad", VolumeId(id));
            if agrees { Ok(()) } else { Err(at(peb, vid_offset, what)) }
        };
        self.found.max_sqnum = self.found.max_sqnum.max(sqnum);
        let this = FoundLeb { peb, erase_counter: ec, sqnum, copy: header.copy_flag != 0, scrub: flips };
        let Some(&earlier) = volume.lebs.get(&lnum) else {
            check()?;
            if volume.lebs.last_key_value().is_none_or(|(&highest, _)| highest <= lnum) {
                volume.last_data_bytes = header.data_bytes;
            }
            volume.lebs.insert(lnum, this);
            return Ok(());
        };
        match compare(io, &earlier, peb, header)? {
            Verdict::EarlierWins { other_is_damaged } => {
                self.note(peb, rival(id, lnum, earlier.peb, other_is_damaged));
                self.erase(peb, ec, other_is_damaged);
            }
            Verdict::LaterWins { flips: data_flips, other_is_damaged } => {
                check()?;
                if volume.highest_lnum() == lnum {
                    volume.last_data_bytes = header.data_bytes;
                }
                volume.lebs.insert(lnum, FoundLeb { scrub: flips || data_flips, ..this });
                self.note(earlier.peb, rival(id, lnum, peb, other_is_damaged));
                self.erase(earlier.peb, earlier.erase_counter, other_is_damaged);
            }
        }
        Ok(())
    }

    /// Evaluates the scan, and gives blocks without erase counter the mean of the others. Only on a whole device is
    /// it known whether too much is damaged.
    pub(super) fn finish<M: Mtd>(mut self, io: &mut Io<M>, partial: bool) -> Result<AttachInfo, UbiError> {
        let anchors = self.anchors_by_age();
        let found = &mut self.found;
        let pebs = io.pebs() - found.bad.len() as u32 - found.alien.len() as u32;
        let limit = if pebs / 20 == 0 { 8 } else { pebs / 20 };
        let corrupted = found.corrupted.len() as u32;
        if corrupted > 0 && corrupted >= limit && !partial {
            let what = format!(
                "bad VID header over data; with {corrupted} such PEBs of {pebs} the device is refused, {limit} are too \
                 many"
            );
            return Err(at(found.corrupted[0].0, io.layout.vid_offset, what).doubting_sizes());
        }
        if found.empty_count + found.maybe_bad_count == pebs {
            if found.maybe_bad_count > 2 {
                let what =
                    format!("not UBI: {} of {pebs} PEBs are unreadable, the others empty", found.maybe_bad_count);
                return Err(UbiError::Refused(what));
            }
            found.is_empty = true;
        }
        found.anchors = anchors;
        let mean = found.mean_ec;
        let known = |ec: &mut u32| {
            if *ec == UNKNOWN {
                *ec = mean;
            }
        };
        found.volumes.values_mut().flat_map(|v| v.lebs.values_mut()).for_each(|leb| known(&mut leb.erase_counter));
        found.free.iter_mut().for_each(|(_, ec)| known(ec));
        found.corrupted.iter_mut().for_each(|(_, ec)| known(ec));
        found.erase.iter_mut().for_each(|work| known(&mut work.erase_counter));
        Ok(self.found)
    }
}

/// Why a block does not hold its logical block; `used` does.
fn rival(volume: u32, lnum: u32, used: u32, is_damaged: bool) -> NoteKind {
    match is_damaged {
        true => NoteKind::Unfinished { volume, lnum, good: used },
        false => NoteKind::Older { volume, lnum, newer: used },
    }
}

/// Whether a power cut interrupted the erase or first write of a block with a good EC and a bad VID header: its data
/// area is empty, or cannot be read without errors. Otherwise it may hold data.
fn erase_was_cut<M: Mtd>(io: &mut Io<M>, peb: u32) -> Result<bool, UbiError> {
    let mut data = vec![0; io.layout.leb_bytes as usize];
    let outcome = io.read_data(peb, 0, &mut data, Why::Check)?;
    Ok(outcome >= ReadOutcome::BitFlips || data.iter().all(|&b| b == 0xFF))
}
