// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads recorded by probes in the kernel, compared with those of Readpath for the same work.

use super::linux::lines;
use crate::common;
use readpath_ubi::attach::Options;
use readpath_ubi::mtd::{Geometry, Image, Logged, ReadAt};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{Lebs, MountMode, Recorder, Session, UbiVolume, Ubifs};
use std::path::Path;

/// A read of a logical block, as the probes in the kernel see it: erase block, offset in it, bytes, logical block.
pub type Read = [u32; 4];

/// A volume of an image that records its reads.
pub type Flash<'a> = Recorder<UbiVolume<Image<&'a dyn ReadAt>, NoCache>>;

/// The reads of a recording of volumes (`r`), or of UBI's own (`R`).
pub fn recorded(folder: &Path, name: &str, op: &str) -> Vec<Read> {
    let numbers = |line: &String| {
        let rest = line.strip_prefix(op)?.strip_prefix(',')?.split(',');
        let mut numbers = rest.map(|n| n.parse().unwrap_or(u32::MAX));
        Some(std::array::from_fn(|_| numbers.next().expect("four numbers")))
    };
    lines(folder, &format!("{name}.csv")).iter().filter_map(numbers).collect()
}

/// Checks that all reads are equal, in order.
pub fn assert_same_reads(what: &str, ours: &[Read], linux: &[Read]) {
    assert!(!linux.is_empty(), "{what}: nothing was recorded");
    let equal = ours.iter().zip(linux).take_while(|(a, b)| a == b).count();
    let next = |r: &[Read]| r[equal..].iter().take(8).copied().collect::<Vec<_>>();
    assert!(
        equal == ours.len() && equal == linux.len(),
        "{what}: {equal} reads are equal, then of {} Readpath {:?}, of {} Linux {:?}",
        ours.len(),
        next(ours),
        linux.len(),
        next(linux)
    );
    println!("{what}: {equal} of {equal} reads");
}

/// Work on a freshly mounted volume.
pub struct Work {
    pub name: &'static str,
    pub bulk_read: bool,
    pub run: for<'a> fn(&mut Session<Flash<'a>>, &[u8]) -> readpath_ubifs::Result<()>,
}

/// The work of the guest's `streams`.
pub const WALKS: [Work; 3] = [
    Work { name: "find", bulk_read: false, run: |s, path| s.find(path, |_, _| {}) },
    Work { name: "findls", bulk_read: false, run: |s, path| s.find_ls(path, |_, _| {}) },
    Work { name: "catall", bulk_read: false, run: |s, path| s.cat_all(path, |_| {}) },
];

/// Removes a file.
pub const RM: Work = Work { name: "rm", bulk_read: false, run: |s, path| s.rm(path) };

/// An image that the kernel also had as its flash, and the folder of the recordings.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Name of the image in the names of recordings.
    pub name: &'a str,
    pub image: &'a dyn ReadAt,
    pub geometry: Geometry,
    /// Offset of data in an erase block.
    pub data_offset: u32,
    pub folder: &'a Path,
}

impl<'a> Device<'a> {
    pub fn mount(&self, mode: MountMode) -> Ubifs<Flash<'a>> {
        Ubifs::mount(Recorder::new(common::volume(self.image, self.geometry)), mode).expect("a volume")
    }

    pub fn taken(&self, fs: &mut Ubifs<Flash<'_>>) -> Vec<Read> {
        let reads = fs.lebs().take();
        let mut peb = |lnum| fs.lebs().peb(lnum).expect("what was read is mapped");
        reads.iter().map(|r| [peb(r.lnum), self.data_offset + r.offset, r.len, r.lnum]).collect()
    }

    /// Attach, mount and walks: all reads equal those of the kernel. Returns those of the walks.
    pub fn assert_streams(&self, path: &[u8]) -> [Vec<Read>; 3] {
        self.assert_attach();
        self.assert_mount();
        WALKS.map(|work| self.assert_work(&work, path))
    }

    pub fn assert_mount(&self) {
        let ours = self.taken(&mut self.mount(MountMode::ReadWrite));
        let what = format!("{}_mount", self.name);
        assert_same_reads(&what, &ours, &recorded(self.folder, &what, "r"));
    }

    /// Work on a volume mounted for it; returns its reads.
    pub fn assert_work(&self, work: &Work, path: &[u8]) -> Vec<Read> {
        let mut fs = self.mount(MountMode::ReadWrite);
        fs.lebs().take();
        let mut session = Session::new(fs, work.bulk_read);
        let name = format!("{}_{}", self.name, work.name);
        (work.run)(&mut session, path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let ours = self.taken(session.fs());
        assert_same_reads(&name, &ours, &recorded(self.folder, &name, "r"));
        ours
    }

    /// The headers and the volume table that an attach reads.
    pub fn assert_attach(&self) {
        let path = format!("{}_attach", self.name);
        if !self.folder.join(format!("{path}.csv")).exists() {
            return;
        }
        let mtd = Logged::new(Image::new(self.image, self.geometry).expect("an image"));
        let options = Options::default();
        let ubi = Ubi::attach(mtd, NoCache, &options).expect("an image of UBI");
        let ours: Vec<[u32; 3]> = ubi.mtd().records.iter().map(|r| [r.peb, r.offset, r.len]).collect();
        let linux: Vec<[u32; 3]> = recorded(self.folder, &path, "R").iter().map(|r| [r[0], r[1], r[2]]).collect();
        let equal = ours.iter().zip(&linux).take_while(|(a, b)| a == b).count();
        assert_eq!((equal, equal), (ours.len(), linux.len()), "{path}: reads that are equal, ours and the kernel's");
        println!("{path}: {equal} of {equal} reads");
    }
}
