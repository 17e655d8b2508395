// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creating, removing and updating volumes (Linux, drivers/mtd/ubi/vmt.c, vtbl.c and upd.c), and the writes at the
//! end of an attach.

use super::{Device, crc32, data_len};
use crate::write::MtdWrite;
use readpath_ubi::device::Volume;
use readpath_ubi::headers::{DYNAMIC, LAYOUT_VOLUME, STATIC, VERSION, VidHeader};
use readpath_ubi::vtbl::{FLAG_AUTORESIZE, FLAG_SKIP_CRC, MAX_NAME_BYTES, VolumeRecord, table_to_bytes};
use readpath_ubi::{ReadCache, UbiError};

/// Parameters of a new volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVolume {
    /// Identifier; defaults to the first free one.
    pub id: Option<u32>,
    /// Name, 1 to 127 bytes without a zero.
    pub name: String,
    /// Static instead of dynamic.
    pub is_static: bool,
    /// Logical blocks.
    pub lebs: u32,
    /// Alignment of the usable bytes of a logical block; 1 for none, otherwise a multiple of the page.
    pub alignment: u32,
    /// Do not check the data of a static volume when it is opened.
    pub skip_crc: bool,
}

impl NewVolume {
    /// A dynamic volume.
    pub fn dynamic(name: &str, lebs: u32) -> Self {
        NewVolume { id: None, name: name.into(), is_static: false, lebs, alignment: 1, skip_crc: false }
    }
}

impl<M: MtdWrite, C: ReadCache> Device<M, C> {
    /// Writes what the attach found missing: copies of the volume table, and the size of an autoresize volume.
    pub(super) fn repair(&mut self, rewrite: [bool; 2]) -> Result<(), UbiError> {
        for (copy, _) in (0..).zip(rewrite).filter(|&(_, rewrite)| rewrite) {
            self.write_table_copy(copy)?;
        }
        let grows = |v: &&Volume| v.record.flags & FLAG_AUTORESIZE != 0;
        let grown = self.volumes().find(grows).map(|v| v.id);
        if let Some(id) = grown {
            let more = self.available;
            self.available = 0;
            let volume = self.ubi.volume_mut(id)?;
            volume.record.flags &= !FLAG_AUTORESIZE;
            volume.record.reserved_pebs += more;
            if volume.record.vol_type == DYNAMIC {
                volume.used_lebs = volume.record.reserved_pebs;
            }
            self.write_table()?;
        }
        Ok(())
    }

    /// Creates a volume and returns its identifier.
    pub fn create_volume(&mut self, new: &NewVolume) -> Result<u32, UbiError> {
        self.check_writable()?;
        let refused = |what: String| Err(UbiError::Refused(format!("volume \"{}\": {what}", new.name)));
        let slots = self.ubi.layout().volume_slots();
        let Some(id) = new.id.or_else(|| (0..slots).find(|&id| self.volume(id).is_err())) else {
            return refused(format!("all {slots} identifiers are taken"));
        };
        if id >= slots || self.volume(id).is_ok() {
            return refused(format!("identifier {id} is taken, or not below {slots}"));
        }
        if new.name.is_empty() || new.name.len() > MAX_NAME_BYTES || new.name.contains('\0') {
            return refused(format!("a name of 1 to {MAX_NAME_BYTES} bytes without zeros is needed"));
        }
        if self.volume_by_name(&new.name).is_ok() {
            return refused("the name is taken".into());
        }
        if new.lebs == 0 || new.lebs > self.available {
            return refused(format!("{} PEBs, but {} are available", new.lebs, self.available));
        }
        let record = VolumeRecord {
            alignment: new.alignment,
            data_pad: self.ubi.layout().leb_bytes % new.alignment.max(1),
            vol_type: if new.is_static { STATIC } else { DYNAMIC },
            flags: if new.skip_crc { FLAG_SKIP_CRC } else { 0 },
            ..VolumeRecord::dynamic(&new.name, new.lebs)
        };
        if let Err(what) = record.check(self.ubi.layout(), self.wear.good) {
            return refused(what);
        }
        // Blocks of an older volume with this identifier would be taken for blocks of this one.
        self.flush()?;
        let volume = Volume::new(id, record, self.ubi.layout());
        self.ubi.set_volume(id, Some(volume));
        if let Err(e) = self.write_table() {
            self.ubi.set_volume(id, None);
            return Err(e);
        }
        self.available -= new.lebs;
        Ok(id)
    }

    /// Removes a volume and its contents.
    pub fn remove_volume(&mut self, id: u32) -> Result<(), UbiError> {
        self.check_writable()?;
        self.check_ordinary(id)?;
        let Some(mut volume) = self.ubi.set_volume(id, None) else { return Ok(()) };
        if let Err(e) = self.write_table() {
            self.ubi.set_volume(id, Some(volume));
            return Err(e);
        }
        volume.take_pebs().into_iter().for_each(|peb| self.wear.put(peb, false));
        self.available += volume.record.reserved_pebs;
        self.fill_bad_reserve();
        Ok(())
    }

    /// Replaces the contents of a volume with `data`. Until that is complete the volume is marked, and cannot be
    /// read.
    pub fn update_volume(&mut self, id: u32, data: &[u8]) -> Result<(), UbiError> {
        self.check_writable()?;
        self.check_ordinary(id)?;
        let volume = self.volume(id)?;
        let (leb_bytes, lebs, is_static) =
            (volume.leb_bytes as usize, volume.record.reserved_pebs as usize, volume.record.vol_type == STATIC);
        let needed = data.len().div_ceil(leb_bytes);
        if needed > lebs {
            let what = format!("{} bytes in a volume of {} bytes", data.len(), leb_bytes as u64 * lebs as u64);
            return Err(UbiError::Leb { volume: id, lnum: lebs as u32, what });
        }
        self.ubi.volume_mut(id)?.record.update_marker = true;
        self.write_table()?;
        let old = self.ubi.volume_mut(id)?.take_pebs();
        old.into_iter().for_each(|peb| self.wear.put(peb, false));
        self.flush()?;
        let page = self.ubi.layout().page_bytes as usize;
        for (lnum, piece) in (0..).zip(data.chunks(leb_bytes)) {
            let mut header = self.dynamic_header(id, lnum)?;
            let mut padded = piece.to_vec();
            if is_static {
                header = VidHeader { version: VERSION, vol_type: STATIC, used_lebs: needed as u32, ..header };
                header.data_bytes = piece.len() as u32;
                header.data_crc = crc32(piece);
                padded.resize(piece.len().next_multiple_of(page), 0);
            } else {
                padded.resize(piece.len().next_multiple_of(page), 0xFF);
                padded.truncate(data_len(&padded, page as u32) as usize);
                // A logical block of only 0xFF stays unmapped.
                if padded.is_empty() {
                    continue;
                }
            }
            self.write_new(header, 0, &padded)?;
        }
        let volume = self.ubi.volume_mut(id)?;
        volume.record.update_marker = false;
        volume.corrupted = false;
        if is_static {
            volume.used_lebs = needed as u32;
            volume.last_leb_bytes = data.len().saturating_sub(needed.saturating_sub(1) * leb_bytes) as u32;
        }
        self.write_table()
    }

    fn check_ordinary(&self, id: u32) -> Result<(), UbiError> {
        if id == LAYOUT_VOLUME {
            Err(UbiError::NoVolume("of that kind may be changed".into()))
        } else {
            self.volume(id).map(drop)
        }
    }

    /// Writes both copies of the volume table, the first one first.
    fn write_table(&mut self) -> Result<(), UbiError> {
        self.write_table_copy(0)?;
        self.write_table_copy(1)
    }

    fn write_table_copy(&mut self, copy: u32) -> Result<(), UbiError> {
        let record = |id| self.ubi.volume(id).ok().map(|v| v.record.clone());
        let table = (0..self.ubi.layout().volume_slots()).map(record).collect();
        let mut bytes = table_to_bytes(&table, self.ubi.layout());
        bytes.extend_from_slice(&self.ubi.found_table().padding);
        let mut header = self.dynamic_header(LAYOUT_VOLUME, copy)?;
        header.copy_flag = 1;
        header.data_bytes = bytes.len() as u32;
        header.data_crc = crc32(&bytes);
        self.write_new(header, 0, &bytes)
    }
}
