// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device`: what presets there are, what they say, and whether a file is one.

use crate::args::DeviceCommand;
use crate::failure::describe;
use crate::inputs::{self, read_text};
use crate::{presets, usage};
use anyhow::{Result, anyhow};
use readpath_session::config::DevicePreset;
use readpath_session::device::{ANCHORS, ZoneConfig};
use std::io::{self, Write};
use std::path::Path;

pub fn main(command: &DeviceCommand) -> Result<()> {
    match command {
        DeviceCommand::List => list(),
        DeviceCommand::Show { name, set } => show(name, set),
        DeviceCommand::Schema => schema(),
        DeviceCommand::Check { files } => check(files),
        DeviceCommand::Fit(args) => crate::fit::main(args),
        DeviceCommand::Probe(command) => crate::probe::main(command),
    }
}

fn list() -> Result<()> {
    let mut out = io::stdout().lock();
    for builtin in readpath_session::config::presets() {
        let preset = readpath_session::config::device::parse(builtin.text, builtin.file)?;
        writeln!(out, "{:<12} {}", preset.name, preset.description.trim())?;
    }
    Ok(())
}

fn show(name: &str, set: &[String]) -> Result<()> {
    let preset = presets::preset(name, set)?;
    let mut out = io::stdout().lock();
    write!(out, "{}", preset.echo().to_toml())?;
    for line in facts(&preset)? {
        writeln!(out, "# {line}")?;
    }
    Ok(())
}

fn schema() -> Result<()> {
    let schema = serde_json::to_string_pretty(&readpath_session::config::device::schema())?;
    Ok(writeln!(io::stdout().lock(), "{schema}")?)
}

/// What follows from a preset, in sentences.
fn facts(preset: &DevicePreset) -> Result<Vec<String>> {
    let (d, g) = (&preset.device, &preset.device.geometry);
    let gib = |blocks: u64| blocks as f64 * 4096.0 / (1u64 << 30) as f64;
    let us = |ns: u64| ns as f64 / 1e3;
    let spare = u64::from(g.slices()) - d.logical_blocks();
    let hit = preset.delays.to_link.0
        + preset.host.cores.map_or(0, |cores| cores.time_alone().0)
        + d.link.request.0
        + d.firmware.read_command.0
        + d.firmware.flash_op.0
        + d.flash.read.0
        + d.flash.transfer_block.0
        + d.link.block.0
        + d.link.response.0
        + preset.delays.from_link.0;
    let miss = hit + d.firmware.flash_op.0 + d.flash.map_read.0 + d.flash.map_transfer.0;
    let sram = readpath_session::running::sram(preset)?;
    let not_data = ANCHORS + d.meta_superblocks() + d.static_superblocks() + d.ftl.collect_below;
    let of_zones = match d.zone_superblocks() {
        0 => String::new(),
        zones => format!(", {zones} of them for zones"),
    };
    let mut lines = vec![
        format!(
            "flash {:.2} GiB, logical {:.2} GiB, beyond it {:.2} GiB",
            gib(g.slices().into()),
            gib(d.logical_blocks()),
            gib(spare)
        ),
        format!(
            "over-provisioning {:.2} GiB, {:.2} % of the logical capacity: of {} superblocks of {:.2} MiB, {ANCHORS} \
             hold anchors, {} are for the map ({} that it fills, {} for journal, checkpoints and collecting it), {} \
             are kept erased, and {} are for data{of_zones}",
            gib(d.spare_slices()),
            d.spare_slices() as f64 * 100.0 / d.logical_blocks() as f64,
            g.superblocks(),
            gib(g.slices_per_superblock().into()) * 1024.0,
            d.meta_superblocks(),
            d.map_superblocks(),
            d.ftl.spare_map_superblocks,
            d.ftl.collect_below,
            g.superblocks() - not_data
        ),
        format!(
            "4 KiB read at queue depth 1: {:.1} us with its map entry in SRAM, {:.1} us without",
            us(hit),
            us(miss)
        ),
        format!(
            "map cache: {} pages of {} bytes cover {:.2} GiB",
            d.map_cache_bytes / d.map_page_bytes,
            d.map_page_bytes,
            gib(u64::from(d.map_cache_bytes / d.map_page_bytes) * u64::from(d.map_page_entries()))
        ),
        {
            let longest = d.longest_recovery();
            format!(
                "recovery after a power cut: at most {} pages read in {:.0} ms (checkpoint {}, programmed since {}, \
                 map {})",
                longest.reads(),
                us(longest.ready_at.0) / 1000.0,
                longest.checkpoint_reads,
                longest.units_read,
                longest.map_page_reads
            )
        },
    ];
    for (lun, lu) in d.lus.iter().enumerate() {
        let Some(zones) = lu.zones else { continue };
        // One for each zone that may be open, and one for all else.
        let apart = u64::from(zones.most_open + 1) * u64::from(g.dies() * zones.program_blocks) * 4;
        lines.push(format!(
            "zones of unit {lun}: {}, placed by {} bytes; a write buffer for each of {} open ones and for other data, \
             of a program on every die, would take {apart} KiB",
            lu.zone_count(),
            u64::from(lu.zone_count()) * ZoneConfig::ENTRY_BYTES,
            zones.most_open
        ));
    }
    if d.slc_cache.is_some() {
        let each = u64::from(d.cache_slices());
        let mode = match d.slc_cache.and_then(|cache| cache.cells) {
            Some(cells) => format!("with {} bits a cell", cells.bits),
            None => "in SLC mode".to_owned(),
        };
        let kept = d.static_superblocks();
        let kept = if kept > 0 { format!("; {kept} serve nothing else, the others are") } else { ";".to_owned() };
        lines.push(format!(
            "{}: {} superblocks {mode} hold {:.2} MiB each, {:.2} GiB{kept} lent while more than {} superblocks can be \
             spared",
            if d.write_booster().is_some() { "WriteBooster" } else { "SLC cache" },
            d.cache_superblocks(),
            gib(each) * 1024.0,
            gib(each * u64::from(d.cache_superblocks())),
            d.ftl.collect_below
        ));
    }
    let tables: Vec<String> = sram.iter().map(|(table, bytes)| format!("{} {bytes}", table.name())).collect();
    lines.push(format!("device SRAM in bytes: {}", tables.join(", ")));
    Ok(lines)
}

fn check(files: &[std::path::PathBuf]) -> Result<()> {
    let mut wrong = 0;
    for file in files {
        match check_one(file) {
            Ok(name) => writeln!(io::stdout(), "{}: {name} is a device", file.display())?,
            Err(e) => {
                writeln!(io::stderr(), "readpath: {}", describe(&e)).ok();
                wrong += 1;
            }
        }
    }
    if wrong > 0 {
        return Err(usage(anyhow!("{wrong} of {} files checked: not a device", files.len())));
    }
    Ok(())
}

fn check_one(file: &Path) -> Result<String> {
    let name = file.to_string_lossy();
    if !file.exists() && file.extension().is_none() {
        return Ok(readpath_session::config::device::load(&name, &read_text)?.name);
    }
    Ok(readpath_session::config::device::parse(&inputs::text(file)?, &name)?.name)
}
