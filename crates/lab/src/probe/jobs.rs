// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as job files of fio, and the script that runs them. Jobs of reads share a file; writes that begin on an idle
//! device have files of their own.

use super::names::MIB;
use super::plan::{Job, Plan};
use crate::fit::Access;

/// A job file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFile {
    /// Its name without an ending.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Whether its jobs write.
    pub writes: bool,
}

/// Seconds that reads go on before they are measured.
const RAMP_SECONDS: u32 = 5;
/// Seconds for a device to empty its buffers before it is written to.
const IDLE_SECONDS: u32 = 60;

impl Plan {
    /// The job files, in the order in which they are run. `first` jobs of the plan are left out: they were run before.
    pub fn job_files(&self, first: usize) -> Vec<JobFile> {
        let mut files: Vec<(Vec<&Job>, bool)> = Vec::new();
        for job in self.jobs.iter().skip(first) {
            let goes_on = match job.setting.access {
                Access::RandomRead => files.last().is_some_and(|(_, writes)| !writes),
                Access::RandomWrites(_) => false,
                Access::SequentialWrite { part, .. } => part > 0,
            };
            match files.last_mut() {
                Some((jobs, _)) if goes_on => jobs.push(job),
                _ => files.push((vec![job], job.setting.writes())),
            }
        }
        let mut numbers = [0, 0];
        let name = |writes: bool, numbers: &mut [u32; 2]| {
            numbers[usize::from(writes)] += 1;
            let number = numbers[usize::from(writes)];
            format!("{}-{number}", if writes { "writes" } else { "reads" })
        };
        let file = |(jobs, writes): (Vec<&Job>, bool)| JobFile {
            name: name(writes, &mut numbers),
            text: self.text(&jobs, writes),
            writes,
        };
        files.into_iter().map(file).collect()
    }

    fn text(&self, jobs: &[&Job], writes: bool) -> String {
        let warning = if writes { "; WRITES: what the target holds is lost." } else { "; Reads only." };
        let mut text = format!(
            "; A job file of readpath device probe.\n{warning}\n[global]\nfilename={}\nallow_file_create=0\ndirect=1\n\
             ioengine=libaio\n",
            self.target
        );
        for job in jobs {
            text.push_str(&format!("\n[{}]\nstonewall\n", job.name));
            for (key, value) in self.options(job) {
                match value.as_str() {
                    "" => text.push_str(&format!("{key}\n")),
                    value => text.push_str(&format!("{key}={value}\n")),
                }
            }
        }
        text
    }

    /// What a job's section says, besides `stonewall`.
    pub(super) fn options(&self, job: &Job) -> Vec<(&'static str, String)> {
        let setting = &job.setting;
        let kib = |blocks: u32| format!("{}k", u64::from(blocks) * 4);
        let mib = |blocks: u32| format!("{}m", blocks / MIB);
        let mut options = vec![
            (
                "rw",
                match setting.access {
                    Access::RandomRead => "randread",
                    Access::RandomWrites(_) => "randwrite",
                    Access::SequentialWrite { .. } => "write",
                }
                .to_owned(),
            ),
            ("bs", kib(u32::from(setting.block_count))),
            ("iodepth", setting.queue_depth.to_string()),
        ];
        match setting.access {
            Access::RandomRead => options.extend([
                ("size", mib(setting.range_blocks)),
                ("norandommap", String::new()),
                ("time_based", String::new()),
                ("ramp_time", RAMP_SECONDS.to_string()),
                ("runtime", self.seconds.to_string()),
            ]),
            Access::RandomWrites(n) => options.extend([
                ("size", mib(setting.range_blocks)),
                ("norandommap", String::new()),
                ("io_size", kib(n * u32::from(setting.block_count))),
            ]),
            Access::SequentialWrite { part, parts } => {
                let each = setting.range_blocks / u32::from(parts);
                options.extend([("offset", kib(each * u32::from(part))), ("size", kib(each))]);
            }
        }
        options
    }

    /// A shell script that runs `files` in its own folder.
    pub fn script(&self, files: &[JobFile]) -> String {
        let mut text = format!(
            "#!/bin/sh\n# Runs the jobs of readpath device probe, and leaves fio's results beside them.\nset -eu\ncd \
             \"$(dirname \"$0\")\"\n[ -r '{target}' ] || {{ echo \"{target} cannot be read\" >&2; exit 1; }}\n",
            target = self.target
        );
        for file in files {
            let name = &file.name;
            let readonly = if file.writes { "" } else { "--readonly " };
            if file.writes {
                text.push_str(&format!("# The device empties its buffers.\nsync\nsleep {IDLE_SECONDS}\n"));
            }
            text.push_str(&format!("fio {readonly}--output-format=json+ --output={name}.json {name}.fio\n"));
        }
        text
    }
}
