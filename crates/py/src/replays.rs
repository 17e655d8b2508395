// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays of block traces, with the main options of `readpath replay`.

use crate::failure::Failure;
use crate::files::{process, read_text};
use crate::given::{Choice, Host};
use crate::reading::{Reading, wrong};
use crate::runs::Shown;
use pyo3::FromPyObject;
use rayon::ThreadPoolBuilder;
use readpath_config::GivenKey;
use readpath_config::experiment::{Layout, Variant};
use readpath_kit::Ns;
use readpath_lab::beforehand;
use readpath_lab::experiment::Shared;
use readpath_lab::replay::{LONGEST, Mode, ReplayCase, ReplayOptions, ReplayTexts, ReplayVariant, document, run_all};
use readpath_results::{Note, NoteKind, Process};
use readpath_run::LUN;
use readpath_workload::trace::{Fit, Loaded, Prepare, Speed};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests of a trace to the device at most; they take 16 bytes each.
const MAX_IOS: usize = 1 << 28;

/// How traces are replayed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct How {
    before: Vec<PathBuf>,
    /// Queue depth, or none where requests come at their times.
    iodepth: Option<u32>,
    speed: Option<f64>,
    max_idle_ms: Option<f64>,
    fold: bool,
    spread_ties: bool,
    map_cache_kib: Vec<u64>,
    reading: Reading,
}

impl How {
    fn mode(&self) -> Result<Mode, Failure> {
        let Some(iodepth) = self.iodepth else { return Ok(Mode::Timed) };
        if !(1..=65_535).contains(&iodepth) {
            return Err(Failure::Wrong(format!("iodepth: is {iodepth}; expected a whole number from 1 to 65535")));
        }
        if self.speed.is_some() || self.max_idle_ms.is_some() || self.spread_ties {
            let message = "speed, max_idle_ms and spread_ties change times, which do not count with iodepth";
            return Err(Failure::Wrong(message.into()));
        }
        Ok(Mode::Closed { iodepth })
    }

    fn prepare(&self, blocks: u32) -> Result<Prepare, Failure> {
        let idle = self.max_idle_ms.map(|ms| match (0.0..=1e9).contains(&ms) {
            true => Ok(Ns((ms * 1e6) as u64)),
            false => Err(Failure::Wrong(format!("max_idle_ms: is {ms}; expected 0 to 1000000000"))),
        });
        let speed = self.speed.map(|x| Speed::parse(&x.to_string()));
        Ok(Prepare {
            fit: if self.fold { Fit::Fold } else { Fit::Refuse },
            max_idle: idle.transpose()?,
            speed: speed.transpose().map_err(|e| Failure::Wrong(format!("speed: {e}")))?.unwrap_or(Speed::RECORDED),
            // The host's driver splits what is too long for a command.
            max_blocks: u16::MAX,
            ..Prepare::new(blocks)
        })
    }
}

/// Every map cache with every mode of HPB, which alternates fastest.
fn variants(host: &Host, map_cache_kib: &[u64]) -> Result<Vec<Variant>, Failure> {
    let caches: Vec<Option<u64>> = match map_cache_kib {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut made = Vec::new();
    for cache in caches {
        for (name, word) in host.modes()? {
            let mut keys = vec![GivenKey::new("hpb", *word, "hpb")];
            let mut name = (*name).to_owned();
            if let Some(kib) = cache {
                let size = if kib.is_multiple_of(1024) { format!("{} MiB", kib >> 10) } else { format!("{kib} KiB") };
                name = format!("{name}, map cache {size}");
                keys.push(GivenKey::new("map_cache.size_kib", kib.to_string(), "map_cache_kib"));
            }
            made.push(Variant::of_keys(&name, &keys).map_err(|e| Failure::of(&e))?);
        }
    }
    Ok(made)
}

struct Read {
    trace: Arc<Loaded>,
    warnings: Vec<Note>,
    notes: Vec<Note>,
}

fn load(path: &Path, how: &How, prepare: Prepare, shared: &Shared) -> Result<Read, Failure> {
    let name = path.display().to_string();
    let reader = how.reading.open(path, prepare.within(), shared)?;
    let mut replay = prepare.requests(&name, reader).map_err(|e| Failure::of(&e))?;
    let mut loaded = Loaded::load_if(&mut replay, MAX_IOS, |_| Ok(())).map_err(|e| wrong(&e, shared))?;
    if loaded.ios.is_empty() {
        return Err(Failure::Wrong(format!("{name}: no request is left to replay")));
    }
    let reader = replay.into_inner();
    let mut warnings = Vec::new();
    if how.spread_ties {
        loaded.spread_ties(reader.summary().stamps.spread(), prepare.speed);
    } else if how.iodepth.is_none() {
        warnings.extend(reader.coarse_times(&name, "spread_ties spreads them").map(Note::remark));
    }
    let altered = loaded.prepared.altered();
    warnings.extend(altered.map(|text| Note::new(NoteKind::Altered, format!("{name}: {text}"))));
    let prepared = loaded.prepared.warnings().into_iter().map(|text| format!("{name}: {text}"));
    let notes = prepared.chain(reader.notes(&name)).map(Note::remark).collect();
    Ok(Read { trace: Arc::new(loaded), warnings, notes })
}

/// Replays a trace on each variant of a device.
pub fn replay(
    path: &Path,
    device: &str,
    how: &How,
    host: &Host,
    choice: &Choice,
    shared: &Shared,
) -> Result<Shown, Failure> {
    let started = process();
    let mode = how.mode()?;
    let layout = host.layout()?.unwrap_or(Layout::Sequential);
    let set = choice.overrides()?;
    let base = readpath_config::device::load(device, &read_text).and_then(|preset| preset.with_overrides(&set));
    let base = base.map_err(|e| Failure::of(&e))?;
    let made = variants(host, &how.map_cache_kib)?;
    let variants = made.iter().map(|variant| ReplayVariant::new(variant, &base)).collect::<Result<Vec<_>, _>>();
    let variants = variants.map_err(|e| Failure::of(&e))?;
    let blocks = base.device.lus[usize::from(LUN)].blocks;
    let prepare = how.prepare(blocks)?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    beforehand::variants(&name, &variants).map_err(|e| Failure::of_runs(&e))?;
    let before = how.before.iter().map(|path| load(path, how, prepare, shared)).collect::<Result<Vec<_>, _>>()?;
    let read = load(path, how, prepare, shared)?;
    let phases = before.iter().map(|read| read.trace.clone()).collect();
    let mut case = ReplayCase::new(&name, phases, read.trace.clone(), blocks);
    let reads: Vec<&Read> = [&read].into_iter().chain(&before).collect();
    case.notes = reads.iter().flat_map(|read| read.warnings.clone()).collect();
    case.notes.extend(reads.iter().flat_map(|read| read.notes.clone()));
    case.notes.extend(case.preload_note());
    if mode == Mode::Timed && case.span() > LONGEST {
        let message = "cut pauses with max_idle_ms, or make it faster with speed";
        return Err(Failure::Wrong(format!(
            "{name}: takes {} of virtual time, more than {LONGEST}; {message}",
            case.span()
        )));
    }
    let options = ReplayOptions { mode, layout, seed: host.seed, encoded: false, over_time: true };
    let mut pool = ThreadPoolBuilder::new();
    if let Some(threads) = choice.threads {
        pool = pool.num_threads(threads.min(variants.len()).max(1));
    }
    let pool = pool.build().map_err(|e| Failure::of(&e))?;
    let cases = [case];
    let runs = pool.install(|| run_all(&cases, &variants, &options, shared));
    let (runs, failures) = runs.map_err(|e| Failure::of_runs(&e))?;
    let texts = ReplayTexts {
        title: format!("Replay of {name}"),
        description: format!("Simulated on the device '{device}'."),
        settings: serde_json::json!({ "files": [path], "precondition": how.before, "fold": how.fold }),
    };
    let mut doc = document(&texts, &cases, &variants, &options, &runs).map_err(|e| Failure::of(&e))?;
    let missing: Vec<String> = failures.iter().map(ToString::to_string).collect();
    doc.notes.extend(missing.iter().map(|what| Note::new(NoteKind::Incomplete, what)));
    let Process { cpu_seconds, peak_rss_bytes } = process();
    doc.process = Process { cpu_seconds: cpu_seconds - started.cpu_seconds, peak_rss_bytes };
    let json = doc.to_json_pretty().map_err(|e| Failure::of(&e))?;
    let missing = missing.into_iter().next().map(|first| format!("results are incomplete: {first}"));
    Ok(Shown { json, missing })
}
