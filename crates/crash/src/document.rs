// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a search has found, as a result document. It knows no state and no program.

use crate::hunt::{Found, Reduced};
use readpath_results::metric::{CRASH_LOSSES_LEAST, CRASH_STATES, CRASH_STATES_FAILED, CRASH_STATES_LOOKED_AT};
use readpath_results::{Document, Error, Note, NoteKind, Origin};
use serde_json::{Value, json};

/// Names of failing states that a document lists.
const MOST_NAMES: usize = 1000;

/// The answer: did `check`, a command line, survive the `kind` states of `recording`?
///
/// # Errors
/// None that a search can cause.
pub fn document(
    found: &Found,
    (recording, kind, check): (&str, &str, &str),
    (seed, settings): (u64, Value),
) -> Result<Document, Error> {
    let mut doc =
        Document::new("crash", format!("What a crash can leave of {recording}, and whether {check} survives it"));
    doc.verdict.push(verdict(found));
    doc.description = format!("{}\n\nCHECK is the command: {check}", described(kind));
    doc.seed = seed;
    let mut figures = vec![
        (CRASH_STATES_LOOKED_AT, found.looked_at),
        (CRASH_STATES, found.different),
        (CRASH_STATES_FAILED, found.failed.len() as u64),
    ];
    figures.extend(found.reduced.first().map(|smallest| (CRASH_LOSSES_LEAST, smallest.losses.len() as u64)));
    for (metric, value) in figures {
        doc.row(recording, kind, metric, value as f64, Origin::Measured)?;
    }
    let (made, all) = found.systematic;
    if made < all {
        let text = format!("of {all} systematic states {made} were looked at; a larger --budget looks at more");
        doc.note(Note::new(NoteKind::Incomplete, text));
    }
    for Reduced { name, from, moment, losses, ran } in &found.reduced {
        let losses =
            if losses.is_empty() { "nothing is lost: the moment is enough".to_owned() } else { losses.join("; ") };
        let said = ran.said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let said = said.map(|said| format!("; it said: {said}")).unwrap_or_default();
        doc.remark(format!("--state '{name}' ({}): {moment}; {losses}{said}. It was made of {from}", ran.outcome));
    }
    let names =
        found.failed.iter().take(MOST_NAMES).map(
            |tried| json!({"state": tried.name, "losses": tried.losses, "outcome": tried.ran.outcome.to_string()}),
        );
    doc.configuration = json!({"settings": settings, "failed": names.collect::<Vec<_>>()});
    Ok(doc)
}

fn verdict(found: &Found) -> Note {
    let Found { different, failed, reduced, .. } = found;
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let numbers = |note: Note| Note {
        numbers: vec![("states".to_owned(), *different as f64), ("failed".to_owned(), failed.len() as f64)],
        ..note
    };
    if *different == 0 {
        return numbers(Note::remark("Nothing was written in the recording, so a crash leaves what was there before."));
    }
    let all = grouped(*different);
    let Some(smallest) = reduced.first() else {
        return numbers(Note::remark(format!("CHECK survived all {all} states.")));
    };
    let losses = smallest.losses.len();
    let smallest = match losses {
        0 => format!("one loses nothing: {}", smallest.name),
        _ => format!("the smallest loses {}: {}", count(losses, "request"), smallest.name),
    };
    numbers(Note::remark(format!(
        "CHECK did not survive {} of {all} states; {smallest}.",
        grouped(failed.len() as u64)
    )))
}

fn described(kind: &str) -> &'static str {
    match kind {
        "device" => {
            "The states are what the device's own recovery yields when power goes after each of its flash operations, \
             and once more while it recovers."
        }
        _ => {
            "The states are those that any disk may leave which keeps the rules of flush and FUA: what was answered \
             before a successful flush was sent, or had FUA, is there; any part of the rest may be missing or torn."
        }
    }
}

/// A number with commas between its thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
