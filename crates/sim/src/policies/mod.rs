// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory side by side: every policy with every size of memory on every trace, beside what is possible at
//! best. It makes no run itself; [`crate::replay`] does.

mod belady;
mod builtin;

use crate::replay::{ReplayCase, ReplayRun, ReplayVariant};
use belady::optimum;
pub use builtin::{NAME as BUILTIN, applications};
use readpath_device::DeviceConfig;
use readpath_host::{ManagedPolicy, PolicyChoice};
use readpath_results::{Document, Error, Origin};
use readpath_stack::config::experiment::Variant;
use readpath_stack::config::{ConfigFileError, DevicePreset, GivenKey};
use readpath_workload::IoKind;
use serde_json::json;

/// Sizes of host memory that are compared, in MiB.
pub const MEMORY_MIB: [u64; 3] = [8, 16, 32];
/// A policy may be so much slower than `linux-dcm`, in percent, to be called better.
const SLOWER_PERCENT: f64 = 2.0;

/// A policy with so much memory.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The policy.
    pub policy: PolicyChoice,
    /// Host memory, everything included.
    pub memory_mib: u64,
    /// Device and host.
    pub variant: ReplayVariant,
}

/// All policies with all sizes on a device.
///
/// # Errors
/// When the device does not offer a control mode.
pub fn contenders(preset: &DevicePreset) -> Result<Vec<Contender>, ConfigFileError> {
    let mut list = Vec::new();
    for memory_mib in MEMORY_MIB {
        for policy in PolicyChoice::ALL {
            let origin = "reproduce policies";
            let keys = [
                GivenKey::new("policy", policy.name(), origin),
                GivenKey::new("memory_mib", memory_mib.to_string(), origin),
            ];
            let variant = Variant::of_keys(&name(policy.name(), memory_mib), &keys)?;
            list.push(Contender { policy, memory_mib, variant: ReplayVariant::new(&variant, preset)? });
        }
    }
    Ok(list)
}

fn name(policy: &str, memory_mib: u64) -> String {
    format!("{policy}, {memory_mib} MiB")
}

/// What one run showed that is compared.
#[derive(Clone, Copy)]
struct Figures {
    map_loads: f64,
    read_mean_us: f64,
}

fn figures(run: &ReplayRun) -> Figures {
    let output = run.phases.last().map(|p| &p.output);
    let reads = output.and_then(|o| o.stats.jobs.first()).map(|j| j.of(IoKind::Read));
    Figures {
        map_loads: output.map_or(0, |o| o.device.map_loads + o.device.buffer_map_loads) as f64,
        read_mean_us: reads.map_or(0.0, |r| r.latency.mean() / 1e3),
    }
}

/// The document of `runs`, which are those of all `contenders` on all `cases`, without what depends on the machine.
///
/// # Errors
/// A figure that is not finite.
pub fn document(
    title: &str,
    cases: &[ReplayCase],
    contenders: &[Contender],
    runs: &[ReplayRun],
) -> Result<Document, Error> {
    let mut doc = Document::new("policies", title);
    doc.description =
        "Policies of host memory for HPB at equal memory, tables included. Map loads are all map pages that \
                       the device read from flash, for translation and for HPB READ BUFFER."
            .to_owned();
    if let Some(c) = contenders.first() {
        doc.configuration = json!({
            "device": serde_json::to_value(c.variant.preset.echo()).unwrap_or(serde_json::Value::Null),
            "memory_mib": MEMORY_MIB,
            "cases": cases.iter().map(|c| c.name.clone()).collect::<Vec<_>>(),
        });
    }
    for note in cases.iter().flat_map(|c| &c.notes) {
        if !doc.notes.contains(note) {
            doc.notes.push(note.clone());
        }
    }
    for (i, case) in cases.iter().enumerate() {
        let of_case: Vec<&ReplayRun> = runs.iter().filter(|r| r.case == i).collect();
        for memory_mib in MEMORY_MIB {
            let of_size: Vec<(&Contender, &ReplayRun)> = of_case
                .iter()
                .map(|r| (&contenders[r.variant], *r))
                .filter(|(c, _)| c.memory_mib == memory_mib)
                .collect();
            rows(&mut doc, case, &of_size)?;
            best(&mut doc, case, memory_mib, &of_size)?;
        }
    }
    for run in runs {
        doc.simulated_ios += run.phases.iter().map(|p| p.output.stats.ios).sum::<u64>();
    }
    doc.notes.push(
        "HPBvalve (FAST 2023) reports, against host control mode on a telephone, up to 78 % fewer misses and up to 43 % \
         shorter launches; it is told which application runs."
            .to_owned(),
    );
    Ok(doc)
}

fn percent(new: f64, old: f64) -> Option<f64> {
    (old > 0.0).then(|| 100.0 * (new - old) / old)
}

/// The figures of all policies with the same memory, and against Linux's two.
fn rows(doc: &mut Document, case: &ReplayCase, runs: &[(&Contender, &ReplayRun)]) -> Result<(), Error> {
    let of = |policy| runs.iter().find(|(c, _)| c.policy == policy).map(|(_, r)| figures(r));
    let (dcm, hcm) = (of(PolicyChoice::LinuxDcm), of(PolicyChoice::LinuxHcm));
    for (contender, run) in runs {
        let Some(output) = run.phases.last().map(|p| &p.output) else { continue };
        let mut add = |metric: &str, unit: &str, value: f64| {
            doc.row(&case.name, &contender.variant.name, metric, unit, value, Origin::Predicted).map(drop)
        };
        let Figures { map_loads, read_mean_us } = figures(run);
        add("map_loads", "", map_loads)?;
        add("read_buffer_map_loads", "", output.device.buffer_map_loads as f64)?;
        for (metric, base) in [("map_loads_against_dcm", dcm), ("map_loads_against_hcm", hcm)] {
            if let Some(value) = base.and_then(|b| percent(map_loads, b.map_loads)) {
                add(metric, "%", value)?;
            }
        }
        add("read_latency_mean", "us", read_mean_us)?;
        if let Some(value) = dcm.and_then(|b| percent(read_mean_us, b.read_mean_us)) {
            add("read_latency_against_dcm", "%", value)?;
        }
        if let Some(hpb) = &output.hpb {
            add("hit_cnt", "", hpb.hit_cnt as f64)?;
            add("miss_cnt", "", hpb.miss_cnt as f64)?;
            add("map_req_cnt", "", hpb.map_req_cnt as f64)?;
            for (metric, count) in hpb.managed_by_name() {
                add(metric, "", count as f64)?;
            }
        }
        let memory = output.memory.map_or(0, |m| m.peak_bytes + m.table_bytes);
        add("host_memory", "bytes", memory as f64)?;
    }
    Ok(())
}

/// What is possible at best with the memory that `lru` leaves for maps, and a sentence on who came closest.
fn best(
    doc: &mut Document,
    case: &ReplayCase,
    memory_mib: u64,
    runs: &[(&Contender, &ReplayRun)],
) -> Result<(), Error> {
    let of = |policy: PolicyChoice| runs.iter().find(|(c, _)| c.policy == policy);
    let Some((lru, run)) = of(PolicyChoice::Managed(ManagedPolicy::Lru)) else { return Ok(()) };
    let device = &lru.variant.preset.device;
    let tables = run.phases.last().and_then(|p| p.output.memory).map_or(0, |m| m.table_bytes);
    if let Some(bounds) = bounds(case, device, (memory_mib << 20).saturating_sub(tables)) {
        for (name_of, loads) in [("optimum", bounds.all), ("long reads alone", bounds.long)] {
            let variant = name(name_of, memory_mib);
            doc.row(&case.name, &variant, "map_loads", "", loads as f64, Origin::Predicted)?;
        }
    }
    let (Some(dcm), Some(hcm)) = (of(PolicyChoice::LinuxDcm), of(PolicyChoice::LinuxHcm)) else { return Ok(()) };
    let (dcm, hcm) = (figures(dcm.1), figures(hcm.1));
    let not_slower = |f: &Figures| f.read_mean_us <= dcm.read_mean_us * (1.0 + SLOWER_PERCENT / 100.0);
    let own = runs.iter().filter(|(c, _)| c.policy.managed().is_some()).map(|(c, r)| (c.policy.name(), figures(r)));
    let best = own.filter(|(_, f)| not_slower(f)).min_by(|a, b| a.1.map_loads.total_cmp(&b.1.map_loads));
    let sentence = match best {
        Some((policy, f)) => format!(
            "{policy} has the fewest map loads of those that are at most {SLOWER_PERCENT} % slower than linux-dcm: {}, \
             {:+.1} % against linux-hcm, {:+.1} % against linux-dcm; mean read latency {:+.2} % against linux-dcm",
            f.map_loads,
            percent(f.map_loads, hcm.map_loads).unwrap_or(0.0),
            percent(f.map_loads, dcm.map_loads).unwrap_or(0.0),
            percent(f.read_mean_us, dcm.read_mean_us).unwrap_or(0.0),
        ),
        None => format!("no policy of this host's own is at most {SLOWER_PERCENT} % slower than linux-dcm"),
    };
    doc.notes.push(format!("{}, {memory_mib} MiB: {sentence}.", case.name));
    Ok(())
}

/// Least numbers of map pages read from flash.
struct Bounds {
    /// For all reads: places are the maps that the host has room for and the frames of the device's map cache.
    all: u64,
    /// For the reads of more than one block alone, for which an HPB READ of one block is no help: places are the frames.
    long: u64,
}

/// The bounds for the trace of a case, its map in flash as it begins. None, if a map page is not that of a sub-region.
fn bounds(case: &ReplayCase, device: &DeviceConfig, map_bytes: u64) -> Option<Bounds> {
    let hpb = device.hpb.as_ref()?;
    // Sizes are powers of two in sectors of 512 bytes; a block has eight. An entry of the map in flash has 4 bytes.
    let blocks = 1u32 << (hpb.sub_region_size.checked_sub(3)?);
    if device.map_page_bytes / 4 != blocks {
        return None;
    }
    // Entries of 8 bytes on the host, and a bit for each.
    let maps = map_bytes / (u64::from(blocks) * 8 + u64::from(blocks).div_ceil(8));
    let frames = (device.map_cache_bytes / device.map_page_bytes) as usize;
    let reads = |least: u16| -> Vec<u32> {
        let ios = case.trace.ios.iter().filter(|io| io.kind == IoKind::Read && io.blocks >= least);
        ios.flat_map(|io| io.block / blocks..(io.block + u32::from(io.blocks)).div_ceil(blocks)).collect()
    };
    Some(Bounds { all: optimum(&reads(1), maps as usize + frames), long: optimum(&reads(2), frames) })
}
