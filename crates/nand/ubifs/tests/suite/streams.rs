// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of reads equal recorded ones of a real kernel, read by read.

use crate::common::{DUMPS, Volume, assert_same, mount, moved, recording, taken};
use readpath_ubifs::{MountMode, Recorder, Session};

/// A volume mounted for writing, without the reads of the mount.
fn session(dump: &str) -> Session<Recorder<Volume>> {
    let mut fs = mount(dump, MountMode::ReadWrite);
    fs.lebs().take();
    Session::new(fs, false)
}

#[test]
fn mounts_read_what_the_kernel_reads() {
    for ((dump, name), reads) in crate::common::DUMPS.into_iter().zip([17, 21, 200]) {
        let mut fs = mount(dump, MountMode::ReadWrite);
        let recorded = recording(&format!("{name}_mount"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(&mut fs), &recorded);
        // Recovery moves two blocks, and the kernel then reads one entry from its new place.
        assert_eq!(moved(&format!("{name}_mount"), &mut fs), usize::from(name == "unclean"));
    }
}

#[test]
fn find_reads_what_the_kernel_reads() {
    for ((dump, name), reads) in [("fx", "pristine"), ("fxj", "journal")].into_iter().zip([822, 966]) {
        let mut session = session(dump);
        session.find(b".", |_, _| {}).expect("a walk");
        assert_eq!(moved(&format!("{name}_find"), session.fs()), 0);
        let recorded = recording(&format!("{name}_find"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(session.fs()), &recorded);
    }
}

#[test]
fn find_ls_reads_what_the_kernel_reads() {
    for ((dump, name), reads) in [("fx", "pristine"), ("fxj", "journal")].into_iter().zip([1536, 1806]) {
        let mut session = session(dump);
        session.find_ls(b".", |_, _| {}).expect("a walk");
        assert_eq!(moved(&format!("{name}_findls"), session.fs()), 0);
        let recorded = recording(&format!("{name}_findls"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(session.fs()), &recorded);
    }
}

#[test]
fn reading_all_files_reads_what_the_kernel_reads() {
    for ((dump, name), reads) in [("fx", "pristine"), ("fxj", "journal")].into_iter().zip([2384, 2809]) {
        let mut session = session(dump);
        session.cat_all(b".", |_| {}).expect("all files");
        assert_eq!(moved(&format!("{name}_catall"), session.fs()), 0);
        let recorded = recording(&format!("{name}_catall"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(session.fs()), &recorded);
    }
}

#[test]
fn deleting_reads_what_the_kernel_reads() {
    let mut session = session("fx");
    session.rm(b"special/random200k").expect("a deletion");
    let recorded = recording("pristine_rm");
    assert_eq!(recorded.len(), 18, "the recording is the one we know");
    assert_same("rm", &taken(session.fs()), &recorded);
}

#[test]
fn the_documentation_has_the_number_of_recorded_reads() {
    let of = |what: &str, names: &[&str]| -> usize {
        names.iter().map(|name| recording(&format!("{name}_{what}")).len()).sum()
    };
    let used = ["pristine", "journal"];
    let mounts = DUMPS.map(|(_, name)| name);
    let all = of("mount", &mounts) + of("rm", &used[..1]);
    let all = all + ["find", "findls", "catall"].map(|what| of(what, &used)).iter().sum::<usize>();
    let line = format!("length and purpose, {},{:03} reads in all.", all / 1000, all % 1000);
    let text = include_str!("../../../../../docs/ubifs.md");
    assert!(text.lines().any(|l| l == line), "docs/ubifs.md says otherwise: {line}");
}

#[test]
fn bulk_reading_fetches_the_same_bytes_with_fewer_reads() {
    let read = |path: &[u8], bulk_read| {
        let mut fs = mount("fx", MountMode::ReadWrite);
        fs.lebs().take();
        let mut session = Session::new(fs, bulk_read);
        let mut bytes = Vec::new();
        session.read_files([path], |piece| bytes.extend_from_slice(piece)).expect("a file");
        (bytes, data_reads(&taken(session.fs())))
    };
    let (bytes, singles) = read(b"special/random200k", false);
    let (same, bulks) = read(b"special/random200k", true);
    assert!(bytes == same && bytes.len() == 204_877);
    assert_eq!(singles.len(), 51);
    // Two single pages, then the nodes in one block: 21 nodes of 4144 bytes, then 27 and the last one of 77 + 48
    // bytes.
    assert_eq!(bulks[..2], singles[..2]);
    let bulk: Vec<_> = bulks[2..].iter().map(|r| (r.3.as_str(), r.2)).collect();
    assert_eq!(bulk, [("ubifs_tnc_bulk_read", 21 * 4144), ("ubifs_tnc_bulk_read", 27 * 4144 + 125)]);
    assert_eq!((bulks[2].0, bulks[2].1), (singles[2].0, singles[2].1));
    // 75 nodes in two blocks: two alone, 32, the rest of the first block, 32, and the last ones.
    let (bytes, singles) = read(b"special/text300k", false);
    let (same, bulks) = read(b"special/text300k", true);
    assert!(bytes == same && bytes.len() == 307_200);
    let at = |r: &crate::common::Recorded| (r.0, r.1);
    let second = singles.iter().position(|r| r.0 != singles[0].0).expect("a second block");
    let first_of_each = [0, 1, 2, 34, second, second + 32].map(|i| at(&singles[i]));
    assert_eq!(bulks.iter().map(at).collect::<Vec<_>>(), first_of_each);
}

/// Reads of data nodes, alone or in bulk.
fn data_reads(reads: &[crate::common::Recorded]) -> Vec<crate::common::Recorded> {
    reads.iter().filter(|r| r.3 == "data" || r.3 == "ubifs_tnc_bulk_read").cloned().collect()
}
