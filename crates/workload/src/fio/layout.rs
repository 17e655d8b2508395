// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of jobs to a workload: where files lie on the logical units, which part of them a job uses, clones, phases
//! and reporting groups. Knows no option as text.

use std::collections::{BTreeMap, BTreeSet};

use readpath_kit::{BLOCK_BYTES, Prng};

use super::job::{JobSection, Jobs};
use super::lexer::At;
use super::notes::Notes;
use super::settings::{Set, Settings};
use super::value::Amount;
use super::{Context, JobError, zoned};
use crate::{
    Ends, FileExtent, FioReport, Flow, Job, Kinds, Limits, Offsets, Phase, ReadBack, Sizes, Stream, StreamSpec, Think,
    Workload, Zbd,
};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Sections of one job file that need Zipf or zone tables.
const MAX_TABLES: usize = 1024;

/// A file, while the jobs are searched for files.
struct File {
    name: String,
    /// Known length in bytes; 0 when no job says it.
    bytes: u64,
    /// Place of the option that set its length, or of its first job.
    at: At,
    key: Option<&'static str>,
    device: bool,
    /// Whether it takes all that is left of the device when no job says how long it is.
    fills: bool,
    /// What offsets in percent are shares of.
    whole: u64,
    lun: u8,
    start: u32,
}

impl File {
    fn error(&self, message: String) -> JobError {
        JobError { key: self.key.map(Into::into), ..self.at.error(message) }
    }
}

/// The part of a file that a job uses and how much it moves.
struct Region {
    start: u32,
    blocks: u32,
    limit: Option<u64>,
    /// Blocks of one pass.
    pass: u64,
    /// A note that it was rounded to whole zones, if it was.
    whole_zones: Option<String>,
}

/// The reporting groups of a job file, as fio makes them: its statistics begin a new entry at every job, except that a
/// job under `group_reporting` joins the entry before it when both are of one group.
#[derive(Default)]
struct Groups {
    names: Vec<String>,
    groupid: u32,
}

impl Groups {
    /// The groups of a section's clones. fio makes the first clone first and then the others from the last down.
    fn of_section(&mut self, section: &JobSection, names: &[String]) -> Vec<usize> {
        let s = &section.settings;
        let mut joined = s.group_reporting && !self.names.is_empty();
        if (s.stonewall || s.new_group) && !self.names.is_empty() {
            self.groupid += 1;
            joined = false;
        }
        let mut of_clone = vec![0; names.len()];
        for clone in std::iter::once(0).chain((1..names.len()).rev()) {
            if !joined {
                self.names.push(if s.group_reporting { section.name().to_string() } else { names[clone].clone() });
                joined = s.group_reporting;
            }
            of_clone[clone] = self.names.len() - 1;
        }
        of_clone
    }
}

pub(super) fn build(main: &str, jobs: Jobs, mut notes: Notes, cx: &Context) -> Result<Workload, JobError> {
    let Jobs { sections, global } = jobs;
    let (files, of_job) = files(&sections, cx)?;
    let mut phases: Vec<Phase> = Vec::new();
    let mut groups = Groups::default();
    let mut names = BTreeSet::new();
    let (mut thread, mut tables) = (0u64, 0usize);
    let mut most_open = vec![None; cx.unit_blocks.len()];
    let mut titles: Vec<&str> = Vec::new();
    for (section, file_of) in sections.iter().zip(of_job) {
        let s = &section.settings;
        let waits = waits(section, &sections, &titles)?;
        if phases.is_empty() || s.stonewall || waits {
            if phases.last().is_some_and(|phase| phase.jobs.iter().any(|job| job.ends == Ends::Everything)) {
                notes.add("exit_what", &section.at, || "exit_what=all: this job and those after it never run".into());
                break;
            }
            name_phase(&mut phases, &mut titles);
            phases.push(Phase { name: String::new(), jobs: Vec::new() });
            names.clear();
        }
        titles.push(section.name());
        let clones = 0..u64::from(s.numjobs);
        let called: Vec<String> =
            clones.map(|clone| unique(&mut names, section.name(), (s.numjobs > 1).then_some(clone))).collect();
        let group_of = groups.of_section(section, &called);
        let rate_bytes = s.rates()?.map(|r| (r > 0).then_some(r));
        let mut pattern: Option<(StreamSpec, Stream)> = None;
        for (clone, (name, &file)) in called.into_iter().zip(&file_of).enumerate() {
            let of = &files[file];
            let zones = cx.zones.get(usize::from(of.lun)).copied().flatten();
            let zones = zoned::look(section, (of.lun, zones), of.device)?;
            let region = region(section, of, clone as u64, zones.as_ref())?;
            if let Some(whole) = &region.whole_zones {
                notes.add("zones", &section.at, || whole.clone());
            }
            let zbd = zones.map(|zones| zones.zbd(region.start, region.blocks));
            same_limit(section, zbd.as_ref(), &mut most_open[usize::from(of.lun)])?;
            let seed = Prng::stream(s.randseed.unwrap_or(cx.seed), "fio job", thread).next_u64();
            thread += 1;
            let spec = spec(s, &region)?;
            // Clones that differ only in their place share tables.
            let stream = match &pattern {
                Some((old, stream)) if same_but_place(old, &spec) => stream.sibling(spec.start_block, seed),
                _ => {
                    let skewed = |o: &Offsets| matches!(o, Offsets::Zipf(_) | Offsets::Zoned(_));
                    tables += usize::from(spec.offsets.iter().any(skewed));
                    if tables > MAX_TABLES {
                        let message = format!("more than {MAX_TABLES} jobs with tables for random_distribution");
                        return Err(section.at.error(message));
                    }
                    Stream::new(&spec, seed)
                }
            };
            let stream = stream.map_err(|e| section.at.error(format!("job {}: {e}", section.name())))?;
            if pattern.is_none() {
                pattern = Some((spec.clone(), stream.clone()));
            }
            // In fio only the first clone has the name that `name` gives.
            let fio = FioReport {
                jobname: if clone == 0 { section.name().clone() } else { section.heading.clone() },
                groupid: groups.groupid,
                iodepth: s.iodepth.value,
                description: s.description.clone(),
                percentiles: s.percentiles.clone(),
                latencies: s.latencies,
                options: section.echo.clone(),
            };
            let poisson = s.poisson.then_some(seed);
            let job = Job {
                lun: files[file].lun,
                rate_bytes,
                poisson,
                zbd,
                fio,
                ..job(s, name, group_of[clone], &spec, stream)
            };
            let Some(phase) = phases.last_mut() else { unreachable!() };
            phase.jobs.push(job);
        }
    }
    name_phase(&mut phases, &mut titles);
    let placed = |f: File| FileExtent { name: f.name, lun: f.lun, block: f.start, blocks: (f.bytes / BLOCK) as u32 };
    Ok(Workload {
        name: main.to_owned(),
        phases,
        groups: groups.names,
        global_options: global,
        files: files.into_iter().map(placed).collect(),
        notes: notes.list,
        ..Workload::default()
    })
}

/// Names the last phase after its sections.
fn name_phase(phases: &mut [Phase], titles: &mut Vec<&str>) {
    if let (Some(phase), Some(first)) = (phases.last_mut(), titles.first()) {
        phase.name = match titles.len() {
            1 => (*first).to_owned(),
            n => format!("{first} and {} more", n - 1),
        };
    }
    titles.clear();
}

/// A name that the phase does not have yet.
fn unique(names: &mut BTreeSet<String>, base: &str, clone: Option<u64>) -> String {
    let wanted = clone.map_or_else(|| base.to_owned(), |n| format!("{base}.{n}"));
    // Thousands of sections of one name are allowed; their place in the phase makes names unique at once.
    let name = if names.contains(&wanted) { format!("{wanted} #{}", names.len() + 1) } else { wanted };
    names.insert(name.clone());
    name
}

fn job(s: &Settings, name: String, group: usize, spec: &StreamSpec, stream: Stream) -> Job {
    // If a flush or what is read back ends the stream, the stream itself says when it is over.
    let ends_itself = spec.end_flush || spec.read_back.is_some();
    let bytes = spec.limit_blocks.filter(|_| !ends_itself).map(|n| n.saturating_mul(BLOCK));
    Job {
        name,
        group,
        lun: 0,
        iodepth: if s.engine().1 { s.iodepth.value } else { 1 },
        // fio adds the ramp to the run time.
        limits: Limits { bytes, ios: s.number_ios.as_ref().map(|n| n.value), runtime: s.runtime.map(|t| t + s.ramp) },
        ramp: s.ramp,
        start_delay: s.start_delay,
        think: Think { time: s.think_time, every: s.think_every },
        rate_bytes: [None; 3],
        poisson: None,
        flow: (s.flow > 0).then_some(Flow { id: s.flow_id, weight: s.flow, sleep: s.flow_sleep }),
        ends: if s.exitall { s.exit_what } else { Ends::Itself },
        zbd: None,
        fio: FioReport::default(),
        stream,
    }
}

fn spec(s: &Settings, region: &Region) -> Result<StreamSpec, JobError> {
    let writes = if s.verify_backlog > 0 { s.verify_backlog } else { u64::MAX };
    Ok(StreamSpec {
        start_block: region.start,
        blocks: region.blocks,
        kinds: s.kinds(),
        sizes: s.lengths(),
        offsets: s.offsets(),
        random_percent: s.random_percent(),
        run: s.pattern.run,
        skip_blocks: s.pattern.skip_blocks,
        stride: s.stride()?,
        read_back: s.reads_back().then_some(ReadBack { blocks: region.pass, writes }),
        flush_every: s.flush_every,
        fua: s.fua,
        limit_blocks: region.limit,
        end_flush: s.end_flush,
    })
}

/// Whether a job waits for all jobs of the phase so far, whose sections are `running`.
fn waits(section: &JobSection, all: &[JobSection], running: &[&str]) -> Result<bool, JobError> {
    let Some(wait_for) = &section.settings.wait_for else { return Ok(false) };
    let name = &*wait_for.value;
    let wrong = |message: String| Err(wait_for.error(format!("wait_for: {message}")));
    if !all.iter().take_while(|other| !std::ptr::eq(*other, section)).any(|other| **other.name() == *name) {
        return wrong(format!("no job before this one is called \"{name}\""));
    }
    match (running.contains(&name), running.iter().find(|other| **other != name)) {
        (true, Some(other)) => {
            wrong(format!("waiting for \"{name}\" while \"{other}\" runs is not modelled; stonewall waits for both"))
        }
        (waits, _) => Ok(waits),
    }
}

fn same_but_place(a: &StreamSpec, b: &StreamSpec) -> bool {
    // Everything else comes from the section.
    a.blocks == b.blocks && a.limit_blocks == b.limit_blocks
}

/// Refuses another limit on open zones than that of another job of the same unit, as fio does.
fn same_limit(section: &JobSection, zbd: Option<&Zbd>, unit: &mut Option<u32>) -> Result<(), JobError> {
    let Some(most) = zbd.filter(|zbd| zbd.writes).map(|zbd| zbd.most_open) else { return Ok(()) };
    match unit.replace(most).filter(|other| *other != most) {
        None => Ok(()),
        Some(other) => Err(section.at.error(format!(
            "max_open_zones is {most} here and {other} in another job of the same unit; give all the same"
        ))),
    }
}

/// The name that `filename_format` gives to the only file of a clone.
fn formatted(format: &str, job: &str, clone: u64) -> String {
    format.replace("$jobname", job).replace("$jobnum", &clone.to_string()).replace("$filenum", "0")
}

/// Offset of a clone in bytes; shares are of a file of `bytes`, and as in fio round up to the shortest request. `None`
/// if it does not fit into 64 bits.
fn offset(s: &Settings, clone: u64, bytes: u64) -> Option<u64> {
    let mut unit = 1;
    let mut of = |amount: &Option<Set<Amount>>| match amount.as_ref().map(|a| a.value) {
        None => 0,
        Some(Amount::Bytes(b)) => b,
        Some(Amount::Percent(p)) => {
            unit = smallest(s);
            (u128::from(bytes) * u128::from(p) / 100) as u64
        }
    };
    let (first, each) = (of(&s.offset), of(&s.offset_increment));
    first.checked_add(each.checked_mul(clone)?)?.checked_next_multiple_of(unit)
}

/// The length that a job gives its file, without an offset: `filesize`, or what is moved.
fn own_bytes(s: &Settings) -> Option<u64> {
    match (&s.filesize, s.size.as_ref().map(|size| size.value)) {
        (Some(size), _) => Some(size.value),
        (None, Some(Amount::Bytes(bytes))) => Some(bytes),
        (None, _) => None,
    }
}

/// Files in the order of their first job, placed one after another, and the file of every job and clone.
fn files(jobs: &[JobSection], cx: &Context) -> Result<(Vec<File>, Vec<Vec<usize>>), JobError> {
    let mut files: Vec<File> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut of_job = Vec::with_capacity(jobs.len());
    for section in jobs {
        let s = &section.settings;
        let mut mine = Vec::with_capacity(s.numjobs as usize);
        for clone in 0..u64::from(s.numjobs) {
            let name = match (&s.filename, &s.filename_format) {
                (Some(name), _) => name.value.to_string(),
                (None, Some(format)) => formatted(format, &section.heading, clone),
                (None, None) => format!("{}.{clone}.0", section.heading),
            };
            let device = name.starts_with("/dev/");
            let name = match &s.directory {
                Some(dir) if !device => format!("{dir}/{name}"),
                _ => name,
            };
            let number = match index.get(&name) {
                Some(&number) => number,
                None => {
                    let (at, key) =
                        s.filename.as_ref().map_or((section.at.clone(), None), |f| (f.at.clone(), Some(f.key)));
                    index.insert(name.clone(), files.len());
                    let mut file = File { name, bytes: 0, at, key, device, fills: false, whole: 0, lun: 0, start: 0 };
                    if device {
                        let other = files.iter().find(|f| f.device);
                        file.lun = unit_of(&file.name, other, cx.unit_blocks).map_err(|message| file.error(message))?;
                        file.bytes = u64::from(cx.unit_blocks[usize::from(file.lun)]) * BLOCK;
                    }
                    files.push(file);
                    files.len() - 1
                }
            };
            mine.push(number);
            let file = &mut files[number];
            file.fills |= s.fill;
            if device {
                file.whole = file.bytes;
                continue;
            }
            file.whole = file.whole.max(own_bytes(s).unwrap_or(0));
            let (bytes, at, key) = match (&s.filesize, &s.size) {
                (Some(f), _) => (Some(f.value), &f.at, f.key),
                (None, Some(Set { value: Amount::Bytes(b), at, key })) => {
                    (offset(s, clone, *b).and_then(|o| o.checked_add(*b)), at, *key)
                }
                _ => continue,
            };
            let Some(bytes) = bytes else {
                return Err(at.error(format!("{key}: offset and size are too large together")));
            };
            let bytes = bytes / BLOCK * BLOCK;
            if bytes > file.bytes {
                (file.bytes, file.at, file.key) = (bytes, at.clone(), Some(key));
            }
        }
        of_job.push(mine);
    }
    let mut next = 0u64;
    let room = u64::from(cx.unit_blocks[0]);
    let known = files.iter().filter(|f| !f.device).fold(0u64, |sum, f| sum.saturating_add(f.bytes / BLOCK));
    for file in files.iter_mut().filter(|f| !f.device) {
        if file.bytes == 0 && file.fills {
            file.bytes = room.saturating_sub(known) * BLOCK;
            file.whole = file.bytes;
        }
        if file.bytes == 0 {
            return Err(file.error(format!(
                "no job says how long the file \"{}\" is; give size or filesize, at least {BLOCK} bytes",
                file.name
            )));
        }
        let blocks = file.bytes / BLOCK;
        if blocks > room - next {
            return Err(file.error(format!(
                "the file \"{}\" needs {blocks} blocks of 4 KiB ({} GiB), but only {} of the device's {room} ({} GiB) \
                 are left; give a smaller size, or a larger device",
                file.name,
                gib(blocks),
                room - next,
                gib(room)
            )));
        }
        file.start = next as u32;
        next += blocks;
    }
    Ok((files, of_job))
}

/// The logical unit that a name below `/dev/` means: the SCSI disks of a host are called `sda`, `sdb`, … in the order
/// of their units. On a device with one unit every name means that unit, but a second name is an error.
fn unit_of(name: &str, other: Option<&File>, unit_blocks: &[u32]) -> Result<u8, String> {
    let disks = || (0u8..).zip('a'..='z').zip(unit_blocks).map(|((lun, letter), _)| (lun, format!("/dev/sd{letter}")));
    if unit_blocks.len() == 1 {
        return other.map_or(Ok(0), |other| {
            let has = "the device has one logical unit, and a second disk would be the same blocks";
            Err(format!(
                "\"{}\" and \"{name}\": {has}; name one disk, or give the device a unit more ([[lu]])",
                other.name
            ))
        });
    }
    disks().find(|(_, disk)| disk == name).map(|(lun, _)| lun).ok_or_else(|| {
        let known: Vec<String> = disks().map(|(_, disk)| disk).collect();
        format!("\"{name}\" is none of the device's {} logical units; name one of {}", known.len(), known.join(", "))
    })
}

/// GiB in this many blocks, to read.
fn gib(blocks: u64) -> String {
    format!("{:.2}", blocks as f64 / f64::from(1 << 18))
}

/// `percent` of `bytes`, whole blocks.
fn share(bytes: u64, percent: u64) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64 / BLOCK * BLOCK
}

fn region(section: &JobSection, file: &File, clone: u64, zones: Option<&zoned::OnZones>) -> Result<Region, JobError> {
    let s = &section.settings;
    let at_offset = |message: String| match (&s.offset, &s.offset_increment) {
        (Some(o), _) => o.error(format!("offset: {message}")),
        (None, Some(i)) => i.error(format!("offset_increment: {message}")),
        (None, None) => section.at.error(message),
    };
    let offset = offset(s, clone, file.whole).filter(|&o| o < file.bytes).ok_or_else(|| {
        at_offset(format!("lies beyond the end of the file \"{}\" of {} bytes", file.name, file.bytes))
    })?;
    if !offset.is_multiple_of(BLOCK) {
        return Err(at_offset(format!("{offset} bytes is not a multiple of {BLOCK}")));
    }
    let rest = file.bytes - offset;
    // With filesize, a size in bytes only says how much is moved; else it is the region.
    let whole = s.filesize.as_ref().map(|f| {
        let end = if file.device { file.bytes } else { f.value / BLOCK * BLOCK };
        end.saturating_sub(offset)
    });
    let region = match (whole, s.size.as_ref().map(|v| v.value)) {
        (_, Some(Amount::Percent(p))) => share(file.bytes, p).min(rest),
        (Some(whole), _) => whole,
        // As in fio, zones go on to the end of the file.
        (None, Some(Amount::Bytes(_))) if s.strided => rest,
        (None, Some(Amount::Bytes(b))) => b / BLOCK * BLOCK,
        (None, None) => rest,
    };
    let at_size = |message: String| match (&s.size, &s.filesize) {
        (Some(size), _) => size.error(format!("size: {message}")),
        (None, Some(size)) => size.error(format!("filesize: {message}")),
        (None, None) => section.at.error(message),
    };
    if region > rest {
        return Err(at_size(format!(
            "{region} bytes ({} GiB) from offset {offset} on end beyond \"{}\", which has {} blocks of 4 KiB ({} GiB)",
            gib(region / BLOCK),
            file.name,
            file.bytes / BLOCK,
            gib(file.bytes / BLOCK)
        )));
    }
    let unit = smallest(s);
    if region < unit {
        return Err(at_size(format!("{region} bytes are less than one request of {unit}")));
    }
    // Both fit: the file lies within the device.
    let (from, to, moved) = zones.map_or(Ok((offset, region, region)), |zones| zones.whole(offset, region))?;
    let (start, blocks) = (file.start + (from / BLOCK) as u32, (to / BLOCK) as u32);
    let whole_zones = ((from, to) != (offset, region)).then(|| {
        format!("{region} bytes from {offset} on were rounded to whole zones, {to} bytes from {from} on, as in fio")
    });
    let pass_blocks = pass(s, moved, unit).div_ceil(BLOCK);
    Ok(Region { start, blocks, limit: limit(s, moved, unit)?, pass: pass_blocks, whole_zones })
}

/// Blocks after which a job ends. Like fio it goes over its part of the file `loops` times, and on until `io_size` is
/// reached, but never beyond `loops` times that.
fn limit(s: &Settings, region: u64, unit: u64) -> Result<Option<u64>, JobError> {
    if s.by_time() {
        return Ok(None);
    }
    let large = || s.loops.error("loops: the bytes to move do not fit into 64 bits");
    // A trimmed and written place counts twice, as in fio.
    let twice = if s.kinds() == Kinds::TrimWrite { 2 } else { 1 };
    let pass = pass(s, region, unit).checked_mul(twice).ok_or_else(large)?;
    let io_size = match s.io_size.as_ref().map(|v| v.value) {
        Some(Amount::Bytes(b)) => Some(b),
        Some(Amount::Percent(p)) => Some(share(region, p).max(BLOCK)),
        None => None,
    };
    let loops = s.loops.value;
    if let Some(set) = s.io_size.as_ref().filter(|_| s.reads_back() && io_size.is_some_and(|io_size| io_size > pass)) {
        return Err(set.error("io_size: more than size is not modelled with verify; use loops"));
    }
    let bytes = match io_size {
        None => pass.checked_mul(loops),
        Some(io_size) => {
            // fio begins no further pass for less than one request.
            let passes = io_size.checked_sub(longest(s)).map_or(1, |rest| rest / pass + 1).max(loops);
            let most = io_size.checked_mul(loops);
            pass.checked_mul(passes).map_or(most, |bytes| Some(most.map_or(bytes, |most| bytes.min(most))))
        }
    };
    // The result must also fit in bytes when it is rounded up to blocks.
    let blocks = bytes.map(|b| b.div_ceil(BLOCK).max(1)).filter(|b| b.checked_mul(BLOCK).is_some());
    blocks.map(Some).ok_or_else(large)
}

/// Bytes that one pass over the job's part of the file moves; at least one request.
fn pass(s: &Settings, region: u64, unit: u64) -> u64 {
    let lengths = s.lengths();
    // fio moves whole requests of a file only.
    let whole = region / unit * unit;
    let size = match s.size.as_ref().map(|v| v.value) {
        Some(Amount::Bytes(b)) => b.min(whole),
        _ => whole,
    };
    match (s.used(), s.pattern.skip_blocks) {
        // A request that ends where the file ends is the last; behind any other the gap leads to the start again.
        (&[kind], skip @ 1..) if matches!(lengths[kind], Sizes::Fixed(_)) => {
            let step = unit + skip as u64 * BLOCK;
            if region % step == unit { size.min(region.div_ceil(step) * unit) } else { size }
        }
        _ => size,
    }
    .max(unit)
}

/// Bytes of the shortest request of a kind that the job makes; of several kinds, the one with the longest.
fn smallest(s: &Settings) -> u64 {
    let lengths = s.lengths();
    s.used().iter().map(|&k| u64::from(lengths[k].min()) * BLOCK).max().unwrap_or(BLOCK)
}

/// Bytes of the longest request that the job makes.
fn longest(s: &Settings) -> u64 {
    let lengths = s.lengths();
    let longest = |sizes: &Sizes| match sizes {
        Sizes::Fixed(n) | Sizes::Range { max: n, .. } => *n,
        Sizes::Split(list) => list.iter().filter(|e| e.1 > 0).map(|e| e.0).max().unwrap_or(1),
    };
    s.used().iter().map(|&k| u64::from(longest(&lengths[k])) * BLOCK).max().unwrap_or(BLOCK)
}
