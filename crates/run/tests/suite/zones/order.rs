// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of one zone that are under way together, as a host sends them that keeps their order itself: writes that
//! wait for room in the buffer, and actions on their zone behind them.

use super::*;

const ZONE: u32 = 64;

fn write(lba: u32, blocks: u32) -> (Cdb, u32) {
    (Cdb::Write { form: Form::Sixteen, lba: lba.into(), blocks, flags: 0 }, blocks * 4096)
}

fn action(action: ZoneAction) -> (Cdb, u32) {
    (Cdb::ManageZones { action, lba: 0, count: 0, all: false }, 0)
}

fn small(rng: &mut Prng) -> Bare {
    let mut config = zoned(ZoneLayout::PowerOfTwo, ZONE, ZoneRule::Zbc);
    let zones = config.lus[1].zones.as_mut().expect("zones");
    zones.program_blocks = 4 << rng.below(2);
    zones.flush_blocks = zones.program_blocks;
    // Fewer than the writes together have.
    config.write_buffer_blocks = 16 + rng.below(16) as u32;
    config.ftl.checkpoint_after_units = 60;
    give_little_room(&mut config, 20);
    Bare::new(&config)
}

/// Sends commands to the zoned unit at once, on tags from 0 on.
fn send(bare: &mut Bare, commands: &[(Cdb, u32)]) {
    for (tag, (cdb, bytes)) in (0..).zip(commands) {
        bare.device.submit(bare.now, &Request { lun: ZONED, tag, body: command(*cdb, *bytes) }, &[]);
    }
}

/// What each tag was answered, if it was.
fn answers(bare: &mut Bare) -> BTreeMap<u8, Option<Sense>> {
    let replies = bare.settle();
    let of = |reply: &Reply| match reply.body {
        ReplyBody::Response(response) => Some((reply.tag, response.sense)),
        _ => None,
    };
    replies.iter().filter_map(|(_, reply)| of(reply)).collect()
}

/// Write pointers follow the order of writes, also where data waits, and what finishes or closes the zone finds all
/// that was sent before it. A reset may be done before writes that wait, which are refused then.
#[test]
fn writes_that_wait_keep_their_order() {
    let mut rng = Prng::new(1);
    for (act, behind) in [(ZoneAction::Finish, Some(Sense::INVALID_FIELD)), (ZoneAction::Close, None)] {
        let mut bare = small(&mut rng);
        let mut commands: Vec<(Cdb, u32)> = (0..6).map(|i| write(i * 7, 7)).collect();
        commands.extend([action(act), write(42, 5)]);
        send(&mut bare, &commands);
        let answers = answers(&mut bare);
        let senses: Vec<_> = (0..8).map(|tag| answers[&tag]).collect();
        assert_eq!(senses, [[None; 7].to_vec(), vec![behind]].concat(), "{act:?}");
        bare.device.check_consistency().expect("tables that agree");
    }
    let mut bare = small(&mut rng);
    let mut commands: Vec<(Cdb, u32)> = (0..6).map(|i| write(i * 7, 7)).collect();
    commands.push(action(ZoneAction::Reset));
    send(&mut bare, &commands);
    let answers = answers(&mut bare);
    let first_refused = (0..6).find(|tag| answers[tag].is_some()).unwrap_or(6);
    assert!((first_refused..6).all(|tag| answers[&tag] == Some(Sense::UNALIGNED_WRITE)), "{answers:?}");
    assert_eq!(answers[&6], None);
    bare.device.check_consistency().expect("tables that agree");
}

/// With any of them aborted, and power that fails at any event.
#[test]
fn commands_of_a_zone_may_be_aborted_and_cut() {
    let (seeds, _) = chosen(0..600);
    let (mut aborted, mut cut) = (0, 0);
    for seed in seeds {
        let mut rng = Prng::stream(seed, "zone order", 0);
        let mut bare = small(&mut rng);
        let mut at = 0;
        for _ in 0..6 {
            let mut commands = Vec::new();
            for _ in 0..2 + rng.below(4) {
                let blocks = (1 + rng.below(12) as u32).min(ZONE - at.min(ZONE - 1));
                commands.push(write(at, blocks));
                at += blocks;
            }
            let acts = [ZoneAction::Finish, ZoneAction::Close, ZoneAction::Reset, ZoneAction::Open];
            if rng.below(2) == 0 {
                let act = acts[rng.below(4) as usize];
                commands.push(action(act));
                commands.push(write(at.min(ZONE - 1), 1));
            }
            send(&mut bare, &commands);
            for _ in 0..rng.below(6) {
                let next = bare.device.next_deadline();
                if next != Ns::NEVER {
                    bare.now = next;
                    bare.device.advance(next);
                    while bare.device.poll_media().is_some() {}
                }
            }
            if rng.below(3) == 0 {
                let tag = rng.below(commands.len() as u64) as u8;
                let task = TaskRequest { function: 1, lun: ZONED, task_tag: tag };
                bare.device.submit(bare.now, &Request { lun: ZONED, tag: 31, body: RequestBody::Task(task) }, &[]);
                aborted += 1;
            }
            if rng.below(4) == 0 {
                bare.power_cycle();
                bare.ask(ZONED, command(Cdb::TestUnitReady, 0), &[]);
                cut += 1;
            }
            bare.settle();
            bare.device.check_consistency().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            // Where it is now is asked for, as a host would.
            let report = Cdb::ReportZones { start: 0, alloc: 128, options: 0, partial: true };
            let (_, zones) = bare.ask(ZONED, command(report, 128), &[]);
            let pointer = u64::from_be_bytes(zones[64 + 24..64 + 32].try_into().expect("a pointer"));
            if zones[64 + 1] >> 4 == 0xE || pointer >= u64::from(ZONE) {
                let (cdb, bytes) = action(ZoneAction::Reset);
                assert_eq!(response(&bare.ask(ZONED, command(cdb, bytes), &[]).0).status, Status::Good);
                at = 0;
            } else {
                at = pointer as u32;
            }
        }
    }
    assert!(aborted > 500 && cut > 500, "{aborted}, {cut}");
}
