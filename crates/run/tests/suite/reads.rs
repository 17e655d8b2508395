// SPDX-License-Identifier: MIT OR Apache-2.0
//! A read that reaches the device as values (`submit_read`) does what the same read does as a request (`submit`):
//! two devices get the same reads, good and bad, and have to agree on every reply, its time, and all data and counters.

use readpath_device::{Layout, LuConfig};
use readpath_kit::{BLOCK_BYTES, Ns, Prng};
use readpath_proto::typed::{Cdb, Form, HpbEntry, QueryRequest, Request, RequestBody, SubRegion};
use readpath_testkit::{Bare, command, give_room, lu};
use std::collections::BTreeMap;

const BLOCKS: u32 = 8_192;

fn device() -> Bare {
    let mut config = readpath_testkit::device(BLOCKS);
    config.lus.push(LuConfig { hpb: false, ..lu(100) });
    config.hpb.as_mut().expect("HPB").freshness_chunk_entries = 16;
    give_room(&mut config);
    let mut bare = Bare::filled(&config, 8_000, Layout::Random, 3);
    // fHPBReset: the host knows HPB.
    let set = QueryRequest { opcode: 6, idn: 0x11, index: 0, selector: 0, length: 0, value: 0 };
    bare.ask(0, RequestBody::Query(set), &[]);
    bare
}

/// What came of a device until `now`.
fn outcome(bare: &mut Bare, now: Ns, busy: &mut [bool; 32]) -> String {
    bare.device.advance(now);
    let mut text = String::new();
    while let Some(op) = bare.device.poll_media() {
        text += &format!("{op:?}\n");
    }
    while let Some(reply) = bare.device.poll_reply(now) {
        busy[usize::from(reply.tag)] = false;
        text += &format!("{now} {reply:?}\n");
    }
    text + &format!("{} {:?}", bare.device.next_deadline(), bare.device.stats())
}

#[derive(Clone, Copy)]
struct Read {
    lun: u8,
    tag: u8,
    block: u32,
    blocks: u32,
    entry: Option<HpbEntry>,
}

impl Read {
    fn as_request(self) -> Request {
        let Read { lun, tag, block, blocks, entry } = self;
        let cdb = match entry {
            Some(entry) => Cdb::HpbRead { lba: block, blocks: blocks as u8, entry, flags: 0, read_id: 0 },
            None => Cdb::Read { form: Form::Ten, lba: u64::from(block), blocks, flags: 0 },
        };
        Request { lun, tag, body: command(cdb, blocks * BLOCK_BYTES) }
    }

    fn draw(rng: &mut Prng, tag: u8, entries: &BTreeMap<u32, HpbEntry>) -> Read {
        let block = rng.below(u64::from(BLOCKS) + 200) as u32;
        let held = entries.get(&block).copied().unwrap_or(HpbEntry::ZERO);
        let entry = match rng.below(10) {
            0..6 => Some(held),
            6 => Some(HpbEntry(rng.next_u64().to_be_bytes())),
            _ => None,
        };
        let blocks = match rng.below(10) {
            0..7 => 1,
            7 => 0,
            _ => 1 + rng.below(60) as u32,
        };
        // Sometimes a unit without HPB, or one that does not exist.
        let lun = [0, 0, 0, 0, 0, 0, 0, 0, 1, 5][rng.below(10) as usize];
        Read { lun, tag, block, blocks, entry }
    }
}

/// Loads the entries of the first regions into both devices' hosts; earlier ones are superseded.
fn load(a: &mut Bare, b: &mut Bare) -> BTreeMap<u32, HpbEntry> {
    let mut entries = BTreeMap::new();
    for i in 0..BLOCKS / 2 / 64 {
        let at = SubRegion { region: (i / 4) as u16, index: (i % 4) as u16 };
        let cdb = Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 512 };
        let (reply, data) = a.command(cdb, 512);
        assert_eq!((reply, data.clone()), b.command(cdb, 512));
        for (slot, entry) in data.chunks(8).enumerate() {
            entries.insert(i * 64 + slot as u32, HpbEntry(entry.try_into().expect("8 bytes")));
        }
    }
    entries
}

#[test]
fn reads_as_values_and_as_requests_come_to_the_same() {
    let (mut a, mut b) = (device(), device());
    let mut rng = Prng::stream(1, "reads", 0);
    for _ in 0..8 {
        for bare in [&mut a, &mut b] {
            // This command gets the unit attention after a reset.
            bare.command(Cdb::TestUnitReady, 0);
        }
        let entries = load(&mut a, &mut b);
        let mut busy = [false; 32];
        let mut now = a.now;
        for step in 0..5_000 {
            for _ in 0..if step < 2 { 1 } else { rng.below(4) } {
                let Some(tag) = busy.iter().position(|busy| !busy) else { break };
                busy[tag] = true;
                let mut read = Read::draw(&mut rng, tag as u8, &entries);
                if step < 2 {
                    // The unit that has not reported the reset yet, while nothing is in the way.
                    read = Read { lun: 1, block: 5, blocks: 1, entry: None, ..read };
                }
                a.device.submit(now, &read.as_request(), &[]);
                b.device.submit_read(now, read.lun, read.tag, read.block, read.blocks, read.entry);
            }
            if step % 11 == 0
                && let Some(tag) = busy.iter().position(|busy| !busy)
            {
                // A write makes entries stale.
                busy[tag] = true;
                let cdb = Cdb::Write { form: Form::Ten, lba: rng.below(u64::from(BLOCKS)), blocks: 1, flags: 0 };
                let body = command(cdb, BLOCK_BYTES);
                for bare in [&mut a, &mut b] {
                    bare.device.submit(now, &Request { lun: 0, tag: tag as u8, body }, &[]);
                }
            }
            // Mostly the time of the next event, sometimes another.
            let next = a.device.next_deadline();
            now = if next == Ns::NEVER || rng.below(8) == 0 { now + Ns(rng.below(30_000)) } else { next.max(now) };
            let mut other = busy;
            let (of_a, of_b) = (outcome(&mut a, now, &mut busy), outcome(&mut b, now, &mut other));
            assert_eq!(of_a, of_b, "step {step}");
        }
        for bare in [&mut a, &mut b] {
            // A reset while requests are in flight.
            bare.device.hardware_reset(bare.now);
            bare.now = now;
        }
    }
    let s = a.device.stats();
    let kinds = [s.hpb_hits, s.hpb_zero, s.hpb_inactive, s.hpb_stale, s.hpb_forged, s.map_hits, s.map_misses];
    assert!(kinds.iter().all(|&n| n > 10) && s.unmapped_reads > 50 && s.buffer_hits > 5, "{s:?}");
}
