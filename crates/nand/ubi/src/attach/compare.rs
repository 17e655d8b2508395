// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of two blocks with the same logical block is valid (Linux, drivers/mtd/ubi/attach.c: `ubi_compare_lebs`).

use super::info::{FoundLeb, at};
use crate::error::UbiError;
use crate::headers::{VidHeader, VolumeId};
use crate::io::{Header, Io};
use crate::mtd::{Mtd, ReadOutcome, Why};

/// Result of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The block that was seen first is valid.
    EarlierWins {
        /// The later block is an incomplete copy.
        other_is_damaged: bool,
    },
    /// The block that was seen last is valid.
    LaterWins {
        /// Its data had flips.
        flips: bool,
        /// The earlier block is an incomplete copy.
        other_is_damaged: bool,
    },
}

/// Compares the block that was seen first with `peb`, whose header is `header`. The higher sequence number wins,
/// unless that block is a copy (of a move or an atomic change) whose data is incomplete.
pub(super) fn compare<M: Mtd>(
    io: &mut Io<M>,
    earlier: &FoundLeb,
    peb: u32,
    header: &VidHeader,
) -> Result<Verdict, UbiError> {
    let vid_offset = io.layout.vid_offset;
    if earlier.sqnum == header.sqnum {
        let what = format!(
            "LEB {} of {} is also in PEB {}, with the same sequence number {}",
            header.lnum,
            VolumeId(header.volume),
            earlier.peb,
            header.sqnum
        );
        return Err(at(peb, vid_offset, what));
    }
    let later_is_newer = header.sqnum > earlier.sqnum;
    let newer = if later_is_newer {
        if header.copy_flag == 0 {
            return Ok(Verdict::LaterWins { flips: false, other_is_damaged: false });
        }
        *header
    } else {
        if !earlier.copy {
            return Ok(Verdict::EarlierWins { other_is_damaged: false });
        }
        match io.read_vid(earlier.peb)? {
            Header::Good { header, .. } => header,
            _ => return Err(at(earlier.peb, vid_offset, "VID header: it was good when it was read before".into())),
        }
    };
    let newer_peb = if later_is_newer { peb } else { earlier.peb };
    // `data_bytes` was checked against the size of a logical block.
    let mut data = vec![0; newer.data_bytes as usize];
    let outcome = io.read_data(newer_peb, 0, &mut data, Why::Check)?;
    let complete = crate::crc::crc32(&data) == newer.data_crc;
    Ok(match (later_is_newer, complete) {
        (true, true) => Verdict::LaterWins { flips: outcome >= ReadOutcome::BitFlips, other_is_damaged: false },
        (true, false) => Verdict::EarlierWins { other_is_damaged: true },
        (false, true) => Verdict::EarlierWins { other_is_damaged: false },
        (false, false) => Verdict::LaterWins { flips: false, other_is_damaged: true },
    })
}
