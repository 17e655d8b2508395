// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of the experiment `ubi` that our own reader of UBIFS makes of an image: attach and mount, find, reading,
//! boot-like reading, rm.

use super::boot::{self, BootList, FOLDERS};
use super::open::{only_ubifs, volume_at, wrong};
use super::work::{Reads, Work, reads};
use crate::args::{ImageInput, ImageSizes, UbiWork};
use crate::inputs::Source;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, Published, Task, TaskStream};
use readpath_results::Input;
use readpath_ubi::mtd::Mtd;
use readpath_ubi::printable;
use readpath_ubi::stream::{Geometry, Stream};
use readpath_ubifs::{FileType, MountMode, Session, Ubifs};
use std::path::Path;
use std::sync::Arc;

/// Streams of the image at `path`, called `name` in tables: of a device of `pebs` erase blocks, if given, on which a
/// boot reads the files of a list, if there is one.
pub fn streams(path: &Path, name: &str, pebs: Option<u32>, list: Option<&BootList>) -> Result<Vec<TaskStream>> {
    let sizes = ImageSizes { pebs, ..ImageSizes::default() };
    let input = ImageInput { image: path.to_owned(), volume: None, sizes };
    let (id, volume_name) = only_ubifs(&input).map_err(with_hint)?;
    let tree = Tree::of(&input, id, list)?;
    let mode = if tree.read_only { MountMode::ReadOnly } else { MountMode::ReadWrite };
    let top = tree.top;
    // Name of the work, kind, path, and the published task that it is like.
    let mut works = vec![
        ("attach and mount", UbiWork::Mount, b"/".as_slice(), None),
        ("find", UbiWork::Find, top, Some(Task::Find)),
        ("find -ls", UbiWork::FindLs, top, None),
        ("reading all files", UbiWork::Cat, top, None),
    ];
    if !tree.boot.is_empty() {
        works.push((BOOT, UbiWork::Read, tree.boot_from, Some(Task::Boot)));
    }
    if let Some(largest) = tree.largest.as_ref().filter(|_| !tree.read_only) {
        works.push(("rm", UbiWork::Rm, &largest.path, Some(Task::Rm)));
    }
    let digest = digest(path)?;
    let mut streams = Vec::new();
    for (work, what, at, like) in works {
        let attach = what == UbiWork::Mount;
        let volume = volume_at(&input, id, attach)?;
        let work_on = Work { what, path: at, list: &tree.boot, mode, bulk_read: false, with_mount: attach };
        let Reads { records, page_bytes } = reads(volume, &work_on).map_err(|e| match (what, list) {
            (UbiWork::Read, Some(list)) => usage(anyhow!("--boot-list: {}: {e}", list.input.file)),
            _ => wrong(path, e),
        })?;
        let stream = Stream::of_log(&records, page_bytes);
        let case = CacheCase { name: name.to_owned(), stream, notes: Vec::new(), input: digest.clone() };
        streams.push((at, like, TaskStream::own(work, like, page_bytes, case)));
    }
    let note = tree.note(path, &volume_name, pebs, &streams);
    let mut streams: Vec<TaskStream> = streams.into_iter().map(|(.., stream)| stream).collect();
    streams[0].case.notes.push(note);
    Ok(streams)
}

/// Name of reading the files of a boot.
const BOOT: &str = "boot-like reading";

/// Contents of a volume that determine its streams.
struct Tree {
    /// Directory whose tree is walked and read.
    top: &'static [u8],
    /// The largest file without a second name; data of a file with one would stay.
    largest: Option<Largest>,
    /// The first mount with write access would rewrite the volume.
    read_only: bool,
    /// Files that a boot reads, and where they come from.
    boot: Vec<Vec<u8>>,
    boot_from: &'static [u8],
}

/// The file with most bytes on flash. Removing holes takes no reads.
struct Largest {
    /// Bytes that its data nodes take.
    stored: u64,
    size: u64,
    path: Vec<u8>,
}

impl Tree {
    fn of(input: &ImageInput, id: u32, list: Option<&BootList>) -> Result<Tree> {
        let image = &input.image;
        let mut volume = volume_at(input, id, false)?;
        let page_bytes = volume.ubi().mtd_mut().geometry().page_bytes;
        let damaged = |e| wrong(image, e);
        Geometry::new(page_bytes, None)
            .map_err(|e| usage(anyhow!("{}: {e}: no cost of reads is known for it", image.display())))?;
        let mut fs = Ubifs::mount(volume, MountMode::Inspect).map_err(damaged)?;
        let read_only = fs.superblock().space_fixup;
        let is_dir = |fs: &mut Ubifs<_>| {
            fs.resolve(b"/usr", false).is_ok_and(|inode| inode.file_type() == Some(FileType::Directory))
        };
        let top = if is_dir(&mut fs) { b"/usr".as_slice() } else { b"/" };
        let (boot, boot_from) = match list {
            Some(list) => (list.paths.clone(), b"of a list".as_slice()),
            None => (boot::files(&mut fs).map_err(damaged)?, b"below the folders of a Debian".as_slice()),
        };
        let mut files = 0u64;
        let stored = fs.stored_bytes().map_err(damaged)?;
        let mut largest: Option<Largest> = None;
        let walk = Session::new(fs, false).find_ls(b"/", |path, inode| {
            if inode.file_type() != Some(FileType::Regular) {
                return;
            }
            files += 1;
            // Among files of equal size, the first by name, so that an image always gives the same streams.
            let (stored, size) = (stored.get(&inode.ino).copied().unwrap_or(0), inode.size);
            let is_better = |l: &Largest| (stored, size, l.path.as_slice()) > (l.stored, l.size, path);
            if inode.nlink == 1 && largest.as_ref().is_none_or(is_better) {
                largest = Some(Largest { stored, size, path: path.to_vec() });
            }
        });
        walk.map_err(damaged)?;
        if files == 0 {
            let what = "the volume has no regular file, so there is nothing to read or remove";
            return Err(usage(anyhow!("{}: {what}", image.display())));
        }
        Ok(Tree { top, largest, read_only, boot, boot_from })
    }

    /// The note on the streams, each of which comes with its path and the published task that it is like.
    fn note(
        &self,
        image: &Path,
        volume: &str,
        pebs: Option<u32>,
        streams: &[(&[u8], Option<Task>, TaskStream)],
    ) -> String {
        let Some((.., first)) = streams.first() else { return String::new() };
        let published = Published::builtin();
        let mut left_alone = false;
        let mut text = format!("{}: volume \"{volume}\", pages of {} bytes", image.display(), first.page_bytes);
        if let Some(pebs) = pebs {
            text.push_str(&format!(", a device of {pebs} erase blocks"));
        }
        for (path, like, stream) in streams {
            let s = &stream.case.stream.summary;
            text.push_str(&format!("; {} {}: {} reads", stream.work, printable(path), s.reads));
            if stream.work == BOOT {
                text.push_str(&format!(" of {} files", self.boot.len()));
            }
            if s.other_reads > 0 {
                text.push_str(&format!(", {} other reads", s.other_reads));
            }
            if let (Some(task), None) = (like, stream.task) {
                left_alone = true;
                text.push_str(&format!(" (the published task: {})", published.reads(*task)));
            }
        }
        if self.boot.is_empty() {
            let (last, others) = FOLDERS.split_last().unwrap_or((&"", &[]));
            text.push_str(&format!(
                "; no {BOOT}, as there is no file below {} or {last}; --boot-list FILE names others",
                others.join(", ")
            ));
        }
        match &self.largest {
            Some(Largest { stored, size, .. }) if !self.read_only => text.push_str(&format!(
                "; the file that rm takes has {size} bytes, its data nodes {stored}, most of all files with one name"
            )),
            Some(_) => {
                text.push_str("; no rm, as the first mount with write access rewrites all blocks (mkfs.ubifs -F)")
            }
            None => text.push_str("; no rm, as every file has a second name"),
        }
        text.push('.');
        if left_alone {
            let pages = published.preset().page_bytes;
            text.push_str(&format!(
                " Published values stand only beside work that is as large, a quarter more or less, on pages of \
                 {pages} bytes."
            ));
        }
        text
    }
}

/// Adds the command that has the options which an error of an image names.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    let text = crate::failure::describe(&error);
    if !["--volume", "--peb-size", "--page-size", "--subpage-size"].iter().any(|option| text.contains(option)) {
        return error;
    }
    usage(anyhow!("{text}. These are options of 'readpath ubi stream', which writes streams for --traces"))
}

pub fn digest(path: &Path) -> Result<Input> {
    let name = path.display().to_string();
    let digested = Source::open(path, "an image", Arc::default())?.input(&name);
    digested.map_err(|e| usage(anyhow!("{name}: cannot be read: {e}")))
}
