// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flash reads of work on a freshly mounted volume.

use super::open::Volume;
use crate::args::UbiWork;
use readpath_ubi::mtd::{Mtd, Record};
use readpath_ubifs::{MountMode, Session, Ubifs, UbifsError};

/// Work on a volume.
pub struct Work<'a> {
    /// The kind of work.
    pub what: UbiWork,
    /// Path in the volume.
    pub path: &'a [u8],
    /// Files to read; for `read` only.
    pub list: &'a [Vec<u8>],
    /// How it is mounted.
    pub mode: MountMode,
    /// Whether it is mounted with `bulk_read`.
    pub bulk_read: bool,
    /// Whether the stream begins with the reads of the mount, after those of the attach if they were logged.
    pub with_mount: bool,
}

/// The flash reads of the work.
pub struct Reads {
    /// Reads in order.
    pub records: Vec<Record>,
    /// Bytes of a page.
    pub page_bytes: u32,
}

/// Mounts a volume and does the work.
///
/// # Errors
/// Damage of the volume, or a path that it does not have.
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
