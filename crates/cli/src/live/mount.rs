// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree as a mounted folder (FUSE): every request of the kernel becomes a question to the tree. It behaves as sysfs
//! does: files have 4096 bytes until they are read, nothing can be made or removed, a write is one value.

use crate::{stop, usage};
use anyhow::{Context, Result, anyhow};
use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, SessionACL, TimeOrNow,
    WriteFlags,
};
use readpath_sysfs::{Errno, Kind, Tree};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::mount::{UnmountFlags, unmount};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// For how long the kernel may cache the attributes of a node, which never change.
const REMEMBER: Duration = Duration::from_secs(3600);
/// Size that files of sysfs have, and the most that one write brings.
const PAGE: u32 = 4096;
/// Requests served in parallel: writes wait for the run.
const THREADS: usize = 4;
/// Errors of the operating system that [`io::ErrorKind`] does not distinguish.
const ENOTCONN: i32 = 107;

/// A mounted tree; it is unmounted when this is dropped.
pub struct Mounted {
    folder: PathBuf,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts the tree at an empty folder.
    pub fn new(folder: &Path, tree: Arc<Tree>) -> Result<Self> {
        let folder = check(folder)?;
        let device = "/dev/fuse";
        if let Err(e) = File::options().read(true).write(true).open(device) {
            let needs = "--sysfs needs FUSE: the kernel's module fuse (modprobe fuse), and in a container its device \
                         (--device /dev/fuse)";
            return Err(usage(anyhow!("{device}: {e}; {needs}")));
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("readpath".into()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
        ];
        // Everybody may read sysfs. For others than the superuser that takes a setting of the system's.
        let user = rustix::process::geteuid();
        config.acl = if user.is_root() { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(THREADS);
        let files = Files {
            tree,
            user: user.as_raw(),
            group: rustix::process::getegid().as_raw(),
            since: SystemTime::now(),
            opened: AtomicU64::new(0),
            texts: Mutex::default(),
        };
        let needs = || {
            let name = folder.display();
            format!(
                "--sysfs {name}: cannot mount; it takes the superuser (in a container CAP_SYS_ADMIN) or the program \
                 fusermount3 (package fuse3)"
            )
        };
        let session =
            Session::new(files, &folder, &config).and_then(Session::spawn).with_context(needs).map_err(usage)?;
        let mine = folder.clone();
        stop::clean_up(move || detach(&mine))?;
        Ok(Mounted { folder, session: Some(session) })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process may still use it: it is unmounted lazily, and goes away when that process leaves or this one ends.
        detach(&self.folder);
        drop(self.session.take());
    }
}

/// Unmounts without waiting for those who use it.
fn detach(folder: &Path) {
    if unmount(folder, UnmountFlags::DETACH).is_err() {
        // Only the superuser may do that alone.
        let quietly = || Stdio::null();
        Command::new("fusermount3")
            .args(["-u", "-z", "-q", "--"])
            .arg(folder)
            .stdout(quietly())
            .stderr(quietly())
            .status()
            .ok();
    }
}

/// The folder without links in its path, if a tree can be mounted there.
fn check(folder: &Path) -> Result<PathBuf> {
    let name = folder.display();
    let wrong = |what: &str| usage(anyhow!("--sysfs {name}: {what}"));
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => wrong("there is no such folder; make it first"),
        _ if e.raw_os_error() == Some(ENOTCONN) => {
            wrong("a program that was killed left it mounted; unmount it first (umount, or fusermount3 -u)")
        }
        _ => wrong(&format!("cannot be read: {e}")),
    };
    if !fs::metadata(folder).map_err(failed)?.is_dir() {
        return Err(wrong("is no folder"));
    }
    let folder = folder.canonicalize().map_err(failed)?;
    // The kernel may still remember the folder of a program that is gone; to list it, it has to ask the program.
    let is_empty = fs::read_dir(&folder).map_err(failed)?.next().is_none();
    if is_mount_point(&folder) {
        return Err(wrong("another file system is mounted there"));
    }
    if !is_empty {
        return Err(wrong("is not empty; what is in it would be hidden"));
    }
    Ok(folder)
}

/// Whether a folder is a mount point, as Linux 5.8 and newer report it.
fn is_mount_point(folder: &Path) -> bool {
    let found = statx(CWD, folder, AtFlags::empty(), StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

struct Files {
    tree: Arc<Tree>,
    user: u32,
    group: u32,
    since: SystemTime,
    opened: AtomicU64,
    /// The text of each open file when it was read from its beginning: reading on gives the rest of it, as in
    /// sysfs, though the number has changed meanwhile.
    texts: Mutex<HashMap<u64, String>>,
}

fn errno(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error())
}

fn file_type(kind: &Kind) -> FileType {
    match kind {
        Kind::Folder => FileType::Directory,
        Kind::Link(_) => FileType::Symlink,
        Kind::File { .. } => FileType::RegularFile,
    }
}

impl Files {
    fn texts(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, node: u64) -> Result<FileAttr, Errno> {
        let kind = self.tree.kind(node)?;
        let (size, perm, nlink) = match &kind {
            // A link count of 1 makes programs list a folder that otherwise derive the number of its subfolders from
            // the count.
            Kind::Folder => (0, 0o755, 1),
            Kind::Link(target) => (target.len() as u64, 0o777, 1),
            Kind::File { writable: true } => (PAGE.into(), 0o644, 1),
            Kind::File { writable: false } => (PAGE.into(), 0o444, 1),
        };
        Ok(FileAttr {
            ino: INodeNo(node),
            size,
            blocks: 0,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind: file_type(&kind),
            perm,
            nlink,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: PAGE,
            flags: 0,
        })
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // As in sysfs: a write longer than a page comes in pieces, the first of which is refused.
        config.set_max_write(PAGE).map_err(|least| io::Error::other(format!("writes of {least} bytes at least")))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let node = name.to_str().ok_or(Errno::NOENT).and_then(|name| self.tree.lookup(parent.0, name));
        match node.and_then(|node| self.attributes(node)) {
            Ok(attributes) => reply.entry(&REMEMBER, &attributes, Generation(0)),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino.0) {
            Ok(attributes) => reply.attr(&REMEMBER, &attributes),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A shell truncates its output file; a file here keeps its length.
        match self.attributes(ino.0) {
            Ok(_) if mode.is_some() || uid.is_some() || gid.is_some() => reply.error(fuser::Errno::EPERM),
            Ok(attributes) => reply.attr(&REMEMBER, &attributes),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree.kind(ino.0) {
            Ok(Kind::Link(target)) => reply.data(target.as_bytes()),
            Ok(_) => reply.error(fuser::Errno::EINVAL),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let write = !matches!(flags.acc_mode(), fuser::OpenAccMode::O_RDONLY);
        match self.tree.check_open(ino.0, write) {
            Ok(()) => {
                let handle = self.opened.fetch_add(1, Ordering::Relaxed);
                reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if offset == 0 || !self.texts().contains_key(&handle.0) {
            match self.tree.read(ino.0) {
                Ok(text) => self.texts().insert(handle.0, text),
                Err(e) => return reply.error(errno(e)),
            };
        }
        let texts = self.texts();
        let text = texts.get(&handle.0).map_or("", String::as_str);
        let rest = usize::try_from(offset).ok().and_then(|from| text.as_bytes().get(from..));
        let rest = rest.unwrap_or_default();
        reply.data(&rest[..rest.len().min(size as usize)]);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.texts().remove(&handle.0);
        reply.ok();
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The offset of a write makes no difference in sysfs.
        match self.tree.write(ino.0, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.tree.entries(ino.0).and_then(|entries| Ok((entries, self.tree.parent(ino.0)?)));
        let (entries, parent) = match listed {
            Ok(listed) => listed,
            Err(e) => return reply.error(errno(e)),
        };
        let dots = [(ino.0, FileType::Directory, "."), (parent, FileType::Directory, "..")];
        let entries = entries.iter().map(|e| (e.node, file_type(&e.kind), e.name.as_str()));
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (place, (node, kind, name)) in dots.into_iter().chain(entries).enumerate().skip(from) {
            if reply.add(INodeNo(node), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        // The kernel itself checks modes.
        reply.ok();
    }

    fn create(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        reply.error(fuser::Errno::EACCES);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rename(&self, _: &Request, _: INodeNo, _: &OsStr, _: INodeNo, _: &OsStr, _: RenameFlags, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_told() {
        assert!(is_mount_point(Path::new("/")) && !is_mount_point(Path::new("/no such folder")));
    }
}
