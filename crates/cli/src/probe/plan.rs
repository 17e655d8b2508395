// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device probe plan`: looks what the target is, and writes jobs that measure it. It runs no job, and
//! opens a disk only to ask for its size.

use super::SCRIPT;
use crate::args::ProbePlan;
use crate::files::{NewFolder, write_whole};
use crate::{presets, units, usage};
use anyhow::{Context, Result, anyhow};
use readpath_session::ask::probe::{DEVICE, PLAN};
use readpath_session::config::{DevicePreset, size};
use readpath_session::lab::probe::{Ask, JobFile, Plan};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

pub fn main(args: &ProbePlan) -> Result<()> {
    let preset = presets::preset(&args.device, &args.set)?;
    if let Some(named) = args.destructive.as_ref().filter(|named| **named != args.target) {
        return Err(usage(anyhow!(
            "--destructive names {named:?}, but --target {:?}; what may be overwritten must be named twice alike",
            args.target
        )));
    }
    let bytes = |option: &str, text: &Option<String>| {
        let of = |text: &String| size(text).map_err(|e| usage(anyhow!("{option}: {e}")));
        text.as_ref().map(of).transpose()
    };
    if !(0.01..=50.0).contains(&args.error) {
        return Err(usage(anyhow!("--error is {}; expected 0.01 to 50 (percent)", args.error)));
    }
    let ask = Ask {
        target: args.target.clone(),
        size_bytes: target_bytes(Path::new(&args.target), bytes("--size", &args.size)?)?,
        writes: args.destructive.is_some(),
        seconds: args.seconds,
        error_percent: args.error,
        long_write_bytes: bytes("--long-write", &args.long_write)?,
        fill: args.fill,
        experts: args.experts,
    };
    let plan = Plan::new(&preset, &ask).map_err(usage)?;
    check_new(&args.out)?;
    let files = write(&args.out, &plan, 0, &preset)?;
    let mut text = told(&plan, &files, &args.out);
    if let Some(needed) = plan.needs_bytes(&preset) {
        text.push_str(&format!(
            "Note: a target of {} or more would show how large the map cache is; this one is shorter.\n",
            units::bytes(needed)
        ));
    }
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// How large the target is. One that is not here has the size that was typed.
fn target_bytes(path: &Path, typed: Option<u64>) -> Result<u64> {
    let name = path.display();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return typed.ok_or_else(|| {
                usage(anyhow!(
                    "{name}: does not exist, and reads need data that was written once. Make it (fio --name=fill \
                     --filename={name} --rw=write --bs=1m --size=8g --direct=1), or give --size if it is on another \
                     machine"
                ))
            });
        }
        Err(e) => return Err(usage(anyhow!("{name}: cannot be looked at: {e}"))),
    };
    let is_disk = meta.file_type().is_block_device();
    if !is_disk && !meta.is_file() {
        return Err(usage(anyhow!("{name}: is neither a file nor a disk")));
    }
    let here = match (is_disk, typed) {
        // A disk that may not be opened has the size that was typed.
        (true, Some(typed)) => typed,
        (true, None) => File::open(path)
            .and_then(|mut disk| disk.seek(SeekFrom::End(0)))
            .map_err(|e| usage(anyhow!("{name}: its size cannot be found ({e}); give --size")))?,
        (false, _) => meta.len(),
    };
    match typed {
        Some(typed) if typed > here => {
            Err(usage(anyhow!("--size is {typed} bytes, but {name} has {here}; make it larger, or the size smaller")))
        }
        Some(typed) => Ok(typed),
        None => Ok(here),
    }
}

/// Refuses a folder that has a plan: its results would no longer belong to it.
pub fn check_new(folder: &Path) -> Result<()> {
    let file = folder.join(PLAN);
    if file.exists() {
        return Err(usage(anyhow!("{}: already exists; choose another folder", file.display())));
    }
    Ok(())
}

/// Writes a plan, the device that it was made for, the jobs behind the first ones, and the script.
pub fn write(folder: &Path, plan: &Plan, first: usize, preset: &DevicePreset) -> Result<Vec<JobFile>> {
    let files = plan.job_files(first);
    let _made = NewFolder::create(folder)?;
    for file in &files {
        write_whole(&folder.join(format!("{}.fio", file.name)), file.text.as_bytes())?;
    }
    write_whole(&folder.join(DEVICE), preset.echo().to_toml().as_bytes())?;
    let script = folder.join(SCRIPT);
    write_whole(&script, plan.script(&files).as_bytes())?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("{}: cannot be made executable", script.display()))?;
    write_whole(&folder.join(PLAN), plan.to_json().as_bytes())?;
    Ok(files)
}

fn told(plan: &Plan, files: &[JobFile], folder: &Path) -> String {
    let held_out = plan.jobs.iter().filter(|job| job.held_out).count();
    let results: Vec<String> =
        files.iter().map(|f| folder.join(format!("{}.json", f.name)).display().to_string()).collect();
    let writes = match plan.writes() {
        true => format!("They WRITE to {}: what it holds is lost.", plan.target),
        false => format!("They only read {}, which must have been written once, in ascending order.", plan.target),
    };
    format!(
        "{} jobs in {} files; {held_out} of them are held out of the fit. They reach {} into the target.\n{writes}\n\n\
         Run them:  sh {}\nThen:      readpath device probe fit --plan {} {}\n",
        plan.jobs.len(),
        files.len(),
        units::bytes(plan.reach_bytes()),
        folder.join(SCRIPT).display(),
        folder.display(),
        results.join(" ")
    )
}
