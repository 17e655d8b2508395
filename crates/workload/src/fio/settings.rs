// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of one job's options, from text to what a stream of requests is made of. Knows nothing of sections or of
//! where files lie.

use std::sync::Arc;

use readpath_kit::Ns;

use super::JobError;
use super::job::Notes;
use super::lexer::{At, MAX_NAME, Opt};
use super::lists::{self, Engine, Mode, Pattern};
use super::value::{self, Amount};
use crate::{IoKind, Kinds, Offsets, Sizes};

/// Bytes of a file's or directory's name.
const MAX_PATH: usize = 1024;
/// fio's own engine where a job names none, on Linux.
const DEFAULT_ENGINE: &str = "psync";

/// A value and where it was set.
#[derive(Clone, Default)]
pub(super) struct Set<T> {
    pub value: T,
    pub at: At,
    pub key: &'static str,
}

impl<T> Set<T> {
    fn new(value: T, at: &At, key: &'static str) -> Set<T> {
        Set { value, at: at.clone(), key }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> JobError {
        JobError { key: Some(self.key.into()), ..self.at.error(message) }
    }
}

/// All values of one job.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub pattern: Pattern,
    /// 4 KiB unless set.
    sizes: [Option<Sizes>; 3],
    split: [Option<Sizes>; 3],
    pub size: Option<Set<Amount>>,
    pub io_size: Option<Set<Amount>>,
    pub filesize: Option<Set<u64>>,
    pub offset: Option<Set<Amount>>,
    pub offset_increment: Option<Set<Amount>>,
    pub filename: Option<Set<Arc<str>>>,
    pub directory: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    pub numjobs: u32,
    pub iodepth: Set<u32>,
    pub runtime: Option<Ns>,
    pub time_based: Option<Set<bool>>,
    pub ramp: Ns,
    pub start_delay: Ns,
    pub loops: Set<u64>,
    pub number_ios: Option<Set<u64>>,
    mix_read: u8,
    pub mix_set: [Option<u8>; 2],
    random_percent: [u8; 3],
    distribution: [Option<Offsets>; 3],
    pub norandommap: bool,
    pub randseed: Option<u64>,
    pub think_time: Ns,
    pub think_every: u32,
    rate: [u64; 3],
    rate_iops: [u64; 3],
    /// Where the later of the two was set.
    rate_at: Option<(At, &'static str)>,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    pub flush_every: [u32; 2],
    pub fua: bool,
    pub end_flush: bool,
    pub engine: Option<Engine>,
    pub direct: bool,
    pub verify: Option<Set<()>>,
    pub do_verify: bool,
    pub description: Option<Arc<str>>,
    pub percentiles: Arc<[f64]>,
    kb_base: u64,
}

impl Settings {
    /// fio's defaults.
    pub(super) fn new(at: &At) -> Settings {
        Settings {
            numjobs: 1,
            iodepth: Set::new(1, at, "iodepth"),
            loops: Set::new(1, at, "loops"),
            mix_read: 50,
            random_percent: [100; 3],
            think_every: 1,
            do_verify: true,
            kb_base: 1024,
            ..Settings::default()
        }
    }

    pub(super) fn kinds(&self) -> Kinds {
        match self.pattern.mode {
            Mode::Read => Kinds::Only(IoKind::Read),
            Mode::Write => Kinds::Only(IoKind::Write),
            Mode::Trim => Kinds::Only(IoKind::Trim),
            Mode::Mix => Kinds::Mix(self.mix_read),
            Mode::TrimWrite => Kinds::TrimWrite,
        }
    }

    pub(super) fn lengths(&self) -> [Sizes; 3] {
        std::array::from_fn(|i| self.split[i].as_ref().or(self.sizes[i].as_ref()).cloned().unwrap_or(Sizes::Fixed(1)))
    }

    pub(super) fn offsets(&self) -> [Offsets; 3] {
        std::array::from_fn(|i| match &self.distribution[i] {
            _ if !self.pattern.random => Offsets::Sequential,
            Some(skewed) => skewed.clone(),
            None if self.norandommap => Offsets::Uniform,
            None => Offsets::Once,
        })
    }

    pub(super) fn random_percent(&self) -> [u8; 3] {
        if self.pattern.random { self.random_percent } else { [0; 3] }
    }

    pub(super) fn writes(&self) -> bool {
        matches!(self.kinds(), Kinds::Only(IoKind::Write) | Kinds::Mix(_) | Kinds::TrimWrite)
    }

    /// Whether the job goes on until its time is over.
    pub(super) fn by_time(&self) -> bool {
        self.time_based.as_ref().is_some_and(|t| t.value)
    }

    /// Indices of the kinds that have a length and place of their own.
    pub(super) fn used(&self) -> &'static [usize] {
        match self.kinds() {
            Kinds::Only(IoKind::Read) => &[0],
            Kinds::Only(IoKind::Write) => &[1],
            Kinds::Mix(_) => &[0, 1],
            Kinds::Only(_) | Kinds::TrimWrite => &[2],
        }
    }

    /// The engine's name and whether it keeps more than one request in flight.
    pub(super) fn engine(&self) -> (&str, bool) {
        self.engine.as_ref().map_or((DEFAULT_ENGINE, false), |e| (&e.name, e.queues))
    }

    /// Bytes per second and kind; 0 for no bound. As in fio, requests per second count the shortest request.
    ///
    /// # Errors
    /// fio takes only one of the two options.
    pub(super) fn rates(&self) -> Result<[u64; 3], JobError> {
        let Some((at, key)) = &self.rate_at else { return Ok([0; 3]) };
        let wrong = |message: &str| JobError { key: Some((*key).into()), ..at.error(format!("{key}: {message}")) };
        if self.rate != [0; 3] && self.rate_iops != [0; 3] {
            return Err(wrong("rate and rate_iops exclude each other, as in fio"));
        }
        let shortest = self.lengths().map(|sizes| u64::from(sizes.min()) * u64::from(readpath_kit::BLOCK_BYTES));
        let mut rates = self.rate;
        for (kind, rate) in rates.iter_mut().enumerate() {
            let bytes = self.rate_iops[kind].checked_mul(shortest[kind]);
            *rate = (*rate).max(bytes.ok_or_else(|| wrong("the rate does not fit into 64 bits"))?);
        }
        Ok(rates)
    }

    /// Sets what the option `key` says; `option` holds its value and place.
    ///
    /// # Errors
    /// The value is missing, wrong or not built.
    pub(super) fn apply(&mut self, key: &'static str, option: &Opt, notes: &mut Notes) -> Result<(), JobError> {
        let wrong = |message: String| option.error(format!("{key}: {message}"));
        let kb = self.kb_base;
        let switch = || value::switch(option.value.as_deref()).map_err(wrong);
        match key {
            "time_based" => self.time_based = Some(Set::new(switch()?, &option.at, key)),
            "norandommap" => self.norandommap = switch()?,
            "stonewall" => self.stonewall = switch()?,
            "new_group" => self.new_group = switch()?,
            "group_reporting" => self.group_reporting = switch()?,
            "end_fsync" => self.end_flush = switch()?,
            "direct" => self.direct = switch()?,
            "do_verify" => self.do_verify = switch()?,
            "buffered" => self.direct = !switch()?,
            "randrepeat" | "allrandrepeat" => {
                if !switch()? {
                    notes.add("randrepeat", &option.at, || {
                        format!("{key}=0: the same seed gives the same requests here all the same")
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
        let count = |min: u64, max: u64| value::count(text, min, max);
        let positive = |bytes: u64| if bytes == 0 { Err("must not be zero".to_owned()) } else { Ok(bytes) };
        let amount = || match value::amount(text, kb)? {
            Amount::Bytes(0) | Amount::Percent(0) => Err("must not be zero".to_owned()),
            some => Ok(some),
        };
        const SECOND: u64 = 1_000_000_000;
        match key {
            "rw" => self.pattern = lists::pattern(text, kb)?,
            "bs" => {
                value::per_kind(text, &mut self.sizes, |t| value::block_size(t, kb).map(|n| Some(Sizes::Fixed(n))))?
            }
            "bsrange" => value::per_kind(text, &mut self.sizes, |t| lists::size_range(t, kb).map(Some))?,
            "bssplit" => value::per_kind(text, &mut self.split, |t| lists::size_split(t, kb).map(Some))?,
            "size" => self.size = Some(Set::new(amount()?, at, key)),
            "io_size" => self.io_size = Some(Set::new(amount()?, at, key)),
            "filesize" => {
                if text.contains('-') {
                    return Err("file sizes drawn from a range are not built; give one size".into());
                }
                self.filesize = Some(Set::new(positive(value::bytes(text, kb)?)?, at, key));
            }
            "offset" => self.offset = Some(Set::new(value::amount(text, kb)?, at, key)),
            "offset_increment" => {
                self.offset_increment = Some(Set::new(value::amount(text, kb)?, at, key));
            }
            "filename" => {
                let several = "several files per job (a list with colons) are not built; write one job per file";
                let value = path(text, several)?;
                if text.contains('$') {
                    return Err("variables in file names are not expanded here".into());
                }
                self.filename = Some(Set::new(value, at, key));
            }
            "directory" => self.directory = Some(path(text, "several directories are not built; give one")?),
            "name" if text.len() > MAX_NAME => return Err(format!("the name is longer than {MAX_NAME} bytes")),
            "name" => self.name = Some(text.clone()),
            "description" => self.description = Some(text.clone()),
            "numjobs" => self.numjobs = count(1, 65_535)? as u32,
            "iodepth" => self.iodepth = Set::new(count(1, 65_535)? as u32, at, key),
            "percentile_list" => self.percentiles = lists::percentiles(text)?.into(),
            "runtime" => self.runtime = Some(value::time(text, SECOND)?).filter(|t| *t > Ns::ZERO),
            "ramp_time" => self.ramp = value::time(text, SECOND)?,
            "startdelay" => {
                if text.contains('-') {
                    return Err("a delay drawn from a range is not built; give one time".into());
                }
                self.start_delay = value::time(text, SECOND)?;
            }
            "loops" => self.loops = Set::new(count(1, u64::MAX)?, at, key),
            "number_ios" => {
                let value = count(0, u64::MAX)?;
                self.number_ios = (value > 0).then(|| Set::new(value, at, key));
            }
            "rwmixread" => self.mix(false, count(0, 100)? as u8, at, notes),
            "rwmixwrite" => self.mix(true, count(0, 100)? as u8, at, notes),
            "percentage_random" => {
                value::per_kind(text, &mut self.random_percent, |t| value::count(t, 0, 100).map(|p| p as u8))?;
            }
            "random_distribution" => lists::distribution(text, &mut self.distribution)?,
            "randseed" => self.randseed = Some(count(0, u64::MAX)?),
            "thinktime" => self.think_time = value::time(text, 1000)?,
            "thinktime_blocks" => self.think_every = count(1, u64::from(u32::MAX))? as u32,
            "rate" | "rate_iops" => {
                let rates = if key == "rate" { &mut self.rate } else { &mut self.rate_iops };
                value::per_kind(text, rates, |t| value::bytes(t, kb))?;
                self.rate_at = Some((at.clone(), key));
            }
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
            // An engine may carry a path after a colon.
            "ioengine" => self.engine = Some(lists::engine(text.split(':').next().unwrap_or_default())?),
            "verify" => self.verify = (**text != *"0").then(|| Set::new((), at, key)),
            _ => unreachable!("option {key} is listed as used"),
        }
        Ok(())
    }

    /// Sets the share of writes, or of reads.
    fn mix(&mut self, write: bool, percent: u8, at: &At, notes: &mut Notes) {
        self.mix_set[usize::from(write)] = Some(percent);
        if let [Some(r), Some(w)] = self.mix_set
            && r + w != 100
        {
            notes.add("mix", at, || {
                format!("rwmixread {r} and rwmixwrite {w} do not sum to 100; the later one counts, as in fio")
            });
        }
        self.mix_read = if write { 100 - percent } else { percent };
    }
}

/// The name of a file or directory, which has to be one.
fn path(text: &Arc<str>, several: &str) -> Result<Arc<str>, String> {
    match () {
        () if text.contains(':') => Err(several.to_owned()),
        () if text.len() > MAX_PATH => Err(format!("the name is longer than {MAX_PATH} bytes")),
        () => Ok(text.clone()),
    }
}
