// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row is about: a workload, or a part of one. Knows no workload.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Which part of a workload's run a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The whole run.
    Whole,
    /// A group of the workload's jobs, or one of its phases.
    Jobs,
    /// A logical unit.
    Unit,
    /// The time between two events.
    Span,
}

/// The case of a row: the name of a workload, and the part that the row is about. Two cases are equal if their strings
/// are. A document has that string, and also the part unless it is the whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Case {
    text: String,
    name: usize,
    part: Part,
}

impl Case {
    /// A part of this case, by name.
    #[must_use]
    pub fn with(&self, part: Part, name: &str) -> Self {
        Self { text: format!("{}: {name}", self.text), name: self.name, part }
    }

    /// The part for a group of jobs or for a phase.
    #[must_use]
    pub fn jobs(&self, name: &str) -> Self {
        self.with(Part::Jobs, name)
    }

    /// The name of the workload.
    pub fn name(&self) -> &str {
        &self.text[..self.name]
    }

    /// Whether the row is about the whole workload.
    pub fn is_whole(&self) -> bool {
        self.name == self.text.len()
    }

    /// Name of the part; empty for the whole workload.
    pub fn part_name(&self) -> &str {
        self.text[self.name..].strip_prefix(": ").unwrap_or_default()
    }

    /// Name of the group or phase, if the part is one.
    pub fn jobs_name(&self) -> Option<&str> {
        (self.part == Part::Jobs).then(|| self.part_name())
    }
}

impl Deref for Case {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Case {}

impl PartialEq<&str> for Case {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Hash for Case {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl From<String> for Case {
    fn from(text: String) -> Self {
        Self { name: text.len(), text, part: Part::Whole }
    }
}

impl From<&str> for Case {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Case {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&Case> for Case {
    fn from(case: &Case) -> Self {
        case.clone()
    }
}

/// A case in a row of a document.
#[derive(Serialize, Deserialize)]
struct Written {
    case: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<WrittenPart>,
}

#[derive(Serialize, Deserialize)]
struct WrittenPart {
    kind: Part,
    /// Name within the workload, with the parts that enclose it.
    name: String,
}

impl From<Case> for Written {
    fn from(case: Case) -> Self {
        let name = case.text[case.name..].strip_prefix(": ").map(str::to_owned);
        Written { part: name.map(|name| WrittenPart { kind: case.part, name }), case: case.text }
    }
}

impl From<Written> for Case {
    fn from(Written { case, part }: Written) -> Self {
        let part = part.and_then(|WrittenPart { kind, name }| {
            let workload = case.strip_suffix(&name)?.strip_suffix(": ")?;
            Some((workload.len(), kind))
        });
        let (name, part) = part.unwrap_or((case.len(), Part::Whole));
        Case { text: case, name, part }
    }
}
