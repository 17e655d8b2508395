// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: the points of a study, by number. The same study and files give the same plan, and its digest says so.

use crate::design::{Points, changed};
use crate::error::SweepError;
use crate::maker::Maker;
use crate::segment::{Header, SCHEMA};
use readpath_config::study::{Setting, Study};
use readpath_lab::experiment::ReadFile;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Points that are tried before it is said that the study is wrong.
const TRIED: u64 = 16;

/// A study and its points.
#[derive(Debug)]
pub struct Plan {
    /// The study.
    pub study: Study,
    points: Points,
    digest: String,
}

/// A run to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its number, from 0.
    pub index: u64,
    /// The value of each key of the study.
    pub settings: Vec<Setting>,
    /// Seed of every random stream, unless a setting says another.
    pub seed: u64,
}

impl Plan {
    /// The plan of a study whose text is `text`. Files that it names are digested.
    ///
    /// # Errors
    /// More points than there can be, a file that cannot be read, or that none of some points can be made.
    pub fn new(study: Study, text: &str, read: ReadFile) -> Result<Plan, SweepError> {
        let points = Points::new(&study)?;
        let mut digest = Sha256::new();
        let mut part = |name: &str, content: &[u8]| {
            digest.update(format!("{name} {}\n", content.len()));
            digest.update(content);
        };
        part("study", text.as_bytes());
        for one in &study.set {
            part(&format!("set {}", one.key), one.value.text().as_bytes());
        }
        for path in study.files() {
            part(&path, digest_of(Path::new(&path))?.as_bytes());
        }
        let digest = hex(&digest.finalize());
        let plan = Plan { study, points, digest };
        plan.check(read)?;
        Ok(plan)
    }

    /// How many points there are.
    pub fn count(&self) -> u64 {
        self.points.count()
    }

    /// What segments of this plan begin with.
    pub fn header(&self) -> Header {
        Header {
            schema: SCHEMA.into(),
            program: env!("CARGO_PKG_VERSION").into(),
            study: self.study.name.clone(),
            plan: self.digest.clone(),
            points: self.count(),
            keys: self.study.keys().map(str::to_owned).collect(),
        }
    }

    /// Point `index`, below [`Plan::count`].
    pub fn point(&self, index: u64) -> Point {
        let settings = self.points.settings(&self.study, index);
        let mut digest = Sha256::new();
        digest.update(format!("readpath study point\nseed={}\n", self.study.seed));
        for (key, value) in self.study.keys().zip(&settings) {
            digest.update(format!("{key}={value}\n"));
        }
        let seed = u64::from_be_bytes(digest.finalize()[..8].try_into().expect("eight bytes"));
        // 53 bits, which every reader of numbers keeps exactly.
        Point { index, settings, seed: seed >> 11 }
    }

    /// Of Morris's design, the factor that differs between a point and the one behind it, and whether upwards; none at
    /// the end of a trajectory.
    pub(crate) fn changed(&self, index: u64) -> Option<(usize, bool)> {
        changed(&self.study, index)
    }

    /// The settings of a point in words.
    pub fn describe(&self, point: &Point) -> String {
        let pairs = self.study.keys().zip(&point.settings).map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// Points spread evenly over the study, the first among them.
    pub fn spread(&self, most: u64) -> impl Iterator<Item = u64> + use<> {
        let (count, tried) = (self.count(), self.count().min(most));
        (0..tried).map(move |i| (u128::from(i) * u128::from(count) / u128::from(tried)) as u64)
    }

    /// A key that does not exist is wrong in every point: said once, and before anything runs.
    fn check(&self, read: ReadFile) -> Result<(), SweepError> {
        let mut first = None;
        for index in self.spread(TRIED) {
            let point = self.point(index);
            match Maker::check(self, &point, read) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let settings = self.describe(&point);
                    first = first.or(Some(SweepError::NoPoint { point: index, settings, error }));
                }
            }
        }
        first.map_or(Ok(()), Err)
    }
}

fn digest_of(path: &Path) -> Result<String, SweepError> {
    let cannot = |error| SweepError::Io { path: path.to_owned(), what: "cannot be read", error };
    let (mut file, mut digest, mut buffer) = (File::open(path).map_err(cannot)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(cannot)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
