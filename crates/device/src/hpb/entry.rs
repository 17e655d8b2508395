// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 8 bytes that stand for a block in the host's memory: 4 bytes of physical address and 4 bytes of a keyed tag that
//! binds the address to the logical block and to one hand-out of the map. Nothing in it is secret but the key.
//!
//! With HPB 2.0 the upper bits of the address say how many blocks lay in a row from there when the entry was made. The tag
//! covers them as well.
//!
//! A host that makes up a tag is believed once in 2^32 tries.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use readpath_flash::Ppn;
use readpath_proto::typed::HpbEntry;

type Block = aes::Block;

/// Makes and checks entries. The tag is the first 4 bytes of one AES-128 block: the message has a fixed length of one
/// block, so plain encryption is a sound authentication code, and controllers have the engine for it.
#[derive(Clone)]
pub struct EntryCodec {
    cipher: Aes128Enc,
    /// Entries say how many blocks lie in a row.
    runs: bool,
}

/// Bits of an address that leave room for the length of a run.
pub const ADDRESS_BITS: u32 = 28;
/// Lengths that 4 bits can say; others are rounded down.
const RUNS: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128, 255];

impl EntryCodec {
    /// A codec with the device's key.
    pub fn new(key: [u64; 2]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&key[0].to_le_bytes());
        bytes[8..].copy_from_slice(&key[1].to_le_bytes());
        EntryCodec { cipher: Aes128Enc::new(&Array(bytes)), runs: false }
    }

    /// The same for entries that say how many blocks lie in a row. All addresses are below 2^`ADDRESS_BITS`.
    pub fn with_runs(self) -> Self {
        EntryCodec { runs: true, ..self }
    }

    /// The same with another key.
    pub fn with_key(&self, key: [u64; 2]) -> Self {
        EntryCodec { runs: self.runs, ..EntryCodec::new(key) }
    }

    /// The address in `entry`, whether or not it may be believed.
    #[inline]
    pub fn address(&self, entry: HpbEntry) -> Ppn {
        let word = place(entry);
        Ppn(if self.runs { word & ((1 << ADDRESS_BITS) - 1) } else { word })
    }

    /// How many blocks lay in a row from the address in `entry` when it was made, at least.
    pub fn run(&self, entry: HpbEntry) -> u32 {
        if self.runs { u32::from(RUNS[(place(entry) >> ADDRESS_BITS) as usize]) } else { 1 }
    }

    /// Appends the entries of `count` blocks from logical page `lpn` on, valid for the hand-out `generation`, to `out`. A
    /// block without an address gets the entry of all zeros. Runs end with the last of these blocks.
    pub fn make_all(
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
        // What the tag is made of stands in its place for a while.
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
        // In batches, which processors with AES instructions work on side by side.
        const BATCH: u32 = 32;
        for (batch, entries) in entries.chunks_mut(BATCH as usize).enumerate() {
            let mut blocks = [Block::default(); BATCH as usize];
            for ((i, block), entry) in blocks.iter_mut().enumerate().zip(entries.iter()) {
                *block = message(lpn + batch as u32 * BATCH + i as u32, place(HpbEntry(*entry)), generation);
            }
            self.cipher.encrypt_blocks(&mut blocks[..entries.len()]);
            for (block, entry) in blocks.iter().zip(entries).filter(|(_, entry)| **entry != HpbEntry::ZERO.0) {
                entry[4..].copy_from_slice(&tag_of(block).to_be_bytes());
            }
        }
    }

    /// Whether this device made `entry` for `lpn` in the hand-out `generation`. One comparison of one word: its time
    /// does not tell how much of a guess was right.
    #[inline(always)]
    pub fn is_authentic(&self, lpn: u32, entry: HpbEntry, generation: u32) -> bool {
        let word = u64::from_be_bytes(entry.0);
        let mut block = message(lpn, (word >> 32) as u32, generation);
        self.cipher.encrypt_block(&mut block);
        tag_of(&block) == word as u32
    }
}

/// Address and length of the run.
#[inline(always)]
fn place(entry: HpbEntry) -> u32 {
    (u64::from_be_bytes(entry.0) >> 32) as u32
}

/// The 4 bits that say a run of so many blocks, or the next fewer that can be said.
fn code_of(run: u32) -> u32 {
    (RUNS.partition_point(|&n| u32::from(n) <= run) - 1) as u32
}

#[inline(always)]
fn message(lpn: u32, place: u32, generation: u32) -> Block {
    let low = u64::from(place) << 32 | u64::from(lpn);
    Array(block_bytes(low, u64::from(generation)))
}

/// Two words as 16 bytes, the lower first, each little-endian.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code)]
fn block_bytes(low: u64, high: u64) -> [u8; 16] {
    // The cipher loads the block as a whole. Had it been stored as two words, the load would have to wait until both
    // stores have left the processor's store buffer.
    // SAFETY: every x86-64 processor has SSE2, and both types of the transmutation are 16 plain bytes.
    unsafe { std::mem::transmute(std::arch::x86_64::_mm_set_epi64x(high as i64, low as i64)) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn block_bytes(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// A tag may be zero; an entry is not, because slice 0 belongs to the map and is nobody's address.
#[inline]
fn tag_of(block: &Block) -> u32 {
    u128::from_le_bytes(block.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

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
        codec.make_all(100, 70, 3, |lpn| (lpn != 105).then_some(Ppn(lpn * 2)), &mut out);
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
        assert!(codec.is_authentic(10, entry, 30));
        assert!(!codec.is_authentic(11, entry, 30));
        assert!(!codec.is_authentic(10, entry, 31));
        assert!(!EntryCodec::new([1, 3]).is_authentic(10, entry, 30));
        for bit in 0..64 {
            let mut forged = entry;
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!codec.is_authentic(10, forged, 30), "bit {bit}");
        }
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
            assert!(codec.is_authentic(lpn as u32, entry, 7));
            let mut longer = entry;
            longer.0[0] ^= 0x10;
            assert!(!codec.is_authentic(lpn as u32, longer, 7), "another length");
        }
    }
}
