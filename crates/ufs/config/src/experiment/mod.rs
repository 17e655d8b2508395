// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files: a device, a workload, the variants to compare, and published results. The workload is plain data
//! here, from which the runner makes requests. Each file of this folder has tables of its keys;
//! `docs/formats/experiment.md` documents them.

mod claim;
mod configured;
pub(crate) mod events;
mod host_control;
mod launches;
mod typed;
mod variant;
pub(crate) mod workload;

pub use claim::Claim;
pub use events::{Event, EventKind, MOST_EVENTS, keeps_memory};
pub use launches::LaunchKeys;
pub use readpath_device::Layout;
pub use typed::{GivenKey, hpb_mode};
pub use variant::Variant;
pub use workload::{Fio, FioCase, Iozone, IozoneCase, Workload};

use crate::builtin::{self, ReadFile};
use crate::device::{self, DevicePreset};
use crate::error::Result;
use crate::keys::{
    Keys, fields, filled, keys, list, number, read_document, snake, table, text, texts, whole, words, write_document,
};
use crate::tree::parse_document;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "readpath-experiment/1";

/// An experiment file that has been read and checked. It serialises in the names and units of the file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name in snake case.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Question and method.
    pub description: String,
    /// Sources of the published values.
    pub citations: Vec<String>,
    /// The device as the file names it: a preset, or a path relative to the experiment file.
    pub device: String,
    /// What distinguishes cases, for the axes of charts.
    pub axis: Option<String>,
    /// What distinguishes variants: then charts are drawn over them, with a line for each case.
    pub variant_axis: Option<String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Contents of the device before the first request.
    pub precondition: Precondition,
    /// The workload.
    pub workload: Workload,
    /// Variants to compare, in order.
    pub variants: Vec<Variant>,
    /// Events during every run, in order of time.
    pub events: Vec<Event>,
    /// Published values.
    pub published: Vec<Published>,
    /// Published claims.
    pub claims: Vec<Claim>,
    /// The file it was read from, as the caller named it.
    pub file: String,
}

/// Contents of the device before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Precondition {
    /// Order of writing.
    pub layout: Layout,
    /// Extent.
    pub range: PreconditionRange,
}

/// Extent of the data written before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreconditionRange {
    /// The files of the workload.
    Files,
    /// The whole logical unit.
    All,
    /// Nothing: the device is as new.
    None,
}

/// A published value.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// Case that it belongs to.
    pub case: String,
    /// Group of jobs that it is about, if the case has several.
    pub group: Option<String>,
    /// Variant that it belongs to.
    pub variant: String,
    /// Name of the metric in snake case.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Whether a parameter was chosen to match it.
    pub origin: Origin,
    /// Why the prediction does not hold.
    pub reason: Option<String>,
}

/// Whether a parameter of the model was chosen to match a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It was, so agreement proves nothing.
    Fit,
    /// It was not, so agreement is evidence.
    Predicted,
}

pub(crate) const LAYOUTS: [(&str, Layout); 2] = [("sequential", Layout::Sequential), ("random", Layout::Random)];
const RANGES: [(&str, PreconditionRange); 3] =
    [("files", PreconditionRange::Files), ("all", PreconditionRange::All), ("none", PreconditionRange::None)];
const ORIGINS: [(&str, Origin); 2] = [("fit", Origin::Fit), ("predicted", Origin::Predicted)];
const TABLES: &str = "an array of tables";

/// The keys of an experiment file.
fn root(k: &mut Keys<Experiment>) -> Result<Experiment> {
    k.schema(SCHEMA)?;
    fields! { k:
        /// snake case, up to 64 characters
        name: snake();
        /// heading
        title: text();
        /// question and method; an empty line separates paragraphs
        description: text();
        /// sources of published values
        citations: texts();
        /// name of a preset, or path of a device file, relative to the experiment file
        device: filled();
        /// what distinguishes cases, for the axes of charts: `threads`
        axis: filled().optional();
        /// what distinguishes variants; charts are then drawn over the variants, with a line for each case
        variant_axis: filled().optional();
        /// seed of every random stream
        seed: whole(0..=u64::MAX);
        /// what the device holds before the first request
        precondition: table(precondition);
        /// what is run
        workload: table(workload::workload);
        /// variants to compare
        variants = "variant": list(table(variant::variant), TABLES);
        /// events during every run, in order of time
        events = "event": list(table(events::event), TABLES).or(Vec::new()).quiet();
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    k.refuse_same_names("variant", "an earlier variant", &names)?;
    k.refuse(variants.is_empty(), "variant", "is empty; at least one variant is needed")?;
    events::check(k, &events, &variants)?;
    let cases = workload.cases();
    fields! { k:
        /// published values
        published: list(table(|k| row(k, &cases, &names)), TABLES).or(Vec::new());
        /// published claims
        claims = "claim": list(table(|k| claim::claim(k, &cases, &names)), TABLES).or(Vec::new()).quiet();
    }
    for (i, row) in published.iter().enumerate() {
        let same = |r: &Published| {
            (&r.case, &r.group, &r.variant, &r.metric) == (&row.case, &row.group, &row.variant, &row.metric)
        };
        let message = "has a row of this variant and metric already; rows must differ";
        k.refuse(published[..i].iter().any(same), &format!("published[{i}].case"), message)?;
    }
    Ok(Experiment {
        name,
        title,
        description,
        citations,
        device,
        axis,
        variant_axis,
        seed,
        precondition,
        workload,
        variants,
        events,
        published,
        claims,
        file: String::new(),
    })
}

pub(crate) fn precondition(k: &mut Keys<Precondition>) -> Result<Precondition> {
    Ok(keys!(k => Precondition {
        /// `sequential` (as if written once in ascending order) or `random` (block by block in random order)
        layout: words(LAYOUTS);
        /// `files` (the files of the workload), `all` (all of each logical unit on which the workload has files) or
        /// `none` (a new device)
        range: words(RANGES);
    }))
}

fn row(k: &mut Keys<Published>, cases: &[&str], variants: &[&str]) -> Result<Published> {
    let row = keys!(k => Published {
        /// a case of the workload
        case: text();
        /// group of fio jobs, if the case has several
        group: filled().optional();
        /// a variant
        variant: text();
        /// name in snake case: `random_read_throughput`
        metric: snake();
        /// unit: `MiB/s`
        unit: text();
        /// the published value
        value: number();
        /// `fit` if a parameter of the device was chosen with this value in view, else `predicted`
        origin: words(ORIGINS);
        /// why the model misses a predicted value
        reason: filled().optional();
    });
    let stray = row.reason.is_some() && row.origin == Origin::Fit;
    k.refuse(stray, "reason", "belongs to a predicted value; this one is fitted")?;
    for (key, name, names) in [("case", &row.case, cases), ("variant", &row.variant, variants)] {
        let there = names.join(", ");
        let message = format!("is {name:?}, which is no {key} of this experiment; there are {there}");
        k.refuse(!names.contains(&name.as_str()), key, message)?;
    }
    Ok(row)
}

/// Description of all keys of an experiment file.
#[cfg(test)]
pub(crate) fn reference() -> Vec<crate::keys::Row> {
    crate::keys::describe(root)
}

impl Serialize for Experiment {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        write_document(self, root).serialize(s)
    }
}

impl Experiment {
    /// An experiment without published values, of a workload that runs on `device`.
    pub fn new(
        name: &str,
        title: &str,
        device: &str,
        seed: u64,
        precondition: Precondition,
        workload: Workload,
    ) -> Self {
        Experiment {
            name: name.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            citations: Vec::new(),
            device: device.to_owned(),
            axis: None,
            variant_axis: None,
            seed,
            precondition,
            workload,
            variants: Vec::new(),
            events: Vec::new(),
            published: Vec::new(),
            claims: Vec::new(),
            file: String::new(),
        }
    }

    /// An experiment for a workload given on the command line, with seed 1. Its files are written beforehand in
    /// `layout`; without a layout the device is new.
    pub fn of_user(name: &str, title: &str, device: &str, layout: Option<Layout>, workload: Workload) -> Self {
        let range = if layout.is_none() { PreconditionRange::None } else { PreconditionRange::Files };
        let precondition = Precondition { layout: layout.unwrap_or(Layout::Sequential), range };
        let description = format!("Simulated on the device '{device}'.");
        Experiment { description, ..Experiment::new(name, title, device, 1, precondition, workload) }
    }
}

/// Reads an experiment file; `file_name` is for errors, and the base of its relative paths.
///
/// # Errors
/// The first mistake, with its line and key.
pub fn parse(text: &str, file_name: &str) -> Result<Experiment> {
    let experiment = read_document(&parse_document(text, file_name)?, SCHEMA, root)?;
    Ok(Experiment { file: file_name.to_owned(), ..experiment })
}

/// A built-in experiment by its name, or the file at a path, which has to contain a `/` or end in `.toml`.
///
/// # Errors
/// When there is no such experiment or file, or as [`parse`].
pub fn load(name_or_path: &str, read: ReadFile) -> Result<Experiment> {
    load_beside(&[], name_or_path, read)
}

/// [`load`], where errors also list `others`: names of experiments that are not files.
pub fn load_beside(others: &[&str], name_or_path: &str, read: ReadFile) -> Result<Experiment> {
    let (text, file) = builtin::find("experiment", builtin::experiments(), others, name_or_path, read)?;
    parse(&text, &file)
}

impl Experiment {
    /// A path in the file, relative to the working directory.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        Path::new(&self.file).parent().unwrap_or(Path::new("")).join(path)
    }

    /// The device without any variant's overrides.
    ///
    /// # Errors
    /// When it cannot be read, or as [`device::parse`].
    pub fn load_device(&self, read: ReadFile) -> Result<DevicePreset> {
        match builtin::is_path(&self.device) {
            true => device::load(&builtin::path_text(self.resolve(&self.device)), read),
            false => device::load(&self.device, read),
        }
    }

    /// The device of each variant, in order: `base` with the variant's overrides.
    ///
    /// # Errors
    /// Names the key in `set` that is at fault.
    pub fn variant_devices(&self, base: &DevicePreset) -> Result<Vec<DevicePreset>> {
        self.variants.iter().map(|v| v.device(base)).collect()
    }
}
