// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of options to checked settings: global defaults, every option's value, notes on what is ignored. Knows
//! nothing of where files lie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use readpath_kit::Ns;

use super::JobError;
use super::lexer::{At, MAX_NAME, Opt, Section};
use super::options::{self, Class};
use super::value::{self, Amount};
use crate::{IoKind, Kinds, Offsets, Sizes, Zone};

/// Jobs of one file, clones included.
const MAX_JOBS: u64 = 65_536;
/// Bytes of the options echoed with all jobs.
const MAX_ECHO: usize = 64 << 20;
/// Most weights of a split and most zones, as in fio.
const MAX_SPLIT: usize = 64;
/// Bytes of a file's or directory's name.
const MAX_PATH: usize = 1024;
const MAX_ZONES: usize = 256;

/// Notes for the reader of the results, one per subject.
#[derive(Default)]
pub(super) struct Notes {
    seen: BTreeSet<String>,
    pub list: Vec<String>,
}

impl Notes {
    /// Adds a note unless there is one about `subject`.
    pub fn add(&mut self, subject: &str, note: impl FnOnce() -> String) {
        if !self.seen.contains(subject) {
            self.seen.insert(subject.to_owned());
            self.list.push(note());
        }
    }
}

/// A value and where it was set.
#[derive(Clone)]
pub(super) struct Set<T> {
    pub value: T,
    pub at: At,
    pub key: &'static str,
}

impl<T> Set<T> {
    pub fn error(&self, message: impl Into<String>) -> JobError {
        JobError { key: Some(self.key.into()), ..self.at.error(message) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Trim,
    Mix,
    TrimWrite,
}

/// All values of one job, with fio's defaults.
#[derive(Clone)]
pub(super) struct Settings {
    mode: Mode,
    random: bool,
    pub run: u32,
    pub skip_blocks: u32,
    sizes: [Sizes; 3],
    split: [Option<Sizes>; 3],
    pub size: Option<Set<Amount>>,
    pub io_size: Option<Set<Amount>>,
    pub filesize: Option<Set<u64>>,
    pub offset: Option<Set<Amount>>,
    pub offset_increment: Option<Set<u64>>,
    pub filename: Option<Set<Arc<str>>>,
    pub directory: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    pub numjobs: u32,
    pub iodepth: u32,
    pub runtime: Option<Ns>,
    pub time_based: Option<Set<bool>>,
    pub ramp: Ns,
    pub start_delay: Ns,
    pub loops: Set<u64>,
    pub number_ios: Option<u64>,
    mix_read: u8,
    mix_set: [Option<u8>; 2],
    random_percent: [u8; 3],
    distribution: [Option<Offsets>; 3],
    norandommap: bool,
    pub randseed: Option<u64>,
    pub think_time: Ns,
    pub think_every: u32,
    pub rate_iops: [u64; 3],
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    pub flush_every: [u32; 2],
    pub fua: bool,
    pub end_flush: bool,
    engine: Option<Set<bool>>,
    direct: bool,
    kb_base: u64,
}

impl Settings {
    fn new(at: At) -> Settings {
        Settings {
            mode: Mode::Read,
            random: false,
            run: 1,
            skip_blocks: 0,
            sizes: std::array::from_fn(|_| Sizes::Fixed(1)),
            split: [None, None, None],
            size: None,
            io_size: None,
            filesize: None,
            offset: None,
            offset_increment: None,
            filename: None,
            directory: None,
            name: None,
            numjobs: 1,
            iodepth: 1,
            runtime: None,
            time_based: None,
            ramp: Ns::ZERO,
            start_delay: Ns::ZERO,
            loops: Set { value: 1, at, key: "loops" },
            number_ios: None,
            mix_read: 50,
            mix_set: [None; 2],
            random_percent: [100; 3],
            distribution: [None, None, None],
            norandommap: false,
            randseed: None,
            think_time: Ns::ZERO,
            think_every: 1,
            rate_iops: [0; 3],
            stonewall: false,
            new_group: false,
            group_reporting: false,
            flush_every: [0; 2],
            fua: false,
            end_flush: false,
            engine: None,
            direct: false,
            kb_base: 1024,
        }
    }

    /// Kinds of requests.
    pub fn kinds(&self) -> Kinds {
        match self.mode {
            Mode::Read => Kinds::Only(IoKind::Read),
            Mode::Write => Kinds::Only(IoKind::Write),
            Mode::Trim => Kinds::Only(IoKind::Trim),
            Mode::Mix => Kinds::Mix(self.mix_read),
            Mode::TrimWrite => Kinds::TrimWrite,
        }
    }

    /// Lengths of requests per kind.
    pub fn lengths(&self) -> [Sizes; 3] {
        std::array::from_fn(|i| self.split[i].clone().unwrap_or_else(|| self.sizes[i].clone()))
    }

    /// Places of requests per kind.
    pub fn offsets(&self) -> [Offsets; 3] {
        std::array::from_fn(|i| match &self.distribution[i] {
            _ if !self.random => Offsets::Sequential,
            Some(skewed) => skewed.clone(),
            None if self.norandommap => Offsets::Uniform,
            None => Offsets::Once,
        })
    }

    /// Share of random requests per kind.
    pub fn random_percent(&self) -> [u8; 3] {
        if self.random { self.random_percent } else { [0; 3] }
    }

    /// Sets what the option `key` says; `option` holds its value and place.
    fn apply(&mut self, key: &'static str, option: &Opt, notes: &mut Notes) -> Result<(), JobError> {
        let wrong = |message: String| option.error(format!("{key}: {message}"));
        let kb = self.kb_base;
        let switch = || value::switch(option.value.as_deref()).map_err(wrong);
        match key {
            "time_based" => self.time_based = Some(Set { value: switch()?, at: option.at.clone(), key }),
            "norandommap" => self.norandommap = switch()?,
            "stonewall" => self.stonewall = switch()?,
            "new_group" => self.new_group = switch()?,
            "group_reporting" => self.group_reporting = switch()?,
            "end_fsync" => self.end_flush = switch()?,
            "direct" => self.direct = switch()?,
            "buffered" => self.direct = !switch()?,
            "randrepeat" | "allrandrepeat" => {
                if !switch()? {
                    notes.add("randrepeat", || {
                        format!(
                            "line {}: {key}=0: the same seed gives the same requests here all the same",
                            option.at.line
                        )
                    });
                }
            }
            _ => {
                let Some(text) = option.value.as_ref().filter(|v| !v.is_empty()) else {
                    return Err(wrong("a value is missing".into()));
                };
                self.apply_value(key, text, &option.at, kb, notes).map_err(wrong)?;
            }
        }
        Ok(())
    }

    fn apply_value(
        &mut self,
        key: &'static str,
        text: &Arc<str>,
        at: &At,
        kb: u64,
        notes: &mut Notes,
    ) -> Result<(), String> {
        let at = || at.clone();
        let count = |min: u64, max: u64| value::count(text, min, max);
        let positive = |bytes: u64| if bytes == 0 { Err("must not be zero".to_owned()) } else { Ok(bytes) };
        let amount = || match value::amount(text, kb)? {
            Amount::Bytes(0) | Amount::Percent(0) => Err("must not be zero".to_owned()),
            some => Ok(some),
        };
        const SECOND: u64 = 1_000_000_000;
        match key {
            "rw" => self.pattern(text, kb)?,
            "bs" => value::per_kind(text, &mut self.sizes, |t| value::block_size(t, kb).map(Sizes::Fixed))?,
            "bsrange" => value::per_kind(text, &mut self.sizes, |t| size_range(t, kb))?,
            "bssplit" => value::per_kind(text, &mut self.split, |t| size_split(t, kb).map(Some))?,
            "size" => self.size = Some(Set { value: amount()?, at: at(), key }),
            "io_size" => self.io_size = Some(Set { value: amount()?, at: at(), key }),
            "filesize" => {
                if text.contains('-') {
                    return Err("file sizes drawn from a range are not built; give one size".into());
                }
                self.filesize = Some(Set { value: positive(value::bytes(text, kb)?)?, at: at(), key });
            }
            "offset" => self.offset = Some(Set { value: value::amount(text, kb)?, at: at(), key }),
            "offset_increment" => {
                let value = value::bytes(text, kb)?;
                self.offset_increment = Some(Set { value, at: at(), key });
            }
            "filename" => {
                if text.contains(':') {
                    return Err(
                        "several files per job (a list with colons) are not built; write one job per file".into()
                    );
                }
                if text.len() > MAX_PATH {
                    return Err(format!("the name is longer than {MAX_PATH} bytes"));
                }
                if text.contains('$') {
                    return Err("variables in file names are not expanded here".into());
                }
                self.filename = Some(Set { value: text.clone(), at: at(), key });
            }
            "directory" => {
                if text.contains(':') {
                    return Err("several directories are not built; give one".into());
                }
                if text.len() > MAX_PATH {
                    return Err(format!("the name is longer than {MAX_PATH} bytes"));
                }
                self.directory = Some(text.clone());
            }
            "name" if text.len() > MAX_NAME => return Err(format!("the name is longer than {MAX_NAME} bytes")),
            "name" => self.name = Some(text.clone()),
            "description" => {}
            "numjobs" => self.numjobs = count(1, 65_535)? as u32,
            "iodepth" => self.iodepth = count(1, 65_535)? as u32,
            "runtime" => self.runtime = Some(value::time(text, SECOND)?).filter(|t| *t > Ns::ZERO),
            "ramp_time" => self.ramp = value::time(text, SECOND)?,
            "startdelay" => {
                if text.contains('-') {
                    return Err("a delay drawn from a range is not built; give one time".into());
                }
                self.start_delay = value::time(text, SECOND)?;
            }
            "loops" => self.loops = Set { value: count(1, u64::MAX)?, at: at(), key },
            "number_ios" => self.number_ios = Some(count(0, u64::MAX)?).filter(|&n| n > 0),
            "rwmixread" | "rwmixwrite" => {
                let percent = count(0, 100)? as u8;
                let write = usize::from(key == "rwmixwrite");
                self.mix_set[write] = Some(percent);
                if let [Some(r), Some(w)] = self.mix_set
                    && r + w != 100
                {
                    return Err(format!("rwmixread {r} and rwmixwrite {w} do not sum to 100"));
                }
                self.mix_read = if write == 1 { 100 - percent } else { percent };
            }
            "percentage_random" => {
                value::per_kind(text, &mut self.random_percent, |t| value::count(t, 0, 100).map(|p| p as u8))?;
            }
            "random_distribution" => self.distribution(text)?,
            "randseed" => self.randseed = Some(count(0, u64::MAX)?),
            "thinktime" => self.think_time = value::time(text, 1000)?,
            "thinktime_blocks" => self.think_every = count(1, u64::from(u32::MAX))? as u32,
            "rate_iops" => value::per_kind(text, &mut self.rate_iops, |t| value::bytes(t, 1000))?,
            "fsync" => self.flush_every[0] = count(0, u64::from(u32::MAX))? as u32,
            "fdatasync" => self.flush_every[1] = count(0, u64::from(u32::MAX))? as u32,
            "sync" => {
                self.fua = match &**text {
                    "0" | "none" => false,
                    "1" | "sync" | "dsync" => true,
                    _ => return Err("must be none, sync or dsync".into()),
                }
            }
            "kb_base" => match &**text {
                "1000" => self.kb_base = 1000,
                "1024" => self.kb_base = 1024,
                _ => return Err("must be 1000 or 1024".into()),
            },
            "ioengine" => {
                // An engine may carry a path after a colon.
                self.engine = Some(Set { value: engine(text.split(':').next().unwrap_or_default())?, at: at(), key });
                let line = at().line;
                notes.add(key, || format!("line {line}: option ioengine has no meaning here and is ignored"));
            }
            _ => unreachable!("option {key} is listed as used"),
        }
        Ok(())
    }

    /// `rw=`: kinds, order and what follows the colon.
    fn pattern(&mut self, text: &str, kb: u64) -> Result<(), String> {
        let (name, postfix) = match text.split_once(':') {
            Some((name, postfix)) => (name.trim(), Some(postfix.trim())),
            None => (text, None),
        };
        (self.mode, self.random) = match name {
            "read" => (Mode::Read, false),
            "write" => (Mode::Write, false),
            "trim" => (Mode::Trim, false),
            "rw" | "readwrite" => (Mode::Mix, false),
            "trimwrite" => (Mode::TrimWrite, false),
            "randread" => (Mode::Read, true),
            "randwrite" => (Mode::Write, true),
            "randtrim" => (Mode::Trim, true),
            "randrw" => (Mode::Mix, true),
            "randtrimwrite" => (Mode::TrimWrite, true),
            _ => {
                return Err(format!(
                    "\"{name}\" must be read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
                     randtrimwrite"
                ));
            }
        };
        (self.run, self.skip_blocks) = (1, 0);
        match postfix {
            None => {}
            Some(n) if self.random => self.run = value::count(n, 1, u64::from(u32::MAX))? as u32,
            Some(n) if n.starts_with('-') => return Err("going backwards is not built".into()),
            Some(n) => {
                let skip = value::bytes(n, kb)?;
                if !skip.is_multiple_of(4096) || skip / 4096 > u64::from(u32::MAX) {
                    return Err(format!("the gap of {skip} bytes must be a multiple of 4096"));
                }
                self.skip_blocks = (skip / 4096) as u32;
            }
        }
        Ok(())
    }

    /// `random_distribution=`.
    fn distribution(&mut self, text: &str) -> Result<(), String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let parameter = || match rest.split_once(':') {
            Some(_) => Err(format!("a centre for {name} is not built")),
            None => value::float(rest.trim()),
        };
        match name {
            "random" => self.distribution = [None, None, None],
            "zipf" => {
                let theta = parameter()?;
                if !(theta > 0.0 && theta <= 10.0) {
                    return Err(format!("the exponent {theta} must be above 0 and at most 10"));
                }
                self.distribution = std::array::from_fn(|_| Some(Offsets::Zipf(theta)));
            }
            "pareto" => {
                let h = parameter()?;
                if !(h > 0.0 && h < 1.0) {
                    return Err(format!("{h} must lie between 0 and 1"));
                }
                self.distribution = std::array::from_fn(|_| Some(Offsets::Pareto(h)));
            }
            "zoned" => value::per_kind(rest, &mut self.distribution, |t| zones(t).map(|z| Some(Offsets::Zoned(z))))?,
            "normal" | "zoned_abs" => return Err(format!("{name} is not built; random, zipf, pareto and zoned are")),
            _ => return Err(format!("\"{name}\" must be random, zipf:THETA, pareto:H or zoned:ACCESSES/SIZE:...")),
        }
        Ok(())
    }
}

fn size_range(text: &str, kb: u64) -> Result<Sizes, String> {
    let Some((min, max)) = text.split_once('-') else {
        return Err(format!("\"{text}\" must be a range such as 4k-64k"));
    };
    let (min, max) = (value::block_size(min.trim(), kb)?, value::block_size(max.trim(), kb)?);
    if min > max {
        return Err(format!("the range \"{text}\" goes from high to low"));
    }
    Ok(Sizes::Range { min, max })
}

/// A list `value/percent:...`; values without a percentage share what is left.
fn shares<T>(text: &str, max: usize, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<(T, u32)>, String> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let (value, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            p => Some(value::count(p, 0, 100)? as u32),
        };
        list.push((parse(value.trim())?, percent));
        if list.len() > max {
            return Err(format!("more than {max} entries"));
        }
    }
    let given: u32 = list.iter().filter_map(|e| e.1).sum();
    let open = list.iter().filter(|e| e.1.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!("the percentages sum to {given}, not 100"));
    }
    // What cannot be divided evenly goes to the first open places.
    let mut left = 100 - given;
    let mut places = open;
    let fill = |(value, percent): (T, Option<u32>)| {
        let percent = percent.unwrap_or_else(|| {
            let share = left.div_ceil(places);
            left -= share;
            places -= 1;
            share
        });
        (value, percent)
    };
    Ok(list.into_iter().map(fill).collect())
}

fn size_split(text: &str, kb: u64) -> Result<Sizes, String> {
    shares(text, MAX_SPLIT, |t| value::block_size(t, kb)).map(Sizes::Split)
}

/// Zones `accesses/size:...`; sizes that are left out share what is left of the file.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let list = shares(text, MAX_ZONES, |t| value::count(t, 0, 100))?;
    let accesses: u64 = list.iter().map(|z| z.0).sum();
    if accesses != 100 {
        return Err(format!("the shares of accesses sum to {accesses}, not 100"));
    }
    Ok(list.into_iter().map(|(a, s)| Zone { access_percent: a as u8, size_percent: s as u8 }).collect())
}

/// Whether an engine waits for each request before the next.
fn engine(name: &str) -> Result<bool, String> {
    match name {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" | "splice" => Ok(true),
        "libaio" | "posixaio" | "solarisaio" | "windowsaio" | "io_uring" | "io_uring_cmd" | "sg" | "libblkio"
        | "xnvme" | "nvme" | "spdk" | "null" | "aio" | "linuxaio" => Ok(false),
        _ => Err(format!("the engine \"{name}\" does not read and write a block device, or is not known")),
    }
}

/// A job section with its settings.
pub(super) struct JobSection {
    pub at: At,
    pub name: Arc<str>,
    pub settings: Settings,
    /// The options in force, as typed.
    pub echo: Arc<[(String, String)]>,
}

type Echo = BTreeMap<&'static str, Arc<str>>;

/// Settings of every job section.
pub(super) fn resolve(file: &str, sections: Vec<Section>, notes: &mut Notes) -> Result<Vec<JobSection>, JobError> {
    let whole = At { file: file.into(), line: 0 };
    let mut global = Settings::new(whole.clone());
    let mut global_echo = Echo::new();
    let mut shared: Option<Arc<[(String, String)]>> = None;
    let (mut total, mut echoed) = (0u64, 0usize);
    let mut jobs = Vec::new();
    for section in sections {
        // The sum of a mix is checked within a section; a later section overrides an earlier one.
        global.mix_set = [None; 2];
        // As in fio, every name that begins so is a section of defaults.
        if section.name.starts_with("global") {
            apply_all(&mut global, &mut global_echo, &section, notes)?;
            shared = None;
            continue;
        }
        let mut settings = global.clone();
        let echo = if section.options.is_empty() {
            shared.get_or_insert_with(|| listed(&global_echo, &mut echoed)).clone()
        } else {
            let mut echo = global_echo.clone();
            apply_all(&mut settings, &mut echo, &section, notes)?;
            listed(&echo, &mut echoed)
        };
        if echoed > MAX_ECHO {
            return Err(section.at.error("the options of all jobs together are longer than 64 MiB"));
        }
        total += u64::from(settings.numjobs);
        if total > MAX_JOBS {
            return Err(section.at.error(format!("more than {MAX_JOBS} jobs, clones included")));
        }
        finish(&mut settings, &section, notes)?;
        let name = settings.name.clone().unwrap_or_else(|| section.name.clone());
        jobs.push(JobSection { at: section.at, name, settings, echo });
    }
    if jobs.is_empty() {
        return Err(whole.error("there is no job; a job begins with its name in brackets: [job1]"));
    }
    Ok(jobs)
}

fn listed(echo: &Echo, bytes: &mut usize) -> Arc<[(String, String)]> {
    let list: Arc<[_]> = echo.iter().map(|(key, value)| (String::from(*key), value.to_string())).collect();
    *bytes += list.iter().map(|(k, v)| k.len() + v.len() + 64).sum::<usize>();
    list
}

/// What can be checked only when all options of a job are known.
fn finish(s: &mut Settings, section: &Section, notes: &mut Notes) -> Result<(), JobError> {
    if let Some(time_based) = s.time_based.as_ref().filter(|t| t.value)
        && s.runtime.is_none()
    {
        return Err(time_based.error("time_based: runtime is missing"));
    }
    match &s.engine {
        Some(engine) if engine.value && s.iodepth > 1 => {
            notes.add("iodepth", || {
                format!("line {}: this engine is synchronous, so iodepth is 1 as in fio", engine.at.line)
            });
            s.iodepth = 1;
        }
        None if s.iodepth > 1 => notes.add("engine", || {
            format!("line {}: iodepth is kept although fio's default engine is synchronous", section.at.line)
        }),
        _ => {}
    }
    if !s.direct {
        notes.add("direct", || {
            format!("line {}: no page cache is modelled, requests reach the device as with direct=1", section.at.line)
        });
    }
    if s.end_flush && s.time_based.as_ref().is_some_and(|t| t.value) {
        notes.add("end_fsync", || {
            format!("line {}: a job that ends by time makes no flush at its end", section.at.line)
        });
        s.end_flush = false;
    }
    if s.random && !s.norandommap && s.lengths().iter().any(|l| !matches!(l, Sizes::Fixed(_))) {
        notes.add("random map", || {
            format!(
                "line {}: with several block sizes each place begins one request per pass, and requests may overlap",
                section.at.line
            )
        });
    }
    Ok(())
}

fn apply_all(settings: &mut Settings, echo: &mut Echo, section: &Section, notes: &mut Notes) -> Result<(), JobError> {
    // The base of size suffixes counts for the whole section, wherever it stands.
    let (base, rest): (Vec<&Opt>, Vec<&Opt>) = section.options.iter().partition(|o| o.key == "kb_base");
    for option in base.into_iter().chain(rest) {
        let Some((key, class)) = options::find(&option.key) else {
            let shown: String = option.key.chars().take(80).collect();
            let hint = options::nearest(&option.key).map_or_else(String::new, |n| format!("; did you mean {n}?"));
            return Err(option.error(format!("\"{shown}\" is not an option of fio{hint}")));
        };
        match class {
            Class::Used => settings.apply(key, option, notes)?,
            Class::Ignored => {
                notes.add(key, || format!("line {}: option {key} has no meaning here and is ignored", option.at.line))
            }
            Class::NotBuilt(off) => {
                if !option.value.as_deref().is_some_and(|v| off.contains(&v)) {
                    let hint = match off {
                        [] => String::new(),
                        values => format!(" (only {key}={})", values[0]),
                    };
                    return Err(option.error(format!("option {key} would change the result and is not built{hint}")));
                }
            }
        }
        echo.insert(key, option.value.clone().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_used_option_is_read() {
        for key in options::USED {
            for value in [None, Some("1".into()), Some("x".into())] {
                let at = At { file: "t".into(), line: 1 };
                let option = Opt { at: at.clone(), key: (*key).into(), value };
                // Whether the value is right does not matter here: an option without a branch would panic.
                let _ = Settings::new(at).apply(key, &option, &mut Notes::default());
            }
        }
    }
}
