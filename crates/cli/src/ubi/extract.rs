// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi extract`: a tree of a UBIFS volume as files. Every directory on a path is created by this command, and
//! names with a slash are refused, so that no damage of the image leads out of the created tree.

use super::image::{Failure, Problems, Walk, mount};
use crate::args::UbiExtract;
use crate::usage;
use anyhow::{Context, Result, anyhow};
use readpath_session::ubi::ubifs::{FileType, Inode, Piece, Time};
use readpath_session::ubi::wrong;
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, utimensat};
use rustix::io::Errno;
use rustix::process::umask;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions, Permissions, hard_link, set_permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Permissions that files and directories get from the image, less those of the umask: no set-user-ID.
const PERMISSIONS: u32 = 0o777;

pub fn main(args: &UbiExtract) -> Result<()> {
    let image = &args.input.image;
    let mut fs = mount(&args.input)?;
    let root = args.path.as_os_str().as_bytes();
    let at = fs.resolve(root, true).map_err(|e| wrong(image, e))?;
    if at.file_type() != Some(FileType::Directory) {
        let what = at.file_type().map_or("file of an unknown type", FileType::name);
        return Err(usage(anyhow!("{}: {} is a {what}; ubi cat prints a file", image.display(), args.path.display())));
    }
    let mask = umask(Mode::empty());
    umask(mask);
    let mut problems = Problems::of(image);
    let mut walk = Walk::new(root.to_vec(), at);
    let (mut made, mut left_out, mut without_times) = (0u64, 0u64, 0u64);
    // Directories get permissions and times last: some do not let their owner write, and a new entry changes the time.
    let mut directories: Vec<(PathBuf, Inode)> = Vec::new();
    // Files with several names, by their numbers.
    let mut linked: HashMap<u32, PathBuf> = HashMap::new();
    let mut end = Ok(());
    loop {
        let inode = match walk.next(&mut fs, image, &mut |path, what| problems.report(path, what)) {
            Ok(Some(inode)) => inode,
            Ok(None) => break,
            Err(e) => {
                end = Err(e);
                break;
            }
        };
        let below = &walk.path[root.len()..];
        let to = match below.strip_prefix(b"/").unwrap_or(below) {
            b"" => args.out.clone(),
            below => args.out.join(OsStr::from_bytes(below)),
        };
        let result = match inode.file_type() {
            Some(FileType::Directory) => {
                // A directory that is there may be a link to elsewhere.
                let made = DirBuilder::new().mode(0o700).create(&to);
                match &made {
                    Ok(()) => directories.push((to.clone(), inode.clone())),
                    Err(e) if directories.is_empty() => {
                        return Err(usage(anyhow!("{}: cannot be made: {e}", to.display())));
                    }
                    Err(_) => walk.skip(),
                }
                made
            }
            Some(FileType::Symlink) => symlink(OsStr::from_bytes(&inode.data), &to),
            Some(FileType::Regular) if linked.contains_key(&inode.ino) => hard_link(&linked[&inode.ino], &to),
            Some(FileType::Regular) => match file(&to, &inode, |sink| fs.read_pieces(&inode, sink)) {
                Ok(()) => Ok(()),
                Err(Failure::Volume(e)) => {
                    problems.report(&walk.path, &e);
                    continue;
                }
                Err(Failure::Output(e)) => Err(e),
            },
            // Only root can make them.
            _ => {
                left_out += 1;
                continue;
            }
        };
        match result {
            Ok(()) => {
                made += 1;
                let is_file = inode.file_type() == Some(FileType::Regular);
                if is_file && inode.nlink > 1 {
                    linked.entry(inode.ino).or_insert_with(|| to.clone());
                }
                // Those of a directory come later.
                if inode.file_type() != Some(FileType::Directory) && set_times(&to, &inode).is_err() {
                    without_times += 1;
                }
            }
            Err(e) if is_of_all(&e) => {
                end = Err(e).with_context(|| format!("{}: cannot be written", to.display()));
                break;
            }
            Err(e) => problems.report(&walk.path, &format!("cannot be made whole: {e}")),
        }
    }
    for (path, inode) in directories.iter().rev() {
        without_times += u64::from(set_times(path, inode).is_err());
        let mode = inode.mode & PERMISSIONS & !mask.bits();
        let set = set_permissions(path, Permissions::from_mode(mode));
        end = end.and(set.with_context(|| format!("{}: cannot be given its permissions", path.display())));
    }
    end?;
    let others = match left_out {
        0 => String::new(),
        1 => "; a device, pipe or socket is left out".to_owned(),
        n => format!("; {n} devices, pipes and sockets are left out"),
    };
    let times = match without_times {
        0 => String::new(),
        n => format!("; times of {n} could not be set"),
    };
    writeln!(io::stderr(), "{}: {made} files, directories and links{others}{times}", args.out.display()).ok();
    problems.end("read or made")
}

/// Sets the times of last access and change, of a link those of itself. Owners and extended attributes stay behind.
fn set_times(path: &Path, inode: &Inode) -> io::Result<()> {
    let of = |time: Time| Timespec { tv_sec: time.s as _, tv_nsec: time.ns.into() };
    let times = Timestamps { last_access: of(inode.atime), last_modification: of(inode.mtime) };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether no other entry could be written either. Any other error is one of an entry: two of one name, a name that is
/// too long here, a link on a file system without, a file larger than it takes.
fn is_of_all(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull)
        || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Writes one file, its holes as holes; what could not be read of it is missing at its end.
fn file(
    to: &Path,
    inode: &Inode,
    read: impl FnOnce(&mut dyn FnMut(Piece) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let new = OpenOptions::new().write(true).create_new(true).mode(inode.mode & PERMISSIONS).open(to);
    let mut out = BufWriter::new(new.map_err(Failure::Output)?);
    let read = read(&mut |piece| match piece {
        Piece::Data(bytes) => out.write_all(bytes).map_err(Failure::Output),
        Piece::Hole(bytes) => out.seek(SeekFrom::Current(bytes as i64)).map(drop).map_err(Failure::Output),
    });
    let bytes = match read {
        Ok(()) => Ok(inode.size),
        Err(Failure::Output(e)) => return Err(Failure::Output(e)),
        Err(Failure::Volume(_)) => out.stream_position(),
    };
    out.flush().map_err(Failure::Output)?;
    bytes.and_then(|bytes| out.get_ref().set_len(bytes)).map_err(Failure::Output)?;
    read
}
