// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 8 bytes that stand for a block in the host's memory: 4 bytes of physical address and 4 bytes of a keyed tag that
//! binds the address to the logical block and to one hand-out of the map. Nothing in it is secret but the key.
//!
//! A host that makes up a tag is believed once in 2^32 tries.

use readpath_flash::Ppn;
use readpath_proto::typed::HpbEntry;
use siphasher::sip::SipHasher24;

/// Makes and checks entries.
#[derive(Clone)]
pub struct EntryCodec {
    hasher: SipHasher24,
}

impl EntryCodec {
    /// A codec with the device's key.
    pub fn new(key: [u64; 2]) -> Self {
        EntryCodec { hasher: SipHasher24::new_with_keys(key[0], key[1]) }
    }

    /// The entry for `lpn` at `ppn`, valid for the hand-out `generation`.
    #[inline]
    pub fn make(&self, lpn: u32, ppn: Ppn, generation: u32) -> HpbEntry {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&ppn.0.to_be_bytes());
        bytes[4..].copy_from_slice(&self.tag(lpn, ppn, generation).to_be_bytes());
        HpbEntry(bytes)
    }

    /// The address in `entry`, whether or not it may be believed.
    #[inline]
    pub fn address(entry: HpbEntry) -> Ppn {
        Ppn((u64::from_be_bytes(entry.0) >> 32) as u32)
    }

    /// Whether this device made `entry` for `lpn` in the hand-out `generation`. One comparison of one word: its time
    /// does not tell how much of a guess was right.
    #[inline]
    pub fn is_authentic(&self, lpn: u32, entry: HpbEntry, generation: u32) -> bool {
        let word = u64::from_be_bytes(entry.0);
        self.tag(lpn, Ppn((word >> 32) as u32), generation) == word as u32
    }

    /// SipHash-2-4 over three words, cut to 32 bits. Never zero, so that no valid entry is all zeros.
    #[inline]
    fn tag(&self, lpn: u32, ppn: Ppn, generation: u32) -> u32 {
        let mut message = [0; 12];
        message[..4].copy_from_slice(&lpn.to_le_bytes());
        message[4..8].copy_from_slice(&ppn.0.to_le_bytes());
        message[8..].copy_from_slice(&generation.to_le_bytes());
        (self.hasher.hash(&message) as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_binds_block_address_generation_and_key() {
        let codec = EntryCodec::new([1, 2]);
        let entry = codec.make(10, Ppn(20), 30);
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
