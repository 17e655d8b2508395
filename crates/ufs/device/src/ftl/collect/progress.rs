// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of collection with its victims, and the credit that it gives the host.

/// What is done with each victim, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    Spares,
    Maps,
    Copy,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub pass: Pass,
    /// Index of the current victim; below, the units of the victims before it and of all.
    pub at: usize,
    units_before: u32,
    units: u32,
    /// Next unit (spares), slice (maps) or page (copy) of the current victim.
    pub cursor: u32,
    /// Slices that the victims free, by their references; below, how many of them the host was granted.
    freed: u32,
    granted: u32,
    /// Slices that the host may program while space is short.
    credit: u32,
}

impl Progress {
    pub(super) const NONE: Progress =
        Progress { pass: Pass::Spares, at: 0, units_before: 0, units: 0, cursor: 0, freed: 0, granted: 0, credit: 0 };

    /// Begins with victims of `units` units in all, which free `freed` slices. Credit stays.
    pub(super) fn begin(&mut self, units: u32, freed: u32) {
        *self = Progress { units, freed, credit: self.credit, ..Progress::NONE };
    }

    /// Begins a pass with the first victim.
    pub(super) fn begin_pass(&mut self, pass: Pass) {
        (self.pass, self.at, self.cursor, self.units_before) = (pass, 0, 0, 0);
    }

    /// Continues with the next victim, after one of `units` units; false if that was the last of `victims`.
    pub(super) fn next_victim(&mut self, units: u32, victims: usize) -> bool {
        self.cursor = 0;
        self.units_before += units;
        self.at += 1;
        self.at < victims
    }

    /// Grants the host its share of what the victims free, in step with the work: a quarter for each of the first two
    /// passes, the rest for copying. The cursor has `per_unit` steps to a unit.
    pub(super) fn grant(&mut self, per_unit: u32) {
        let of = u64::from(self.units.max(1)) * u64::from(per_unit);
        let done = (u64::from(self.units_before) * u64::from(per_unit) + u64::from(self.cursor)).min(of);
        let quarters = match self.pass {
            Pass::Spares => done,
            Pass::Maps => of + done,
            Pass::Copy => 2 * of + 2 * done,
        };
        let target = (u64::from(self.freed) * quarters / (4 * of)) as u32;
        self.credit += target.saturating_sub(self.granted);
        self.granted = self.granted.max(target);
    }

    /// The host pays for `slices` that it programs; false if its credit is smaller.
    pub(super) fn pay(&mut self, slices: u32) -> bool {
        let pays = self.credit >= slices;
        if pays {
            self.credit -= slices;
        }
        pays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two victims of 4 units each, 2 pages to a unit, which free 80 slices in all.
    #[test]
    fn the_host_gets_what_is_freed_in_step_with_the_work() {
        let mut p = Progress::NONE;
        p.begin(8, 80);
        let mut credits = Vec::new();
        for (pass, per_unit) in [(Pass::Spares, 1), (Pass::Maps, 16), (Pass::Copy, 2)] {
            p.begin_pass(pass);
            loop {
                for _ in 0..4 * per_unit {
                    p.cursor += 1;
                    p.grant(per_unit);
                }
                credits.push(p.credit);
                if !p.next_victim(4, 2) {
                    break;
                }
            }
        }
        assert_eq!(credits, [10, 20, 30, 40, 60, 80]);
        assert!(p.pay(80) && !p.pay(1));
        p.grant(2);
        assert!(!p.pay(1), "nothing is granted twice");
        p.credit = 7;
        p.begin(4, 0);
        assert!(p.pay(7) && !p.pay(1), "what was not used stays");
    }
}
