// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares policies of host memory: every policy with every size of memory on every trace, and the optimum. It makes
//! no run itself; [`crate::replay`] does.

mod belady;
mod builtin;
mod launches;
mod plan;

use crate::figures::counter;
use crate::question::{self, Answer, AskError, Done, Point, Question};
use crate::replay::{Mode, Replay, ReplayCase, ReplayOptions, ReplayVariant};
use crate::unused_hpb;
use belady::optimum;
pub use builtin::{NAME as BUILTIN, applications};
pub use launches::Launched;
use launches::add_launches;
use plan::PlannedProtocol;
pub use plan::PoliciesPlan;
use readpath_config::experiment::{Layout, Variant};
use readpath_config::{ConfigFileError, DevicePreset, GivenKey};
use readpath_device::DeviceConfig;
use readpath_host::{ManagedPolicy, PolicyChoice};
use readpath_kit::Histogram;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Document, Error, Metric, Note, Origin};
use readpath_run::PhaseOutput;
use readpath_workload::IoKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Which reads can carry entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HPB 1.0: reads of one block.
    V1,
    /// HPB 2.0: reads of up to 32 KiB with the entry of their first block, as Linux 6.1 sends them; this host's own
    /// policies send longer ones too, behind a pre-request with all entries, one of them only where that pays.
    V2,
}

impl Protocol {
    const ALL: [Protocol; 2] = [Protocol::V1, Protocol::V2];

    fn planned(self) -> &'static PlannedProtocol {
        &PoliciesPlan::builtin().protocol[self as usize]
    }

    /// Keys of the protocol, in addition to policy and memory.
    fn keys(self, policy: PolicyChoice) -> BTreeMap<&'static String, &'static String> {
        let planned = self.planned();
        let own = policy.managed().is_some().then_some(&planned.set_for_own_policies);
        let this = planned.set_for_policy.get(policy.name());
        planned.set.iter().chain(own.into_iter().flatten()).chain(this.into_iter().flatten()).collect()
    }
}

/// A policy with one size of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// The policy.
    pub policy: PolicyChoice,
    /// Host memory, everything included.
    pub memory_mib: u64,
    /// Which reads can carry entries.
    pub protocol: Protocol,
}

impl Contender {
    /// All contenders.
    pub fn all() -> Vec<Contender> {
        let mut all = Vec::new();
        for (protocol, memory_mib) in Contender::groups() {
            all.extend(PolicyChoice::ALL.map(|policy| Contender { policy, memory_mib, protocol }));
        }
        all
    }

    /// What is compared with each other: protocols, and for each the sizes of memory.
    fn groups() -> impl Iterator<Item = (Protocol, u64)> {
        let sizes = &PoliciesPlan::builtin().memory_mib;
        Protocol::ALL.into_iter().flat_map(|protocol| sizes.iter().map(move |&memory_mib| (protocol, memory_mib)))
    }

    fn is_of(&self, group: (Protocol, u64)) -> bool {
        (self.protocol, self.memory_mib) == group
    }

    /// The name of its variant.
    pub fn name(&self) -> String {
        name(self.policy.name(), (self.protocol, self.memory_mib))
    }

    /// Its variant of an experiment.
    fn of_experiment(&self) -> Result<Variant, ConfigFileError> {
        let origin = "reproduce policies";
        let mut keys = vec![
            GivenKey::new("policy", self.policy.name(), origin),
            GivenKey::new("memory_mib", self.memory_mib.to_string(), origin),
        ];
        keys.extend(self.protocol.keys(self.policy).into_iter().map(|(key, value)| GivenKey::new(key, value, origin)));
        Variant::of_keys(&self.name(), &keys)
    }

    /// Device and host.
    pub fn on(&self, preset: &DevicePreset) -> Result<ReplayVariant, ConfigFileError> {
        ReplayVariant::new(&self.of_experiment()?, preset)
    }
}

fn name(policy: &str, (protocol, memory_mib): (Protocol, u64)) -> String {
    match protocol.planned().name.as_str() {
        "" => format!("{policy}, {memory_mib} MiB"),
        protocol => format!("{policy}, {protocol}, {memory_mib} MiB"),
    }
}

/// Figures of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyFigures {
    ios: u64,
    /// Map pages read from flash in all, and those of them for HPB READ BUFFER.
    map_loads: f64,
    read_buffer_map_loads: f64,
    read_mean_us: f64,
    /// Time until all applications have started, if that is what was measured.
    start_up_s: Option<f64>,
    counters: Vec<(Metric, u64)>,
    /// Bytes of host memory: at most, and of tables.
    memory_bytes: u64,
    table_bytes: u64,
}

impl PolicyFigures {
    fn of<'a>(ios: u64, phases: impl IntoIterator<Item = &'a PhaseOutput>) -> Self {
        let mut figures = PolicyFigures {
            ios,
            map_loads: 0.0,
            read_buffer_map_loads: 0.0,
            read_mean_us: 0.0,
            start_up_s: None,
            counters: Vec::new(),
            memory_bytes: 0,
            table_bytes: 0,
        };
        let mut latency = Histogram::default();
        for phase in phases {
            let memory = phase.memory.unwrap_or_default();
            (figures.memory_bytes, figures.table_bytes) = (memory.peak_bytes + memory.table_bytes, memory.table_bytes);
            figures.map_loads += (phase.device.map_loads + phase.device.buffer_map_loads) as f64;
            figures.read_buffer_map_loads += phase.device.buffer_map_loads as f64;
            phase.stats.jobs.iter().for_each(|j| latency.merge(&j.of(IoKind::Read).latency));
            let Some(hpb) = &phase.hpb else { continue };
            let linux = [
                (metric::HIT_CNT, hpb.hit_cnt),
                (metric::MISS_CNT, hpb.miss_cnt),
                (metric::MAP_REQ_CNT, hpb.map_req_cnt),
            ];
            let own = hpb.managed_by_name().map(|(name, count)| (counter(name), count));
            let counted = linux.into_iter().chain(own);
            if figures.counters.is_empty() {
                figures.counters = counted.collect();
            } else {
                figures.counters.iter_mut().zip(counted).for_each(|(sum, (_, more))| sum.1 += more);
            }
        }
        if latency.count() > 0 {
            figures.read_mean_us = latency.mean() / 1e3;
        }
        figures
    }
}

/// The figures of a policy, and its variant.
struct Shown<'a> {
    policy: PolicyChoice,
    variant: String,
    figures: &'a PolicyFigures,
}

impl Deref for Shown<'_> {
    type Target = PolicyFigures;

    fn deref(&self) -> &PolicyFigures {
        self.figures
    }
}

/// Policies side by side, as a question.
pub struct Policies {
    contenders: Vec<(Contender, Arc<ReplayVariant>)>,
    cases: Vec<Arc<ReplayCase>>,
    launched: Launched,
    notes: Vec<Note>,
    points: Vec<Point>,
}

impl Policies {
    /// All `contenders` on all `cases`, and `launched`. `notes` say what was left out.
    pub fn new(
        contenders: Vec<(Contender, ReplayVariant)>,
        cases: Vec<ReplayCase>,
        launched: Launched,
        encoded: bool,
        notes: Vec<Note>,
    ) -> Self {
        let contenders: Vec<_> = contenders.into_iter().map(|(c, variant)| (c, Arc::new(variant))).collect();
        let cases: Vec<_> = cases.into_iter().map(Arc::new).collect();
        let variants: Vec<_> = contenders.iter().map(|(_, variant)| variant.clone()).collect();
        let seed = PoliciesPlan::builtin().seed;
        let options = ReplayOptions { mode: Mode::Timed, layout: Layout::Sequential, seed, encoded, over_time: false };
        let replays = Replay::all(&cases, &variants, &options).into_iter().map(Point::Replay);
        let launches = launched.plans.iter().map(|plan| Point::Workload(Box::new(plan.clone())));
        let points = replays.chain(launches).collect();
        Policies { contenders, cases, launched, notes, points }
    }

    /// Notes on the parts that were left out.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl Question for Policies {
    type Figures = PolicyFigures;

    fn title(&self) -> String {
        PoliciesPlan::builtin().title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: question::Shown<'_>) -> Result<PolicyFigures, Error> {
        Ok(match shown {
            question::Shown::Replay(_, run) => {
                let ios = run.phases.iter().map(|p| p.output.stats.ios).sum();
                PolicyFigures::of(ios, run.phases.last().map(|p| &p.output))
            }
            question::Shown::Workload(_, output) => launches::figures(&output),
            _ => unreachable!("points are replays and launches"),
        })
    }

    fn answer(&self, done: &[Done<PolicyFigures>]) -> Result<Answer, AskError> {
        let done: Vec<&PolicyFigures> = done.iter().flatten().collect();
        let (replays, launches) = done.split_at(self.cases.len() * self.contenders.len());
        let mut doc = document(&self.cases, &self.contenders, replays)?;
        add_launches(&mut doc, &self.launched, launches)?;
        doc.seed = PoliciesPlan::builtin().seed;
        doc.notes.extend(self.notes.iter().cloned());
        Ok(Answer::new(doc, done.len()))
    }
}

/// The document of `runs`, which are those of all `contenders` on all `cases`, case by case.
fn document(
    cases: &[Arc<ReplayCase>],
    contenders: &[(Contender, Arc<ReplayVariant>)],
    runs: &[&PolicyFigures],
) -> Result<Document, Error> {
    let mut doc = Document::new("policies", &PoliciesPlan::builtin().title);
    doc.description =
        "Policies of host memory for HPB at equal memory, tables included. Map loads are all map pages that the device \
                       read from flash, for translation and for HPB READ BUFFER."
            .to_owned();
    if let Some((_, variant)) = contenders.first() {
        doc.configuration = json!({
            "device": serde_json::to_value(variant.preset.echo()).unwrap_or(serde_json::Value::Null),
            "memory_mib": PoliciesPlan::builtin().memory_mib,
            "cases": cases.iter().map(|c| c.name.clone()).collect::<Vec<_>>(),
        });
    }
    doc.read_from(cases.iter().flat_map(|c| &c.inputs));
    cases.iter().flat_map(|c| &c.notes).for_each(|note| doc.note(note.clone()));
    for (i, case) in cases.iter().enumerate() {
        let of_case = &runs[i * contenders.len()..][..contenders.len()];
        for group in Contender::groups() {
            let of_group = contenders.iter().zip(of_case).filter(|((c, _), _)| c.is_of(group));
            let shown: Vec<Shown> = of_group
                .map(|((c, variant), figures)| Shown { policy: c.policy, variant: variant.name.clone(), figures })
                .collect();
            rows(&mut doc, &case.name, &shown)?;
            let device = contenders.iter().find(|(c, _)| c.is_of(group)).map(|(_, v)| &v.preset.device);
            best(&mut doc, &case.name, group, &shown, |map_bytes| {
                let ios = case.trace.ios.iter().map(|io| (io.kind, io.block, io.blocks));
                bounds(&Reads::of(ios), device?, map_bytes)
            })?;
        }
    }
    for (_, variant) in contenders {
        unused_hpb::note(&mut doc, &variant.name, &variant.preset, &variant.host, &[]);
    }
    doc.simulated_ios = runs.iter().map(|run| run.ios).sum();
    doc.remark(
        "HPBvalve (FAST 2023) reports, against host control mode on a telephone, up to 78 % fewer misses and up to 43 \
         % shorter launches; it is told which application runs.",
    );
    Ok(doc)
}

fn percent(new: f64, old: f64) -> Option<f64> {
    (old > 0.0).then(|| 100.0 * (new - old) / old)
}

/// The figures of all policies with the same memory, and against Linux's two.
fn rows(doc: &mut Document, case: &str, all: &[Shown]) -> Result<(), Error> {
    let of = |policy| all.iter().find(|s| s.policy == policy);
    let (dcm, hcm) = (of(PolicyChoice::LinuxDcm), of(PolicyChoice::LinuxHcm));
    for shown in all {
        let against = |metrics: [Metric; 2], of: fn(&Shown) -> Option<f64>| {
            let bases = metrics.into_iter().zip([dcm, hcm]);
            bases.filter_map(move |(metric, base)| Some((metric, percent(of(shown)?, of(base?)?)?)))
        };
        let mut figures: Vec<(Metric, f64)> =
            shown.start_up_s.map(|s| (metric::START_UP_TIME, s)).into_iter().collect();
        figures.extend(against([metric::START_UP_AGAINST_DCM, metric::START_UP_AGAINST_HCM], |s| s.start_up_s));
        figures.push((metric::MAP_LOADS, shown.map_loads));
        figures.push((metric::READ_BUFFER_MAP_LOADS, shown.read_buffer_map_loads));
        figures.extend(against([metric::MAP_LOADS_AGAINST_DCM, metric::MAP_LOADS_AGAINST_HCM], |s| Some(s.map_loads)));
        figures.push((Requests::Read.of(Figure::LatencyMean), shown.read_mean_us));
        let latency = [metric::READ_LATENCY_AGAINST_DCM, metric::READ_LATENCY_AGAINST_HCM];
        figures.extend(against(latency, |s| Some(s.read_mean_us)));
        figures.extend(shown.counters.iter().map(|(metric, count)| (metric.clone(), *count as f64)));
        figures.push((metric::HOST_MEMORY, shown.memory_bytes as f64));
        doc.predicted(case, &shown.variant, figures)?;
    }
    Ok(())
}

/// What is possible at best with the memory that `lru` leaves for maps, and a sentence on who came closest.
fn best(
    doc: &mut Document,
    case: &str,
    group: (Protocol, u64),
    all: &[Shown],
    bounds: impl FnOnce(u64) -> Option<Bounds>,
) -> Result<(), Error> {
    let of = |policy: PolicyChoice| all.iter().find(|s| s.policy == policy);
    let Some(lru) = of(PolicyChoice::Managed(ManagedPolicy::Lru)) else { return Ok(()) };
    let (protocol, memory_mib) = group;
    if let Some(bounds) = bounds((memory_mib << 20).saturating_sub(lru.table_bytes)) {
        // With HPB 2.0 long reads carry entries too.
        let long = (protocol == Protocol::V1).then_some(("long reads alone", bounds.long));
        for (name_of, loads) in [("optimum", bounds.all)].into_iter().chain(long) {
            let variant = name(name_of, group);
            doc.row(case, &variant, metric::MAP_LOADS, loads as f64, Origin::Predicted)?;
        }
    }
    let (Some(dcm), Some(hcm)) = (of(PolicyChoice::LinuxDcm), of(PolicyChoice::LinuxHcm)) else { return Ok(()) };
    let slower_percent = PoliciesPlan::builtin().slower_percent;
    let not_slower = |s: &&Shown| s.read_mean_us <= dcm.read_mean_us * (1.0 + slower_percent / 100.0);
    let own = all.iter().filter(|s| s.policy.managed().is_some());
    let best = own.filter(not_slower).min_by(|a, b| a.map_loads.total_cmp(&b.map_loads));
    let sentence = match best {
        Some(s) => format!(
            "{} has the fewest map loads of those that are at most {slower_percent} % slower than linux-dcm: {}, \
             {:+.1} % against linux-hcm, {:+.1} % against linux-dcm; mean read latency {:+.2} % against linux-dcm, \
             {:+.2} % against linux-hcm",
            s.policy.name(),
            s.map_loads,
            percent(s.map_loads, hcm.map_loads).unwrap_or(0.0),
            percent(s.map_loads, dcm.map_loads).unwrap_or(0.0),
            percent(s.read_mean_us, dcm.read_mean_us).unwrap_or(0.0),
            percent(s.read_mean_us, hcm.read_mean_us).unwrap_or(0.0),
        ),
        None => format!("no policy of Readpath's host is at most {slower_percent} % slower than linux-dcm"),
    };
    doc.remark(format!("{}: {sentence}.", name(case, group)));
    Ok(())
}

/// Least numbers of map pages read from flash.
struct Bounds {
    /// For all reads: places are the maps that the host has room for and the frames of the device's map cache.
    all: u64,
    /// For the reads of more than one block alone, for which an HPB READ of one block is no help: places are the
    /// frames.
    long: u64,
}

/// Reads in order: first block and how many.
struct Reads(Vec<(u32, u16)>);

impl Reads {
    /// The reads among requests, each a kind, a first block and a number of blocks.
    fn of(ios: impl Iterator<Item = (IoKind, u32, u16)>) -> Reads {
        Reads(ios.filter(|io| io.0 == IoKind::Read).map(|io| (io.1, io.2)).collect())
    }

    /// The maps of `blocks` blocks each that reads of at least `least` blocks touch.
    fn maps(&self, blocks: u32, least: u16) -> Vec<u32> {
        let reads = self.0.iter().filter(|(_, n)| *n >= least);
        reads.flat_map(|&(block, n)| block / blocks..(block + u32::from(n)).div_ceil(blocks)).collect()
    }
}

/// The bounds for reads, their map in flash as they begin. None, if a map page is not that of a sub-region.
fn bounds(reads: &Reads, device: &DeviceConfig, map_bytes: u64) -> Option<Bounds> {
    let hpb = device.hpb.as_ref()?;
    // Sizes are powers of two in sectors of 512 bytes; a block has eight. An entry of the map in flash has 4 bytes.
    let blocks = 1u32 << (hpb.sub_region_size.checked_sub(3)?);
    if device.map_page_bytes / 4 != blocks {
        return None;
    }
    // Entries of 8 bytes on the host, and a bit for each.
    let maps = map_bytes / (u64::from(blocks) * 8 + u64::from(blocks).div_ceil(8));
    let frames = (device.map_cache_bytes / device.map_page_bytes) as usize;
    let optimum = |least: u16, places: usize| optimum(&reads.maps(blocks, least), places);
    Some(Bounds { all: optimum(1, maps as usize + frames), long: optimum(2, frames) })
}
