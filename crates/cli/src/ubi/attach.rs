// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi attach`: what UBI finds in an image, and how long that takes on a NAND.

use super::names::json_text;
use crate::args::UbiAttach;
use crate::output::stdout;
use anyhow::Result;
use readpath_session::device::Ns;
use readpath_session::ubi::nand::cost::Cost;
use readpath_session::ubi::nand::mtd::Mtd;
use readpath_session::ubi::nand::printable;
use readpath_session::ubi::{Attached, kind, remarks};
use std::fmt::Write as _;
use std::io::Write;

pub fn main(args: &UbiAttach) -> Result<()> {
    let attached = Attached::open(&args.of)?;
    let text = if args.json { json_text(&attached.json()) } else { table(&attached) };
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn table(attached: &Attached) -> String {
    let ubi = &attached.ubi;
    let (g, found, present) = (*ubi.mtd().geometry(), ubi.found(), ubi.mtd().inner.present_pebs());
    let mut text = String::new();
    let mut line = |name: &str, value: String| writeln!(text, "{name:<15} {value}").expect("a string");
    line("device", format!("{} PEBs of {} bytes, {present} of them in the image", g.pebs, g.peb_bytes));
    if let Some(missing) = attached.too_few_pebs() {
        line("warning", missing);
    }
    line("pages", format!("{} bytes, sub-pages {} bytes", g.page_bytes, g.subpage_bytes));
    if let Some(other) = attached.other_pages() {
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
    if let Some(larger) = attached.larger_pebs() {
        line("warning", larger);
    }
    line("attached by", attached.method());
    if let Some(fault) = &found.fastmap_fault {
        line("fastmap", format!("not used: {fault}"));
    }
    line("image sequence", format!("{}, highest sequence number {}", found.image_seq, found.max_sqnum));
    let states: Vec<String> =
        attached.counts().iter().map(|(name, n)| format!("{n} {}", name.replace('_', " "))).collect();
    line("PEBs", states.join(", "));
    line("erase counters", format!("{} to {}, mean {}", found.min_ec, found.max_ec, found.mean_ec));
    let Attached { reads, cost, with_subpage_reads: with, without, .. } = attached;
    let ms = |cost: &Cost| Ns(cost.total_ns());
    line("attach takes", format!("{} for {reads} reads, {} without sub-page reads", ms(with), ms(without)));
    if cost.cpu_is_known {
        line("of these", format!("{} of waiting and {} of CPU time", Ns(with.wait_ns), Ns(with.cpu_ns)));
    }
    line("costs", format!("{} (--cost names others)", cost.described(g.page_bytes)));
    for copy in attached.rewrites() {
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
