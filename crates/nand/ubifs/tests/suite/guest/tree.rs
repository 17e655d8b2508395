// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree like the root file system of a Debian: as many entries and folders below `usr`, as deep, with similar names
//! and sizes. The contents of files are arbitrary; LZO shrinks about half of them.

use readpath_kit::Prng;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Folders of one kind.
struct Kind {
    /// Their path; `*` is replaced by a word, and `#` by a number from 1 to 8.
    path: &'static str,
    /// Number of folders to make; some coincide.
    folders: u32,
    /// Entries of each: least, most.
    entries: [u32; 2],
    /// File name endings.
    endings: &'static [&'static str],
}

const fn kind(path: &'static str, folders: u32, entries: [u32; 2], endings: &'static [&'static str]) -> Kind {
    Kind { path, folders, entries, endings }
}

const KINDS: [Kind; 27] = [
    kind("etc/*", 90, [1, 7], &["", ".conf", ".d"]),
    kind("usr/bin", 1, [750, 750], &["", "", ".pl", "-config"]),
    kind("usr/sbin", 1, [230, 230], &["", "adm", "ctl"]),
    kind("usr/include/*", 40, [3, 25], &[".h", "_types.h"]),
    kind("usr/lib/modules/6.1.0/kernel/drivers/*/*", 190, [1, 9], &[".ko"]),
    kind("usr/lib/modules/6.1.0/kernel/fs/*", 40, [1, 3], &[".ko"]),
    kind("usr/lib/python3/dist-packages/*/*/__pycache__", 70, [2, 14], &[".cpython-311.pyc"]),
    kind("usr/lib/python3/dist-packages/*/*", 120, [2, 14], &[".py", "_test.py"]),
    kind("usr/lib/systemd/system", 1, [420, 420], &[".service", ".target", ".socket"]),
    kind("usr/lib/systemd/system/*.target.wants", 25, [1, 4], &[".service"]),
    kind("usr/lib/x86_64-linux-gnu", 1, [1000, 1000], &[".so.0", ".so.1.2.3", ".so.6", ".a"]),
    kind("usr/lib/x86_64-linux-gnu/*", 50, [1, 40], &[".so"]),
    kind("usr/lib/x86_64-linux-gnu/gconv", 1, [260, 260], &[".so"]),
    kind("usr/lib/x86_64-linux-gnu/perl-base/*", 30, [1, 12], &[".pm"]),
    kind("usr/share/doc/*-*", 460, [1, 5], &["copyright", "changelog.Debian.gz", "NEWS.gz"]),
    kind("usr/share/fonts/truetype", 1, [2500, 2500], &[".ttf", "-Bold.ttf"]),
    kind("usr/share/i18n/charmaps", 1, [230, 230], &[".gz"]),
    kind("usr/share/icons/hicolor/*/apps", 30, [5, 40], &[".png", ".svg"]),
    kind("usr/share/locale/*_*/LC_MESSAGES", 130, [1, 12], &[".mo"]),
    kind("usr/share/man/*/man#", 90, [1, 15], &[".1.gz", ".8.gz"]),
    kind("usr/share/man/man#", 9, [100, 200], &[".1.gz", ".3.gz"]),
    kind("usr/share/perl/5.36.0/*/*", 90, [1, 11], &[".pm", ".pl"]),
    kind("usr/share/terminfo/*", 40, [1, 30], &["", "-256color"]),
    kind("usr/share/vim/vim90/*", 20, [2, 40], &[".vim"]),
    kind("usr/share/zoneinfo/*", 30, [5, 40], &["", "_East"]),
    kind("var/lib/dpkg/info", 1, [1500, 1500], &[".list", ".md5sums", ".postinst"]),
    kind("var/lib/*", 30, [0, 3], &["", ".db"]),
];

const WORDS: [&str; 48] = [
    "apt", "audio", "base", "blk", "cairo", "cert", "core", "crypt", "curl", "dbus", "dev", "dns", "font", "fs", "gcc",
    "gio", "gnu", "gtk", "html", "icu", "init", "ip", "kmod", "lang", "ldap", "mail", "mount", "net", "pam", "perl",
    "pkg", "png", "python", "qt", "ssh", "ssl", "sys", "tex", "tty", "udev", "usb", "util", "vim", "web", "xml",
    "xorg", "zip", "zone",
];

fn word(prng: &mut Prng) -> &'static str {
    WORDS[prng.below(WORDS.len() as u64) as usize]
}

/// Contents of files: alternating pieces of words and of noise.
fn contents(prng: &mut Prng) -> Vec<u8> {
    let mut pool = Vec::new();
    while pool.len() < 1 << 20 {
        let end = pool.len() + 64 + prng.below(1500) as usize;
        let noise = prng.chance_per_mille(400);
        while pool.len() < end {
            if noise {
                pool.extend(prng.next_u64().to_le_bytes());
            } else {
                pool.extend(word(prng).bytes().chain(*b" "));
            }
        }
    }
    pool
}

/// Bytes of a file: mostly few, sometimes many.
fn size(prng: &mut Prng) -> usize {
    let most = if prng.chance_per_mille(30) { 19 } else { 4 + prng.below(11) };
    prng.below(1 << most) as usize
}

/// Counts of a tree, including the folders that lead there.
pub struct Tree {
    /// Entries below `usr`.
    pub in_usr: usize,
    /// Folders among them, and `usr`.
    pub folders_in_usr: usize,
    /// All entries, and the root.
    pub entries: usize,
}

/// Makes the tree in `root`.
pub fn make(root: &Path) -> Tree {
    let prng = &mut Prng::stream(20_160, "large tree", 0);
    let pool = contents(prng);
    let mut folders = BTreeSet::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for Kind { path, folders: count, entries, endings } in &KINDS {
        for _ in 0..*count {
            let mut dir = root.to_owned();
            for part in path.split('/') {
                let part: String = part
                    .chars()
                    .map(|c| match c {
                        '*' => word(prng).to_owned(),
                        '#' => (1 + prng.below(8)).to_string(),
                        c => c.to_string(),
                    })
                    .collect();
                dir.push(part);
                folders.insert(dir.clone());
            }
            fs::create_dir_all(&dir).expect("a folder");
            let among = files.len();
            for n in 0..u64::from(entries[0]) + prng.below(u64::from(entries[1] - entries[0]) + 1) {
                let ending = endings[prng.below(endings.len() as u64) as usize];
                let number = if prng.chance_per_mille(300) { n.to_string() } else { String::new() };
                let path = dir.join(format!("{}{}{number}{ending}", word(prng), word(prng)));
                if !path.exists() {
                    make_file(&path, &files[among..], &pool, prng);
                    files.push(path);
                }
            }
        }
    }
    let usr = root.join("usr");
    let folders_in_usr = folders.iter().filter(|path| path.starts_with(&usr)).count();
    let files_in_usr = files.iter().filter(|path| path.starts_with(&usr)).count();
    Tree { in_usr: files_in_usr + folders_in_usr - 1, folders_in_usr, entries: files.len() + folders.len() + 1 }
}

/// A file, or a symbolic or a hard link to the last one in the same folder.
fn make_file(path: &Path, before: &[PathBuf], pool: &[u8], prng: &mut Prng) {
    match (prng.below(100), before.last()) {
        (0..8, Some(last)) => symlink(last.file_name().expect("a name"), path).expect("a link"),
        (8..10, Some(last)) => fs::hard_link(last, path).expect("a link"),
        _ => {
            let bytes = size(prng);
            let from = prng.below((pool.len() - bytes) as u64) as usize;
            fs::write(path, &pool[from..from + bytes]).expect("a file");
            let mode = [0o644, 0o644, 0o755, 0o600, 0o4755][prng.below(5) as usize];
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
        }
    }
}
