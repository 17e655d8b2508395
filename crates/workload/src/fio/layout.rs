// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of jobs to a workload: where files lie on the logical unit, which part of them a job uses, clones, phases
//! and reporting groups. Knows no option as text.

use std::collections::{BTreeMap, BTreeSet};

use readpath_kit::{BLOCK_BYTES, Prng};

use super::job::{JobSection, Notes, Set, Settings};
use super::lexer::At;
use super::value::Amount;
use super::{Context, JobError};
use crate::{FileExtent, Job, Kinds, Limits, Offsets, Phase, Stream, StreamSpec, Think, Workload};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Sections of one job file that need Zipf or zone tables.
const MAX_TABLES: usize = 1024;

/// A file while the jobs are looked through.
struct File {
    name: String,
    /// Known length in bytes; 0 when no job says it.
    bytes: u64,
    /// Where its length was set, or its first job.
    at: At,
    key: Option<&'static str>,
    device: bool,
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
}

pub(super) fn build(main: &str, jobs: Vec<JobSection>, notes: Notes, cx: &Context) -> Result<Workload, JobError> {
    let (files, of_job) = files(&jobs, cx)?;
    let mut work = Workload {
        name: main.to_owned(),
        phases: Vec::new(),
        groups: Vec::new(),
        files: Vec::new(),
        notes: notes.list,
    };
    let mut names = BTreeSet::new();
    let (mut thread, mut tables, mut joined) = (0u64, 0usize, false);
    let mut titles: Vec<&str> = Vec::new();
    for (section, file_of) in jobs.iter().zip(of_job) {
        let s = &section.settings;
        if work.phases.is_empty() || s.stonewall {
            name_phase(&mut work, &mut titles);
            work.phases.push(Phase { name: String::new(), jobs: Vec::new() });
            names.clear();
        }
        titles.push(&section.name);
        // In fio a barrier also begins a new reporting group, and clones share their section's.
        joined &= !(s.stonewall || s.new_group) && s.group_reporting;
        let mut pattern: Option<(StreamSpec, Stream)> = None;
        for (clone, &file) in (0u64..).zip(&file_of) {
            let region = region(section, &files[file], clone, cx)?;
            let seed = Prng::stream(s.randseed.unwrap_or(cx.seed), "fio job", thread).next_u64();
            thread += 1;
            let spec = spec(s, &region);
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
            let stream = stream.map_err(|e| section.at.error(format!("job {}: {e}", section.name)))?;
            if pattern.is_none() {
                pattern = Some((spec.clone(), stream.clone()));
            }
            let name = unique(&mut names, &section.name, (s.numjobs > 1).then_some(clone));
            if !joined {
                work.groups.push(if s.group_reporting { section.name.to_string() } else { name.clone() });
                joined = s.group_reporting;
            }
            let job = job(section, name, work.groups.len() - 1, &spec, stream);
            let Some(phase) = work.phases.last_mut() else { unreachable!() };
            phase.jobs.push(job);
        }
    }
    name_phase(&mut work, &mut titles);
    let placed =
        files.into_iter().map(|f| FileExtent { name: f.name, block: f.start, blocks: (f.bytes / BLOCK) as u32 });
    work.files = placed.collect();
    Ok(work)
}

/// Names the last phase after its sections.
fn name_phase(work: &mut Workload, titles: &mut Vec<&str>) {
    if let (Some(phase), Some(first)) = (work.phases.last_mut(), titles.first()) {
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
    // Thousands of sections of one name are allowed; their place in the phase tells them apart at once.
    let name = if names.contains(&wanted) { format!("{wanted} #{}", names.len() + 1) } else { wanted };
    names.insert(name.clone());
    name
}

fn job(section: &JobSection, name: String, group: usize, spec: &StreamSpec, stream: Stream) -> Job {
    let s = &section.settings;
    // Where a flush ends the stream, the stream itself says when it is over.
    let bytes = spec.limit_blocks.filter(|_| !spec.end_flush).map(|n| n.saturating_mul(BLOCK));
    Job {
        name,
        group,
        iodepth: s.iodepth,
        // fio adds the ramp to the run time.
        limits: Limits { bytes, ios: s.number_ios, runtime: s.runtime.map(|t| t + s.ramp) },
        ramp: s.ramp,
        start_delay: s.start_delay,
        think: Think { time: s.think_time, every: s.think_every },
        rate_iops: s.rate_iops.map(|r| (r > 0).then_some(r)),
        options: section.echo.clone(),
        stream,
    }
}

fn spec(s: &Settings, region: &Region) -> StreamSpec {
    StreamSpec {
        start_block: region.start,
        blocks: region.blocks,
        kinds: s.kinds(),
        sizes: s.lengths(),
        offsets: s.offsets(),
        random_percent: s.random_percent(),
        run: s.run,
        skip_blocks: s.skip_blocks,
        flush_every: s.flush_every,
        fua: s.fua,
        limit_blocks: region.limit,
        end_flush: s.end_flush,
    }
}

fn same_but_place(a: &StreamSpec, b: &StreamSpec) -> bool {
    // Everything else comes from the section.
    a.blocks == b.blocks && a.limit_blocks == b.limit_blocks
}

/// Offset of a clone in bytes when it does not depend on the file's length.
fn fixed_offset(s: &Settings, clone: u64) -> Option<u64> {
    let base = match s.offset.as_ref().map(|o| o.value) {
        None => 0,
        Some(Amount::Bytes(b)) => b,
        Some(Amount::Percent(_)) => return None,
    };
    base.checked_add(increment(s, clone)?)
}

fn increment(s: &Settings, clone: u64) -> Option<u64> {
    s.offset_increment.as_ref().map_or(Some(0), |i| i.value.checked_mul(clone))
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
            let name = match &s.filename {
                Some(name) => name.value.to_string(),
                None => format!("{}.{clone}.0", section.name),
            };
            let device = name.starts_with("/dev/");
            let name = match &s.directory {
                Some(dir) if !device => format!("{dir}/{name}"),
                _ => name,
            };
            let number = *index.entry(name.clone()).or_insert_with(|| {
                let (at, key) = s.filename.as_ref().map_or((section.at.clone(), None), |f| (f.at.clone(), Some(f.key)));
                let bytes = if device { u64::from(cx.device_blocks) * BLOCK } else { 0 };
                files.push(File { name, bytes, at, key, device, start: 0 });
                files.len() - 1
            });
            mine.push(number);
            let file = &mut files[number];
            if device {
                continue;
            }
            let (bytes, at, key) = match (&s.filesize, &s.size) {
                (Some(f), _) => (Some(f.value), &f.at, f.key),
                (None, Some(Set { value: Amount::Bytes(b), at, key })) => {
                    // An offset in percent needs a length that another job gives.
                    (fixed_offset(s, clone).and_then(|o| o.checked_add(*b)), at, *key)
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
    let room = u64::from(cx.device_blocks);
    for file in files.iter_mut().filter(|f| !f.device) {
        if file.bytes == 0 {
            return Err(file.error(format!(
                "no job says how long the file \"{}\" is; give size or filesize, at least {BLOCK} bytes",
                file.name
            )));
        }
        let blocks = file.bytes / BLOCK;
        if blocks > room - next {
            return Err(file.error(format!(
                "the file \"{}\" needs {blocks} blocks of 4 KiB, but only {} of the device's {room} are left",
                file.name,
                room - next
            )));
        }
        file.start = next as u32;
        next += blocks;
    }
    Ok((files, of_job))
}

/// `percent` of `bytes`, whole blocks.
fn share(bytes: u64, percent: u64) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64 / BLOCK * BLOCK
}

fn region(section: &JobSection, file: &File, clone: u64, cx: &Context) -> Result<Region, JobError> {
    let s = &section.settings;
    let at_offset = |message: String| match (&s.offset, &s.offset_increment) {
        (Some(o), _) => o.error(format!("offset: {message}")),
        (None, Some(i)) => i.error(format!("offset_increment: {message}")),
        (None, None) => section.at.error(message),
    };
    let base = match s.offset.as_ref().map(|o| o.value) {
        None => 0,
        Some(Amount::Bytes(b)) => b,
        Some(Amount::Percent(p)) => share(file.bytes, p),
    };
    let offset = increment(s, clone).and_then(|i| i.checked_add(base));
    let offset = offset.filter(|&o| o < file.bytes).ok_or_else(|| {
        at_offset(format!("lies beyond the end of the file \"{}\" of {} bytes", file.name, file.bytes))
    })?;
    if !offset.is_multiple_of(BLOCK) {
        return Err(at_offset(format!("{offset} bytes is not a multiple of {BLOCK}")));
    }
    let rest = file.bytes - offset;
    // With filesize, size only says how much is moved; else it is the region.
    let whole = s.filesize.as_ref().map(|f| {
        let end = if file.device { file.bytes } else { f.value / BLOCK * BLOCK };
        end.saturating_sub(offset)
    });
    let region = match (whole, s.size.as_ref().map(|v| v.value)) {
        (Some(whole), _) => whole,
        (None, Some(Amount::Bytes(b))) => b / BLOCK * BLOCK,
        (None, Some(Amount::Percent(p))) => share(file.bytes, p).min(rest),
        (None, None) => rest,
    };
    let at_size = |message: String| match (&s.size, &s.filesize) {
        (Some(size), _) => size.error(format!("size: {message}")),
        (None, Some(size)) => size.error(format!("filesize: {message}")),
        (None, None) => section.at.error(message),
    };
    if region > rest {
        return Err(at_size(format!(
            "{region} bytes from offset {offset} on end beyond \"{}\", which has {} blocks of 4 KiB",
            file.name,
            if file.device { u64::from(cx.device_blocks) } else { file.bytes / BLOCK }
        )));
    }
    let unit = smallest(s);
    if region < unit {
        return Err(at_size(format!("{region} bytes are less than one request of {unit}")));
    }
    // Both fit: the file lies within the device.
    let (start, blocks) = (file.start + (offset / BLOCK) as u32, (region / BLOCK) as u32);
    Ok(Region { start, blocks, limit: limit(s, region, whole, unit)? })
}

/// Blocks after which a job ends.
fn limit(s: &Settings, region: u64, whole: Option<u64>, unit: u64) -> Result<Option<u64>, JobError> {
    if s.time_based.as_ref().is_some_and(|t| t.value) {
        return Ok(None);
    }
    // fio moves whole requests of a file only.
    let region = region / unit * unit;
    let bytes = match (s.io_size.as_ref().map(|v| v.value), s.size.as_ref().map(|v| v.value)) {
        (Some(Amount::Bytes(b)), _) => b,
        (Some(Amount::Percent(p)), _) => share(region, p),
        (None, Some(Amount::Bytes(b))) if whole.is_some() => b.min(region),
        (None, Some(Amount::Percent(p))) if whole.is_some() => share(region, p),
        _ => region,
    };
    // A trimmed and written place counts twice, as in fio.
    let twice = if s.kinds() == Kinds::TrimWrite { 2 } else { 1 };
    let blocks = bytes.div_ceil(BLOCK).max(1).checked_mul(s.loops.value).and_then(|b| b.checked_mul(twice));
    // The result must also fit in bytes.
    match blocks.filter(|b| b.checked_mul(BLOCK).is_some()) {
        Some(blocks) => Ok(Some(blocks)),
        None => Err(s.loops.error("loops: the bytes to move do not fit into 64 bits")),
    }
}

/// Bytes of the shortest request of a kind that the job makes; of several kinds, the one with the longest.
fn smallest(s: &Settings) -> u64 {
    let lengths = s.lengths();
    let kinds: &[usize] = match s.kinds() {
        Kinds::Only(kind) => &[kind as usize],
        Kinds::Mix(_) => &[0, 1],
        Kinds::TrimWrite => &[2],
    };
    kinds.iter().map(|&k| u64::from(lengths[k].min()) * BLOCK).max().unwrap_or(BLOCK)
}
