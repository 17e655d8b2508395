// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of options to checked settings: global defaults, what becomes of every option, notes on what is ignored or
//! changed. Knows nothing of where files lie.

use std::sync::Arc;

use super::lexer::{At, Opt, Section};
use super::notes::Notes;
use super::settings::Settings;
use super::{JobError, options};
use crate::{Kinds, Sizes};

/// Jobs of one file, clones included.
const MAX_JOBS: u64 = 65_536;
/// Bytes of the options echoed with all jobs.
const MAX_ECHO: usize = 64 << 20;

pub(super) struct JobSection {
    pub at: At,
    /// The text in brackets.
    pub heading: Arc<str>,
    pub settings: Settings,
    /// Its own options as typed; `None` when it has none.
    pub echo: Option<Arc<[(String, String)]>>,
}

impl JobSection {
    /// What fio calls the job: `name`, or its heading.
    pub(super) fn name(&self) -> &Arc<str> {
        self.settings.name.as_ref().unwrap_or(&self.heading)
    }
}

pub(super) struct Jobs {
    pub sections: Vec<JobSection>,
    /// The options of its global sections as typed.
    pub global: Vec<(String, String)>,
}

/// Options in the order of their first use; a later value takes the place of an earlier one.
type Echo = Vec<(&'static str, Arc<str>)>;

pub(super) fn resolve(file: &str, sections: Vec<Section>, notes: &mut Notes) -> Result<Jobs, JobError> {
    let whole = At { file: file.into(), line: 0 };
    let mut global = Settings::new(&whole);
    let mut global_echo = Echo::new();
    let (mut total, mut echoed) = (0u64, 0usize);
    let mut jobs = Vec::new();
    for section in sections {
        // The sum of a mix is checked within a section; a later section overrides an earlier one.
        global.mix_set = [None; 2];
        // As in fio, every section whose name begins with "global" has defaults.
        if section.name.starts_with("global") {
            apply_all(&mut global, &mut global_echo, &section, notes)?;
            continue;
        }
        let mut settings = global.clone();
        let mut echo = Echo::new();
        apply_all(&mut settings, &mut echo, &section, notes)?;
        let echo = (!echo.is_empty()).then(|| Arc::from(listed(&echo)));
        echoed += echo
            .iter()
            .flat_map(|e: &Arc<[(String, String)]>| e.iter())
            .map(|o| o.0.len() + o.1.len() + 64)
            .sum::<usize>();
        if echoed > MAX_ECHO {
            return Err(section.at.error("the options of all jobs together are longer than 64 MiB"));
        }
        total += u64::from(settings.numjobs);
        if total > MAX_JOBS {
            return Err(section.at.error(format!("more than {MAX_JOBS} jobs, clones included")));
        }
        finish(&mut settings, &section, notes)?;
        jobs.push(JobSection { at: section.at, heading: section.name, settings, echo });
    }
    if jobs.is_empty() {
        return Err(whole.error("there is no job; a job begins with its name in brackets: [job1]"));
    }
    Ok(Jobs { sections: jobs, global: listed(&global_echo) })
}

fn listed(echo: &Echo) -> Vec<(String, String)> {
    echo.iter().map(|(key, value)| (String::from(*key), value.to_string())).collect()
}

/// What can be checked only when all options of a job are known.
fn finish(s: &mut Settings, section: &Section, notes: &mut Notes) -> Result<(), JobError> {
    if let Some(time_based) = s.time_based.as_ref().filter(|t| t.value)
        && s.runtime.is_none()
    {
        return Err(time_based.error("time_based: runtime is missing"));
    }
    cap_depth(s, notes);
    if let Some(verify) = &s.verify {
        if s.reads_back() {
            let mixed = matches!(s.kinds(), Kinds::Mix(_));
            if s.kinds() == Kinds::TrimWrite || s.number_ios.is_some() || mixed && s.rate_at.is_some() {
                return Err(verify.error(
                    "verify: reading back is not modelled for trims, and not with number_ios or rates of a mix; leave \
                     verify out, or give do_verify=0 to write only",
                ));
            }
            if s.pattern.random && (s.norandommap || s.distribution.iter().any(Option::is_some)) {
                notes.add("verify again", &verify.at, || {
                    "verify: a place that was written again is read back as often as it was written; fio reads it once"
                        .into()
                });
            }
        }
        notes.add("verify", &verify.at, || "verify: requests are made as they are, but no data is checked".into());
    }
    if let Some(number_ios) = s.number_ios.take_if(|_| s.time_based.as_ref().is_some_and(|t| t.value)) {
        notes.add("number_ios", &number_ios.at, || "number_ios does not end a job with time_based, as in fio".into());
    }
    if !s.direct {
        notes.add("direct", &section.at, || {
            "no page cache is modelled, requests reach the device as with direct=1".into()
        });
    }
    if s.end_flush && s.by_time() {
        notes.add("end_fsync", &section.at, || "a job that ends by time makes no flush at its end".into());
        s.end_flush = false;
    }
    if let Some(align) = s.align.as_ref().filter(|_| s.pattern.random)
        && s.used().iter().any(|&k| align.value[k].is_some_and(|bytes| bytes != s.shortest()[k]))
    {
        return Err(
            align.error("ba: random places that are not multiples of the block size are not modelled; leave it out")
        );
    }
    let several_sizes = || s.used().iter().any(|&k| !matches!(s.lengths()[k], Sizes::Fixed(_)));
    if s.pattern.random && !s.norandommap && several_sizes() {
        notes.add("random map", &section.at, || {
            "with several block sizes each place begins one request per pass, and requests may overlap".into()
        });
    }
    Ok(())
}

/// A synchronous engine has one request in flight whatever was typed. The depth stays as typed for fio's reports.
fn cap_depth(s: &Settings, notes: &mut Notes) {
    let (engine, queues) = s.engine();
    if s.iodepth.value == 1 || queues {
        return;
    }
    let (depth, at) = (s.iodepth.value, &s.iodepth.at);
    let named = if s.engine.is_some() { "the engine" } else { "without ioengine fio takes" };
    notes.add(&format!("iodepth {}:{}", at.file, at.line), at, || {
        format!(
            "iodepth={depth} counts as 1, as in fio: {named} {engine}, which is synchronous; ioengine=libaio keeps \
             {depth} requests in flight"
        )
    });
}

fn apply_all(settings: &mut Settings, echo: &mut Echo, section: &Section, notes: &mut Notes) -> Result<(), JobError> {
    // The base of size suffixes counts for the whole section, whatever its position.
    let (base, rest): (Vec<&Opt>, Vec<&Opt>) = section.options.iter().partition(|o| o.key == "kb_base");
    for option in base.into_iter().chain(rest) {
        let key = options::read(option, settings, notes)?;
        let value = option.value.clone().unwrap_or_default();
        match echo.iter_mut().find(|e| e.0 == key) {
            Some(entry) => entry.1 = value,
            None => echo.push((key, value)),
        }
    }
    Ok(())
}
