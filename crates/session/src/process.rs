// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time and memory of this process.

use readpath_results::Process;
use std::fs;

/// CPU time and peak memory of this process so far.
pub fn process() -> Process {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_seconds = t.tv_sec as f64 + t.tv_nsec as f64 / 1e9;
    // VmHWM of proc(5) is in KiB; without that file the peak is unknown and given as 0.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0);
    Process { cpu_seconds, peak_rss_bytes: kib * 1024, ..Process::default() }
}
