// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of reads equal those that a real kernel was recorded to make, read by read.

mod common;

use common::{Volume, assert_same, mount, recording, taken};
use readpath_ubifs::{MountMode, Recorder, Session};

/// A volume that was mounted to write, and whose mount is no longer part of what is recorded.
fn session(dump: &str) -> Session<Recorder<Volume>> {
    let mut fs = mount(dump, MountMode::ReadWrite);
    fs.lebs().take();
    Session::new(fs, false)
}

#[test]
fn mounts_read_what_the_kernel_reads() {
    for ((dump, name), reads) in common::DUMPS.into_iter().zip([17, 21, 200]) {
        let mut fs = mount(dump, MountMode::ReadWrite);
        let recorded = recording(&format!("{name}_mount"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(&mut fs), &recorded);
    }
}

#[test]
fn find_reads_what_the_kernel_reads() {
    for ((dump, name), reads) in [("fx", "pristine"), ("fxj", "journal")].into_iter().zip([822, 966]) {
        let mut session = session(dump);
        session.find(b".", |_, _| {}).expect("a walk");
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
        let recorded = recording(&format!("{name}_catall"));
        assert_eq!(recorded.len(), reads, "the recording is the one we know");
        assert_same(name, &taken(session.fs()), &recorded);
    }
}

#[test]
fn deleting_reads_what_the_kernel_reads() {
    let mut session = session("fx");
    session.rm(b"special/random200k").expect("a deletion");
    assert_same("rm", &taken(session.fs()), &recording("pristine_rm"));
}
