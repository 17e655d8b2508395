// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of a device below its volumes' contents: headers, the volume table, data with checksums. Traces of a power
//! cut are distinguished from damage. It only reads.

use super::Ubi;
use crate::attach::{Method, Note, NoteKind};
use crate::cache::ReadCache;
use crate::error::UbiError;
use crate::headers::{FASTMAP_DATA_VOLUME, FASTMAP_SB_VOLUME, LAYOUT_VOLUME, STATIC, VolumeId};
use crate::io::{Header, Io};
use crate::layout::RECORD_BYTES;
use crate::mtd::{Mtd, ReadOutcome, Why};
use std::collections::BTreeMap;
use std::fmt;

/// A state that UBI does not leave behind in normal operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Stable name of its kind.
    pub kind: &'static str,
    /// Whether data is lost or damaged. Otherwise it is a trace of a power cut, which the next attach with write
    /// access repairs.
    pub is_damage: bool,
    /// Erase block and byte in it; `None` for a logical block without flash.
    pub place: Option<(u32, u32)>,
    /// What was found.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((peb, offset)) = self.place {
            write!(f, "PEB {peb} offset {offset}: ")?;
        }
        let remark = if self.is_damage { "" } else { " (not damage)" };
        write!(f, "{}{remark}: {}", self.kind, self.detail)
    }
}

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// All findings. After an attach by a fastmap, headers that it did not need to read are not checked. Data of
    /// static volumes is read as a whole, and so are blocks with a missing header.
    ///
    /// # Errors
    /// Only errors that prevent reading the device.
    pub fn findings(&mut self) -> Result<Vec<Finding>, UbiError> {
        let mut findings: Vec<Finding> = self.found.notes.iter().map(|note| self.of_note(note)).collect();
        if let (Some(fault), Method::Scan) = (&self.found.fastmap_fault, self.found.method) {
            let detail = format!("the fastmap was not used: {fault}");
            findings.push(Finding { kind: "stale-fastmap", is_damage: false, place: None, detail });
        }
        self.of_blocks_said_empty(&mut findings)?;
        self.of_table(&mut findings);
        self.behind_tables(&mut findings)?;
        let statics: Vec<u32> = self.volumes().filter(|v| v.record.vol_type == STATIC).map(|v| v.id).collect();
        for id in statics {
            self.of_static(id, &mut findings)?;
        }
        Ok(findings)
    }

    fn of_note(&self, note: &Note) -> Finding {
        let Note { peb, kind } = *note;
        let vid = self.io.layout.vid_offset;
        let holds = |volume: u32, lnum: u32| {
            let in_use = self.volume(volume).ok().and_then(|v| v.peb(lnum)) == Some(peb);
            (in_use, name_of(volume, lnum))
        };
        let (kind, is_damage, offset, detail) = match kind {
            NoteKind::BadEc { volume, lnum } => {
                let (in_use, leb) = holds(volume, lnum);
                ("bad-ec-header", in_use, 0, format!("the EC header is damaged; the block holds {leb}"))
            }
            NoteKind::BadEcOnly => {
                ("bad-ec-header", false, 0, "the EC header is damaged, there is no VID header: to be erased".into())
            }
            NoteKind::BadHeaders => (
                "bad-headers",
                false,
                0,
                "both headers are damaged, as an interrupted erase leaves them: to be erased".into(),
            ),
            NoteKind::BadVidOnly => {
                ("bad-vid-header", false, vid, "the VID header is damaged, there are no data: to be erased".into())
            }
            NoteKind::BadVid => {
                let detail = "the VID header is damaged, so the owner of the data is unknown: the block is kept".into();
                ("bad-vid-header", true, vid, detail)
            }
            NoteKind::Older { volume, lnum, newer } => {
                let detail = format!("{} is also in PEB {newer}, which is newer", holds(volume, lnum).1);
                ("older-leb", false, vid, detail)
            }
            NoteKind::Unfinished { volume, lnum, good } => {
                let (_, leb) = holds(volume, lnum);
                let detail = format!("a copy of {leb} whose data do not have their CRC; PEB {good} is used");
                ("unfinished-copy", false, vid, detail)
            }
        };
        Finding { kind, is_damage, place: Some((peb, offset)), detail }
    }

    /// Checks blocks whose headers say that they are empty, which an attach believes.
    fn of_blocks_said_empty(&mut self, findings: &mut Vec<Finding>) -> Result<(), UbiError> {
        let free = self.found.free.iter().map(|&(peb, _)| (peb, true));
        let pebs: Vec<(u32, bool)> = free.chain(self.found.erase.iter().map(|work| (work.peb, false))).collect();
        let data = self.io.layout.data_offset;
        // Volumes missing in the table: number of their blocks, and the first of these.
        let mut unknown: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for (peb, is_free) in pebs {
            // A header with impossible contents is never used.
            let ec = self.io.read_ec(peb).ok();
            let vid = self.io.read_vid(peb).ok();
            let (no_ec, no_vid) = (matches!(ec, Some(Header::Empty { .. })), matches!(vid, Some(Header::Empty { .. })));
            if !no_ec && !no_vid {
                if let Some(Header::Good { header, .. }) = vid
                    && self.volume(header.volume).is_err()
                    && !matches!(header.volume, FASTMAP_SB_VOLUME | FASTMAP_DATA_VOLUME)
                {
                    let (blocks, _) = unknown.entry(header.volume).or_insert((0u32, peb));
                    *blocks += 1;
                }
                continue;
            }
            let Some(first) = first_data(&mut self.io, peb)? else { continue };
            let (kind, is_damage, detail) = match (ec, vid) {
                (Some(Header::Good { .. }), _) => {
                    let then = if is_free { "taken as free" } else { "to be erased" };
                    let what =
                        format!("no VID header, but data from here on: the block is {then}, the LEB in it is lost");
                    ("data-without-vid-header", true, what)
                }
                (_, Some(Header::Good { header, .. })) => {
                    let whose = name_of(header.volume, header.lnum);
                    let what = format!("no EC header, but data of {whose} from here on: to be erased");
                    ("data-without-ec-header", false, what)
                }
                _ => {
                    let what = "no headers that are good, but data from here on, as an interrupted erase may leave: to \
                                be erased";
                    ("data-without-headers", false, what.to_owned())
                }
            };
            findings.push(Finding { kind, is_damage, place: Some((peb, data + first)), detail });
        }
        for (volume, (blocks, first)) in unknown {
            let what = match blocks {
                1 => "a block".to_owned(),
                n => format!("the first of {n} blocks"),
            };
            let detail = format!(
                "{what} of volume {volume}, which the volume table does not name, as a removal leaves that was cut \
                 short: to be erased"
            );
            let place = Some((first, self.io.layout.vid_offset));
            findings.push(Finding { kind: "unknown-volume", is_damage: false, place, detail });
        }
        Ok(())
    }

    fn of_table(&self, findings: &mut Vec<Finding>) {
        let data = self.io.layout.data_offset;
        let copies = self.volume(LAYOUT_VOLUME).map(|v| [v.peb(0), v.peb(1)]).unwrap_or_default();
        for (copy, peb) in copies.into_iter().enumerate() {
            let finding =
                |kind, is_damage, detail| Finding { kind, is_damage, place: peb.map(|peb| (peb, data)), detail };
            match (&self.table.damaged[copy], self.table.rewrite[copy]) {
                (Some(what), _) => {
                    findings.push(finding(
                        "bad-volume-table",
                        true,
                        format!("copy {copy}: {what}; the other one is used"),
                    ));
                }
                (None, true) if !self.found.is_empty => {
                    let what = if peb.is_some() { "older than the other one" } else { "missing" };
                    findings.push(finding("old-volume-table", false, format!("copy {copy} is {what}")));
                }
                _ => {}
            }
        }
        for volume in self.volumes().filter(|v| v.record.update_marker) {
            let offset = data + volume.id * RECORD_BYTES as u32;
            let place = copies[0].or(copies[1]).map(|peb| (peb, offset));
            let detail = format!("an update of volume {} was interrupted: what it holds is not complete", volume.id);
            findings.push(Finding { kind: "interrupted-update", is_damage: true, place, detail });
        }
    }

    /// Checks the flash behind good copies of the volume table.
    fn behind_tables(&mut self, findings: &mut Vec<Finding>) -> Result<(), UbiError> {
        let copies = self.volume(LAYOUT_VOLUME).map(|v| [v.peb(0), v.peb(1)]).unwrap_or_default();
        let records = self.io.layout.volume_slots() * RECORD_BYTES as u32;
        for (copy, peb) in copies.into_iter().enumerate() {
            if let Some(peb) = peb.filter(|_| self.table.damaged[copy].is_none()) {
                findings.extend(self.behind(peb, records, &format!("copy {copy} of the volume table"))?);
            }
        }
        Ok(())
    }

    fn of_static(&mut self, id: u32, findings: &mut Vec<Finding>) -> Result<(), UbiError> {
        let volume = self.volume(id)?;
        if volume.record.update_marker {
            return Ok(());
        }
        for lnum in 0..volume.used_lebs {
            let (place, detail) = match self.check_static_leb(id, lnum) {
                Ok((peb, bytes)) => {
                    findings.extend(self.behind(peb, bytes, &format!("LEB {lnum} of volume {id}"))?);
                    continue;
                }
                Err(UbiError::Peb { peb, offset, what }) => (Some((peb, offset)), what),
                Err(UbiError::Leb { what, .. }) => (None, what),
                Err(e) => return Err(e),
            };
            let detail = format!("LEB {lnum} of volume {id}: {detail}");
            findings.push(Finding { kind: "bad-static-data", is_damage: true, place, detail });
        }
        Ok(())
    }
}

fn name_of(volume: u32, lnum: u32) -> String {
    format!("LEB {lnum} of {}", VolumeId(volume))
}

/// The first byte of the data area that is not 0xFF; `None` if the area cannot be read without errors, as after an
/// interrupted erase.
fn first_data<M: Mtd>(io: &mut Io<M>, peb: u32) -> Result<Option<u32>, UbiError> {
    let mut piece = vec![0; io.layout.leb_bytes.min(64 << 10) as usize];
    let mut first = None;
    let mut at = 0;
    while at < io.layout.leb_bytes {
        let piece = &mut piece[..(io.layout.leb_bytes - at).min(64 << 10) as usize];
        if io.read_data(peb, at, piece, Why::Check)? == ReadOutcome::Uncorrectable {
            return Ok(None);
        }
        // Whole chunks first, for speed: most blocks are empty, and there may be gigabytes of them.
        let empty = piece.chunks(64).take_while(|c| c.iter().fold(0xFF, |a, &b| a & b) == 0xFF).count() * 64;
        if first.is_none()
            && let Some(i) = piece.get(empty..).and_then(|rest| rest.iter().position(|&b| b != 0xFF))
        {
            first = Some(at + (empty + i) as u32);
        }
        at += piece.len() as u32;
    }
    Ok(first)
}
