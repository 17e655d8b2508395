// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 8 bytes that stand for a block in the host's memory: 4 bytes of physical address and 4 bytes of a keyed tag that
//! binds the address to the logical block and to one hand-out of the map. Nothing in it is secret but the key.
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
}

impl EntryCodec {
    /// A codec with the device's key.
    pub fn new(key: [u64; 2]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&key[0].to_le_bytes());
        bytes[8..].copy_from_slice(&key[1].to_le_bytes());
        EntryCodec { cipher: Aes128Enc::new(&Array(bytes)) }
    }

    /// The address in `entry`, whether or not it may be believed.
    #[inline]
    pub fn address(entry: HpbEntry) -> Ppn {
        Ppn((u64::from_be_bytes(entry.0) >> 32) as u32)
    }

    /// Appends the entries of `count` blocks from logical page `lpn` on, valid for the hand-out `generation`, to `out`. A
    /// block without an address gets the entry of all zeros.
    pub fn make_all(
        &self,
        lpn: u32,
        count: u32,
        generation: u32,
        address: impl Fn(u32) -> Option<Ppn>,
        out: &mut Vec<u8>,
    ) {
        // In batches, which processors with AES instructions work on side by side.
        const BATCH: u32 = 32;
        out.reserve(count as usize * HpbEntry::BYTES);
        let mut at = 0;
        while at < count {
            let n = BATCH.min(count - at);
            let mut blocks = [Block::default(); BATCH as usize];
            let mut addresses = [None; BATCH as usize];
            for i in 0..n {
                let (lpn, ppn) = (lpn + at + i, address(lpn + at + i));
                addresses[i as usize] = ppn;
                blocks[i as usize] = message(lpn, ppn.unwrap_or_default(), generation);
            }
            self.cipher.encrypt_blocks(&mut blocks[..n as usize]);
            for (block, ppn) in blocks[..n as usize].iter().zip(addresses) {
                let entry = ppn.map_or(HpbEntry::ZERO, |ppn| entry(ppn, tag_of(block)));
                out.extend_from_slice(&entry.0);
            }
            at += n;
        }
    }

    /// Whether this device made `entry` for `lpn` in the hand-out `generation`. One comparison of one word: its time
    /// does not tell how much of a guess was right.
    #[inline(always)]
    pub fn is_authentic(&self, lpn: u32, entry: HpbEntry, generation: u32) -> bool {
        let word = u64::from_be_bytes(entry.0);
        let mut block = message(lpn, Ppn((word >> 32) as u32), generation);
        self.cipher.encrypt_block(&mut block);
        tag_of(&block) == word as u32
    }
}

#[inline(always)]
fn message(lpn: u32, ppn: Ppn, generation: u32) -> Block {
    let low = u64::from(ppn.0) << 32 | u64::from(lpn);
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

#[inline]
fn entry(ppn: Ppn, tag: u32) -> HpbEntry {
    HpbEntry((u64::from(ppn.0) << 32 | u64::from(tag)).to_be_bytes())
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
        let bytes = message(0x0403_0201, Ppn(0x0807_0605), 0x0C0B_0A09).0;
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
        assert_eq!(EntryCodec::address(entry), Ppn(20));
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
}
