// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each policy against a small model of its rules.

use super::cost_aware::CostAware;
use super::exclusive::Exclusive;
use super::lru::Lru;
use super::*;
use crate::ids::Id;
use readpath_kit::Prng;
use readpath_proto::hpb::Control;

const UNITS: u32 = 24;

fn id(index: u32) -> SubRegionId {
    SubRegionId::new(index)
}

fn touch(index: u32, held: bool) -> Touch {
    Touch { sub_region: id(index), held, clean: held, eligible: true, timed: true, recent: false }
}

fn every(_: SubRegionId) -> bool {
    true
}

/// Drives a policy as a managed unit does, with room for `room` maps.
struct Driven<P> {
    policy: P,
    room: usize,
    held: Vec<u32>,
    loads: u32,
}

impl<P: MapPolicy> Driven<P> {
    fn new(policy: P, room: usize) -> Self {
        Driven { policy, room, held: Vec::new(), loads: 0 }
    }

    /// A read, and the load that may follow; returns the evicted sub-region.
    fn read(&mut self, s: u32) -> Option<u32> {
        let held = self.held.contains(&s);
        if !self.policy.read(&touch(s, held)) {
            return None;
        }
        self.load(s)
    }

    fn load(&mut self, s: u32) -> Option<u32> {
        let mut victim = None;
        if !self.held.contains(&s) && self.held.len() == self.room {
            victim = Some(self.policy.victim(Some(id(s)), every)?.index());
            self.held.retain(|h| Some(*h) != victim);
            victim.into_iter().for_each(|v| self.policy.dropped(id(v)));
        }
        if !self.held.contains(&s) {
            self.held.push(s);
        }
        self.loads += 1;
        self.policy.loaded(id(s));
        victim
    }
}

/// Least recently read first, by moves in a vector.
#[test]
fn lru_is_a_list_by_reads() {
    let mut rng = Prng::new(1);
    let mut lru = Driven::new(Lru::new(UNITS), 6);
    let mut model: Vec<u32> = Vec::new();
    for _ in 0..5000 {
        let s = rng.below(u64::from(UNITS)) as u32;
        let expected = match model.iter().position(|&m| m == s) {
            Some(i) => {
                model.remove(i);
                None
            }
            None => (model.len() == 6).then(|| model.remove(0)),
        };
        model.push(s);
        assert_eq!(lru.read(s), expected);
        assert_eq!(lru.policy.coldest().map(Id::index).collect::<Vec<_>>(), model);
    }
    // Reads that are too long for an entry count, but load nothing.
    let cold = model[0];
    assert!(!lru.policy.read(&Touch { eligible: false, ..touch(cold, true) }));
    assert_eq!(lru.policy.coldest().last(), Some(id(cold)));
    assert!(!lru.policy.read(&Touch { eligible: false, ..touch(99 % UNITS, false) }));
    assert_eq!(lru.policy.victim(None, |s| s == id(model[3])), Some(id(model[3])), "only what is free");
    assert_eq!(lru.policy.victim(None, |_| false), None);
}

/// Reports times, so that the cost of a load is known: it delays one HPB READ by `delay`.
fn report(policy: &mut impl MapPolicy, read: u64, hpb_read: u64, delay: u64) {
    for i in 0..400 {
        // Far enough apart that no read is correlated.
        let s = UNITS - 1 - i % 20;
        policy.read(&touch(s, true));
        policy.timed(id(s), Timed::Read, Ns(read), false);
        policy.timed(id(s), Timed::HpbRead, Ns(hpb_read), false);
        policy.timed(id(s), Timed::Load, Ns(1_000_000), true);
        policy.timed(id(s), Timed::HpbRead, Ns(hpb_read + delay), true);
    }
}

#[test]
fn cost_aware_loads_when_not_loading_has_cost_as_much() {
    for (read, delay, after) in [(200, 0, 1), (200, 100, 1), (200, 250, 3), (150, 250, 5), (125, 225, 9), (200, 1, 1)] {
        let mut p = CostAware::new(UNITS);
        let others = |p: &mut CostAware| assert!((2..UNITS).all(|s| !p.read(&touch(s, true))));
        assert!(p.read(&touch(0, false)), "nothing is known");
        assert!(!p.read(&touch(0, false)), "the same again belongs to it");
        report(&mut p, read, 100, delay);
        let loaded = (1..100).find(|_| {
            others(&mut p);
            p.read(&touch(1, false))
        });
        assert_eq!(loaded, Some(after), "a read takes {read}, with an entry 100, a load delays by {delay}");
    }
}

/// Reads spread evenly over more maps than fit: the victim is read as often as the newcomer, so replacements end.
#[test]
fn cost_aware_learns_that_replacing_does_not_pay() {
    let mut rng = Prng::new(3);
    let mut p = Driven::new(CostAware::new(128), 96);
    report(&mut p.policy, 200, 100, 300);
    assert_eq!(p.loads, 0);
    let mut late = 0;
    for i in 0..200_000 {
        let before = p.loads;
        p.read(rng.below(128) as u32);
        late += if i >= 100_000 { p.loads - before } else { 0 };
    }
    let mut lru = Driven::new(Lru::new(128), 96);
    for _ in 0..100_000 {
        lru.read(rng.below(128) as u32);
    }
    assert!(lru.loads > 20_000, "{}", lru.loads);
    assert!(late < 1000, "{late} loads in 100,000 reads");
    // When other sub-regions become popular, they are still loaded.
    for _ in 0..100_000 {
        p.read(32 + rng.below(96) as u32);
    }
    assert!(p.held.iter().filter(|&&s| s >= 32).count() >= 90, "{:?}", p.held);
}

/// Misses in a plain vector decide the loads. Victims are those of `cost-aware` with a margin of at most 15.
#[test]
fn exclusive_loads_what_was_missed_twice() {
    let mut rng = Prng::new(6);
    let (mut p, mut twin) = (Exclusive::new(UNITS, 2), CostAware::new(UNITS).with_most_margin(15));
    let (mut held, mut missed, mut made_room): (Vec<u32>, _, _) = (Vec::new(), [0u32; UNITS as usize], 0);
    for _ in 0..20_000 {
        let s = (rng.below(u64::from(UNITS)) * rng.below(u64::from(UNITS)) / u64::from(UNITS)) as u32;
        let row = s as usize;
        let (is_held, recent, eligible) = (held.contains(&s), rng.below(3) == 0, rng.below(4) > 0);
        let clean = is_held && rng.below(8) > 0;
        let touch = Touch { held: is_held, clean, eligible, recent, ..touch(s, true) };
        assert!(!p.read(&touch));
        twin.read(&touch);
        match (recent, eligible) {
            (true, _) => {}
            (false, false) => missed[row] = missed[row].saturating_sub(1),
            (false, true) => missed[row] += u32::from(!clean),
        }
        assert_eq!(p.loads_when_idle(id(s), false), missed[row] >= 2);
        assert_eq!(p.loads_when_idle(id(s), true), missed[row] >= 1);
        let commands = rng.below(4) as u32;
        assert_eq!(p.loads_at_once(id(s), commands), missed[row] >= 2 && missed[row] > commands);
        if missed[row] < 2 {
            continue;
        }
        if !is_held && held.len() == 12 {
            let victim = p.victim(Some(id(s)), every);
            assert_eq!(victim, twin.victim(Some(id(s)), every));
            let Some(victim) = victim else { continue };
            held.retain(|&h| h != victim.index());
            p.dropped(victim);
            twin.dropped(victim);
            made_room += 1;
        }
        if !is_held {
            held.push(s);
        }
        missed[row] = 0;
        p.loaded(id(s));
        twin.loaded(id(s));
    }
    assert!(made_room > 10 && held.len() == 12 && !p.heeds_advice(), "{made_room}");
}

#[test]
fn names_are_unique() {
    for choice in PolicyChoice::ALL {
        assert_eq!(PolicyChoice::ALL.into_iter().filter(|other| other.name() == choice.name()).count(), 1);
        assert_eq!(choice.managed().is_some(), !choice.name().starts_with("linux-"));
        assert_eq!(choice.mode() == Control::Device, choice == PolicyChoice::LinuxDcm);
    }
    assert_eq!(PolicyChoice::names(), "linux-dcm, linux-hcm, lru, cost-aware, exclusive");
    let managed: Vec<ManagedPolicy> = PolicyChoice::ALL.into_iter().filter_map(PolicyChoice::managed).collect();
    assert_eq!(managed, ManagedPolicy::ALL);
}
