// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a superblock is emptied, what the host may write meanwhile, and which superblocks WriteBooster borrows.

use super::*;
use crate::back::{Back, Hardware, NoMedia};
use crate::config::CellMode;
use crate::config::{SlcCacheConfig, SlcConfig};
use crate::ftl::pump::tests::anchors::config;
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
        p.space.load_record(sb, 500, 0, false, &[]);
    }
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

#[test]
fn superblocks_are_lent_to_writebooster_while_there_are_enough() {
    let life_erases = 20;
    let slc = SlcConfig {
        bits_per_cell: 3,
        read: Ns(1),
        program: Ns(1),
        erase: Ns(1),
        life_erases,
        holds_map: false,
        folds_on_die: false,
    };
    let cache = SlcCacheConfig::write_booster(20);
    let mut p = Parts::new(DeviceConfig { slc: Some(slc), slc_cache: Some(cache), ..config() });
    let stream = |p: &Parts| p.collect.slc_cache().stream_for(Stream::Hot, &p.space);
    assert_eq!(stream(&p), Stream::Hot, "the host has not switched it on");
    p.collect.slc_cache_mut().set_flags(BoosterFlags { on: true, flush: false, flush_when_idle: true });
    assert_eq!(stream(&p), Stream::Boosted);
    // 8 pages of 4 slices with 3 bits a cell leave 2 pages: 8 slices, so 3 superblocks hold 20 blocks.
    let lent = [(); 3].map(|()| p.filled(Stream::Boosted, 8));
    assert_eq!(lent.map(|sb| (p.space.get(sb).mode, p.space.get(sb).next_unit)), [(CellMode::Slc, 2); 3]);
    assert_eq!(stream(&p), Stream::Hot, "it has all that it may have");
    let attribute = |p: &Parts, idn| p.collect.slc_cache().attribute(idn, &p.space, 4);
    assert_eq!(attribute(&p, attribute::WB_AVAILABLE_SIZE), 0);
    // Idle time flushes the oldest first; a lack of space takes any of them.
    assert!(!p.choose(), "the host is not idle");
    p.collect.slc_cache_mut().set_flags(BoosterFlags { on: true, flush: true, flush_when_idle: false });
    assert!(p.choose());
    assert_eq!((p.collect.victims.get(0).0, p.hw.stats().flushed), (lent[0], 1));
    // One superblock is erased as often as the buffer's superblocks endure together.
    p.space.load_record(lent[1], 0, 3 * life_erases, false, &[]);
    p.space.discard(lent[2], 0);
    p.space.begin_erase();
    assert!(p.space.die_erased(lent[2], 0, false));
    assert_eq!((p.space.in_mode(CellMode::Slc), stream(&p)), (2, Stream::Hot), "it is worn out");
}
