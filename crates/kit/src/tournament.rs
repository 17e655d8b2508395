// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tournament tree over the deadlines of many servers, at most one each, in single 64-bit words. A heap branches on
//! every comparison, and a processor mispredicts half of these branches; here an update takes one minimum for each
//! round, and always the same number of rounds. While only one server has a deadline, no round is played.

use crate::{DeadlineHeap, Ns};

const TAG_BITS: u32 = DeadlineHeap::SLOTS.trailing_zeros();
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
/// No deadline; greater than every other word.
const NONE: u64 = u64::MAX;
const NO_SERVER: u32 = u32::MAX;
/// Nodes of the largest tournament: as many as a scheduler of 4096 dies and 64 channels needs.
const NODES: usize = 1 << 14;

/// Deadlines by server, each with a tag below [`DeadlineHeap::SLOTS`]. Equal times come in the order of their tags.
#[derive(Debug, Clone)]
pub struct Tournament {
    /// The earliest deadline, or `NONE`.
    first: u64,
    /// The only server with a deadline, which is not entered in `rounds`; else `NO_SERVER`.
    alone: u32,
    places: u32,
    /// Server `s` is at `places + s`, and the earlier of `2 i` and `2 i + 1` at `i`. Of fixed size, so that indexing
    /// needs no bounds check.
    rounds: Box<[u64; NODES]>,
}

impl Tournament {
    /// Largest number of servers.
    pub const SERVERS: u32 = NODES as u32 / 2;

    /// A tournament of `servers` servers without deadlines.
    ///
    /// # Panics
    /// When there are more than [`Tournament::SERVERS`].
    pub fn new(servers: u32) -> Self {
        assert!(servers <= Self::SERVERS, "{servers} servers of {}", Self::SERVERS);
        let places = servers.max(1).next_power_of_two();
        Tournament { first: NONE, alone: NO_SERVER, places, rounds: Box::new([NONE; NODES]) }
    }

    /// The earliest deadline, or [`Ns::NEVER`].
    #[inline(always)]
    pub fn next(&self) -> Ns {
        if self.first == NONE { Ns::NEVER } else { Ns(self.first >> TAG_BITS) }
    }

    /// The earliest deadline and its tag, if it is due at `now`; it stays.
    #[inline(always)]
    pub fn first_due(&self, now: Ns) -> Option<(Ns, u32)> {
        let at = Ns(self.first >> TAG_BITS);
        (at <= now && self.first != NONE).then_some((at, (self.first & TAG_MASK) as u32))
    }

    /// Sets the deadline of `server`, in place of the one that it had.
    ///
    /// # Panics
    /// When `at` is beyond [`DeadlineHeap::LATEST`] or `tag` is not below [`DeadlineHeap::SLOTS`].
    #[inline(always)]
    pub fn set(&mut self, server: u32, at: Ns, tag: u32) {
        assert!(at <= DeadlineHeap::LATEST, "virtual time exceeds 52 days");
        assert!(tag < DeadlineHeap::SLOTS, "tag {tag} of {}", DeadlineHeap::SLOTS);
        let word = at.0 << TAG_BITS | u64::from(tag);
        if self.first == NONE || self.alone == server {
            self.alone = server;
            self.first = word;
            return;
        }
        if self.alone != NO_SERVER {
            let other = std::mem::replace(&mut self.alone, NO_SERVER);
            self.play(other, self.first);
        }
        self.play(server, word);
    }

    /// Removes the deadline of `server`.
    #[inline(always)]
    pub fn clear(&mut self, server: u32) {
        if self.alone == server {
            self.alone = NO_SERVER;
            self.first = NONE;
        } else if self.alone == NO_SERVER {
            self.play(server, NONE);
        }
    }

    /// [`Tournament::clear`] of one server and [`Tournament::set`] of another.
    #[inline(always)]
    pub fn pass(&mut self, from: u32, to: u32, at: Ns, tag: u32) {
        if self.alone == from {
            self.first = NONE;
        } else {
            self.clear(from);
        }
        self.set(to, at, tag);
    }

    /// Plays the rounds of `server` again.
    #[inline(always)]
    fn play(&mut self, server: u32, word: u64) {
        debug_assert!(server < self.places, "server {server} of {}", self.places);
        let mut at = (self.places + server) as usize;
        self.rounds[at % NODES] = word;
        let mut earliest = word;
        while at > 1 {
            earliest = earliest.min(self.rounds[(at ^ 1) % NODES]);
            at /= 2;
            self.rounds[at % NODES] = earliest;
        }
        self.first = earliest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_of_all(
            servers in 1u32..20,
            steps in proptest::collection::vec((0u32..20, 0u64..50, 0u32..4096, 0u8..4), 0..200),
        ) {
            let mut tournament = Tournament::new(servers);
            let mut model = vec![None; servers as usize];
            for (server, at, tag, kind) in steps {
                let server = server % servers;
                if kind == 0 {
                    tournament.clear(server);
                    model[server as usize] = None;
                } else if kind == 1 {
                    let from = (server + tag) % servers;
                    tournament.pass(from, server, Ns(at), tag);
                    model[from as usize] = None;
                    model[server as usize] = Some((Ns(at), tag));
                } else {
                    tournament.set(server, Ns(at), tag);
                    model[server as usize] = Some((Ns(at), tag));
                }
                let first = model.iter().flatten().min().copied();
                prop_assert_eq!(tournament.first_due(DeadlineHeap::LATEST), first);
                prop_assert_eq!(tournament.next(), first.map_or(Ns::NEVER, |(at, _)| at));
                if let Some((at, _)) = first.filter(|&(at, _)| at > Ns::ZERO) {
                    prop_assert_eq!(tournament.first_due(Ns(at.0 - 1)), None);
                }
            }
        }
    }

    #[test]
    fn the_latest_deadline_is_none_the_less_a_deadline() {
        let mut tournament = Tournament::new(3);
        for server in [1, 2] {
            tournament.set(server, DeadlineHeap::LATEST, DeadlineHeap::SLOTS - 1);
            assert_eq!(tournament.next(), DeadlineHeap::LATEST);
        }
        tournament.clear(2);
        assert_eq!(tournament.next(), DeadlineHeap::LATEST);
        tournament.clear(1);
        assert_eq!(tournament.next(), Ns::NEVER);
    }
}
