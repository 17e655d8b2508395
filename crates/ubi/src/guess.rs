// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sizes of a device, guessed from an image: EC headers say where VID header and data are, and come once in each erase
//! block. It looks at every 4 KiB of no more than 128 MiB, until it has seen enough headers.

use crate::error::UbiError;
use crate::headers::{EcHeader, HEADER_BYTES};
use crate::mtd::{Geometry, MAX_PEB_BYTES, MAX_PEBS, ReadAt};

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
    /// A larger size of erase blocks, where one was given between whose headers no other block has a header, nor anything
    /// else that would decide: it is doubtful.
    pub larger_peb_bytes: Option<u32>,
}

/// The smallest erase block that is guessed.
const LEAST_PEB_BYTES: u32 = 4096;
/// Places that are looked at: those of two of the largest erase blocks.
const LOOK_AT: usize = 2 * (64 << 20) / LEAST_PEB_BYTES as usize;
/// Headers that are enough.
const ENOUGH: usize = 128;

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
    let headers_at_each = |step: u32| -> Vec<(u64, EcHeader)> {
        let places = (0..bytes).step_by(step as usize).take(LOOK_AT);
        places.filter_map(header_at).take(ENOUGH).collect()
    };
    let headers = headers_at_each(step);
    let Some(&(_, header)) = headers.first() else {
        return refused(format!("no UBI: no EC header at a multiple of {step} bytes in {bytes} bytes"));
    };
    let (vid, data) = (header.vid_offset, header.data_offset);
    let Some(peb_bytes) = known.peb_bytes.or_else(|| peb_bytes(&headers, data)) else {
        return refused("one EC header does not tell the PEB size: it has to be given".into());
    };
    let mut ambiguous = false;
    let page_bytes = known.page_bytes.unwrap_or_else(|| {
        let apart = data.saturating_sub(vid);
        // Header pages of their own: the VID header begins a page and the data the next one.
        if apart == vid && apart.is_power_of_two() {
            ambiguous = known.subpage_bytes.is_none();
            apart
        } else {
            // Data begin with a page, which is a power of two, but not always with the first or second one.
            data & data.wrapping_neg()
        }
    });
    // A VID header right behind the EC header is in its sub-page: no chip has sub-pages of 64 bytes.
    let behind_ec = HEADER_BYTES as u32 + 1;
    let aligned = vid.is_power_of_two() && (behind_ec..=page_bytes).contains(&vid) && page_bytes / vid.max(1) <= 16;
    let subpage_bytes = known.subpage_bytes.unwrap_or(if aligned { vid } else { page_bytes });
    let Ok(pebs @ 1..=MAX_PEBS) = u32::try_from(bytes / u64::from(peb_bytes)) else {
        return refused(format!("{bytes} bytes are not 1 to {MAX_PEBS} PEBs of {peb_bytes} bytes"));
    };
    let geometry = Geometry { peb_bytes, page_bytes, subpage_bytes, pebs };
    geometry.check()?;
    let default = (HEADER_BYTES as u32).next_multiple_of(subpage_bytes);
    let larger_peb_bytes = match known.peb_bytes {
        Some(given) => compare(image, &headers_at_each(LEAST_PEB_BYTES), given).map_err(UbiError::Refused)?,
        None => None,
    };
    Ok(Guess { geometry, vid_offset: (vid != default).then_some(vid), ambiguous, larger_peb_bytes })
}

/// Holds a size that was given against where headers are: an error if that is wrong, and a larger size if it may be.
fn compare(image: &impl ReadAt, headers: &[(u64, EcHeader)], given: u32) -> Result<Option<u32>, String> {
    let Some(&(_, first)) = headers.first() else { return Ok(None) };
    let Some(fits) = peb_bytes(headers, first.data_offset).filter(|&fits| fits != given) else { return Ok(None) };
    let (small, large) = (u64::from(given.min(fits)), u64::from(given.max(fits)));
    let wrong =
        |what: String| Err(format!("PEB size = {given}: {what}; PEBs of {fits} bytes fit what is in the image"));
    let within = |at: &u64| at.is_multiple_of(small) && !at.is_multiple_of(large);
    if fits < given {
        // An image of UBI within a volume has another number, and mostly other sizes.
        let alike = |h: &EcHeader| {
            (h.image_seq, h.vid_offset, h.data_offset) == (first.image_seq, first.vid_offset, first.data_offset)
        };
        let mut inner = headers.iter().filter(|(at, header)| within(at) && alike(header)).map(|(at, _)| at);
        let outer = headers.iter().filter(|(at, _)| at.is_multiple_of(large)).count();
        let Some(at) = inner.next() else { return Ok(None) };
        return match inner.count() + 1 {
            n if 2 * n < outer => Ok(None),
            n => wrong(format!("{n} EC headers of the same image are inside of such PEBs, the first at byte {at}")),
        };
    }
    let last = headers.last().map_or(0, |(at, _)| *at);
    if headers.iter().any(|(at, _)| within(at)) {
        return Ok(None);
    }
    let has_data = |&at: &u64| {
        let mut bytes = [0; HEADER_BYTES];
        image.read_exact_at(at, &mut bytes).is_ok() && bytes != [0xFF; HEADER_BYTES]
    };
    match (0..last).step_by(given as usize).filter(within).find(has_data) {
        Some(at) => wrong(format!(
            "only PEBs at multiples of {fits} begin with an EC header, and byte {at} with something else"
        )),
        None => Ok(Some(fits)),
    }
}

/// The size of which most multiples have a header. Other headers may lie about: those of an image of UBI within a volume.
fn peb_bytes(headers: &[(u64, EcHeader)], data_offset: u32) -> Option<u32> {
    let (first, last) = (headers.first()?.0, headers.last()?.0);
    let mut best: Option<(u32, u64, u64)> = None;
    let sizes = (LEAST_PEB_BYTES.trailing_zeros()..=MAX_PEB_BYTES.trailing_zeros()).map(|bits| 1u32 << bits);
    for size in sizes.filter(|&size| size > data_offset) {
        let step = u64::from(size);
        let at_multiples = || headers.iter().filter(|(at, _)| at % step == 0);
        // The header of a block with an odd number is at no multiple of twice the size.
        if !at_multiples().any(|(at, _)| at / step % 2 == 1) {
            continue;
        }
        let found = at_multiples().count() as u64;
        // Between few places, chance may have put more headers than between many.
        let places = last / step + 1 - first.div_ceil(step) + FEW;
        if best.is_none_or(|(_, best_found, best_places)| found * best_places > best_found * places) {
            best = Some((size, found, places));
        }
    }
    best.map(|(size, ..)| size)
}

/// So many places without a header are added to those that a size has.
const FEW: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: EcHeader =
        EcHeader { version: 1, erase_counter: 0, vid_offset: 2048, data_offset: 4096, image_seq: 1 };

    fn guessed(places: impl IntoIterator<Item = u64>) -> Option<u32> {
        let headers: Vec<_> = places.into_iter().map(|at| (at, HEADER)).collect();
        peb_bytes(&headers, 4096)
    }

    #[test]
    fn headers_of_an_image_in_a_volume_do_not_count() {
        let peb = 128u64 << 10;
        assert_eq!(guessed((0..20).map(|i| i * peb)), Some(128 << 10));
        // Blocks without headers, the first ones and every third.
        assert_eq!(guessed((3..40).filter(|i| i % 3 != 1).map(|i| i * peb)), Some(128 << 10));
        assert_eq!(guessed([peb, 4 * peb]), Some(128 << 10));
        // An image with blocks of 16 KiB within a volume of blocks with 124 KiB of data.
        let mut places: Vec<u64> = (0..30).map(|i| i * peb).collect();
        for inner in 0..200u64 {
            let at = inner * (16 << 10);
            places.push((3 + at / (124 << 10)) * peb + 4096 + at % (124 << 10));
        }
        places.sort_unstable();
        assert_eq!(guessed(places), Some(128 << 10));
        assert_eq!(guessed([0]), None);
    }

    /// ubinize -m 2048 -s 512 -O 4096: the VID header in the third page, and data in the fourth.
    #[test]
    fn a_page_is_a_power_of_two_wherever_data_begin() {
        let header = EcHeader { vid_offset: 4096, data_offset: 6144, ..HEADER };
        let mut image = vec![0xFF; 4 << 17];
        for block in image.chunks_mut(1 << 17) {
            block[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        }
        let guess = guess(&image.as_slice(), &Known::default()).expect("a guess");
        assert_eq!(
            (guess.geometry.peb_bytes, guess.geometry.page_bytes, guess.vid_offset),
            (1 << 17, 2048, Some(4096))
        );
    }
}
