// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation: the map and where it lies, what of it SRAM knows better, the cache of map pages, superblocks and
//! the state that flash keeps. It knows nothing of SCSI, HPB or time.

mod changes;
mod durable;
mod map;
mod map_cache;
mod spare;
mod superblock;

pub use changes::{Change, Changes, Taken};
pub use durable::{Checkpoint, Durable, Held, Logged, Record};
pub use map::{Entry, Mapping, PageMap};
pub use map_cache::{FrameState, MapCache};
pub use spare::Spares;
pub use superblock::{ANCHORS, NoSpace, State, Stream, Superblock, Superblocks, VictimPolicy, Wear};
