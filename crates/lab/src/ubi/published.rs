// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of 2016 as data: `experiments/ubi.toml`.

use readpath_results::Origin;
use readpath_ubi::preset::CostPreset;
use serde::Deserialize;

/// Name and number of the format.
const SCHEMA: &str = "readpath-ubi-experiment/1";

readpath_kit::named! {
    /// A task that was timed.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Task {
        /// User space of Debian 8.
        Boot = "boot",
        /// `find /usr`.
        Find = "find",
        /// `rm` of a file of 1 GiB.
        Rm = "rm",
    }
}

impl Task {}

readpath_kit::named! {
    /// How UBI read.
    #[derive(PartialOrd, Ord, Deserialize)]
    pub enum Configuration {
        /// Part reads, no cache.
        A = "A: no cache",
        /// Page reads, the one page of the NAND core.
        B = "B: NAND core, one page",
        /// The cache in UBI with one line.
        C1 = "C1: UBI, one line",
        /// The cache in UBI with 61 lines.
        C61 = "C61: UBI, 61 lines",
    }
}

impl Configuration {
    /// Description in a sentence.
    pub fn short(self) -> &'static str {
        match self {
            Configuration::A => "no cache",
            Configuration::B => "one page in the NAND core",
            Configuration::C1 => "one line in UBI",
            Configuration::C61 => "61 lines in UBI",
        }
    }
}

/// What the cache counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// During which task.
    pub task: Task,
    /// Lines of the cache.
    pub lines: u32,
    /// Reads served.
    pub hits: u64,
    /// Reads that filled a line.
    pub misses: u64,
    /// Reads for which the cache was not asked.
    pub no_query: u64,
}

/// Seconds of a task.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The task.
    pub task: Task,
    /// The configuration.
    pub configuration: Configuration,
    /// Real time.
    pub real_s: f64,
    /// User time, where it was published.
    pub user_s: Option<f64>,
    /// System time, where it was published.
    pub sys_s: Option<f64>,
    /// Whether it was used to choose a figure.
    pub origin: Origin,
}

/// A number for each task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerTask {
    /// Number for find.
    pub find: u32,
    /// Number for rm.
    pub rm: u32,
    /// Number for boot.
    pub boot: u32,
}

impl PerTask {
    /// The number for a task.
    pub fn of(&self, task: Task) -> u64 {
        u64::from(match task {
            Task::Boot => self.boot,
            Task::Find => self.find,
            Task::Rm => self.rm,
        })
    }
}

/// The file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    schema: String,
    /// Name of the experiment.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What was asked and how.
    pub description: String,
    /// Sources of the figures.
    pub citations: Vec<String>,
    /// Name of the cost preset.
    pub cost: String,
    /// ECC steps of a part read.
    pub steps_per_read: PerTask,
    /// Page reads of [`Configuration::B`] in rm, by its waiting time; without, the counts of C1 stand in.
    pub rm_page_reads_of_b: Option<u64>,
    /// What the cache counted.
    pub counted: Vec<Counted>,
    /// What the tasks took.
    pub measured: Vec<Measured>,
}

impl Published {
    /// The file that comes with the program.
    pub fn builtin() -> Published {
        let text = include_str!("../../../../experiments/ubi.toml");
        let published: Published = toml::from_str(text).expect("the built-in experiment is valid");
        assert_eq!(published.schema, SCHEMA, "the built-in experiment has the schema of this program");
        published
    }

    /// What reads cost.
    pub fn preset(&self) -> CostPreset {
        CostPreset::builtin(&self.cost).expect("the experiment names a built-in preset")
    }

    /// Counts of a task.
    pub fn counts(&self, task: Task, lines: u32) -> Counted {
        let found = self.counted.iter().find(|c| c.task == task && c.lines == lines);
        *found.expect("the built-in experiment has counts of every task with 1 and 61 lines")
    }

    /// Whether work with so many reads is as large as a task, a quarter more or less. Compared with the seconds of
    /// other work, its own would mean nothing.
    pub(crate) fn is_as_large(&self, task: Task, reads: u64) -> bool {
        let known = self.reads(task);
        (3 * known..=5 * known).contains(&reads.saturating_mul(4))
    }

    /// Reads of a task, as they were counted.
    pub fn reads(&self, task: Task) -> u64 {
        let c = self.counts(task, 1);
        c.hits + c.misses + c.no_query
    }

    /// Seconds of a task.
    pub fn seconds(&self, task: Task, configuration: Configuration) -> Measured {
        let found = self.measured.iter().find(|m| m.task == task && m.configuration == configuration);
        *found.expect("the built-in experiment has seconds of every task and configuration")
    }
}
