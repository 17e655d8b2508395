// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have claimed about an experiment without giving every figure: that one variant is faster than another, by so
//! much. It knows nothing of results.

use super::error::ConfigFileError;
use super::section::Section;
use serde::Serialize;

type Result<T> = std::result::Result<T, ConfigFileError>;

/// A claim: in each case, a metric of one variant lies above or below that of another by so many percent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// The claim in a sentence.
    pub text: String,
    /// Who made it, where.
    pub source: String,
    /// Metric in snake case.
    pub metric: String,
    /// Group of jobs that it speaks of, if a case has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The variant.
    pub variant: String,
    /// The variant that it is compared with.
    pub base: String,
    /// A parameter was chosen with the claim in view, so that it holds proves little.
    pub fitted: bool,
    /// The cases that it speaks of; all if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Percent by which the variant is above the base, at least; negative is below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_percent: Option<f64>,
    /// And at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_percent: Option<f64>,
}

impl Claim {
    /// Whether a difference in percent is what was claimed.
    pub fn holds(&self, percent: f64) -> bool {
        self.min_percent.is_none_or(|min| percent >= min) && self.max_percent.is_none_or(|max| percent <= max)
    }
}

const KEYS: [&str; 10] =
    ["text", "source", "metric", "group", "variant", "base", "fitted", "cases", "min_percent", "max_percent"];

/// All claims of a file, for its cases and variants.
pub(super) fn claims(root: &Section, cases: &[&str], variants: &[&str]) -> Result<Vec<Claim>> {
    if !root.has("claim") {
        return Ok(Vec::new());
    }
    root.sections("claim", &KEYS)?.iter().map(|s| claim(s, cases, variants)).collect()
}

fn claim(s: &Section, cases: &[&str], variants: &[&str]) -> Result<Claim> {
    let text = |key: &str| match s.string(key)? {
        "" => Err(s.error(key, "is empty")),
        text => Ok(text.to_owned()),
    };
    let optional = |key: &str| if s.has(key) { s.number(key).map(Some) } else { Ok(None) };
    let known = |key: &str, name: &str, names: &[&str]| match names.contains(&name) {
        true => Ok(()),
        false => Err(s.error(key, format!("names {name:?}, which is not there; there are {}", names.join(", ")))),
    };
    let claim = Claim {
        text: text("text")?,
        source: text("source")?,
        metric: s.name("metric", "lower-case letters, digits and '_'", |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
        })?,
        group: if s.has("group") { Some(text("group")?) } else { None },
        variant: text("variant")?,
        base: text("base")?,
        fitted: s.flag_or("fitted", false)?,
        cases: if s.has("cases") { s.strings("cases")? } else { Vec::new() },
        min_percent: optional("min_percent")?,
        max_percent: optional("max_percent")?,
    };
    known("variant", &claim.variant, variants)?;
    known("base", &claim.base, variants)?;
    claim.cases.iter().try_for_each(|case| known("cases", case, cases))?;
    match (claim.min_percent, claim.max_percent) {
        (None, None) => Err(s.error("min_percent", "or max_percent has to be there: the claim says nothing")),
        (Some(min), Some(max)) if min > max => Err(s.error("min_percent", format!("is {min}, above max_percent"))),
        _ => Ok(claim),
    }
}
