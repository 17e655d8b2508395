// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row is about: a workload, or a part of one. Knows no workload.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Which part of a workload's run a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// A group of its jobs, or one of its phases.
    Jobs,
    /// A logical unit.
    Unit,
    /// What lies between two events.
    Span,
}

/// The case of a row: the name of a workload, and the part that the row is about. A document has both in one string,
/// which is the name when it is read; two cases are equal if these strings are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Case {
    text: String,
    name: usize,
    part: Part,
}

impl Case {
    /// A part of it, by what it is called.
    #[must_use]
    pub fn with(&self, part: Part, name: &str) -> Self {
        Self { text: format!("{}: {name}", self.text), name: self.name, part }
    }

    /// A group of its jobs, or one of its phases.
    #[must_use]
    pub fn jobs(&self, name: &str) -> Self {
        self.with(Part::Jobs, name)
    }

    /// The name of the workload.
    pub fn name(&self) -> &str {
        &self.text[..self.name]
    }

    /// Whether it is about all of the workload.
    pub fn is_whole(&self) -> bool {
        self.name == self.text.len()
    }

    /// The group or phase that it is about; none for anything else.
    pub fn jobs_name(&self) -> Option<&str> {
        self.text[self.name..].strip_prefix(": ").filter(|_| self.part == Part::Jobs)
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

impl From<Case> for String {
    fn from(case: Case) -> Self {
        case.text
    }
}
