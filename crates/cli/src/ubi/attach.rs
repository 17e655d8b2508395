// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi attach`: what UBI finds in an image, and how long that takes on a NAND.

use super::bytes::ImageBytes;
use super::names::json_text;
use super::open::{ambiguity, not_attached, of_device, sized};
use super::streams::cost;
use crate::args::UbiAttach;
use crate::output::stdout;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_kit::Ns;
use readpath_ubi::attach::{Method, Options, PebCounts};
use readpath_ubi::cost::Cost;
use readpath_ubi::device::Volume;
use readpath_ubi::guess::Guess;
use readpath_ubi::mtd::{Image, Logged, Mtd};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Pressure, Setup, Stream, run};
use readpath_ubi::variant::Variant;
use readpath_ubi::{NoCache, Ubi, printable};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write;

type Device = Ubi<Logged<Image<ImageBytes>>, NoCache>;

pub fn main(args: &UbiAttach) -> Result<()> {
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", args.image.display()));
    let (file, found) = sized(&args.image, &args.sizes)?;
    let given = args.cost.as_deref().map(cost).transpose()?;
    let image = Image::new(file, of_device(&found, args.sizes.pebs)).map_err(|e| wrong(&e))?;
    let options = Options { vid_offset: found.vid_offset, fastmap: !args.scan, ..Options::image() };
    let ubi = Ubi::attach(Logged::new(image), NoCache, &options).map_err(|e| not_attached(&args.image, &found, &e))?;
    let takes = Takes::of(&ubi, given);
    let missing = too_few(&ubi, args.sizes.pebs);
    let text = match args.json {
        true => json_text(&document(&ubi, &found, &takes, missing.as_deref())),
        false => table(&ubi, &found, &takes, missing.as_deref()),
    };
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// What the reads of the attach take.
struct Takes {
    reads: usize,
    cost: CostPreset,
    with_subpage_reads: Cost,
    without: Cost,
}

impl Takes {
    fn of(ubi: &Device, given: Option<CostPreset>) -> Takes {
        let (g, log) = (*ubi.mtd().geometry(), &ubi.mtd().records);
        let has_subpages = g.subpage_bytes < g.page_bytes;
        let cost = given.unwrap_or_else(|| CostPreset::for_pages(g.page_bytes, Some(has_subpages)));
        let stream = Stream::of_log(log, g.page_bytes);
        let [with_subpage_reads, without] = ["none", "nand-page"].map(|cache| {
            let variant = Variant::parse(cache, 1).expect("the name of a cache");
            let setup = Setup { variant, costs: cost.model(g.page_bytes), pressure: &Pressure::default() };
            run(&stream.records, &setup).expect("no cache that knows the future").other.cost
        });
        Takes { reads: log.len(), cost, with_subpage_reads, without }
    }
}

/// What to say of an image that is smaller than its volumes, as ubinize makes it, where nobody said how large the
/// device is.
fn too_few(ubi: &Device, pebs: Option<u32>) -> Option<String> {
    let here = ubi.mtd().geometry().pebs;
    let needed = ubi.volumes().map(|v| u64::from(v.record.reserved_pebs)).sum::<u64>() + OVERHEAD_PEBS;
    (pebs.is_none() && needed > here.into()).then(|| {
        format!(
            "the volumes need a device of {needed} PEBs at least, the image has {here}: the attach of the device takes \
             longer; --pebs N says how many it has"
        )
    })
}

/// Erase blocks that UBI has beside those of volumes: two with the volume table, one for moves, one for atomic changes.
const OVERHEAD_PEBS: u64 = 2 + 1 + 1;

/// States of erase blocks, and how many are in them.
fn counts(ubi: &Device) -> [(&'static str, u32); 6] {
    let PebCounts { used, to_scrub, free, to_erase, kept, bad } = ubi.found().counts(ubi.mtd().geometry().pebs);
    [("used", used), ("to_scrub", to_scrub), ("free", free), ("to_erase", to_erase), ("kept", kept), ("bad", bad)]
}

fn kind(volume: &Volume) -> &'static str {
    if volume.record.vol_type == 2 { "static" } else { "dynamic" }
}

fn remarks(volume: &Volume) -> Vec<&'static str> {
    let flag = |set: bool, name| set.then_some(name);
    [
        flag(volume.record.flags & 1 != 0, "autoresize"),
        flag(volume.record.flags & 2 != 0, "skip-check"),
        flag(volume.record.update_marker, "update interrupted"),
        flag(volume.corrupted, "corrupted"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn method(ubi: &Device) -> String {
    match ubi.found().method {
        Method::Scan => "scan".into(),
        Method::Fastmap { anchor } => format!("fastmap in PEB {anchor}"),
    }
}

fn table(ubi: &Device, guess: &Guess, takes: &Takes, missing: Option<&str>) -> String {
    let (g, found, present) = (*ubi.mtd().geometry(), ubi.found(), ubi.mtd().inner.present_pebs());
    let mut text = String::new();
    let mut line = |name: &str, value: String| writeln!(text, "{name:<15} {value}").expect("a string");
    line("device", format!("{} PEBs of {} bytes, {present} of them in the image", g.pebs, g.peb_bytes));
    if let Some(missing) = missing {
        line("warning", missing.to_owned());
    }
    line("pages", format!("{} bytes, sub-pages {} bytes", g.page_bytes, g.subpage_bytes));
    if let Some(other) = ambiguity(guess) {
        line("or", other);
    }
    let layout = ubi.layout();
    line(
        "layout",
        format!(
            "VID header at {}, data at {}, LEBs of {} bytes",
            layout.vid_offset, layout.data_offset, layout.leb_bytes
        ),
    );
    if let Some(larger) = guess.larger_peb_bytes {
        line("warning", doubtful(g.peb_bytes, larger));
    }
    line("attached by", method(ubi));
    if let Some(fault) = &found.fastmap_fault {
        line("fastmap", format!("not used: {fault}"));
    }
    line("image sequence", format!("{}, highest sequence number {}", found.image_seq, found.max_sqnum));
    let states: Vec<String> = counts(ubi).iter().map(|(name, n)| format!("{n} {}", name.replace('_', " "))).collect();
    line("PEBs", states.join(", "));
    line("erase counters", format!("{} to {}, mean {}", found.min_ec, found.max_ec, found.mean_ec));
    let Takes { reads, cost, with_subpage_reads: with, without } = takes;
    let ms = |cost: &Cost| Ns(cost.total_ns());
    line("attach takes", format!("{} for {reads} reads, {} without sub-page reads", ms(with), ms(without)));
    if cost.cpu_is_known {
        line("of these", format!("{} of waiting and {} of CPU time", Ns(with.wait_ns), Ns(with.cpu_ns)));
    }
    line("costs", format!("{} (--cost names others)", cost.described(g.page_bytes)));
    for (copy, _) in found_rewrites(ubi) {
        line("volume table", format!("copy {copy} is damaged or older, the other one is used"));
    }
    writeln!(text, "\n{:>3}  {:<7}  {:>6}  {:>6}  {:>12}  name", "id", "type", "LEBs", "mapped", "bytes")
        .expect("a string");
    for v in ubi.volumes() {
        let (id, lebs, mapped, bytes) = (v.id, v.record.reserved_pebs, v.mapped(), v.bytes());
        let mut name = printable(&v.record.name);
        if !remarks(v).is_empty() {
            name += &format!(" ({})", remarks(v).join(", "));
        }
        writeln!(text, "{id:>3}  {:<7}  {lebs:>6}  {mapped:>6}  {bytes:>12}  {name}", kind(v)).expect("a string");
    }
    text
}

/// What to say of a size of erase blocks that may be too small.
fn doubtful(given: u32, larger: u32) -> String {
    format!(
        "--peb-size {given} may be too small: only each block at a multiple of {larger} bytes has an EC header, as if \
         PEBs had that size"
    )
}

fn found_rewrites(ubi: &Device) -> impl Iterator<Item = (usize, bool)> {
    ubi.found_table().rewrite.into_iter().enumerate().filter(|&(_, rewrite)| rewrite)
}

fn document(ubi: &Device, guess: &Guess, takes: &Takes, missing: Option<&str>) -> Value {
    let (g, found, layout) = (*ubi.mtd().geometry(), ubi.found(), ubi.layout());
    let Takes { reads, cost, with_subpage_reads: with, without } = takes;
    let volumes = ubi.volumes().map(|v| {
        json!({
            "id": v.id,
            "name": v.name(),
            "type": kind(v),
            "lebs": v.record.reserved_pebs,
            "mapped_lebs": v.mapped(),
            "leb_bytes": v.leb_bytes,
            "bytes": v.bytes(),
            "alignment": v.record.alignment,
            "remarks": remarks(v),
        })
    });
    json!({
        "device": {
            "pebs": g.pebs,
            "pebs_in_image": ubi.mtd().inner.present_pebs(),
            "peb_bytes": g.peb_bytes,
            "page_bytes": g.page_bytes,
            "subpage_bytes": g.subpage_bytes,
            "sizes_ambiguous": guess.ambiguous,
        },
        "layout": { "vid_offset": layout.vid_offset, "data_offset": layout.data_offset, "leb_bytes": layout.leb_bytes },
        "peb_size_warning": guess.larger_peb_bytes.map(|larger| doubtful(g.peb_bytes, larger)),
        "method": method(ubi),
        "fastmap_fault": found.fastmap_fault,
        "image_sequence": found.image_seq,
        "highest_sequence_number": found.max_sqnum,
        "pebs": counts(ubi).into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect::<serde_json::Map<_, _>>(),
        "erase_counter": { "min": found.min_ec, "mean": found.mean_ec, "max": found.max_ec },
        "attach": {
            "cost": cost.name,
            "cost_scaled": cost.page_bytes != g.page_bytes,
            "cost_cpu_known": cost.cpu_is_known,
            "reads": reads,
            "seconds": with.seconds(),
            "wait_seconds": with.wait_ns as f64 / 1e9,
            "cpu_seconds": with.cpu_ns as f64 / 1e9,
            "seconds_without_subpage_reads": without.seconds(),
        },
        "pebs_warning": missing,
        "volume_table_copies_to_rewrite": found_rewrites(ubi).map(|(copy, _)| copy).collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
    })
}
