// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study files: the common settings of all runs of a study, the factors that differ between its points, and the
//! design that chooses the points. It knows keys and values; designs and runs are elsewhere.

mod factor;
mod point;
mod trace;

pub use factor::{Factor, Levels, Scale, Setting};
pub use point::{PointFile, Source};
pub use trace::{TraceKeys, TraceMode};

use crate::error::Result;
use crate::keys::{
    Key, KeyValue, Keys, any, fields, flag, list, open_table, read_document, snake, table, text, whole, words,
};
use crate::overrides::Override;
use crate::tree::{At, Node, Value, parse_document};

const SCHEMA: &str = "readpath-study/1";
/// The most points of a study: as many as a cluster runs in months, with one bit of memory for each.
pub const MOST_POINTS: u64 = 1 << 32;
const TABLES: &str = "an array of tables";

/// A study file that has been read. The common settings are checked when a point is made, because a factor may
/// complete them.
#[derive(Clone, Debug)]
pub struct Study {
    /// Name in snake case.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Question and method.
    pub description: String,
    /// Seed of the design, and of the seeds of points.
    pub seed: u64,
    /// Choice of the points.
    pub design: Design,
    /// Differences between points.
    pub factors: Vec<Factor>,
    /// Keys that are the same for all points, and their source.
    pub set: Vec<Assigned>,
    /// The file it was read from, as the caller named it.
    pub file: String,
    tree: Node,
}

/// Choice of the points of a study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Design {
    /// Every level of a factor with every level of all others; the last factor changes fastest.
    Cross,
    /// A number of points; each factor has one point in each of as many equal parts of its range.
    LatinHypercube {
        /// Points.
        samples: u32,
    },
    /// Saltelli's scheme on a scrambled Sobol sequence, in the order of SALib.
    Sobol {
        /// Base samples, a power of two: each gives factors + 2 points, or 2 × factors + 2 with second order.
        samples: u32,
        /// Points for interactions of two factors.
        second_order: bool,
    },
    /// Morris's trajectories, in the order of SALib.
    Morris {
        /// Trajectories of factors + 1 points.
        trajectories: u32,
        /// Levels of a factor, an even number.
        levels: u32,
    },
}

impl Design {
    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Design::Cross => "cross",
            Design::LatinHypercube { .. } => "latin-hypercube",
            Design::Sobol { .. } => "sobol",
            Design::Morris { .. } => "morris",
        }
    }
}

/// A key with its value and its source.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// A key of a point.
    pub key: String,
    /// Its value.
    pub value: Setting,
    pub(crate) at: At,
}

impl Assigned {
    /// From an argument `key=value`; `origin` is its source, for errors.
    ///
    /// # Errors
    /// When there is no `=`, or the value is neither TOML nor a bare word.
    pub fn from_argument(argument: &str, origin: &str) -> Result<Self> {
        let Override { key, value, at } = Override::from_argument(argument, origin)?;
        Ok(Assigned { key, value: Setting::of(&value), at })
    }
}

/// The keys of a study file.
fn root(k: &mut Keys<Study>) -> Result<Study> {
    k.schema(SCHEMA)?;
    fields! { k:
        /// snake case, up to 64 characters
        name: snake();
        /// heading
        title: text();
        /// question and method
        description: text().or(String::new());
        /// seed of the design and of all points; each point's own is derived from it and the point's settings
        seed: whole(0..=u64::MAX);
    }
    // The common settings. Factors may replace or complete them, so they are read for each point.
    let base = "name of an experiment, or path of its file: device, precondition, workload and events are taken from \
        there where this file does not say them";
    k.key(Key::new("experiment", base), any().optional(), |_| None)?;
    let device = "name of a preset, or path of a device file, relative to this file";
    k.key(Key::new("device", device), any().optional(), |_| None)?;
    let case = "the case of the workload that is run, if it has several";
    k.key(Key::new("case", case), any().optional(), |_| None)?;
    let before = "table: what the device holds before the first request, as in [experiment files](experiment.md); by \
        default the files of the workload, written in order";
    k.key(Key::new("precondition", before), any().optional(), |_| None)?;
    let runs = "table: what is run, as in [experiment files](experiment.md)";
    k.key(Key::new("workload", runs), any().optional(), |_| None)?;
    let event = "array of tables: events during every run, as in [experiment files](experiment.md)";
    k.key(Key::new("event", event), any().optional(), |_| None)?;
    let replayed = "a block trace to replay instead of a workload";
    k.key(Key::new("trace", replayed), table(trace::trace).optional(), |_| None)?;
    let given = |key: &str, KeyValue { node, .. }: &KeyValue| {
        Ok(Assigned { key: key.to_owned(), value: Setting::of(&node.value), at: node.at.clone() })
    };
    let written =
        |set: &Vec<Assigned>| Value::table(set.iter().map(|one| (one.key.as_str(), Value::text(one.value.text()))));
    fields! { k:
        /// keys that are the same for all points: `{ hpb = "dcm", "map_cache.size_kib" = 512 }`
        set: open_table(given, written).or(Vec::new());
        /// how points are chosen; without it, every level with every other
        design: table(design).or(Design::Cross);
        /// what differs between points
        factors = "factor": list(table(factor::factor), TABLES);
    }
    k.refuse(factors.is_empty(), "factor", "is empty; a study varies at least one key")?;
    let mut seen: Vec<&str> = set.iter().map(|one| one.key.as_str()).collect();
    for (i, factor) in factors.iter().enumerate() {
        for key in &factor.keys {
            let message = format!("sets {key}, which is set already; say it in one place");
            k.refuse(seen.contains(&key.as_str()), &format!("factor[{i}]"), message)?;
            let is_part =
                |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|rest| rest.starts_with(['.', '[']));
            let part = seen.iter().find(|other| is_part(key, other) || is_part(other, key));
            let message = format!("sets {key}, which has a key in common with {}", part.unwrap_or(&""));
            k.refuse(part.is_some(), &format!("factor[{i}]"), message)?;
            seen.push(key);
        }
        let (has_steps, is_range) = factor.range_steps();
        let at = format!("factor[{i}].steps");
        let cross = design == Design::Cross;
        k.refuse(cross && is_range && !has_steps, &at, "is missing: a crossed range has so many levels")?;
        let message = format!("has no meaning with design {:?}, which chooses the levels itself", design.name());
        k.refuse(!cross && has_steps, &at, message)?;
        if let (Design::Morris { levels, .. }, false) = (design, is_range) {
            let listed = factor.steps();
            let message = format!("has {listed} values, but the design has {levels} levels; give as many");
            k.refuse(listed != u64::from(levels), &format!("factor[{i}].values"), message)?;
        }
    }
    let (file, tree) = (String::new(), Node::from(Value::table([])));
    Ok(Study { name, title, description, seed, design, factors, set, file, tree })
}

/// `[design]`.
fn design(k: &mut Keys<Design>) -> Result<Design> {
    let kinds = ["cross", "latin-hypercube", "sobol", "morris"].map(|kind| (kind, kind));
    let kind = Key::new("kind", "one of the designs below");
    let kind = k.key(kind, words(kinds), |design| design.name())?;
    let count = |design: &Design| match *design {
        Design::LatinHypercube { samples } | Design::Sobol { samples, .. } => Some(samples),
        _ => None,
    };
    let other = |kinds: &str| format!("has no meaning for kind = {kind:?}; it belongs to {kinds}");
    let sampled = kind == "latin-hypercube" || kind == "sobol";
    let samples = k.group(sampled, Some(&other("latin-hypercube and sobol")), count, |k| {
        let key = Key::new("samples", "`latin-hypercube`: points; `sobol`: base samples, a power of two up to 65536");
        k.key(key, whole(1..=1 << 24), |samples| *samples)
    })?;
    let order = |design: &Design| match *design {
        Design::Sobol { second_order, .. } => Some(second_order),
        _ => None,
    };
    let second_order = k.group(kind == "sobol", Some(&other("sobol")), order, |k| {
        let key = Key::new("second_order", "`sobol`: with the points that interactions of two factors need");
        k.key(key, flag().or(true), |order| *order)
    })?;
    let morris = |design: &Design| match *design {
        Design::Morris { trajectories, levels } => Some((trajectories, levels)),
        _ => None,
    };
    let morris = k.group(kind == "morris", Some(&other("morris")), morris, |k| {
        let key = Key::new("trajectories", "`morris`: trajectories, each of as many points as factors, and one");
        let trajectories = k.key(key, whole(1..=1 << 24), |morris: &(u32, u32)| morris.0)?;
        let key = Key::new("levels", "`morris`: levels of each factor, an even number");
        let levels = k.key(key, whole::<u32>(2..=1 << 16).or(4), |morris: &(u32, u32)| morris.1)?;
        k.refuse(levels % 2 == 1, "levels", format!("is {levels}; it must be even"))?;
        Ok((trajectories, levels))
    })?;
    let (trajectories, levels) = morris.unwrap_or((1, 4));
    let samples = samples.unwrap_or(1);
    let odd = kind == "sobol" && (!samples.is_power_of_two() || samples > 1 << 16);
    k.refuse(odd, "samples", format!("is {samples}; it must be a power of two up to 65536"))?;
    Ok(match kind {
        "latin-hypercube" => Design::LatinHypercube { samples },
        "sobol" => Design::Sobol { samples, second_order: second_order.unwrap_or(true) },
        "morris" => Design::Morris { trajectories, levels },
        _ => Design::Cross,
    })
}

/// Description of all keys of a study file.
#[cfg(test)]
pub(crate) fn reference() -> Vec<crate::keys::Row> {
    crate::keys::describe(root)
}

/// Reads a study file; `file_name` is for errors, and the base of its relative paths.
///
/// # Errors
/// The first mistake, with its line and key.
pub fn parse(text: &str, file_name: &str) -> Result<Study> {
    let tree = parse_document(text, file_name)?;
    let study = read_document(&tree, SCHEMA, root)?;
    Ok(Study { file: file_name.to_owned(), tree, ..study })
}

impl Study {
    /// Keys that differ between points, in the order of a point's settings.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.factors.iter().flat_map(|factor| factor.keys.iter().map(String::as_str))
    }

    /// Sets keys for all points. They replace those of the file.
    ///
    /// # Errors
    /// For a key that a factor varies.
    pub fn fix(&mut self, fixed: Vec<Assigned>) -> Result<()> {
        for one in fixed {
            if self.keys().any(|key| key == one.key) {
                return Err(one
                    .at
                    .error(&one.key, "is varied by a factor of the study; it cannot be the same for all"));
            }
            self.set.retain(|other| other.key != one.key);
            self.set.push(one);
        }
        Ok(())
    }
}
