// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guesses the sizes of a device from an image: EC headers give the offsets of VID header and data, and come once in
//! each erase block. So some multiples of each size are examined, large ones first: about 2,000 reads of 64 bytes at
//! most. Every 4 KiB of 128 MiB is examined only if no header is found, or one contradicts a given size.

use crate::error::UbiError;
use crate::headers::EcHeader;
use crate::layout::HEADER_BYTES;
use crate::mtd::{Geometry, MAX_PEB_BYTES, MAX_PEBS, ReadAt};

/// Known sizes; the rest is guessed.
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
    /// Sizes, with as many erase blocks as the image has.
    pub geometry: Geometry,
    /// Offset of the VID header, if not the default for these sizes.
    pub vid_offset: Option<u32>,
    /// Whether other sizes would explain the headers as well: pages of twice the size, with sub-pages.
    pub ambiguous: bool,
    /// A larger possible erase block size, if a given size has no further header between its headers and no other
    /// evidence: the given size is doubtful.
    pub larger_peb_bytes: Option<u32>,
}

/// The smallest erase block that is guessed.
const LEAST_PEB_BYTES: u32 = 4096;
/// Sizes that are guessed, the largest first.
fn sizes() -> impl Iterator<Item = u32> {
    (LEAST_PEB_BYTES.trailing_zeros()..=MAX_PEB_BYTES.trailing_zeros()).rev().map(|bits| 1 << bits)
}
/// The most multiples of each size examined.
const AROUND: u64 = 128;
/// The most places examined one by one, if multiples do not suffice: those of two of the largest erase blocks.
const LOOK_AT: usize = 2 * (64 << 20) / LEAST_PEB_BYTES as usize;
/// Number of headers that suffices.
const ENOUGH: usize = 128;
/// The smallest known page of NAND.
const LEAST_PAGE_BYTES: u32 = 256;

/// EC headers of an image, by offset.
struct Headers<'a, R> {
    image: &'a R,
    bytes: u64,
}

impl<'a, R: ReadAt> Headers<'a, R> {
    fn at(&self, at: u64) -> Option<(u64, EcHeader)> {
        let mut header = [0; HEADER_BYTES];
        self.image.read_exact_at(at, &mut header).ok()?;
        Some((at, EcHeader::parse(&header).ok()?))
    }

    /// The headers at multiples of `step` near the beginning.
    fn at_each(&self, step: u32) -> impl Iterator<Item = (u64, EcHeader)> {
        (0..self.bytes).step_by(step as usize).take(LOOK_AT).filter_map(|at| self.at(at))
    }

    /// A header that begins an erase block: multiples of a large size have none of an image within a volume.
    fn first(&self) -> Option<(u64, EcHeader)> {
        let multiples = |size: u32| (0..AROUND).map(move |i| i * u64::from(size)).take_while(|&at| at < self.bytes);
        sizes().flat_map(multiples).find_map(|at| self.at(at)).or_else(|| self.at_each(LEAST_PEB_BYTES).next())
    }

    /// The smallest size whose multiples mostly have a header. There may be other headers: those of a UBI image
    /// within a volume.
    fn peb_bytes(&self) -> Option<u32> {
        let (first, header) = self.first()?;
        // A size, its multiples with a header, and its multiples from the first to the last of these.
        let mut shares: Vec<(u32, u64, u64)> = Vec::new();
        for size in sizes().filter(|&size| size > header.data_offset) {
            let step = u64::from(size);
            let begin = (first / step).saturating_sub(AROUND / 2);
            let multiples = (begin..begin + AROUND).take_while(|i| i * step < self.bytes);
            let found: Vec<u64> = multiples.filter(|i| self.at(i * step).is_some()).collect();
            // The header of a block with an odd number is at no multiple of twice the size.
            if let (Some(first), Some(last), true) = (found.first(), found.last(), found.iter().any(|i| i % 2 == 1)) {
                shares.push((size, found.len() as u64, last - first + 1 + FEW));
            }
        }
        let (_, best, of) = *shares.iter().max_by(|(_, a, of_a), (_, b, of_b)| (a * of_b).cmp(&(b * of_a)))?;
        // Half of the multiples of half the size have a header, and among few places chance may have put more than
        // among many: the limit is between one half and one.
        let mostly = |&&(_, found, places): &&(u32, u64, u64)| 10 * found * of >= 7 * best * places;
        shares.iter().rev().find(mostly).map(|&(size, ..)| size)
    }
}

/// Number of places without a header added to those of a size.
const FEW: u64 = 8;

/// Guesses from the EC headers near the beginning of an image.
pub fn guess(image: &impl ReadAt, known: &Known) -> Result<Guess, UbiError> {
    let refused = |what: String| Err(UbiError::Refused(what));
    let bytes = match image.bytes() {
        Ok(0) => return refused("the image is empty".into()),
        Ok(bytes) => bytes,
        Err(e) => return refused(format!("the size of the image cannot be read: {e}")),
    };
    if known.peb_bytes == Some(0) {
        return refused("PEB size = 0: a power of two up to 64 MiB is needed".into());
    }
    let headers = Headers { image, bytes };
    // Blocks may be empty, damaged or bad, so headers may be missing; but those that exist begin blocks.
    let first = known.peb_bytes.map_or_else(|| headers.first(), |step| headers.at_each(step).next());
    let Some((_, header)) = first else {
        let step = known.peb_bytes.unwrap_or(LEAST_PEB_BYTES);
        let what = format!("no UBI: no EC header at a multiple of {step} bytes in {bytes} bytes");
        return doubt(UbiError::Refused(what), known.peb_bytes);
    };
    let (vid, data) = (header.vid_offset, header.data_offset);
    let fits = headers.peb_bytes();
    let Some(peb_bytes) = known.peb_bytes.or(fits) else {
        let what = "a single EC header does not show the PEB size; give it".into();
        return doubt(UbiError::Refused(what), None);
    };
    let mut ambiguous = false;
    let page_bytes = known.page_bytes.unwrap_or_else(|| {
        let apart = data.saturating_sub(vid);
        // Separate header pages: the VID header begins a page and the data the next one.
        if apart == vid && apart.is_power_of_two() {
            ambiguous = known.subpage_bytes.is_none();
            apart
        } else {
            // Data begins with a page, whose size is a power of two, but not always with the first or second page.
            data & data.wrapping_neg()
        }
    });
    if known.page_bytes.is_none() && page_bytes < LEAST_PAGE_BYTES {
        return refused(format!(
            "VID headers at {vid} and data at {data} of a PEB, as on NOR flash: only NAND is supported, with pages of \
             {LEAST_PAGE_BYTES} bytes at least"
        ));
    }
    // A VID header right behind the EC header is in its sub-page: no chip has sub-pages of 64 bytes.
    let behind_ec = HEADER_BYTES as u32 + 1;
    let aligned = vid.is_power_of_two() && (behind_ec..=page_bytes).contains(&vid) && page_bytes / vid.max(1) <= 16;
    let subpage_bytes = known.subpage_bytes.unwrap_or(if aligned { vid } else { page_bytes });
    let Ok(pebs @ 1..=MAX_PEBS) = u32::try_from(bytes / u64::from(peb_bytes)) else {
        let what = format!("{bytes} bytes are not 1 to {MAX_PEBS} PEBs of {peb_bytes} bytes");
        return doubt(UbiError::Refused(what), known.peb_bytes);
    };
    let geometry = Geometry { peb_bytes, page_bytes, subpage_bytes, pebs };
    if let Err(e) = geometry.check() {
        return if e.key == "PEB size" { doubt(e.into(), known.peb_bytes) } else { Err(e.into()) };
    }
    let default = (HEADER_BYTES as u32).next_multiple_of(subpage_bytes);
    let larger_peb_bytes = match known.peb_bytes {
        Some(given) => match fits.filter(|&fits| fits != given) {
            Some(fits) => compare(&headers, given, fits).map_err(UbiError::Refused)?,
            None => None,
        },
        None => None,
    };
    Ok(Guess { geometry, vid_offset: (vid != default).then_some(vid), ambiguous, larger_peb_bytes })
}

/// Adds to an error that another erase block size may avoid it, if none was given.
fn doubt<T>(e: UbiError, given: Option<u32>) -> Result<T, UbiError> {
    Err(if given.is_none() { e.doubting_sizes() } else { e })
}

/// Compares a given size with the offsets of headers: an error if it is wrong, and a larger size if that is possible.
fn compare(all: &Headers<impl ReadAt>, given: u32, fits: u32) -> Result<Option<u32>, String> {
    let headers: Vec<(u64, EcHeader)> = all.at_each(LEAST_PEB_BYTES).take(ENOUGH).collect();
    let Some(&(_, first)) = headers.first() else { return Ok(None) };
    let (small, large) = (u64::from(given.min(fits)), u64::from(given.max(fits)));
    let wrong =
        |what: String| Err(format!("PEB size = {given}: {what}; PEBs of {fits} bytes fit what is in the image"));
    let within = |at: &u64| at.is_multiple_of(small) && !at.is_multiple_of(large);
    if fits < given {
        // A UBI image within a volume has another number, and mostly other sizes.
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
        all.image.read_exact_at(at, &mut bytes).is_ok() && bytes != [0xFF; HEADER_BYTES]
    };
    match (0..last).step_by(given as usize).filter(within).find(has_data) {
        Some(at) => {
            wrong(format!("only PEBs at multiples of {fits} begin with an EC header, and byte {at} is not erased"))
        }
        None => Ok(Some(fits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::io;

    const HEADER: EcHeader =
        EcHeader { version: 1, erase_counter: 0, vid_offset: 2048, data_offset: 4096, image_seq: 1 };

    /// An image with the same header at some places and nothing else, which counts bytes read.
    struct Sparse {
        places: BTreeSet<u64>,
        bytes: u64,
        reads: Cell<u32>,
    }

    impl ReadAt for Sparse {
        fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            self.reads.set(self.reads.get() + 1);
            let header = if self.places.contains(&offset) { HEADER.to_bytes() } else { [0xFF; HEADER_BYTES] };
            bytes.copy_from_slice(&header);
            Ok(())
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(self.bytes)
        }
    }

    fn sparse(places: impl IntoIterator<Item = u64>, bytes: u64) -> Sparse {
        Sparse { places: places.into_iter().collect(), bytes, reads: Cell::new(0) }
    }

    fn guessed(places: impl IntoIterator<Item = u64>) -> Option<u32> {
        Headers { image: &sparse(places, 128 << 20), bytes: 128 << 20 }.peb_bytes()
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
        assert_eq!(guessed(places), Some(128 << 10));
        assert_eq!(guessed([0]), None);
        // One of two, at random; only behind a long empty part; at few places without a common multiple.
        let chance = |i: &u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0;
        assert_eq!(guessed((0..900).filter(chance).map(|i| i * peb)), Some(128 << 10));
        assert_eq!(guessed((601..700).map(|i| i * peb)), Some(128 << 10));
        assert_eq!(guessed([601, 605, 611].map(|i| i * peb)), Some(128 << 10));
        assert_eq!(guessed([4096 * 10_001, 4096 * 10_003]), None, "blocks are larger than where their data begin");
    }

    #[test]
    fn all_sizes_are_guessed_with_few_reads() {
        for bits in 13..=26 {
            let peb = 1u64 << bits;
            let image = sparse((0..64).map(|i| i * peb), 4 << 30);
            let found = guess(&image, &Known::default()).expect("a guess");
            assert_eq!(u64::from(found.geometry.peb_bytes), peb);
            assert!(image.reads.get() <= 2_000, "{peb}: {} reads", image.reads.get());
            let given = guess(&image, &Known { peb_bytes: Some(1 << bits), ..Known::default() }).expect("sizes");
            assert_eq!(given.larger_peb_bytes, None);
            assert!(image.reads.get() <= 4_000, "{peb}: {} reads", image.reads.get());
        }
    }

    #[test]
    fn headers_as_on_nor_are_named() {
        let mut image = vec![0xFF; 4 << 17];
        for block in image.chunks_mut(1 << 17) {
            let header = EcHeader { vid_offset: 64, data_offset: 128, ..HEADER };
            block[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        }
        let e = guess(&image.as_slice(), &Known::default()).expect_err("no NAND has pages of 64 bytes");
        assert!(e.to_string().contains("as on NOR flash"), "{e}");
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
