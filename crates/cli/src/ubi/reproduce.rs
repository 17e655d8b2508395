// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce ubi`: the published table beside the model, with streams where there are some: recorded ones,
//! and those that our own reader makes of images.

use super::boot::BootList;
use super::own;
use super::streams::{self, Input, load};
use crate::args::{Basics, OwnImages, Reproduce};
use crate::cases::names;
use crate::output::{self, Kept};
use crate::stop::{self, Written};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, Published, Reproduction, Task, TaskStream, is_attach, task_of};
use readpath_report::TableSpec;
use readpath_results::metric;
use readpath_results::{Document, Metric, Note};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::Geometry;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub const EXPERIMENT: &str = "ubi";

static COLUMNS: [Metric; 7] = [
    metric::REAL_SECONDS,
    metric::SYS_SECONDS,
    metric::HITS,
    metric::MISSES,
    metric::NO_QUERY,
    metric::READ_SECONDS,
    metric::HEADER_SECONDS,
];

static CACHE_COLUMNS: [Metric; 6] =
    [metric::HITS, metric::MISSES, metric::NO_QUERY, metric::PAGE_READS, metric::READ_SECONDS, metric::REAL_SECONDS];

pub fn reproduce(args: &Reproduce) -> Result<()> {
    let common = &args.common;
    let basics = &common.basics;
    let unused = [
        (common.trace_io.is_some(), "--trace-io"),
        (common.wire, "--wire"),
        (common.case.is_some(), "--case"),
        (common.variant.is_some(), "--variant"),
        (!basics.set.is_empty(), "--set"),
        (args.dry_run, "--dry-run"),
    ];
    let unused = unused.into_iter().find(|(given, _)| *given).map(|(_, option)| option);
    if let Some(option) = unused.or(common.live.given()) {
        return Err(usage(anyhow!("{option} is for experiments on a UFS device; ubi has none")));
    }
    stop::at_once(Written::Nothing)?;
    let out = basics.out.clone().unwrap_or_else(|| Path::new("out").join(EXPERIMENT));
    // A folder for all experiments has a folder for this one.
    let within = args.traces.as_ref().map(|folder| folder.join(EXPERIMENT)).filter(|folder| folder.is_dir());
    prepare(within.as_deref().or(args.traces.as_deref()), &args.own)?.write_and_show(&out, basics).map(drop)
}

/// All that is to be replayed.
pub struct Prepared {
    streams: Vec<TaskStream>,
    images: Vec<PathBuf>,
    boot_list: Option<(PathBuf, BootList)>,
    cost: Option<CostPreset>,
    with_traces: bool,
    /// What the result has to say of what was left out.
    pub notes: Vec<String>,
}

/// Reads streams, if there is a folder of them, and images.
pub fn prepare(traces: Option<&Path>, own: &OwnImages) -> Result<Prepared> {
    let cost = own.cost.as_deref().map(streams::cost).transpose()?;
    let geometry = Geometry { page_bytes: Published::builtin().preset().page_bytes, peb_bytes: None };
    let input = Input { geometry, page_is_assumed: false, lenient: false, cost: cost.clone() };
    let (mut streams, left_out) = traces.map(|folder| recorded(folder, &input)).transpose()?.unwrap_or_default();
    let read = |path: &PathBuf| BootList::read(path).map(|list| (path.clone(), list));
    let boot_list = own.boot_list.as_ref().map(read).transpose()?;
    for (path, name) in own.images.iter().zip(names(&own.images)?) {
        streams.extend(own::streams(path, &name, own.pebs, boot_list.as_ref().map(|(_, list)| list))?);
    }
    let (images, with_traces) = (own.images.clone(), traces.is_some());
    Ok(Prepared { streams, images, boot_list, cost, with_traces, notes: left_out.into_iter().collect() })
}

impl Prepared {
    /// The document, written to the folder `out` and shown.
    pub fn write_and_show(self, out: &Path, basics: &Basics) -> Result<Document> {
        let Prepared { streams, images, boot_list, cost, with_traces, notes } = self;
        let inputs = || images.iter().chain(boot_list.as_ref().map(|(path, _)| path));
        let kept = || Kept::create(basics, Some(out), inputs());
        // Whether it can be written is found out now; it is made again in the end, so that nothing lies about until
        // then.
        let held = stop::hold();
        drop(kept()?);
        drop(held);
        let Reproduction { document: mut doc, caches, sizes } = readpath_lab::ubi::reproduce(&streams, cost.as_ref())?;
        doc.notes.extend(notes.into_iter().map(Note::remark));
        doc.read_from(boot_list.iter().map(|(_, list)| &list.input));
        doc.process = output::process();
        doc.validate()?;
        let held = stop::hold();
        kept()?.write(&doc)?;
        held.done();
        let part = |rows: Range<usize>, columns: &[Metric]| {
            let mut part = Document::new(EXPERIMENT, &doc.title);
            part.rows = doc.rows[rows].to_vec();
            output::table(&part, TableSpec::of(columns), output::terminal_width())
        };
        let tables = || match caches < sizes {
            true => format!(
                "{}The same streams through other caches:\n\n{}With 1 to 256 lines: figures in report.html, values in \
                 result.json\n\n",
                part(0..caches, &COLUMNS),
                part(caches..sizes, &CACHE_COLUMNS)
            ),
            false => part(0..caches, &COLUMNS),
        };
        output::show(&doc, basics, Some(out), None, tables)?;
        let given = [
            (with_traces, "--traces DIR", "recorded streams of attach, boot, find and rm"),
            (
                !images.is_empty(),
                "--image FILE",
                "what our reader of UBIFS makes of an image: attach and mount, find, find -ls, reading all files, \
                 boot-like reading, rm",
            ),
        ];
        for (_, option, what) in given.into_iter().filter(|(given, ..)| !given && basics.prints_tables()) {
            let how = format!("'readpath reproduce {EXPERIMENT} {option}' adds them, with more caches.");
            output::emit(&format!("Left out: {what}. {how}\n"), None)?;
        }
        Ok(doc)
    }
}

/// Streams of a folder that are of one of the tasks, or of attaching, by their names: tasks first, each in order of
/// name. They have to be of the experiment's page size: those that say otherwise are left out. What else was left out
/// is told too.
fn recorded(folder: &Path, input: &Input) -> Result<(Vec<TaskStream>, Option<String>)> {
    let unreadable = |e: std::io::Error| usage(anyhow!("--traces: {}: cannot be read: {e}", folder.display()));
    let mut files: Vec<(usize, String, PathBuf)> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        // Streams of other page sizes say so in their names: mlc8k_find.
        let other_page = name.split('_').next().is_some_and(|n| n.ends_with("8k") || n.ends_with("4k"));
        let order = task_of(&name).map(|task| task as usize).or(is_attach(&name).then_some(Task::ALL.len()));
        match order.filter(|_| !other_page && path.is_file()) {
            Some(order) => files.push((order, name, path)),
            None if other_page => left_out.push(format!("{name} (of other pages, by its name)")),
            None => left_out.push(name),
        }
    }
    if files.is_empty() {
        let expected = "files named *_boot, *_find, *_rm1g or *_attach, with any ending";
        return Err(usage(anyhow!("--traces: {} has no recorded stream: expected {expected}", folder.display())));
    }
    files.sort();
    let mut cases = files.iter().map(|(_, name, path)| load(path, name, input)).collect::<Result<Vec<_>>>()?;
    let page_bytes = input.geometry.page_bytes;
    cases.retain(|case| {
        let summary = &case.stream.summary;
        let other = summary.page_bytes.filter(|&said| said != page_bytes);
        let says = other.map(|said| format!("declares pages of {said} bytes"));
        let misfit = || summary.misfits.certain.as_ref().map(|m| format!("line {} does not fit such pages", m.line));
        let why = says.or_else(misfit);
        left_out.extend(why.iter().map(|why| format!("{} ({why})", case.name)));
        why.is_none()
    });
    left_out.sort();
    let note = format!(
        "Left out of {}, as no names of streams of boot, find, rm1g or attach with pages of {page_bytes} bytes: {}.",
        folder.display(),
        left_out.join(", ")
    );
    let streams = cases.into_iter().filter_map(|case: CacheCase| TaskStream::recorded(case, page_bytes)).collect();
    Ok((streams, (!left_out.is_empty()).then_some(note)))
}
