// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a superblock is emptied, what the host may write meanwhile, and which superblocks WriteBooster borrows.

use super::*;
use crate::back::{Back, Hardware, NoMedia};
use crate::config::{CacheOwner, CellMode, SlcCacheConfig, SlcConfig};
use crate::ftl::pump::tests::anchors::config;
use crate::ftl::space::Purpose;
use readpath_flash::Lean;
use readpath_proto::query::attribute;
use std::sync::Arc;

struct Parts {
    space: Space,
    map: Map,
    log: Log,
    collect: Collect,
    hw: Back<Lean, NoMedia, ()>,
}

impl Parts {
    fn new(config: DeviceConfig) -> Parts {
        let config = Arc::new(config);
        let space = Space::new(&config);
        Parts {
            map: Map::new(&config),
            log: Log::new(config.clone(), &space),
            collect: Collect::new(&config),
            hw: Back::new(&config, ()),
            space,
        }
    }

    fn choose(&mut self) -> bool {
        let Parts { space, map, log, collect, hw } = self;
        collect.choose_victims(&mut Around { space, map, log, sequence: 100 }, hw)
    }

    /// Closes a superblock of `stream` with `refs` references.
    fn filled(&mut self, stream: Stream, refs: u32) -> SuperblockId {
        let sb = self.space.open(stream, 1).expect("an erased superblock");
        while let Some(unit) = self.space.next_unit(stream, 1) {
            self.space.program_ended(unit);
        }
        self.space.add_refs(sb, refs);
        sb
    }

    fn fill_until_short(&mut self) {
        while !self.space.is_short() {
            self.filled(Stream::Host, 20);
        }
    }
}

#[test]
fn space_is_collected_when_it_is_short_and_the_host_pays() {
    let mut p = Parts::new(config());
    let few = p.filled(Stream::Host, 3);
    assert!(!p.choose() && p.collect.host_may_write(1000, &p.space), "there is space");
    p.fill_until_short();
    assert!(p.collect.host_may_write(1000, &p.space), "nothing is being emptied that it could pay with");
    assert!(p.choose());
    assert_eq!((p.collect.victims.get(0).0, p.collect.to, p.hw.stats().collected), (few, Stream::Moved, 1));
    assert!(!p.collect.host_may_write(1, &p.space), "nothing is freed yet");
    (p.collect.progress.cursor, p.collect.progress.pass) = (1000, Pass::Copy);
    p.collect.progress.grant(1);
    let freed = p.space.slices() - 3;
    assert!(p.collect.host_may_write(freed, &p.space) && !p.collect.host_may_write(1, &p.space), "{freed} slices");
    assert!(!p.space.is_empty(few), "it is being emptied");
}

#[test]
fn levelling_takes_its_turn_after_three_others_and_when_erase_counts_have_changed() {
    let mut p = Parts::new(config());
    let cold = p.filled(Stream::Host, 9);
    // All others are worn much more.
    for sb in p.space.all().filter(|&sb| sb != cold && sb.0 >= 2) {
        p.space.load_record(sb, 500, [200, 50], false, &[]);
    }
    let others = p.space.all().count() as u64 - 3;
    assert_eq!(p.space.erases_by_mode(), [250 * others, 200 * others, 50 * others]);
    assert!(!p.choose());
    p.collect.since_levelled = 3;
    assert!(!p.choose(), "no count has changed");
    p.collect.look_at_wear();
    assert!(p.choose());
    assert_eq!((p.collect.victims.get(0).0, p.collect.to, p.collect.since_levelled), (cold, Stream::Cold, 0));
    assert_eq!(p.hw.stats().levelled, 1);
}

#[test]
fn what_was_read_often_moves_unless_it_is_new_meanwhile() {
    let mut config = config();
    config.ftl.read_disturb_limit = 1;
    let mut p = Parts::new(config);
    let [read, other] = [5, 6].map(|refs| p.filled(Stream::Host, refs));
    p.collect.disturbed(other);
    p.collect.disturbed(read);
    let ppn = p.space.first(read);
    while !p.space.note_read(ppn, 1) {}
    assert!(p.choose());
    assert_eq!((p.collect.victims.get(0).0, p.hw.stats().refreshed), (read, 1), "the other was not read");
}

/// Of 8 pages, 2 are left in SLC mode: 8 slices.
const SLC: SlcConfig = SlcConfig {
    bits_per_cell: 3,
    read: Ns(1),
    program: Ns(1),
    erase: Ns(1),
    life_erases: 1000,
    holds_map: false,
    folds_on_die: false,
};

/// A device with a cache of its own of two superblocks that serve nothing else, and one that is lent.
fn cached() -> Parts {
    let owner = CacheOwner::Device { folds_when_idle: true };
    let cache = SlcCacheConfig { owner, static_blocks: 16, dynamic_blocks: 8, cells: None };
    let mut config = DeviceConfig { slc: Some(SLC), slc_cache: Some(cache), ..config() };
    config.ftl.collect_together = 4;
    Parts::new(config)
}

fn stream(p: &Parts) -> Stream {
    p.collect.slc_cache().stream_for(Stream::Hot, &p.space)
}

#[test]
fn the_host_does_not_decide_about_the_cache_of_the_device() {
    let mut p = cached();
    assert_eq!(stream(&p), Stream::Boosted);
    p.collect.slc_cache_mut().set_flags(BoosterFlags::default());
    assert_eq!(stream(&p), Stream::Boosted);
    p.collect.slc_cache_mut().reset();
    assert_eq!(stream(&p), Stream::Boosted);
    assert!(p.collect.slc_cache().flushes_when_idle());
}

#[test]
fn the_static_part_is_there_when_space_is_short() {
    let mut p = cached();
    assert_eq!(p.space.spare() + 2, Parts::new(config()).space.spare(), "two are kept");
    p.fill_until_short();
    while p.space.may_open(Purpose::Host) {
        p.filled(Stream::Host, 20);
    }
    assert_eq!((stream(&p), p.space.may_open(Purpose::Cache)), (Stream::Boosted, true));
    let spare = p.space.spare();
    let open = p.space.open(Stream::Boosted, 1);
    assert_eq!((stream(&p), p.space.spare()), (Stream::Boosted, spare), "no other has less for it");
    assert!(p.choose());
    assert_eq!(p.space.open_of(Stream::Boosted), open.ok(), "it is not closed to be emptied");
}

/// Where moved data has taken what was kept, two erased superblocks stay for it.
#[test]
fn the_static_part_leaves_two_to_moved_data() {
    let mut p = cached();
    let left = [4, 3, 2].map(|erased| {
        while p.space.erased() > erased {
            p.filled(Stream::Moved, 20);
        }
        (p.space.static_left(), stream(&p))
    });
    assert_eq!(left, [(2, Stream::Boosted), (1, Stream::Boosted), (0, Stream::Hot)]);
}

/// A superblock of the static part has the fewest references, but gives no other space.
#[test]
fn for_space_only_what_is_lent_to_the_cache_is_emptied() {
    for boosted in [2, 3] {
        let mut p = cached();
        let cache: Vec<_> = (0..boosted).map(|_| p.filled(Stream::Boosted, 1)).collect();
        let lent = cache.len() - 2;
        assert_eq!(p.space.oldest_boosted(), Some(cache[0]), "there is room to move its data to");
        let few = p.filled(Stream::Host, 2);
        p.fill_until_short();
        assert_eq!(p.space.oldest_boosted(), (lent > 0).then_some(cache[0]));
        assert!(p.choose());
        let victims: Vec<_> = (0..p.collect.victims.len()).map(|at| p.collect.victims.get(at).0).collect();
        let emptied = victims.iter().filter(|sb| cache.contains(sb)).count();
        assert_eq!((emptied, victims.contains(&few)), (lent, true), "{victims:?}");
    }
}

#[test]
fn superblocks_are_lent_to_writebooster_while_there_are_enough() {
    let life_erases = 20;
    let slc = SlcConfig { life_erases, ..SLC };
    let cache = SlcCacheConfig::write_booster(20);
    let mut p = Parts::new(DeviceConfig { slc: Some(slc), slc_cache: Some(cache), ..config() });
    assert_eq!(stream(&p), Stream::Hot, "the host has not switched it on");
    p.collect.slc_cache_mut().set_flags(BoosterFlags { on: true, flush: false, flush_when_idle: true });
    assert_eq!(stream(&p), Stream::Boosted);
    // 8 pages of 4 slices with 3 bits a cell leave 2 pages: 8 slices, so 3 superblocks hold 20 blocks.
    let lent = [(); 3].map(|()| p.filled(Stream::Boosted, 8));
    assert_eq!(lent.map(|sb| (p.space.get(sb).mode, p.space.get(sb).next_unit)), [(CellMode::Cache, 2); 3]);
    assert_eq!(stream(&p), Stream::Hot, "it has all that it may have");
    let attribute = |p: &Parts, idn| p.collect.slc_cache().attribute(idn, &p.space, 4);
    assert_eq!(attribute(&p, attribute::WB_AVAILABLE_SIZE), 0);
    // Idle time flushes the oldest first; a lack of space takes any of them.
    assert!(!p.choose(), "the host is not idle");
    p.collect.slc_cache_mut().set_flags(BoosterFlags { on: true, flush: true, flush_when_idle: false });
    assert!(p.choose());
    assert_eq!((p.collect.victims.get(0).0, p.hw.stats().flushed), (lent[0], 1));
    // One superblock is erased as often as the buffer's superblocks endure together.
    p.space.load_record(lent[1], 3 * life_erases, [3 * life_erases, 0], false, &[]);
    assert_eq!(p.space.erases_by_mode(), [0, 60, 0]);
    p.space.discard(lent[2], 0);
    p.space.begin_erase();
    assert!(p.space.die_erased(lent[2], 0, false));
    assert_eq!((p.space.in_mode(CellMode::Cache), stream(&p)), (2, Stream::Hot), "it is worn out");
}
