// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images for an erased device: the volume table and volumes with contents, byte for byte as `ubinize` of mtd-utils
//! writes them.

use crate::crc::crc32;
use crate::error::UbiError;
use crate::headers::{DYNAMIC, EcHeader, LAYOUT_VOLUME, STATIC, VERSION, VidHeader, compat};
use crate::layout::Layout;
use crate::mtd::Geometry;
use crate::vtbl::{FLAG_AUTORESIZE, FLAG_SKIP_CRC, MAX_NAME_BYTES, VolumeRecord, table_to_bytes};
use std::io::{self, Write};

/// A volume of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageVolume<'a> {
    /// Identifier.
    pub id: u32,
    /// Name, 1 to 127 bytes without a zero.
    pub name: &'a str,
    /// Static instead of dynamic.
    pub is_static: bool,
    /// Size in bytes, rounded up to logical blocks without alignment; defaults to that of the contents.
    pub bytes: Option<u64>,
    /// Alignment of the usable bytes of a logical block; 1 for none, otherwise a multiple of the page.
    pub alignment: u32,
    /// Grow the volume to all free space at the first attach.
    pub autoresize: bool,
    /// Do not check the data of a static volume when it is opened.
    pub skip_crc: bool,
    /// Contents.
    pub data: &'a [u8],
}

impl<'a> ImageVolume<'a> {
    /// A dynamic volume as large as its contents, without alignment or flags.
    pub const fn dynamic(id: u32, name: &'a str, data: &'a [u8]) -> Self {
        ImageVolume { id, name, is_static: false, bytes: None, alignment: 1, autoresize: false, skip_crc: false, data }
    }
}

/// Settings of all blocks of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageHead {
    /// Sizes of the device; the number of erase blocks is ignored.
    pub geometry: Geometry,
    /// Offset of the VID header, if not UBI's default.
    pub vid_offset: Option<u32>,
    /// Image sequence number.
    pub image_seq: u32,
    /// Erase counter of all blocks.
    pub erase_counter: u32,
}

/// A volume with its record and the usable bytes of a logical block.
struct Planned<'a> {
    volume: &'a ImageVolume<'a>,
    record: VolumeRecord,
    usable: usize,
}

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The request is not possible.
    #[error(transparent)]
    Ubi(#[from] UbiError),
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes an image; returns its number of erase blocks. Nothing is written if the volumes do not fit together.
pub fn write_image(head: &ImageHead, volumes: &[ImageVolume], out: &mut impl Write) -> Result<u32, ImageError> {
    let layout = Layout::new(&head.geometry, head.vid_offset).map_err(UbiError::from)?;
    let planned = plan(&layout, volumes)?;
    let ec = EcHeader::new(&layout, head.erase_counter, head.image_seq);
    let mut writer = Writer { layout, ec, block: Vec::new(), pebs: 0, out };

    let mut table = vec![None; layout.volume_slots() as usize];
    for Planned { volume, record, .. } in &planned {
        table[volume.id as usize] = Some(record.clone());
    }
    let records = table_to_bytes(&table, &layout);
    for lnum in 0..2 {
        let header = VidHeader { compat: compat::REJECT, ..dynamic(LAYOUT_VOLUME, lnum, 0) };
        writer.block(&header, &records)?;
    }
    for Planned { volume, record, usable } in &planned {
        let lebs = volume.data.len().div_ceil(*usable) as u32;
        for (lnum, piece) in (0..).zip(volume.data.chunks(*usable)) {
            let mut header = dynamic(volume.id, lnum, record.data_pad);
            if volume.is_static {
                header.vol_type = STATIC;
                header.used_lebs = lebs;
                header.data_bytes = piece.len() as u32;
                header.data_crc = crc32(piece);
            }
            writer.block(&header, piece)?;
        }
    }
    Ok(writer.pebs)
}

fn dynamic(volume: u32, lnum: u32, data_pad: u32) -> VidHeader {
    VidHeader { version: VERSION, vol_type: DYNAMIC, volume, lnum, data_pad, ..VidHeader::default() }
}

/// Records of the volumes, which must differ in identifier and name.
fn plan<'a>(layout: &Layout, volumes: &'a [ImageVolume<'a>]) -> Result<Vec<Planned<'a>>, UbiError> {
    let mut planned: Vec<Planned> = Vec::new();
    for volume in volumes {
        let wrong = |what: String| Err(UbiError::Refused(format!("volume {} \"{}\": {what}", volume.id, volume.name)));
        if volume.id >= layout.volume_slots() {
            return wrong(format!("identifiers go up to {}", layout.volume_slots() - 1));
        }
        if volume.name.is_empty() || volume.name.len() > MAX_NAME_BYTES || volume.name.contains('\0') {
            return wrong(format!("a name of 1 to {MAX_NAME_BYTES} bytes without zeros is needed"));
        }
        if planned.iter().any(|p| p.volume.id == volume.id || p.volume.name == volume.name) {
            return wrong("identifier or name is taken".into());
        }
        if volume.skip_crc && !volume.is_static {
            return wrong("only static volumes have data to check".into());
        }
        if volume.autoresize && planned.iter().any(|p| p.volume.autoresize) {
            return wrong("only one volume can take what is left".into());
        }
        let data_pad = layout.leb_bytes % volume.alignment.max(1);
        let usable = layout.leb_bytes - data_pad;
        let bytes = volume.bytes.unwrap_or(volume.data.len() as u64);
        if bytes < volume.data.len() as u64 || bytes == 0 {
            return wrong(format!("{bytes} bytes for contents of {} bytes", volume.data.len()));
        }
        // Ignores the alignment as ubinize does, so a size may turn out too small.
        let Ok(reserved_pebs) = u32::try_from(bytes.div_ceil(layout.leb_bytes.into())) else {
            return wrong(format!("{bytes} bytes are too many"));
        };
        let needed = volume.data.len().div_ceil(usable as usize);
        if needed > reserved_pebs as usize {
            return wrong(format!("its contents need {needed} LEBs of {usable} bytes, its size has {reserved_pebs}"));
        }
        let record = VolumeRecord {
            alignment: volume.alignment,
            data_pad,
            vol_type: if volume.is_static { STATIC } else { DYNAMIC },
            flags: if volume.autoresize { FLAG_AUTORESIZE } else { 0 }
                | if volume.skip_crc { FLAG_SKIP_CRC } else { 0 },
            ..VolumeRecord::dynamic(volume.name, reserved_pebs)
        };
        if let Err(what) = record.check(layout, crate::mtd::MAX_PEBS) {
            return wrong(what);
        }
        planned.push(Planned { volume, record, usable: usable as usize });
    }
    Ok(planned)
}

struct Writer<'a, W> {
    layout: Layout,
    ec: EcHeader,
    block: Vec<u8>,
    pebs: u32,
    out: &'a mut W,
}

impl<W: Write> Writer<'_, W> {
    /// Writes an erase block; unused bytes are 0xFF.
    fn block(&mut self, header: &VidHeader, data: &[u8]) -> Result<(), ImageError> {
        self.block.clear();
        self.block.resize(self.layout.peb_bytes as usize, 0xFF);
        let mut put = |at: u32, bytes: &[u8]| self.block[at as usize..][..bytes.len()].copy_from_slice(bytes);
        put(0, &self.ec.to_bytes());
        put(self.layout.vid_offset, &header.to_bytes());
        put(self.layout.data_offset, data);
        self.out.write_all(&self.block)?;
        self.pebs += 1;
        Ok(())
    }
}
