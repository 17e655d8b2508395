// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sizes of a device, guessed from an image: EC headers say where VID header and data are, and come once in each erase
//! block. It reads a few headers, not the image.

use crate::error::UbiError;
use crate::headers::{EcHeader, HEADER_BYTES};
use crate::mtd::{Geometry, MAX_PEBS, ReadAt};

/// What is known beforehand; the rest is guessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Bytes of an erase block.
    pub peb_bytes: Option<u32>,
    /// Bytes of a page.
    pub page_bytes: Option<u32>,
    /// Bytes of a sub-page.
    pub subpage_bytes: Option<u32>,
}

/// A guess.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guess {
    /// Sizes; as many erase blocks as the image has.
    pub geometry: Geometry,
    /// Where the VID header is, if not at the default for these sizes.
    pub vid_offset: Option<u32>,
    /// Whether other sizes would explain the headers as well: pages of twice the size, with sub-pages.
    pub ambiguous: bool,
}

/// The smallest erase block that is guessed.
const LEAST_PEB_BYTES: u32 = 4096;
/// Places that are looked at: those of two of the largest erase blocks.
const LOOK_AT: usize = 2 * (64 << 20) / LEAST_PEB_BYTES as usize;
/// Headers that are enough.
const ENOUGH: usize = 8;

/// Guesses from the EC headers near the beginning of an image.
pub fn guess(image: &impl ReadAt, known: &Known) -> Result<Guess, UbiError> {
    let refused = |what: String| Err(UbiError::Refused(what));
    let bytes = match image.bytes() {
        Ok(bytes) => bytes,
        Err(e) => return refused(format!("the size of the image cannot be found out: {e}")),
    };
    // Blocks may be empty, damaged or bad, so headers may be missing; but those that are there begin blocks.
    let step = known.peb_bytes.unwrap_or(LEAST_PEB_BYTES);
    if step == 0 {
        return refused("PEB size = 0: a power of two up to 64 MiB is needed".into());
    }
    let header_at = |at: u64| {
        let mut header = [0; HEADER_BYTES];
        image.read_exact_at(at, &mut header).ok()?;
        Some((at, EcHeader::parse(&header).ok()?))
    };
    let places = (0..bytes).step_by(step as usize).take(LOOK_AT);
    let headers: Vec<(u64, EcHeader)> = places.filter_map(header_at).take(ENOUGH).collect();
    let Some(&(_, header)) = headers.first() else {
        return refused(format!("no UBI: no EC header at a multiple of {step} bytes in {bytes} bytes"));
    };
    // The header of a block with an odd number is at no multiple of twice the size.
    let odd = headers.iter().map(|(at, _)| *at).filter(|&at| at > 0).map(|at| 1u64 << at.trailing_zeros()).min();
    let peb_bytes = match (known.peb_bytes, odd.map(u32::try_from)) {
        (Some(bytes), _) | (None, Some(Ok(bytes))) => bytes,
        _ => return refused("one EC header does not tell the PEB size: it has to be given".into()),
    };
    let (vid, data) = (header.vid_offset, header.data_offset);
    let mut ambiguous = false;
    let page_bytes = known.page_bytes.unwrap_or_else(|| {
        let apart = data.saturating_sub(vid);
        // Header pages of their own: the VID header begins a page and the data the next one.
        if apart == vid && apart.is_power_of_two() {
            ambiguous = known.subpage_bytes.is_none();
            apart
        } else {
            data
        }
    });
    let aligned = vid.is_power_of_two() && (64..=page_bytes).contains(&vid) && page_bytes / vid.max(1) <= 16;
    let subpage_bytes = known.subpage_bytes.unwrap_or(if aligned { vid } else { page_bytes });
    let Ok(pebs @ 1..=MAX_PEBS) = u32::try_from(bytes / u64::from(peb_bytes)) else {
        return refused(format!("{bytes} bytes are not 1 to {MAX_PEBS} PEBs of {peb_bytes} bytes"));
    };
    let geometry = Geometry { peb_bytes, page_bytes, subpage_bytes, pebs };
    geometry.check()?;
    let default = (HEADER_BYTES as u32).next_multiple_of(subpage_bytes);
    Ok(Guess { geometry, vid_offset: (vid != default).then_some(vid), ambiguous })
}
