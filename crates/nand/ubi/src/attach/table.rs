// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volume table on flash, and its agreement with the blocks found (Linux, drivers/mtd/ubi/vtbl.c: `process_lvol`,
//! `check_attaching_info`).

use super::info::{AttachInfo, FoundTable, FoundVolume, ToErase, at};
use crate::error::UbiError;
use crate::headers::LAYOUT_VOLUME;
use crate::io::Io;
use crate::layout::{MAX_VOLUMES, RECORD_BYTES};
use crate::mtd::{MAX_PEBS, Mtd, ReadOutcome, Why};
use crate::vtbl::{Table, TableFault, parse_table};

/// Reads both copies. Copy 0 is written first, so it is the newer one when both are good but differ.
pub(super) fn read<M: Mtd>(io: &mut Io<M>, found: &mut AttachInfo, partial: bool) -> Result<FoundTable, UbiError> {
    let layout = io.layout;
    let records_bytes = layout.volume_slots() as usize * RECORD_BYTES;
    let Some(volume) = found.volumes.get_mut(&LAYOUT_VOLUME) else {
        if found.is_empty {
            let table = vec![None; layout.volume_slots() as usize];
            let padding = vec![0; layout.volume_table_bytes() as usize - records_bytes];
            return Ok(FoundTable { table, rewrite: [true; 2], damaged: [None, None], padding });
        }
        let what = "no PEB holds the layout volume, so there is no volume table".into();
        return Err(UbiError::Refused(what).doubting_sizes());
    };
    let good_pebs = if partial { MAX_PEBS } else { io.mtd.geometry().pebs - found.bad.len() as u32 };
    let mut copies: [Option<Vec<u8>>; 2] = [None, None];
    for (lnum, copy) in copies.iter_mut().enumerate() {
        let Some(leb) = volume.lebs.get_mut(&(lnum as u32)) else { continue };
        let mut bytes = vec![0; layout.volume_table_bytes() as usize];
        let outcome = io.read_data(leb.peb, 0, &mut bytes, Why::VolumeTable)?;
        leb.scrub |= outcome >= ReadOutcome::BitFlips;
        *copy = Some(bytes);
    }
    let mut damage = Vec::new();
    for (lnum, copy) in copies.iter().enumerate() {
        let peb = volume.lebs.get(&(lnum as u32)).map_or(0, |leb| leb.peb);
        let Some(bytes) = copy else {
            damage.push(format!("copy {lnum} is missing"));
            continue;
        };
        match parse_table(bytes, &layout, good_pebs) {
            Ok(table) => {
                // The other copy is rewritten, whatever its fault.
                let other = 1 - lnum;
                let (mut rewrite, mut damaged) = ([false; 2], [None, None]);
                rewrite[other] = copies[other].as_ref() != Some(bytes);
                if let Some(bytes) = copies[other].as_ref().filter(|_| rewrite[other]) {
                    damaged[other] = parse_table(bytes, &layout, good_pebs).err().map(|fault| fault.to_string());
                }
                return Ok(FoundTable { table, rewrite, damaged, padding: bytes[records_bytes..].to_vec() });
            }
            Err(fault @ TableFault::Crc(..)) => damage.push(format!("copy {lnum} in PEB {peb}: {fault}")),
            Err(fault) => return Err(at(peb, layout.data_offset, fault.to_string())),
        }
    }
    let peb = volume.lebs.values().next().map_or(0, |leb| leb.peb);
    let what = format!("no good copy of the volume table: {}", damage.join("; "));
    Err(at(peb, layout.data_offset, what).doubting_sizes())
}

/// Blocks of volumes missing in the table are to be erased: their removal was interrupted. Blocks of listed volumes
/// have to agree with the table.
pub(super) fn reconcile<M: Mtd>(io: &Io<M>, found: &mut AttachInfo, table: &Table) -> Result<(), UbiError> {
    let ids: Vec<u32> = found.volumes.keys().copied().filter(|&id| id < MAX_VOLUMES).collect();
    for id in ids {
        let volume = &found.volumes[&id];
        match table.get(id as usize).and_then(Option::as_ref) {
            Some(record) => {
                let peb = volume.lebs.values().next_back().map_or(0, |leb| leb.peb);
                let wrong = |what: String| Err(at(peb, io.layout.vid_offset, format!("volume {id}: {what}")));
                if !volume.lebs.is_empty() && volume.highest_lnum() >= record.reserved_pebs {
                    let (lnum, lebs) = (volume.highest_lnum(), record.reserved_pebs);
                    return wrong(format!("LEB {lnum} of a volume of {lebs} LEBs"));
                }
                if volume.vol_type != record.vol_type {
                    return wrong(format!("type {}, the table says {}", volume.vol_type, record.vol_type));
                }
                if volume.used_lebs > record.reserved_pebs {
                    return wrong(format!("{} used LEBs of {}", volume.used_lebs, record.reserved_pebs));
                }
                if volume.data_pad != record.data_pad {
                    return wrong(format!("data_pad {}, the table says {}", volume.data_pad, record.data_pad));
                }
            }
            None => {
                let removed = found.volumes.remove(&id);
                let lebs = removed.iter().flat_map(|v: &FoundVolume| v.lebs.values());
                found.erase.extend(lebs.map(|leb| ToErase { peb: leb.peb, erase_counter: leb.erase_counter }));
            }
        }
    }
    Ok(())
}
