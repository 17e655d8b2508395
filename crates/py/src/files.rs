// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are read, with the errors of the command; and what the process used.

use crate::failure::Failure;
use readpath_results::Process;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// No configuration or job file is larger; what is must be something else.
const LONGEST: u64 = 16 << 20;

/// Reads a text, for those who say themselves what could not be read.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("is larger than {LONGEST} bytes; this is probably the wrong file")));
    }
    String::from_utf8(bytes)
        .map_err(|e| io::Error::other(format!("byte {} is not UTF-8", e.utf8_error().valid_up_to())))
}

/// Reads a text.
pub fn text(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(|e| Failure::Wrong(format!("{}: cannot be read: {e}", path.display())))
}

/// Writes a text. It takes its name when it is whole.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part{}", std::process::id()));
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    written.map_err(|e| {
        fs::remove_file(&part).ok();
        Failure::Wrong(format!("{}: cannot be written: {e}", path.display()))
    })
}

/// Makes a folder, if need be.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|e| Failure::Wrong(format!("{}: cannot make the folder: {e}", path.display())))
}

/// CPU time and peak memory of this process so far.
pub fn process() -> Process {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_seconds = t.tv_sec as f64 + t.tv_nsec as f64 / 1e9;
    // VmHWM of proc(5) is in KiB; where there is no such file the peak is unknown and given as 0.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0);
    Process { cpu_seconds, peak_rss_bytes: kib * 1024 }
}
