// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of one job's options, and what follows from them for its stream of requests. Knows no option as text, no
//! sections and no places of files.

use std::sync::Arc;

use readpath_kit::{BLOCK_BYTES, Ns};

use super::JobError;
use super::lexer::{At, MAX_NAME};
use super::lists::{Engine, Mode, Pattern};
use super::value::Amount;
use crate::{Ends, IoKind, Kinds, Latencies, Offsets, Sizes, Stride};

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
    pub(super) fn error(&self, message: impl Into<String>) -> JobError {
        JobError { key: Some(self.key.into()), ..self.at.error(message) }
    }
}

/// Values of `zonemode=zbd`.
#[derive(Clone, Default)]
pub(super) struct ZbdSettings {
    /// Place of `zonemode`, if it is this mode.
    pub on: Option<Set<()>>,
    pub most_open: Option<Set<u32>>,
    pub job_most_open: Option<Set<u32>>,
    pub threshold: Option<Set<f64>>,
    pub frequency: Option<Set<f64>>,
    pub read_beyond_wp: Option<Set<()>>,
}

/// All values of one job.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub pattern: Pattern,
    /// 4 KiB unless set.
    pub sizes: [Option<Sizes>; 3],
    pub split: [Option<Sizes>; 3],
    pub size: Option<Set<Amount>>,
    pub io_size: Option<Set<Amount>>,
    pub filesize: Option<Set<u64>>,
    pub offset: Option<Set<Amount>>,
    pub offset_increment: Option<Set<Amount>>,
    pub filename: Option<Set<Arc<str>>>,
    pub filename_format: Option<Arc<str>>,
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
    pub mix_read: u8,
    pub mix_set: [Option<u8>; 2],
    pub random_percent: [u8; 3],
    pub distribution: [Option<Offsets>; 3],
    pub norandommap: bool,
    pub randseed: Option<u64>,
    pub think_time: Ns,
    pub think_every: u32,
    /// Weight; 0 for none.
    pub flow: u32,
    pub flow_id: u32,
    pub flow_sleep: Ns,
    pub rate: [u64; 3],
    pub rate_iops: [u64; 3],
    /// Place of the later of the two options.
    pub rate_at: Option<Set<()>>,
    /// Bytes that random places are multiples of; unset where it is the shortest request.
    pub align: Option<Set<[Option<u64>; 3]>>,
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
    pub verify_backlog: u64,
    /// Bytes used of a zone, its whole length unless that is the same, and the gap behind it.
    pub strided: bool,
    pub zone: [Option<Set<u64>>; 3],
    pub zbd: ZbdSettings,
    pub fill: bool,
    pub exitall: bool,
    pub exit_what: Ends,
    pub wait_for: Option<Set<Arc<str>>>,
    pub poisson: bool,
    pub description: Option<Arc<str>>,
    pub percentiles: Arc<[f64]>,
    pub latencies: Latencies,
    pub kb_base: u64,
}

impl Settings {
    /// fio's defaults.
    pub(super) fn new(at: &At) -> Settings {
        Settings {
            numjobs: 1,
            iodepth: Set { value: 1, at: at.clone(), key: "iodepth" },
            loops: Set { value: 1, at: at.clone(), key: "loops" },
            mix_read: 50,
            random_percent: [100; 3],
            think_every: 1,
            do_verify: true,
            exit_what: Ends::Group,
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

    /// Whether the job reads back what it has written.
    pub(super) fn reads_back(&self) -> bool {
        self.verify.is_some() && self.do_verify && self.writes()
    }

    /// Whether the job runs until its time is over.
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

    /// Bytes of the shortest request of each kind.
    pub(super) fn shortest(&self) -> [u64; 3] {
        self.lengths().map(|sizes| u64::from(sizes.min()) * u64::from(BLOCK_BYTES))
    }

    /// The zones of `zonemode=strided`, in bytes that are whole blocks.
    ///
    /// # Errors
    /// They are not given in full, or the job does not go through them in order.
    pub(super) fn stride(&self) -> Result<Option<Stride>, JobError> {
        if self.zbd.on.is_some() {
            return Ok(None);
        }
        let [used, length, gap] = &self.zone;
        let given = self.zone.iter().flatten().next();
        let (used, at) = match (self.strided, used, given) {
            (false, _, None) => return Ok(None),
            (false, _, Some(zone)) => {
                return Err(zone.error("zonesize, zonerange and zoneskip need zonemode=strided or zbd"));
            }
            (true, Some(used), _) => (used.value, used),
            (true, None, Some(zone)) => return Err(zone.error("zonemode=strided: zonesize is missing")),
            (true, None, None) => return Ok(None),
        };
        if self.pattern.random || self.used().len() > 1 {
            return Err(at.error("zonemode=strided is modelled for sequential jobs of one kind only; leave it out"));
        }
        let value = |zone: &Option<Set<u64>>| zone.as_ref().map(|zone| zone.value);
        let step = value(length).unwrap_or(used).saturating_add(value(gap).unwrap_or(0));
        let blocks = |bytes: u64| u32::try_from(bytes / u64::from(BLOCK_BYTES)).ok();
        let whole = self.zone.iter().flatten().all(|zone| zone.value.is_multiple_of(u64::from(BLOCK_BYTES)));
        match (blocks(used), blocks(step)) {
            (Some(used), Some(step)) if used > 0 && whole => Ok(Some(Stride { used, step })),
            _ => Err(
                at.error(format!("zonesize, zonerange and zoneskip must be multiples of {BLOCK_BYTES}, below 16 TiB"))
            ),
        }
    }

    /// Bytes per second and kind; 0 for no bound. As in fio, requests per second count the shortest request.
    ///
    /// # Errors
    /// fio takes only one of the two options.
    pub(super) fn rates(&self) -> Result<[u64; 3], JobError> {
        let Some(set) = &self.rate_at else { return Ok([0; 3]) };
        let wrong = |message: &str| set.error(format!("{}: {message}", set.key));
        if self.rate != [0; 3] && self.rate_iops != [0; 3] {
            return Err(wrong("rate and rate_iops exclude each other, as in fio"));
        }
        let shortest = self.shortest();
        let mut rates = self.rate;
        for (kind, rate) in rates.iter_mut().enumerate() {
            let bytes = self.rate_iops[kind].checked_mul(shortest[kind]);
            *rate = (*rate).max(bytes.ok_or_else(|| wrong("the rate does not fit into 64 bits"))?);
        }
        Ok(rates)
    }
}

/// The name of a job, unless it is too long.
pub(super) fn check_name(text: &Arc<str>) -> Result<Arc<str>, String> {
    if text.len() > MAX_NAME { Err(format!("the name is longer than {MAX_NAME} bytes")) } else { Ok(text.clone()) }
}

/// The name of one file or directory; `several` is the error for a list. As in fio, a backslash before a colon makes it
/// part of the name.
pub(super) fn path(text: &str, several: &str) -> Result<Arc<str>, String> {
    let parts: Vec<&str> = text.split("\\:").collect();
    match () {
        () if parts.iter().any(|part| part.contains(':')) => Err(several.to_owned()),
        () if text.len() > MAX_PATH => Err(format!("the name is longer than {MAX_PATH} bytes")),
        () => Ok(parts.join(":").into()),
    }
}
