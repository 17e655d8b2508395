// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaching devices with faulty blocks, and images with impossible contents.

use readpath_nand_testkit::{Device, Ecc, MtdWrite, Nand, Options, PebState, Work};
use readpath_ubi::headers::{EcHeader, LAYOUT_VOLUME, VidHeader, compat};
use readpath_ubi::layout::{Layout, RECORD_BYTES};
use readpath_ubi::mtd::{Geometry, Image, Logged, Mtd, Why};
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubi::vtbl::{parse_table, table_to_bytes};
use readpath_ubi::{NoCache, Ubi, UbiError, attach};

const GEOMETRY: Geometry = Geometry { peb_bytes: 16 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 40 };

/// An image whose blocks are: 0 and 1 the volume table, 2 to 5 LEBs 0 to 3 of a dynamic volume of 10 LEBs with
/// identifier 0; 6 and 7 a static one with identifier 2; the rest free.
struct Maker {
    bytes: Vec<u8>,
    layout: Layout,
}

impl Maker {
    fn new() -> Self {
        let layout = Layout::new(&GEOMETRY, None).expect("a layout");
        let (a, b) = (vec![0xA0; 4 * layout.leb_bytes as usize], vec![0xB0; 20_000]);
        let head = ImageHead { geometry: GEOMETRY, vid_offset: None, image_seq: 9, erase_counter: 10 };
        let mut bytes = Vec::new();
        let volumes = [
            ImageVolume { bytes: Some(10 * u64::from(layout.leb_bytes)), ..ImageVolume::dynamic(0, "data", &a) },
            ImageVolume { is_static: true, ..ImageVolume::dynamic(2, "fixed", &b) },
        ];
        let pebs = write_image(&head, &volumes, &mut bytes).expect("an image");
        assert_eq!(pebs, 8);
        let mut maker = Maker { bytes, layout };
        for _ in 8..GEOMETRY.pebs {
            let mut block = vec![0xFF; GEOMETRY.peb_bytes as usize];
            block[..64].copy_from_slice(&maker.ec_header().to_bytes());
            maker.bytes.extend(block);
        }
        maker
    }

    fn ec_header(&self) -> EcHeader {
        EcHeader::parse(self.bytes[..64].try_into().expect("64 bytes")).expect("a header")
    }

    fn at(&mut self, peb: u32, offset: u32, len: usize) -> &mut [u8] {
        &mut self.bytes[(peb * GEOMETRY.peb_bytes + offset) as usize..][..len]
    }

    fn vid(&mut self, peb: u32) -> VidHeader {
        let offset = self.layout.vid_offset;
        VidHeader::parse((&*self.at(peb, offset, 64)).try_into().expect("64 bytes")).expect("a header")
    }

    fn put_vid(&mut self, peb: u32, header: &VidHeader) {
        let offset = self.layout.vid_offset;
        self.at(peb, offset, 64).copy_from_slice(&header.to_bytes());
    }

    fn put_ec(&mut self, peb: u32, header: &EcHeader) {
        self.at(peb, 0, 64).copy_from_slice(&header.to_bytes());
    }

    /// Makes block `to` another version of block `from`.
    fn copy(&mut self, from: u32, to: u32, change: impl Fn(&mut VidHeader)) {
        let block = self.at(from, 0, GEOMETRY.peb_bytes as usize).to_vec();
        self.at(to, 0, block.len()).copy_from_slice(&block);
        let mut header = self.vid(to);
        change(&mut header);
        self.put_vid(to, &header);
    }

    fn image(&self) -> Result<Ubi<Image<Vec<u8>>>, UbiError> {
        let image = Image::new(self.bytes.clone(), GEOMETRY).expect("40 blocks");
        Ubi::attach(image, NoCache, &attach::Options::default())
    }

    /// Attached for writing.
    fn device(&self) -> Device<Nand> {
        Device::attach(self.nand(), NoCache, &Options::default()).expect("a device")
    }

    fn nand(&self) -> Nand {
        let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 8), 3).expect("a device");
        nand.load(&self.bytes).expect("it fits");
        nand
    }

    fn error(&self) -> String {
        self.image().expect_err("refused").to_string()
    }
}

#[test]
fn a_good_image() {
    let ubi = Maker::new().image().expect("good");
    assert_eq!((ubi.found().free.len(), ubi.found().erase.len(), ubi.found().mean_ec), (32, 0, 10));
    assert_eq!(
        ubi.volumes().map(|v| (v.name(), v.mapped())).collect::<Vec<_>>(),
        [("data".into(), 4), ("fixed".into(), 2)]
    );
    assert_eq!(ubi.volume(2).expect("it").bytes(), 20_000);
}

#[test]
fn damaged_ec_headers() {
    let mut maker = Maker::new();
    maker.at(3, 0, 64)[5] ^= 1; // with data
    maker.at(20, 0, 64)[5] ^= 1; // free
    maker.at(21, 0, 64).fill(0xFF);
    let ubi = maker.image().expect("it can be repaired");
    let found = ubi.found();
    let leb = found.volumes[&0].lebs[&1];
    assert_eq!((leb.peb, leb.scrub, leb.erase_counter), (3, true, 10));
    assert_eq!(found.erase.iter().map(|w| (w.peb, w.erase_counter)).collect::<Vec<_>>(), [(20, 10), (21, 10)]);
    assert_eq!(found.empty_count, 1);
    // Background work gives its contents an EC header again, on another block.
    let mut ubi = maker.device();
    assert_eq!(ubi.wear.state(3), PebState::Scrub);
    ubi.work_all().expect("no faults");
    assert_eq!((ubi.wear.state(3), ubi.moves), (PebState::Free, 1));
    assert_eq!(ubi.wear.ec(3), 11);
    assert_ne!(ubi.volume(0).expect("it").peb(1), Some(3));
}

#[test]
fn flips_in_headers() {
    let maker = Maker::new();
    let mut nand = maker.nand();
    nand.flip(4, 0, 7); // EC header of a used block
    nand.flip(5, 512, 7); // its VID header
    nand.flip(22, 0, 7); // EC header of a free block
    nand.flip(23, 512, 7); // where its VID header would be
    nand.flip(24, 0, 3); // below the threshold
    nand.flip(25, 0, 100); // cannot be corrected
    nand.flip(26, 0, 100);
    nand.flip(26, 512, 100);
    let ubi = Ubi::attach(nand, NoCache, &attach::Options::default()).expect("it");
    let scrub: Vec<_> = ubi.found().volumes[&0].lebs.values().map(|leb| leb.scrub).collect();
    assert_eq!(scrub, [false, false, true, true]);
    let mut erase: Vec<_> = ubi.found().erase.iter().map(|w| w.peb).collect();
    erase.sort_unstable();
    assert_eq!((erase, ubi.found().maybe_bad_count), (vec![22, 23, 25, 26], 1));
    assert!(ubi.found().free.contains(&(24, 10)));
}

#[test]
fn damaged_vid_headers() {
    let mut maker = Maker::new();
    maker.at(3, 512, 64)[9] ^= 1; // with data: kept
    maker.at(20, 512, 64).fill(0x55); // without: a cut write
    let ubi = maker.image().expect("one is not too many");
    assert_eq!((&ubi.found().corrupted[..], ubi.found().erase[0].peb), (&[(3, 10)][..], 20));
    assert!(!ubi.is_mapped(0, 1).expect("a LEB"));
    maker.at(4, 512, 64)[9] ^= 1; // two of 40 are 1/20
    assert_eq!(
        maker.error(),
        "PEB 3 offset 512: bad VID header over data; with 2 such PEBs of 40 the device is refused, 2 are too many"
    );
    // For a part of a device, no number of damaged blocks is too high.
    let part = Image::new(maker.bytes.clone(), GEOMETRY).expect("40 blocks");
    let ubi = Ubi::attach(part, NoCache, &attach::Options::image()).expect("a part");
    assert_eq!(ubi.found().corrupted, [(3, 10), (4, 10)]);
    // Unreadable data shows an interrupted erase.
    let mut nand = maker.nand();
    nand.flip(4, 4096, 100);
    let ubi = Ubi::attach(nand, NoCache, &attach::Options::default()).expect("one again");
    assert_eq!((ubi.found().corrupted.len(), ubi.found().erase.iter().any(|w| w.peb == 4)), (1, true));
}

#[test]
fn the_newer_of_two_wins_unless_it_is_an_incomplete_copy() {
    let mut maker = Maker::new();
    maker.copy(3, 30, |h| h.sqnum = 7);
    maker.copy(4, 31, |h| h.sqnum = 8);
    let full = readpath_crc(&[0xA0; 4096]);
    for (from, to, crc) in [(2, 32, full), (5, 33, full ^ 1)] {
        maker.copy(from, to, |h| (h.sqnum, h.copy_flag, h.data_bytes, h.data_crc) = (9, 1, 4096, crc));
    }
    let ubi = maker.image().expect("good");
    let volume = ubi.volume(0).expect("it");
    assert_eq!([0, 1, 2, 3].map(|lnum| volume.peb(lnum).expect("mapped")), [32, 30, 31, 5]);
    // Incomplete copies are erased first.
    assert_eq!(ubi.found().erase.iter().map(|w| w.peb).collect::<Vec<_>>(), [33, 3, 4, 2]);
    assert_eq!(ubi.found().max_sqnum, 9);

    // The same with the newer version seen first.
    let mut maker = Maker::new();
    for (from, to, crc) in [(2, 32, full), (5, 33, full ^ 1)] {
        maker.copy(from, to, |h| h.sqnum = 3);
        let mut header = maker.vid(from);
        (header.sqnum, header.copy_flag, header.data_bytes, header.data_crc) = (9, 1, 4096, crc);
        maker.put_vid(from, &header);
    }
    let ubi = maker.image().expect("good");
    let volume = ubi.volume(0).expect("it");
    assert_eq!([0, 3].map(|lnum| volume.peb(lnum).expect("mapped")), [2, 33]);

    let mut maker = Maker::new();
    maker.copy(3, 30, |h| h.sqnum = 0);
    assert_eq!(maker.error(), "PEB 30 offset 512: LEB 1 of volume 0 is also in PEB 3, with the same sequence number 0");
}

/// The CRC of UBI, from an independent crate.
fn readpath_crc(bytes: &[u8]) -> u32 {
    !crc32fast::hash(bytes)
}

#[test]
fn headers_that_refuse_the_device() {
    let ec = |change: fn(&mut EcHeader)| {
        let mut maker = Maker::new();
        let mut header = maker.ec_header();
        change(&mut header);
        maker.put_ec(20, &header);
        maker.error()
    };
    assert_eq!(ec(|h| h.image_seq = 8), "PEB 20 offset 24: EC header: image sequence 8, but earlier PEBs have 9");
    assert_eq!(ec(|h| h.version = 2), "PEB 20 offset 0: EC header: UBI version 2 is not supported, only 1");
    assert_eq!(ec(|h| h.vid_offset = 2048), "PEB 20 offset 0: EC header: VID header offset 2048 where 512 is expected");
    assert_eq!(ec(|h| h.data_offset = 4096), "PEB 20 offset 0: EC header: data offset 4096 where 2048 is expected");
    assert_eq!(
        ec(|h| h.erase_counter = 1 << 31),
        "PEB 20 offset 0: EC header: erase counter 2147483648 is above 2147483647"
    );
    // An old UBI wrote no image sequence.
    let mut maker = Maker::new();
    let header = EcHeader { image_seq: 0, ..maker.ec_header() };
    maker.put_ec(20, &header);
    assert!(maker.image().is_ok());

    let vid = |peb: u32, change: fn(&mut VidHeader)| {
        let mut maker = Maker::new();
        let mut header = maker.vid(peb);
        change(&mut header);
        maker.put_vid(peb, &header);
        maker.error()
    };
    for (peb, change, right) in [
        (3, (|h| h.volume = 200) as fn(&mut VidHeader), "VID header: volume 200 is neither below 128 nor an internal"),
        (3, |h| h.lnum = 10, "volume 0: LEB 10 of a volume of 10 LEBs"),
        (3, |h| h.vol_type = 3, "VID header: volume type 3"),
        (3, |h| h.copy_flag = 2, "VID header: copy flag 2"),
        (3, |h| h.copy_flag = 1, "VID header: 0 bytes of data, copy flag 1"),
        (3, |h| h.data_bytes = 1, "VID header: 1 bytes of data, copy flag 0"),
        (3, |h| (h.copy_flag, h.data_bytes) = (1, 1 << 30), "VID header: 1073741824 bytes of data in a LEB of 14336"),
        (3, |h| h.used_lebs = 1, "VID header: used_ebs 1 in a dynamic volume"),
        (3, |h| h.data_pad = 8000, "VID header: data_pad 8000 is at least half of a LEB"),
        (3, |h| h.data_pad = 512, "disagrees with earlier ones of volume 0"),
        (3, |h| h.compat = 5, "VID header: compatibility 5 of volume 0"),
        (6, |h| h.lnum = 2, "VID header: LEB 2 of a static volume of 2 LEBs"),
        (6, |h| h.data_bytes = 5, "VID header: 5 bytes in LEB 0 of a static volume"),
        (1, |h| h.lnum = 2, "LEB 2 of the layout volume, which has LEBs 0 and 1"),
    ] {
        let e = vid(peb, change);
        assert!(e.starts_with(&format!("PEB {peb} offset 512: ")) || e.contains("volume 0: LEB 10"), "{e}");
        assert!(e.contains(right), "{e}");
    }
}

#[test]
fn internal_volumes_that_are_not_known() {
    let with = |compat: u8| {
        let mut maker = Maker::new();
        maker.copy(3, 30, |h| (h.volume, h.compat, h.lnum) = (LAYOUT_VOLUME + 9, compat, 0));
        maker
    };
    let ubi = with(compat::DELETE).image().expect("it is erased");
    assert!(ubi.found().erase.iter().any(|w| w.peb == 30));
    let ubi = with(compat::PRESERVE).image().expect("it is kept");
    assert_eq!(ubi.found().alien, [30]);
    let mut ubi = with(compat::READ_ONLY).device();
    let e = ubi.unmap(0, 0).expect_err("read-only").to_string();
    assert_eq!(e, "UBI is read-only: an internal volume that is not known asks for it");
    assert_eq!(
        with(compat::REJECT).error(),
        "PEB 30 offset 0: LEB 0 of the internal volume 0x7ffff008, which is not supported"
    );
}

/// Replaces a copy of the volume table after changing its bytes; `seal` makes the checksums good.
fn change_table(maker: &mut Maker, copy: u32, seal: bool, change: impl Fn(&mut [u8])) {
    let (offset, bytes) = (maker.layout.data_offset, maker.layout.volume_table_bytes() as usize);
    let table = maker.at(copy, offset, bytes);
    change(table);
    for record in table.chunks_exact_mut(RECORD_BYTES).filter(|_| seal) {
        let crc = readpath_crc(&record[..168]);
        record[168..].copy_from_slice(&crc.to_be_bytes());
    }
}

#[test]
fn copies_of_the_volume_table() {
    let name = |to: &'static str| move |t: &mut [u8]| t[16..20].copy_from_slice(to.as_bytes());
    // Which copy is changed and how; the expected name, and the copies to be rewritten.
    for (copy, seal, expected, rewrite) in [
        (0, false, "data", [true, false]),
        (1, false, "data", [false, true]),
        (0, true, "DATA", [false, true]),
        (1, true, "data", [false, true]),
    ] {
        let mut maker = Maker::new();
        change_table(&mut maker, copy, seal, name("DATA"));
        let ubi = maker.image().expect("one is good");
        assert_eq!((ubi.volume(0).expect("it").name(), ubi.found_table().rewrite), (expected.into(), rewrite));
        // Repaired by an attach that may write.
        let mut ubi = maker.device();
        assert_eq!(ubi.work().expect("no faults"), Work::Erased { peb: u32::from(rewrite[1]) });
        let mut nand = ubi.into_mtd();
        let ubi = Device::attach(&mut nand, NoCache, &Options::default()).expect("it");
        assert_eq!((ubi.volume(0).expect("it").name(), ubi.found_table().rewrite), (expected.into(), [false; 2]));
    }
    let mut maker = Maker::new();
    maker.at(0, 512, 64).fill(0xFF);
    maker.at(0, 2048, 14_336).fill(0xFF);
    assert_eq!(maker.image().expect("copy 1").found_table().rewrite, [true, false]);
    change_table(&mut maker, 1, false, name("DATA"));
    let e = maker.error();
    assert!(
        e.starts_with(
            "PEB 1 offset 2048: no good copy of the volume table: copy 0 is missing; copy 1 in PEB 1: record 0 of the \
                           volume table has CRC 0x"
        ),
        "{e}"
    );
}

#[test]
fn tables_that_make_no_sense() {
    for (right, change) in [
        ("record 0: 41 reserved PEBs, but only 40 good ones", (|t| t[3] = 41) as fn(&mut [u8])),
        ("record 0 reserves nothing but is not empty", |t| t[3] = 0),
        ("record 0: alignment 0", |t| t[7] = 0),
        ("record 0: alignment 3 is not a multiple", |t| t[7] = 3),
        ("record 0: data_pad 5 where 0 is expected", |t| t[11] = 5),
        ("record 0: volume type 7", |t| t[12] = 7),
        ("record 0: update marker 2", |t| t[13] = 2),
        ("record 0: a name of 128 bytes", |t| t[15] = 128),
        ("record 0: a name that does not end", |t| t[15] = 3),
        ("record 0: a name that does not end", |t| t[15] = 0),
        ("records 0 and 2 have the same name \"data\"", |t| {
            let (a, b) = t.split_at_mut(2 * RECORD_BYTES);
            b[..RECORD_BYTES].copy_from_slice(&a[..RECORD_BYTES]);
        }),
        ("volume 0: type 1, the table says 2", |t| t[12] = 2),
        ("volume 0: LEB 3 of a volume of 2 LEBs", |t| t[3] = 2),
    ] {
        let mut maker = Maker::new();
        change_table(&mut maker, 0, true, change);
        let e = maker.error();
        assert!(e.contains(right) && e.starts_with("PEB "), "{e}");
    }
    // A volume whose removal was interrupted.
    let mut maker = Maker::new();
    change_table(&mut maker, 0, true, |t| t[..RECORD_BYTES].fill(0));
    let ubi = maker.image().expect("it");
    assert_eq!(ubi.volumes().count(), 1);
    assert_eq!(ubi.found().erase.iter().map(|w| w.peb).collect::<Vec<_>>(), [2, 3, 4, 5]);
    // A parsed table equals the written one.
    let layout = maker.layout;
    let bytes = maker.at(1, layout.data_offset, layout.volume_table_bytes() as usize).to_vec();
    let table = parse_table(&bytes, &layout, 40).expect("a table");
    assert_eq!(table_to_bytes(&table, &layout)[..14 * 172], bytes[..14 * 172]);
}

#[test]
fn devices_without_ubi() {
    let empty = Maker { bytes: vec![0xFF; GEOMETRY.bytes() as usize], layout: Maker::new().layout };
    let ubi = empty.image().expect("it may be formatted");
    assert!(ubi.found().is_empty && ubi.volumes().count() == 0);
    let mut ubi =
        Device::attach(empty.nand(), NoCache, &Options { image_seq_if_empty: 4, ..Options::default() }).expect("it");
    ubi.work_all().expect("no faults");
    let mut nand = ubi.into_mtd();
    let ubi = Device::attach(&mut nand, NoCache, &Options::default()).expect("formatted");
    assert_eq!((ubi.found().image_seq, ubi.found().free.len(), ubi.found_table().rewrite), (4, 38, [false; 2]));

    let noise = Maker { bytes: vec![0x5A; GEOMETRY.bytes() as usize], layout: empty.layout };
    assert_eq!(noise.error(), "no PEB holds the layout volume, so there is no volume table");
    let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 8), 1).expect("a device");
    for peb in 0..3 {
        nand.flip(peb, 0, 100);
        nand.flip(peb, 512, 100);
    }
    let e = Device::attach(&mut nand, NoCache, &Options::default()).expect_err("not UBI").to_string();
    assert_eq!(e, "not UBI: 3 of 40 PEBs are unreadable, the others empty");
    let mut maker = Maker::new();
    for peb in 0..38 {
        maker.at(peb, 0, 64).fill(0xFF);
    }
    assert_eq!(maker.error(), "no PEB holds the layout volume, so there is no volume table");
}

/// A VID header that is not at the start of a sub-page, here even across the end of a page: read and written together
/// with the bytes before it.
#[test]
fn a_vid_header_at_an_odd_place() {
    let head = ImageHead { geometry: GEOMETRY, vid_offset: Some(1988), image_seq: 9, erase_counter: 10 };
    let mut bytes = Vec::new();
    let volume = ImageVolume { bytes: Some(60_000), ..ImageVolume::dynamic(0, "odd", &[0xC3; 20_000]) };
    write_image(&head, &[volume], &mut bytes).expect("an image");
    let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 8), 3).expect("a device");
    nand.load(&bytes).expect("it fits");
    let options = Options { vid_offset: Some(1988), ..Options::default() };
    let mut ubi = Device::attach(Logged::new(nand), NoCache, &options).expect("it");
    let first: Vec<_> = ubi.mtd().records[..2].iter().map(|r| (r.peb, r.offset, r.len)).collect();
    assert_eq!(first, [(0, 0, 64), (0, 1536, 516)]);
    assert_eq!((ubi.layout().data_offset, ubi.layout().leb_bytes), (4096, 12_288));
    ubi.change(0, 1, &[0x3C; 2048]).expect("a LEB");
    ubi.work_all().expect("no faults");
    let nand = ubi.into_mtd().inner;
    let mut again = Device::attach(nand, NoCache, &options).expect("it");
    let mut out = [0; 3000];
    again.read(0, 1, 0, &mut out, 0).expect("data");
    assert!(out[..2048] == [0x3C; 2048] && out[2048..] == [0xFF; 952]);
    again.read(0, 0, 0, &mut out, 0).expect("data");
    assert_eq!(out, [0xC3; 3000]);
}

#[test]
fn bad_blocks_take_from_the_reserve() {
    let mut nand = Maker::new().nand();
    nand.mark_bad(39).expect("a block");
    nand.wear_out(38);
    nand.wear_out(37);
    let options = Options { bad_pebs_per_1024: 60, ..Options::default() };
    let mut ubi = Device::attach(nand, NoCache, &options).expect("it");
    // 40 * 60 / 1024 = 2.3, rounded up, less one that is bad.
    assert_eq!((ubi.bad_reserve, ubi.available), (2, 39 - 2 - 4 - 12));
    // Use each block: worn-out ones fail, are tortured and marked bad.
    for _ in 0..30 {
        ubi.change(0, 9, &[0x77; 2048]).expect("another block serves");
    }
    ubi.work_all().expect("no more faults");
    assert_eq!((ubi.wear.count(PebState::Bad), ubi.bad_reserve, ubi.available), (3, 0, 39 - 2 - 4 - 12));
    let mut byte = [0];
    ubi.read(0, 9, 2047, &mut byte, 0).expect("data");
    assert_eq!(byte, [0x77]);
}

#[test]
fn a_read_disturbed_block_is_moved_before_it_is_lost() {
    let mut nand = Maker::new().nand();
    nand.faults.disturb_reads = 500;
    nand.faults.most_flips = 200;
    let mut ubi = Device::attach(nand, NoCache, &Options::default()).expect("it");
    let mut out = [0; 64];
    for i in 0..2_000_000u32 {
        ubi.read(0, 1, i % 200 * 64, &mut out, 0).expect("a LEB");
        assert_eq!(out, [0xA0; 64], "read {i}");
        if i % 1000 == 0 {
            ubi.work_all().expect("no other faults");
        }
    }
    assert!(ubi.moves > 5, "{}", ubi.moves);
}

#[test]
fn wear_is_evened_out() {
    let run = |threshold| {
        let nand = Maker::new().nand();
        let options = Options { wear_threshold: threshold, ..Options::default() };
        let mut ubi = Device::attach(nand, NoCache, &options).expect("it");
        for i in 0..20_000u32 {
            ubi.change(0, 9, &[i as u8; 2048]).expect("a LEB");
            ubi.work_all().expect("no faults");
        }
        let (least, most) = ubi.wear.ec_range();
        (ubi.moves, most - least)
    };
    let (moves, spread) = run(16);
    assert!(moves > 50 && spread <= 32, "{moves} {spread}");
    let (moves, spread) = run(100_000);
    assert!(moves == 0 && spread > 400, "{moves} {spread}");
}

#[test]
fn a_large_device_that_is_mostly_empty_is_cheap() {
    let geometry = Geometry { peb_bytes: 4 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 1024 };
    let nand = Nand::new(geometry, Ecc::new(1024, 40), 1).expect("4 GiB");
    let mut ubi = Device::attach(nand, NoCache, &Options::default()).expect("empty");
    ubi.work_all().expect("no faults");
    // EC header of each block, VID header and table of two of them.
    assert_eq!(ubi.mtd().data_bytes(), (1024 + 2 * 3) * 16_384);
    assert_eq!(ubi.mtd().counts.erases, 1024);
    ubi.mtd_mut().read(1023, 0, &mut [0; 4], Why::Check).expect("a read");
}

#[test]
fn what_an_update_left_behind_need_not_agree() {
    let mut maker = Maker::new();
    let header = VidHeader { sqnum: 5, ..maker.vid(6) };
    maker.put_vid(6, &header);
    maker.copy(6, 30, |h| (h.sqnum, h.used_lebs) = (1, 3));
    let ubi = maker.image().expect("the older one is not used");
    assert_eq!(ubi.volume(2).expect("it").peb(0), Some(6));
    maker.copy(6, 30, |h| (h.sqnum, h.used_lebs) = (9, 3));
    let error = maker.error();
    assert!(error.starts_with("PEB 30 offset 512: VID header disagrees with earlier ones of volume 2"), "{error}");
}

#[test]
fn findings_tell_damage_from_what_a_power_cut_leaves() {
    let mut maker = Maker::new();
    assert_eq!(maker.image().expect("good").findings().expect("it can be read"), []);
    let data = maker.layout.data_offset;
    maker.at(3, 0, 64)[5] ^= 1; // EC header of a used block
    maker.at(4, 512, 64)[9] ^= 1; // VID header over data
    maker.at(20, 0, 64)[5] ^= 1; // EC header of a free block
    maker.at(21, 0, 64)[5] ^= 1; // both headers
    maker.at(21, 512, 64).fill(0x55);
    maker.at(22, 512, 64).fill(0x55); // a cut write of a header
    maker.copy(2, 30, |h| h.sqnum = 7); // a newer version
    maker.copy(5, 31, |h| (h.sqnum, h.copy_flag, h.data_bytes, h.data_crc) = (8, 1, 2048, 1)); // a copy that was cut
    maker.copy(5, 32, |h| h.volume = 77); // blocks of a volume that is not in the table
    maker.copy(5, 33, |h| (h.volume, h.lnum) = (77, 9));
    maker.at(1, data, 64)[3] ^= 1; // a copy of the table
    maker.at(6, data, 64)[3] ^= 1; // static data
    let findings = maker.image().expect("it can be attached").findings().expect("it can be read");
    let found: Vec<_> = findings.iter().map(|f| (f.kind, f.is_damage, f.place)).collect();
    let expected = [
        ("bad-ec-header", true, 3, 0),
        ("bad-vid-header", true, 4, 512),
        ("bad-ec-header", false, 20, 0),
        ("bad-headers", false, 21, 0),
        ("bad-vid-header", false, 22, 512),
        ("older-leb", false, 2, 512),
        ("unfinished-copy", false, 31, 512),
        ("unknown-volume", false, 32, 512),
        ("bad-volume-table", true, 1, data),
        ("bad-static-data", true, 6, data),
    ];
    assert_eq!(found, expected.map(|(kind, is_damage, peb, offset)| (kind, is_damage, Some((peb, offset)))));
    assert_eq!(
        findings[0].to_string(),
        "PEB 3 offset 0: bad-ec-header: the EC header is damaged; the block holds LEB 1 of volume 0"
    );
    assert!(findings[5].to_string().contains("older-leb (not damage): LEB 0 of volume 0 is also in PEB 30"));
    assert!(findings[7].detail.starts_with("the first of 2 blocks of volume 77, which the volume table does not name"));
}

#[test]
fn data_in_blocks_that_headers_call_empty_are_found() {
    let mut maker = Maker::new();
    let (vid, data) = (maker.layout.vid_offset, maker.layout.data_offset);
    maker.at(2, vid, 64).fill(0xFF); // VID header of a used block
    maker.at(3, 0, 64).fill(0xFF); // EC header of a used block
    maker.at(4, 0, data as usize).fill(0xFF); // both
    maker.at(5, 0, 64).fill(0); // both, otherwise
    maker.at(5, vid, 64).fill(0xFF);
    maker.at(6, vid, 64).fill(0); // VID header of a static volume's block
    maker.at(20, data + 5000, 1).fill(0); // one byte in a free block
    maker.at(21, 0, 64).fill(0xFF); // a block that is erased as a whole
    let findings = maker.image().expect("it can be attached").findings().expect("it can be read");
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let expected = [
        "PEB 5 offset 0: bad-ec-header (not damage): the EC header is damaged, there is no VID header: to be erased",
        "PEB 6 offset 512: bad-vid-header: the VID header is damaged, so the owner of the data is unknown: the \
         block is kept",
        "PEB 2 offset 2048: data-without-vid-header: no VID header, but data from here on: the block is taken as free, \
         the LEB in it is lost",
        "PEB 20 offset 7048: data-without-vid-header: no VID header, but data from here on: the block is taken as \
         free, the LEB in it is lost",
        "PEB 3 offset 2048: data-without-ec-header (not damage): no EC header, but data of LEB 1 of volume 0 from here \
         on: to be erased",
        "PEB 4 offset 2048: data-without-headers (not damage): no headers that are good, but data from here on, as an \
         interrupted erase may leave: to be erased",
        "PEB 5 offset 2048: data-without-headers (not damage): no headers that are good, but data from here on, as an \
         interrupted erase may leave: to be erased",
        "bad-static-data: LEB 0 of volume 2: it is missing in a static volume",
    ];
    let mut sorted = found.clone();
    sorted.sort();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted, "{found:#?}");
    // A block that cannot be read without errors is a trace of an interrupted erase.
    let mut nand = maker.nand();
    nand.flip(20, data + 4096, 100);
    let mut ubi = Ubi::attach(nand, NoCache, &attach::Options::default()).expect("it");
    let findings = ubi.findings().expect("it can be read");
    let of_data: Vec<_> = findings.iter().filter(|f| f.kind == "data-without-vid-header").collect();
    assert_eq!(of_data.iter().map(|f| f.place).collect::<Vec<_>>(), [Some((2, data))]);
}

/// A further number would wrap, and old blocks would look newer.
#[test]
fn a_device_at_the_last_sequence_number_is_only_read() {
    let mut maker = Maker::new();
    maker.copy(2, 30, |h| h.sqnum = u64::MAX);
    assert_eq!(maker.image().expect("it can be read").found().max_sqnum, u64::MAX);
    let error = Device::attach(maker.nand(), NoCache, &Options::default()).expect_err("refused").to_string();
    assert!(error.contains("the sequence number 18446744073709551615") && error.contains("read-only"), "{error}");
}
