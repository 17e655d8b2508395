// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of the numbers of a configuration. One table serves checks, file parsers and the description of keys. Knows
//! no field.

use crate::Ns;
use std::ops::RangeInclusive;

/// The bounds of a number of a `T`.
pub struct Bound<T> {
    /// Path of the field (`ftl.collect_below`).
    pub field: &'static str,
    least: u64,
    most: u64,
    is_time: bool,
    value: fn(&T) -> Option<u64>,
}

impl<T> Bound<T> {
    /// Bounds of a count; `value` returns `None` where the part with the field is missing.
    pub const fn count(field: &'static str, least: u64, most: u64, value: fn(&T) -> Option<u64>) -> Bound<T> {
        Bound { field, least, most, is_time: false, value }
    }

    /// Bounds of a time: `least` in ns, `most_seconds` in whole seconds.
    pub const fn time(field: &'static str, least: Ns, most_seconds: u64, value: fn(&T) -> Option<u64>) -> Bound<T> {
        Bound { field, least: least.0, most: Ns::from_secs(most_seconds).0, is_time: true, value }
    }

    /// Least and greatest value; those of a time in ns.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.least..=self.most
    }

    /// The error message, if the value in `whole` is out of bounds.
    pub fn violation(&self, whole: &T) -> Option<String> {
        let value = (self.value)(whole).filter(|value| !self.range().contains(value))?;
        let Bound { least, most, .. } = self;
        Some(match (self.is_time, least) {
            (false, _) => format!("is {value}; it must be {least} to {most}"),
            (true, 0) => format!("is {}; it must be at most {} s", Ns(value), most / Ns::from_secs(1).0),
            (true, 1) => format!("is {}; it must be above 0 and at most {} s", Ns(value), most / Ns::from_secs(1).0),
            (true, _) => format!("is {}; it must be {} to {} s", Ns(value), Ns(*least), most / Ns::from_secs(1).0),
        })
    }
}

/// The bounds of `field` in a table.
///
/// # Panics
/// If the table does not have them: tables and fields are part of the program.
pub fn range_of<T>(table: &[Bound<T>], field: &str) -> RangeInclusive<u64> {
    table.iter().find(|bound| bound.field == field).unwrap_or_else(|| panic!("no bounds of {field}")).range()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_bounds_are_told_with_what_would_be_right() {
        let count = Bound::count("reads", 2, 9, |n: &Option<u64>| *n);
        let says = |n| count.violation(&Some(n));
        assert_eq!((says(2), says(9), count.violation(&None)), (None, None, None));
        assert_eq!(says(1).as_deref(), Some("is 1; it must be 2 to 9"));
        assert_eq!(says(10).as_deref(), Some("is 10; it must be 2 to 9"));
        for (least, right) in [(0, "at most 3 s"), (1, "above 0 and at most 3 s"), (1_000, "1.000 us to 3 s")] {
            let time = Bound::time("idle", Ns(least), 3, |n: &u64| Some(*n));
            let says = time.violation(&3_000_000_001);
            assert_eq!(says, Some(format!("is 3.000 s; it must be {right}")));
            assert_eq!((time.violation(&3_000_000_000), time.violation(&least)), (None, None));
        }
        assert_eq!(range_of(&[count], "reads"), 2..=9);
    }
}
