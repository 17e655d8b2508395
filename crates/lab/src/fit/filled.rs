// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a review fills the device that it is fitted to: its phases depend on how full the drive is. It reads no
//! table and simulates nothing.

use super::params::cache_sizes;
use super::setting::{Access, LongWrite, Setting, Stretch};
use readpath_config::{DevicePreset, Override};
use readpath_kit::BLOCK_BYTES;

/// A unit may be larger than the drive by a tenth: one sold with 256 GB may have 256 GiB.
const MOST_TENTHS: u64 = 11;
/// Attempts with more flash, each a hundredth more.
const ATTEMPTS: u64 = 25;

/// Whether the first logical unit is about as large as the drive that a long write fills.
///
/// # Errors
/// Says what would make it so.
pub(super) fn check(setting: &Setting, preset: &DevicePreset) -> Result<(), String> {
    let is_fill = matches!(setting.access, Access::SequentialWrite(Stretch { of: LongWrite::Fill, .. }));
    let unit = preset.device.lus[0].blocks;
    if !is_fill || u64::from(unit) * 10 <= u64::from(setting.range_blocks) * MOST_TENTHS {
        return Ok(());
    }
    let sets = match smaller(preset, setting.range_blocks) {
        Some(all) => all.iter().map(|(key, value)| format!("--set {key}={value}")).collect::<Vec<_>>().join(" "),
        None => format!(
            "--set lu.0.blocks={}, and in proportion less of geometry.blocks_per_plane and of the cache",
            setting.range_blocks
        ),
    };
    let gb = |blocks: u32| f64::from(blocks) * f64::from(BLOCK_BYTES) / 1e9;
    Err(format!(
        "the drive has {:.0} GB, but the first logical unit of '{}' {:.0} GB, so that filling the one leaves the other \
         empty space; expected {sets}",
        gb(setting.range_blocks),
        preset.name,
        gb(unit)
    ))
}

/// Keys and values of a device whose first unit has so many blocks, with flash and caches in proportion, if there is
/// one.
fn smaller(preset: &DevicePreset, blocks: u32) -> Option<Vec<(&'static str, u64)>> {
    let all: u64 = preset.device.lus.iter().map(|lu| u64::from(lu.blocks)).sum();
    let left = all - u64::from(preset.device.lus[0].blocks) + u64::from(blocks);
    let in_proportion = |value: u64| value * left / all;
    let mib_blocks = (1 << 20) / u64::from(BLOCK_BYTES);
    let caches = cache_sizes(preset).into_iter().filter(|(_, blocks)| *blocks > 0);
    // A buffer of WriteBooster is a multiple of 4 MiB.
    let mut sets: Vec<(&str, u64)> =
        caches.map(|(key, blocks)| (key, in_proportion(u64::from(blocks)) / mib_blocks / 4 * 4)).collect();
    let planes = in_proportion(u64::from(preset.device.geometry.blocks_per_plane));
    sets.insert(0, ("lu.0.blocks", u64::from(blocks)));
    (0..ATTEMPTS).find_map(|attempt| {
        let mut sets = sets.clone();
        sets.insert(1, ("geometry.blocks_per_plane", planes + (planes * attempt).div_ceil(100)));
        let overrides = sets.iter().map(|(key, value)| Override::new(key, &value.to_string(), ""));
        preset.with_overrides(&overrides.collect::<Result<Vec<_>, _>>().ok()?).is_ok().then_some(sets)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{check, parse};
    use readpath_config::{DevicePreset, Override, device};

    fn load(name: &str) -> DevicePreset {
        device::load(name, &|_| Err(std::io::Error::other("none"))).expect("a preset")
    }

    fn review(gb: &str) -> String {
        format!("drive,phase,capacity_gb,until_gb,throughput_mb_s\nA,cached,{gb},48,2000\nA,direct,{gb},{gb},400\n")
    }

    /// What the error proposes is a device, and one to which the review is fitted.
    #[test]
    fn a_smaller_drive_needs_a_smaller_device() {
        for (name, gb) in [
            ("nvme-dramless-1t", "500"),
            ("nvme-qlc-1t", "500"),
            ("nvme-qlc-1t", "250"),
            ("nvme-2230-256g", "128"),
            ("ufs31-256g", "128"),
            ("ufs40-512g", "256"),
        ] {
            let rows = parse(&review(gb), "r.csv").expect("a review");
            let preset = load(name);
            let error = check(&rows, &preset, "r.csv").expect_err(name).to_string();
            assert!(
                error.starts_with(&format!("r.csv:2: the drive has {gb} GB, but the first logical unit of '{name}' ")),
                "{error}"
            );
            let sets: Vec<Override> = error
                .split("--set ")
                .skip(1)
                .map(|set| Override::from_argument(set.trim(), "--set").expect("a key and a value"))
                .collect();
            assert!(sets.len() >= 3 && sets[0].key() == "lu.0.blocks", "{error}");
            let smaller = preset.with_overrides(&sets).expect("a device");
            assert_eq!(check(&rows, &smaller, "r.csv"), Ok(()), "{error}");
        }
    }

    /// Where nothing in proportion is a device, the size alone is named.
    #[test]
    fn some_devices_cannot_be_so_small() {
        let rows = parse(&review("500"), "r.csv").expect("a review");
        let tiny = rows[0].setting.range_blocks / 1000;
        let setting = super::Setting { range_blocks: tiny, ..rows[0].setting };
        let error = super::check(&setting, &load("nvme-qlc-1t")).expect_err("it is larger");
        let rest = "and in proportion less of geometry.blocks_per_plane and of the cache";
        assert!(error.ends_with(&format!("expected --set lu.0.blocks={tiny}, {rest}")), "{error}");
    }

    /// A tenth more is as much as one unit of measure or the other makes.
    #[test]
    fn a_drive_of_about_the_same_size_will_do() {
        let of = |name, gb| check(&parse(&review(gb), "r.csv").expect("a review"), &load(name), "r.csv");
        assert_eq!(
            [of("ufs31-256g", "256"), of("nvme-qlc-1t", "1000"), of("nvme-qlc-1t", "930")],
            [Ok(()), Ok(()), Ok(())]
        );
        assert!(of("nvme-qlc-1t", "900").is_err());
    }
}
