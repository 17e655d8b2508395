// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader must know to read the numbers right. The kind is for programs, the text for people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a note is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NoteKind {
    /// Something of the results is missing.
    Incomplete,
    /// The workload is another one than was recorded. In a document it is a remark.
    Altered,
    /// What became of a claim of others.
    Claim,
    /// What the results recommend.
    Advice,
    /// What became of attacks.
    Attack,
    /// Anything else.
    Remark,
}

impl NoteKind {
    const ALL: [Self; 6] = [Self::Incomplete, Self::Altered, Self::Claim, Self::Advice, Self::Attack, Self::Remark];

    /// With what a note of this kind begins in a document.
    const fn word(self) -> &'static str {
        match self {
            Self::Incomplete => "INCOMPLETE: ",
            Self::Claim => "CLAIM ",
            Self::Advice => "RECOMMENDED: ",
            Self::Attack => "ATTACK: ",
            Self::Altered | Self::Remark => "",
        }
    }
}

/// One note. In a document it is a string: the word of its kind, and the text.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// The sentence.
    pub text: String,
}

impl Note {
    /// A note of this kind.
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A note of no other kind.
    pub fn remark(text: impl Into<String>) -> Self {
        Self::new(NoteKind::Remark, text)
    }

    /// Whether it comes before all others, because it changes what the results mean.
    pub fn is_first(&self) -> bool {
        matches!(self.kind, NoteKind::Incomplete | NoteKind::Altered)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.word(), self.text)
    }
}

/// As it stands in a document.
impl From<String> for Note {
    fn from(whole: String) -> Self {
        let of = |kind: NoteKind| {
            Some(Self::new(kind, whole.strip_prefix(kind.word()).filter(|_| !kind.word().is_empty())?))
        };
        NoteKind::ALL.into_iter().find_map(of).unwrap_or_else(|| Self::new(NoteKind::Remark, whole.as_str()))
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_kinds_that_have_a_word() {
        for kind in NoteKind::ALL {
            let note = Note::new(kind, "x: 1 of 2");
            let read = Note::from(note.to_string());
            let expected = if kind == NoteKind::Altered { NoteKind::Remark } else { kind };
            assert_eq!((read.kind, read.text.as_str()), (expected, "x: 1 of 2"));
        }
    }
}
