// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any question by its name: words as on a command line become a question, and the question an answer.

use super::reproduce::{self, Named};
use super::{Ready, break_even, compare, experiment, fit, hmb, power, probe, replay};
use crate::args::{self, Making};
use crate::presets::preset;
use crate::runs::{mark, side_by_side};
use crate::{ubi, usage};
use anyhow::{Result, anyhow};
use clap::Parser;
use readpath_lab::attack::Attacks;
use readpath_lab::question::{Answer, Question};
use readpath_lab::runs::Shared;
use std::sync::Arc;

/// A question with its options.
#[derive(Parser, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
pub enum Asked {
    /// An experiment, built in or of a file.
    Reproduce(args::Reproduce),
    /// An iozone command line.
    Iozone(args::Iozone),
    /// A fio job.
    Fio(args::Fio),
    /// Block traces.
    Replay(args::Replay),
    /// Sizes of host memory under traces and jobs.
    Hmb(args::Hmb),
    /// Variants under one workload.
    Compare(args::Compare),
    /// The least value of a key.
    BreakEven(args::BreakEven),
    /// Power cuts.
    Power(args::Power),
    /// Attacks on HPB entries.
    Attack(args::Attack),
    /// A device fitted to measurements.
    Fit(args::Fit),
    /// A device fitted to the results of a probe.
    Probe(args::ProbeFit),
    /// Read streams through read caches of UBI.
    UbiReplay(args::UbiReplay),
    /// The attach of an image.
    UbiAttach(args::UbiAttach),
}

/// What becomes of a question.
pub trait Asker {
    /// The outcome.
    type Output;

    /// The outcome of a question whose points are to be made.
    ///
    /// # Errors
    /// Those of the outcome.
    fn question<Q: Question + Send + 'static>(self, question: Q) -> Result<Self::Output>;

    /// The outcome of an answer without points.
    ///
    /// # Errors
    /// Those of the outcome.
    fn answer(self, answer: Answer) -> Result<Self::Output>;
}

impl Asked {
    /// The question of some words, such as `compare job.fio --seeds=3`.
    ///
    /// # Errors
    /// A mistake of the user when there is no such question or option, or a value is wrong.
    pub fn parse(words: &[String]) -> Result<Self> {
        Asked::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>();
            usage(anyhow!("{}", lines.join(" ").trim_start_matches("error: ")))
        })
    }

    /// Device keys, threads and texts, if the question has them.
    pub fn making(&self) -> Option<&Making> {
        match self {
            Asked::Reproduce(args) => Some(&args.making),
            Asked::Iozone(args) => Some(&args.making),
            Asked::Fio(args) => Some(&args.making),
            Asked::Replay(args) => Some(&args.making),
            Asked::Hmb(args) => Some(&args.making),
            Asked::Compare(args) => Some(&args.making),
            Asked::BreakEven(args) => Some(&args.making),
            Asked::Power(args) => Some(&args.making),
            Asked::Attack(args) => Some(&args.making),
            Asked::Fit(_) | Asked::Probe(_) | Asked::UbiReplay(_) | Asked::UbiAttach(_) => None,
        }
    }

    /// Makes the question.
    ///
    /// # Errors
    /// When an option or an input is wrong, and those of `asker`.
    pub fn ask<A: Asker>(&self, ready: Ready, asker: A) -> Result<A::Output> {
        let of = |experiment, making, chosen| experiment::of(experiment, making, chosen);
        match self {
            Asked::Reproduce(args) => match reproduce::named(args)? {
                Named::Runs(question) => asker.question(*question),
                Named::Hmb(question) => asker.question(*question),
                Named::Policies(question) => asker.question(*question),
                Named::Ubi(prepared) => asker.answer(Answer::new(prepared.reproduce()?.document, 0)),
            },
            Asked::Iozone(args) => asker.question(of(experiment::of_iozone(args)?, &args.making, &args.chosen)?),
            Asked::Fio(args) => asker.question(of(experiment::of_fio(args, false)?, &args.making, &args.chosen)?),
            Asked::Replay(args) => asker.question(replay::question(args, ready)?),
            Asked::Hmb(args) => asker.question(hmb::own(args, ready)?),
            Asked::Compare(args) => asker.question(compare::question(args, ready)?),
            Asked::BreakEven(args) => asker.question(break_even::question(args, ready)?),
            Asked::Power(args) => asker.question(power::question(args, ready)?),
            Asked::Attack(args) => {
                let times = preset(&args.device, &args.making.set)?.device;
                asker.question(Attacks::new(&times, args.seed))
            }
            Asked::Fit(args) => {
                let fitting = fit::Fitting::read(args)?;
                let document = fitting.fit(&*ready(Vec::new())?)?.document(&fitting.source)?;
                asker.answer(Answer::new(document, 0))
            }
            Asked::Probe(args) => {
                let probing = probe::Probing::read(args)?;
                let document = probing.document(&probing.probe(&*ready(Vec::new())?)?)?;
                asker.answer(Answer::new(document, 0))
            }
            Asked::UbiReplay(args) => {
                let replay = ubi::Replay::read(args)?;
                let missing = replay.left_out.clone();
                asker.answer(Answer { missing, ..Answer::new(replay.document()?, replay.streams()) })
            }
            Asked::UbiAttach(args) => asker.answer(Answer::new(ubi::Attached::open(args)?.document()?, 0)),
        }
    }

    /// Makes the question and all of its points here.
    ///
    /// # Errors
    /// When an option or an input is wrong, a run fails, or `shared` says to stop.
    pub fn answer(&self, shared: &Arc<Shared>) -> Result<Answer> {
        let making = self.making().cloned().unwrap_or_default();
        self.ask(&mut |_| Ok(shared.clone()), Here { making, shared })
    }
}

/// Makes points in this process.
struct Here<'a> {
    making: Making,
    shared: &'a Shared,
}

impl Asker for Here<'_> {
    type Output = Answer;

    fn question<Q: Question + Send + 'static>(self, question: Q) -> Result<Answer> {
        question.answer(&side_by_side(&question, &self.making, self.shared)?).map_err(mark)
    }

    fn answer(self, answer: Answer) -> Result<Answer> {
        Ok(answer)
    }
}
