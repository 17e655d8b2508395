// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which measurements identify a device: ranges around what its map cache covers, alone and with many outstanding, long
//! requests, and if asked for, writes. It knows neither fio nor results.

use super::names::{self, MIB, PlanError};
use crate::fit::{self, Access, LongWrite, Setting, Stretch};
use readpath_config::DevicePreset;
use readpath_stack::given_host_memory;
use serde::{Deserialize, Serialize};

/// Name and version of the format of plans.
pub const SCHEMA: &str = "readpath-probe/1";

/// The request for a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// File or disk that is measured, as fio is to name it.
    pub target: String,
    /// How large it is, in bytes.
    pub size_bytes: u64,
    /// Whether it may be written to.
    pub writes: bool,
    /// Seconds that a job of reads is measured for.
    pub seconds: u32,
    /// Standard error of a measurement, in percent, that the fit assumes at least.
    pub error_percent: f64,
    /// Bytes of the long sequential write; without it, what shows the end of the device's WriteBooster buffer.
    pub long_write_bytes: Option<u64>,
    /// Whether the target, which is all of the device, is erased and filled.
    pub fill: bool,
    /// Whether reads of 64 KiB and more are measured at low queue depths too, as language models read experts.
    pub experts: bool,
}

/// A job and its measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Its name in the job file; it follows from the setting.
    pub name: String,
    /// The setting that it measures.
    pub setting: Setting,
    /// Whether the fit does not see it, but predicts it.
    pub held_out: bool,
}

/// Jobs that identify a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// File or disk.
    pub target: String,
    /// Seconds that a job of reads is measured for.
    pub seconds: u32,
    /// Standard error of a measurement in percent, at least.
    pub error_percent: f64,
    /// Blocks that the target has, all written once before.
    pub filled_blocks: u32,
    /// The jobs, in the order in which they are run.
    pub jobs: Vec<Job>,
}

/// A plan in its file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"schema\"")]
struct Kept {
    schema: String,
    target: String,
    seconds: u32,
    error_percent: f64,
    /// A plan without it means as much as its jobs reach.
    #[serde(default)]
    filled_mib: Option<u32>,
    jobs: Vec<KeptJob>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a job with \"name\" and \"held_out\"")]
struct KeptJob {
    name: String,
    held_out: bool,
}

/// Parts of the long write, and of one that fills the device.
const PARTS: u16 = 12;
const FILL_PARTS: u16 = 24;
/// Seconds of a pause in which the device may empty its cache.
const PAUSE_SECONDS: u16 = 30;
/// Writes of a job at random places: 32 MiB.
const RANDOM_WRITES: u32 = 8192;
/// Ranges are multiples of this.
const STEP: u32 = 64 * MIB;
/// The long write where no buffer is known.
const LONG_WRITE: u32 = 4096 * MIB;
const MOST_JOBS: usize = 400;

impl Plan {
    /// The plan for a device like `preset`.
    ///
    /// # Errors
    /// Says what is too small, or cannot be named in a job file.
    pub fn new(preset: &DevicePreset, ask: &Ask) -> Result<Plan, PlanError> {
        names::check_target(&ask.target)?;
        let unit = preset.device.lus[0].blocks;
        let room = u32::try_from(ask.size_bytes / 4096).unwrap_or(u32::MAX).min(unit) / STEP * STEP;
        if room == 0 {
            return Err(PlanError(format!(
                "{}: has {} bytes; the least range that is measured is 64 MiB",
                ask.target, ask.size_bytes
            )));
        }
        let mut jobs = Jobs { preset, room, jobs: Vec::new() };
        jobs.reads();
        if ask.experts {
            jobs.experts();
        }
        if ask.writes {
            jobs.writes(long_write(preset, ask, room)?);
        }
        if ask.fill {
            jobs.fill(ask)?;
        }
        let jobs = jobs.jobs;
        let Ask { target, seconds, error_percent, .. } = ask;
        let (target, seconds, error_percent) = (target.clone(), *seconds, *error_percent);
        Ok(Plan { target, seconds, error_percent, filled_blocks: room, jobs })
    }

    /// The plan with these jobs added.
    pub(super) fn with(&self, settings: impl IntoIterator<Item = Setting>) -> Plan {
        let mut plan = self.clone();
        plan.jobs.extend(settings.into_iter().map(|s| Job { name: names::of(&s), setting: s, held_out: false }));
        plan
    }

    /// Whether a job writes.
    pub fn writes(&self) -> bool {
        self.jobs.iter().any(|job| job.setting.writes())
    }

    /// What its jobs do.
    pub(super) fn kind(&self) -> fit::Jobs {
        let fills = |job: &Job| matches!(job.setting.access, Access::SequentialWrite(s) if s.of == LongWrite::Fill);
        match self.writes() {
            false => fit::Jobs::Reads,
            true if self.jobs.iter().any(fills) => fit::Jobs::Fill,
            true => fit::Jobs::Writes,
        }
    }

    /// Bytes that the jobs reach to.
    pub fn reach_bytes(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.setting.range_blocks) * 4096).max().unwrap_or(0)
    }

    /// Bytes that a target needs so that the map cache of a device like `preset` shows, if the jobs reach less far.
    pub fn needs_bytes(&self, preset: &DevicePreset) -> Option<u64> {
        let enough = 4.0 * covered(preset) * 4096.0;
        (enough > self.reach_bytes() as f64).then_some(enough as u64)
    }

    /// Other jobs that might tell more: of reads, and of writes if this plan has some.
    pub(super) fn candidates(&self, preset: &DevicePreset) -> Vec<Setting> {
        let room = self.jobs.iter().map(|job| job.setting.range_blocks).max().unwrap_or(0);
        let mut jobs = Jobs { preset, room, jobs: Vec::new() };
        for factor in [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0] {
            for depth in [1, 2, 4, 8, 16, jobs.most()] {
                jobs.read(factor, depth, 1, false);
            }
        }
        for blocks in [2, 4, 8, 32, 128] {
            for depth in [1, 2, 4, jobs.most()] {
                jobs.read(0.25, depth, blocks, false);
            }
        }
        if self.writes() {
            for depth in [1, 2, 8] {
                jobs.random_writes(depth, false);
                jobs.sequential(jobs.short(), 1, depth, 1, false);
                jobs.sequential(jobs.short(), 1, depth, 32, false);
            }
        }
        let known = |setting: &Setting| self.jobs.iter().any(|job| job.setting == *setting);
        jobs.jobs.into_iter().map(|job| job.setting).filter(|s| !known(s)).collect()
    }

    /// The plan as text.
    pub fn to_json(&self) -> String {
        let kept = Kept {
            schema: SCHEMA.to_owned(),
            target: self.target.clone(),
            seconds: self.seconds,
            error_percent: self.error_percent,
            filled_mib: Some(self.filled_blocks / MIB),
            jobs: self.jobs.iter().map(|j| KeptJob { name: j.name.clone(), held_out: j.held_out }).collect(),
        };
        serde_json::to_string_pretty(&kept).expect("strings and finite numbers") + "\n"
    }

    /// A plan from text; `file` is for errors.
    ///
    /// # Errors
    /// The first thing that is no plan, with its place.
    pub fn from_json(text: &str, file: &str) -> Result<Plan, PlanError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let no_plan = |e| {
            let written = "expected the plan.json that 'readpath device probe plan' writes";
            PlanError(format!("{file}: is no plan of a probe: {e}; {written}"))
        };
        let kept: Kept = serde_json::from_str(text).map_err(no_plan)?;
        let wrong = |message: String| Err(PlanError(format!("{file}: {message}")));
        if kept.schema != SCHEMA {
            return wrong(format!("schema is {:?}; expected {SCHEMA:?}", kept.schema));
        }
        names::check_target(&kept.target).map_err(|e| PlanError(format!("{file}: target: {e}")))?;
        if !(1..=86_400).contains(&kept.seconds) {
            return wrong(format!("seconds is {}; expected 1 to 86400", kept.seconds));
        }
        if !(0.01..=50.0).contains(&kept.error_percent) {
            return wrong(format!("error_percent is {}; expected 0.01 to 50", kept.error_percent));
        }
        if kept.jobs.len() > MOST_JOBS {
            return wrong(format!("has {} jobs; at most {MOST_JOBS} are possible", kept.jobs.len()));
        }
        let mut jobs: Vec<Job> = Vec::new();
        for (i, job) in kept.jobs.iter().enumerate() {
            let Some(setting) = names::setting(&job.name) else {
                return wrong(format!("jobs[{i}].name is {:?}; expected a name such as randread-256m-q1-4k", job.name));
            };
            if jobs.iter().any(|j| j.name == job.name) {
                return wrong(format!("jobs[{i}].name is {:?}, like that of another job", job.name));
            }
            jobs.push(Job { name: job.name.clone(), setting, held_out: job.held_out });
        }
        let Kept { target, seconds, error_percent, filled_mib, .. } = kept;
        let reach = jobs.iter().map(|job| job.setting.range_blocks).max().unwrap_or(0);
        let Some(filled_blocks) = filled_mib.map_or(Some(reach), |mib| mib.checked_mul(MIB)) else {
            return wrong(format!("filled_mib is {}; expected {} at most", filled_mib.unwrap_or(0), u32::MAX / MIB));
        };
        Ok(Plan { target, seconds, error_percent, filled_blocks, jobs })
    }

    /// Checks that the device can be measured so.
    ///
    /// # Errors
    /// The first job that is not possible; `file` is the plan's.
    pub fn check(&self, preset: &DevicePreset, file: &str) -> Result<(), PlanError> {
        let (filled, unit) = (self.filled_blocks / MIB, preset.device.lus[0].blocks / MIB);
        if filled > unit {
            let name = &preset.name;
            let message = format!("filled_mib is {filled}, but the logical unit of '{name}' has {unit}");
            return Err(PlanError(format!("{file}: {message}")));
        }
        for (i, job) in self.jobs.iter().enumerate() {
            let wrong = |message| PlanError(format!("{file}: jobs[{i}], {}: {message}", job.name));
            job.setting.check(preset).map_err(wrong)?;
        }
        Ok(())
    }
}

/// Blocks that the map cache covers.
fn covered(preset: &DevicePreset) -> f64 {
    let device = &preset.device;
    f64::from(device.map_cache_bytes / device.map_page_bytes) * f64::from(device.map_page_entries())
}

/// Blocks that the device writes in SLC mode at most before it must go on otherwise; 0 without a cache.
fn cached_writes(preset: &DevicePreset) -> u64 {
    preset.device.slc_cache.map_or(0, |cache| u64::from(cache.static_blocks) + u64::from(cache.dynamic_blocks))
}

/// A long write has parts of whole requests.
const LONG_UNIT: u64 = PARTS as u64 * 4 * MIB as u64;

fn long_write(preset: &DevicePreset, ask: &Ask, room: u32) -> Result<u32, PlanError> {
    // Half as much again as the cache, so that what is behind its end shows as well.
    let cache = cached_writes(preset);
    let usual = if cache > 0 { cache * 3 / 2 } else { u64::from(LONG_WRITE) };
    let unit = LONG_UNIT;
    let mib = |blocks: u64| blocks / u64::from(MIB);
    let most = mib(u64::from(room) / unit * unit);
    if let Some(bytes) = ask.long_write_bytes.filter(|bytes| bytes / 4096 < unit) {
        return Err(PlanError(format!(
            "a long write of {bytes} bytes has not {PARTS} parts; expected {} MiB at least, and {most} at most",
            mib(unit)
        )));
    }
    let wanted = ask.long_write_bytes.map_or(usual, |bytes| bytes / 4096);
    let blocks = wanted.div_ceil(unit) * unit;
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= room => Ok(blocks),
        _ => Err(PlanError(format!(
            "{}: the long write needs {} MiB, but {} can be used; make the target larger or the write shorter \
             ({most} MiB at most)",
            ask.target,
            mib(blocks),
            room / MIB
        ))),
    }
}

/// A plan in the making.
struct Jobs<'a> {
    preset: &'a DevicePreset,
    /// Blocks that can be used.
    room: u32,
    jobs: Vec<Job>,
}

impl Jobs<'_> {
    fn add(&mut self, setting: Setting, held_out: bool) {
        if setting.block_count <= self.preset.host.max_transfer_blocks
            && setting.queue_depth <= self.most()
            && setting.range_blocks >= u32::from(setting.block_count)
            && self.jobs.iter().all(|job| job.setting != setting)
        {
            self.jobs.push(Job { name: names::of(&setting), setting, held_out });
        }
    }

    /// Requests that may be outstanding.
    fn most(&self) -> u32 {
        self.preset.device.queue_depth.min(u32::from(self.preset.host.slots) - 1)
    }

    /// `factor` times the range that the map cache covers, limited by the room on the device.
    fn range(&self, factor: f64) -> u32 {
        self.steps(covered(self.preset) * factor)
    }

    fn steps(&self, blocks: f64) -> u32 {
        (blocks / f64::from(STEP)).round().clamp(1.0, f64::from(self.room / STEP)) as u32 * STEP
    }

    /// A range that any map cache covers.
    fn short(&self) -> u32 {
        self.room.min(256 * MIB)
    }

    fn read(&mut self, factor: f64, queue_depth: u32, block_count: u16, held_out: bool) {
        self.read_range(self.range(factor), queue_depth, block_count, held_out);
    }

    fn read_range(&mut self, range_blocks: u32, queue_depth: u32, block_count: u16, held_out: bool) {
        let setting = Setting { access: Access::RandomRead, range_blocks, queue_depth, hpb: false, block_count };
        self.add(setting, held_out);
    }

    /// Ranges show the map and its cache, queue depths show waiting and parallel units, and long requests show channels
    /// and link.
    fn reads(&mut self) {
        let most = self.most();
        for (depth, held_out) in [(1, false), (2, true), (4, false), (8, false), (16, true), (most, false)] {
            self.read(0.25, depth, 1, held_out);
        }
        self.read(0.75, most, 1, true);
        for (depth, held_out) in [(1, false), (4, true), (most, false)] {
            self.read(1.5, depth, 1, held_out);
        }
        self.read(2.5, most, 1, false);
        self.read(4.0, 1, 1, false);
        self.read(4.0, most, 1, false);
        self.read(8.0, 1, 1, true);
        self.read(8.0, most, 1, false);
        for depth in [1, 4, most] {
            self.read(0.25, depth, 4, false);
        }
        self.read(0.25, 1, 8, false);
        self.read(0.25, 1, 32, false);
        self.read(0.25, 4, 32, true);
        self.read(0.25, most, 32, false);
        self.read(0.25, 1, 128, false);
        self.read(0.25, most, 128, true);
        // What SRAM and host memory cover together.
        let device = &self.preset.device;
        let given = given_host_memory(device, &self.preset.host) / u64::from(device.map_page_bytes);
        if given > 0 {
            let all = covered(self.preset) + given as f64 * f64::from(device.map_page_entries());
            for (factor, depth, held_out) in [
                (0.5, 1, true),
                (0.5, most, false),
                (0.85, most, false),
                (1.25, 1, false),
                (1.25, most, true),
                (1.6, most, false),
                (2.5, 1, false),
                (2.5, most, false),
            ] {
                self.read_range(self.steps(all * factor), depth, 1, held_out);
            }
        }
    }

    /// Which read size and queue depth weights of experts need, over all of the target; the fit predicts these jobs.
    fn experts(&mut self) {
        for blocks in [16, 32, 64, 128, 256, 512] {
            for queue_depth in [1, 2, 4, 8, 16] {
                let (access, range_blocks) = (Access::RandomRead, self.room);
                self.add(Setting { access, range_blocks, queue_depth, hpb: false, block_count: blocks }, true);
            }
        }
    }

    fn random_writes(&mut self, queue_depth: u32, held_out: bool) {
        let access = Access::RandomWrites(RANDOM_WRITES);
        let range_blocks = self.short();
        self.add(Setting { access, range_blocks, queue_depth, hpb: false, block_count: 1 }, held_out);
    }

    fn sequential(&mut self, range_blocks: u32, parts: u16, queue_depth: u32, block_count: u16, held_out: bool) {
        for part in 0..parts {
            let access = Access::SequentialWrite(Stretch::part(LongWrite::Again, part, parts));
            self.add(Setting { access, range_blocks, queue_depth, hpb: false, block_count }, held_out);
        }
    }

    /// A long write in requests as long as possible, of which every fourth part is held out.
    fn long(&mut self, of: LongWrite, range_blocks: u32, parts: u16) {
        let block_count = self.preset.host.max_transfer_blocks.min(128);
        let queue_depth = 8.min(self.most());
        for part in 0..parts {
            let access = Access::SequentialWrite(Stretch::part(of, part, parts));
            self.add(Setting { access, range_blocks, queue_depth, hpb: false, block_count }, part % 4 == 2);
        }
    }

    /// From the first to the last block: where the cache ends, direct writes, and where data must be folded.
    fn fill(&mut self, ask: &Ask) -> Result<(), PlanError> {
        let (unit, name) = (self.preset.device.lus[0].blocks, &self.preset.name);
        if self.room < unit / STEP * STEP {
            return Err(PlanError(format!(
                "{}: to fill a device needs all of it: {} MiB can be used, but '{name}' has {}; change the device \
                 (lu[0].blocks) or the target",
                ask.target,
                self.room / MIB,
                unit / MIB
            )));
        }
        let parts = 4 * MIB * u32::from(FILL_PARTS);
        self.long(LongWrite::Fill, self.room.max(parts) / parts * parts, FILL_PARTS);
        Ok(())
    }

    /// The long write shows where a buffer ends and both speeds. No part of it is held out: the end may be in any.
    fn writes(&mut self, long: u32) {
        let longest = self.preset.host.max_transfer_blocks.min(128);
        self.sequential(long, PARTS, 8.min(self.most()), longest, false);
        for (depth, held_out) in [(1, false), (4, true), (self.most(), false)] {
            self.random_writes(depth, held_out);
        }
        for (depth, held_out) in [(1, false), (4, true)] {
            self.sequential(self.short(), 1, depth, longest.min(32), held_out);
        }
        // Twice more than the cache holds, with a pause between: what the device empties when it is idle.
        let twice = (cached_writes(self.preset) * 5 / 2).div_ceil(LONG_UNIT) * LONG_UNIT;
        let own = self.preset.device.slc_cache.is_some() && self.preset.device.write_booster().is_none();
        if own && twice <= u64::from(self.room) {
            self.long(LongWrite::Pause(PAUSE_SECONDS), twice as u32, PARTS);
        }
    }
}
