// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each policy against a small model of what it says it does.

use super::*;
use crate::ids::Id;
use readpath_kit::Prng;

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

/// Drives a policy as the mechanism does, with room for `room` maps, and a model beside it.
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

    /// A read, and the load that may follow. What was dropped for it.
    fn read(&mut self, s: u32) -> Option<u32> {
        let held = self.held.contains(&s);
        if !self.policy.read(&touch(s, held)).load {
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

/// Least recently read first, by moving around in a vector.
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
    // Reads that cannot use an entry count, but load nothing.
    let cold = model[0];
    assert_eq!(lru.policy.read(&Touch { eligible: false, ..touch(cold, true) }), Wish::default());
    assert_eq!(lru.policy.coldest().last(), Some(id(cold)));
    assert_eq!(lru.policy.read(&Touch { eligible: false, ..touch(99 % UNITS, false) }), Wish::default());
    assert_eq!(lru.policy.victim(None, |s| s == id(model[3])), Some(id(model[3])), "only what is free");
    assert_eq!(lru.policy.victim(None, |_| false), None);
}

/// Counts and recency in plain vectors, the victim found by looking at all candidates.
#[test]
fn lfu_keeps_what_is_read_often() {
    let mut rng = Prng::new(2);
    let mut lfu = Driven::new(Lfu::new(UNITS), 12);
    let (mut order, mut counts): (Vec<u32>, Vec<u32>) = (Vec::new(), vec![0; UNITS as usize]);
    let mut left = 1024;
    for _ in 0..8000 {
        let s = (rng.below(u64::from(UNITS)) * rng.below(u64::from(UNITS)) / u64::from(UNITS)) as u32;
        counts[s as usize] += 1;
        left -= 1;
        if left == 0 {
            counts.iter_mut().for_each(|c| *c /= 2);
            left = (10 * order.len()).max(1024);
        }
        let mut expected = None;
        if let Some(i) = order.iter().position(|&m| m == s) {
            order.remove(i);
            order.push(s);
        } else if order.len() < 12 {
            order.push(s);
        } else {
            let least = order[..8].iter().copied().min_by_key(|&v| counts[v as usize]).expect("eight");
            if counts[s as usize] > counts[least as usize] {
                order.retain(|&m| m != least);
                order.push(s);
                expected = Some(least);
            }
        }
        assert_eq!(lfu.read(s), expected);
    }
    assert!(lfu.held.contains(&0), "the most popular stays");
}

/// Costs are told, so it is known when a load pays: a load delays one HPB READ, by so much.
fn tell(policy: &mut impl MapPolicy, read: u64, hpb_read: u64, delay: u64) {
    for i in 0..400 {
        // Far enough apart that each is the first of its sub-region.
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
        let others = |p: &mut CostAware| assert!((2..UNITS).all(|s| !p.read(&touch(s, true)).load));
        assert!(p.read(&touch(0, false)).load, "nothing is known");
        assert!(!p.read(&touch(0, false)).load, "the same again belongs to it");
        tell(&mut p, read, 100, delay);
        let loaded = (1..100).find(|_| {
            others(&mut p);
            p.read(&touch(1, false)).load
        });
        assert_eq!(loaded, Some(after), "a read takes {read}, with an entry 100, a load delays by {delay}");
    }
}

/// Reads spread evenly over more than fits: whoever makes room is read as often as the newcomer, so replacing stops.
#[test]
fn cost_aware_learns_that_replacing_does_not_pay() {
    let mut rng = Prng::new(3);
    let mut p = Driven::new(CostAware::new(128), 96);
    tell(&mut p.policy, 200, 100, 300);
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
    // Others become popular: they get in all the same.
    for _ in 0..100_000 {
        p.read(32 + rng.below(96) as u32);
    }
    assert!(p.held.iter().filter(|&&s| s >= 32).count() >= 90, "{:?}", p.held);
}

#[test]
fn preload_follows_an_order_that_it_has_seen() {
    let mut p = Preload::new(256);
    let all = |p: &mut Preload| std::iter::from_fn(|| p.more(|s| s == id(14))).map(Id::index).collect::<Vec<_>>();
    // An application, then something long enough that the log takes it for over.
    for s in (10..40).chain(100..200) {
        p.read(&touch(s, false));
        assert_eq!(all(&mut p), [], "nothing was seen before");
    }
    p.read(&touch(10, false));
    assert_eq!(all(&mut p), [], "one alone says nothing");
    p.read(&touch(12, false));
    let ahead: Vec<u32> = (13..29).filter(|&s| s != 14).collect();
    assert_eq!(all(&mut p), ahead, "what came next, but for what is held");
    // In another order they are another application.
    p.read(&touch(150, false));
    assert_eq!(all(&mut p), []);
    p.read(&touch(120, false));
    assert_eq!(all(&mut p), []);
}

/// What an application's reads found is loaded when it is launched again, and no more of it than its list has room for.
#[test]
fn preload_follows_the_application_that_it_is_told() {
    let mut p = Preload::new(4096);
    let ahead = |p: &mut Preload, held: u32| {
        std::iter::from_fn(|| p.more(|s| s == id(held))).map(Id::index).collect::<Vec<_>>()
    };
    let launch = |p: &mut Preload, app: u32, reads: &[(u32, bool)]| {
        p.foreground(app);
        let list = ahead(p, 20);
        for &(s, held) in reads {
            p.read(&touch(s, held));
        }
        list
    };
    let first = [(10, false), (30, false), (20, true), (10, true), (20, true), (11, true)];
    assert_eq!(launch(&mut p, 7, &first), [0; 0], "nothing is known yet");
    assert_eq!(launch(&mut p, 8, &[(900, true)]), [0; 0]);
    assert_eq!(launch(&mut p, 7, &[(11, true)]), [10, 11], "not what is held, nor what did not serve a read");
    assert_eq!(launch(&mut p, 8, &[]), [900]);
    assert_eq!(launch(&mut p, 7, &[]), [11], "what was not read again is forgotten");
    assert_eq!(launch(&mut p, 8, &[]), [900], "who read nothing keeps what there was");
    // More applications than there is room for: the one launched longest ago goes.
    (100..163).for_each(|app| drop(launch(&mut p, app, &[(app, true)])));
    assert_eq!(launch(&mut p, 8, &[]), [900]);
    assert_eq!(launch(&mut p, 7, &[]), [0; 0]);
    let many: Vec<(u32, bool)> = (1000..1300).map(|s| (s, true)).collect();
    launch(&mut p, 9, &many);
    p.foreground(8);
    p.foreground(9);
    assert_eq!(ahead(&mut p, 20), (1000..1256).collect::<Vec<_>>());
}

/// A device with a map cache of `frames`, where a miss takes 95 more; it does not tell. Shares of reads that went
/// without an entry though there was one, and of those that missed, after a time of learning.
fn beside_device(units: u32, frames: usize) -> (f64, f64) {
    let mut rng = Prng::new(4);
    let mut p = SramAware::new(units);
    (0..units).for_each(|s| p.loaded(id(s)));
    let mut cache: Vec<u32> = Vec::new();
    let (mut plain, mut missed, reads) = (0, 0, 200_000);
    for i in 0..2 * reads {
        let s = rng.below(u64::from(units)) as u32;
        let jitter = rng.below(40_000);
        if !p.read(&touch(s, true)).plain {
            p.timed(id(s), Timed::HpbRead, Ns(100_000 + jitter), false);
            continue;
        }
        let hit = cache.contains(&s);
        cache.retain(|&c| c != s);
        cache.push(s);
        if cache.len() > frames {
            cache.remove(0);
        }
        p.timed(id(s), Timed::Read, Ns(if hit { 100_000 } else { 195_000 } + jitter), false);
        plain += u32::from(i >= reads);
        missed += u32::from(i >= reads && !hit);
    }
    (f64::from(plain) / f64::from(reads), f64::from(missed) / f64::from(reads))
}

#[test]
fn sram_aware_learns_what_the_device_holds() {
    let (plain, missed) = beside_device(64, 90);
    assert!(plain > 0.95 && missed == 0.0, "everything fits: {plain} plain, {missed} missed");
    let (plain, missed) = beside_device(256, 90);
    assert!(plain > 0.15 && plain < 0.36, "90 of 256 fit: {plain} plain");
    assert!(missed < 0.01, "{missed} of all reads missed");
}

#[test]
fn dirty_refresh_loads_again_what_is_worth_it() {
    let mut p = DirtyRefresh::new(UNITS);
    assert!(p.read(&touch(0, false)).load);
    tell(&mut p, 200, 100, 450);
    p.loaded(id(0));
    let dirty = Touch { clean: false, ..touch(0, true) };
    for round in 0..3 {
        for read in 1..=5 {
            assert!(!p.read(&touch(0, true)).load, "clean entries are in use");
            assert!(!p.read(&Touch { eligible: false, ..dirty }).load, "no entry would have been used");
            assert_eq!(p.read(&dirty).load, read == 5, "round {round}, read {read}");
        }
        p.loaded(id(0));
    }
}

/// Misses in a plain vector: what is to be loaded when. Who makes room is what `cost-aware` says, with a
/// margin of at most 15.
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
        assert_eq!(p.read(&touch), Wish::default());
        twin.read(&touch);
        match (recent, eligible) {
            (true, _) => {}
            (false, false) => missed[row] = missed[row].saturating_sub(1),
            (false, true) => missed[row] += u32::from(!clean),
        }
        assert_eq!(p.loads_when_idle(id(s), false), missed[row] >= 2);
        assert_eq!(p.loads_when_idle(id(s), true), missed[row] >= 1);
        let commands = rng.below(4) as u32;
        assert_eq!(p.loads_beside(id(s), commands), missed[row] >= 2 && missed[row] > commands);
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
fn names_are_unique_and_found() {
    for choice in PolicyChoice::ALL {
        assert_eq!(PolicyChoice::by_name(choice.name()), Some(choice));
        assert_eq!(choice.managed().is_some(), !choice.name().starts_with("linux-"));
        assert_eq!(choice.mode() == Control::Device, choice == PolicyChoice::LinuxDcm);
    }
    assert_eq!(ManagedPolicy::ALL.len() + 2, PolicyChoice::ALL.len());
}
