// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulated NAND, the image and the guess of its sizes.

use readpath_nand_testkit::{Ecc, Faults, MtdWrite, Nand};
use readpath_ubi::guess::{Known, guess};
use readpath_ubi::mtd::{Geometry, Image, Logged, Mtd, MtdError, Op, ReadOutcome, Why};
use readpath_ubi::nand::{PRESETS, preset};
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};

const GEOMETRY: Geometry = Geometry { peb_bytes: 8192, page_bytes: 2048, subpage_bytes: 512, pebs: 4 };
const WHY: Why = Why::Check;

fn nand() -> Nand {
    // Up to 8 bits in 512 bytes; 6 require a move.
    Nand::new(GEOMETRY, Ecc::new(512, 8), 1).expect("a device")
}

fn read(nand: &mut Nand, peb: u32, offset: u32, len: usize) -> (ReadOutcome, Vec<u8>) {
    let mut out = vec![0; len];
    let outcome = nand.read(peb, offset, &mut out, WHY).expect("inside of the device");
    (outcome, out)
}

#[test]
fn what_is_written_is_read_until_it_is_erased() {
    let mut nand = nand();
    assert_eq!(read(&mut nand, 1, 100, 4000), (ReadOutcome::Clean, vec![0xFF; 4000]));
    let data: Vec<u8> = (0..4096u32).map(|i| (i * 7) as u8).collect();
    nand.write(1, 512, &data, WHY).expect("erased");
    assert_eq!(read(&mut nand, 1, 512, 4096), (ReadOutcome::Clean, data.clone()));
    assert_eq!(read(&mut nand, 1, 0, 512).1, [0xFF; 512]);
    assert_eq!(read(&mut nand, 1, 3000, 50).1, data[3000 - 512..][..50]);
    nand.write(1, 0, &[1; 512], WHY).expect("this sub-page is erased");
    nand.erase(1, WHY).expect("good");
    assert_eq!(read(&mut nand, 1, 0, 8192), (ReadOutcome::Clean, vec![0xFF; 8192]));
    nand.write(1, 512, &data, WHY).expect("erased again");
    assert_eq!((nand.erases(1), nand.erases(0)), (1, 0));
    let mut dump = Vec::new();
    nand.write_image(&mut dump).expect("memory");
    assert_eq!((&dump[8192 + 512..][..4096], dump.len()), (&data[..], 32_768));
}

#[test]
fn mistakes_of_the_caller() {
    let mut nand = nand();
    nand.write(0, 2048, &[0; 2048], WHY).expect("erased");
    nand.mark_bad(2).expect("a block");
    let write = |nand: &mut Nand, peb, offset, len| nand.write(peb, offset, &vec![0; len], WHY).expect_err("wrong");
    for (peb, offset, len, right) in [
        (0, 2048, 512, "PEB 0 offset 2048 length 512: it was programmed since the PEB was erased"),
        (0, 1536, 1024, "PEB 0 offset 2048 length 512: it was programmed since the PEB was erased"),
        (0, 100, 512, "PEB 0 offset 100 length 512: a write is made of whole sub-pages"),
        (0, 0, 100, "PEB 0 offset 0 length 100: a write is made of whole sub-pages"),
        (0, 0, 0, "PEB 0 offset 0 length 0: a write is made of whole sub-pages"),
        (0, 7680, 1024, "PEB 0 offset 7680 length 1024: it has to stay inside of the PEB"),
        (4, 0, 512, "PEB 4 offset 0 length 512: there is no such PEB"),
        (2, 0, 512, "PEB 2 offset 0 length 512: the PEB is marked bad"),
    ] {
        assert_eq!(write(&mut nand, peb, offset, len).to_string(), right);
    }
    assert!(nand.erase(2, WHY).is_err() && nand.erase(4, WHY).is_err() && nand.mark_bad(4).is_err());
    assert!(nand.read(0, 8000, &mut [0; 200], WHY).is_err() && nand.read(0, u32::MAX, &mut [0; 2], WHY).is_err());
    assert!(nand.is_bad(2) && !nand.is_bad(1) && !nand.is_bad(9));
}

#[test]
fn flips_count_for_each_step() {
    let mut nand = nand();
    nand.write(0, 0, &[0x5A; 2048], WHY).expect("erased");
    for (bits, whole) in [(5, ReadOutcome::Corrected), (1, ReadOutcome::BitFlips), (2, ReadOutcome::BitFlips)] {
        nand.flip(0, 600, bits);
        assert_eq!(read(&mut nand, 0, 0, 2048), (whole, vec![0x5A; 2048]));
    }
    // Only those steps that are read count.
    assert_eq!(read(&mut nand, 0, 0, 512).0, ReadOutcome::Clean);
    assert_eq!(read(&mut nand, 0, 0, 513).0, ReadOutcome::BitFlips);
    assert_eq!(read(&mut nand, 0, 1024, 1).0, ReadOutcome::Clean);
    nand.flip(0, 600, 1);
    let (outcome, data) = read(&mut nand, 0, 0, 2048);
    assert_eq!(outcome, ReadOutcome::Uncorrectable);
    assert!(data[512..1024] != [0x5A; 512] && data[..512] == [0x5A; 512] && data[1024..] == [0x5A; 1024]);
    assert_eq!(read(&mut nand, 0, 0, 2048).1, data, "the same every time");
    // A partial read of a step returns the same bytes as a full read.
    assert_eq!(read(&mut nand, 0, 700, 100).1, data[700..800]);
    nand.erase(0, WHY).expect("good");
    assert_eq!(read(&mut nand, 0, 0, 2048), (ReadOutcome::Clean, vec![0xFF; 2048]));
    // An erased page can have flips, too.
    nand.flip(0, 0, 7);
    assert_eq!(read(&mut nand, 0, 0, 64), (ReadOutcome::BitFlips, vec![0xFF; 64]));
}

#[test]
fn chance_and_disturb_lose_nothing_unless_they_may() {
    let run = |faults: Faults| {
        let mut nand = nand();
        nand.write(0, 0, &[0x5A; 8192], WHY).expect("erased");
        nand.faults = faults;
        let mut worst = ReadOutcome::Clean;
        for _ in 0..20_000 {
            worst = worst.max(read(&mut nand, 0, 0, 8192).0);
        }
        worst
    };
    let none = Faults { most_flips: 8, ..Faults::default() };
    assert_eq!(run(none), ReadOutcome::Clean);
    assert_eq!(run(Faults { flips_ppm: 10_000, ..none }), ReadOutcome::BitFlips);
    assert_eq!(run(Faults { disturb_reads: 10, ..none }), ReadOutcome::BitFlips);
    assert_eq!(run(Faults { disturb_reads: 10, most_flips: 5, ..none }), ReadOutcome::Corrected);
    assert_eq!(run(Faults { disturb_reads: 10, most_flips: 9, ..none }), ReadOutcome::Uncorrectable);
}

#[test]
fn power_goes_when_it_is_told_to() {
    // Each kind of tear occurs, over many seeds.
    let (mut untouched, mut torn, mut weak, mut whole) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 8), seed).expect("a device");
        nand.cut_after(2);
        assert_eq!(nand.write(0, 0, &[0x5A; 8192], WHY), Err(MtdError::PowerOff { peb: 0 }));
        assert!(nand.is_off());
        assert_eq!(nand.read(1, 0, &mut [0; 4], WHY), Err(MtdError::PowerOff { peb: 1 }));
        assert!(nand.erase(1, WHY).is_err() && nand.write(1, 0, &[0; 512], WHY).is_err() && nand.mark_bad(1).is_err());
        nand.power_on();
        assert_eq!(read(&mut nand, 0, 0, 4096), (ReadOutcome::Clean, vec![0x5A; 4096]), "programmed before the cut");
        assert_eq!(read(&mut nand, 0, 6144, 2048), (ReadOutcome::Clean, vec![0xFF; 2048]), "after the cut");
        match read(&mut nand, 0, 4096, 2048) {
            (ReadOutcome::Clean, data) if data == [0xFF; 2048] => untouched += 1,
            (ReadOutcome::Clean, data) if data == [0x5A; 2048] => whole += 1,
            (ReadOutcome::BitFlips, data) if data == [0x5A; 2048] => weak += 1,
            (ReadOutcome::Uncorrectable, _) => torn += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(untouched > 20 && torn > 20 && weak > 20 && whole > 20, "{untouched} {torn} {weak} {whole}");

    let (mut same, mut destroyed, mut erased, mut weak) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 8), seed).expect("a device");
        nand.write(0, 0, &[0x5A; 8192], WHY).expect("erased");
        nand.cut_after(0);
        assert_eq!(nand.erase(0, WHY), Err(MtdError::PowerOff { peb: 0 }));
        nand.power_on();
        match read(&mut nand, 0, 0, 8192) {
            (ReadOutcome::Clean, data) if data == [0x5A; 8192] => same += 1,
            (ReadOutcome::Clean, data) if data == [0xFF; 8192] => erased += 1,
            (ReadOutcome::BitFlips, data) if data == [0xFF; 8192] => weak += 1,
            (ReadOutcome::Uncorrectable, _) => destroyed += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(same > 20 && destroyed > 20 && erased > 20 && weak > 20, "{same} {destroyed} {erased} {weak}");
}

#[test]
fn a_block_that_is_worn_out_fails() {
    let mut nand = nand();
    nand.wear_out(3);
    assert_eq!(nand.write(3, 0, &[0; 512], WHY), Err(MtdError::WriteFailed { peb: 3, offset: 0 }));
    assert_eq!(nand.erase(3, WHY), Err(MtdError::EraseFailed { peb: 3 }));
    assert_eq!(nand.write(2, 0, &[0; 512], WHY), Ok(()));
}

#[test]
fn a_log_notes_what_is_done() {
    let slc = preset("slc-2k").expect("it");
    let mut log = Logged::new(Nand::from_preset(slc, 1).expect("a device"));
    log.read(5, 0, &mut [0; 64], WHY).expect("a read");
    log.write(5, 0, &[0; 512], WHY).expect("a write");
    log.recording = false;
    log.erase(5, WHY).expect("an erase");
    let noted: Vec<_> = log.records.iter().map(|r| (r.op, r.peb, r.offset, r.len)).collect();
    assert_eq!(noted, [(Op::Read, 5, 0, 64), (Op::Write, 5, 0, 512)]);
}

#[test]
fn presets_are_devices() {
    for p in &PRESETS {
        p.geometry.check().unwrap_or_else(|e| panic!("{}: {e}", p.name));
        assert_eq!(preset(p.name), Some(p));
        let steps = p.geometry.page_bytes / p.timing.ecc_step_bytes;
        assert!(steps * p.timing.ecc_check_bytes <= p.oob_bytes, "{}: check bytes do not fit", p.name);
    }
    assert!(preset("no such").is_none());
    for (change, right) in [
        ((|g| g.page_bytes = 3000) as fn(&mut Geometry), "page size = 3000: a power of two"),
        (|g| g.subpage_bytes = 4096, "sub-page size = 4096"),
        (|g| g.peb_bytes = 4096, "PEB size = 4096: at least four pages"),
        (|g| g.peb_bytes = 1 << 27, "PEB size = 134217728: a power of two up to 64 MiB"),
        (|g| g.pebs = 0, "number of PEBs = 0"),
        (|g| g.pebs = 1 << 21, "number of PEBs = 2097152"),
    ] {
        let mut geometry = GEOMETRY;
        change(&mut geometry);
        let e = geometry.check().expect_err(right).to_string();
        assert!(e.starts_with(right), "{e}");
    }
    let e = Nand::new(GEOMETRY, Ecc::new(512, 0), 1).expect_err("no code").to_string();
    assert_eq!(e, "ECC strength = 0: a strength of 1 to 200 bits and a threshold of at most that are needed");
    assert!(Nand::new(GEOMETRY, Ecc::new(4096, 1), 1).is_err());
    let large = Geometry { peb_bytes: 64 << 20, page_bytes: 256, subpage_bytes: 256, pebs: 1 << 20 };
    let e = Nand::new(large, Ecc::new(256, 1), 1).expect_err("too large").to_string();
    assert_eq!(e, "pages = 274877906944: at most 268435456 can be simulated");
}

#[test]
fn an_image_is_erased_behind_its_end() {
    let mut image = Image::new(vec![0x5A; 8192], GEOMETRY).expect("one block");
    assert_eq!(image.present_pebs(), 1);
    let mut out = [0; 4];
    image.read(0, 8188, &mut out, WHY).expect("inside");
    assert_eq!(out, [0x5A; 4]);
    image.read(3, 8188, &mut out, WHY).expect("inside");
    assert_eq!(out, [0xFF; 4]);
    assert!(image.read(4, 0, &mut out, WHY).is_err() && image.read(0, 8190, &mut out, WHY).is_err());
    assert!(!image.is_bad(1));
    let e = Image::new(vec![0; 5 * 8192], GEOMETRY).expect_err("too large").to_string();
    assert_eq!(e, "number of PEBs = 4: the image has more PEBs than that");
    assert!(Image::new(Vec::new(), GEOMETRY).is_err());
}

#[test]
fn sizes_are_guessed() {
    let image = |geometry: Geometry, vid_offset| {
        let head = ImageHead { geometry, vid_offset, image_seq: 1, erase_counter: 0 };
        let data = vec![0x77; 3 * geometry.peb_bytes as usize];
        let volume = ImageVolume::dynamic(0, "v", &data);
        let mut out = Vec::new();
        write_image(&head, &[volume], &mut out).expect("an image");
        out
    };
    for p in &PRESETS {
        // Half a page each for EC and VID header looks like two pages of half the size.
        let halves = p.geometry.subpage_bytes * 2 == p.geometry.page_bytes;
        let bytes = image(p.geometry, None);
        let found = guess(&bytes, &Known::default()).expect(p.name);
        assert_eq!(found.geometry.peb_bytes, p.geometry.peb_bytes, "{}", p.name);
        assert_eq!(found.ambiguous, halves || p.geometry.subpage_bytes == p.geometry.page_bytes, "{}", p.name);
        assert_eq!(found.geometry.page_bytes, p.geometry.page_bytes / if halves { 2 } else { 1 }, "{}", p.name);
        let known = Known { page_bytes: Some(p.geometry.page_bytes), ..Known::default() };
        let found = guess(&bytes, &known).expect(p.name);
        assert_eq!((found.geometry.subpage_bytes, found.vid_offset), (p.geometry.subpage_bytes, None), "{}", p.name);
    }
    // An offset of the VID header that is not the default.
    let slc = Geometry { pebs: 64, ..preset("slc-2k").expect("it").geometry };
    let found = guess(&image(slc, Some(1988)), &Known { subpage_bytes: Some(512), ..Known::default() }).expect("it");
    assert_eq!((found.vid_offset, found.geometry.page_bytes), (Some(1988), 4096));
    // The first block is damaged, others are empty.
    let mut damaged = image(slc, None);
    damaged[..64].fill(0);
    damaged[2 * (128 << 10)..][..128 << 10].fill(0xFF);
    assert_eq!(guess(&damaged, &Known::default()).expect("it").geometry.peb_bytes, 128 << 10);
    // Most of the device is empty.
    let mut sparse = image(slc, None);
    let size = sparse.len();
    sparse.splice(0..0, std::iter::repeat_n(0xFF, 100 * (128 << 10)));
    sparse.resize(512 * (128 << 10), 0xFF);
    assert_eq!(guess(&sparse, &Known::default()).expect("it").geometry, Geometry { pebs: 512, ..slc });
    // Truncated: the size is known, and is the fault.
    sparse = image(slc, None)[..size - 1000].to_vec();
    let found = guess(&sparse, &Known::default()).expect("it").geometry;
    assert_eq!((found.peb_bytes, found.pebs), (128 << 10, 5));
    let e = Image::new(sparse, found).expect_err("cut off").to_string();
    assert!(e.contains("it may be cut off, or the PEB size is another one"), "{e}");
    for (peb_bytes, right) in [
        (0, "PEB size = 0"),
        (3000, "no UBI"),
        (1 << 31, "are not 1 to 1048576 PEBs of 2147483648 bytes"),
        (4096, "PEB size = 4096"),
    ] {
        let known = Known { peb_bytes: Some(peb_bytes), subpage_bytes: Some(512), ..Known::default() };
        let mut bytes = image(slc, None);
        bytes[0] ^= u8::from(peb_bytes == 3000);
        let e = guess(&bytes, &known).expect_err(right).to_string();
        assert!(e.contains(right), "{e}");
    }
    sparse = image(slc, None)[..128 << 10].to_vec();
    let e = guess(&sparse, &Known::default()).expect_err("one block").to_string();
    assert_eq!(e, "a single EC header does not show the PEB size; give it");
    for (bytes, right) in [
        (vec![0; 1 << 20], "no UBI: no EC header at a multiple of 4096 bytes in 1048576 bytes"),
        (Vec::new(), "the image is empty"),
    ] {
        assert_eq!(guess(&bytes, &Known::default()).expect_err(right).to_string(), right);
    }
}
