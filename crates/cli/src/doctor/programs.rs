// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of others, and the kernel's FUSE: which are here, in which version, what each is for, and where to get it.

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(1);

/// Folders with programs that Debian leaves out of the `PATH` of ordinary users.
const BESIDE_PATH: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// An optional part that some command can use.
pub struct Part {
    pub name: &'static str,
    /// The command or option that uses it, and for what.
    pub purpose: &'static str,
    /// How to get it on Debian 12.
    pub debian: &'static str,
    pub found: Option<PathBuf>,
    pub version: Option<String>,
    pub state: State,
}

/// What became of looking for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    There,
    Missing,
    /// The part is present, but older than needed.
    TooOld,
    /// It is there, but not for this user.
    Denied,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::There => "there",
            State::Missing => "missing",
            State::TooOld => "too old",
            State::Denied => "no permission",
        }
    }
}

/// A program to look for.
struct Program {
    /// Its names, the usual one first.
    names: &'static [&'static str],
    purpose: &'static str,
    debian: &'static str,
    /// The oldest version that will do.
    least: (u32, u32),
}

const PROGRAMS: [Program; 9] = [
    Program {
        names: &["qemu-system-x86_64"],
        purpose: "attach: a virtual machine that uses the device (10.1 or later)",
        debian: "Debian 12 has 7.2, which is too old: make test-kernel puts a newer one into target/kernel/qemu",
        least: (10, 1),
    },
    Program {
        names: &["fio"],
        purpose: "device probe: runs its jobs; serve: a client that measures",
        debian: "apt install fio",
        least: (0, 0),
    },
    Program {
        names: &["chromium", "chromium-browser"],
        purpose: "report.html as a PDF or a picture; any browser shows it",
        debian: "apt install chromium",
        least: (0, 0),
    },
    Program {
        names: &["fusermount3"],
        purpose: "--sysfs for users other than root",
        debian: "apt install fuse3",
        least: (0, 0),
    },
    Program {
        names: &["nbdcopy"],
        purpose: "serve: copies to and from the device",
        debian: "apt install libnbd-bin",
        least: (0, 0),
    },
    Program {
        names: &["nbdinfo"],
        purpose: "serve: what the server offers",
        debian: "apt install libnbd-bin",
        least: (0, 0),
    },
    Program {
        names: &["qemu-img"],
        purpose: "serve: converts disk images to the device and back",
        debian: "apt install qemu-utils",
        least: (0, 0),
    },
    Program {
        names: &["mkfs.ubifs"],
        purpose: "ubi: makes UBIFS volumes of folders",
        debian: "apt install mtd-utils",
        least: (0, 0),
    },
    Program {
        names: &["ubinize"],
        purpose: "ubi: makes UBI images of volumes",
        debian: "apt install mtd-utils",
        least: (0, 0),
    },
];

/// Looks for everything, at most as long as one program may take.
pub fn look() -> Vec<Part> {
    let mut parts: Vec<Part> = thread::scope(|scope| {
        let looked: Vec<_> = PROGRAMS.iter().map(|program| scope.spawn(|| program.look())).collect();
        looked.into_iter().filter_map(|part| part.join().ok()).collect()
    });
    let at = parts.iter().position(|part| part.name == "fusermount3").unwrap_or(parts.len());
    parts.insert(at, fuse());
    parts
}

fn fuse() -> Part {
    let name = "/dev/fuse";
    let state = match File::options().read(true).write(true).open(name) {
        Ok(_) => State::There,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => State::Denied,
        Err(_) => State::Missing,
    };
    let found = (state != State::Missing).then(|| PathBuf::from(name));
    let (purpose, debian) =
        ("--sysfs: live counters as files", "modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN");
    Part { name, purpose, debian, found, version: None, state }
}

impl Program {
    fn look(&self) -> Part {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = self.names.iter().find_map(|name| Some((*name, find(name, &path)?)));
        let version = found.as_ref().and_then(|(_, path)| version(path));
        let is_old = |version: &String| numbers(version) < self.least;
        let state = match (&found, &version) {
            (None, _) => State::Missing,
            (_, Some(version)) if is_old(version) => State::TooOld,
            _ => State::There,
        };
        let (name, found) = found.map_or((self.names[0], None), |(name, path)| (name, Some(path)));
        Part { name, purpose: self.purpose, debian: self.debian, found, version, state }
    }
}

impl Part {
    /// Whether it was found where a shell would not look.
    pub fn is_beside_path(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folder = self.found.as_deref().and_then(Path::parent);
        folder.is_some_and(|folder| folder != Path::new("/dev") && !std::env::split_paths(&path).any(|p| p == folder))
    }
}

impl fmt::Display for Part {
    /// Its state and version, for a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.version, self.state) {
            (Some(version), State::There) => f.write_str(version)?,
            (Some(version), state) => write!(f, "{version}, {}", state.word())?,
            (None, state) => f.write_str(state.word())?,
        }
        match &self.found {
            Some(path) if self.is_beside_path() => write!(f, ", not in PATH: {}", path.display()),
            _ => Ok(()),
        }
    }
}

/// The first program of this name in the folders of `path`, or in those that may be missing there.
fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    // A relative folder of PATH, such as an empty one, means another program in every folder.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let folders = folders.chain(BESIDE_PATH.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// The version that a program prints, if it does so in time.
fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let (send, receive) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // A child of the program may keep the pipe open for longer than the program runs.
        thread::spawn(move || {
            let mut text = Vec::new();
            stdout.take(4096).read_to_end(&mut text).ok();
            send.send(text).ok();
        });
    }
    let text = receive.recv_timeout(PATIENCE).ok();
    // The child was not waited for, so its process id is still its own.
    kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
    child.wait().ok();
    version_in(&String::from_utf8_lossy(&text?))
}

/// The first word with digits on both sides of a point, and its digits and points alone.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.filter(|word| word.contains('.')).map(str::to_owned).next()
}

/// The first two numbers of a version.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let said = [
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\n", "7.2.22"),
            ("fio-3.33\n", "3.33"),
            ("fusermount3 version: 3.14.0\n", "3.14.0"),
            ("mkfs.ubifs (mtd-utils) 2.1.5\n", "2.1.5"),
            ("nbdcopy 1.14.2\nlibnbd 1.14.2\n", "1.14.2"),
        ];
        for (text, version) in said {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no version. 7"), None);
        assert!(numbers("7.2.22") < (10, 1) && numbers("10.0.8") < (10, 1) && numbers("10.1.0") >= (10, 1));
        assert!(numbers("11") >= (10, 1));
    }

    #[test]
    fn a_program_that_does_not_answer_is_not_waited_for() {
        let room = tempfile::tempdir().expect("a folder");
        let program = room.path().join("slow");
        // Its child holds the pipe open.
        fs::write(&program, "#!/bin/sh\nsleep 60 &\nsleep 60\n").expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        let begun = Instant::now();
        assert_eq!(version(&program), None);
        assert!(begun.elapsed() < Duration::from_secs(30));
        fs::write(&program, "#!/bin/sh\necho slow 1.5\n").expect("a file");
        assert_eq!(find("slow", room.path().as_os_str()), Some(program.clone()));
        assert_eq!(version(&program).as_deref(), Some("1.5"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("no program");
        assert_eq!(find("slow", room.path().as_os_str()), None);
    }
}
