// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best possible result: Belady's optimum for the maps that a trace reads (L. A. Belady, IBM Systems Journal 1966).
//! It knows a list of units in order and a number of places, nothing of devices.
//!
//! Every unit is as large as every other. Reading one that is in no place costs one load, whether it is put into a
//! place (at the cost of another) or not. No policy needs fewer loads, whether it knows the future or not.

use std::collections::BinaryHeap;

/// The least number of loads for these reads, in order, with so many places, which are empty at first.
pub(super) fn optimum(reads: &[u32], places: usize) -> u64 {
    const NEVER: u32 = u32::MAX;
    let units = reads.iter().max().map_or(0, |&m| m as usize + 1);
    // When each read's unit is read next.
    let mut next = vec![NEVER; reads.len()];
    let mut seen = vec![NEVER; units];
    for (i, &unit) in reads.iter().enumerate().rev() {
        next[i] = std::mem::replace(&mut seen[unit as usize], i as u32);
    }
    // For each unit held, when it is read next; and the same as a heap, which may have outdated entries.
    let mut held = vec![None; units];
    let mut last: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let (mut count, mut loads) = (0, 0);
    for (&unit, &next) in reads.iter().zip(&next) {
        if held[unit as usize].is_none() {
            loads += 1;
            count += 1;
        }
        held[unit as usize] = Some(next);
        last.push((next, unit));
        while count > places {
            // The unit whose next read is latest, which may be the new one.
            let Some((when, victim)) = last.pop() else { break };
            if held[victim as usize] == Some(when) {
                held[victim as usize] = None;
                count -= 1;
            }
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// All choices, tried.
    fn tried(reads: &[u32], mut held: Vec<u32>, places: usize, known: &mut HashMap<(usize, Vec<u32>), u64>) -> u64 {
        let Some((&unit, rest)) = reads.split_first() else { return 0 };
        held.sort_unstable();
        let key = (reads.len(), held.clone());
        if let Some(&loads) = known.get(&key) {
            return loads;
        }
        let mut best = u64::MAX;
        if held.contains(&unit) {
            best = tried(rest, held.clone(), places, known);
        } else {
            // Not kept, kept in a free place, or kept in the place of another.
            best = best.min(1 + tried(rest, held.clone(), places, known));
            if held.len() < places {
                let mut with = held.clone();
                with.push(unit);
                best = best.min(1 + tried(rest, with, places, known));
            }
            for i in 0..held.len() {
                let mut with = held.clone();
                with[i] = unit;
                best = best.min(1 + tried(rest, with, places, known));
            }
        }
        known.insert(key, best);
        best
    }

    proptest! {
        #[test]
        fn nothing_is_better(reads in proptest::collection::vec(0u32..6, 0..14), places in 0usize..4) {
            prop_assert_eq!(optimum(&reads, places), tried(&reads, Vec::new(), places, &mut HashMap::new()));
        }
    }

    #[test]
    fn by_hand() {
        // A loop over three with two places: two stay, and the third is loaded each time. LRU would load all.
        let reads: Vec<u32> = (0..30).map(|i| i % 3).collect();
        assert_eq!(optimum(&reads, 2), 2 + 10);
        assert_eq!(optimum(&reads, 3), 3);
        assert_eq!(optimum(&reads, 0), 30);
        assert_eq!(optimum(&[], 5), 0);
    }
}
