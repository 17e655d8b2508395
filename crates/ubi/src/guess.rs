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

const PEB_BYTES: std::ops::RangeInclusive<u32> = 12..=26;
/// Erase blocks that are looked at.
const LOOK_AT: u64 = 64;

/// Guesses from the EC headers near the beginning of an image.
pub fn guess(image: &impl ReadAt, known: &Known) -> Result<Guess, UbiError> {
    let refused = |what: String| Err(UbiError::Refused(what));
    let bytes = match image.bytes() {
        Ok(bytes) => bytes,
        Err(e) => return refused(format!("the size of the image cannot be found out: {e}")),
    };
    let header_at = |at: u64| {
        let mut header = [0; HEADER_BYTES];
        image.read_exact_at(at, &mut header).ok()?;
        EcHeader::parse(&header).ok()
    };
    // The smallest size of which nearly every multiple has a header, and the header that was found first.
    let mut first = None;
    let mut peb_bytes = known.peb_bytes;
    let sizes: Vec<u32> = match known.peb_bytes {
        Some(size) => vec![size],
        None => PEB_BYTES.map(|shift| 1 << shift).collect(),
    };
    for size in sizes {
        if size == 0 || bytes < u64::from(size) || bytes % u64::from(size) != 0 {
            continue;
        }
        let count = (bytes / u64::from(size)).min(LOOK_AT);
        let headers: Vec<EcHeader> = (0..count).filter_map(|peb| header_at(peb * u64::from(size))).collect();
        if first.is_none() {
            first = headers.first().copied();
        }
        // Blocks may be empty, damaged or bad; with too small a size all but a few places are data.
        if headers.len() as u64 * 2 > count || headers.len() as u64 * 2 == count && count == 2 {
            peb_bytes = peb_bytes.or(Some(size));
            break;
        }
    }
    let Some(header) = first else {
        return refused(format!("no UBI: no EC header at a multiple of any PEB size in {bytes} bytes"));
    };
    let Some(peb_bytes) = peb_bytes else {
        return refused("too few EC headers to tell the PEB size: it has to be given".into());
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
