// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of a device that can be fitted: their value in a preset, what values are possible, and the overrides that
//! set them. It runs nothing.

use super::measurements::Measurement;
use super::setting::{Access, LongWrite, Setting, Stretch};
use readpath_config::{ConfigFileError, DevicePreset, Override};
use readpath_device::{CacheOwner, SlcCacheConfig};
use readpath_flash::PlaneReads;
use readpath_kit::Ns;
use readpath_stack::given_host_memory;

/// A parameter. All count in whole units: nanoseconds, KiB or regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Param {
    /// A time with a key of its own; index into the table of them.
    Time(usize),
    /// Delay of the host's software, there and back.
    HostDelay,
    /// SRAM for the map, which is coverage.
    MapCache,
    /// Regions that may be active at once.
    ActiveRegions,
    /// A size of the cache in SLC mode; index into the table of them.
    Cache(usize),
    /// Host memory that the device uses for its map.
    HostMemory,
    /// One of a few ways to be built; index into the table of them.
    Choice(usize),
}

/// Jobs of a probe: each kind has those before it as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Jobs {
    /// Random reads by range, queue depth and length.
    Reads,
    /// Writes too.
    Writes,
    /// The erased device is filled as well.
    Fill,
}

impl Jobs {
    /// The command that plans them, and what they are.
    pub fn told(self) -> &'static str {
        match self {
            Jobs::Reads => "device probe plan (reads by range, queue depth and length)",
            Jobs::Writes => {
                "device probe plan --destructive PATH (a long write ends the cache: its static and its dynamic part \
                 together, not each of them)"
            }
            Jobs::Fill => "device probe plan --destructive PATH --fill (the last part of a fill folds what is cached)",
        }
    }
}

/// The measurements that a time can affect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Always,
    /// Reads. What writes read, map pages in the background, does not hold them up.
    Reads,
    /// Reads with HPB.
    Hpb,
    /// Reads of a device that uses host memory.
    HostMap,
    Writes,
    /// Writes of a device with a cache.
    Cached,
    /// Writes of a device with a cache in SLC mode.
    InSlc,
    /// Writes of a device whose cache has cells of more bits.
    InMoreBits,
    /// Reads of a device whose dies have several planes.
    Planes,
}

impl Shows {
    fn on(self, setting: &Setting, preset: &DevicePreset) -> bool {
        let reads = !setting.writes();
        match self {
            Shows::Always => true,
            Shows::Reads => reads,
            Shows::Hpb => reads && setting.hpb,
            Shows::HostMap => reads && given_mib(preset) > 0 && setting.range_blocks > preset.device.map_page_entries(),
            Shows::Writes => !reads,
            Shows::Cached => !reads && caches(preset),
            Shows::InSlc => !reads && caches(preset) && cache_program(preset).is_none(),
            Shows::InMoreBits => !reads && cache_program(preset).is_some(),
            Shows::Planes => reads && preset.device.geometry.planes > 1,
        }
    }
}

/// A time: its key, what it can show in, and the field.
struct Time {
    key: &'static str,
    shows: Shows,
    get: fn(&DevicePreset) -> Ns,
}

const fn time(key: &'static str, shows: Shows, get: fn(&DevicePreset) -> Ns) -> Time {
    Time { key, shows, get }
}

const TIMES: [Time; 13] = [
    time("firmware.flash_op_us", Shows::Always, |p| p.device.firmware.flash_op),
    time("firmware.hpb_read_extra_us", Shows::Hpb, |p| p.device.firmware.hpb_read_extra),
    time("flash.read_us", Shows::Reads, |p| p.device.flash.read),
    time(MAP_READ, Shows::Reads, |p| p.device.flash.map_read),
    time("flash.transfer_4k_us", Shows::Always, |p| p.device.flash.transfer_block),
    time("link.transfer_4k_us", Shows::Always, |p| p.device.link.block),
    time("link.request_us", Shows::Always, |p| p.device.link.request),
    time("flash.program_us", Shows::Writes, |p| p.device.flash.program),
    time("firmware.write_command_us", Shows::Writes, |p| p.device.firmware.write_command),
    time("slc.program_us", Shows::InSlc, |p| match cache_program(p) {
        Some(_) => Ns::ZERO,
        None => p.device.slc.map_or(Ns::ZERO, |slc| slc.program),
    }),
    time("firmware.read_command_us", Shows::Reads, |p| p.device.firmware.read_command),
    time("map_memory.access_us", Shows::HostMap, |p| p.device.host_map().map_or(Ns::ZERO, |map| map.access)),
    time("slc_cache.cells.program_us", Shows::InMoreBits, |p| cache_program(p).unwrap_or(Ns::ZERO)),
];

/// One of a few ways to be built: its key, what it can show in, and the field as a number from 1.
struct Choice {
    key: &'static str,
    shows: Shows,
    /// The values in a device file, from 1 on; none if they are the numbers themselves.
    words: &'static [&'static str],
    most: u64,
    get: fn(&DevicePreset) -> u64,
}

/// Ways of planes to read, by `PlaneReads::ALL`.
const PLANE_READS: [&str; PlaneReads::ALL.len()] = {
    let mut words = [""; PlaneReads::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = PlaneReads::ALL[at].name();
        at += 1;
    }
    words
};

const CHOICES: [Choice; 3] = [
    Choice {
        key: "firmware.cores",
        shows: Shows::Always,
        words: &[],
        most: 16,
        get: |p| u64::from(p.device.firmware.cores),
    },
    Choice {
        key: "flash.plane_reads",
        shows: Shows::Planes,
        words: &PLANE_READS,
        most: PLANE_READS.len() as u64,
        get: |p| {
            let here = |reads: &PlaneReads| *reads == p.device.flash.plane_reads;
            PlaneReads::ALL.iter().position(here).map_or(1, |at| at as u64 + 1)
        },
    },
    Choice {
        key: "slc.fold",
        shows: Shows::Cached,
        words: &["controller", "die"],
        most: 2,
        get: |p| p.device.slc.map_or(1, |slc| 1 + u64::from(slc.folds_on_die)),
    },
];

impl Choice {
    /// A value as a device file has it.
    fn word(&self, value: u64) -> String {
        let at = usize::try_from(value.saturating_sub(1)).unwrap_or(usize::MAX);
        self.words.get(at).map_or_else(|| value.to_string(), |word| (*word).to_owned())
    }
}

/// The buffer of WriteBooster.
pub(super) const BOOSTER: &str = "write_booster.buffer_mib";
/// The part of a cache that takes space away from the logical units.
const STATIC: &str = "slc_cache.static_mib";
/// Blocks of a MiB.
pub(super) const MIB_BLOCKS: u64 = 256;

/// A size of a cache: its key, the MiB of which it is a multiple, and the field.
struct CacheSize {
    key: &'static str,
    unit: u64,
    get: fn(&DevicePreset) -> u32,
}

const CACHES: [CacheSize; 3] = [
    CacheSize { key: BOOSTER, unit: 4, get: |p| p.device.write_booster().map_or(0, |wb| wb.dynamic_blocks) },
    CacheSize { key: STATIC, unit: 1, get: |p| own_cache(p).map_or(0, |cache| cache.static_blocks) },
    CacheSize { key: "slc_cache.dynamic_mib", unit: 1, get: |p| own_cache(p).map_or(0, |cache| cache.dynamic_blocks) },
];

/// tPROG in a cache whose cells have more bits than one.
fn cache_program(preset: &DevicePreset) -> Option<Ns> {
    Some(preset.device.slc_cache?.cells?.program)
}

/// The cache that the device uses without being asked.
fn own_cache(preset: &DevicePreset) -> Option<SlcCacheConfig> {
    preset.device.slc_cache.filter(|cache| cache.owner != CacheOwner::Host)
}

/// Keys and blocks of the sizes of caches; 0 blocks for those that the device does not have.
pub(super) fn cache_sizes(preset: &DevicePreset) -> [(&'static str, u32); 3] {
    CACHES.map(|cache| (cache.key, (cache.get)(preset)))
}

/// Index of the channel's time for 4 KiB. Map pages cross the same channel: their time goes with it, in proportion.
const CHANNEL: usize = 4;
const MAP_READ: &str = "flash.map_read_us";
const MAP_TRANSFER: &str = "flash.map_transfer_us";

const HOST_DELAY: &str = "host.submit_us+complete_us";
const MAP_CACHE: &str = "map_cache.size_kib";
const ACTIVE_REGIONS: &str = "hpb.max_active_regions";
const HOST_MEMORY: &str = "map_memory.size_mib";
const HOST_LIMIT: &str = "host.max_host_mem_mib";

/// Parameters that are fitted by default.
pub const DEFAULT_PARAMS: [Param; 7] = [
    Param::Time(0),
    Param::MapCache,
    Param::Time(1),
    Param::ActiveRegions,
    Param::Time(2),
    Param::Time(3),
    Param::HostDelay,
];

/// Those of [`DEFAULT_PARAMS`] that a device has: absent functions, and times of 0, are fitted only on request.
pub fn default_params(preset: &DevicePreset) -> Vec<Param> {
    let has_hpb = preset.device.hpb.is_some();
    let needs_hpb =
        |p: &Param| *p == Param::ActiveRegions || matches!(p, Param::Time(i) if TIMES[*i].shows == Shows::Hpb);
    DEFAULT_PARAMS.into_iter().filter(|p| p.value(preset) > 0 && (has_hpb || !needs_hpb(p))).collect()
}

/// What a review of a filled drive tells of a device: those that it has.
pub fn fill_params(preset: &DevicePreset) -> Vec<Param> {
    let keys = ["slc.program_us", "slc_cache.cells.program_us", BOOSTER, "slc_cache.dynamic_mib", "flash.program_us"];
    keys.into_iter().filter_map(Param::of_key).filter(|p| p.value(preset) > 0).collect()
}

/// The device with a cache that ends where the first phase of a review does: a search that begins far from there may
/// not find it. `None` if the rows begin with no faster phase, or the device cannot have such a cache.
pub fn with_cache_of(preset: &DevicePreset, rows: &[Measurement]) -> Option<DevicePreset> {
    let [first, second, ..] = rows else { return None };
    let Access::SequentialWrite(Stretch { of: LongWrite::Fill, parts, part: 0, count }) = first.setting.access else {
        return None;
    };
    let cache = CACHES.iter().find(|cache| cache.key != STATIC && (cache.get)(preset) > 0)?;
    let fixed = own_cache(preset).map_or(0, |cache| cache.static_blocks);
    let cached = first.setting.range_blocks / u32::from(parts) * u32::from(count);
    let unit = cache.unit as u32;
    let mib = cached.checked_sub(fixed)? / MIB_BLOCKS as u32 / unit * unit;
    let size = Override::new(cache.key, &mib.to_string(), "").ok()?;
    preset.with_overrides(&[size]).ok().filter(|_| first.value > second.value)
}

impl Param {
    /// The parameter of a key.
    pub fn of_key(key: &str) -> Option<Param> {
        match key {
            HOST_DELAY | "host.submit_us" | "host.complete_us" => Some(Param::HostDelay),
            MAP_CACHE => Some(Param::MapCache),
            ACTIVE_REGIONS | "lu[0].max_active_regions" => Some(Param::ActiveRegions),
            HOST_MEMORY => Some(Param::HostMemory),
            _ => {
                let cache = CACHES.iter().position(|cache| cache.key == key).map(Param::Cache);
                let choice = CHOICES.iter().position(|choice| choice.key == key).map(Param::Choice);
                cache.or(choice).or_else(|| TIMES.iter().position(|t| t.key == key).map(Param::Time))
            }
        }
    }

    /// All keys that [`Param::of_key`] takes, one for each parameter.
    pub fn keys() -> Vec<&'static str> {
        let caches = CACHES.iter().map(|cache| cache.key);
        let choices = CHOICES.iter().map(|choice| choice.key);
        let times = TIMES.iter().map(|t| t.key);
        times.chain([MAP_CACHE, ACTIVE_REGIONS, HOST_MEMORY, HOST_DELAY]).chain(caches).chain(choices).collect()
    }

    /// Its key.
    pub fn key(self) -> &'static str {
        match self {
            Param::Time(i) => TIMES[i].key,
            Param::HostDelay => HOST_DELAY,
            Param::MapCache => MAP_CACHE,
            Param::ActiveRegions => ACTIVE_REGIONS,
            Param::Cache(i) => CACHES[i].key,
            Param::HostMemory => HOST_MEMORY,
            Param::Choice(i) => CHOICES[i].key,
        }
    }

    /// The keys of a device file that this parameter sets.
    pub(crate) fn file_keys(self) -> Vec<&'static str> {
        match self {
            Param::Time(CHANNEL) => vec!["flash.transfer_4k_us", MAP_TRANSFER],
            Param::HostDelay => vec!["host.submit_us", "host.complete_us"],
            Param::ActiveRegions => vec!["hpb.max_active_regions", "lu[0].max_active_regions"],
            Param::HostMemory => vec![HOST_MEMORY, HOST_LIMIT],
            Param::Time(_) | Param::MapCache | Param::Cache(_) | Param::Choice(_) => vec![self.key()],
        }
    }

    /// Its value in whole units, in the units of its key.
    pub(crate) fn in_unit(self, value: u64) -> f64 {
        match self {
            Param::Time(_) | Param::HostDelay => value as f64 / 1e3,
            _ => value as f64,
        }
    }

    /// A value as text, with its unit.
    pub fn show(self, value: u64) -> String {
        match self {
            Param::Time(_) | Param::HostDelay => format!("{:.3}", self.in_unit(value)),
            Param::Choice(i) => CHOICES[i].word(value),
            _ => value.to_string(),
        }
    }

    /// Whether a measurement of this setting can depend on it.
    pub fn concerns(self, setting: &Setting, preset: &DevicePreset) -> bool {
        let range = setting.range_blocks;
        match self {
            Param::Time(i) => TIMES[i].shows.on(setting, preset),
            Param::Choice(i) => CHOICES[i].shows.on(setting, preset),
            Param::HostDelay => true,
            Param::MapCache => !setting.writes() && range > preset.device.map_page_entries(),
            Param::ActiveRegions => setting.hpb && !setting.writes() && range > region_blocks(preset),
            Param::HostMemory => {
                !setting.writes() && preset.device.host_map().is_some() && range > preset.device.map_page_entries()
            }
            Param::Cache(i) => setting.writes() && caches(preset) && (CACHES[i].get)(preset) > 0,
        }
    }

    /// Its value in a preset.
    pub fn value(self, preset: &DevicePreset) -> u64 {
        match self {
            Param::Time(i) => (TIMES[i].get)(preset).0,
            Param::HostDelay => preset.delays.to_link.0 + preset.delays.from_link.0,
            Param::MapCache => {
                let page = page_kib(preset);
                u64::from(preset.device.map_cache_bytes >> 10) / page * page
            }
            Param::ActiveRegions => u64::from(preset.device.lus[0].max_active_regions),
            Param::Cache(i) => u64::from((CACHES[i].get)(preset)) / MIB_BLOCKS,
            Param::HostMemory => given_mib(preset),
            Param::Choice(i) => (CHOICES[i].get)(preset),
        }
    }

    /// The jobs of a probe that tell most of it; none if a probe does not measure it.
    pub fn jobs(self) -> Option<Jobs> {
        match self {
            Param::Time(i) => match TIMES[i].shows {
                Shows::Always | Shows::Reads | Shows::HostMap | Shows::Planes => Some(Jobs::Reads),
                Shows::Writes | Shows::Cached | Shows::InSlc | Shows::InMoreBits => Some(Jobs::Writes),
                Shows::Hpb => None,
            },
            Param::HostDelay | Param::MapCache | Param::HostMemory => Some(Jobs::Reads),
            Param::ActiveRegions => None,
            Param::Cache(_) => Some(Jobs::Writes),
            Param::Choice(i) => Some(if CHOICES[i].shows == Shows::Cached { Jobs::Fill } else { Jobs::Reads }),
        }
    }

    /// Whether it is one of a few ways to be built, which have no logarithm.
    pub fn is_choice(self) -> bool {
        matches!(self, Param::Choice(_))
    }

    /// Whether it is the static or the dynamic part of a cache of the device itself.
    pub(crate) fn is_part_of_cache(self) -> bool {
        matches!(self, Param::Cache(i) if CACHES[i].key != BOOSTER)
    }

    /// Whether it is a choice whose values are numbers.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Param::Choice(i) if CHOICES[i].words.is_empty())
    }

    /// Whether it is the size of something, counted in pieces, rather than a time.
    pub fn is_size(self) -> bool {
        !matches!(self, Param::Time(_) | Param::HostDelay)
    }

    /// Where a search begins: the preset's value, or where that is 0 and has no logarithm, a small one.
    pub fn start(self, preset: &DevicePreset) -> u64 {
        match self.value(preset) {
            0 if self == Param::HostDelay => 1000,
            0 if self.is_size() => self.bounds(preset).0,
            0 => 100,
            value => value,
        }
    }

    /// Smallest and largest value that is possible and meaningful.
    pub fn bounds(self, preset: &DevicePreset) -> (u64, u64) {
        let unit = &preset.device.lus[0];
        match self {
            Param::Time(CHANNEL) => {
                let (map, block) = map_transfer_ratio(preset);
                (1, (Ns::from_secs(1).0 * block / map).max(1))
            }
            Param::Time(time) => program_bounds(TIMES[time].key, preset).unwrap_or((1, Ns::from_secs(1).0)),
            Param::HostDelay => (1, 2 * Ns::from_secs(1).0),
            Param::Choice(i) => (1, CHOICES[i].most),
            Param::MapCache => {
                let pages = u64::from(unit.blocks.div_ceil(preset.device.map_page_entries()));
                (page_kib(preset), pages * page_kib(preset))
            }
            Param::ActiveRegions => {
                let regions = u64::from(unit.blocks.div_ceil(region_blocks(preset))).min(u64::from(u16::MAX));
                let least = u64::from(unit.pinned_regions) + 1;
                (least, regions.max(least))
            }
            Param::Cache(i) => {
                let (device, unit) = (&preset.device, CACHES[i].unit);
                let all = u64::from(device.data_superblocks());
                let superblocks = if CACHES[i].key == STATIC {
                    let each = u64::from(device.data_slices().max(1));
                    let taken = (device.logical_blocks() + each).div_ceil(each) + u64::from(device.ftl.collect_below);
                    (all + u64::from(device.static_superblocks())).saturating_sub(taken)
                } else {
                    all
                };
                let most = superblocks * u64::from(device.cache_slices());
                (unit, (most / MIB_BLOCKS / unit * unit).max(unit))
            }
            // At least what the device needs, and at most what holds all of the map.
            Param::HostMemory => {
                let least = preset.device.host_map().map_or(0, |map| map.minimum.div_ceil(1 << 20)).max(1);
                let pages = u64::from(unit.blocks.div_ceil(preset.device.map_page_entries()));
                (least, (2 * pages * page_kib(preset)).div_ceil(1024).max(least))
            }
        }
    }

    /// The smallest difference between two values.
    pub fn unit(self, preset: &DevicePreset) -> u64 {
        match self {
            Param::MapCache => page_kib(preset),
            Param::Cache(i) => CACHES[i].unit,
            Param::Time(_) | Param::HostDelay | Param::ActiveRegions | Param::HostMemory | Param::Choice(_) => 1,
        }
    }

    /// The smallest difference that a device can show, in the unit of its key.
    pub(crate) fn grain(self, preset: &DevicePreset) -> f64 {
        match self {
            Param::Cache(_) => f64::from(preset.device.cache_slices()) / MIB_BLOCKS as f64,
            _ => self.in_unit(self.unit(preset)),
        }
    }

    /// Half the width of a difference quotient, as a share of the value: wide enough that whole units do not show.
    pub fn step(self, value: u64, preset: &DevicePreset) -> f64 {
        let (least, units) = match self {
            Param::Time(_) | Param::HostDelay => (0.02, 40.0),
            Param::MapCache => (0.06, 3.0),
            Param::ActiveRegions => (0.03, 3.0),
            // Only whole superblocks count.
            Param::Cache(i) => (0.03, 2.0 * (self.grain(preset) / CACHES[i].unit as f64).max(1.0)),
            Param::HostMemory | Param::Choice(_) => (0.06, 1.0),
        };
        let share = units * self.unit(preset) as f64 / value.max(1) as f64;
        share.max(least).min(0.5)
    }

    /// The nearest value that is possible.
    pub(crate) fn realize(self, value: f64, preset: &DevicePreset) -> u64 {
        let (least, most) = self.bounds(preset);
        let unit = self.unit(preset);
        let units = (value / unit as f64).round();
        let nearest = if units < 0.0 || units.is_nan() { 0 } else { units as u64 };
        nearest.saturating_mul(unit).clamp(least, most)
    }

    /// The overrides that set it in a device.
    pub fn overrides(self, value: u64, preset: &DevicePreset) -> Result<Vec<Override>, ConfigFileError> {
        let set = |key: &str, text: String| Override::new(key, &text, "fit");
        match self {
            Param::Time(CHANNEL) => {
                let (map, block) = map_transfer_ratio(preset);
                let of_map_page = (u128::from(value) * u128::from(map)).div_ceil(u128::from(block)) as u64;
                Ok(vec![set(TIMES[CHANNEL].key, us(value))?, set(MAP_TRANSFER, us(of_map_page))?])
            }
            // A map in SLC mode is read in the time of that mode.
            Param::Time(i) if TIMES[i].key == MAP_READ && preset.device.slc.is_some_and(|slc| slc.holds_map) => {
                Ok(vec![set(MAP_READ, us(value))?, set("slc.read_us", us(value))?])
            }
            Param::Time(i) => Ok(vec![set(TIMES[i].key, us(value))?]),
            Param::HostDelay => {
                let (to, from) = (preset.delays.to_link.0, preset.delays.from_link.0);
                let submit = match to + from {
                    0 => value / 2,
                    sum => (u128::from(value) * u128::from(to) / u128::from(sum)) as u64,
                };
                Ok(vec![set("host.submit_us", us(submit))?, set("host.complete_us", us(value - submit))?])
            }
            Param::MapCache => Ok(vec![set("map_cache.size_kib", value.to_string())?]),
            Param::ActiveRegions => {
                // The device's limit is not below that of any of its units.
                let others = preset.device.lus.iter().skip(1).filter(|lu| lu.hpb).map(|lu| lu.max_active_regions);
                let device = others.map(u64::from).max().unwrap_or(0).max(value);
                Ok(vec![
                    set("hpb.max_active_regions", device.to_string())?,
                    set("lu[0].max_active_regions", value.to_string())?,
                ])
            }
            Param::Cache(i) => Ok(vec![set(CACHES[i].key, value.to_string())?]),
            Param::Choice(i) => Ok(vec![set(CHOICES[i].key, CHOICES[i].word(value))?]),
            // What the host gives, which is all that shows.
            Param::HostMemory => Ok(vec![set(HOST_MEMORY, value.to_string())?, set(HOST_LIMIT, value.to_string())?]),
        }
    }
}

/// Nanoseconds as microseconds, exactly.
pub(super) fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Channel time of a map page to that of 4 KiB, as a fraction.
fn map_transfer_ratio(preset: &DevicePreset) -> (u64, u64) {
    let flash = &preset.device.flash;
    match flash.transfer_block.0 {
        0 => (page_kib(preset) / 4, 1),
        block => (flash.map_transfer.0, block),
    }
}

fn page_kib(preset: &DevicePreset) -> u64 {
    u64::from(preset.device.map_page_bytes >> 10)
}

/// Whether writes go to a cache at first.
fn caches(preset: &DevicePreset) -> bool {
    let boosts = preset.device.write_booster().is_some() && preset.host.write_booster;
    boosts || own_cache(preset).is_some()
}

fn given_mib(preset: &DevicePreset) -> u64 {
    given_host_memory(&preset.device, &preset.host) >> 20
}

/// Blocks of an HPB region; without HPB more than any range has.
pub(super) fn region_blocks(preset: &DevicePreset) -> u32 {
    preset.device.hpb.map_or(u32::MAX, |h| 1 << (h.region_size - 3))
}

/// A device with these values.
///
/// # Errors
/// When they make none.
pub fn device(preset: &DevicePreset, values: &[(Param, u64)]) -> Result<DevicePreset, ConfigFileError> {
    let mut overrides = Vec::new();
    for (param, value) in values {
        overrides.extend(param.overrides(*value, preset)?);
    }
    preset.with_overrides(&overrides)
}

/// Bounds of a program time of a device with cells in SLC mode: one that were many times faster there could program
/// more beside a checkpoint than recovery finds.
fn program_bounds(key: &str, preset: &DevicePreset) -> Option<(u64, u64)> {
    const TIMES_FASTER: u64 = 16;
    let (full, slc) = (preset.device.flash.program.0, preset.device.slc?.program.0);
    let fastest = cache_program(preset).map_or(slc, |more_bits| slc.min(more_bits.0));
    let most = full.div_ceil(fastest).max(TIMES_FASTER);
    match key {
        "flash.program_us" => Some((1, most * fastest)),
        "slc.program_us" | "slc_cache.cells.program_us" => Some((full.div_ceil(most), Ns::from_secs(1).0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Access, LongWrite, Stretch};
    use readpath_config::{device as devices, presets};

    #[test]
    fn a_search_begins_with_the_cache_of_the_review() {
        let load = |name: &str| readpath_config::device::load(name, &|_| Err(std::io::Error::other("none"))).unwrap();
        let rows = |text: &str| super::super::parse(text, "r.csv").unwrap();
        let ex900 = include_str!("../../../../docs/examples/review_ex900_pro.csv");
        let size = |preset: &DevicePreset| cache_sizes(preset).map(|(_, blocks)| u64::from(blocks) / MIB_BLOCKS);
        let found = with_cache_of(&load("nvme-dramless-1t"), &rows(ex900)).expect("a device");
        // 74 of 500 parts of 1000 GB.
        assert_eq!(size(&found), [0, 0, 141_118]);
        let fixed = Override::new("slc_cache.static_mib", "1000", "").unwrap();
        let both = load("nvme-dramless-1t").with_overrides(&[fixed]).unwrap();
        assert_eq!(size(&with_cache_of(&both, &rows(ex900)).expect("a device")), [0, 1000, 140_118]);
        // No cache is as slow as what comes behind it, as large as the drive, or there where nothing is written fast.
        assert!(with_cache_of(&both, &rows(&ex900.replace(",148,2000,", ",148,200,"))).is_none());
        assert!(with_cache_of(&both, &rows(&ex900.replace(",148,", ",590,"))).is_none());
        assert!(with_cache_of(&load("ufs21-64g"), &rows(ex900)).is_none());
        // A buffer of WriteBooster is a multiple of 4 MiB.
        let booster = "drive,phase,capacity_gb,until_gb,throughput_mb_s\nA,cached,256,6,2000\nA,direct,256,100,600\n";
        let found = with_cache_of(&load("ufs31-256g"), &rows(booster)).expect("a device");
        assert_eq!(size(&found)[0] % 4, 0);
        assert!((5700..=5900).contains(&size(&found)[0]), "{:?}", size(&found));
    }

    /// A program time shows in writes of the device whose cache is in that mode, and in no other.
    #[test]
    fn the_program_time_of_a_cache_is_that_of_its_mode() {
        let qlc = presets().iter().find(|builtin| builtin.name == "nvme-qlc-1t").unwrap();
        let in_slc = devices::parse(qlc.text, qlc.file).unwrap();
        let in_tlc = in_slc.with_overrides(&tlc_cells()).unwrap();
        let write = Access::SequentialWrite(Stretch::part(LongWrite::Again, 0, 1));
        let writes = Setting { access: write, range_blocks: 1 << 16, queue_depth: 4, hpb: false, block_count: 256 };
        let reads = Setting { access: Access::RandomRead, ..writes };
        let shows = ["slc.program_us", "slc_cache.cells.program_us"].map(|key| {
            let param = Param::of_key(key).unwrap();
            [(&in_slc, &writes), (&in_tlc, &writes), (&in_tlc, &reads)].map(|(on, of)| param.concerns(of, on))
        });
        assert_eq!(shows, [[true, false, false], [false, true, false]]);
    }

    fn tlc_cells() -> Vec<Override> {
        let cells = ["bits=3", "read_us=40", "program_us=600", "erase_us=3500", "life_erases=3000"];
        cells.map(|cell| Override::from_argument(&format!("slc_cache.cells.{cell}"), "--set").unwrap()).to_vec()
    }

    /// More could be built, but no measurement would show it.
    #[test]
    fn the_largest_cache_of_the_map_holds_all_of_it() {
        for builtin in presets() {
            let preset = devices::parse(builtin.text, builtin.file).unwrap();
            let (least, most) = Param::MapCache.bounds(&preset);
            let covered = |kib: u64| {
                let device = device(&preset, &[(Param::MapCache, kib)]).unwrap().device;
                u64::from(device.map_cache_bytes / device.map_page_bytes) * u64::from(device.map_page_entries())
            };
            let blocks = u64::from(preset.device.lus[0].blocks);
            assert!(covered(most) >= blocks && covered(most - least) < blocks, "{}: {least} to {most}", builtin.name);
        }
    }

    #[test]
    fn every_possible_value_makes_a_device() {
        let parse = |builtin: &readpath_config::Builtin| devices::parse(builtin.text, builtin.file).unwrap();
        let qlc = presets().iter().find(|builtin| builtin.name == "nvme-qlc-1t").unwrap();
        let tlc_cache = parse(qlc).with_overrides(&tlc_cells()).unwrap();
        let with_tlc = std::iter::once((qlc, tlc_cache));
        for (builtin, preset) in presets().iter().map(|builtin| (builtin, parse(builtin))).chain(with_tlc) {
            let in_slc = cache_program(&preset).is_none();
            for key in Param::keys() {
                let param = Param::of_key(key).unwrap();
                assert_eq!(param.key(), key);
                if preset.device.hpb.is_none() && key.contains("hpb.")
                    || (preset.device.slc.is_none() || !in_slc) && key.contains("slc.")
                    || preset.device.write_booster().is_none() && key.contains("write_booster.")
                    || own_cache(&preset).is_none() && key.contains("slc_cache.")
                    || in_slc && key.contains(".cells.")
                    || preset.device.host_map().is_none() && key.contains("map_memory.")
                {
                    continue;
                }
                let (least, most) = param.bounds(&preset);
                for x in [0.0, 1.0, 1e3, 12_345.678, 1e30, f64::INFINITY, f64::NAN] {
                    let value = param.realize(x, &preset);
                    assert!((least..=most).contains(&value));
                    let made = device(&preset, &[(param, value)]);
                    let made = made.unwrap_or_else(|e| panic!("{key} = {value} on {}: {e}", builtin.name));
                    assert_eq!(param.value(&made), value);
                }
                let start = param.start(&preset);
                assert_eq!(param.realize(start as f64, &preset), start, "{key} of {}", builtin.name);
            }
        }
    }
}
