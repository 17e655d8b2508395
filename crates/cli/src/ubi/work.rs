// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flash reads of one piece of work on a freshly mounted volume. Knows nothing of what becomes of them.

use super::open::Volume;
use crate::args::UbiWork;
use readpath_ubi::mtd::{Mtd, Record};
use readpath_ubifs::{MountMode, Session, Ubifs, UbifsError};

pub struct Work<'a> {
    /// The kind of work.
    pub what: UbiWork,
    pub path: &'a [u8],
    /// Files to read; for `read` only.
    pub list: &'a [Vec<u8>],
    pub mode: MountMode,
    /// Whether it is mounted with `bulk_read`.
    pub bulk_read: bool,
    /// Whether the reads of the mount come first, behind those of the attach that the volume was opened with.
    pub with_mount: bool,
}

pub struct Reads {
    pub records: Vec<Record>,
    pub page_bytes: u32,
}

/// Mounts a volume and works with it.
pub fn reads(mut volume: Volume, work: &Work) -> Result<Reads, UbifsError> {
    volume.ubi().mtd_mut().recording = work.with_mount;
    let mut session = Session::new(Ubifs::mount(volume, work.mode)?, work.bulk_read);
    session.fs().lebs().ubi().mtd_mut().recording = true;
    match work.what {
        UbiWork::Mount => {}
        UbiWork::Find => session.find(work.path, |_, _| {})?,
        UbiWork::FindLs => session.find_ls(work.path, |_, _| {})?,
        UbiWork::Cat => session.cat_all(work.path, |_| {})?,
        UbiWork::Read => session.read_files(work.list.iter().map(Vec::as_slice), |_| {})?,
        UbiWork::Rm => session.rm(work.path)?,
    }
    let flash = session.fs().lebs().ubi().mtd_mut();
    Ok(Reads { records: std::mem::take(&mut flash.records), page_bytes: flash.geometry().page_bytes })
}
