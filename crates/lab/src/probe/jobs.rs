// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as job files of fio, and the script that runs them. Jobs of reads share a file; writes that begin on an idle
//! device have files of their own.

use super::names::MIB;
use super::plan::{Job, Plan};
use crate::fit::{Access, LongWrite, Stretch};

/// A job file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFile {
    /// Its name without an ending.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Whether its jobs write.
    pub writes: bool,
    /// Seconds for which the device is left alone before.
    pub idle_seconds: u32,
    /// Whether the device is erased before.
    pub erases: bool,
}

/// Seconds that reads go on before they are measured.
const RAMP_SECONDS: u32 = 5;
/// Seconds for a device to empty its buffers before it is written to.
const IDLE_SECONDS: u32 = 60;

impl Plan {
    /// The job files, in the order in which they are run. `first` jobs of the plan are left out: they were run before.
    pub fn job_files(&self, first: usize) -> Vec<JobFile> {
        let mut files: Vec<Vec<&Job>> = Vec::new();
        for job in self.jobs.iter().skip(first) {
            let goes_on = match job.setting.access {
                Access::RandomRead => files.last().is_some_and(|jobs| !jobs[0].setting.writes()),
                Access::RandomWrites(_) => false,
                Access::SequentialWrite(stretch) => stretch.part > 0 && pause_before(&stretch).is_none(),
            };
            match files.last_mut() {
                Some(jobs) if goes_on => jobs.push(job),
                _ => files.push(vec![job]),
            }
        }
        let mut numbers = [0, 0];
        let name = |writes: bool, numbers: &mut [u32; 2]| {
            numbers[usize::from(writes)] += 1;
            let number = numbers[usize::from(writes)];
            format!("{}-{number}", if writes { "writes" } else { "reads" })
        };
        let file = |jobs: Vec<&Job>| {
            let (writes, access) = (jobs[0].setting.writes(), jobs[0].setting.access);
            let idle = match access {
                Access::RandomRead => 0,
                Access::SequentialWrite(stretch) => pause_before(&stretch).unwrap_or(IDLE_SECONDS),
                Access::RandomWrites(_) => IDLE_SECONDS,
            };
            JobFile {
                name: name(writes, &mut numbers),
                text: self.text(&jobs, writes),
                writes,
                idle_seconds: idle,
                erases: matches!(access, Access::SequentialWrite(Stretch { of: LongWrite::Fill, .. })),
            }
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
                    Access::SequentialWrite(_) => "write",
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
            Access::SequentialWrite(Stretch { part, parts, .. }) => {
                let each = setting.range_blocks / u32::from(parts);
                options.extend([("offset", kib(each * u32::from(part))), ("size", kib(each))]);
            }
        }
        options
    }

    /// A shell script that runs `files` in its own folder. A file of results has its name only when it is complete.
    pub fn script(&self, files: &[JobFile]) -> String {
        let target = &self.target;
        let mut text = format!(
            "#!/bin/sh\n# Runs the jobs of readpath device probe, and leaves fio's results beside them.\nset -eu\ncd \
             \"$(dirname \"$0\")\"\n[ -r '{target}' ] || {{ echo \"{target} cannot be read\" >&2; exit 1; }}\n\
             trap 'rm -f part.json; exit 130' INT TERM\ntell() {{ [ ! -t 2 ] || echo \"$1\" >&2; }}\n"
        );
        for (i, file) in files.iter().enumerate() {
            let (name, number, all) = (&file.name, i + 1, files.len());
            let readonly = if file.writes { "" } else { "--readonly " };
            text.push_str(&format!("tell '{name} ({number} of {all})'\n"));
            if file.erases {
                text.push_str(&format!(
                    "# All that the target holds is discarded.\nif [ -b '{target}' ]; then blkdiscard -f '{target}'\n\
                     else fallocate --punch-hole --offset 0 --length \"$(stat -c %s '{target}')\" '{target}'; fi\n"
                ));
            }
            if file.idle_seconds > 0 {
                text.push_str(&format!("# The device is left alone.\nsync\nsleep {}\n", file.idle_seconds));
            }
            text.push_str(&format!(
                "fio {readonly}--output-format=json+ --output=part.json {name}.fio\nmv part.json {name}.json\n"
            ));
        }
        text
    }
}

/// Seconds of the pause just before a part of a long write.
fn pause_before(stretch: &Stretch) -> Option<u32> {
    match stretch.of {
        LongWrite::Pause(s) if stretch.part == stretch.parts / 2 => Some(u32::from(s)),
        _ => None,
    }
}
