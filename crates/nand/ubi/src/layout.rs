// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of an erase block: EC header, VID header, data. The rules are those of `io_init` in Linux,
//! drivers/mtd/ubi/build.c.

use crate::mtd::{Geometry, GeometryError};

/// Bytes of either header.
pub const HEADER_BYTES: usize = 64;
/// Most volumes of a device.
pub(crate) const MAX_VOLUMES: u32 = 128;
/// Bytes of a record of the volume table.
pub const RECORD_BYTES: usize = 172;

/// Offsets and sizes inside of a physical erase block, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Bytes of a page, UBI's min_io_size.
    pub page_bytes: u32,
    /// Bytes that are programmed at a time in headers.
    pub subpage_bytes: u32,
    /// Bytes of a physical erase block.
    pub peb_bytes: u32,
    /// Offset of the VID header.
    pub vid_offset: u32,
    /// Offset of the data.
    pub data_offset: u32,
    /// Bytes of a logical erase block.
    pub leb_bytes: u32,
}

impl Layout {
    /// The layout of a device; `vid_offset` defaults to UBI's own. It has to be a multiple of 4 and to leave room for
    /// the EC header before it.
    pub fn new(geometry: &Geometry, vid_offset: Option<u32>) -> Result<Layout, GeometryError> {
        geometry.check()?;
        let Geometry { peb_bytes, page_bytes, subpage_bytes, .. } = *geometry;
        let header = HEADER_BYTES as u32;
        let vid_offset = vid_offset.unwrap_or(header.next_multiple_of(subpage_bytes));
        let wrong = |right| Err(GeometryError { key: "VID header offset", value: vid_offset.into(), right });
        if !vid_offset.is_multiple_of(4) {
            return wrong("a multiple of 4 is needed");
        }
        if vid_offset < header {
            return wrong("the EC header needs the first 64 bytes");
        }
        if vid_offset > peb_bytes - page_bytes - header {
            return wrong("the VID header and a page of data have to fit into the PEB");
        }
        let data_offset = (vid_offset + header).next_multiple_of(page_bytes);
        if data_offset + page_bytes > peb_bytes {
            return wrong("the VID header and a page of data have to fit into the PEB");
        }
        let leb_bytes = peb_bytes - data_offset;
        Ok(Layout { page_bytes, subpage_bytes, peb_bytes, vid_offset, data_offset, leb_bytes })
    }

    /// Whether both headers are in one sub-page. Such a block can be read, but the second header could only be
    /// written by programming the sub-page again.
    pub fn headers_share_subpage(&self) -> bool {
        self.vid_offset < self.subpage_bytes
    }

    /// Where a read or write of the VID header begins: the sub-page that holds it.
    pub fn vid_read_offset(&self) -> u32 {
        self.vid_offset / self.subpage_bytes * self.subpage_bytes
    }

    /// Bytes from [`Layout::vid_read_offset`] that hold the VID header, in whole sub-pages.
    pub fn vid_write_bytes(&self) -> u32 {
        (self.vid_offset - self.vid_read_offset() + HEADER_BYTES as u32).next_multiple_of(self.subpage_bytes)
    }

    /// Records of the volume table.
    pub fn volume_slots(&self) -> u32 {
        MAX_VOLUMES.min(self.leb_bytes / RECORD_BYTES as u32)
    }

    /// Bytes of a copy of the volume table, in whole pages.
    pub fn volume_table_bytes(&self) -> u32 {
        (self.volume_slots() * RECORD_BYTES as u32).next_multiple_of(self.page_bytes)
    }

    /// Erase blocks of a fastmap of a device of `pebs` blocks (`ubi_calc_fm_size`, drivers/mtd/ubi/fastmap.c). The
    /// first number is that of older kernels, which count one table of logical blocks for all volumes, the second
    /// that of newer ones, which count one for each volume and for the layout volume.
    pub(crate) fn fastmap_pebs(&self, pebs: u32) -> [u32; 2] {
        let volumes = u64::from(MAX_VOLUMES);
        [8 + 32 * volumes, (8 + 32) * (volumes + 1)].map(|for_volumes| {
            let bytes = 312 + 32 + 2 * 1048 + u64::from(pebs) * (8 + 4) + for_volumes;
            bytes.div_ceil(u64::from(self.leb_bytes)) as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(page_bytes: u32, subpage_bytes: u32, peb_bytes: u32) -> Layout {
        Layout::new(&Geometry { peb_bytes, page_bytes, subpage_bytes, pebs: 64 }, None).expect("a layout")
    }

    #[test]
    fn published_layouts() {
        let slc = layout(2048, 512, 128 << 10);
        assert_eq!((slc.vid_offset, slc.data_offset, slc.leb_bytes), (512, 2048, 129_024));
        assert_eq!(slc.volume_table_bytes(), 22_528);
        let mlc = layout(16 << 10, 16 << 10, 2 << 20);
        assert_eq!((mlc.vid_offset, mlc.data_offset, mlc.leb_bytes), (16_384, 32_768, 2_064_384));
        assert_eq!(mlc.volume_table_bytes(), 32_768);
        assert_eq!(layout(16 << 10, 16 << 10, 4 << 20).leb_bytes, 4_161_536);
        assert_eq!(layout(8 << 10, 8 << 10, 2 << 20).data_offset, 16_384);
    }

    #[test]
    fn fastmaps_are_counted_in_two_ways() {
        let slc = layout(512, 512, 16 << 10);
        // 312 + 32 + 2096 + 12 * 512, and 4104 or 5160 for volumes, in blocks of 15,360 bytes.
        assert_eq!((slc.leb_bytes, slc.fastmap_pebs(512)), (15_360, [1, 1]));
        assert_eq!(slc.fastmap_pebs(700), [1, 2]);
        assert_eq!(slc.fastmap_pebs(800), [2, 2]);
    }

    #[test]
    fn odd_offsets_of_the_vid_header() {
        let geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 64 };
        let odd = Layout::new(&geometry, Some(1984)).expect("a multiple of 4");
        assert_eq!((odd.vid_read_offset(), odd.vid_write_bytes(), odd.data_offset), (1536, 512, 2048));
        let shared = Layout::new(&geometry, Some(64)).expect("behind the EC header");
        assert_eq!((shared.vid_read_offset(), shared.data_offset, shared.headers_share_subpage()), (0, 2048, true));
        assert!(!odd.headers_share_subpage());
        for (offset, right) in [(510, "multiple of 4"), (60, "EC header"), (128 << 10, "fit")] {
            let e = Layout::new(&geometry, Some(offset)).expect_err("refused");
            assert!(e.to_string().contains(right), "{e}");
        }
    }
}
