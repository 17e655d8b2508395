// SPDX-License-Identifier: MIT OR Apache-2.0
//! All attacks as a question of their own. They also follow the runs of the experiment `verification`.

use super::{Attempt, FORGERIES, Tally, document};
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use readpath_device::DeviceConfig;
use readpath_results::Error;

/// Every attack on every protection.
#[derive(Clone, Debug)]
pub struct Attacks(Vec<Point>);

impl Attacks {
    /// Attacks on a small device with the times of `times`.
    pub fn new(times: &DeviceConfig, seed: u64) -> Self {
        Attacks(Attempt::all(times, FORGERIES, seed).into_iter().map(Point::Attack).collect())
    }
}

impl Question for Attacks {
    type Figures = Tally;

    fn title(&self) -> String {
        "Attacks on HPB entries".to_owned()
    }

    fn points(&self) -> &[Point] {
        &self.0
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Tally, Error> {
        match shown {
            Shown::Attack(tally) => Ok(*tally),
            _ => unreachable!("all points are attacks"),
        }
    }

    fn answer(&self, done: &[Done<Tally>]) -> Result<Answer, AskError> {
        let tallies: Vec<&Tally> = done.iter().flatten().collect();
        let attempts = self.0.iter().filter_map(|p| if let Point::Attack(one) = p { Some(one) } else { None });
        Ok(Answer::new(document(attempts, &tallies)?, tallies.len()))
    }
}
