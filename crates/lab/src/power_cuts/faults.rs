// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of a run with power cuts: orders about rules, in the language of a served device. What has no meaning here is
//! refused. It opens no file.

use readpath_run::rules::{Due, Op, Rule, RuleOrder, Wrong, lines};
use std::sync::Arc;

/// Reads lines of a time and an order. `file` is what errors call them.
///
/// # Errors
/// The first line that is wrong, its column, and why.
pub fn read_faults(text: &str, file: &str) -> Result<Arc<[Due<RuleOrder>]>, String> {
    lines(text, file, order).map(Arc::from)
}

fn order(text: &str) -> Result<RuleOrder, Wrong> {
    let wrong = |word: &str, what: &str| {
        Err(Wrong { at: text.find(word).unwrap_or(0), what: format!("{}: '{word}' {what}", text.trim()) })
    };
    let Some(order) = RuleOrder::read(text) else {
        let first = text.split_whitespace().next().unwrap_or_default();
        return wrong(
            first,
            "is for a served device; here are error, slow, drop, torn, misdirect and corrupt, each \
                             also with 'off', and 'seed N'; the power goes as --cuts and --loses say",
        );
    };
    match order.map_err(|Wrong { at, what }| Wrong { at, what: format!("{}: {what}", text.trim()) })? {
        RuleOrder::Add(Rule { client: Some(_), .. }) => {
            wrong("client", "has no meaning: a workload has no connections")
        }
        RuleOrder::Add(Rule { op: Some(Op::Zero), .. }) => {
            wrong("zero", "meets nothing: a workload has read, write, flush and trim")
        }
        order => Ok(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_meaning_here_is_refused() {
        assert_eq!(read_faults("0s seed 7\n1s drop write 1%\n2s drop off\n", "f").unwrap().len(), 3);
        for (text, begins) in [
            ("5s cut 1s", "f: line 1, column 4: cut 1s: 'cut' is for a served device; here are error, slow"),
            ("0s drop\n1s lie on", "f: line 2, column 4: lie on: 'lie' is for"),
            ("5s slow client 2 5ms", "f: line 1, column 9: slow client 2 5ms: 'client' has no meaning"),
            ("5s error zero", "f: line 1, column 10: error zero: 'zero' meets nothing"),
            ("5s torn 1K", "f: line 1, column 9: torn 1K: '1K' is nothing"),
        ] {
            let error = read_faults(text, "f").unwrap_err();
            assert!(error.starts_with(begins), "{text}: {error}");
        }
    }
}
