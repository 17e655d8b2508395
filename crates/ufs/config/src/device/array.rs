// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the flash array, of the firmware core and of the link.

use crate::error::Result;
use crate::keys::{Key, Keys, fields, keys, power_of_two, us, whole, words};
use readpath_device::{FirmwareTiming, FlashTiming, LinkTiming};
use readpath_flash::{Geometry, PlaneReads, SuspendTiming};
use readpath_kit::Ns;

use super::bounds;
use super::preset::DevicePreset;

pub(super) fn geometry(k: &mut Keys<Geometry>) -> Result<Geometry> {
    Ok(keys!(k => Geometry {
        /// channels
        channels: whole(bounds("geometry.channels"));
        /// dies on each; at most 256 dies in all
        dies_per_channel: whole(bounds("geometry.dies_per_channel"));
        /// planes of a die that are programmed together
        planes: whole(bounds("geometry.planes"));
        /// blocks of a plane
        blocks_per_plane: whole(bounds("geometry.blocks_per_plane"));
        /// pages of a block
        pages_per_block: whole(bounds("geometry.pages_per_block"));
        /// bytes of a page
        page_bytes: power_of_two(bounds("geometry.page_bytes"));
    }))
}

/// `[flash]`. Without `map_transfer_us` that field is `Ns::NEVER`; [`map_transfer`] sets it.
pub(super) fn flash(k: &mut Keys<FlashTiming>) -> Result<FlashTiming> {
    fields! { k:
        /// tR of a page of data
        read = "read_us": us(bounds("flash.read"));
        /// tR of a page of the map
        map_read = "map_read_us": us(bounds("flash.map_read"));
        /// tPROG of a multi-plane page
        program = "program_us": us(bounds("flash.program"));
        /// tBERS of a block
        erase = "erase_us": us(bounds("flash.erase"));
        /// channel time of 4 KiB of data
        transfer_block = "transfer_4k_us": us(bounds("flash.transfer_block"));
    }
    let doc = "channel time of a whole map page. Default and minimum: `transfer_4k_us` for each 4 KiB of \
        `map_cache.page_bytes`";
    let key = Key { name: "map_transfer_us", field: "map_transfer", doc };
    let map_transfer =
        k.key(key, us(bounds("flash.map_transfer")).optional(), |flash| Some(flash.map_transfer))?.unwrap_or(Ns::NEVER);
    fields! { k:
        /// how planes of a die read: `one` at a time; `together`, what is read together of a multi-plane page;
        /// `apart`, each plane by itself; or `both`, a page by itself, and more pages of a multi-plane page together,
        /// which then take all planes. Programs and erases take all planes
        plane_reads: words(PlaneReads::WORDS).or(PlaneReads::One).quiet();
        /// erases that a block endures when all bits of its cells are used. The default is an assumption by class:
        /// makers give about 3,000 for TLC and 1,000 for QLC
        life_erases: whole(bounds("flash.life_erases")).or(3000).quiet();
    }
    Ok(FlashTiming { read, map_read, program, erase, transfer_block, map_transfer, plane_reads, life_erases })
}

/// Channel time of a map page. The map cache holds whole pages, so a whole page crosses the channel, no faster than
/// the same amount of data, which is the default.
pub(super) fn map_transfer(k: &Keys<DevicePreset>, flash: FlashTiming, map_page_bytes: u32) -> Result<FlashTiming> {
    let blocks = u64::from(map_page_bytes / 4096);
    let least = Ns(flash.transfer_block.0 * blocks);
    if flash.map_transfer == Ns::NEVER {
        return Ok(FlashTiming { map_transfer: least, ..flash });
    }
    let message = format!(
        "is {}; a map page of {map_page_bytes} bytes takes at least {} ({blocks} x transfer_4k_us), which is the \
         default",
        flash.map_transfer.as_us_f64(),
        least.as_us_f64()
    );
    k.refuse(flash.map_transfer < least, "flash.map_transfer_us", message)?;
    Ok(flash)
}

pub(super) fn suspend(k: &mut Keys<SuspendTiming>) -> Result<SuspendTiming> {
    Ok(keys!(k => SuspendTiming {
        /// from the suspension of a program or erase until the die can read
        suspend = "suspend_us": us(bounds("suspend.suspend"));
        /// time that a resumption adds
        resume = "resume_us": us(bounds("suspend.resume"));
        /// how often one operation may be suspended; 0 = never
        max_per_op: whole(0..=1000);
    }))
}

pub(super) fn firmware(k: &mut Keys<FirmwareTiming>) -> Result<FirmwareTiming> {
    Ok(keys!(k => FirmwareTiming {
        /// cores, which share the work; it leaves them in the order in which it came
        cores: whole(bounds("firmware.cores")).or(1).quiet();
        /// each READ, before its first flash operation
        read_command = "read_command_us": us(bounds("firmware.read_command")).or(Ns::ZERO).quiet();
        /// each flash operation: a page of data, a page of the map, a program, an erase
        flash_op = "flash_op_us": us(bounds("firmware.flash_op"));
        /// extra time of an HPB READ over a READ
        hpb_read_extra = "hpb_read_extra_us": us(bounds("firmware.hpb_read_extra"));
        /// each write command, before its data is in the write buffer
        write_command = "write_command_us": us(bounds("firmware.write_command"));
        /// each read served without flash
        buffer_read = "buffer_read_us": us(bounds("firmware.buffer_read"));
        /// each read of blocks that were never written, or were trimmed. Default: `buffer_read_us`
        unmapped_read = "unmapped_read_us": us(bounds("firmware.unmapped_read")).optional();
        /// each entry that HPB READ BUFFER returns
        make_entry = "make_entry_us": us(bounds("firmware.make_entry"));
        /// each query, and each command that touches no media
        control = "control_us": us(bounds("firmware.control"));
        /// each map page that a range of UNMAP covers, in whole or in part, on top of `control_us` (assumption: a flag
        /// or a count in SRAM is set for each)
        trim_map_page = "trim_map_page_us": us(bounds("firmware.trim_map_page")).or(Ns(500));
    }))
}

pub(super) fn link(k: &mut Keys<LinkTiming>) -> Result<LinkTiming> {
    Ok(keys!(k => LinkTiming {
        /// a request UPIU
        request = "request_us": us(bounds("link.request"));
        /// a response UPIU
        response = "response_us": us(bounds("link.response"));
        /// 4 KiB of data
        block = "transfer_4k_us": us(bounds("link.block"));
    }))
}
