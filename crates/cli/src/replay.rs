// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath replay`: loads traces once, makes the variants that were asked for, has them run and shows the document.

use crate::args::{Hpb, Preload, Replay, ReplayMode};
use crate::files::read_text;
use crate::output::{self, Folder};
use crate::simulate::{classify, stop_on_signal};
use crate::{trace, usage};
use anyhow::{Result, anyhow};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_results::Document;
use readpath_sim::LUN;
use readpath_sim::experiment::Shared;
use readpath_sim::replay::{LONGEST, Mode, ReplayCase, ReplayOptions, ReplayTexts, ReplayVariant, document, run_all};
use readpath_stack::config::experiment::{Layout, default_hpb};
use readpath_stack::config::{self, DevicePreset, Override};
use readpath_workload::trace::{Fit, Loaded, Options, Prepare, SECTOR_BYTES, Speed};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests of a trace at most; they take 16 bytes each.
const MAX_IOS: usize = 1 << 28;
/// Bytes of a map entry on the host.
const ENTRY_BYTES: u64 = 8;

/// Columns of the table.
const COLUMNS: [(&str, &str); 17] = [
    ("requests", "requests"),
    ("map_hit_ratio", "map hits"),
    ("hpb_hit_ratio", "HPB hits"),
    ("map_loads", "map loads"),
    ("read_latency_mean", "read mean"),
    ("read_latency_p50", "read p50"),
    ("read_latency_p99", "read p99"),
    ("read_latency_p99_9", "read p99.9"),
    ("write_latency_mean", "write mean"),
    ("write_latency_p99", "write p99"),
    ("flush_latency_mean", "flush mean"),
    ("trim_latency_mean", "trim mean"),
    ("device_map_memory", "map, device"),
    ("host_memory", "map, host"),
    ("write_amplification", "write ampl."),
    ("most_outstanding", "most in flight"),
    ("virtual_duration", "duration"),
];

/// `readpath replay`.
pub fn main(args: &Replay) -> Result<()> {
    let options = options(args)?;
    let variants = variants(args)?;
    let blocks = variants[0].preset.device.lus[usize::from(LUN)].blocks;
    let prepare = prepare(args, blocks)?;
    let files = args.out.as_deref().map(Folder::create).transpose()?;
    let cases = cases(args, prepare, blocks)?;

    let shared = Arc::new(Shared::default());
    stop_on_signal(&shared)?;
    let expected = cases.iter().map(ReplayCase::ios).sum::<u64>() * variants.len() as u64;
    let progress = output::Progress::start(shared.clone(), Some(expected));
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(n) = args.threads {
        pool = pool.num_threads(usize::from(n).min(cases.len() * variants.len()));
    }
    let runs = pool.build()?.install(|| run_all(&cases, &variants, &options, &shared));
    drop(progress);
    let runs = runs.map_err(classify)?;

    let mut doc = document(&texts(args, &cases), &cases, &variants, &options, &runs)?;
    doc.process = output::process();
    doc.validate()?;
    if let Some(files) = files {
        files.write(&doc)?;
    }
    let text = if args.json { doc.to_json_pretty()?.into_bytes() } else { table(args, &doc)? };
    output::emit(&text, None)
}

fn table(args: &Replay, doc: &Document) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    writeln!(out, "{}\n", doc.title)?;
    output::print_columns(doc, &COLUMNS, output::terminal_width(), &mut out)?;
    for note in &doc.notes {
        writeln!(out, "Note: {note}")?;
    }
    let (seconds, mib) = (doc.process.cpu_seconds, doc.process.peak_rss_bytes as f64 / f64::from(1 << 20));
    writeln!(out, "{} requests simulated in {seconds:.1} s of CPU time, {mib:.0} MiB at most", doc.simulated_ios)?;
    if let Some(folder) = &args.out {
        let (json, page) = (folder.join("result.json"), folder.join("report.html"));
        writeln!(out, "Results: {} and {}", json.display(), page.display())?;
    }
    Ok(out)
}

fn options(args: &Replay) -> Result<ReplayOptions> {
    let mode = match args.mode {
        ReplayMode::Timed if args.iodepth.is_some() => {
            return Err(usage(anyhow!("--iodepth goes with --mode closed; with timed, requests come at their times")));
        }
        ReplayMode::Closed if args.speed.is_some() || args.max_idle.is_some() => {
            return Err(usage(anyhow!("--speed and --max-idle change times, which do not count with --mode closed")));
        }
        ReplayMode::Timed => Mode::Timed,
        ReplayMode::Closed => Mode::Closed { iodepth: args.iodepth.unwrap_or(32) },
    };
    let layout = match args.preload {
        Preload::Sequential => Layout::Sequential,
        Preload::Random => Layout::Random,
    };
    Ok(ReplayOptions { mode, layout, seed: args.seed })
}

fn prepare(args: &Replay, device_blocks: u32) -> Result<Prepare> {
    let speed = args.speed.as_deref().map(Speed::parse).transpose();
    let max_idle = args.max_idle.as_deref().map(time).transpose();
    Ok(Prepare {
        shift_sectors: args.shift_sectors,
        fit: if args.fold { Fit::Fold } else { Fit::Refuse },
        max_idle: max_idle.map_err(|e| usage(anyhow!("--max-idle: {e}")))?,
        speed: speed.map_err(|e| usage(anyhow!("--speed: {e}")))?.unwrap_or(Speed::RECORDED),
        // The host's driver splits what is too long for a command.
        max_blocks: u16::MAX,
        ..Prepare::new(device_blocks)
    })
}

/// A span of time such as `10ms`.
fn time(text: &str) -> Result<Ns, String> {
    let wrong = || format!("{text:?} is not a time such as 10ms; units are ns, us, ms and s");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let unit = match &text[at..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    text[..at].parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).map(Ns).ok_or_else(wrong)
}

/// A size such as `1440K`, in bytes.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size such as 262144, 256K or 1M (1K = 1024 bytes)");
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    text[..at].parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|&n| n > 0).ok_or_else(wrong)
}

/// A size in words, exact.
fn size_name(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn variants(args: &Replay) -> Result<Vec<ReplayVariant>> {
    let set = args.set.iter().map(|s| Override::from_argument(s, "--set")).collect::<Result<Vec<_>, _>>();
    let preset = config::device::load(&args.device, &read_text).map_err(usage)?;
    let preset = preset.with_overrides(&set.map_err(usage)?).map_err(usage)?;
    let max_map_bytes = host_map(args, &preset)?;
    let mut presets: Vec<(Option<u64>, DevicePreset)> = Vec::new();
    for text in &args.map_cache {
        let bytes = size(text).map_err(|e| usage(anyhow!("--map-cache: {e}")))?;
        if !bytes.is_multiple_of(1024) {
            return Err(usage(anyhow!("--map-cache: {bytes} bytes are not a multiple of 1024")));
        }
        if presets.iter().any(|(known, _)| *known == Some(bytes)) {
            return Err(usage(anyhow!("--map-cache: {} is given twice", size_name(bytes))));
        }
        let key = Override::new("map_cache.size_kib", &(bytes >> 10).to_string(), "--map-cache").map_err(usage)?;
        presets.push((Some(bytes), preset.with_overrides(&[key]).map_err(usage)?));
    }
    if presets.is_empty() {
        presets.push((None, preset));
    }
    let modes: &[bool] = match args.hpb {
        Hpb::Off => &[false],
        Hpb::Dcm => &[true],
        Hpb::Both => &[false, true],
    };
    let mut list = Vec::new();
    for (bytes, preset) in &presets {
        for &on in modes {
            let mut name = if on { "HPB on" } else { "HPB off" }.to_owned();
            if let Some(bytes) = bytes {
                name.push_str(&format!(", map cache {}", size_name(*bytes)));
            }
            let mut host = preset.host;
            host.hpb = on.then(default_hpb);
            if let Some(hpb) = &mut host.hpb {
                hpb.max_map_bytes = max_map_bytes;
            }
            list.push(ReplayVariant { name, preset: preset.clone(), host });
        }
    }
    Ok(list)
}

fn host_map(args: &Replay, preset: &DevicePreset) -> Result<Option<u64>> {
    let Some(text) = &args.host_map else { return Ok(None) };
    let bytes = size(text).map_err(|e| usage(anyhow!("--host-map: {e}")))?;
    if args.hpb == Hpb::Off {
        return Err(usage(anyhow!("--host-map is memory for HPB, which --hpb off does not use")));
    }
    let Some(hpb) = &preset.device.hpb else { return Ok(Some(bytes)) };
    // bRegionSize is the power of two in sectors of 512 bytes.
    let region = (1u64 << hpb.region_size) * SECTOR_BYTES / u64::from(BLOCK_BYTES) * ENTRY_BYTES;
    if bytes < region {
        return Err(usage(anyhow!("--host-map: {bytes} bytes do not hold the map of one region, which has {region}")));
    }
    Ok(Some(bytes))
}

/// A trace in memory and what there is to know of it.
fn load(path: &Path, options: &Options, prepare: Prepare) -> Result<(Arc<Loaded>, Vec<String>)> {
    let name = path.display().to_string();
    let reader = trace::open(path, options)?;
    let mut replay = prepare.requests(&name, reader).map_err(usage)?;
    let loaded = Loaded::load(&mut replay, MAX_IOS).map_err(|e| {
        let hint = if e.message.contains("beyond the device") { " (--device, or --fold to fold them)" } else { "" };
        usage(anyhow!("{e}{hint}"))
    })?;
    if loaded.ios.is_empty() {
        return Err(usage(anyhow!("{name}: no request is left to replay: its trims contain no whole block of 4 KiB")));
    }
    let mut notes: Vec<String> = loaded.prepared.warnings().into_iter().map(|w| format!("{name}: {w}")).collect();
    // What makes it another trace comes first.
    notes.sort_by_key(|n| !n.contains("FOLDED"));
    notes.extend(trace::notes(&name, &replay.into_inner()));
    Ok((Arc::new(loaded), notes))
}

fn cases(args: &Replay, prepare: Prepare, blocks: u32) -> Result<Vec<ReplayCase>> {
    let options = trace::options(&args.input)?;
    let before = args.precondition.iter().map(|p| load(p, &options, prepare)).collect::<Result<Vec<_>>>()?;
    let mut cases: Vec<ReplayCase> = Vec::new();
    for path in &args.files {
        if args.files.iter().filter(|other| *other == path).count() > 1 {
            return Err(usage(anyhow!("{}: is given twice", path.display())));
        }
        // Tables are narrow: the folder is told only where the name alone is not enough.
        let short = path.file_name();
        let name = match short.filter(|_| args.files.iter().filter(|other| other.file_name() == short).count() == 1) {
            Some(short) => short.to_string_lossy().into_owned(),
            None => path.display().to_string(),
        };
        let (trace, notes) = load(path, &options, prepare)?;
        let phases = before.iter().map(|(trace, _)| trace.clone()).collect();
        let mut case = ReplayCase::new(&name, phases, trace, blocks);
        let most = case.span();
        if args.mode == ReplayMode::Timed && most > LONGEST {
            let message = "cut pauses with --max-idle, or make it faster with --speed";
            return Err(usage(anyhow!("{name}: takes {most} of virtual time, more than {LONGEST}; {message}")));
        }
        case.notes = notes;
        case.notes.extend(before.iter().flat_map(|(_, notes)| notes.clone()));
        if case.preload_blocks() > 0 {
            case.notes.push(format!(
                "{name}: {} blocks of 4 KiB in {} ranges are read before anything writes them, and so were PRELOADED: they \
                 are on the device at the start",
                case.preload_blocks(),
                case.preload().len()
            ));
        }
        cases.push(case);
    }
    // In whatever file: nobody may take the results for those of the trace as it was.
    for case in &mut cases {
        case.notes.sort_by_key(|n| !n.contains("FOLDED"));
    }
    Ok(cases)
}

fn texts(args: &Replay, cases: &[ReplayCase]) -> ReplayTexts {
    let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    let folded: u64 = cases.iter().flat_map(|c| c.before.iter().chain([&c.trace])).map(|t| t.prepared.folded).sum();
    let mut title = format!("Replay of {}", names.join(", "));
    if folded > 0 {
        title.push_str(" (addresses FOLDED)");
    }
    let how = match args.mode {
        ReplayMode::Timed => {
            "Requests are submitted at their times; waiting for the controller's queue counts as latency."
        }
        ReplayMode::Closed => {
            "Requests are submitted in order, as soon as the queue depth allows; their times do not count."
        }
    };
    let per_case: Vec<_> = cases
        .iter()
        .map(|c| {
            json!({
                "case": c.name,
                "preloaded_blocks": c.preload_blocks(),
                "preloaded_ranges": c.preload().len(),
                "phases": c.before.iter().chain([&c.trace]).map(|t| prepared(t)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let paths = |list: &[PathBuf]| list.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
    let input = &args.input;
    ReplayTexts {
        title,
        description: format!("Simulated on the device '{}'. {how}", args.device),
        settings: json!({
            "files": paths(&args.files),
            "precondition": paths(&args.precondition),
            "format": input.format,
            "columns": input.columns,
            "lenient": input.lenient,
            "trace_device": input.trace_device,
            "merge_devices": input.merge_devices,
            "fold": args.fold,
            "shift_sectors": args.shift_sectors,
            "speed": args.speed,
            "max_idle": args.max_idle,
            "preload": match args.preload { Preload::Sequential => "sequential", Preload::Random => "random" },
            "cases": per_case,
        }),
    }
}

/// What was changed of a trace, in numbers.
fn prepared(trace: &Loaded) -> serde_json::Value {
    let p = &trace.prepared;
    json!({
        "requests": p.requests,
        "folded": p.folded,
        "rounded_reads": p.rounded_reads,
        "partial_writes": p.partial_writes,
        "partial_blocks": p.partial_blocks,
        "rounded_trims": p.rounded_trims,
        "dropped_trims": p.dropped_trims,
        "shortened_trims": p.shortened_trims,
        "cut_pauses": p.cut_pauses,
        "cut_time_ns": p.cut_time.0,
    })
}
