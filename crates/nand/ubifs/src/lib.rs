// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader of UBIFS volumes.
//!
//! This crate knows nodes, the index, the journal and the properties tree of UBIFS; it reaches flash only through
//! logical erase blocks ([`Lebs`]) and never writes. Every read has the position, length and order of Linux's own
//! (`fs/ubifs`), so mounting, listing or reading a volume produces the stream that UBI would see.

#![warn(unreachable_pub)]

mod check;
mod compress;
mod error;
mod files;
mod flash;
mod journal;
mod key;
mod lebs;
mod lpt;
mod master;
mod node;
mod orphans;
pub mod sample;
mod scan;
mod session;
mod superblock;
mod tnc;
mod ubi;
mod volume;

pub use check::{CheckCounts, CheckReport, check};
pub use compress::{BLOCK_BYTES, Compression, Expander};
pub use error::{Damage, DamageKind, Place, Result, UbifsError};
pub use files::{Attribute, Piece};
pub use flash::NodeRef;
pub use journal::Bud;
pub use key::{Key, KeyType, NameHash};
pub use lebs::{FlashRead, LebError, LebSizes, Lebs, ReadKind, Recorder};
pub use lpt::{LptShape, Properties, crc16};
pub use master::{Master, Totals};
pub use node::{Entry, FileType, Header, Inode, NODE_MAGIC, NodeError, NodeType, Time, check as check_node, crc32};
pub use scan::{Recovered, ScanError, Scanned, ScannedLeb, Tail, recover as recover_leb, scan as scan_leb};
pub use session::Session;
pub use superblock::Superblock;
pub use ubi::UbiVolume;
pub use volume::{MountMode, MountReport, Ubifs};
