// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 8 bytes that stand for a block in the host's memory, of three kinds:
//! - 4 bytes of physical address and 4 bytes of a keyed tag that binds the address to the logical block and to one
//!   hand-out of the map. Only the key is secret;
//! - the same address and 4 bytes of zeros, encrypted together under a tweak of logical block and hand-out;
//! - the plain address and 4 bytes of zeros, which proves nothing.
//!
//! With HPB 2.0 the upper bits of the address say how many blocks lay in a row from there when the entry was made.
//! The tag or the encryption covers them as well.
//!
//! A guessed entry of the first two kinds is accepted with probability 2^-32.

use crate::config::{ADDRESS_BITS, EntryConfig, Protection};
use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use readpath_flash::Ppn;
use readpath_proto::typed::HpbEntry;

type Block = aes::Block;

/// Makes and checks entries. The tag is the first 4 bytes of one AES-128 block: the message has a fixed length of one
/// block, so plain encryption is a sound authentication code, and controllers have the engine for it.
///
/// Encrypted entries are a block of 64 bits of a Feistel network with AES-128 as its round function. The tweak, logical
/// page and generation, and the number of the round are part of every round's input.
#[derive(Clone)]
pub(crate) struct EntryCodec {
    cipher: Aes128Enc,
    protection: Protection,
    /// Used bits of the tag; the others are 0.
    tag_mask: u32,
    /// Entries include the length of a run.
    runs: bool,
    /// Bits of an address in an entry.
    address_mask: u32,
}

/// Rounds of the Feistel network. Six resist any attack with far fewer than 2^32 blocks under one tweak (Patarin,
/// CRYPTO 2004), and a tweak has one entry; two more are a margin, and equal the rounds of FF3-1 (NIST SP 800-38G
/// Rev. 1).
const ROUNDS: u32 = 8;
/// Entries that are made together: a multiple of the 64 blocks that the cipher takes at once where the processor can
/// (VAES). It encrypts the rest of them one after another.
const BATCH: u32 = 256;

/// Lengths that 4 bits can encode; others are rounded down.
const RUNS: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128, 255];

impl EntryCodec {
    pub(crate) fn new(key: [u64; 2]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&key[0].to_le_bytes());
        bytes[8..].copy_from_slice(&key[1].to_le_bytes());
        let cipher = Aes128Enc::new(&Array(bytes));
        EntryCodec { cipher, protection: Protection::Mac, tag_mask: u32::MAX, runs: false, address_mask: u32::MAX }
    }

    /// The codec for entries protected as `config` says.
    pub(crate) fn protecting(self, config: &EntryConfig) -> Self {
        let tag_mask = u32::MAX >> (32 - u32::from(config.tag_bits));
        EntryCodec { protection: config.protection, tag_mask, ..self }
    }

    /// The codec for entries that include the length of a run. All addresses are below 2^`ADDRESS_BITS`.
    pub(crate) fn with_runs(self) -> Self {
        EntryCodec { runs: true, address_mask: (1 << ADDRESS_BITS) - 1, ..self }
    }

    /// The codec with another key.
    pub(crate) fn with_key(&self, key: [u64; 2]) -> Self {
        EntryCodec { cipher: EntryCodec::new(key).cipher, ..*self }
    }

    /// The address in `entry`, verified or not; arbitrary if the entry is encrypted.
    #[inline]
    pub(crate) fn address(&self, entry: HpbEntry) -> Ppn {
        self.address_in(place(entry))
    }

    /// The address in the result of [`EntryCodec::open`].
    #[inline(always)]
    pub(crate) fn address_in(&self, place: u32) -> Ppn {
        Ppn(place & self.address_mask)
    }

    /// The least length of the run at the address in `entry`, as of when it was made; verified or not.
    pub(crate) fn run(&self, entry: HpbEntry) -> u32 {
        self.run_in(place(entry))
    }

    /// The length of the run in the result of [`EntryCodec::open`].
    pub(crate) fn run_in(&self, place: u32) -> u32 {
        if self.runs { u32::from(RUNS[(place >> ADDRESS_BITS) as usize]) } else { 1 }
    }

    /// Appends the entries of `count` blocks from logical page `lpn` on, valid for the hand-out `generation`, to
    /// `out`. A block without an address gets the entry of all zeros. Runs end with the last of these blocks.
    pub(crate) fn make_all(
        &self,
        lpn: u32,
        count: u32,
        generation: u32,
        address: impl Fn(u32) -> Option<Ppn>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.resize(start + count as usize * HpbEntry::BYTES, 0);
        let (entries, _) = out[start..].as_chunks_mut::<{ HpbEntry::BYTES }>();
        // The place of the tag temporarily holds its input.
        let mut next: Option<Ppn> = None;
        let mut run = 0;
        for (i, entry) in entries.iter_mut().enumerate().rev() {
            let Some(ppn) = address(lpn + i as u32) else {
                next = None;
                continue;
            };
            run = if next == Some(Ppn(ppn.0 + 1)) { run + 1 } else { 1 };
            next = Some(ppn);
            let code = if self.runs { code_of(run) << ADDRESS_BITS } else { 0 };
            *entry = (u64::from(ppn.0 | code) << 32).to_be_bytes();
        }
        for (batch, entries) in entries.chunks_mut(BATCH as usize).enumerate() {
            let first = lpn + batch as u32 * BATCH;
            match self.protection {
                Protection::Mac => self.add_tags(first, generation, entries),
                Protection::Encrypted => self.encrypt(first, generation, entries),
                Protection::None => {}
            }
        }
    }

    /// Puts tags next to the addresses in at most [`BATCH`] entries.
    fn add_tags(&self, first: u32, generation: u32, entries: &mut [[u8; HpbEntry::BYTES]]) {
        let mut blocks = [Block::default(); BATCH as usize];
        for ((lpn, block), entry) in (first..).zip(&mut blocks).zip(entries.iter()) {
            *block = message(lpn, place(HpbEntry(*entry)), generation);
        }
        self.cipher.encrypt_blocks(&mut blocks[..entries.len()]);
        for (block, entry) in blocks.iter().zip(entries).filter(|(_, entry)| **entry != HpbEntry::ZERO.0) {
            entry[4..].copy_from_slice(&(tag_of(block) & self.tag_mask).to_be_bytes());
        }
    }

    /// Encrypts at most [`BATCH`] entries. With probability 2^-64 an entry becomes all zeros, which the host takes
    /// for none; this costs one lookup in the map.
    fn encrypt(&self, first: u32, generation: u32, entries: &mut [[u8; HpbEntry::BYTES]]) {
        let mut halves = [(0u32, 0u32); BATCH as usize];
        let mut blocks = [Block::default(); BATCH as usize];
        for (halves, entry) in halves.iter_mut().zip(entries.iter()) {
            halves.0 = place(HpbEntry(*entry));
        }
        for round in 0..ROUNDS {
            for ((lpn, block), (_, right)) in (first..).zip(&mut blocks).zip(&halves) {
                *block = round_input(lpn, *right, generation, round);
            }
            self.cipher.encrypt_blocks(&mut blocks[..entries.len()]);
            for ((left, right), block) in halves.iter_mut().zip(&blocks) {
                (*left, *right) = (*right, *left ^ tag_of(block));
            }
        }
        for ((left, right), entry) in halves.iter().zip(entries).filter(|(_, entry)| **entry != HpbEntry::ZERO.0) {
            *entry = (u64::from(*left) << 32 | u64::from(*right)).to_be_bytes();
        }
    }

    /// Address and length of the run in `entry`, if this device made it for `lpn` in the hand-out `generation`, or if
    /// entries are not protected. It compares one word, so that its time does not show how much of a guess was right.
    #[inline(always)]
    pub(crate) fn open(&self, lpn: u32, entry: HpbEntry, generation: u32) -> Option<u32> {
        if self.protection == Protection::Mac {
            self.open_tagged(lpn, entry, generation)
        } else {
            self.open_other(lpn, entry, generation)
        }
    }

    /// [`EntryCodec::open`] for a codec of [`Protection::Mac`].
    #[inline(always)]
    pub(crate) fn open_tagged(&self, lpn: u32, entry: HpbEntry, generation: u32) -> Option<u32> {
        let word = u64::from_be_bytes(entry.0);
        let place = (word >> 32) as u32;
        let mut block = message(lpn, place, generation);
        self.cipher.encrypt_block(&mut block);
        (tag_of(&block) & self.tag_mask == word as u32).then_some(place)
    }

    #[inline(never)]
    fn open_other(&self, lpn: u32, entry: HpbEntry, generation: u32) -> Option<u32> {
        if self.protection == Protection::None {
            return Some(place(entry));
        }
        let word = u64::from_be_bytes(entry.0);
        let (mut left, mut right) = ((word >> 32) as u32, word as u32);
        for round in (0..ROUNDS).rev() {
            let mut block = round_input(lpn, left, generation, round);
            self.cipher.encrypt_block(&mut block);
            (left, right) = (right ^ tag_of(&block), left);
        }
        (right == 0).then_some(left)
    }
}

/// Address and length of the run.
#[inline(always)]
fn place(entry: HpbEntry) -> u32 {
    (u64::from_be_bytes(entry.0) >> 32) as u32
}

/// The 4-bit code of a run of `run` blocks, rounded down.
fn code_of(run: u32) -> u32 {
    (RUNS.partition_point(|&n| u32::from(n) <= run) - 1) as u32
}

#[inline(always)]
fn message(lpn: u32, place: u32, generation: u32) -> Block {
    let low = u64::from(place) << 32 | u64::from(lpn);
    Array(block_bytes(low, u64::from(generation)))
}

/// The input of a round of the Feistel network: distinct from the input of any tag, whose last word is 0.
fn round_input(lpn: u32, half: u32, generation: u32, round: u32) -> Block {
    let low = u64::from(half) << 32 | u64::from(lpn);
    Array(block_bytes(low, u64::from(round + 1) << 32 | u64::from(generation)))
}

/// Two words as 16 bytes, the lower first, each little-endian.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code)]
fn block_bytes(low: u64, high: u64) -> [u8; 16] {
    // Built in a register: if it were stored as two words, the cipher's load of the whole block would wait until both
    // stores have left the processor's store buffer.
    //
    // SAFETY: every x86-64 processor has SSE2, and both types of the transmutation are 16 plain bytes.
    unsafe { std::mem::transmute(std::arch::x86_64::_mm_set_epi64x(high as i64, low as i64)) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn block_bytes(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// A tag may be zero; an entry may not, because slice 0 belongs to the map and is the address of no block.
#[inline]
fn tag_of(block: &Block) -> u32 {
    u128::from_le_bytes(block.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks enough for two batches, for 64 at once beside them, and for single ones.
    const SOME: u32 = 2 * BATCH + 70;

    fn make(codec: &EntryCodec, lpn: u32, ppn: Ppn, generation: u32) -> HpbEntry {
        let mut out = Vec::new();
        codec.make_all(lpn, 1, generation, |_| Some(ppn), &mut out);
        HpbEntry(out.try_into().unwrap())
    }

    #[test]
    fn the_tag_is_aes_128() {
        // FIPS-197, appendix C.1: the block 00112233..ff under the key 000102..0f is 69c4e0d8....
        let codec = EntryCodec::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let mut block = Array(u128::to_le_bytes(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100));
        codec.cipher.encrypt_block(&mut block);
        assert_eq!(tag_of(&block).to_le_bytes(), [0x69, 0xc4, 0xe0, 0xd8]);
    }

    #[test]
    fn the_message_is_four_little_endian_words() {
        let bytes = message(0x0403_0201, 0x0807_0605, 0x0C0B_0A09).0;
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0]);
    }

    #[test]
    fn a_batch_equals_its_parts_and_leaves_gaps_zero() {
        let codec = EntryCodec::new([1, 2]);
        let mut out = Vec::new();
        codec.make_all(100, SOME, 3, |lpn| (lpn != 105).then_some(Ppn(lpn * 2)), &mut out);
        for (i, bytes) in out.chunks(8).enumerate() {
            let lpn = 100 + i as u32;
            let expected = if lpn == 105 { HpbEntry::ZERO } else { make(&codec, lpn, Ppn(lpn * 2), 3) };
            assert_eq!(bytes, expected.0);
        }
    }

    #[test]
    fn a_tag_binds_block_address_generation_and_key() {
        let codec = EntryCodec::new([1, 2]);
        let entry = make(&codec, 10, Ppn(20), 30);
        assert_eq!((codec.address(entry), codec.run(entry)), (Ppn(20), 1));
        assert!(codec.open(10, entry, 30).is_some());
        assert!(codec.open(11, entry, 30).is_none());
        assert!(codec.open(10, entry, 31).is_none());
        assert!(EntryCodec::new([1, 3]).open(10, entry, 30).is_none());
        for bit in 0..64 {
            let mut forged = entry;
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert!(codec.open(10, forged, 30).is_none(), "bit {bit}");
        }
    }

    fn encrypted() -> EntryCodec {
        EntryCodec::new([1, 2]).protecting(&EntryConfig { protection: Protection::Encrypted, ..EntryConfig::DEFAULT })
    }

    #[test]
    fn an_encrypted_entry_opens_only_for_its_block_its_hand_out_and_its_key() {
        let codec = encrypted();
        let mut out = Vec::new();
        codec.make_all(100, SOME, 3, |lpn| (lpn != 105).then_some(Ppn(lpn * 2)), &mut out);
        for (lpn, bytes) in (100..).zip(out.chunks(8)) {
            let entry = HpbEntry(bytes.try_into().unwrap());
            if lpn == 105 {
                assert_eq!(entry, HpbEntry::ZERO);
                continue;
            }
            assert_eq!(entry, make(&codec, lpn, Ppn(lpn * 2), 3));
            assert_eq!(codec.open(lpn, entry, 3), Some(lpn * 2));
            assert_ne!(codec.address(entry), Ppn(lpn * 2), "the host learns no address");
            assert_eq!((codec.open(lpn + 1, entry, 3), codec.open(lpn, entry, 4)), (None, None));
            assert_eq!(codec.with_key([1, 3]).open(lpn, entry, 3), None);
            for bit in 0..64 {
                let mut changed = entry;
                changed.0[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(codec.open(lpn, changed, 3), None, "bit {bit}");
            }
        }
    }

    /// Entries of adjacent addresses, blocks or generations differ in about half of their 64 bits, within statistical
    /// deviation.
    #[test]
    fn encrypted_entries_of_neighbours_have_nothing_in_common() {
        let codec = encrypted();
        let word = |lpn, ppn, generation| u64::from_be_bytes(make(&codec, lpn, Ppn(ppn), generation).0);
        let mut differ = [0u32; 3];
        for i in 1..=1000 {
            let one = word(i, 5000 + i, 7);
            differ[0] += (one ^ word(i, 5001 + i, 7)).count_ones();
            differ[1] += (one ^ word(i + 1, 5000 + i, 7)).count_ones();
            differ[2] += (one ^ word(i, 5000 + i, 8)).count_ones();
        }
        // The mean of 1000 sums of 64 fair coins is 32 with a standard deviation of 4 / sqrt(1000) = 0.13.
        assert!(differ.iter().all(|&n| (31_200..32_800).contains(&n)), "{differ:?}");
    }

    /// Recorded entries: a change of the network would invalidate every entry that hosts hold.
    #[test]
    fn rounds_are_those_of_a_feistel_network() {
        let (codec, lpn, generation) = (encrypted(), 42, 9);
        let (mut left, mut right) = (0x1234_5678u32, 0u32);
        for round in 0..8u32 {
            let words = [lpn, right, generation, round + 1];
            let mut block = Array(std::array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4]));
            codec.cipher.encrypt_block(&mut block);
            (left, right) = (right, left ^ u32::from_le_bytes(block.0[..4].try_into().unwrap()));
        }
        let expected = HpbEntry((u64::from(left) << 32 | u64::from(right)).to_be_bytes());
        assert_eq!(make(&codec, lpn, Ppn(0x1234_5678), generation), expected);
    }

    #[test]
    fn a_short_tag_is_the_lower_bits_of_the_whole_one() {
        let whole = EntryCodec::new([1, 2]);
        let short = whole.clone().protecting(&EntryConfig { tag_bits: 12, ..EntryConfig::DEFAULT });
        let (entry, long) = (make(&short, 10, Ppn(20), 30), make(&whole, 10, Ppn(20), 30));
        assert_eq!(u64::from_be_bytes(entry.0), u64::from_be_bytes(long.0) & 0xFFFF_FFFF_0000_0FFF);
        assert_eq!(short.open(10, entry, 30), Some(20));
        assert_ne!(long, entry);
        assert_eq!(short.open(10, long, 30), None, "bits beyond the tag are zeros");
    }

    #[test]
    fn without_protection_an_entry_is_an_address() {
        let codec =
            EntryCodec::new([1, 2]).protecting(&EntryConfig { protection: Protection::None, ..EntryConfig::DEFAULT });
        assert_eq!(make(&codec, 10, Ppn(20), 30), HpbEntry([0, 0, 0, 20, 0, 0, 0, 0]));
        assert_eq!(codec.open(11, HpbEntry([0, 0, 0, 20, 9, 9, 9, 9]), 1), Some(20));
    }

    #[test]
    fn runs_are_said_rounded_down_and_covered_by_the_tag() {
        let codec = EntryCodec::new([1, 2]).with_runs();
        let mut out = Vec::new();
        // 300 in a row, one elsewhere, one without an address, nine in a row.
        let address = |lpn: u32| match lpn {
            0..300 => Some(Ppn(1000 + lpn)),
            300 => Some(Ppn(5)),
            301 => None,
            _ => Some(Ppn((1 << ADDRESS_BITS) - 20 + lpn - 302)),
        };
        codec.make_all(0, 311, 7, address, &mut out);
        let entries: Vec<HpbEntry> = out.chunks(8).map(|c| HpbEntry(c.try_into().unwrap())).collect();
        let lengths: Vec<u32> = entries.iter().map(|&e| codec.run(e)).collect();
        assert_eq!(lengths[..46], [255; 46]);
        assert_eq!((lengths[46], lengths[172], lengths[173]), (128, 128, 64));
        assert_eq!(lengths[284..300], [16, 12, 12, 12, 12, 10, 10, 8, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(
            (entries[301], lengths[300], &lengths[302..]),
            (HpbEntry::ZERO, 1, &[8, 8, 7, 6, 5, 4, 3, 2, 1][..])
        );
        for (lpn, &entry) in entries.iter().enumerate().filter(|(lpn, _)| *lpn != 301) {
            assert_eq!(codec.address(entry), address(lpn as u32).unwrap());
            assert!(codec.open(lpn as u32, entry, 7).is_some());
            let mut longer = entry;
            longer.0[0] ^= 0x10;
            assert!(codec.open(lpn as u32, longer, 7).is_none(), "another length");
        }
    }
}
