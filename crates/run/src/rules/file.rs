// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of orders, each behind the time when it is due. It knows no order.

use super::{RuleOrder, Rules, Wrong};
use readpath_config::time;
use readpath_kit::Ns;

/// An order of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Due<T> {
    /// When it is due, from the beginning on.
    pub at: Ns,
    /// What is ordered.
    pub order: T,
    /// File and line, for messages.
    pub place: String,
}

/// Reads lines of a time and an order, in order of time; `#` begins a comment. `file` is what errors call them.
///
/// # Errors
/// The first line that is wrong, its column, and why.
pub fn lines<T>(text: &str, file: &str, read: impl Fn(&str) -> Result<T, Wrong>) -> Result<Vec<Due<T>>, String> {
    let mut orders: Vec<Due<T>> = Vec::new();
    for (i, whole) in text.lines().enumerate() {
        let place = format!("{file}: line {}", i + 1);
        let line = whole.split('#').next().unwrap_or_default().trim_end();
        let words = line.trim_start();
        if words.is_empty() {
            continue;
        }
        let begin = line.len() - words.len();
        let wrong = |byte: usize, what: String| {
            let column = line.get(..byte).map_or(0, |before| before.chars().count()) + 1;
            format!("{place}, column {column}: {what}")
        };
        let (at, order) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let at = time(at).map_err(|what| wrong(begin, what))?;
        if orders.last().is_some_and(|last| at < last.at) {
            return Err(wrong(begin, "its time is before that of the line above".to_owned()));
        }
        let order = read(order).map_err(|Wrong { at, what }| wrong(line.len() - order.len() + at, what))?;
        orders.push(Due { at, order, place });
    }
    Ok(orders)
}

/// Whether all orders can be carried out one after the other, for logical units of so many blocks.
///
/// # Errors
/// The first that cannot, with its place, and why.
pub fn check(orders: &[Due<RuleOrder>], units: &[u32]) -> Result<(), String> {
    let mut rules = Rules::default();
    orders.iter().try_for_each(|Due { at, order, place }| {
        rules.carry_out(order, *at, units).map_err(|what| format!("{place}: {order}: {what}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Due<RuleOrder>>, String> {
        lines(text, "bad day", |order| RuleOrder::read(order).unwrap_or(Err(Wrong { at: 0, what: "no".to_owned() })))
    }

    #[test]
    fn files_have_times() {
        let orders = read("# a bad day\n5s drop\n\n  5s   seed 7 # honestly\n1000s drop off\n").unwrap();
        let found: Vec<_> = orders.iter().map(|due| (due.at.0 / 1_000_000_000, due.order.to_string())).collect();
        assert_eq!(found, [(5, "drop".to_owned()), (5, "seed 7".to_owned()), (1000, "drop off".to_owned())]);
        assert_eq!(orders[1].place, "bad day: line 4");
    }

    #[test]
    fn what_is_wrong_has_a_line_and_a_column() {
        for (text, begins) in [
            ("5s drop\n 4s drop", "bad day: line 2, column 2: its time"),
            ("drop", "bad day: line 1, column 1: \"drop\""),
            ("5s", "bad day: line 1, column 3: no"),
            ("\n  5s   slow  fast 5ms", "bad day: line 2, column 14: 'fast' is nothing that slow takes"),
            ("5s torn write # at", "bad day: line 1, column 14: at what size?"),
            ("5s error client", "bad day: line 1, column 16: 'client' needs a value"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(begins), "{text}: {error}");
        }
    }
}
