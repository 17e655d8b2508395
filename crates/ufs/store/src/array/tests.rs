// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which writes reach the disk, and what a crash of the machine may leave of them.

use super::*;
use crate::disk::MemoryDisk;
use crate::layout::{Shape, VERSION};

/// Four superblocks of four units.
const FORMAT: Format = Format {
    version: VERSION,
    shape: Shape { superblocks: 4, superblock_slices: 8, unit_slices: 2 },
    text_bytes: 0,
    factory_bytes: 0,
    seed: 0,
    serial: 1,
};

/// The array on a disk, at a start of the machine, when a device has looked at it.
fn array(disk: MemoryDisk, boot: u8) -> FlashFile<MemoryDisk> {
    let mut array = FlashFile::new(disk, FORMAT, true, [boot; 16]).unwrap();
    (0..FORMAT.shape.superblocks).for_each(|superblock| array.look(superblock, &mut Vec::new()).unwrap());
    array
}

fn new() -> FlashFile<MemoryDisk> {
    array(MemoryDisk::new(FORMAT.bytes()), 1)
}

/// Programs the unit at `first`, with this number.
fn program(array: &mut FlashFile<MemoryDisk>, first: u32, program: u64) {
    for slice in first..first + 2 {
        array.program(Ppn(slice), Some(slice), program, &[program as u8; SLICE]);
    }
    array.programmed(Ppn(first), Stream::Host, program);
}

/// What a crash of the machine leaves; `stays` is that of [`MemoryDisk::crash`].
fn crashed(mut left: FlashFile<MemoryDisk>, stays: impl FnMut(usize) -> usize) -> FlashFile<MemoryDisk> {
    left.disk.crash(stays);
    array(left.disk, 2)
}

#[test]
fn a_flush_survives_though_programs_before_it_were_erased() {
    let mut before = new();
    program(&mut before, 0, 1);
    before.erase(Ppn(0), 8);
    program(&mut before, 8, 2);
    before.sync().unwrap();
    assert_eq!(crashed(before, |_| 0).kept(), Some(2), "program 1 is missing");
}

#[test]
fn what_was_flushed_is_erased_when_what_replaces_it_is_on_the_disk() {
    // The first unit is programmed last or not at all: its program has failed, or takes longer.
    for first in [&[2][..], &[2, 0]] {
        let mut before = new();
        program(&mut before, first[0], 1);
        before.sync().unwrap();
        first[1..].iter().for_each(|&unit| program(&mut before, unit, 2));
        program(&mut before, 8, 3);
        before.erase(Ppn(0), 8);
        assert_eq!(crashed(before, |_| 0).kept(), Some(3), "{first:?}");
    }
}

#[test]
fn no_program_is_newer_than_the_kept_one_by_more_than_the_slices() {
    let mut array = new();
    for number in 1..200 {
        program(&mut array, 0, number);
        array.erase(Ppn(0), 8);
        assert!(number < array.kept.program + FORMAT.shape.slices(), "{number}, kept {}", array.kept.program);
    }
}

#[test]
fn an_erase_is_on_the_disk_before_its_slices_are_written() {
    let mut before = new();
    program(&mut before, 0, 1);
    before.sync().unwrap();
    before.erase(Ppn(0), 8);
    program(&mut before, 0, 2);
    let after = crashed(before, |bytes| if bytes >= SLICE { bytes } else { 0 });
    after.examine(0, &mut Damage::default(), |fault| panic!("{fault}")).unwrap();
}

#[test]
fn data_is_written_before_the_heads_that_name_it() {
    let mut array = new();
    array.gather();
    program(&mut array, 0, 1);
    array.disk.writes_left = Some(1);
    array.settle();
    assert!(array.failure().is_some() && array.head(Ppn(0)).unwrap() == Read::Blank, "nothing names the data");
}

#[test]
fn only_zeros_are_zero() {
    let mut data = [0; SLICE];
    assert!(is_zero(&data) && is_zero(&[]) && is_zero(&data[..70]));
    data[4095] = 1;
    assert!(!is_zero(&data) && !is_zero(&data[4090..]));
}

#[test]
fn a_kill_among_the_marks_of_what_a_crash_left_changes_nothing() {
    let mut before = new();
    program(&mut before, 0, 1);
    program(&mut before, 2, 2);
    program(&mut before, 4, 3);
    // Program 1 is lost.
    let mut after = crashed(before, {
        let mut heads = 0;
        move |bytes| {
            heads += u32::from(bytes < SLICE);
            if heads <= 2 { bytes } else { 0 }
        }
    });
    assert_eq!((after.kept(), after.head(Ppn(0)).unwrap()), (Some(0), Read::Blank));
    after.tear(Ppn(2), 2);
    assert_eq!(array(after.disk, 2).kept(), Some(0), "the mark of program 3 is missing");
}
