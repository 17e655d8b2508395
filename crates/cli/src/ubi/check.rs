// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi check`: everything that is wrong with a UBIFS volume of an image, and with UBI below it.

use super::names::json_text;
use crate::args::UbiCheck;
use crate::failure::Damaged;
use crate::output::stdout;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_session::ubi::nand::device::Finding;
use readpath_session::ubi::nand::printable;
use readpath_session::ubi::ubifs::CheckReport;
use readpath_session::ubi::{Opened, findings, open_volume, wrong};
use serde_json::{Value, json};
use std::io::Write;

pub fn check(args: &UbiCheck) -> Result<()> {
    let image = &args.input.image;
    let (below, report, without_ubifs) = match open_volume(&args.input, false)? {
        Opened::Ubifs(mut volume) => {
            let below = findings(&args.input, volume.ubi())?;
            let report = readpath_session::ubi::ubifs::check(volume, args.most).map_err(|e| wrong(image, e))?;
            (below, report, None)
        }
        Opened::Other { mut ubi, id, is_static } => {
            let below = findings(&args.input, &mut ubi)?;
            let volume = ubi.volume(id).map_err(|e| usage(anyhow!("{}: {e}", image.display())))?;
            let name = printable(&volume.record.name);
            let what = match is_static {
                true => {
                    let compared = format!("its {} bytes were compared with their checksums", volume.bytes());
                    format!("volume {id} \"{name}\" is static and holds no UBIFS: {compared}")
                }
                false => format!("volume {id} \"{name}\" holds no UBIFS: only UBI was checked"),
            };
            (below, CheckReport::default(), Some(what))
        }
    };
    let listed = &below[..below.len().min(args.most)];
    let below_damage = below.iter().filter(|f| f.is_damage).count() as u64;
    let c = &report.counts;
    let mut out = stdout();
    let is_clean = report.is_clean() && below_damage == 0;
    if args.json {
        let mut value = document(listed, below.len(), &report);
        value["clean"] = is_clean.into();
        if let Some(what) = without_ubifs {
            value["without_ubifs"] = what.into();
        }
        out.write_all(json_text(&value).as_bytes())?;
    } else {
        for finding in listed {
            writeln!(out, "{finding}")?;
        }
        for damage in &report.findings {
            writeln!(out, "{damage}")?;
        }
        let clean = if is_clean { "clean: " } else { "" };
        let unclean = if report.unclean { "; it had not been unmounted" } else { "" };
        match without_ubifs {
            Some(what) => writeln!(out, "{clean}{what}")?,
            None => writeln!(
                out,
                "{clean}{} inodes, {} entries, {} attributes, {} data nodes ({} bytes), {} index nodes, {} nodes of \
                 the journal{unclean}",
                c.inodes, c.entries, c.xattrs, c.data_nodes, c.data_bytes, c.index_nodes, c.journal_nodes
            )?,
        }
    }
    out.flush()?;
    if is_clean {
        return Ok(());
    }
    let n = report.findings.len() as u64 + report.unlisted + below_damage;
    let what = if n == 1 { "thing is" } else { "things are" };
    Err(Damaged(format!("{}: {n} {what} wrong", image.display())).into())
}

fn document(listed: &[Finding], below: usize, report: &CheckReport) -> Value {
    let c = &report.counts;
    let findings = report.findings.iter().map(|d| {
        json!({
            "kind": d.kind.name(),
            "leb": d.place.lnum,
            "peb": d.place.peb,
            "offset": d.place.offset,
            "detail": d.detail,
        })
    });
    let ubi = listed.iter().map(|f| {
        json!({
            "kind": f.kind,
            "is_damage": f.is_damage,
            "peb": f.place.map(|(peb, _)| peb),
            "offset": f.place.map(|(_, offset)| offset),
            "detail": f.detail,
        })
    });
    json!({
        "ubi_findings": ubi.collect::<Vec<_>>(),
        "ubi_unlisted": below - listed.len(),
        "findings": findings.collect::<Vec<_>>(),
        "unlisted": report.unlisted,
        "unclean": report.unclean,
        "index_nodes": c.index_nodes,
        "inodes": c.inodes,
        "entries": c.entries,
        "xattrs": c.xattrs,
        "data_nodes": c.data_nodes,
        "data_bytes": c.data_bytes,
        "journal_nodes": c.journal_nodes,
    })
}
