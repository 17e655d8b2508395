// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks of zones that are read often and copied: power cuts at any event of that, failing programs, bad blocks,
//! and a full device.

use super::{Op, Run, ZONED, fill, written, zoned};
use readpath_device::{DeviceConfig, ZoneLayout, ZoneRule};
use readpath_kit::Prng;
use readpath_proto::typed::{Cdb, Form, Status, ZoneAction};
use readpath_testkit::{Bare, command, give_little_room, response};

impl Run {
    /// Carries out what a letter says of the first zone and waits for the reply; false if there are fewer events left.
    fn act(&mut self, letter: char, events: &mut u32) -> bool {
        let blocks = self.zones.blocks;
        let (op, cdb, blocks) = match letter {
            'w' => {
                let op = Op::Write { zone: 0, stamps: self.stamps(blocks), fua: false };
                (op, Cdb::Write { form: Form::Sixteen, lba: 0, blocks, flags: 0 }, blocks)
            }
            'f' => (Op::Flush, Cdb::SynchronizeCache { form: Form::Sixteen, lba: 0, blocks: 0, immed: false }, 0),
            'x' => {
                let cdb = Cdb::ManageZones { action: ZoneAction::Reset, lba: 0, count: 0, all: false };
                (Op::Reset(0), cdb, 0)
            }
            'r' => {
                let stamps = self.model[0].written.clone();
                let stamps = stamps.into_iter().chain(std::iter::repeat(0)).take(blocks as usize).collect();
                let cdb = Cdb::Read { form: Form::Sixteen, lba: 0, blocks, flags: 0 };
                (Op::Read { zone: 0, from: 0, stamps }, cdb, blocks)
            }
            other => panic!("no command is called {other:?}"),
        };
        self.send(0, ZONED, op, cdb, blocks);
        while self.sent[0].is_some() {
            if *events == 0 {
                return false;
            }
            *events -= 1;
            assert!(self.step(), "{}: {letter} is not answered", self.what);
        }
        true
    }
}

impl Run {
    /// Waits until nothing is left to do; false if that takes more events.
    fn waits(&mut self, events: &mut u32) -> bool {
        while *events > 0 {
            if !self.step() {
                return true;
            }
            *events -= 1;
        }
        false
    }
}

/// A zone is read until its superblock is copied, with resets before, during and after that, and the power is cut at
/// each event, and again during recovery and soon after.
#[test]
fn copies_of_a_zone_are_cut_at_any_event() {
    // R: as many reads as it takes until a copy begins.
    let scripts = ["wfRz", "wfRrrxwfRz", "wfRrrrrrxwRzf", "wfRzrxwfrz", "wfxwfRrxrwz"];
    let (mut events, mut copied) = (0, 0);
    for (blocks, script) in scripts.iter().enumerate().map(|(i, script)| ([32, 128][i % 2], script)) {
        for seed in 0.. {
            let mut config = zoned(ZoneLayout::PowerOfTwo, blocks, ZoneRule::Zbc);
            config.ftl.read_disturb_limit = 1;
            // Or so few that a checkpoint comes while a long zone is copied.
            let units = if blocks == 32 { 200 } else { 24 };
            (config.write_buffer_blocks, config.ftl.checkpoint_after_units) = (40, units);
            give_little_room(&mut config, 4);
            let mut run = Run::on(&config, Prng::new(u64::from(seed)), format!("{script}, event {seed}"));
            let mut left = seed;
            let units = config.geometry.pages_per_block * config.geometry.dies();
            let reads = "r".repeat((4 * units / (blocks / 4) + 1) as usize);
            let is_over = script.replace('R', &reads).chars().all(|letter| match letter {
                'z' => run.waits(&mut left),
                _ => run.act(letter, &mut left),
            });
            copied += run.device.stats().refreshed;
            run.power_cut(seed % 3);
            for letter in reads.chars() {
                run.act(letter, &mut u32::MAX.clone());
            }
            run.waits(&mut (seed % 97));
            run.power_cut(0);
            run.waits(&mut u32::MAX.clone());
            run.device.check_consistency().expect("tables that agree");
            if is_over {
                events += seed;
                break;
            }
        }
    }
    assert!(events > 1_000 && copied > 100, "{events} {copied}");
}

/// One superblock more is kept for copies.
#[test]
fn a_full_device_has_room_for_copies() {
    let full = |limit| {
        let mut config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
        config.ftl.read_disturb_limit = limit;
        give_little_room(&mut config, 0);
        config
    };
    let config = full(1);
    assert_eq!(config.geometry.superblocks(), full(0).geometry.superblocks() + 1);
    let mut bare = Bare::new(&config);
    (0..200).for_each(|lba| written(&mut bare, 0, lba, 1));
    fill(&mut bare, 64);
    let mut rng = Prng::new(7);
    let read = |bare: &mut Bare, zone: u32| {
        for _ in 0..100 {
            let cdb = Cdb::Read { form: Form::Sixteen, lba: u64::from(zone * 64), blocks: 64, flags: 0 };
            assert_eq!(response(&bare.ask(ZONED, command(cdb, 64 * 4096), &[]).0).status, Status::Good);
        }
    };
    let mut copied = 0;
    for zone in 0..12 {
        // Garbage takes what is not kept.
        (0..400).for_each(|_| written(&mut bare, 0, rng.below(200), 1));
        read(&mut bare, zone);
        let refreshed = bare.device.stats().refreshed;
        assert!(refreshed > copied, "zone {zone}: {refreshed} copies");
        copied = refreshed;
        let cdb = Cdb::ManageZones { action: ZoneAction::Reset, lba: u64::from(zone * 64), count: 0, all: false };
        assert_eq!(response(&bare.ask(ZONED, command(cdb, 0), &[]).0).status, Status::Good);
        (0..16).for_each(|i| written(&mut bare, ZONED, u64::from(zone * 64 + i * 4), 4));
        bare.device.check_consistency().expect("tables that agree");
    }
    assert_eq!(bare.device.stats().no_space, 0);
}

/// A copy of which a program fails is given up. Here a copy is one program: each ends a copy or has failed.
#[test]
fn copies_that_fail_are_dropped() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 4, ZoneRule::Zbc);
    config.ftl.read_disturb_limit = 1;
    config.ftl.faults.program_failures_ppm = 100_000;
    give_little_room(&mut config, 60);
    let mut bare = Bare::new(&config);
    written(&mut bare, ZONED, 0, 4);
    let before = *bare.device.stats();
    for _ in 0..8_000 {
        let cdb = Cdb::Read { form: Form::Sixteen, lba: 0, blocks: 4, flags: 0 };
        assert_eq!(response(&bare.ask(ZONED, command(cdb, 4 * 4096), &[]).0).status, Status::Good);
    }
    let since = bare.device.stats().since(&before);
    let programs = since.slices_refreshed / 4;
    assert!(since.refreshed > 5 && programs - since.refreshed > 2, "{since:?}");
    // Failed ones are those of copies, and those of the journal and of checkpoints.
    assert!(programs - since.refreshed <= since.program_failures, "{since:?}");
    bare.device.check_consistency().expect("tables that agree");
}

/// What is copied counts for the distance of checkpoints, which recovery's length follows from.
#[test]
fn checkpoints_come_while_a_superblock_is_copied() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 256, ZoneRule::Zbc);
    (config.ftl.read_disturb_limit, config.ftl.checkpoint_after_units) = (1, 24);
    config.geometry.pages_per_block = 32;
    give_little_room(&mut config, 4);
    let mut bare = Bare::new(&config);
    (0..64).for_each(|i| written(&mut bare, ZONED, i * 4, 4));
    let mut begun = None;
    while bare.device.stats().refreshed == 0 {
        let cdb = Cdb::Read { form: Form::Sixteen, lba: 0, blocks: 256, flags: 0 };
        assert_eq!(response(&bare.ask(ZONED, command(cdb, 256 * 4096), &[]).0).status, Status::Good);
        let stats = bare.device.stats();
        begun = begun.or((stats.slices_refreshed > 0).then_some(stats.checkpoints));
    }
    let checkpoints = bare.device.stats().checkpoints - begun.expect("a copy began before it ended");
    assert!(checkpoints >= 2, "{checkpoints} while 64 units were copied");
}

/// A superblock whose bad blocks leave too little room takes no copy.
#[test]
fn copies_need_room() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
    config.ftl.read_disturb_limit = 1;
    give_little_room(&mut config, 30);
    let zones = config.lus[1].zones.as_mut().expect("zones");
    (zones.layout, zones.blocks) = (ZoneLayout::Native, 0);
    // A zone fills all programs of a superblock.
    let blocks = config.zone_slices();
    let blocks_of = |config: &mut DeviceConfig| {
        config.lus[1].zones.as_mut().expect("zones").blocks = blocks;
        config.lus[1].blocks = 12 * blocks;
    };
    blocks_of(&mut config);
    config.ftl.faults.program_failures_ppm = 20_000;
    give_little_room(&mut config, 60);
    assert_eq!(config.zone_slices(), blocks);
    let mut bare = Bare::new(&config);
    for _ in 0..60 {
        (0..blocks / 4).for_each(|i| written(&mut bare, ZONED, u64::from(i * 4), 4));
        for _ in 0..40 {
            let cdb = Cdb::Read { form: Form::Sixteen, lba: 0, blocks, flags: 0 };
            assert_eq!(response(&bare.ask(ZONED, command(cdb, blocks * 4096), &[]).0).status, Status::Good);
        }
        bare.device.check_consistency().expect("tables that agree");
        let cdb = Cdb::ManageZones { action: ZoneAction::Reset, lba: 0, count: 0, all: false };
        assert_eq!(response(&bare.ask(ZONED, command(cdb, 0), &[]).0).status, Status::Good);
    }
    let stats = bare.device.stats();
    assert!(stats.refreshed > 10 && stats.bad_blocks > 20, "{stats:?}");
}
