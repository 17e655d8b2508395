// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader must know to read the numbers right. Kind, case, variant and numbers are for programs; the text is for
//! people, and no decision is taken from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a note is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A part of the results is missing.
    Incomplete,
    /// The workload differs from the recorded one.
    Altered,
    /// The verdict on a published claim.
    Claim,
    /// What a variant gains or loses against another.
    Gain,
    /// Variants differ by no more than chance, or not at all.
    NoDifference,
    /// The times of a trace are too coarse to say how requests overlap.
    CoarseTimes,
    /// What the results recommend.
    Advice,
    /// The outcome of attacks.
    Attack,
    /// The host was to use HPB, but the device has none.
    WithoutHpb,
    /// HPB gains little, and why.
    LittleGain,
    /// How long the cells of a device live under the load of a run.
    Lifetime,
    /// There is no recommendation, and why.
    NoAdvice,
    /// Anything else.
    Remark,
}

impl NoteKind {
    const ALL: [Self; 13] = [
        Self::Incomplete,
        Self::Altered,
        Self::Claim,
        Self::Gain,
        Self::NoDifference,
        Self::CoarseTimes,
        Self::Advice,
        Self::Attack,
        Self::WithoutHpb,
        Self::LittleGain,
        Self::Lifetime,
        Self::NoAdvice,
        Self::Remark,
    ];

    /// The word that begins a printed note of this kind.
    const fn word(self) -> &'static str {
        match self {
            Self::Incomplete => "INCOMPLETE: ",
            Self::Claim => "CLAIM ",
            Self::Advice => "RECOMMENDED: ",
            Self::Attack => "ATTACK: ",
            Self::Altered
            | Self::Gain
            | Self::NoDifference
            | Self::CoarseTimes
            | Self::WithoutHpb
            | Self::LittleGain
            | Self::Lifetime
            | Self::NoAdvice
            | Self::Remark => "",
        }
    }
}

/// One note.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Note {
    /// Its kind.
    pub kind: NoteKind,
    /// The case, if the note is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The variant, if the note is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Its numbers by name, with their unit at the end of the name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<(String, f64)>,
    /// The sentence.
    pub text: String,
}

/// A note in a document: an object, or in documents of version 1 a string that begins with the word of its kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Note {
        kind: NoteKind,
        case: Option<String>,
        variant: Option<String>,
        #[serde(default)]
        numbers: Vec<(String, f64)>,
        text: String,
    },
}

impl From<Written> for Note {
    fn from(written: Written) -> Self {
        match written {
            Written::Note { kind, case, variant, numbers, text } => Self { kind, case, variant, numbers, text },
            Written::Text(whole) => {
                let of = |kind: NoteKind| {
                    let text = whole.strip_prefix(kind.word()).filter(|_| !kind.word().is_empty())?;
                    Some(Self::new(kind, text))
                };
                NoteKind::ALL.into_iter().find_map(of).unwrap_or_else(|| Self::remark(whole.as_str()))
            }
        }
    }
}

impl Note {
    /// A note of this kind.
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Self {
        Self { kind, case: None, variant: None, numbers: Vec::new(), text: text.into() }
    }

    /// A note of kind [`NoteKind::Remark`].
    pub fn remark(text: impl Into<String>) -> Self {
        Self::new(NoteKind::Remark, text)
    }

    /// Names the case that the note is about.
    #[must_use]
    pub fn of_case(self, case: impl Into<String>) -> Self {
        Self { case: Some(case.into()), ..self }
    }

    /// Names the variant that the note is about.
    #[must_use]
    pub fn of_variant(self, variant: impl Into<String>) -> Self {
        Self { variant: Some(variant.into()), ..self }
    }

    /// Adds a number, whose unit ends its name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: f64) -> Self {
        self.numbers.push((name.into(), value));
        self
    }

    /// Whether the note comes before all others, because it changes what the results mean.
    pub fn is_first(&self) -> bool {
        matches!(self.kind, NoteKind::Incomplete | NoteKind::Altered)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.word(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_all_of_a_note() {
        for kind in NoteKind::ALL {
            let note = Note::new(kind, "x: 1 of 2").of_case("x").of_variant("HPB dcm").with("share_percent", 12.5);
            let json = serde_json::to_string(&note).expect("JSON");
            assert_eq!(serde_json::from_str::<Note>(&json).expect("a note"), note, "{json}");
        }
        let json = serde_json::to_value(Note::remark("x")).expect("JSON");
        assert_eq!(json, serde_json::json!({ "kind": "remark", "text": "x" }));
    }

    /// Documents of version 1 have strings.
    #[test]
    fn a_string_is_a_note_whose_kind_is_its_first_word() {
        for kind in NoteKind::ALL {
            let note = Note::new(kind, "x: 1 of 2");
            let read: Note = serde_json::from_value(note.to_string().into()).expect("a note");
            let expected = if kind.word().is_empty() { NoteKind::Remark } else { kind };
            assert_eq!((read.kind, read.text.as_str()), (expected, "x: 1 of 2"));
        }
    }
}
