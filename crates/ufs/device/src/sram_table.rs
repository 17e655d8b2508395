// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of the device's SRAM by purpose.

macro_rules! tables {
    ($($id:ident $name:literal $what:literal;)*) => {
        /// A table of the device's SRAM.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum SramTable {
            $(#[doc = $what] $id,)*
        }

        impl SramTable {
            /// Name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$id => $name,)*
                }
            }
        }
    };
}

tables! {
    MapPagesInDram "map pages in DRAM" "Which pages of the map are in DRAM.";
    MapCache "map cache" "Pages of the map.";
    MapCacheIndex "map cache index" "Where they are.";
    MapRuns "map runs" "Runs of the map, one entry each.";
    HostMapIndex "host map index" "Which pages of the map are in host memory.";
    HostMapFetches "host map fetches" "What is fetched from there.";
    MapDirectory "map directory" "Where in flash each page of the map is.";
    Zones "zones" "Where each zone begins in flash, and how much of it is written.";
    ZoneParts "parts of zones" "What of zones lies elsewhere, or in no whole program.";
    WriteBufferIndex "write buffer index" "Logical page and state of each slot of the write buffer.";
    Superblocks "superblocks" "State and counts of the superblocks.";
    WriteBuffer "write buffer" "Data that is not in flash yet.";
    Changes "table of changes" "Entries of the map that flash does not have yet.";
    Journal "journal" "Trims that flash does not have yet.";
    MapWrites "map pages on their way" "Pages of the map that are being written.";
    MoveBuffer "move buffer" "Data that is being moved.";
    SlicesToMove "list of slices to move" "What of superblocks that are emptied is current.";
    OpenSuperblocks "tables of open superblocks" "Logical pages of superblocks that are being written.";
    WrittenBlocks "table of written blocks" "Blocks that are written often.";
    Hpb "HPB tables" "Regions and sub-regions of HPB, or groups of the prototype.";
    Recommendations "recommendations" "Recommendations that the host has not received yet.";
    HpbReadBuffers "HPB read buffers" "Entries that are being given out.";
    ReadData "read data" "Data on its way to the host.";
    PreRequests "HPB pre-requests" "Entries that pre-requests brought.";
    HpbReadEntries "entries of HPB READs" "Entries of commands in progress.";
}

impl SramTable {
    /// Whether the table serves the map that the device itself holds.
    pub const fn is_of_map(self) -> bool {
        use SramTable::*;
        matches!(
            self,
            MapPagesInDram | MapCache | MapCacheIndex | MapRuns | MapDirectory | MapWrites | Zones | ZoneParts
        )
    }
}
