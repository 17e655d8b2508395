// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that this process can still allocate: free memory of the machine, within the limits of its control groups.
//! Linux overcommits, so an allocation succeeds before the process is killed for using it.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Bytes that this process can use without swapping or being killed, where that is known. (Crates for the memory of a
/// machine look at the process's own control group at most, not at its parents.)
pub fn available() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = left_of_groups(&groups, Path::new("/sys/fs/cgroup"));
    [of_machine(), group].into_iter().flatten().min()
}

/// MemAvailable of proc(5).
fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
}

/// The least that is left in the control groups listed in `groups` (cgroups(7)) and in their parents, below `root`.
fn left_of_groups(groups: &str, root: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| left_of_group(line, root)).min()
}

fn left_of_group(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (top, limit, usage) = match controllers {
        "" => (root.to_owned(), "memory.max", "memory.current"),
        _ if controllers.split(',').any(|c| c == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    let below: PathBuf = Path::new(path).components().filter(|c| matches!(c, Component::Normal(_))).collect();
    let number = |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let left = |folder: PathBuf| {
        let (limit, usage) = (number(&folder, limit)?, number(&folder, usage)?);
        // Cached pages of files count as usage, but the kernel reclaims them.
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let files = stat.lines().filter_map(|line| line.split_once(' '));
        let files = files.filter(|(key, _)| matches!(*key, "active_file" | "inactive_file"));
        let files: u64 = files.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
        Some(limit.saturating_sub(usage.saturating_sub(files)))
    };
    below.ancestors().filter_map(|folder| left(top.join(folder))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, folder: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(root.join(folder)).expect("a folder");
        files.iter().for_each(|(name, text)| fs::write(root.join(folder).join(name), text).expect("a file"));
    }

    #[test]
    fn the_narrowest_group_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        group(root, "a", &[("memory.max", "1000\n"), ("memory.current", "300\n")]);
        group(root, "a/b", &[("memory.max", "max\n"), ("memory.current", "300\n")]);
        assert_eq!(left_of_groups("0::/a/b\n", root), Some(700), "a group above limits it");
        let stat = "anon 5\ninactive_file 60\nactive_file 40\nfile 9999\n";
        group(root, "a/b", &[("memory.max", "500\n"), ("memory.current", "300\n"), ("memory.stat", stat)]);
        assert_eq!(left_of_groups("0::/a/b\n", root), Some(300), "pages of files are given up");
        assert_eq!(left_of_groups("0::/a\n", root), Some(700));
        assert_eq!(left_of_groups("0::/none\n", root), None);
        assert_eq!(left_of_groups("0::/../../a\n", root), Some(700), "from outside a namespace");
        // Version 1, with other controllers.
        let old = [("memory.limit_in_bytes", "90\n"), ("memory.usage_in_bytes", "100\n")];
        group(root, "memory/x", &old);
        assert_eq!(left_of_groups("4:cpu,cpuacct:/x\n3:memory:/x\n0::/a\n", root), Some(0));
        assert_eq!(left_of_groups("4:cpu:/x\n", root), None);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(available().is_none_or(|bytes| bytes > 0));
    }
}
