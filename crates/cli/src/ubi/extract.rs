// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi extract`: a tree of a UBIFS volume as files. Everything is made anew below a directory that was not
//! there, so no name in the image, however it was damaged, leads out of it.

use super::image::{Failure, Problems, Walk, mount};
use super::open::wrong;
use crate::args::UbiExtract;
use crate::usage;
use anyhow::{Context, Result, anyhow};
use readpath_ubifs::{FileType, Inode};
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions, Permissions, set_permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Permissions that files and directories get: never more than those of their owner in the image, and no set-user-ID.
const PERMISSIONS: u32 = 0o777;

pub fn main(args: &UbiExtract) -> Result<()> {
    let image = &args.input.image;
    let mut fs = mount(&args.input)?;
    let root = args.path.as_os_str().as_bytes();
    let at = fs.resolve(root, true).map_err(|e| wrong(image, e))?;
    if at.file_type() != Some(FileType::Directory) {
        let what = at.file_type().map_or("of an unknown type", FileType::name);
        return Err(usage(anyhow!("{}: {} is a {what}; ubi cat prints a file", image.display(), args.path.display())));
    }
    let mut problems = Problems::of(image);
    let mut walk = Walk::new(Vec::new(), at);
    let (mut made, mut left_out) = (0u64, 0u64);
    // Directories get their permissions last: some do not let their owner write.
    let mut directories: Vec<(PathBuf, u32)> = Vec::new();
    while let Some(inode) = walk.next(&mut fs, image, &mut |path, what| problems.tell(path, what))? {
        let Some(to) = place(&args.to, &walk.path) else {
            problems.tell(&walk.path, &"a name that is none");
            walk.skip();
            continue;
        };
        let result = match inode.file_type() {
            Some(FileType::Directory) => {
                let made = DirBuilder::new().mode(0o700).create(&to);
                match made {
                    Ok(()) => directories.push((to, inode.mode & PERMISSIONS)),
                    Err(e) if walk.path.is_empty() => {
                        return Err(usage(anyhow!("{}: cannot be made: {e}", to.display())));
                    }
                    Err(_) => walk.skip(),
                }
                made
            }
            Some(FileType::Symlink) => symlink(OsStr::from_bytes(&inode.data), &to),
            Some(FileType::Regular) => match file(&to, &inode, |sink| fs.read_file(&inode, sink)) {
                Ok(()) => Ok(()),
                Err(Failure::Volume(e)) => {
                    problems.tell(&walk.path, &e);
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
            Ok(()) => made += 1,
            // Two entries have the same name.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => problems.tell(&walk.path, &"is there twice"),
            Err(e) => return Err(e).with_context(|| format!("{}: cannot be written", args.to.display())),
        }
    }
    for (path, mode) in directories.iter().rev() {
        set_permissions(path, Permissions::from_mode(*mode))?;
    }
    let others = match left_out {
        0 => String::new(),
        1 => "; a device, pipe or socket is left out".to_owned(),
        n => format!("; {n} devices, pipes and sockets are left out"),
    };
    writeln!(io::stderr(), "{}: {made} files, directories and links{others}", args.to.display()).ok();
    problems.end()
}

/// Where a path of the volume goes; none if it would lead elsewhere.
fn place(to: &Path, path: &[u8]) -> Option<PathBuf> {
    let mut place = to.to_owned();
    for part in path.split(|&byte| byte == b'/').skip(1) {
        if part.is_empty() || part == b"." || part == b".." || part.contains(&0) {
            return None;
        }
        place.push(OsStr::from_bytes(part));
    }
    Some(place)
}

/// Writes one file; what could not be read of it is missing at its end.
fn file(
    to: &Path,
    inode: &Inode,
    read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let new = OpenOptions::new().write(true).create_new(true).mode(inode.mode & PERMISSIONS).open(to);
    let mut out = BufWriter::new(new.map_err(Failure::Output)?);
    read(&mut |bytes| out.write_all(bytes).map_err(Failure::Output))?;
    out.flush().map_err(Failure::Output)
}
