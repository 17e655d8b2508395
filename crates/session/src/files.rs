// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are written whole or not at all.

use crate::inputs::is_stdin;
use crate::usage;
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name in the same folder and renames it.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    begin_whole(path, contents)?.finish()
}

/// [`write_whole`] without the renaming.
///
/// # Errors
/// When it cannot be written.
pub fn begin_whole(path: &Path, contents: &[u8]) -> Result<PartFile> {
    let part = PartFile::create(path)?;
    let mut file = &part.file;
    file.write_all(contents).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(part)
}

/// Checks before a long run that a file can be written. Leaves no file.
///
/// # Errors
/// When it cannot be written.
pub fn check_writable(path: &Path) -> Result<()> {
    // The reader of a pipe would see its end when it is opened and closed.
    if is_special(path) { Ok(()) } else { PartFile::create(path).map(drop) }
}

/// A folder that was made, with its missing parents. Those that are empty when this is dropped are removed.
pub struct NewFolder(Vec<PathBuf>);

impl NewFolder {
    /// Makes the folder if it does not exist.
    ///
    /// # Errors
    /// A mistake of the user when the path cannot be a folder.
    pub fn create(path: &Path) -> Result<Self> {
        let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let made = NewFolder(missing.map(Path::to_owned).collect());
        fs::create_dir_all(path)
            .with_context(|| format!("{}: cannot make the folder", path.display()))
            .map_err(usage)?;
        Ok(made)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // The innermost folder first; a folder with files stays.
        for folder in &self.0 {
            fs::remove_dir(folder).ok();
        }
    }
}

/// A file under a temporary name; [`PartFile::finish`] gives it its name, and dropping it unfinished removes it. A path
/// that is no regular file, such as a device or a pipe, is written directly. (The crate `tempfile` would save ten lines
/// and put the random name of the part into every message.)
pub struct PartFile {
    /// The open file.
    pub file: File,
    /// The temporary path; `None` for a path that is no regular file.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl PartFile {
    /// Begins to write the file at `path`, or the file to which a symbolic link at `path` leads.
    ///
    /// # Errors
    /// A mistake of the user when the path cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let wrong = |what: String| usage(anyhow!("{}: {what}", path.display()));
        let cannot = |e: io::Error| wrong(format!("cannot be written: {e}"));
        if is_dash(path) {
            let file = io::stdout().as_fd().try_clone_to_owned().map_err(cannot)?.into();
            return Ok(PartFile { file, part: None, path: path.to_owned() });
        }
        path.file_name().ok_or_else(|| wrong("names no file".into()))?;
        // Otherwise the rename at the end would fail.
        if path.is_dir() {
            return Err(wrong("cannot be written: it is a folder".into()));
        }
        if is_special(path) {
            let file = File::options().write(true).open(path).map_err(cannot)?;
            return Ok(PartFile { file, part: None, path: path.to_owned() });
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", std::process::id()));
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(cannot)?;
        Ok(PartFile { file, part: Some(part), path })
    }

    /// Brings the file to its disk and renames it.
    ///
    /// # Errors
    /// When that fails; the part is removed then.
    pub fn finish(mut self) -> Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let named = sync(&self.file).and_then(|()| fs::rename(&part, &self.path));
        if named.is_err() {
            self.part = Some(part);
        }
        named.with_context(|| format!("{}: cannot write", self.path.display()))
    }
}

/// Whether the path is `-`: standard output.
fn is_dash(path: &Path) -> bool {
    is_stdin(path)
}

/// Whether the path is neither a regular file nor a folder: standard output, a device, a pipe or a socket.
pub fn is_special(path: &Path) -> bool {
    is_dash(path) || fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Brings a file to its disk. File systems that do not support fsync(2) count as successful.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(e) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Err(e),
        _ => Ok(()),
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Whether the path is standard output, as `-` or as a file.
pub fn is_standard_output(path: &Path) -> bool {
    is_dash(path) || is_same(path, Path::new("/dev/stdout"))
}

/// Refuses to write to the file that is read.
///
/// # Errors
/// When both paths are the same file.
pub fn check_not_input(output: &Path, input: &Path) -> Result<()> {
    let input = if is_stdin(input) { Path::new("/dev/stdin") } else { input };
    if !is_dash(output) && output.is_file() && is_same(output, input) {
        return Err(usage(anyhow!("{}: this is the input; write to another file", output.display())));
    }
    Ok(())
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            fs::remove_file(part).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        check_writable(&path).expect("it can be written");
        assert_eq!(names(folder.path()), [""; 0], "nothing is left of the check");
        write_whole(&path, b"first").expect("it can be written");
        let part = begin_whole(&path, b"second").expect("it can be written");
        assert_eq!((names(folder.path()).len(), fs::read(&path).expect("a file")), (2, b"first".to_vec()));
        drop(part);
        assert_eq!((names(folder.path()), fs::read(&path).expect("a file")), (vec!["a".into()], b"first".to_vec()));
        // The file that a link leads to is replaced, not the link.
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        write_whole(&link, b"third").expect("it can be written");
        assert_eq!((fs::read(&path).expect("a file"), link.is_symlink()), (b"third".to_vec(), true));
        let refused = PartFile::create(folder.path()).map(drop).expect_err("a folder").to_string();
        assert!(refused.ends_with("cannot be written: it is a folder"), "{refused}");
    }

    #[test]
    fn folders_that_stay_empty_are_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("a/b/c");
        drop(NewFolder::create(&inner).expect("a folder"));
        assert_eq!(names(root.path()), [""; 0]);
        let made = NewFolder::create(&inner).expect("a folder");
        fs::write(root.path().join("a/b/kept"), "").expect("a file");
        drop(made);
        assert_eq!(names(&root.path().join("a/b")), ["kept"]);
        // What was there before stays, empty or not.
        fs::create_dir(root.path().join("old")).expect("a folder");
        drop(NewFolder::create(&root.path().join("old")).expect("it is there"));
        assert_eq!(names(root.path()), ["a", "old"]);
    }

    #[test]
    fn an_output_is_never_the_input() {
        let folder = tempfile::tempdir().expect("a folder");
        let [input, copy, link, new] = ["input", "copy", "link", "new"].map(|name| folder.path().join(name));
        fs::write(&input, "x").expect("a file");
        fs::copy(&input, &copy).expect("a copy");
        fs::hard_link(&input, &link).expect("a link");
        assert!(check_not_input(&link, &input).is_err(), "another name of the same file");
        assert!(check_not_input(&copy, &input).is_ok() && check_not_input(&new, &input).is_ok());
    }
}
