// SPDX-License-Identifier: MIT OR Apache-2.0
//! A point of a study: the device, host and workload of its settings. It runs nothing.

use super::trace::{TraceKeys, trace};
use super::{Assigned, Setting, Study};
use crate::builtin::{self, ReadFile};
use crate::device::{self, DevicePreset};
use crate::error::Result;
use crate::experiment::{
    Event, Experiment, GivenKey, Layout, Precondition, PreconditionRange, Variant, Workload, events, precondition,
    workload,
};
use crate::keys::{KeyValue, Keys, fields, filled, list, read_table, table};
use crate::tree::{At, Node, Table, Value, parse_document, parse_value};
use std::path::Path;

/// Keys of the study file for the common settings, which factors may set, whole or in part.
pub(super) const OWN: [&str; 7] = ["experiment", "device", "case", "precondition", "workload", "event", "trace"];
/// Prefix of options of a fio job.
const JOB: &str = "job.";
/// Name of the variant of a point's run.
const VARIANT: &str = "point";

/// The run of a point.
#[derive(Clone, Debug)]
pub struct PointFile {
    /// The device before the variant's own keys.
    pub device: DevicePreset,
    /// The host's use of HPB, and overrides of the device's keys.
    pub variant: Variant,
    /// Seed of every random stream, if the point has one.
    pub seed: Option<u64>,
    /// The workload or trace.
    pub source: Source,
}

/// The workload or trace of a point.
#[derive(Clone, Debug)]
pub enum Source {
    /// A case of a workload.
    Workload {
        /// An experiment without variants. Its device is not used.
        experiment: Box<Experiment>,
        /// The case.
        case: String,
        /// Options added to every job of a fio job file.
        options: Vec<(String, String)>,
    },
    /// A trace; its path is relative to the working directory.
    Trace {
        /// Options of the replay.
        keys: TraceKeys,
        /// Events during the replay.
        events: Vec<Event>,
    },
}

/// The common settings of all points.
#[derive(Clone)]
struct Base {
    device: String,
    case: Option<String>,
    precondition: Precondition,
    workload: Option<Workload>,
    events: Vec<Event>,
    trace: Option<TraceKeys>,
}

fn base(k: &mut Keys<Base>) -> Result<Base> {
    let usual = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
    fields! { k:
        /// name of a preset, or path of a device file
        device: filled();
        /// the case that is run
        case: filled().optional();
        /// what the device holds at the start
        precondition: table(precondition).or(usual);
        /// what is run
        workload: table(workload::workload).optional();
        /// events
        events = "event": list(table(events::event), "an array of tables").or(Vec::new());
        /// a block trace
        trace: table(trace).optional();
    }
    Ok(Base { device, case, precondition, workload, events, trace })
}

impl Study {
    /// Makes the point with these settings, one for each of [`Study::keys`]. `read` reads device, job and experiment
    /// files.
    ///
    /// # Errors
    /// The key that is unknown, wrong or missing, and its place.
    pub fn point(&self, settings: &[Setting], read: ReadFile) -> Result<PointFile> {
        let varied = self.factors.iter().enumerate().flat_map(|(i, factor)| {
            let at = self.tree.locate(&format!("factor[{i}]"));
            factor.keys.iter().map(move |key| (key.as_str(), at.clone()))
        });
        let varied =
            varied.zip(settings).map(|((key, at), value)| Assigned { key: key.into(), value: value.clone(), at });
        let assigned: Vec<Assigned> = self.set.iter().cloned().chain(varied).collect();
        let is_own = |key: &str| OWN.contains(&key.split(['.', '[']).next().unwrap_or(key));

        let (mut own, mut typed, mut options, mut seed) = (Vec::new(), Vec::new(), Vec::new(), None);
        for one in &assigned {
            if is_own(&one.key) {
                own.push(one);
            } else if let Some(option) = one.key.strip_prefix(JOB) {
                options.push((option.to_owned(), one.plain()?));
            } else if one.key == "seed" {
                let number = one.value.text().parse();
                seed = Some(
                    number.map_err(|_| one.at.error("seed", format!("is {}; expected a whole number", one.value)))?,
                );
            } else {
                typed.push(GivenKey::new(&one.key, one.value.text(), one.origin()));
            }
        }
        if !assigned.iter().any(|one| one.key == "hpb" || one.key == "policy") {
            let message = "is missing: say in [set], or with a factor, what the host does, such as hpb = \"dcm\"";
            return Err(self.tree.locate("set").error("set.hpb", message));
        }
        let tree = self.base_tree(&own, read)?;
        let read_base = read_table(&KeyValue { node: &tree, path: String::new() }, base)?;
        let device = self.device(&tree, &read_base.device, read)?;
        let variant = Variant::of_keys(VARIANT, &typed)?;
        let source = self.source(&tree, read_base, options, &assigned)?;
        Ok(PointFile { device, variant, seed, source })
    }

    /// The tables of the common settings: those of the experiment, those of this file, and the keys set in them.
    fn base_tree(&self, own: &[&Assigned], read: ReadFile) -> Result<Node> {
        let mut tree = Node { at: self.tree.at.clone(), value: Value::Table(Table::default()) };
        let put = |tree: &mut Node, from: &Node, keys: &[&str]| {
            for key in keys {
                if let Some(node) = from.find(key) {
                    tree.set(key, node.value.clone(), &node.at).expect("it is a table");
                }
            }
        };
        let from = own.iter().rev().find(|one| one.key == "experiment");
        let from = match (from, self.tree.find("experiment")) {
            (Some(one), _) => Some((one.plain()?, one.at.clone())),
            (None, Some(Node { value: Value::String(name), at })) => Some((name.clone(), at.clone())),
            (None, Some(node)) => {
                let message = format!("is {}; expected the name of an experiment", node.value.describe());
                return Err(node.at.error("experiment", message));
            }
            (None, None) => None,
        };
        if let Some((name, at)) = from {
            let path = resolved(&at, &name);
            let (text, file) = builtin::find("experiment", builtin::experiments(), &[], &path, read)?;
            put(&mut tree, &parse_document(&text, &file)?, &["device", "precondition", "workload", "event"]);
        }
        let replays = self.tree.contains("trace") || own.iter().any(|one| one.key.starts_with("trace"));
        if replays && let Value::Table(table) = &mut tree.value {
            table.remove("workload");
            table.remove("precondition");
        }
        put(&mut tree, &self.tree, &OWN[1..]);
        for one in own.iter().filter(|one| one.key != "experiment") {
            let value = parse_value(one.value.text(), &one.at).map_err(|e| one.at.error(&one.key, e))?;
            tree.set(&one.key, value, &one.at).map_err(|e| one.at.error(&one.key, e))?;
        }
        // Missing keys have the defaults of a study without the table.
        for (key, usual) in [("precondition.layout", "sequential"), ("precondition.range", "files")] {
            if tree.contains("precondition") && !tree.contains(key) {
                let at = tree.locate("precondition");
                tree.set(key, Value::text(usual), &at).map_err(|e| at.error(key, e))?;
            }
        }
        if !tree.contains("device") {
            let message = "is missing; expected the name of a preset, or an experiment that names one";
            return Err(self.tree.at.error("device", message));
        }
        Ok(tree)
    }

    fn device(&self, tree: &Node, name: &str, read: ReadFile) -> Result<DevicePreset> {
        device::load(&resolved(&tree.locate("device"), name), read)
    }

    fn source(&self, tree: &Node, base: Base, options: Vec<(String, String)>, all: &[Assigned]) -> Result<Source> {
        let job = all.iter().find(|one| one.key.starts_with(JOB));
        if let Some(mut keys) = base.trace {
            for key in ["workload", "precondition"] {
                if let Some(beside) = tree.find(key) {
                    return Err(beside.at.error(key, "has no meaning beside a trace; keep one of the two"));
                }
            }
            if let Some(job) = job {
                return Err(job.at.error(&job.key, "is an option of a fio job, but a trace is replayed"));
            }
            let Some(file) = &keys.file else {
                return Err(tree.locate("trace").error("trace.file", "is missing; expected the path of a block trace"));
            };
            keys.file = Some(beside_file(&tree.locate("trace.file"), file));
            return Ok(Source::Trace { keys, events: base.events });
        }
        let Some(workload) = base.workload else {
            let message = "is missing; expected a workload, an experiment that has one, or a trace";
            return Err(self.tree.at.error("workload", message));
        };
        if let Some(job) = job.filter(|_| !matches!(workload, Workload::Fio(_))) {
            return Err(job.at.error(&job.key, "is an option of a fio job, but the workload is no fio job"));
        }
        let runs: Vec<String> = workload.runs().into_iter().map(str::to_owned).collect();
        let case = match base.case {
            Some(case) if runs.contains(&case) => case,
            Some(case) => {
                let message = format!("is {case:?}; the cases of the workload are {}", runs.join(", "));
                return Err(tree.locate("case").error("case", message));
            }
            None if runs.len() == 1 => runs[0].clone(),
            None => {
                let message = format!("is missing; a point runs one case of the workload: {}", runs.join(", "));
                return Err(tree.locate("workload").error("case", message));
            }
        };
        // Paths in it are relative to its own file.
        let place = if tree.contains("workload.job") { "workload.job" } else { "workload" };
        let mut experiment =
            Experiment::new(&self.name, &self.title, &base.device, self.seed, base.precondition, workload);
        experiment.file = tree.locate(place).file.to_string();
        experiment.events = base.events;
        Ok(Source::Workload { experiment: Box::new(experiment), case, options })
    }
}

impl Assigned {
    fn origin(&self) -> String {
        match self.at.line {
            0 => self.at.file.to_string(),
            line => format!("{}:{line}", self.at.file),
        }
    }

    /// The value as a text without quotes.
    fn plain(&self) -> Result<String> {
        match parse_value(self.value.text(), &self.at).map_err(|e| self.at.error(&self.key, e))? {
            Value::String(text) => Ok(text),
            _ => Ok(self.value.text().to_owned()),
        }
    }
}

/// A name, or a path relative to the working directory: a path has a `/` or ends in `.toml`.
fn resolved(at: &At, name: &str) -> String {
    if builtin::is_path(name) { beside_file(at, name) } else { name.to_owned() }
}

/// A path in a file, relative to the working directory.
fn beside_file(at: &At, path: &str) -> String {
    let folder = Path::new(&*at.file).parent().filter(|_| at.line > 0).unwrap_or(Path::new(""));
    builtin::path_text(folder.join(path))
}
