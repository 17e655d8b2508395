// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi ls|cat|find|stat`: what is in a UBIFS volume of an image.

use super::names::{hex, json_text, put};
use crate::args::{UbiCat, UbiFind, UbiLook};
use crate::failure::Damaged;
use crate::output::stdout;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_session::ubi::nand::printable;
use readpath_session::ubi::ubifs::{Compression, Entry, FileType, Inode, MountMode, Time, Ubifs, UbifsError};
use readpath_session::ubi::{Volume, volume, wrong};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub fn mount(input: &crate::args::ImageInput) -> Result<Ubifs<Volume>> {
    Ubifs::mount(volume(input, false)?, MountMode::Inspect).map_err(|e| wrong(&input.image, e))
}

pub fn ls(args: &UbiLook) -> Result<()> {
    let mut fs = mount(&args.input)?;
    let image = &args.input.image;
    let path = args.path.as_os_str().as_bytes();
    let at = fs.resolve(path, true).map_err(|e| wrong(image, e))?;
    let mut list = List::new(stdout(), if args.json { Show::Json } else { Show::Long });
    if at.file_type() == Some(FileType::Directory) {
        let mut entries = fs.read_dir(at.ino).map_err(|e| wrong(image, e))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let mut shown = Vec::new();
        for Entry { name, target, .. } in entries {
            shown.push((name, fs.inode(target as u32).map_err(|e| wrong(image, e))?));
        }
        for (name, inode) in &shown {
            list.entry(name, inode)?;
        }
    } else {
        list.entry(path, &at)?;
    }
    list.finish()
}

/// `readpath ubi find`. Names are printed as they are reached; damage is reported, and the walk continues.
pub fn find(args: &UbiFind) -> Result<()> {
    let UbiLook { input, path, json } = &args.look;
    if let Some(glob) = &args.name {
        fast_glob::validate(glob).map_err(|e| usage(anyhow!("--name {glob:?}: {e}")))?;
    }
    let mut fs = mount(input)?;
    let image = &input.image;
    let at = fs.resolve(path.as_os_str().as_bytes(), false).map_err(|e| wrong(image, e))?;
    let show = match (json, args.ls, args.print0) {
        (true, ..) => Show::Json,
        (_, true, _) => Show::Long,
        (.., true) => Show::Bytes,
        _ => Show::Names,
    };
    let mut list = List::new(stdout(), show);
    let path = path.as_os_str().as_bytes().to_vec();
    let mut problems = Problems::of(image);
    let mut problem = |path: &[u8], what: &dyn Display| problems.report(path, what);
    let mut walk = Walk::new(path, at);
    while let Some(inode) = walk.next(&mut fs, image, &mut problem)? {
        let base = walk.path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty()).unwrap_or(b"/");
        if args.name.as_ref().is_none_or(|glob| fast_glob::glob_match(glob, base)) {
            list.entry(&walk.path, &inode)?;
        }
    }
    list.finish()?;
    problems.end("read")
}

/// Most problems that are printed; more are counted only.
const MOST_PROBLEMS: u64 = 1000;

/// What could not be read, or written, on a walk.
pub struct Problems<'a> {
    image: &'a Path,
    count: u64,
}

impl<'a> Problems<'a> {
    pub fn of(image: &'a Path) -> Self {
        Problems { image, count: 0 }
    }

    pub fn report(&mut self, path: &[u8], what: &dyn Display) {
        self.count += 1;
        // More problems are not printed.
        if self.count <= MOST_PROBLEMS {
            // Standard error may be closed; that is no reason to panic.
            writeln!(io::stderr(), "readpath: {}: {}: {what}", self.image.display(), printable(path)).ok();
        }
    }

    /// Fails if there were problems: some entry could not be `done`.
    pub fn end(&self, done: &str) -> Result<()> {
        let things = match self.count {
            0 => return Ok(()),
            1 => "something".to_owned(),
            n => format!("{n} things"),
        };
        Err(Damaged(format!("{}: {things} could not be {done}", self.image.display())).into())
    }
}

/// A walk over a tree: a directory before its entries, sorted by name. Damage is reported, and the walk continues.
pub struct Walk {
    /// Path of the current entry.
    pub path: Vec<u8>,
    /// Entries of each directory on the way that are still to come, and how long its path is.
    levels: Vec<(std::vec::IntoIter<Entry>, usize)>,
    visited: BTreeSet<u32>,
    /// The entry that was returned last, or is to be returned first.
    at: Option<Inode>,
    has_begun: bool,
    skips: bool,
}

impl Walk {
    pub fn new(path: Vec<u8>, at: Inode) -> Self {
        let (levels, visited) = (Vec::new(), BTreeSet::new());
        Walk { path, levels, visited, at: Some(at), has_begun: false, skips: false }
    }

    /// Leaves out the entries of the directory that was returned last.
    pub fn skip(&mut self) {
        self.skips = true;
    }

    /// The next, or none at the end.
    pub fn next(
        &mut self,
        fs: &mut Ubifs<Volume>,
        image: &Path,
        problem: &mut impl FnMut(&[u8], &dyn Display),
    ) -> Result<Option<Inode>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Ok(self.at.clone());
        }
        let skips = std::mem::take(&mut self.skips);
        if let Some(last) = self.at.take().filter(|last| last.file_type() == Some(FileType::Directory) && !skips) {
            // Else a damaged volume could be walked for ever.
            if self.visited.insert(last.ino) {
                let path = &self.path;
                let damaged = |damage| problem(path, &damage);
                let mut entries = fs.read_dir_around(last.ino, damaged).map_err(|e| wrong(image, e))?;
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                self.levels.push((entries.into_iter(), self.path.len()));
            } else {
                problem(&self.path, &"a directory with two names");
            }
        }
        while let Some((entries, len)) = self.levels.last_mut() {
            self.path.truncate(*len);
            let Some(Entry { name, target, .. }) = entries.next() else {
                self.levels.pop();
                continue;
            };
            if self.path.last() != Some(&b'/') {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&name);
            // Joined to a path it would be another place, also outside of the tree.
            if matches!(&name[..], b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
                problem(&self.path, &"not a name of a file");
                continue;
            }
            match fs.inode(target as u32) {
                Ok(inode) => {
                    self.at = Some(inode.clone());
                    return Ok(Some(inode));
                }
                Err(e) => problem(&self.path, &damage(image, e)?),
            }
        }
        Ok(None)
    }
}

/// An error after which a walk continues.
fn damage(image: &Path, e: UbifsError) -> Result<UbifsError> {
    match e {
        UbifsError::Unsupported(_) => Err(wrong(image, e)),
        e => Ok(e),
    }
}

fn wrong_path(image: &Path, path: &[u8], what: &str) -> anyhow::Error {
    let path: String = printable(path).chars().take(100).collect();
    usage(anyhow!("{}: {path}: {what}", image.display()))
}

pub fn cat(args: &UbiCat) -> Result<()> {
    let mut fs = mount(&args.input)?;
    let image = &args.input.image;
    let path = args.path.as_os_str().as_bytes();
    let inode = fs.resolve(path, true).map_err(|e| wrong(image, e))?;
    if inode.file_type() != Some(FileType::Regular) {
        let what = inode.file_type().map_or("file of an unknown type", FileType::name);
        return Err(wrong_path(image, path, &format!("it is a {what}, only regular files can be printed")));
    }
    let mut out = stdout();
    fs.read_file(&inode, |bytes| -> Result<(), Failure> { out.write_all(bytes).map_err(Failure::Output) }).map_err(
        |e| match e {
            Failure::Volume(e) => wrong(image, e),
            Failure::Output(e) => e.into(),
        },
    )?;
    out.flush()?;
    Ok(())
}

/// Why the bytes of a file did not arrive.
pub enum Failure {
    Volume(readpath_session::ubi::ubifs::UbifsError),
    Output(io::Error),
}

impl From<readpath_session::ubi::ubifs::UbifsError> for Failure {
    fn from(e: readpath_session::ubi::ubifs::UbifsError) -> Failure {
        Failure::Volume(e)
    }
}

pub fn stat(args: &UbiLook) -> Result<()> {
    let mut fs = mount(&args.input)?;
    let image = &args.input.image;
    let path = args.path.as_os_str().as_bytes();
    let inode = fs.resolve(path, false).map_err(|e| wrong(image, e))?;
    let xattrs = fs.xattrs(inode.ino).map_err(|e| wrong(image, e))?;
    let mut out = stdout();
    let mut value = object(path, &inode);
    value["atime"] = whole_time(inode.atime).into();
    value["ctime"] = whole_time(inode.ctime).into();
    value["flags"] = inode.flags.into();
    let compression = Compression::from_number(inode.compression);
    let mut problems = Problems::of(image);
    if inode.file_type() == Some(FileType::Regular) {
        match fs.occupied_bytes(&inode) {
            Ok(bytes) => value["occupied"] = bytes.into(),
            // The other fields can be shown.
            Err(e) => problems.report(path, &damage(image, e)?),
        }
    }
    value["compression"] = compression.map_or("unknown", Compression::name).into();
    if args.json {
        let pairs = xattrs.iter().map(|x| {
            let mut pair = json!({ "value_hex": hex(&x.value) });
            put(&mut pair, "name", &x.name);
            pair
        });
        value["xattrs"] = pairs.collect();
        out.write_all(json_text(&value).as_bytes())?;
    } else {
        value["path"] = printable(path).into();
        if inode.file_type() == Some(FileType::Symlink) {
            value["target"] = printable(&inode.data).into();
        }
        for (key, value) in value.as_object().into_iter().flatten().filter(|(key, _)| !key.ends_with("_hex")) {
            match value {
                Value::String(text) => writeln!(out, "{key}: {text}")?,
                other => writeln!(out, "{key}: {other}")?,
            }
        }
        for x in &xattrs {
            writeln!(out, "xattr: {} = {}", printable(&x.name), hex(&x.value))?;
        }
    }
    out.flush()?;
    problems.end("read")
}

/// How entries are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// A line with the name.
    Names,
    /// A line with attributes and name.
    Long,
    /// An array of JSON.
    Json,
    /// The raw name, and a zero byte.
    Bytes,
}

/// Entries, written as they come.
struct List<W> {
    out: W,
    show: Show,
    /// Names are escaped, as a terminal might take them for commands.
    escaped: bool,
    any: bool,
}

impl<W: Write> List<W> {
    fn new(out: W, show: Show) -> Self {
        List { out, show, escaped: io::stdout().is_terminal(), any: false }
    }

    fn entry(&mut self, path: &[u8], inode: &Inode) -> Result<()> {
        let (out, escaped) = (&mut self.out, self.escaped);
        let shown = |name: &[u8]| if escaped { printable(name).into_bytes() } else { name.to_vec() };
        let first = !std::mem::replace(&mut self.any, true);
        match self.show {
            Show::Json => {
                out.write_all(if first { b"[" } else { b"," })?;
                for line in json_text(&object(path, inode)).lines() {
                    write!(out, "\n  {line}")?;
                }
            }
            Show::Names => {
                out.write_all(&shown(path))?;
                writeln!(out)?;
            }
            Show::Long => {
                let size = match inode.device() {
                    Some((major, minor)) => format!("{major}, {minor}"),
                    None => inode.size.to_string(),
                };
                let Inode { nlink, uid, gid, .. } = inode;
                let when = time(inode.mtime);
                write!(out, "{} {nlink:>3} {uid:>5} {gid:>5} {size:>10} {when} ", mode(inode))?;
                out.write_all(&shown(path))?;
                if inode.file_type() == Some(FileType::Symlink) {
                    out.write_all(b" -> ")?;
                    out.write_all(&shown(&inode.data))?;
                }
                writeln!(out)?;
            }
            Show::Bytes => {
                out.write_all(path)?;
                out.write_all(&[0])?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if self.show == Show::Json {
            self.out.write_all(if self.any { b"\n]\n" } else { b"[]\n" })?;
        }
        self.out.flush()?;
        Ok(())
    }
}

fn object(path: &[u8], inode: &Inode) -> Value {
    let mut value = json!({
        "type": inode.file_type().map_or("unknown", FileType::name),
        "size": inode.size,
        "mode": format!("{:04o}", inode.mode & 0o7777),
        "nlink": inode.nlink,
        "ino": inode.ino,
        "uid": inode.uid,
        "gid": inode.gid,
        "mtime": whole_time(inode.mtime),
    });
    put(&mut value, "path", path);
    if let Some((major, minor)) = inode.device() {
        value["device"] = format!("{major}:{minor}").into();
    }
    if inode.file_type() == Some(FileType::Symlink) {
        put(&mut value, "target", &inode.data);
    }
    value
}

/// Type and permissions as `ls -l` shows them.
fn mode(inode: &Inode) -> String {
    let mut text = String::from(inode.file_type().map_or('?', FileType::letter));
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = inode.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (inode.mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A time in UTC, to the nanosecond.
fn whole_time(at: Time) -> String {
    let text = time(at);
    match text.strip_suffix('Z') {
        Some(seconds) => format!("{seconds}.{:09}Z", at.ns),
        None => format!("{text} {} ns", at.ns),
    }
}

/// A time in UTC, to the second. The calendar is that of Howard Hinnant's `civil_from_days`: nothing else here needs a
/// crate for dates.
fn time(time: Time) -> String {
    let (days, s) = (time.s.div_euclid(86_400), time.s.rem_euclid(86_400));
    // No calendar goes as far as 64 bits of seconds do.
    if !(-719_468..=2_932_896).contains(&days) {
        return format!("{} s", time.s);
    }
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_nanoseconds() {
        assert_eq!(whole_time(Time { s: 1, ns: 20_000_003 }), "1970-01-01T00:00:01.020000003Z");
        assert_eq!(time(Time { s: -1, ns: 5 }), "1969-12-31T23:59:59Z");
        // No calendar has them.
        assert_eq!(whole_time(Time { s: i64::MAX, ns: 7 }), "9223372036854775807 s 7 ns");
    }
}
