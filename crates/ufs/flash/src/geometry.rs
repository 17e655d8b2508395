// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structure of a flash array: channels, dies, planes, blocks, pages, slices; and the order of physical addresses. It
//! knows no time.

use readpath_kit::{BLOCK_BYTES, Bound, Divisor};

/// A physical slice of 4 KiB. Addresses run through one die's multi-plane page first, then across the dies, then along
/// the pages of the superblock, then to the next superblock: consecutive addresses are written by consecutive programs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ppn(pub u32);

/// The shape of a flash array. A *superblock* is the blocks of one index on every plane of every die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Channels (buses) of the array.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die, programmed together.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page, a power-of-two multiple of 4096.
    pub page_bytes: u32,
}

readpath_kit::named! {
    /// How the planes of a die read. They are programmed and erased together in any case.
    pub enum PlaneReads {
        /// A die reads a page of one plane at a time.
        One = "one",
        /// A die reads pages of one multi-plane page at the same time, if they are read together.
        Together = "together",
        /// Each plane reads by itself.
        Apart = "apart",
        /// Each plane reads by itself, but what several of them are to read together of a multi-plane page takes the
        /// whole die, as a program does.
        Both = "both",
    }
}

/// Why a geometry is impossible: the field at fault, and what would be valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeometryError {
    /// Path of the field, as in `geometry.channels`.
    pub field: &'static str,
    /// The fault, and what would be valid.
    pub message: String,
}

/// Place of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Superblock.
    pub superblock: u32,
    /// Die, numbered so that neighbours are on different channels: channel = die mod channels.
    pub die: u32,
    /// Multi-plane page within the superblock's blocks.
    pub page: u32,
    /// Slice within the multi-plane page.
    pub slice: u32,
}

/// Finds the die of a slice, or its plane if planes read apart, without divisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServersOfSlices {
    unit: Divisor,
    servers: Divisor,
}

impl ServersOfSlices {
    /// See [`Geometry::servers_of_slices`].
    #[inline(always)]
    pub fn server_of(self, ppn: Ppn) -> u32 {
        self.servers.remainder(self.unit.divide(ppn.0))
    }
}

impl Geometry {
    /// Bounds of every field, by its path in a device.
    pub const BOUNDS: &[Bound<Geometry>] = &[
        Bound::count("geometry.channels", 1, 64, |g| Some(g.channels.into())),
        Bound::count("geometry.dies_per_channel", 1, 64, |g| Some(g.dies_per_channel.into())),
        Bound::count("geometry.planes", 1, 16, |g| Some(g.planes.into())),
        Bound::count("geometry.blocks_per_plane", 1, 1 << 20, |g| Some(g.blocks_per_plane.into())),
        Bound::count("geometry.pages_per_block", 1, 1 << 14, |g| Some(g.pages_per_block.into())),
        Bound::count("geometry.page_bytes", 4096, 1 << 17, |g| Some(g.page_bytes.into())),
    ];

    /// Checks every field and the sizes derived from them.
    pub fn check(&self) -> Result<(), GeometryError> {
        for bound in Geometry::BOUNDS {
            if let Some(message) = bound.violation(self) {
                return Err(GeometryError { field: bound.field, message });
            }
        }
        if !self.page_bytes.is_power_of_two() {
            let message = format!("is {}; it must be a power of two", self.page_bytes);
            return Err(GeometryError { field: "geometry.page_bytes", message });
        }
        let slices = u64::from(self.dies())
            * u64::from(self.planes)
            * u64::from(self.blocks_per_plane)
            * u64::from(self.pages_per_block)
            * u64::from(self.page_bytes / BLOCK_BYTES);
        if slices > u64::from(Geometry::MAX_SLICES) {
            let message = format!(
                "makes {slices} slices of 4 KiB; physical addresses have room for {} (just below 8 TiB)",
                Geometry::MAX_SLICES
            );
            return Err(GeometryError { field: "geometry.blocks_per_plane", message });
        }
        Ok(())
    }

    /// The largest array that 31-bit physical addresses reach, minus values reserved for other meanings.
    pub const MAX_SLICES: u32 = 0x7fff_0000 - 1;

    /// Dies of the array.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Slices of one page.
    pub fn slices_per_page(&self) -> u32 {
        self.page_bytes / BLOCK_BYTES
    }

    /// The most slices that one array operation reads: those of a page, or of a multi-plane page.
    pub fn slices_per_read(&self, planes: PlaneReads) -> u32 {
        match planes {
            PlaneReads::One | PlaneReads::Apart => self.slices_per_page(),
            PlaneReads::Together | PlaneReads::Both => self.slices_per_unit(),
        }
    }

    /// Slices that one die programs together: a page on every plane.
    pub fn slices_per_unit(&self) -> u32 {
        self.slices_per_page() * self.planes
    }

    /// Multi-plane pages of a superblock.
    pub fn units_per_superblock(&self) -> u32 {
        self.dies() * self.pages_per_block
    }

    /// Slices of a superblock.
    pub fn slices_per_superblock(&self) -> u32 {
        self.units_per_superblock() * self.slices_per_unit()
    }

    /// Superblocks of the array.
    pub fn superblocks(&self) -> u32 {
        self.blocks_per_plane
    }

    /// Slices of the array.
    pub fn slices(&self) -> u32 {
        self.superblocks() * self.slices_per_superblock()
    }

    /// The channel of a die.
    #[inline]
    pub fn channel_of(&self, die: u32) -> u32 {
        die % self.channels
    }

    /// The die of a slice.
    #[inline]
    pub fn die_of(&self, ppn: Ppn) -> u32 {
        ppn.0 / self.slices_per_unit() % self.dies()
    }

    /// [`Geometry::die_of`] for hot paths; with planes that read apart, the plane: die x planes + plane of the die.
    pub fn servers_of_slices(&self, planes: PlaneReads) -> ServersOfSlices {
        let apart = self.planes_apart(planes);
        let (unit, servers) = (self.slices_per_unit() / apart, self.dies() * apart);
        ServersOfSlices { unit: Divisor::new(unit), servers: Divisor::new(servers) }
    }

    /// Parts of a die that read by themselves.
    pub fn planes_apart(&self, planes: PlaneReads) -> u32 {
        match planes {
            PlaneReads::One | PlaneReads::Together => 1,
            PlaneReads::Apart | PlaneReads::Both => self.planes,
        }
    }

    /// Where a slice lies.
    pub fn place(&self, ppn: Ppn) -> Place {
        let unit = ppn.0 / self.slices_per_unit();
        let in_superblock = unit % self.units_per_superblock();
        Place {
            superblock: unit / self.units_per_superblock(),
            die: in_superblock % self.dies(),
            page: in_superblock / self.dies(),
            slice: ppn.0 % self.slices_per_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const G: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 3,
        planes: 2,
        blocks_per_plane: 5,
        pages_per_block: 7,
        page_bytes: 16384,
    };

    proptest! {
        #[test]
        fn place_and_ppn_are_inverse(ppn in 0..G.slices()) {
            let place = G.place(Ppn(ppn));
            for planes in [PlaneReads::One, PlaneReads::Together] {
                prop_assert_eq!(G.servers_of_slices(planes).server_of(Ppn(ppn)), place.die);
            }
            let plane = place.die * G.planes + place.slice / G.slices_per_page();
            for planes in [PlaneReads::Apart, PlaneReads::Both] {
                prop_assert_eq!(G.servers_of_slices(planes).server_of(Ppn(ppn)), plane);
            }
            let unit = place.superblock * G.units_per_superblock() + place.page * G.dies() + place.die;
            prop_assert_eq!(unit * G.slices_per_unit() + place.slice, ppn);
            prop_assert_eq!(G.die_of(Ppn(ppn)), place.die);
        }
    }

    #[test]
    fn sizes_follow_from_the_fields() {
        assert_eq!((G.dies(), G.slices_per_unit(), G.slices_per_superblock(), G.slices()), (6, 8, 336, 1680));
        assert!(G.check().is_ok());
    }

    #[test]
    fn impossible_shapes_name_the_field() {
        assert_eq!(Geometry { channels: 0, ..G }.check().unwrap_err().field, "geometry.channels");
        assert_eq!(Geometry { page_bytes: 6000, ..G }.check().unwrap_err().field, "geometry.page_bytes");
        let huge = Geometry { blocks_per_plane: 1 << 20, pages_per_block: 1 << 14, ..G };
        assert_eq!(huge.check().unwrap_err().field, "geometry.blocks_per_plane");
    }
}
