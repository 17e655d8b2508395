// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: the points of a study, by number. The same study and files give the same plan with the same digest.

use crate::design::{Points, changed};
use crate::error::SweepError;
use crate::maker::Maker;
use crate::segment::Header;
use readpath_config::study::{Levels, Setting, Study};
use readpath_kit::Permutation;
use readpath_lab::experiment::ReadFile;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Points that are tried before the study is refused.
const TRIED: u64 = 16;

/// A study and its points.
#[derive(Debug)]
pub struct Plan {
    /// The study.
    pub study: Study,
    points: Points,
    digest: String,
    traces: Vec<NamedTrace>,
    /// Paths of traces that are not at the path of the study.
    elsewhere: HashMap<String, PathBuf>,
}

/// A trace that a study names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTrace {
    /// Its path, as the study has it.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// A run to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its number, from 0.
    pub index: u64,
    /// The value of each key of the study.
    pub settings: Vec<Setting>,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Plan {
    /// The plan of a study whose text is `text`. Files that it names are digested.
    ///
    /// # Errors
    /// Too many points, a file that cannot be read, or none of some points can be made.
    pub fn new(study: Study, text: &str, read: ReadFile) -> Result<Plan, SweepError> {
        Plan::with_traces(study, text, read, HashMap::new())
    }

    /// The same plan where some traces are `elsewhere`: the study's path, and the path on this machine.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_traces(
        study: Study,
        text: &str,
        read: ReadFile,
        elsewhere: HashMap<String, PathBuf>,
    ) -> Result<Plan, SweepError> {
        let points = Points::new(&study)?;
        let mut plan = Plan { study, points, digest: String::new(), traces: Vec::new(), elsewhere };
        plan.check(read)?;
        let mut digest = Sha256::new();
        let mut part = |name: &str, content: &[u8]| {
            digest.update(format!("{name} {}\n", content.len()));
            digest.update(content);
        };
        part("study", text.as_bytes());
        let mut set: Vec<_> = plan.study.set.iter().collect();
        set.sort_by(|a, b| a.key.cmp(&b.key));
        set.into_iter().for_each(|one| part(&format!("set {}", one.key), one.value.text().as_bytes()));
        // Files count by content, not by path: a plan is the same on every machine.
        let (files, traces) = plan.files(read)?;
        files.into_iter().for_each(|file| part("file", file.as_bytes()));
        plan.digest = hex(&digest.finalize());
        plan.traces = traces;
        Ok(plan)
    }

    /// Traces that points replay: those of the first point, and of each level of a factor that may name files.
    pub fn traces(&self) -> &[NamedTrace] {
        &self.traces
    }

    /// The place on this machine of the trace that the study has at `path`.
    pub(crate) fn place<'a>(&'a self, path: &'a str) -> &'a Path {
        self.elsewhere.get(path).map_or(Path::new(path), PathBuf::as_path)
    }

    /// How many points there are.
    pub fn count(&self) -> u64 {
        self.points.count()
    }

    /// The header of segments of this plan.
    pub fn header(&self) -> Header {
        let keys = self.study.keys().map(str::to_owned).collect();
        Header::new(&self.study.name, self.digest.clone(), self.count(), keys)
    }

    /// Point `index`, below [`Plan::count`].
    pub fn point(&self, index: u64) -> Point {
        let settings = self.points.settings(&self.study, index);
        let seed = self.said_seed(&settings).unwrap_or_else(|| self.derived_seed(&settings));
        Point { index, settings, seed }
    }

    /// The seed that a factor or the study sets.
    fn said_seed(&self, settings: &[Setting]) -> Option<u64> {
        let varied = self.study.keys().zip(settings).find(|(key, _)| *key == "seed").map(|(_, value)| value);
        let fixed = || self.study.set.iter().find(|one| one.key == "seed").map(|one| &one.value);
        varied.or_else(fixed)?.text().parse().ok()
    }

    /// A seed that depends on the study's seed and the settings by key, not on other points or the order of factors.
    fn derived_seed(&self, settings: &[Setting]) -> u64 {
        let mut digest = Sha256::new();
        digest.update(format!("readpath study point\nseed={}\n", self.study.seed));
        let mut pairs: Vec<_> = self.study.keys().zip(settings).collect();
        pairs.sort_by_key(|(key, _)| *key);
        pairs.into_iter().for_each(|(key, value)| digest.update(format!("{key}={value}\n")));
        let seed = u64::from_be_bytes(digest.finalize()[..8].try_into().expect("eight bytes"));
        // 53 bits, which are exact in every JSON reader.
        seed >> 11
    }

    /// For Morris's design: the factor that changes between a point and the next, and whether upwards; none at the end
    /// of a trajectory.
    pub(crate) fn changed(&self, index: u64) -> Option<(usize, bool)> {
        changed(&self.study, index)
    }

    /// The settings of a point in words.
    pub fn describe(&self, point: &Point) -> String {
        let pairs = self.study.keys().zip(&point.settings).map(|(key, value)| format!("{key}={}", value.plain()));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// Some points in random order, the first one first.
    pub fn some(&self, most: u64) -> impl Iterator<Item = u64> + use<> {
        let order = Permutation::new(self.count().max(1), self.study.seed);
        let rest = (0..self.count()).map(move |i| order.get(i)).filter(|index| *index != 0);
        std::iter::once(0).chain(rest).take(most.min(self.count()) as usize)
    }

    /// Refuses, before anything runs, a study of which none of some points can be made, such as one with an unknown
    /// key.
    fn check(&self, read: ReadFile) -> Result<(), SweepError> {
        let (mut first, mut tried) = (None, 0);
        for index in self.some(TRIED) {
            let point = self.point(index);
            match Maker::check(self, &point, read) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tried += 1;
                    first = first.or(Some((index, self.describe(&point), error)));
                }
            }
        }
        let Some((point, settings, error)) = first else { return Ok(()) };
        Err(SweepError::NoPoint { tried, point, settings, error })
    }

    /// Digests of the files that points are made of: those of the first point, and of each level of a factor that may
    /// name files; and which of them are traces.
    fn files(&self, read: ReadFile) -> Result<(Vec<String>, Vec<NamedTrace>), SweepError> {
        let mut traces: Vec<NamedTrace> = Vec::new();
        let seen: RefCell<Vec<(PathBuf, String)>> = RefCell::default();
        let note = |path: &Path, digest: String| {
            let mut seen = seen.borrow_mut();
            if !seen.iter().any(|(other, _)| other == path) {
                seen.push((path.to_owned(), digest));
            }
        };
        let noting = |path: &Path| {
            let text = read(path)?;
            note(path, hex(&Sha256::digest(&text)));
            Ok(text)
        };
        let first = self.point(0).settings;
        let mut settings = vec![first.clone()];
        let mut at = 0;
        for factor in &self.study.factors {
            if let (Levels::Listed(levels), true) = (&factor.levels, factor.names_files()) {
                settings.extend(levels.iter().map(|level| {
                    let mut settings = first.clone();
                    settings[at..at + level.len()].clone_from_slice(level);
                    settings
                }));
            }
            at += factor.keys.len();
        }
        for settings in settings {
            let point = Point { index: 0, settings, seed: 0 };
            // A point that cannot be made has no files; it fails when it is run.
            if let Some(path) = Maker::trace_of(self, &point, &noting)
                && !traces.iter().any(|trace| trace.path == path)
                && let Ok(sha256) = digest_of(self.place(&path))
            {
                note(Path::new(&path), sha256.clone());
                traces.push(NamedTrace { path, sha256 });
            }
        }
        Ok((seen.into_inner().into_iter().map(|(_, digest)| digest).collect(), traces))
    }
}

fn digest_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&buffer[..n]),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
