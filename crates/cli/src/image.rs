// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath image`: the flash of a device in a file, made, described, checked, copied and emptied.

use crate::args::{Fill, ImageCommand, ImageCreate, ImageFill};
use crate::failure::{Damaged, classify};
use crate::inputs::read_text;
use crate::presets::{overrides, preset};
use crate::{output, rpmb, stop, typed, usage};
use anyhow::{Context, Result, anyhow};
use readpath_config::DevicePreset;
use readpath_config::experiment::Variant;
use readpath_device::{Layout, NoMedia, UfsDevice, WithMedia};
use readpath_flash::{AnySched, DieSched};
use readpath_kit::Ns;
use readpath_lab::experiment::plan;
use readpath_lab::runs::{ExperimentError, Shared, expected_ios, watch};
use readpath_run::{Finish, Past, age};
use readpath_store::{FileDisk, Image, ImageError, Shape};
use readpath_workload::Workload;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub fn main(command: &ImageCommand) -> Result<()> {
    match command {
        ImageCommand::Create(args) => create(args),
        ImageCommand::Info { image } => info(image),
        ImageCommand::Check { image } => check(image),
        ImageCommand::Clone { image, copy } => clone(image, copy),
        ImageCommand::Reset { image } => reset(image),
        ImageCommand::Rpmb(command) => rpmb::main(command),
    }
}

/// What is wrong with an image, with its name.
pub fn of_image(path: &Path, error: ImageError) -> anyhow::Error {
    let message = anyhow!("{}: {error}", path.display());
    match error {
        ImageError::Contents(_) => Damaged(message.to_string()).into(),
        _ => usage(message),
    }
}

/// An image, and the device that it is of.
pub fn open(path: &Path, writable: bool, syncs: bool) -> Result<(Image<FileDisk>, DevicePreset)> {
    let image = Image::open(path, writable, syncs).map_err(|error| of_image(path, error))?;
    let name = format!("{}: the device file in it", path.display());
    let preset = readpath_config::device::parse(&image.text, &name).map_err(usage)?;
    if Shape::of(&preset.device) != image.array.format().shape {
        return Err(Damaged(format!("{}: its device file is of another device", path.display())).into());
    }
    Ok((image, preset))
}

fn create(args: &ImageCreate) -> Result<()> {
    let preset = preset(&args.device, &args.set)?;
    if args.image.exists() {
        return Err(usage(anyhow!("{}: is there already; name another file, or remove it", args.image.display())));
    }
    let mut workload = args.age.as_deref().map(|job| job_of(job, args)).transpose()?;
    let layout = match args.fill {
        ImageFill::None => None,
        ImageFill::Sequential => Some(Layout::Sequential),
        ImageFill::Random => Some(Layout::Random),
    };
    write(&args.image, &preset, layout, args.seed, workload.as_mut())?;
    let blocks = preset.device.logical_blocks();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (bytes, taken) = FileDisk::open(&args.image, false)?.sizes()?;
    writeln!(
        io::stdout(),
        "{}: {} with {:.2} GiB, {}; the file takes {:.2} of {:.2} GiB",
        args.image.display(),
        preset.name,
        gib(blocks * 4096),
        match (&args.age, args.fill) {
            (Some(job), _) => format!("aged by {}", job.display()),
            (None, ImageFill::None) => "empty".to_owned(),
            (None, _) => "full of zeros".to_owned(),
        },
        gib(taken),
        gib(bytes)
    )?;
    Ok(())
}

/// The workload of a fio job on the device that is to be made.
fn job_of(job: &Path, args: &ImageCreate) -> Result<Workload> {
    let off = vec![Variant::new("off", None, Vec::new())];
    let mut experiment = typed::of_job(job, &args.device, Fill::None, off);
    experiment.seed = args.seed;
    let mut plans = plan(&experiment, &overrides(&args.set)?, &read_text).map_err(classify)?;
    Ok(plans.remove(0).workload)
}

/// Makes an image of a device with a past.
fn write(
    path: &Path,
    preset: &DevicePreset,
    fill: Option<Layout>,
    seed: u64,
    workload: Option<&mut Workload>,
) -> Result<()> {
    struct Maker<'a> {
        path: &'a Path,
        text: String,
        seed: u64,
    }
    impl Finish for Maker<'_> {
        type Output = Result<(), ImageError>;

        fn finish<S: DieSched>(self, device: &mut UfsDevice<S, NoMedia, ()>) -> Self::Output {
            Image::create(self.path, &self.text, self.seed, device)
        }
    }
    let shared = Arc::new(Shared::default());
    stop::in_order(shared.stop.clone())?;
    let _progress = workload.as_deref().map(|workload| output::Progress::start(shared.clone(), expected_ios(workload)));
    let maker = Maker { path, text: preset.echo().to_toml(), seed };
    let aged = age(preset, Past { fill, seed, workload }, &mut watch(&shared, 0), maker);
    let aged = aged.map_err(|error| {
        classify(ExperimentError::Run { case: path.display().to_string(), variant: "aged".to_owned(), error })
    })?;
    aged.map_err(|error| of_image(path, error))
}

fn info(path: &Path) -> Result<()> {
    let (mut image, preset) = open(path, false, false)?;
    let (bytes, taken) = image.array.disk().sizes()?;
    let (recovered, recovery) = recover(path, &mut image, &preset)?;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let wear = recovered.wear();
    let mut out = io::stdout().lock();
    writeln!(out, "device      {}: {}", preset.name, preset.description.trim())?;
    writeln!(
        out,
        "capacity    {:.2} GiB, {} logical units",
        gib(preset.device.logical_blocks() * 4096),
        preset.device.lus.len()
    )?;
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

type Recovered = UfsDevice<AnySched, WithMedia, ()>;

/// Lets a device recover from an image, which stays as it is.
fn recover(
    path: &Path,
    image: &mut Image<FileDisk>,
    preset: &DevicePreset,
) -> Result<(Recovered, readpath_device::Recovery)> {
    let mut device = Recovered::new(&preset.device, preset.delays, ()).map_err(usage)?;
    let recovery = device.power_on_with(Ns::ZERO, &mut image.array);
    let recovery = recovery.map_err(|error| Damaged(format!("{}: {error}", path.display())))?;
    Ok((device, recovery))
}

fn check(path: &Path) -> Result<()> {
    stop::at_once(stop::Written::Nothing)?;
    let (mut image, preset) = open(path, false, false)?;
    let superblocks = image.array.format().shape.superblocks;
    let bar = output::bar(u64::from(superblocks), "superblocks");
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
    let recovered = recover(path, &mut image, &preset);
    let consistent = recovered.and_then(|(device, _)| {
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
    let made = OpenOptions::new().write(true).create_new(true).open(copy);
    let mut to = made.map_err(|error| usage(anyhow!("{}: {error}", copy.display())))?;
    let copied = copy_holes(image.array.disk().file(), &mut to);
    if copied.is_err() {
        std::fs::remove_file(copy).ok();
    }
    copied.with_context(|| format!("{}: cannot copy", copy.display()))
}

/// Copies what is not a hole; shares it where the file system can.
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

/// Copies a range to the same place. File systems of different kinds know no other way than through memory.
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
    // Nobody else may have it open meanwhile.
    let (image, preset) = open(path, true, false)?;
    let shown = path.display();
    // A link stays one.
    let path = &path.canonicalize()?;
    let name = path.file_name().context("an image has a name")?.to_string_lossy().into_owned();
    let new = path.with_file_name(format!(".{name}.new-{}", std::process::id()));
    write(&new, &preset, None, image.array.format().seed, None)?;
    std::fs::rename(&new, path).with_context(|| format!("{shown}: cannot take the place of the old image"))?;
    Ok(writeln!(io::stdout(), "{shown}: empty")?)
}
