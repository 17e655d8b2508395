// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment `ubi`: the published table and the model, with recorded streams and those that our own reader makes
//! of images.

use super::boot::BootList;
use super::own;
use super::streams::{self, Input, load};
use crate::args::OwnImages;
use crate::cases::names;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, Published, Reproduction, Task, TaskStream, is_attach, task_of};
use readpath_results::Note;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::Geometry;
use std::path::{Path, PathBuf};

/// Name of the experiment.
pub const EXPERIMENT: &str = "ubi";

/// Streams to be replayed.
pub struct Prepared {
    streams: Vec<TaskStream>,
    images: Vec<PathBuf>,
    boot_list: Option<(PathBuf, BootList)>,
    cost: Option<CostPreset>,
    with_traces: bool,
    /// Notes on the parts that were left out.
    pub notes: Vec<String>,
}

/// Reads streams, if there is a folder of them, and images.
///
/// # Errors
/// When an option, a stream or an image is wrong.
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
    /// Images and lists that were read.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> + Clone {
        self.images.iter().chain(self.boot_list.as_ref().map(|(path, _)| path))
    }

    /// Whether there is a folder of recorded streams.
    pub fn has_traces(&self) -> bool {
        self.with_traces
    }

    /// Whether there are images.
    pub fn has_images(&self) -> bool {
        !self.images.is_empty()
    }

    /// Replays all streams.
    ///
    /// # Errors
    /// When a figure is not finite.
    pub fn reproduce(&self) -> Result<Reproduction> {
        let mut made = readpath_lab::ubi::reproduce(&self.streams, self.cost.as_ref())?;
        made.document.notes.extend(self.notes.iter().map(Note::remark));
        made.document.read_from(self.boot_list.iter().map(|(_, list)| &list.input));
        Ok(made)
    }
}

/// Streams of a folder that are of one of the tasks, or of attaching, by their names: tasks first, each in order of
/// name; and a note on what was left out. Streams of another page size than the experiment's are left out.
fn recorded(folder: &Path, input: &Input) -> Result<(Vec<TaskStream>, Option<String>)> {
    let unreadable = |e: std::io::Error| usage(anyhow!("--traces: {}: cannot be read: {e}", folder.display()));
    let mut files: Vec<(usize, String, PathBuf)> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        // Streams of other page sizes have them in their names: mlc8k_find.
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
