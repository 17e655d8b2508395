// SPDX-License-Identifier: MIT OR Apache-2.0
//! A journal assembled node by node behind a dump that was unmounted: replay, and sizes after an unclean stop.

use crate::common::patient::Patient;
use crate::common::{SLC, SLC_DATA_OFFSET, Volume, Watched, bytes_of, dump, volume};
use readpath_ubifs::sample::{self, NewInode, padded};
use readpath_ubifs::{DamageKind, Key, Lebs, MountMode, NameHash, NodeType, Session, Ubifs, check, crc32};

const PEB_BYTES: usize = 128 << 10;
const PAGE: usize = 2048;

/// Padding bytes up to a multiple of 8.
fn aligned(mut node: Vec<u8>) -> Vec<u8> {
    node.resize(node.len().next_multiple_of(8), 0xCE);
    node
}

fn node(kind: NodeType, sqnum: u64, body: &[u8]) -> Vec<u8> {
    aligned(sample::node(kind, sqnum, body))
}

fn data_node(sqnum: u64, key: Key, rest: &[u8]) -> Vec<u8> {
    aligned(sample::keyed(NodeType::Data, sqnum, key, rest))
}

/// A block of a file.
fn text_node(sqnum: u64, ino: u32, block: u32, text: &[u8]) -> Vec<u8> {
    let mut data = (text.len() as u32).to_le_bytes().to_vec();
    data.extend([0; 4]);
    data.extend(text);
    data_node(sqnum, Key::data(ino, block), &data)
}

fn inode(sqnum: u64, new: &NewInode) -> Vec<u8> {
    aligned(sample::inode(sqnum, new))
}

fn entry(sqnum: u64, key: Key, target: u64, name: &[u8]) -> Vec<u8> {
    aligned(sample::entry(sqnum, key, target, 0, name))
}

/// The dump made by mkfs with one more logical block, which the log lists as the base head's.
fn with_journal(nodes: &[Vec<u8>]) -> Vec<u8> {
    with_journal_blocks(&[nodes])
}

/// The same with several blocks, one after the other.
fn with_journal_blocks(blocks: &[&[Vec<u8>]]) -> Vec<u8> {
    let mut image = dump("fx");
    let before = volume(image.clone(), SLC);
    let place = |lnum: u32| before.peb(lnum).expect("a block") as usize * PEB_BYTES + SLC_DATA_OFFSET as usize;
    let log = place(3);
    // Headers copied from another block, but for the number.
    let template = image[log - SLC_DATA_OFFSET as usize..log].to_vec();
    for (i, nodes) in blocks.iter().enumerate() {
        let lnum = 60 + i as u32;
        let mut block = vec![0xFF; PEB_BYTES];
        block[..template.len()].copy_from_slice(&template);
        block[512 + 12..512 + 16].copy_from_slice(&lnum.to_be_bytes());
        let crc = crc32(&block[512..512 + 60]);
        block[512 + 60..576].copy_from_slice(&crc.to_be_bytes());
        let nodes = padded(nodes.concat(), PAGE as u32);
        block[PAGE..PAGE + nodes.len()].copy_from_slice(&nodes);
        image.extend(block);
        let mut reference = Vec::new();
        for word in [lnum, 0, 1] {
            reference.extend(word.to_le_bytes());
        }
        reference.resize(40, 0);
        let reference = padded(node(NodeType::Reference, (1 << 20) + i as u64, &reference), PAGE as u32);
        image[log + (i + 1) * PAGE..log + (i + 2) * PAGE].copy_from_slice(&reference);
    }
    image
}

const TEXT: &[u8] = b"0123456789";

/// A new file with an attribute, a deleted file, a shortened file, and one that was deleted and recreated.
fn changes() -> Vec<Vec<u8>> {
    let hash = |name: &[u8]| NameHash::R5.of(name);
    let mut fs = Ubifs::mount(volume(dump("fx"), SLC), MountMode::Inspect).expect("the dump");
    let gone = fs.resolve(b"f009_uxiqrh.txt", false).expect("a file");
    let text = fs.resolve(b"special/text300k", false).expect("a file");
    let mut n = 1 << 21;
    let mut next = || {
        n += 1;
        n
    };
    let file = 0o100_644;
    let new = NewInode { ino: 5000, size: 10, nlink: 1, mode: file, flags: 0, xattrs: (1, 240, 9), data: b"" };
    let value = NewInode { ino: 5001, size: 5, nlink: 1, mode: file, flags: 0x20, xattrs: (0, 0, 0), data: b"value" };
    let deleted = NewInode { ino: gone.ino, size: 0, nlink: 0, mode: file, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let shorter = NewInode { ino: text.ino, size: 5000, nlink: 2, mode: file, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let mut truncation = text.ino.to_le_bytes().to_vec();
    truncation.resize(16, 0);
    truncation.extend(text.size.to_le_bytes());
    truncation.extend(5000u64.to_le_bytes());
    vec![
        // Both names take 72 bytes, so the size of the root directory does not change.
        entry(next(), Key::dentry(1, hash(b"journaled_file")), 5000, b"journaled_file"),
        inode(next(), &new),
        text_node(next(), 5000, 0, TEXT),
        entry(next(), Key::xattr(5000, hash(b"user.test")), 5001, b"user.test"),
        inode(next(), &value),
        entry(next(), Key::dentry(1, hash(b"f009_uxiqrh.txt")), 0, b"f009_uxiqrh.txt"),
        inode(next(), &deleted),
        inode(next(), &shorter),
        node(NodeType::Truncation, next(), &truncation),
        // The last block of the file is rewritten.
        text_node(next(), text.ino, 1, &[b'x'; 5000 - 4096]),
        // Deleted and recreated, as when a file without a name gets one.
        inode(next(), &NewInode { nlink: 0, ..new }),
        inode(next(), &new),
    ]
}

#[test]
fn nodes_of_the_journal_are_newer_than_the_index() {
    let image = with_journal(&changes());
    for mode in [MountMode::ReadWrite, MountMode::ReadOnly, MountMode::Inspect] {
        let mut fs = Ubifs::mount(volume(image.clone(), SLC), mode).unwrap_or_else(|e| panic!("{mode:?}: {e}"));
        assert_eq!((fs.report().unclean, fs.report().journal_nodes), (false, 12));
        let file = fs.resolve(b"journaled_file", false).expect("a new file");
        assert_eq!(bytes_of(&mut fs, &file), TEXT);
        let attributes = fs.xattrs(file.ino).expect("attributes");
        let pairs: Vec<(&[u8], &[u8])> = attributes.iter().map(|a| (&*a.name, &*a.value)).collect();
        assert_eq!(pairs, [(&b"user.test"[..], &b"value"[..])]);
        let error = fs.resolve(b"f009_uxiqrh.txt", false).expect_err("a deleted file").to_string();
        assert_eq!(error, "f009_uxiqrh.txt: no such file or directory");
        let text = fs.resolve(b"special/text300k", false).expect("a file");
        assert_eq!(text.size, 5000);
        let mut block = [0; 4096];
        assert!(fs.read_block(text.ino, 1, &mut block).expect("data").is_some());
        assert!(fs.read_block(text.ino, 2, &mut block).expect("no data").is_none());
    }
    let report = check(volume(image.clone(), SLC), 10).expect("a volume that is supported");
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(report.counts.xattrs, 1);
    // A deletion removes the attribute and its value, too.
    let fs = Ubifs::mount(volume(image, SLC), MountMode::ReadWrite).expect("a volume");
    let mut session = Session::new(fs, false);
    session.rm(b"journaled_file").expect("a deletion");
    for ino in [5000, 5001] {
        let error = session.fs().inode(ino).expect_err("a deleted inode").to_string();
        assert_eq!(error, format!("inode {ino}: no such inode"));
    }
}

/// Blocks of several journal heads are read one after the other, so nodes are not read in the order of their writing.
#[test]
fn of_two_nodes_the_one_with_the_higher_number_counts() {
    let name = b"journaled_file";
    let new = NewInode { ino: 5000, size: 10, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let n = 1 << 21;
    let named = [entry(n, Key::dentry(1, NameHash::R5.of(name)), 5000, name), inode(n + 1, &new)];
    let texts = [text_node(n + 2, 5000, 0, b"old and so"), text_node(n + 3, 5000, 0, TEXT)];
    let reversed = texts.iter().rev().chain(&named).cloned().collect::<Vec<_>>();
    for nodes in [[named, texts].concat(), reversed] {
        let mut fs = Ubifs::mount(volume(with_journal(&nodes), SLC), MountMode::ReadOnly).expect("a volume");
        let file = fs.resolve(name, false).expect("a new file");
        assert_eq!(bytes_of(&mut fs, &file), TEXT);
    }
}

/// The inode of a file that grew is written after its data, and the power may be cut in between.
#[test]
fn after_an_unclean_stop_a_file_is_as_long_as_its_data() {
    let name = b"journaled_file";
    let new = NewInode { ino: 5000, size: 10, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let n = 1 << 21;
    let image = with_journal(&[
        entry(n, Key::dentry(1, NameHash::R5.of(name)), 5000, name),
        inode(n + 1, &new),
        text_node(n + 2, 5000, 0, TEXT),
        text_node(n + 3, 5000, 1, TEXT),
    ]);
    let mut stopped = Patient::of(image.clone());
    stopped.set_master_flags(3);
    for (image, size) in [(image, 10), (stopped.image, 4096 + 10)] {
        for mode in [MountMode::ReadWrite, MountMode::ReadOnly, MountMode::Inspect] {
            let mut fs = Ubifs::mount(volume(image.clone(), SLC), mode).unwrap_or_else(|e| panic!("{mode:?}: {e}"));
            let file = fs.resolve(name, false).expect("a new file");
            assert_eq!((file.size, bytes_of(&mut fs, &file).len()), (size, size as usize), "{mode:?}");
        }
    }
}

/// A power cut explains a torn end of the block written last, and of no other.
#[test]
fn only_the_last_block_of_a_head_may_have_a_torn_end() {
    let name = b"journaled_file";
    let new = NewInode { ino: 5000, size: 10, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let n = 1 << 21;
    let first = vec![entry(n, Key::dentry(1, NameHash::R5.of(name)), 5000, name), inode(n + 1, &new)];
    let second = vec![text_node(n + 2, 5000, 0, TEXT)];
    let torn = |nodes: &[Vec<u8>]| {
        let mut nodes = nodes.to_vec();
        nodes.last_mut().expect("a node")[40] ^= 1;
        nodes
    };
    let mount = |blocks: &[&[Vec<u8>]]| {
        let mut stopped = Patient::of(with_journal_blocks(blocks));
        stopped.set_master_flags(3);
        stopped.mount(MountMode::ReadOnly).map(|fs| fs.report().journal_nodes)
    };
    assert_eq!(mount(&[&first, &second]).expect("nothing is torn"), 3);
    assert_eq!(mount(&[&first, &torn(&second)]).expect("what is torn is cut off"), 2);
    let error = mount(&[&torn(&first), &second]).expect_err("it was whole when the next block was begun");
    assert_eq!(error.damage().map(|d| (d.kind, d.place.lnum)), Some((DamageKind::BadJournal, 60)));
}

#[test]
fn a_journal_that_contradicts_itself_is_named() {
    for (at, change, says) in [
        (3, &|n: &mut Vec<u8>| n[28] ^= 1, "its name has"),
        (8, &|n: &mut Vec<u8>| n[54] = 9, "a truncation from 307200 to"),
        (2, &|n: &mut Vec<u8>| n[31] = 0, "a data node with inode 5000"),
    ] as [(usize, &dyn Fn(&mut Vec<u8>), &str); 3]
    {
        let mut nodes = changes();
        change(&mut nodes[at]);
        let len = u32::from_le_bytes(nodes[at][16..20].try_into().expect("4 bytes")) as usize;
        sample::seal(&mut nodes[at][..len]);
        let offset: usize = nodes[..at].iter().map(Vec::len).sum();
        let error = Ubifs::mount(volume(with_journal(&nodes), SLC), MountMode::Inspect).expect_err("a bad journal");
        let damage = error.damage().unwrap_or_else(|| panic!("{error}"));
        assert_eq!((damage.kind.name(), damage.place.lnum), ("bad-journal", 60));
        assert_eq!(damage.place.offset as usize, offset);
        assert!(damage.detail.contains(says), "{}", damage.detail);
    }
}

#[test]
fn a_journal_block_that_is_not_mapped_is_empty_without_a_look_at_it() {
    let mut image = with_journal(&changes());
    let last = image.len() - PEB_BYTES;
    image[last + 512..].fill(0xFF);
    let mut unmapped_bytes = 0;
    let before = |lebs: &Volume, lnum, bytes| {
        unmapped_bytes += if lebs.is_mapped(lnum) { 0 } else { bytes };
        Ok(())
    };
    let lebs = Watched { inner: volume(image.clone(), SLC), before };
    assert!(!lebs.is_mapped(60));
    let fs = Ubifs::mount(lebs, MountMode::ReadWrite).expect("a volume");
    assert_eq!((fs.buds().len(), fs.buds()[0].end, fs.report().journal_nodes), (1, 0, 0));
    drop(fs);
    assert_eq!(unmapped_bytes, 0);
    let report = check(volume(image, SLC), 10).expect("a volume that is supported");
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// Findings of a check after the journal adds a file of inode 5000 to the root directory.
fn findings(name: &[u8], target: u64, size: u64) -> Vec<String> {
    let new = NewInode { ino: 5000, size, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let nodes = [entry(1 << 21, Key::dentry(1, NameHash::R5.of(name)), target, name), inode((1 << 21) + 1, &new)];
    let report = check(volume(with_journal(&nodes), SLC), 100).expect("a volume that is supported");
    report.findings.iter().map(|d| format!("{}: {}", d.kind.name(), d.detail)).collect()
}

#[test]
fn names_sizes_and_targets_that_cannot_be_are_named() {
    let has = |found: &[String], wanted: &str| assert!(found.iter().any(|d| d == wanted), "{wanted}: {found:#?}");
    assert!(
        findings(b"good_name", 5000, 1 << 41).iter().all(|d| d.starts_with("wrong-count")),
        "its directory has a size"
    );
    for (name, shown) in [(&b"."[..], "."), (b"..", ".."), (b"a/b", "a/b"), (b"\x1b/", "\\u{1b}/")] {
        let wanted = format!("bad-entry: the name \"{shown}\", which no file can have");
        has(&findings(name, 5000, 0), &wanted);
    }
    has(&findings(b"again", 1, 0), "bad-entry: it leads to inode 1, the root directory, which has no name");
    has(
        &findings(b"large", 5000, (1 << 41) + 1),
        "bad-inode: a size of 2199023255553 bytes, at most 2199023255552 are possible",
    );
}

#[test]
fn holes_are_passed_over() {
    let name = b"hole";
    // Of the largest possible size, with two blocks inside.
    let new = NewInode { ino: 5000, size: 1 << 36, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
    let mut data = (TEXT.len() as u32).to_le_bytes().to_vec();
    data.extend([0; 4]);
    data.extend(TEXT);
    let nodes = [
        entry(1 << 21, Key::dentry(1, NameHash::R5.of(name)), 5000, name),
        inode((1 << 21) + 1, &new),
        data_node((1 << 21) + 2, Key::data(5000, 7), &data),
        data_node((1 << 21) + 3, Key::data(5000, 1 << 23), &data),
    ];
    let mut fs = Ubifs::mount(volume(with_journal(&nodes), SLC), MountMode::Inspect).expect("a volume");
    let file = fs.resolve(name, false).expect("a file");
    let (mut at, mut found) = (0u64, Vec::new());
    let read = fs.read_file(&file, |piece| -> readpath_ubifs::Result<()> {
        if piece[0] != 0 {
            found.push((at, piece[..10].to_vec()));
        }
        at += piece.len() as u64;
        Ok(())
    });
    read.expect("a file");
    assert_eq!((at, found), (1 << 36, vec![(7 << 12, TEXT.to_vec()), (1 << 35, TEXT.to_vec())]));
}
