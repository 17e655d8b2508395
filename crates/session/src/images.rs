// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of devices: opened, made and recovered from, with errors that name the file.

use crate::failure::{Damaged, classify};
use crate::inputs::read_text;
use crate::presets::overrides;
use crate::{typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::DevicePreset;
use readpath_config::experiment::Variant;
use readpath_device::{Layout, Recovery, UfsDevice, WithMedia};
use readpath_flash::AnySched;
use readpath_kit::{Ns, Prng};
use readpath_lab::experiment::plan;
use readpath_lab::runs::{ExperimentError, Shared, expected_ios, watch};
use readpath_run::{Past, age};
use readpath_store::{self as store, Disk, FileDisk, Format, ImageError, Shape};
use readpath_workload::Workload;
use std::path::Path;

/// A device image in a file.
pub type Image = store::Image<FileDisk>;

/// A device that recovered from an image.
pub type Recovered = UfsDevice<AnySched, WithMedia, ()>;

fn of_image(path: &Path, error: ImageError) -> anyhow::Error {
    let message = anyhow!("{}: {error}", path.display());
    match error {
        ImageError::Contents(_) => Damaged(message.to_string()).into(),
        _ => usage(message),
    }
}

/// Opens an image: its flash, and the device in its head.
///
/// # Errors
/// A mistake of the user, or damage.
pub fn open(path: &Path, writable: bool, syncs: bool) -> Result<(Image, DevicePreset)> {
    opened(path, Image::open(path, writable, syncs))
}

/// The last commit whose program has zones in the page map.
const PAGE_MAPPED_ZONES: &str = "910519b9";

/// Whether the device file of an image is from before zones had superblocks of their own. That brought a key, and the
/// program writes all keys.
fn has_zones_in_the_page_map(device: &str) -> bool {
    let has = |begins: &str| device.lines().any(|line| line.starts_with(begins));
    has("[lu.zones]") && !has("program_kib = ")
}

/// Opens an image on any disk.
///
/// # Errors
/// As [`open`].
pub fn opened<D: Disk>(
    path: &Path,
    image: Result<store::Image<D>, ImageError>,
) -> Result<(store::Image<D>, DevicePreset)> {
    let image = image.map_err(|error| of_image(path, error))?;
    let version = image.array.format().version;
    if version < Format::WITH_PLACED_ZONES && has_zones_in_the_page_map(&image.text) {
        return Err(usage(anyhow!(
            "{}: it has format {version}, with zones in the page map; this Readpath ({}) reads formats 1 to {}, but \
             zones only in superblocks of their own. The program of commit {PAGE_MAPPED_ZONES} reads it: attach it \
             with that, and copy its data to a new image. It was not changed",
            path.display(),
            env!("CARGO_PKG_VERSION"),
            store::VERSION
        )));
    }
    let name = format!("{}: the device file in it", path.display());
    // The program wrote it whole, so nobody has mistyped a key.
    let preset = readpath_config::device::parse(&image.text, &name).map_err(|error| {
        usage(anyhow!(
            "{error}. Another version of Readpath made the image, of format {version}: use that, or copy its data with \
             that to a new image"
        ))
    })?;
    if Shape::of(&preset.device) != image.array.format().shape {
        return Err(Damaged(format!("{}: its device file is of another device", path.display())).into());
    }
    Ok((image, preset))
}

/// Sizes of the file of an image in bytes: its length, and what it takes on its disk.
///
/// # Errors
/// When they cannot be read.
pub fn sizes(path: &Path) -> Result<(u64, u64)> {
    Ok(FileDisk::open(path, false)?.sizes()?)
}

/// A device before its image is written.
#[derive(Default)]
pub struct Aged {
    /// The order in which every block was written, if it was.
    pub fill: Option<Layout>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Serial number of the device.
    pub serial: u64,
    /// The workload that ran on it, if one did.
    pub workload: Option<Workload>,
}

impl Aged {
    /// Requests of the workload; none if there is no workload, or it runs for a time.
    pub fn expected_ios(&self) -> Option<u64> {
        self.workload.as_ref().and_then(expected_ios)
    }
}

/// The workload of a fio job on a device with the keys of `set`.
///
/// # Errors
/// When the job or the device is wrong.
pub fn workload(job: &Path, device: &str, set: &[String], seed: u64) -> Result<Workload> {
    let off = vec![Variant::new("off", None, Vec::new())];
    let mut experiment = typed::of_job(job, device, crate::args::Fill::None, off);
    experiment.seed = seed;
    let mut plans = plan(&experiment, &overrides(set)?, &read_text).map_err(classify)?;
    Ok(plans.remove(0).workload)
}

/// The serial number of a new image's device: another one for each name of a file, and the same when it is made again.
pub fn serial(path: &Path, seed: u64) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Prng::stream(seed, &name, 0).next_u64()
}

/// Makes an image.
///
/// # Errors
/// When the workload fails, the image cannot be written, or the command is to stop.
pub fn make(path: &Path, preset: &DevicePreset, mut aged: Aged, shared: &Shared) -> Result<()> {
    let Aged { fill, seed, serial, workload } = &mut aged;
    let past = Past { fill: *fill, seed: *seed, workload: workload.as_mut() };
    let mut device = age(preset, past, &mut watch(shared, 0)).map_err(|error| {
        classify(ExperimentError::Run { case: path.display().to_string(), variant: "aged".to_owned(), error })
    })?;
    device.set_serial(*serial);
    Image::create(path, &preset.echo().to_toml(), *seed, &mut device).map_err(|error| of_image(path, error))
}

/// Lets a device recover from an image, which is not changed.
///
/// # Errors
/// Damage, or a device that cannot be made.
pub fn recover(path: &Path, image: &mut Image, preset: &DevicePreset) -> Result<(Recovered, Recovery)> {
    let mut device = Recovered::new(&preset.device, preset.delays, ()).map_err(usage)?;
    let recovery = device.power_on_with(Ns::ZERO, &mut image.array);
    let recovery = recovery.map_err(|error| Damaged(format!("{}: {error}", path.display())))?;
    Ok((device, recovery))
}
