// SPDX-License-Identifier: MIT OR Apache-2.0
//! The streams that the experiment replays, each with its work and its reader.

use super::CacheCase;
use super::published::{Published, Task};

/// Our reader of UBIFS.
const OWN: &str = "own reader";

/// A stream of the experiment.
#[derive(Clone, Debug)]
pub struct TaskStream {
    /// The work of the stream.
    pub work: String,
    /// Who read.
    pub reader: &'static str,
    /// The task of the published table with which it is compared.
    pub task: Option<Task>,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// The stream itself.
    pub case: CacheCase,
}

impl TaskStream {
    /// A stream that was recorded, known by its name; none if it is of nothing that the experiment has.
    pub fn recorded(case: CacheCase, page_bytes: u32) -> Option<TaskStream> {
        let task = task_of(&case.name);
        let work = match task {
            Some(task) => task.name(),
            None if is_attach(&case.name) => "attach",
            None => return None,
        };
        Some(TaskStream { work: work.to_owned(), reader: "recorded", task, page_bytes, case })
    }

    /// Reads that our reader of UBIFS makes of an image. If `like` is given, and the work is as large as that task, on
    /// pages of the same size, published values are shown too.
    pub fn own(work: &str, like: Option<Task>, page_bytes: u32, case: CacheCase) -> TaskStream {
        let published = Published::builtin();
        let same_pages = published.preset().page_bytes == page_bytes;
        let task = like.filter(|&task| same_pages && published.is_as_large(task, case.stream.summary.reads));
        TaskStream { work: work.to_owned(), reader: OWN, task, page_bytes, case }
    }

    /// Whether our reader made it of an image.
    pub(super) fn is_own(&self) -> bool {
        self.reader == OWN
    }

    /// Name of a case in tables; `beyond` says what of the work it is about.
    pub(super) fn name(&self, beyond: &str) -> String {
        format!("{}{beyond}, {}: {}", self.work, self.reader, self.case.name)
    }
}

/// Which task a recorded stream is of, by its name: `…_find`, `…_boot`, `…_rm1g`.
pub fn task_of(name: &str) -> Option<Task> {
    let stem = name.split('.').next().unwrap_or(name);
    match stem.rsplit('_').next()? {
        "find" => Some(Task::Find),
        "boot" => Some(Task::Boot),
        "rm1g" => Some(Task::Rm),
        _ => None,
    }
}

/// Whether a recorded stream is of attaching, by its name: `…_attach`.
pub fn is_attach(name: &str) -> bool {
    name.split('.').next().unwrap_or(name).ends_with("_attach")
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_results::Input;
    use readpath_ubi::stream::{Stream, Summary};

    #[test]
    fn published_values_stand_beside_work_that_is_as_large_on_the_same_pages() {
        let task = |like, reads, page_bytes| {
            let stream = Stream { records: Vec::new(), summary: Summary { reads, ..Summary::default() } };
            let case = CacheCase { name: "i".into(), stream, notes: Vec::new(), input: Input::of_text("i", "") };
            TaskStream::own("work", like, page_bytes, case).task
        };
        // The published find has 21,844 reads.
        assert_eq!(task(Some(Task::Find), 16_383, 16_384), Some(Task::Find));
        assert_eq!(task(Some(Task::Find), 27_305, 16_384), Some(Task::Find));
        assert_eq!(task(Some(Task::Find), 16_382, 16_384), None);
        assert_eq!(task(Some(Task::Find), 27_306, 16_384), None);
        assert_eq!(task(Some(Task::Find), 21_844, 8192), None);
        assert_eq!(task(Some(Task::Rm), 21_844, 16_384), None);
        assert_eq!(task(None, 21_844, 16_384), None);
    }

    #[test]
    fn streams_are_known_by_their_names() {
        assert_eq!(task_of("m1_find.csv.gz"), Some(Task::Find));
        assert_eq!(task_of("a_b_rm1g"), Some(Task::Rm));
        assert_eq!(task_of("m1_boot.csv"), Some(Task::Boot));
        assert_eq!(task_of("m1_findls.csv.gz"), None);
        assert!(is_attach("m1_attach.csv.gz") && !is_attach("m1_mount.csv.gz"));
    }
}
