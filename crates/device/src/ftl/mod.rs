// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation: the map and where it lies, the cache of map pages in SRAM, and the allocation of superblocks. It
//! knows nothing of SCSI, HPB or time.

mod alloc;
mod map;
mod map_cache;

pub use alloc::{Allocator, NoSpace};
pub use map::{Mapping, PageMap};
pub use map_cache::{FrameState, MapCache};
