// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays as a question: every trace on every variant. The result of a run is kept if others fail.

use super::{Replay, ReplayTexts, document, fragment};
use crate::fragment::Fragment;
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use readpath_results::{Error, Note, NoteKind};

/// What traces show on variants of device and host.
#[derive(Clone, Debug)]
pub struct Replays {
    texts: ReplayTexts,
    replays: Vec<Replay>,
    points: Vec<Point>,
}

impl Replays {
    /// The question of these replays.
    pub fn new(texts: ReplayTexts, replays: Vec<Replay>) -> Self {
        let points = replays.iter().cloned().map(Point::Replay).collect();
        Replays { texts, replays, points }
    }
}

impl Question for Replays {
    type Figures = Fragment;

    fn title(&self) -> String {
        self.texts.title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Fragment, Error> {
        let Shown::Replay(replay, run) = shown else { unreachable!("all points are replays") };
        fragment(replay, &run)
    }

    fn stands_without(&self) -> bool {
        true
    }

    fn answer(&self, done: &[Done<Fragment>]) -> Result<Answer, AskError> {
        let runs: Vec<Option<&Fragment>> = done.iter().map(|run| run.as_ref().ok()).collect();
        let mut document = document(&self.texts, &self.replays, &runs)?;
        let missing: Vec<String> = done.iter().filter_map(|run| run.as_ref().err().cloned()).collect();
        document.notes.extend(missing.iter().map(|what| Note::new(NoteKind::Incomplete, what)));
        Ok(Answer { missing, ..Answer::new(document, done.len()) })
    }
}
