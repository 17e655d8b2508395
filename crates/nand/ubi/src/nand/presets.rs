// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices by class, with figures from data sheets of parts of that class. Only `mlc-16k` is calibrated: its two
//! driver times were chosen so that reads of a page and of a step take the times measured in the linux-mtd thread of
//! July 2016 ("UBI: add read cache").

use super::Timing;
use crate::mtd::Geometry;
use readpath_kit::Ns;

/// A named device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// Sizes.
    pub geometry: Geometry,
    /// Bytes of the spare area of a page.
    pub oob_bytes: u32,
    /// Times.
    pub timing: Timing,
    /// Bits that are corrected in an ECC step.
    pub ecc_strength: u32,
}

/// All devices.
pub const PRESETS: [Preset; 6] = [
    // 256 Mbit small-page SLC (K9F5608 class): tR 12 us, tPROG 200 us, tBERS 2 ms, 50 ns cycles; Hamming code.
    build("slc-512", [512, 256, 16 << 10, 2048], 16, 12, 50, [256, 3, 1], SLC_DRIVER),
    // 1 Gbit SLC (K9F1G08, MT29F1G08 class): tR 25 us, tPROG 250 us, tBERS 2 ms, 25 ns; 1 bit in 512 bytes in
    // sub-pages.
    build("slc-2k", [2048, 512, 128 << 10, 1024], 64, 25, 25, [512, 7, 4], SLC_DRIVER),
    // 8 Gbit SLC (TC58NVG3S0F): tR 30 us, tPROG 300 us, tBERS 3 ms, 25 ns; 4 bits in 512 bytes.
    build("slc-4k", [4096, 1024, 256 << 10, 4096], 232, 30, 25, [512, 13, 8], SLC_DRIVER),
    // 16 Gbit MLC (MT29F16G08 family): tR 50 us, tPROG 900 us, tBERS 3.5 ms, 25 ns; 12 bits in 539 bytes.
    build("mlc-4k", [4096, 4096, 512 << 10, 4096], 218, 50, 25, [512, 21, 12], MLC_DRIVER),
    // 32 Gbit MLC (H27UAG8T2B class): tR 200 us, tPROG 1.6 ms, tBERS 2.5 ms, 25 ns; 24 bits in 1 KiB.
    build("mlc-8k", [8192, 8192, 2 << 20, 2048], 448, 200, 25, [1024, 42, 24], MLC_DRIVER),
    // 4 GiB MLC of a 1y nm class: 100 to 200 us, 1.4 to 1.6 ms, 4 to 7 ms (assumption: the middle); 40 bits in 1 KiB.
    // 22 ns and the driver's times fit the thread's 0.536 ms + 0.024 ms/KiB.
    build("mlc-16k", [16 << 10, 16 << 10, 2 << 20, 2048], 1280, 150, 22, [1024, 70, 40], MLC_DRIVER),
];

/// Microseconds for a call and for a page. Assumption for SLC behind a simple controller.
const SLC_DRIVER: [u64; 2] = [10, 15];
/// For MLC: fitted for `mlc-16k` with sub-page reads, to the two published means.
const MLC_DRIVER: [u64; 2] = [85, 300];

/// Sizes are page, sub-page, block and blocks; `tr_us` is tR; ECC is step, check bytes and bits.
const fn build(
    name: &'static str,
    [page_bytes, subpage_bytes, peb_bytes, pebs]: [u32; 4],
    oob_bytes: u32,
    tr_us: u64,
    cycle_ns: u32,
    [ecc_step_bytes, ecc_check_bytes, ecc_strength]: [u32; 3],
    [call_us, page_us]: [u64; 2],
) -> Preset {
    Preset {
        name,
        geometry: Geometry { peb_bytes, page_bytes, subpage_bytes, pebs },
        oob_bytes,
        timing: Timing {
            read_page: Ns::from_us(tr_us),
            cycle_ps: cycle_ns * 1000,
            command_cycles: 7,
            ecc_step_bytes,
            ecc_check_bytes,
            call: Ns::from_us(call_us),
            page: Ns::from_us(page_us),
            subpage_reads: true,
        },
        ecc_strength,
    }
}

/// The device with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}
