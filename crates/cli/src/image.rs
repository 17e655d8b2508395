// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath image`: the flash of a device in a file, made, described, checked, copied and emptied.

use crate::args::{ImageCommand, ImageCreate};
use crate::failure::Damaged;
use crate::presets::preset;
use crate::{output, rpmb, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_session::args::Fill;
use readpath_session::config::DevicePreset;
use readpath_session::images::{self, Aged, open, recover};
use readpath_session::lab::runs::Shared;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub fn main(command: &ImageCommand) -> Result<()> {
    match command {
        ImageCommand::Create(args) => create(args),
        ImageCommand::Info { image } => info(image),
        ImageCommand::Check { image } => check(image),
        ImageCommand::Clone { image, output } => clone(image, output),
        ImageCommand::Reset { image } => reset(image),
        ImageCommand::Rpmb { image, key, reset } => rpmb::main(image, *key, *reset),
    }
}

fn create(args: &ImageCreate) -> Result<()> {
    let preset = preset(&args.device, &args.set)?;
    if args.image.exists() {
        return Err(usage(anyhow!("{}: already exists; name another file, or remove it", args.image.display())));
    }
    let workload = args.age.as_deref().map(|job| images::workload(job, &args.device, &args.set, args.seed));
    let workload = workload.transpose()?;
    let serial = images::serial(&args.image, args.seed);
    make(&args.image, &preset, Aged { fill: args.fill.layout(), seed: args.seed, serial, workload })?;
    let blocks = preset.device.logical_blocks();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (bytes, taken) = images::sizes(&args.image)?;
    writeln!(
        io::stdout(),
        "{}: {} with {:.2} GiB, {}; the file takes {:.2} of {:.2} GiB",
        args.image.display(),
        preset.name,
        gib(blocks * 4096),
        match (&args.age, args.fill) {
            (Some(job), _) => format!("aged by {}", job.display()),
            (None, Fill::None) => "empty".to_owned(),
            (None, _) => "full of zeros".to_owned(),
        },
        gib(taken),
        gib(bytes)
    )?;
    Ok(())
}

/// Makes an image, with progress and until a signal.
fn make(path: &Path, preset: &DevicePreset, aged: Aged) -> Result<()> {
    let shared = Arc::new(Shared::default());
    stop::in_order(shared.stop.clone())?;
    let _progress = aged.workload.is_some().then(|| output::Progress::start(shared.clone(), aged.expected_ios()));
    images::make(path, preset, aged, &shared)
}

fn info(path: &Path) -> Result<()> {
    let (mut image, preset) = open(path, false, false)?;
    let (bytes, taken) = image.array.disk().sizes()?;
    let (recovered, recovery) = recover(path, &mut image, &preset)?;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let wear = recovered.wear();
    let mut out = io::stdout().lock();
    writeln!(out, "device      {}: {}", preset.name, preset.description.trim())?;
    let format = image.array.format();
    writeln!(out, "format      {}", format.version)?;
    writeln!(out, "serial      {:016X}", format.serial)?;
    writeln!(
        out,
        "capacity    {:.2} GiB, {} logical units",
        gib(preset.device.logical_blocks() * 4096),
        preset.device.lus.len()
    )?;
    for (lun, lu) in (0..).zip(&preset.device.lus) {
        let Some((zones, [empty, in_part, full])) = lu.zones.zip(recovered.zone_counts(lun)) else { continue };
        let mib = zones.blocks >> 8;
        writeln!(out, "zones       unit {lun}, of {mib} MiB: {empty} empty, {in_part} written in part, {full} full")?;
    }
    writeln!(out, "file        {:.2} GiB, of which {:.2} GiB take space", gib(bytes), gib(taken))?;
    writeln!(out, "written     {:.2} GiB are mapped", gib(recovered.valid_slices() * 4096))?;
    writeln!(
        out,
        "wear        {:.1} erases of a superblock in the mean, {} at most; {} bad blocks",
        wear.mean, wear.max, wear.bad_blocks
    )?;
    writeln!(
        out,
        "recovery    {} of device time: {} pages read, {} units torn",
        recovery.ready_at,
        recovery.reads(),
        recovery.torn
    )?;
    Ok(())
}

fn check(path: &Path) -> Result<()> {
    stop::at_once(stop::Written::Nothing)?;
    let (mut image, preset) = open(path, false, false)?;
    let superblocks = image.array.format().shape.superblocks;
    let bar = output::bar(u64::from(superblocks), "superblocks");
    // What a crash left is marked as torn then, and is no damage.
    let recovered = recover(path, &mut image, &preset);
    let found = image.examine(|done| bar.set_position(u64::from(done)));
    bar.finish_and_clear();
    let mut out = io::stdout().lock();
    let damage = found.damage;
    writeln!(
        out,
        "{}: {} slices programmed, {} of them with data; {} torn",
        path.display(),
        damage.programmed,
        damage.with_data,
        damage.torn
    )?;
    found.faults.iter().try_for_each(|fault| writeln!(out, "  {fault}"))?;
    let more = damage.damaged.saturating_sub(found.faults.len() as u64);
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    let consistent = recovered.and_then(|(device, recovery)| {
        if recovery.torn > 0 {
            writeln!(
                out,
                "  {} units were torn when the power went; they held nothing that was flushed",
                recovery.torn
            )?;
        }
        device.check_consistency().map_err(|what| Damaged(format!("{}: {what}", path.display())).into())
    });
    if let Err(error) = &consistent {
        writeln!(out, "  {error}")?;
    }
    match found.faults.is_empty() && consistent.is_ok() {
        true => Ok(writeln!(out, "The device recovers from it, and everything adds up.")?),
        false => Err(Damaged(format!("{}: is damaged", path.display())).into()),
    }
}

fn clone(path: &Path, copy: &Path) -> Result<()> {
    let (image, _) = open(path, false, false)?;
    let refused = |error: io::Error| usage(anyhow!("{}: {error}", copy.display()));
    if copy.symlink_metadata().is_ok() {
        return Err(refused(io::ErrorKind::AlreadyExists.into()));
    }
    // A clone that is killed leaves a file of another name.
    let name = copy.file_name().with_context(|| format!("{}: is no name of a file", copy.display()))?;
    let new = copy.with_file_name(format!(".{}.new-{}", name.to_string_lossy(), std::process::id()));
    let mut to = OpenOptions::new().write(true).create_new(true).open(&new).map_err(refused)?;
    let copied = copy_holes(image.array.disk().file(), &mut to).and_then(|()| put(&new, copy));
    if copied.is_err() {
        std::fs::remove_file(&new).ok();
    }
    copied.with_context(|| format!("{}: cannot copy", copy.display()))
}

/// Gives a file its name, under which there must be none.
fn put(new: &Path, name: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, new, CWD, name, RenameFlags::NOREPLACE) {
        // Not every file system can promise not to replace.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(new, name),
        put => Ok(put?),
    }
}

/// Copies what is not a hole; shares the blocks where the file system can.
fn copy_holes(from: &std::fs::File, to: &mut std::fs::File) -> io::Result<()> {
    use rustix::fs::{SeekFrom, ioctl_ficlone, seek};
    if ioctl_ficlone(&to, from).is_ok() {
        return to.sync_all();
    }
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let mut at = 0;
    while at < length {
        let begin = match seek(from, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // Only a hole is left.
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(begin))?;
        copy_range(from, to, begin..end)?;
        at = end;
    }
    to.sync_all()
}

/// Copies a range to the same place, through memory: copy_file_range(2) does not work across all file systems.
fn copy_range(from: &std::fs::File, to: &std::fs::File, range: std::ops::Range<u64>) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; 1 << 20];
    let mut at = range.start;
    while at < range.end {
        let part = &mut bytes[..(range.end - at).min(1 << 20) as usize];
        from.read_exact_at(part, at)?;
        to.write_all_at(part, at)?;
        at += part.len() as u64;
    }
    Ok(())
}

fn reset(path: &Path) -> Result<()> {
    // Opened for writing, it is locked until the end.
    let (image, preset) = open(path, true, false)?;
    let shown = path.display();
    // A link stays one.
    let path = &path.canonicalize()?;
    let name = path.file_name().context("an image has a name")?.to_string_lossy().into_owned();
    let new = path.with_file_name(format!(".{name}.new-{}", std::process::id()));
    let format = image.array.format();
    make(&new, &preset, Aged { seed: format.seed, serial: format.serial, ..Aged::default() })?;
    std::fs::rename(&new, path).with_context(|| format!("{shown}: cannot take the place of the old image"))?;
    Ok(writeln!(io::stdout(), "{shown}: empty")?)
}
