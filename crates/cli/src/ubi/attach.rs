// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi attach`: what UBI finds in an image, and how long that takes on a NAND.

use super::names::json_text;
use super::open::{ambiguity, not_attached, of_device, sized};
use crate::output::stdout;
use crate::usage;
use anyhow::{Result, anyhow};
use clap::Args;
use readpath_config::size;
use readpath_kit::Ns;
use readpath_lab::ubi::Published;
use readpath_ubi::attach::{Method, Options, PebCounts};
use readpath_ubi::device::Volume;
use readpath_ubi::guess::{Guess, Known};
use readpath_ubi::mtd::{Geometry, Image, Logged, Mtd};
use readpath_ubi::nand::{PRESETS, Preset, preset};
use readpath_ubi::stream::{Pressure, Setup, Stream, run};
use readpath_ubi::variant::Variant;
use readpath_ubi::{NoCache, Ubi, printable};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `ubi attach`.
#[derive(Args, Debug)]
pub struct UbiAttach {
    /// The image: what ubinize makes, or nanddump without spare areas
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Bytes of an erase block, also with K or M [default: found in the image]
    #[arg(long, value_name = "BYTES")]
    peb_size: Option<String>,
    /// Bytes of a page, also with K [default: found in the image]
    #[arg(long, value_name = "BYTES")]
    page_size: Option<String>,
    /// Bytes of a sub-page, also with K [default: found in the image]
    #[arg(long, value_name = "BYTES")]
    subpage_size: Option<String>,
    /// Erase blocks of the device; those beyond the image are erased [default: those of the image]
    #[arg(long, value_name = "N")]
    pebs: Option<u32>,
    /// NAND whose times are used [default: the one with such pages, if there is one]
    #[arg(long, value_name = "NAME")]
    nand: Option<String>,
    /// Read all headers, even if there is a fastmap
    #[arg(long)]
    scan: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

type Device = Ubi<Logged<Image<File>>, NoCache>;

/// `readpath ubi attach`.
pub fn main(args: &UbiAttach) -> Result<()> {
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", args.image.display()));
    let (file, found) = sized(&args.image, &known(args)?)?;
    let nand = nand(args, &found.geometry)?;
    let image = Image::new(file, of_device(&found, args.pebs)).map_err(|e| wrong(&e))?;
    let present = image.present_pebs();
    let options = Options { vid_offset: found.vid_offset, fastmap: !args.scan, ..Options::image() };
    let mut device = match nand {
        Some(nand) => Logged::timed(image, nand.timing),
        None => Logged::new(image),
    };
    device.recording = true;
    let ubi = Ubi::attach(device, NoCache, &options).map_err(|e| not_attached(&args.image, &found, &e))?;
    let takes = Takes::of(&ubi, nand);
    let text = match args.json {
        true => json_text(&document(&ubi, &found, &takes, present)),
        false => table(&ubi, &found, &takes, present),
    };
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn known(args: &UbiAttach) -> Result<Known> {
    let bytes = |option: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let bytes = size(text).map_err(|e| usage(anyhow!("{option}: {e}")))?;
        u32::try_from(bytes).map(Some).map_err(|_| usage(anyhow!("{option}: {bytes} bytes are more than NAND has")))
    };
    Ok(Known {
        peb_bytes: bytes("--peb-size", &args.peb_size)?,
        page_bytes: bytes("--page-size", &args.page_size)?,
        subpage_bytes: bytes("--subpage-size", &args.subpage_size)?,
    })
}

fn names() -> String {
    PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// The NAND that was asked for, or else the first whose page and sub-page are as large, if there is one.
fn nand(args: &UbiAttach, geometry: &Geometry) -> Result<Option<&'static Preset>> {
    if let Some(name) = &args.nand {
        let named = preset(name);
        return named.map(Some).ok_or_else(|| usage(anyhow!("--nand: no NAND \"{name}\"; there are {}", names())));
    }
    let subpages = geometry.subpage_bytes < geometry.page_bytes;
    let like = |p: &&Preset| p.geometry.page_bytes == geometry.page_bytes;
    let also = |p: &&Preset| like(p) && (p.geometry.subpage_bytes < p.geometry.page_bytes) == subpages;
    Ok(PRESETS.iter().find(also).or_else(|| PRESETS.iter().find(like)))
}

/// What the attach takes, with sub-page reads and without.
struct Takes {
    reads: usize,
    /// Waiting for this NAND.
    nand: Option<(&'static Preset, [Ns; 2])>,
    /// Seconds of waiting and CPU by a preset of costs of that name, for pages that it was fitted to.
    with_cpu: Option<(String, [f64; 2])>,
    /// What makes the times doubtful.
    warning: Option<String>,
}

impl Takes {
    fn of(ubi: &Device, nand: Option<&'static Preset>) -> Takes {
        let (g, log) = (*ubi.mtd().geometry(), &ubi.mtd().records);
        let waits = |nand: &'static Preset| [ubi.mtd().elapsed, nand.timing.without_subpage_reads(&g, log)];
        let other = nand.filter(|nand| nand.geometry.page_bytes != g.page_bytes);
        let warning = other.map(|Preset { name, geometry, .. }| {
            let theirs = geometry.page_bytes;
            format!("{name} has pages of {theirs} bytes, the image of {}: no device takes these times", g.page_bytes)
        });
        // The costs with which 'reproduce ubi' counts the reads of an attach.
        let costs = Published::builtin().preset();
        let with_cpu = (costs.page_bytes == g.page_bytes).then(|| {
            let stream = Stream::of_log(log, g.page_bytes);
            let seconds = ["none", "nand-page"].map(|cache| {
                let variant = Variant::parse(cache, 1).expect("the name of a cache");
                let setup = Setup { variant, costs: costs.model(g.page_bytes), pressure: &Pressure::default() };
                run(&stream.records, &setup).expect("no cache that knows the future").other.cost.seconds()
            });
            (costs.name.clone(), seconds)
        });
        Takes { reads: log.len(), nand: nand.map(|nand| (nand, waits(nand))), with_cpu, warning }
    }
}

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

fn table(ubi: &Device, guess: &Guess, takes: &Takes, present: u32) -> String {
    let (g, found) = (*ubi.mtd().geometry(), ubi.found());
    let mut text = String::new();
    let mut line = |name: &str, value: String| writeln!(text, "{name:<15} {value}").expect("a string");
    line("device", format!("{} PEBs of {} bytes, {present} of them in the image", g.pebs, g.peb_bytes));
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
    let reads = takes.reads;
    match &takes.nand {
        Some((nand, [with, without])) => line(
            "attach waits",
            format!("{with} for {reads} reads on {}, {without} without sub-page reads; CPU is not in it", nand.name),
        ),
        None => {
            let why = format!("the time is not known: no NAND has such pages, --nand names one of {}", names());
            line("attach waits", format!("for {reads} reads; {why}"));
        }
    }
    if let Some((costs, [with, without])) = &takes.with_cpu {
        let text =
            format!("{with:.3} s, {without:.3} s without sub-page reads, by the costs {costs} of 'reproduce ubi'");
        line("with CPU", text);
    }
    if let Some(warning) = &takes.warning {
        line("warning", warning.clone());
    }
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
        "--peb-size {given} may be too small: only each block at a multiple of {larger} bytes has an EC header, as if PEBs had that size"
    )
}

fn found_rewrites(ubi: &Device) -> impl Iterator<Item = (usize, bool)> {
    ubi.found_table().rewrite.into_iter().enumerate().filter(|&(_, rewrite)| rewrite)
}

fn document(ubi: &Device, guess: &Guess, takes: &Takes, present: u32) -> Value {
    let (g, found, layout) = (*ubi.mtd().geometry(), ubi.found(), ubi.layout());
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
            "pebs_in_image": present,
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
            "nand": takes.nand.map(|(nand, _)| nand.name),
            "reads": takes.reads,
            "seconds": takes.nand.map(|(_, [with, _])| with.as_secs_f64()),
            "seconds_without_subpage_reads": takes.nand.map(|(_, [_, without])| without.as_secs_f64()),
            "with_cpu": takes.with_cpu.as_ref().map(|(costs, [with, without])| {
                json!({ "cost": costs, "seconds": with, "seconds_without_subpage_reads": without })
            }),
            "warning": takes.warning,
        },
        "volume_table_copies_to_rewrite": found_rewrites(ubi).map(|(copy, _)| copy).collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
    })
}
