// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace mrc`: how much memory a map needs under traces.

use crate::args::Mrc;
use crate::ask::{self, stoppable};
use crate::live::Live;
use crate::output::{self, Folder};
use crate::presets::preset;
use crate::traces::{self, fill, open, options};
use crate::{cases, inputs, usage};
use anyhow::{Result, anyhow};
use readpath_report::terminal;
use readpath_session::args::Making;
use readpath_session::args::{Offers, TraceHow};
use readpath_session::config::DevicePreset;
use readpath_session::lab::map_gain::{self, GainRow, Gaining, Knees};
use readpath_session::lab::map_reuse::{
    CHECK_DEPTHS, Check, CheckError, Checking, MapOf, MapReuseCase, document, size,
};
use readpath_session::lab::replay::ReplayCase;
use readpath_session::lab::runs::Shared;
use readpath_session::results::{Input, Note, NoteKind};
use readpath_session::workload::IoKind;
use readpath_session::workload::trace::mrc::{MapReuse, Of, SpanCurves};
use readpath_session::workload::trace::{Reason, Request, SECTOR_BYTES, TraceError};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Memory for the order of pages: enough for thirty million in all maps.
const LIMIT_BYTES: u64 = 1 << 30;
/// Requests read at a time.
const BATCH: usize = 4096;

pub fn main(args: &Mrc) -> Result<()> {
    let maps = maps(args)?;
    let names = cases::names(&args.files)?;
    inputs::only_one_stdin(args.files.iter())?;
    options(&args.input)?;
    let again = [("--check", args.check.is_some()), ("--gain", args.gain.is_some())];
    if let Some((option, _)) = again.into_iter().find(|(_, given)| *given)
        && args.files.iter().any(|path| inputs::is_stdin(path))
    {
        return Err(usage(anyhow!("{option} reads the trace a second time, which standard input does not allow")));
    }
    let device = |name: &Option<String>| name.as_ref().map(|name| preset(name, &args.set)).transpose();
    let (checking, gaining) = (device(&args.check)?, device(&args.gain)?);
    let asked = [("--check", &checking), ("--gain", &gaining)];
    let mut asked = asked.into_iter().filter_map(|(option, device)| Some((option, device.as_ref()?)));
    if let Some((option, device)) = asked.find(|(_, device)| !map_gain::can_gain(&device.device)) {
        let message = "has zones, or its map in DRAM or in a memory extension; take a device with neither zones nor \
                       [map_memory], or with hmb";
        return Err(usage(anyhow!("{option} {}: {message}", device.name)));
    }
    let shared = stoppable(&Live::default())?;
    let folder = args.out.as_deref().map(|out| Folder::create(out)?.apart_from(args.files.iter())).transpose()?;
    let mut found = Found::default();
    for (path, name) in args.files.iter().zip(names) {
        let mut case = found.read(args, path, name, &maps, &shared)?;
        if let Some(device) = &checking {
            case.check = Some(checked(args, path, &case.name, device, &shared)?);
        }
        if let Some(device) = &gaining {
            case.gain = gained(args, path, &case, device, &shared)?;
        }
        found.cases.push(case);
    }
    let Found { cases, mut notes, inputs } = found;
    if cases.iter().any(|case| !case.gain.is_empty()) {
        notes.push(Note::remark(map_gain::NOTE));
    }
    let mut doc = document(&cases, &notes)?;
    doc.read_from(&inputs);
    doc.process = output::process();
    doc.validate()?;
    if let Some(folder) = folder {
        folder.write(&doc)?;
    }
    let text = if args.json { doc.to_json_pretty()? } else { output::verdict(&doc) + &describe(&cases, &notes) };
    output::emit(&text, None)
}

fn maps(args: &Mrc) -> Result<Vec<MapOf>> {
    let checked = |option: &str, value: u64, unit: u64, most: u64| match value.is_power_of_two() && value <= most {
        true => Ok(value * unit),
        false => Err(usage(anyhow!("{option}: {value}: expected a power of two, {most} at most"))),
    };
    let pages = args.page_kib.iter().map(|kib| checked("--page-kib", *kib, 1 << 10, 1024).map(MapOf::pages));
    let regions = args.region_mib.iter().map(|mib| checked("--region-mib", *mib, 1 << 20, 1024).map(MapOf::regions));
    let maps = pages.chain(regions).collect::<Result<Vec<_>>>()?;
    for (i, map) in maps.iter().enumerate() {
        if maps[..i].contains(map) {
            return Err(usage(anyhow!("{} are given twice", map.name)));
        }
    }
    Ok(maps)
}

#[derive(Default)]
struct Found {
    cases: Vec<MapReuseCase>,
    notes: Vec<Note>,
    inputs: Vec<Input>,
}

impl Found {
    fn read(&mut self, args: &Mrc, path: &Path, name: String, maps: &[MapOf], shared: &Shared) -> Result<MapReuseCase> {
        let (mut reader, source) = open(path, &options(&args.input)?, shared)?;
        let of_file = |error: TraceError| {
            let is_limit = error.reason == Reason::Limit;
            let error = TraceError { file: inputs::name(path), ..error };
            if is_limit { usage(anyhow!("{error}: --sample 16384")) } else { usage(error) }
        };
        // Kinds of maps whose pages translate as much share their order.
        let mut spans: Vec<u64> = maps.iter().map(|map| map.span_bytes).collect();
        spans.sort_unstable();
        spans.dedup();
        let mut reuse = MapReuse::new(&spans, args.sample.map(|n| n as usize), LIMIT_BYTES);
        let mut batch = vec![Request::NONE; BATCH];
        loop {
            let n = fill(&mut reader, &mut batch, shared)?;
            for request in &mut batch[..n] {
                if request.kind != IoKind::Flush {
                    request.offset = request.offset.saturating_add(u64::from(args.shift_sectors) * SECTOR_BYTES);
                }
                reuse.add(request).map_err(of_file)?;
            }
            if n < batch.len() {
                break;
            }
        }
        // Hits do not depend on times, but the gain is measured at these times.
        let coarse = args.gain.as_ref().and_then(|_| reader.coarse_times(&name, traces::SPREAD_ELSEWHERE));
        let coarse = coarse.map(|text| Note::new(NoteKind::CoarseTimes, text).of_case(&name));
        self.notes.extend(coarse.into_iter().chain(reader.notes(&name).into_iter().map(Note::remark)));
        self.inputs.push(traces::input(source, &name, shared)?);
        let curves = reuse.finish();
        let least = curves.iter().flat_map(|curves| curves.shares).fold(1.0, f64::min);
        if least < 1.0 {
            self.notes.push(Note::remark(format!(
                "{name}: ESTIMATED from a sample of the pages, of {:.2} % of them where there are most; maps of fewer \
                 than 64 pages of the sample are left out",
                100.0 * least
            )));
        }
        let with_curves = |map: &MapOf| {
            let curves = curves.iter().find(|curves| curves.span_bytes == map.span_bytes);
            (map.clone(), curves.expect("it was asked for").clone())
        };
        Ok(MapReuseCase { name, maps: maps.iter().map(with_curves).collect(), check: None, gain: Vec::new() })
    }
}

/// The trace as a replay has it.
fn replayed(
    args: &Mrc,
    iodepth: Option<u32>,
    path: &Path,
    name: &str,
    device: &DevicePreset,
    shared: &Arc<Shared>,
) -> Result<Vec<ReplayCase>> {
    let how = TraceHow {
        offers: Offers { device: Some("--check and --gain"), reading: true, times: false },
        input: args.input.clone(),
        iodepth,
        fold: args.fold,
        shift_sectors: args.shift_sectors,
        ..TraceHow::default()
    };
    cases::cases(&how, &[], &[path.to_owned()], &[name.to_owned()], &device.seen_units(), shared)
}

/// What maps of the size of the knee bring; nothing where no read comes back to a page.
fn gained(
    args: &Mrc,
    path: &Path,
    case: &MapReuseCase,
    device: &DevicePreset,
    shared: &Arc<Shared>,
) -> Result<Vec<GainRow>> {
    let curve_of = |wanted: &MapOf, option: &str| {
        let found = case.maps.iter().find(|(map, _)| map == wanted);
        let missing = || usage(anyhow!("--gain {}: it has {}; name that size with {option}", device.name, wanted.name));
        found.map(|(map, spans)| map.knee(spans.of(Of::Reads))).ok_or_else(missing)
    };
    let pages = curve_of(&MapOf::pages(u64::from(device.device.map_page_bytes)), "--page-kib")?;
    let regions = device.device.standard_hpb().map(|hpb| MapOf::regions(512 << hpb.region_size));
    let regions = regions.map(|regions| curve_of(&regions, "--region-mib")).transpose()?.flatten();
    let Some(pages) = pages else { return Ok(Vec::new()) };
    let knees = Knees { pages, regions: regions.unwrap_or(pages) };
    let variants = map_gain::variants(device, knees).map_err(usage)?;
    let cases = replayed(args, None, path, &case.name, device, shared)?;
    let case = cases.into_iter().next().expect("a trace is a case");
    let done = ask::side_by_side(&Gaining::new(case, variants), &making(args), shared)?;
    Ok(done.into_iter().flatten().collect())
}

/// How the runs of a check are made.
fn making(args: &Mrc) -> Making {
    Making { threads: args.threads, ..Making::default() }
}

fn checked(args: &Mrc, path: &Path, name: &str, device: &DevicePreset, shared: &Arc<Shared>) -> Result<Check> {
    let cases = replayed(args, Some(32), path, name, device, shared)?;
    let question = Checking::new(&cases[0], device, LIMIT_BYTES).map_err(|error| match error {
        CheckError::Device(error) => usage(error),
        CheckError::Trace(error) => usage(TraceError { file: inputs::name(path), ..error }),
    })?;
    Ok(question.check(&ask::side_by_side(&question, &making(args), shared)?))
}

/// Tables and sentences.
fn describe(cases: &[MapReuseCase], notes: &[Note]) -> String {
    let mut text = String::new();
    for case in cases {
        let _ = writeln!(text, "Map hits by memory: {}\n", case.name);
        for of in Of::ALL {
            if case.maps.iter().any(|(_, spans)| spans.of(of).accesses > 0) {
                table(&mut text, case, of);
            }
        }
        if case.maps.iter().all(|(_, spans)| spans.of(Of::All).accesses == 0) {
            text.push_str("no read or write has an address\n\n");
        }
        if let Some(check) = &case.check {
            check_table(&mut text, check);
        }
        gain_table(&mut text, &case.gain);
    }
    for note in notes {
        let _ = writeln!(text, "Note: {}", note.text);
    }
    text
}

fn table(text: &mut String, case: &MapReuseCase, of: Of) {
    let what = match of {
        Of::Reads => "hits of reads in %, if they alone use the map",
        Of::Writes => "hits of writes in %, if they alone use the map",
        Of::All => "hits of reads and writes in %, if they share a map",
    };
    let width = case.maps.iter().map(|(map, _)| map.name.len()).max().unwrap_or(0);
    let _ = writeln!(text, "{what}\n{:>10}{}", "memory", row(&case.maps, |(map, _)| Some(map.name.clone()), width));
    let enough = case.maps.iter().map(|(map, spans)| map.enough(spans.of(of))).max().unwrap_or(0);
    for bytes in case.sizes().into_iter().take_while(|bytes| *bytes < 2 * enough) {
        let hits = |(map, spans): &(MapOf, SpanCurves)| {
            let hits = map.hits(spans.of(of), bytes).filter(|_| bytes >= map.page_bytes() * spans.least(of))?;
            Some(format!("{hits:.1}"))
        };
        let _ = writeln!(text, "{:>10}{}", size(bytes), row(&case.maps, hits, width));
    }
    for (map, spans) in &case.maps {
        let curve = spans.of(of);
        let _ = match map.knee(curve) {
            None => writeln!(text, "{}: every access is the first to its page", map.name),
            Some(knee) => writeln!(
                text,
                "{}: {} touched; beyond {} ({:.1} %) no doubling gains a point; {} hold all that comes again",
                map.name,
                curve.pages,
                size(knee),
                map.hits(curve, knee).unwrap_or(0.0),
                size(map.enough(curve))
            ),
        };
    }
    text.push('\n');
}

/// A cell for each kind of map.
fn row<T>(maps: &[T], cell: impl Fn(&T) -> Option<String>, width: usize) -> String {
    maps.iter().map(|map| format!("  {:>width$}", cell(map).unwrap_or_default())).collect()
}

fn check_table(text: &mut String, check: &Check) {
    let (what, how) = match check.is_predicted {
        true => ("predicted", "predicted with runs and reading ahead"),
        false => ("counted", "counted"),
    };
    let _ = writeln!(text, "{}, reads alone: {how}, and as the simulator's map cache has it, %", check.map.name);
    let depths: String = CHECK_DEPTHS.iter().map(|depth| format!("{:>12}", format!("depth {depth}"))).collect();
    let _ = writeln!(text, "{:>10}{what:>10}{depths}", "memory");
    for (bytes, counted, simulated) in &check.rows {
        let simulated: String = simulated.iter().map(|hits| format!("{hits:>12.1}")).collect();
        let _ = writeln!(text, "{:>10}{counted:>10.1}{simulated}", size(*bytes));
    }
    if check.rows.is_empty() {
        text.push_str("nothing to compare: no page is read twice\n\n");
        return;
    }
    let [one, many] = check.deviations();
    let _ = writeln!(text, "largest deviation: {one:.2} points at depth 1, {many:.2} at depth 16\n");
}

/// What each place for a map of the size of the knee brings.
fn gain_table(text: &mut String, rows: &[GainRow]) {
    let Some(first) = rows.first() else { return };
    text.push_str("the trace at its own times, with maps as large as the knee of its reads\n");
    let head = ["map in", "host memory", "read mean us", "read p99 us", "map pages read", "saves %"];
    let saves = |row: &GainRow| match first.read_mean_us > 0.0 {
        // Nothing has no sign.
        true => format!("{:.1}", (1000.0 * (1.0 - row.read_mean_us / first.read_mean_us)).round() / 10.0 + 0.0),
        false => "-".to_owned(),
    };
    let line = |row: &GainRow| {
        vec![
            row.place.clone(),
            size(row.host_bytes),
            format!("{:.1}", row.read_mean_us),
            format!("{:.1}", row.read_p99_us),
            row.map_loads.to_string(),
            saves(row),
        ]
    };
    let lines: Vec<_> = rows.iter().map(line).collect();
    text.push_str(&terminal::columns_up_to(&head, &lines, output::terminal_width()));
    text.push('\n');
}
