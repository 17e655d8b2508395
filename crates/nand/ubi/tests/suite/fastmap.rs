// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaching by a fastmap. The fastmaps are put together here, field by field (layout: Linux,
//! drivers/mtd/ubi/ubi-media.h), because no tool writes them.

use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options, PebState};
use readpath_ubi::attach::{self, AttachInfo, Method};
use readpath_ubi::headers::{FASTMAP_DATA_VOLUME, FASTMAP_SB_VOLUME, LAYOUT_VOLUME, VidHeader, compat};
use readpath_ubi::mtd::{Geometry, Image, Logged};
use readpath_ubi::{NoCache, Ubi, UbiError};

const GEOMETRY: Geometry = Geometry { peb_bytes: 8 << 10, page_bytes: 1024, subpage_bytes: 512, pebs: 100 };
const VID: usize = 512;
const DATA: usize = 1024;
const LEB: usize = 7168;

/// A fastmap, and the device that it was written to.
struct Written {
    image: Vec<u8>,
    /// Blocks of the fastmap.
    blocks: [u32; 2],
    /// A block of the pool that was written since.
    filled: u32,
    /// A block of the pool that is still free.
    still_free: u32,
    /// A block that waits for its erasure.
    waiting: u32,
    /// Bytes of the fastmap.
    map: Vec<u8>,
    /// Offsets in it of the block of LEB 0 of volume 0, and of the block that waits for its erasure.
    leb_0: usize,
    erase_at: usize,
}

fn put(bytes: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|w| bytes.extend(w.to_be_bytes()));
}

fn dump(ubi: &Device<Nand>) -> Vec<u8> {
    let mut image = Vec::new();
    ubi.mtd().write_image(&mut image).expect("memory");
    image
}

/// A device with two volumes, a fastmap of it, and some changes after that.
fn written() -> Written {
    let nand = Nand::new(GEOMETRY, Ecc::new(512, 4), 1).expect("a device");
    let mut ubi =
        Device::attach(nand, NoCache, &Options { image_seq_if_empty: 5, ..Options::default() }).expect("empty");
    ubi.create_volume(&NewVolume::dynamic("a", 20)).expect("room");
    ubi.create_volume(&NewVolume { is_static: true, ..NewVolume::dynamic("b", 5) }).expect("room");
    for lnum in [0, 1, 2, 7] {
        ubi.write(0, lnum, 0, &[lnum as u8; 2048]).expect("a LEB");
    }
    ubi.update_volume(1, &[0xBB; 10_000]).expect("room");
    ubi.work_all().expect("no faults");
    // One block waits for its erasure, one has flips.
    ubi.unmap(0, 2).expect("a LEB");
    let waits = dump(&ubi);
    let found = read(waits, true).expect("a dump").found().clone();
    let waiting = found.volumes[&0].lebs[&2].peb;
    let scrub = found.volumes[&0].lebs[&1].peb;

    // From here on the image is changed directly.
    let mut image = dump(&ubi);
    let free: Vec<u32> = found.free.iter().map(|&(peb, _)| peb).collect();
    let (blocks, filled, still_free) = ([free[0], free[1]], free[2], free[3]);
    assert!(blocks.iter().all(|&peb| peb < 64));
    let ec = |peb: u32| found.free.iter().find(|f| f.0 == peb).map_or(0, |f| f.1);
    let mut map = vec![0; 312];
    let pool = |pebs: &[u32]| {
        let mut pool = Vec::new();
        put(&mut pool, &[0x67AF_4D08, (pebs.len() as u32) << 16 | 16]);
        put(&mut pool, pebs);
        pool.resize(1048, 0);
        pool
    };
    let others: Vec<(u32, u32)> =
        found.free.iter().copied().filter(|f| !blocks.contains(&f.0) && f.0 != filled && f.0 != still_free).collect();
    let lebs = || found.volumes.values().flat_map(|v| v.lebs.values());
    let used: Vec<_> = lebs().filter(|l| l.peb != waiting && l.peb != scrub).collect();
    put(&mut map, &[0xD4B8_2EF7, others.len() as u32, used.len() as u32, 1, 0, 1, 3, 0]);
    map.extend(pool(&[filled]));
    map.extend(pool(&[still_free]));
    others.iter().for_each(|&(peb, ec)| put(&mut map, &[peb, ec]));
    used.iter().for_each(|l| put(&mut map, &[l.peb, l.erase_counter]));
    put(&mut map, &[scrub, found.volumes[&0].lebs[&1].erase_counter]);
    let erase_at = map.len();
    put(&mut map, &[waiting, found.volumes[&0].lebs[&2].erase_counter]);
    let leb_0 = map.len() + 32 + 8;
    for (id, lebs) in [(0, 20), (1, 5), (LAYOUT_VOLUME, 2)] {
        let volume = &found.volumes[&id];
        let (vol_type, used_lebs) = if id == 1 { (4, volume.used_lebs) } else { (3, lebs) };
        let last = if id == 1 { volume.last_data_bytes } else { LEB as u32 };
        put(&mut map, &[0xFA37_0ED1, id, vol_type << 24, 0, used_lebs, last, 0, 0]);
        put(&mut map, &[0xF0C0_40A8, lebs]);
        for lnum in 0..lebs {
            let peb = volume.lebs.get(&lnum).map(|l| l.peb).filter(|&peb| peb != waiting);
            put(&mut map, &[peb.unwrap_or(u32::MAX)]);
        }
    }
    map.resize(2 * LEB, 0);
    let mut head = Vec::new();
    put(&mut head, &[0x7B11_D69F, 1 << 24, 0, 2]);
    put(&mut head, &blocks);
    head.resize(144, 0);
    put(&mut head, &[ec(blocks[0]), ec(blocks[1])]);
    map[..head.len()].copy_from_slice(&head);

    // After the fastmap: a logical block gets a new version, in the block of the pool.
    let at = |peb: u32| peb as usize * GEOMETRY.peb_bytes as usize;
    let header = VidHeader { version: 1, vol_type: 1, lnum: 7, sqnum: 900, ..VidHeader::default() };
    image[at(filled) + VID..][..64].copy_from_slice(&header.to_bytes());
    image[at(filled) + DATA..][..1024].fill(0x77);
    Written { image, blocks, filled, still_free, waiting, map, leb_0, erase_at }
}

impl Written {
    /// The device with this fastmap.
    fn device(&self) -> Vec<u8> {
        let mut image = self.image.clone();
        self.put_map(&mut image, &self.map, self.blocks, 800);
        image
    }

    /// The same device, with the superblock of an older fastmap, which does not know LEB 0, in the block that waits
    /// for its erasure.
    fn device_with_two(&self) -> Vec<u8> {
        let (mut image, mut map) = (self.device(), self.map.clone());
        map[16..20].copy_from_slice(&self.waiting.to_be_bytes());
        map[self.erase_at..self.erase_at + 4].copy_from_slice(&self.blocks[0].to_be_bytes());
        map[self.leb_0..self.leb_0 + 4].fill(0xFF);
        // Its second block is full of zeros like that of the newer one, so both can share it.
        self.put_map(&mut image, &map[..], [self.waiting, self.blocks[1]], 700);
        let mut newer = self.device();
        let at = self.blocks[1] as usize * GEOMETRY.peb_bytes as usize;
        image[at..at + GEOMETRY.peb_bytes as usize].swap_with_slice(&mut newer[at..at + GEOMETRY.peb_bytes as usize]);
        image
    }

    fn put_map(&self, image: &mut [u8], map: &[u8], blocks: [u32; 2], first_sqnum: u64) {
        let mut map = map.to_vec();
        map[8..12].fill(0);
        let crc = !crc32fast::hash(&map);
        map[8..12].copy_from_slice(&crc.to_be_bytes());
        for (i, (&peb, piece)) in (0..).zip(blocks.iter().zip(map.chunks(LEB))) {
            let at = peb as usize * GEOMETRY.peb_bytes as usize;
            let volume = if i == 0 { FASTMAP_SB_VOLUME } else { FASTMAP_DATA_VOLUME };
            let (version, vol_type, compat, sqnum) = (1, 1, compat::DELETE, first_sqnum + u64::from(i));
            let header = VidHeader { version, vol_type, compat, volume, lnum: i, sqnum, ..VidHeader::default() };
            image[at + VID..][..64].copy_from_slice(&header.to_bytes());
            image[at + DATA..][..LEB].copy_from_slice(piece);
        }
    }

    fn attach(&self, fastmap: bool) -> Result<Read, UbiError> {
        read(self.device(), fastmap)
    }
}

type Read = Ubi<Logged<Image<Vec<u8>>>>;

fn read(image: Vec<u8>, fastmap: bool) -> Result<Read, UbiError> {
    let mtd = Logged::new(Image::new(image, GEOMETRY).expect("a device"));
    Ubi::attach(mtd, NoCache, &attach::Options { fastmap, ..attach::Options::default() })
}

/// Volume, logical block, block and erase counter: the fields that a fastmap and a scan share.
fn mapping(found: &AttachInfo) -> Vec<[u32; 4]> {
    let lebs = found.volumes.iter().flat_map(|(&id, v)| v.lebs.iter().map(move |(&lnum, l)| (id, lnum, l)));
    lebs.map(|(id, lnum, l)| [id, lnum, l.peb, l.erase_counter]).collect()
}

#[test]
fn a_fastmap_says_what_a_scan_finds() {
    let written = written();
    let fast = written.attach(true).expect("good");
    let scanned = written.attach(false).expect("good");
    let (a, b) = (fast.found(), scanned.found());
    assert_eq!((a.method, b.method), (Method::Fastmap { anchor: written.blocks[0] }, Method::Scan));
    // The fastmap knows that LEB 2 was unmapped; a scan finds it again.
    let mut expected = mapping(b);
    expected.retain(|&[id, lnum, ..]| (id, lnum) != (0, 2));
    assert_eq!(mapping(a), expected);
    assert_eq!((a.max_sqnum, b.max_sqnum, a.image_seq), (900, 900, 5));
    let (v, w) = (fast.volume(1).expect("it"), scanned.volume(1).expect("it"));
    assert_eq!((v, v.bytes()), (w, 10_000));
    assert_eq!(fast.volume(0).expect("it").peb(7), Some(written.filled));
    assert!(a.volumes[&0].lebs[&1].scrub && !b.volumes[&0].lebs[&1].scrub);
    let free = |f: &AttachInfo| {
        let mut free = f.free.clone();
        free.sort_unstable();
        free
    };
    assert_eq!(free(a), free(b));
    assert!(a.free.iter().any(|&(peb, _)| peb == written.still_free));
    // Headers of the first blocks, of the fastmap's blocks and of the pools; not of the others.
    let highest = |ubi: &Read| ubi.mtd().records.iter().filter(|r| r.peb >= 64).count();
    assert_eq!((highest(&fast), highest(&scanned)), (0, 72));
}

#[test]
fn a_fastmap_that_does_not_hold_together_is_not_used() {
    let good = written();
    let lists = 312 + 32 + 2 * 1048;
    for (right, at, word) in [
        ("no superblock of version 1", 0, 7),
        ("it has 3 blocks where 2 are expected", 12, 3),
        ("has 0x00000007 where 0xd4b82ef7 is expected", 312, 7),
        ("PEB 200 is named twice, does not exist", lists, 200),
        ("PEB 99 is named twice", lists, 99),
        ("is named twice, does not exist or has the erase counter", 312 + 4, u32::MAX),
        ("has 0x00000000 where 0xfa370ed1 is expected", 312 + 24, u32::MAX),
        ("a pool of 257 PEBs", 312 + 32 + 4, 257 << 16),
        ("PEB 300 is bad or does not exist", 312 + 32 + 8, 300),
        ("appears 0 times", 312 + 32 + 8, 1),
        ("0 bad PEBs, it says 1", 312 + 16, 1),
    ] {
        let mut bad = written();
        bad.map[at..at + 4].copy_from_slice(&u32::to_be_bytes(word));
        let ubi = bad.attach(true).expect("a scan finds all");
        let fault = ubi.found().fastmap_fault.clone().unwrap_or_default();
        assert!(fault.contains(right), "\"{fault}\" instead of \"{right}\"");
        let scanned = good.attach(false).expect("a scan");
        assert_eq!((ubi.found().method, mapping(ubi.found())), (Method::Scan, mapping(scanned.found())));
    }
    // A flipped bit in its last block.
    let mut image = good.device();
    image[good.blocks[1] as usize * GEOMETRY.peb_bytes as usize + DATA + 5000] ^= 1;
    let ubi = read(image, true).expect("a scan");
    assert!(ubi.found().fastmap_fault.as_ref().is_some_and(|f| f.contains("its CRC is")), "{:?}", ubi.found().method);
}

#[test]
fn the_first_write_ends_a_fastmap() {
    let written = written();
    let mut ubi = Device::attach(nand(&written.device()), NoCache, &Options::default()).expect("good");
    assert!(matches!(ubi.found().method, Method::Fastmap { .. }));
    ubi.change(0, 1, &[0x55; 1024]).expect("a LEB");
    // Power is cut at once: the fastmap would now be wrong.
    let nand = ubi.into_mtd();
    let mut ubi = Device::attach(nand, NoCache, &Options::default()).expect("good");
    assert_eq!((ubi.found().method, &ubi.found().fastmap_fault), (Method::Scan, &None));
    let mut byte = [0];
    ubi.read(0, 1, 0, &mut byte, 0).expect("data");
    assert_eq!(byte, [0x55]);
    ubi.work_all().expect("no faults");
    assert_eq!(
        ubi.wear.count(PebState::Used) + ubi.wear.count(PebState::Free) + ubi.wear.count(PebState::Protected),
        100
    );
}

fn nand(image: &[u8]) -> Nand {
    let mut nand = Nand::new(GEOMETRY, Ecc::new(512, 4), 1).expect("a device");
    nand.load(&image).expect("it fits");
    nand
}

/// Power is cut: the next attach must not believe a fastmap from before the change of LEB 1.
fn expect_change(nand: Nand, what: &str) {
    let mut ubi = Device::attach(nand, NoCache, &Options::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(ubi.found().method, Method::Scan, "{what}");
    let mut byte = [0];
    ubi.read(0, 1, 0, &mut byte, 0).expect("data");
    assert_eq!(byte, [0x55], "{what}");
}

#[test]
fn no_fastmap_of_before_is_believed_after_a_write() {
    let written = written();
    let two = written.device_with_two();
    // Linux leaves two if the power is cut before the old one is erased.
    let reader = read(two.clone(), true).expect("good");
    assert_eq!(reader.found().method, Method::Fastmap { anchor: written.blocks[0] });
    assert_eq!(reader.found().anchors, [written.waiting, written.blocks[0]]);
    // A block of the pool with a torn header: the fastmap is not used while it exists.
    let mut torn = written.device();
    torn[written.still_free as usize * GEOMETRY.peb_bytes as usize + VID..][..8].fill(0x5A);
    for (what, image, fastmap) in [
        ("two", &two, true),
        ("two, scanned", &two, false),
        ("torn", &torn, true),
        ("ignored", &written.device(), false),
    ] {
        let mut ubi = Device::attach(nand(image), NoCache, &Options { fastmap, ..Options::default() }).expect("good");
        ubi.change(0, 1, &[0x55; 1024]).expect("a LEB");
        // Repeat until that block is erased.
        loop {
            expect_change(ubi.mtd().clone(), what);
            if ubi.wear.erase_count() == 0 {
                break;
            }
            ubi.work().expect("no faults");
        }
    }
}

#[test]
fn a_cut_while_fastmaps_end_leaves_none_that_is_older() {
    let written = written();
    let expected = mapping(written.attach(true).expect("good").found());
    for at in 0.. {
        let mut nand = nand(&written.device_with_two());
        nand.cut_after(at);
        let whole = Device::attach(&mut nand, NoCache, &Options::default()).is_ok();
        nand.power_on();
        let ubi = Ubi::attach(nand, NoCache, &attach::Options::default()).expect("good");
        let mut seen = mapping(ubi.found());
        // A scan finds LEB 2 again, whose block was only unmapped; here its block holds the older fastmap.
        seen.iter_mut().zip(&expected).for_each(|(seen, expected)| seen[3] = expected[3]);
        assert_eq!(seen, expected, "cut {at}");
        if whole {
            assert!(at >= 4, "two erases and two EC headers");
            break;
        }
    }
}

#[test]
fn logical_blocks_of_a_pool_are_bounded() {
    for (volume, lnum, right) in [
        (LAYOUT_VOLUME, 5, "LEB 5 of the layout volume, which has LEBs 0 and 1"),
        (0, 1 << 20, "LEB 1048576 of a volume of 20 LEBs"),
    ] {
        let mut written = written();
        let header = VidHeader { version: 1, vol_type: 1, volume, lnum, sqnum: 900, ..VidHeader::default() };
        let compat = if volume == 0 { 0 } else { compat::REJECT };
        let at = written.filled as usize * GEOMETRY.peb_bytes as usize + VID;
        written.image[at..at + 64].copy_from_slice(&VidHeader { compat, ..header }.to_bytes());
        // The fastmap is not used, and the scan refuses the block.
        let error = written.attach(true).expect_err("refused").to_string();
        assert!(error.contains(right), "{error}");
    }
}
