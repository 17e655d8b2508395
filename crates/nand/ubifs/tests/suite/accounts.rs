// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong figures under good checksums: properties of blocks, sums in the master, fields of inodes. Each is the only
//! damage, and the check names it; traces of an interrupted commit are no damage.

use crate::common::DUMPS;
use crate::common::patient::{At, LEB_BYTES, Patient, bits, key, le32, put_bits, seal_packed};
use readpath_ubifs::{Bud, DamageKind, LptShape, NodeType};

const PAGE: u32 = 2048;
const WHOLE: u32 = LEB_BYTES as u32;

/// Free and dirty bytes of a block, and whether it holds the index.
type Figures = (u32, u32, bool);

/// Root of the properties tree, and its packing.
struct Tree {
    root: (u32, u32),
    lpt_first: u32,
    main: std::ops::Range<u32>,
    shape: LptShape,
    buds: Vec<Bud>,
}

fn tree(patient: &Patient) -> Tree {
    let fs = patient.mounted();
    let (sb, master) = (fs.superblock(), fs.master());
    let main = sb.main_first()..master.leb_count;
    Tree { root: master.lpt_root, lpt_first: sb.lpt_first(), main, shape: LptShape::new(sb), buds: fs.buds().to_vec() }
}

impl Tree {
    /// The leaf with a block's figures, and the offset in bits of these.
    fn leaf_of(&self, patient: &mut Patient, lnum: u32) -> (At, u32) {
        let (i, shape) = (lnum - self.main.start, &self.shape);
        let mut at = self.root;
        for level in (0..shape.height).rev() {
            let inner = patient.bytes((at.0, at.1, shape.inner_bytes));
            let child = (i / 4) >> (2 * level) & 3;
            let begin = 20 + child * (shape.lnum_bits + shape.offset_bits);
            let lnum = self.lpt_first + bits(inner, begin, shape.lnum_bits);
            at = (lnum, bits(inner, begin + shape.lnum_bits, shape.offset_bits));
        }
        ((at.0, at.1, shape.leaf_bytes), 20 + i % 4 * (2 * shape.space_bits + 1))
    }

    fn figures(&self, patient: &mut Patient, lnum: u32) -> Figures {
        let (leaf, at) = self.leaf_of(patient, lnum);
        let (bytes, n) = (patient.bytes(leaf), self.shape.space_bits);
        (bits(bytes, at, n) << 3, bits(bytes, at + n, n) << 3, bits(bytes, at + 2 * n, 1) == 1)
    }

    /// Changes a block's figures, and the sums in the master accordingly.
    fn set(&self, patient: &mut Patient, lnum: u32, (free, dirty, index): Figures) {
        let (old_free, old_dirty, old_index) = self.figures(patient, lnum);
        let (leaf, at) = self.leaf_of(patient, lnum);
        let (bytes, n) = (patient.bytes(leaf), self.shape.space_bits);
        put_bits(bytes, at, n, free >> 3);
        put_bits(bytes, at + n, n, dirty >> 3);
        put_bits(bytes, at + 2 * n, 1, u32::from(index));
        seal_packed(bytes);
        let used = |free, dirty, index| if index { 0 } else { u64::from(WHOLE - free - dirty) };
        patient.change_masters(|node| {
            for (at, new, old) in [
                (80, free.into(), old_free.into()),
                (88, dirty.into(), old_dirty.into()),
                (96, used(free, dirty, index), used(old_free, old_dirty, old_index)),
            ] {
                let sum = u64::from_le_bytes(node[at..at + 8].try_into().expect("8 bytes"));
                node[at..at + 8].copy_from_slice(&(sum + new - old).to_le_bytes());
            }
            let lebs = le32(node, 160) + u32::from(index) - u32::from(old_index);
            node[160..164].copy_from_slice(&lebs.to_le_bytes());
        });
    }

    /// The first block with used nodes, without the journal, whose figures match.
    fn block(&self, patient: &mut Patient, fits: impl Fn(Figures) -> bool) -> Option<(u32, Figures)> {
        let mut blocks = self.main.clone().filter(|lnum| self.buds.iter().all(|bud| bud.lnum != *lnum));
        blocks.find_map(|lnum| {
            let found = self.figures(patient, lnum);
            (found.0 + found.1 < WHOLE && fits(found)).then_some((lnum, found))
        })
    }
}

#[test]
fn the_tests_change_nothing_else() {
    for (dump, _) in DUMPS {
        let mut patient = Patient::new(dump);
        let before = patient.image.clone();
        let tree = tree(&patient);
        for lnum in tree.main.clone().take(12) {
            let same = tree.figures(&mut patient, lnum);
            tree.set(&mut patient, lnum, same);
        }
        assert!(before == patient.image, "{dump}");
    }
}

#[test]
fn free_space_that_properties_do_not_know_is_named() {
    // Of "fxj" all blocks with free space are of the journal.
    for dump in ["fx", "fxu"] {
        let mut patient = Patient::new(dump);
        let tree = tree(&patient);
        let (lnum, (free, dirty, _)) =
            tree.block(&mut patient, |(free, _, index)| free >= PAGE && !index).expect("a block");
        let end = WHOLE - free;
        tree.set(&mut patient, lnum, (free - PAGE, dirty + PAGE, false));
        let text = patient.expect_only(DamageKind::WrongProperties, (lnum, end, 0));
        let says = format!("its properties say the last {} bytes are free; nodes end at {end}", free - PAGE);
        assert!(text.ends_with(&says), "{dump}: {text}");
        // More is used than the index uses.
        tree.set(&mut patient, lnum, (free - PAGE, dirty, false));
        let text = patient.expect(DamageKind::WrongProperties, (lnum, 0, 0)).detail;
        assert!(text.contains("bytes are in use, the index uses"), "{text}");
    }
    for dump in ["fxj", "fxu"] {
        let mut patient = Patient::new(dump);
        let tree = tree(&patient);
        let (lnum, (free, dirty, _)) =
            tree.block(&mut patient, |(free, dirty, index)| free == 0 && dirty >= PAGE && !index).expect("a block");
        tree.set(&mut patient, lnum, (free + PAGE, dirty - PAGE, false));
        let text = patient.expect_only(DamageKind::WrongProperties, (lnum, WHOLE - PAGE, 0));
        assert!(text.ends_with(&format!("the last 2048 bytes are free; nodes end at {WHOLE}")), "{dump}: {text}");
    }
}

#[test]
fn free_space_that_is_not_empty_is_named() {
    for dump in ["fx", "fxu"] {
        let mut patient = Patient::new(dump);
        let found = tree(&patient).block(&mut patient, |(free, _, index)| free >= PAGE && !index);
        let (lnum, (free, ..)) = found.expect("a block");
        let end = WHOLE - free;
        patient.bytes((lnum, end + 700, 1))[0] = 0x5A;
        let text = patient.expect_only(DamageKind::BadNode, (lnum, end + 700, 0));
        assert!(text.ends_with(&format!("not empty, although empty space began at {end}")), "{dump}: {text}");
    }
    // Where the journal continues.
    let mut patient = Patient::new("fxj");
    let bud = tree(&patient).buds[0];
    patient.bytes((bud.lnum, bud.end + 700, 1))[0] = 0x5A;
    patient.expect_only(DamageKind::BadJournal, (bud.lnum, bud.end + 700, 0));
}

#[test]
fn the_journal_begins_where_free_space_did() {
    let mut patient = Patient::new("fxu");
    let tree = tree(&patient);
    let goes_on = |bud: &&Bud| bud.start > 0;
    let bud = *tree.buds.iter().find(goes_on).expect("a block that the journal goes on in");
    let (free, dirty, _) = tree.figures(&mut patient, bud.lnum);
    assert_eq!(free, WHOLE - bud.start);
    tree.set(&mut patient, bud.lnum, (free + PAGE, dirty - PAGE, false));
    let text = patient.expect_only(DamageKind::WrongProperties, (bud.lnum, bud.start - PAGE, 0));
    let says = format!("say the last {} bytes are free; the journal goes on at {}", free + PAGE, bud.start);
    assert!(text.ends_with(&says), "{text}");
    tree.set(&mut patient, bud.lnum, (free, dirty, false));
    patient.assert_clean("as before");
    // The bytes before the journal are checked.
    patient.bytes((bud.lnum, bud.start - PAGE, PAGE)).fill(0xFF);
    let found = patient.report().findings;
    let text = format!("LEB {} ", bud.lnum);
    assert!(found.iter().any(|d| d.to_string().starts_with(&text) && d.place.offset >= bud.start - PAGE), "{found:#?}");
}

#[test]
fn the_index_flag_is_checked() {
    let mut patient = Patient::new("fx");
    let tree = tree(&patient);
    let (leaves, (free, dirty, _)) = tree.block(&mut patient, |(_, _, index)| !index).expect("a block");
    tree.set(&mut patient, leaves, (free, dirty, true));
    let text = patient.expect_only(DamageKind::WrongProperties, (leaves, 0, 0));
    assert!(text.ends_with("say that it holds the index, but the index leads to leaves in it"), "{text}");
    let mut patient = Patient::new("fx");
    let (index, (free, dirty, _)) = tree.block(&mut patient, |(_, _, index)| index).expect("a block");
    tree.set(&mut patient, index, (free, dirty, false));
    let text = patient.expect_only(DamageKind::WrongProperties, (index, 0, 0));
    assert!(text.ends_with("index nodes are in it, but its properties do not say that it holds the index"), "{text}");
}

/// Linux does not read such places either: it unmaps a block before it writes to it from its beginning.
#[test]
fn what_an_interrupted_commit_leaves_is_no_damage() {
    // At the end of the index, where a commit had begun to write; after an unmount no commit was interrupted.
    for (dump, is_damage) in [("fxu", false), ("fxj", true)] {
        let mut patient = Patient::new(dump);
        let (index, (free, ..)) = tree(&patient).block(&mut patient, |(_, _, index)| index).expect("a block");
        patient.bytes((index, WHOLE - free, 100)).fill(0x5A);
        match is_damage {
            true => drop(patient.expect_only(DamageKind::BadNode, (index, WHOLE - free, 0))),
            false => patient.assert_clean("fxu"),
        }
    }
    // A block that is empty, but was not unmapped.
    for dump in ["fxj", "fxu"] {
        let mut patient = Patient::new(dump);
        let tree = tree(&patient);
        let is_empty = |lnum: &u32| patient.pebs[*lnum as usize].is_none();
        let empty = tree.main.clone().find(is_empty).expect("a block that is not mapped");
        assert_eq!(tree.figures(&mut patient, empty).0, WHOLE);
        patient.fill_block(empty, &[0x5A; 5000]);
        patient.assert_clean(dump);
    }
}

/// Place of the newest master.
fn master(patient: &Patient) -> At {
    (1, patient.mounted().master().offset, 0)
}

#[test]
fn sums_of_the_master_are_compared_with_what_they_add_up() {
    for (dump, _) in DUMPS {
        let patient = Patient::new(dump);
        let (image, offset) = (patient.image.clone(), master(&patient).1);
        for (at, bytes, by, says) in [
            (80, 8, -8i64, "free bytes, the properties of all blocks add up to "),
            (88, 8, 8, "dirty bytes, the properties of all blocks add up to "),
            (96, 8, -8, "used bytes, the properties of all blocks add up to "),
            (156, 4, -1, "empty blocks, the properties of all blocks add up to "),
            (160, 4, 1, "index blocks, the properties of all blocks add up to "),
            (72, 8, 192, "index bytes, the index has "),
        ] {
            let mut patient = Patient::of(image.clone());
            let (mut said, mut right) = (0, 0);
            for lnum in [1, 2] {
                patient.change((lnum, offset, 512), |node| {
                    let mut word = [0; 8];
                    word[..bytes].copy_from_slice(&node[at..at + bytes]);
                    right = i64::from_le_bytes(word);
                    said = right + by;
                    node[at..at + bytes].copy_from_slice(&said.to_le_bytes()[..bytes]);
                });
            }
            let text = patient.expect_only(DamageKind::WrongTotals, (1, offset, 0));
            assert!(text.ends_with(&format!("the master says {said} {says}{right}")), "{dump}: {text}");
        }
    }
}

#[test]
fn inodes_beyond_the_highest_number_are_named() {
    for (dump, _) in DUMPS {
        let mut patient = Patient::new(dump);
        let at = master(&patient);
        patient.change_masters(|node| node[24..32].copy_from_slice(&600u64.to_le_bytes()));
        let text = patient.expect_only(DamageKind::WrongTotals, at);
        assert!(text.contains("the master says the highest inode number is 600, "), "{dump}: {text}");
        assert!(text.contains(" have a higher one: inode "), "{dump}: {text}");
    }
}

#[test]
fn where_the_master_says_that_writing_goes_on_there_is_room() {
    let mut patient = Patient::new("fxj");
    let at = master(&patient);
    let (lnum, _) = tree(&patient).block(&mut patient, |(_, _, index)| !index).expect("a block");
    patient.change_masters(|node| node[60..64].copy_from_slice(&lnum.to_le_bytes()));
    let text = patient.expect_only(DamageKind::BadMaster, at);
    assert!(text.contains(&format!("LEB {lnum} is kept for garbage collection, which would erase it")), "{text}");

    for dump in ["fxj", "fxu"] {
        let mut patient = Patient::new(dump);
        let at = master(&patient);
        patient.change_masters(|node| {
            let offset = le32(node, 68) + PAGE;
            node[68..72].copy_from_slice(&offset.to_le_bytes());
        });
        let text = patient.expect_only(DamageKind::BadMaster, at);
        assert!(text.contains("the index is to be continued at byte "), "{text}");
    }

    let mut patient = Patient::new("fxj");
    let (lnum, offset) = patient.mounted().master().lpt_head;
    patient.bytes((lnum, offset + 9, 1))[0] = 0;
    let text = patient.expect_only(DamageKind::BadProperties, (lnum, offset + 9, 0));
    assert!(text.ends_with(&format!("not empty, although the properties tree is to be continued at {offset}")));
    // A commit may have been in progress.
    let mut patient = Patient::new("fxu");
    let (lnum, offset) = patient.mounted().master().lpt_head;
    patient.bytes((lnum, offset + 9, 1))[0] = 0;
    patient.assert_clean("fxu");
}

fn mode(node: &[u8]) -> u32 {
    le32(node, 104) & 0o170_000
}

#[test]
fn fields_of_inodes_are_checked() {
    let is_file = |node: &[u8]| mode(node) == 0o100_000 && le32(node, 92) == 1;
    let is_dir = |node: &[u8]| mode(node) == 0o040_000 && le32(node, 24) > 1;
    let expect = |fits: &dyn Fn(&[u8]) -> bool, change: &dyn Fn(&mut [u8]), kind, says: &str| {
        let mut patient = Patient::new("fx");
        let inode = patient.node(NodeType::Inode, fits);
        patient.change(inode, |node| change(node));
        let text = patient.expect_only(kind, inode);
        assert!(text.ends_with(says), "{text}");
    };
    expect(&is_file, &|n| n[132] = 4, DamageKind::BadInode, "compression 4, expected 0 to 3");
    expect(&is_file, &|n| n[120] = 8, DamageKind::WrongCount, "has attributes of 8 bytes, those found take 0");
    let counts = "attributes with 0 bytes of names, found are 0 with 0";
    expect(&is_file, &|n| n[116] = 1, DamageKind::WrongCount, &format!("has 1 {counts}"));
    expect(
        &is_dir,
        &|n| n[128] = 3,
        DamageKind::WrongCount,
        "has 0 attributes with 3 bytes of names, found are 0 with 0",
    );
    let mut patient = Patient::new("fx");
    let dir = patient.node(NodeType::Inode, is_dir);
    let right = le32(patient.bytes(dir), 92);
    expect(&is_dir, &|n| n[92] += 1, DamageKind::WrongLinkCount, &format!("{} links, found are {right}", right + 1));
    let says = "has size 168, its entries make it";
    let mut patient = Patient::new("fx");
    patient.change(dir, |n| n[48..56].copy_from_slice(&168u64.to_le_bytes()));
    let text = patient.expect_only(DamageKind::WrongCount, dir);
    assert!(text.contains(says), "{text}");
    // Flags that only attribute values may have.
    let mut patient = Patient::new("fx");
    let fifo = patient.node(NodeType::Inode, |n| mode(n) == 0o020_000);
    patient.change(fifo, |n| n[108] |= 0x20);
    let text = patient.expect(DamageKind::BadInode, fifo).detail;
    assert_eq!(text, "an attribute value of 0 bytes, 8 are there");
    let findings = patient.report().findings;
    let says = "an attribute value that is a character device, expected a regular file";
    assert!(findings.iter().any(|d| d.detail == says), "{findings:#?}");
    // A device number in an inode that is no device any more.
    let mut patient = Patient::new("fx");
    patient.change(fifo, |n| n[105] = 0x10 | n[105] & 0x0F);
    let text = patient.expect(DamageKind::BadInode, fifo).detail;
    assert_eq!(text, "a fifo with 8 bytes of data in its node, expected none");
}

#[test]
fn data_ends_where_its_file_does() {
    // A byte beyond the end, within the last block.
    let mut patient = Patient::new("fx");
    let data = patient.node(NodeType::Data, |node| le32(node, 40) < 4096 && key(node).low() == 0);
    let (ino, bytes) = (key(patient.bytes(data)).ino, le32(patient.bytes(data), 40));
    let inode = patient.node(NodeType::Inode, |node| le32(node, 24) == ino);
    assert_eq!(le32(patient.bytes(inode), 48), bytes);
    patient.change(inode, |node| node[48..52].copy_from_slice(&(bytes - 1).to_le_bytes()));
    let text = patient.expect_only(DamageKind::DataBeyondSize, data);
    assert!(text.ends_with(&format!("{bytes} bytes from byte 0 on of inode {ino}, whose size is {}", bytes - 1)));
    // More than a block.
    let mut patient = Patient::new("fx");
    patient.change(data, |node| node[40..44].copy_from_slice(&4097u32.to_le_bytes()));
    let text = patient.expect(DamageKind::BadData, data).detail;
    assert_eq!(text, "a block of 4097 bytes, expected 1 to 4096");
}
