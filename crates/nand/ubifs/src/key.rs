// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the index and the hashes of names.
//!
//! Facts: Linux `fs/ubifs/key.h`.

use std::fmt;

/// Types of keys; the numbers are those on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// An inode.
    Inode,
    /// A block of data.
    Data,
    /// A directory entry.
    Dentry,
    /// An entry of an extended attribute.
    Xattr,
}

const LOW_BITS: u32 = 29;
/// The part of a key's second word below its type.
pub(crate) const LOW_MASK: u32 = (1 << LOW_BITS) - 1;

/// A key: inode number, then type and block number or hash. Order is that of the index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Inode number.
    pub ino: u32,
    /// Type (3 bits) and block number or hash (29 bits).
    pub rest: u32,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Some(KeyType::Inode) => write!(f, "inode {}", self.ino),
            Some(KeyType::Data) => write!(f, "data {} block {}", self.ino, self.low()),
            Some(KeyType::Dentry) => write!(f, "entry of {} hash {:#x}", self.ino, self.low()),
            Some(KeyType::Xattr) => write!(f, "attribute of {} hash {:#x}", self.ino, self.low()),
            None => write!(f, "key {} {:#010x}", self.ino, self.rest),
        }
    }
}

impl Key {
    fn new(ino: u32, kind: u32, low: u32) -> Key {
        Key { ino, rest: kind << LOW_BITS | low & LOW_MASK }
    }

    /// The inode `ino`.
    pub fn inode(ino: u32) -> Key {
        Key::new(ino, 0, 0)
    }

    /// Block `block` of 4096 bytes of inode `ino`.
    pub fn data(ino: u32, block: u32) -> Key {
        Key::new(ino, 1, block)
    }

    /// Entries of directory `ino` with this hash.
    pub fn dentry(ino: u32, hash: u32) -> Key {
        Key::new(ino, 2, hash)
    }

    /// Extended attributes of inode `ino` with this hash.
    pub fn xattr(ino: u32, hash: u32) -> Key {
        Key::new(ino, 3, hash)
    }

    /// The largest key of inode `ino` that its deletion removes.
    pub(crate) fn last_of(ino: u32) -> Key {
        Key { ino, rest: u32::MAX }
    }

    /// The type; `None` for invalid keys.
    pub fn kind(self) -> Option<KeyType> {
        match self.rest >> LOW_BITS {
            0 => Some(KeyType::Inode),
            1 => Some(KeyType::Data),
            2 => Some(KeyType::Dentry),
            3 => Some(KeyType::Xattr),
            _ => None,
        }
    }

    /// Whether several names may share the key.
    pub(crate) fn is_hashed(self) -> bool {
        matches!(self.kind(), Some(KeyType::Dentry | KeyType::Xattr))
    }

    /// Block number or hash.
    pub fn low(self) -> u32 {
        self.rest & LOW_MASK
    }

    /// The key in the first 8 of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Key {
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Key { ino: word(0), rest: word(4) }
    }
}

/// Hash of names (superblock field `key_hash`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameHash {
    /// The R5 hash of ReiserFS over signed bytes.
    R5,
    /// The first four bytes; collides often, made for tests.
    Test,
}

impl NameHash {
    /// The 29-bit hash of a name; 0 to 2 are kept for `.`, `..` and the end of a directory.
    pub fn of(self, name: &[u8]) -> u32 {
        let hash = match self {
            NameHash::R5 => name.iter().fold(0u32, |a, &byte| {
                let c = i32::from(byte as i8);
                a.wrapping_add((c << 4) as u32).wrapping_add((c >> 4) as u32).wrapping_mul(11)
            }),
            NameHash::Test => {
                let mut word = [0; 4];
                let n = name.len().min(4);
                word[..n].copy_from_slice(&name[..n]);
                u32::from_le_bytes(word)
            }
        };
        let hash = hash & LOW_MASK;
        if hash <= 2 { hash + 3 } else { hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_collisions_and_signs() {
        // Worked by hand: 'a' is 97: (97*16 + 6) * 11 = 17138.
        assert_eq!(NameHash::R5.of(b"a"), 17_138);
        // Byte 0xFF is -1: (-16 - 1) * 11 = -187, of which 29 bits are kept.
        assert_eq!(NameHash::R5.of(&[0xFF]), (-187i32) as u32 & LOW_MASK);
        // Reserved values are shifted up.
        assert_eq!(NameHash::Test.of(&[1]), 4);
        assert_eq!(NameHash::R5.of(b""), 3);
    }

    #[test]
    fn order_is_inode_then_type_then_low_part() {
        let keys = [
            Key::inode(1),
            Key::data(1, 0),
            Key::data(1, LOW_MASK),
            Key::dentry(1, 3),
            Key::xattr(1, 3),
            Key::last_of(1),
            Key::inode(2),
        ];
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
    }
}
