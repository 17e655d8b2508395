// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of an idle device, all at once: the initial contents of a medium. It takes no simulated time.

use super::super::Log;
use super::records::BlockRecord;
use super::{OwnSlice, Sealed, SliceKind, Spare};
use crate::config::ANCHORS;
use crate::ftl::map::Map;
use crate::ftl::space::{Space, State, Stream};
use crate::ftl::write::Write;
use crate::ftl::zones::Zones;
use crate::ids::SuperblockId;
use readpath_flash::Ppn;

impl Log {
    /// Passes everything that flash holds and that is needed to `each`, and returns the checkpoint that a device
    /// begins with.
    ///
    /// # Errors
    /// The work that is still in progress.
    pub(crate) fn seal(
        &mut self,
        space: &Space,
        map: &Map,
        write: &Write,
        zones: &Zones,
        mut each: impl FnMut(Sealed),
    ) -> Result<Vec<u8>, &'static str> {
        if write.buffer().oldest_sequence().is_some() || space.programs() > 0 {
            return Err("data is on its way to flash");
        }
        if self.stream.is_busy() || space.erasing().is_some() || self.checkpoint.is_under_way() {
            return Err("the device is busy with its map");
        }
        if self.geometry().dies() > BlockRecord::MOST_DIES {
            return Err("a record of a superblock has no room for so many dies");
        }
        self.keep_in_flash();
        self.export.programs = self.export.programs.max(1);
        for sb in space.all() {
            let record = self.block_record(sb, space);
            each(Sealed::Block(sb.0, &record));
            match space.get(sb).state {
                State::Open(stream) | State::Closed(stream) if stream != Stream::Meta => {
                    self.seal_data(space, sb, stream, &mut each);
                }
                _ => {}
            }
        }
        for page in map.all_pages() {
            let Some(at) = map.directory(page) else { continue };
            let written_at = map.put_together_at(page);
            let bytes = self.map_page(map, page, written_at, &[]);
            let (kind, program) = (SliceKind::Map, self.export.programs);
            let spare =
                Spare { kind, stream: Stream::Meta, page: Some(page.0), sequence: 0, program, ends_unit: false };
            bytes.into_slices(at, spare).for_each(|slice: OwnSlice| each(Sealed::Own(&slice)));
        }
        let erases = (0..ANCHORS).map(|sb| u64::from(space.get(SuperblockId(sb)).erases)).sum();
        let checkpoint = self.put_checkpoint_together(space, map, write, zones);
        let (mut bytes, body) = self.checkpoint_bytes(map, &checkpoint, erases);
        bytes.extend(body);
        Ok(bytes)
    }

    /// Passes the slices of data that name a block, and the table of their superblock.
    fn seal_data(&self, space: &Space, sb: SuperblockId, stream: Stream, each: &mut impl FnMut(Sealed)) {
        let (first, program) = (space.first(sb), self.export.programs);
        for ppn in (first.0..first.0 + space.slices()).map(Ppn) {
            if let Some(lpn) = space.spares().lpn(ppn) {
                let sequence = self.export.sequence(space.spares().sequence(ppn));
                let spare =
                    Spare { kind: SliceKind::Data, stream, page: Some(lpn.0), sequence, program, ends_unit: false };
                each(Sealed::Data(ppn, spare));
            }
        }
        if space.get(sb).has_table {
            for unit in space.units_of_table(sb) {
                let at = Ppn(first.0 + unit * self.geometry().slices_per_unit());
                let slices = self.table_slices(space, at, program);
                slices.iter().for_each(|slice| each(Sealed::Own(slice)));
            }
        }
    }
}
