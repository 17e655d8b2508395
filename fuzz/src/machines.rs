// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host and device as state machines, each against a partner that sends arbitrary messages.

use crate::Bytes;
use readpath_device::{
    CheckOn, DeviceConfig, EntryConfig, GroupUpdate, Hpb2Config, HpbConfig, Layout, LuConfig, NoMedia, Protection,
    PrototypeConfig, UfsDevice,
};
use readpath_flash::Lean;
use readpath_host::{
    BlockOp, BlockRequest, Driver, HostConfig, HpbOptions, HpbParam, HpbParams, ListOrder, LongReads, ManagedPolicy,
};
use readpath_kit::Ns;
use readpath_proto::desc::{DeviceDescriptor, GeometryDescriptor, UnitDescriptor};
use readpath_proto::groups::{GroupEntry, GroupNotice, GroupPair};
use readpath_proto::query::{attribute, descriptor, flag, opcode};
use readpath_proto::typed::{
    HpbNotification, QueryResponse, Reply, ReplyBody, Request, RequestBody, Residual, Response, Sense, Status,
    SubRegion, TaskResponse,
};
use readpath_proto::{booster, hpb, upiu};

/// Blocks of the fuzzed unit: 16 regions of 4 sub-regions of 64 blocks.
const BLOCKS: u32 = 4096;

/// Replies that no device would give, in any order, to a host driver that has found a device (or is about to).
pub fn host_replies(data: &[u8]) {
    replies(data, None);
}

/// Arbitrary replies to a driver of the prototype.
pub fn prototype_replies(data: &[u8]) {
    replies(data, Some(GroupUpdate::Device));
}

fn replies(data: &[u8], prototype: Option<GroupUpdate>) {
    let mut input = Bytes(data);
    let options = input.u8();
    // The last byte chooses as well, so that what is before it reads as ever.
    let long = data.last().copied().unwrap_or(0);
    let long_reads = [LongReads::First, LongReads::PreRequest, LongReads::Ehs][usize::from(long & 3) % 3];
    // A policy of the host's own where the host controls what is active; the length of the input chooses it.
    let managed = prototype.is_none() && options & 0xC0 == 0x80;
    let policy = if managed { ManagedPolicy::ALL.get(data.len() % 4).copied() } else { None };
    let hpb = HpbOptions {
        policy,
        long_reads,
        params: HpbParams { requeue_timeout_ms: u32::from(long >> 6), ..HpbParams::LINUX },
        order: if options & 1 == 0 { ListOrder::Activation } else { ListOrder::Recency },
        strict_linux: options & 2 != 0,
        dirty_bitmap: options & 4 == 0,
        max_map_bytes: (options & 8 != 0).then_some(4 * 512),
        prototype,
        ..HpbOptions::default()
    };
    let slots = [32, 2, 3, 64][usize::from(options >> 4 & 3)];
    let mut driver = Driver::new(HostConfig { slots, hpb: Some(hpb), ..HostConfig::LINUX });
    let mut now = Ns::ZERO;
    driver.start(now);
    // Bit 7: the host controls what is active. Bit 6: even the answers to the probe are made up.
    if options & 64 == 0 {
        while let Some(request) = driver.poll_request(now) {
            let (body, data) = probe_answer(&request, options & 128 != 0, long >> 2 & 15);
            driver.on_reply(now, &Reply { lun: request.lun, tag: request.tag, body }, &data);
        }
        assert!(driver.is_ready(), "{:?}", driver.failure());
    }
    let mut cookie = 0;
    let mut ended = Vec::new();
    while !input.is_empty() {
        match input.u8() % 10 {
            0..=2 => {
                let op = [BlockOp::Read, BlockOp::Write, BlockOp::WriteFua, BlockOp::Discard, BlockOp::Flush];
                let op = op[usize::from(input.u8()) % op.len()];
                let (lun, block) = (input.u8() & 3, u32::from(input.u16()));
                let blocks = u32::from(input.u16() % 600);
                driver.submit(&BlockRequest { cookie, lun, op, block, blocks });
                ended.push(false);
                cookie += 1;
            }
            3 => driver.reset(now),
            4 | 5 => {
                let tag = input.u8() & 63;
                let body = any_reply(&mut input);
                let n = usize::from(input.u8()) * 8;
                let filled = [0x5A; 255 * 8];
                driver.on_reply(now, &Reply { lun: input.u8(), tag, body }, &filled[..n]);
            }
            6 => {
                // A reply as bytes.
                let (bytes, n) = (input.take(upiu::RESPONSE_BYTES), usize::from(input.u8()));
                if let Ok((reply, _)) = upiu::parse_reply(bytes) {
                    driver.on_reply(now, &reply, input.take(n));
                }
            }
            7 => {
                now = driver.next_deadline().min(now + Ns::from_ms(u64::from(input.u8()))).max(now);
                driver.advance(now);
            }
            8 => match input.u8() {
                // A refused change has no effect.
                what @ 224.. => drop(driver.limit_memory(now, what & 1, u64::from(input.u16()) * 4)),
                what @ 192..224 => {
                    let param = HpbParam::ALL[usize::from(input.u8()) % HpbParam::ALL.len()];
                    let _ = driver.store_hpb_param(what & 1, param, u32::from(input.u16()));
                }
                what if what & 1 == 0 => driver.suspend(),
                _ => driver.resume(now),
            },
            _ => {
                // Requests in flight succeed, and loads return entries.
                let lun = input.u8() & 1;
                let hpb = Some(notification(&mut input));
                for tag in 0..slots {
                    let body = ReplyBody::Response(Response { hpb, ..Response::GOOD });
                    driver.on_reply(now, &Reply { lun, tag, body }, &[1; 512]);
                }
            }
        }
        while let Some(request) = driver.poll_request(now) {
            assert!(request.tag < slots);
            let _ = (driver.data_out(request.tag), driver.carried(request.tag));
        }
        note_ends(&mut driver, &mut ended);
        for lun in 0..4 {
            let _ = (driver.counters(lun), driver.memory(lun), driver.prefetch(lun, 77));
        }
    }
    // Every tag that is still in flight ends; then nothing may be left, whatever was answered before.
    if driver.is_ready() {
        for _ in 0..10_000 {
            while driver.poll_request(now).is_some() {}
            note_ends(&mut driver, &mut ended);
            if driver.is_idle() {
                assert!(ended.iter().all(|&ended| ended), "a request is lost: {ended:?}");
                return;
            }
            for tag in 0..slots {
                driver.on_reply(now, &Reply { lun: 0, tag, body: ReplyBody::Response(Response::GOOD) }, &[1; 512]);
            }
        }
        panic!("the driver never comes to rest");
    }
}

/// Takes what has ended: each request once.
fn note_ends(driver: &mut Driver, ended: &mut [bool]) {
    while let Some(done) = driver.poll_done() {
        assert!(!std::mem::replace(&mut ended[done.cookie as usize], true), "request {} ended twice", done.cookie);
    }
}

/// The answers of a device with two units, both with HPB, that takes HPB READs of `single` * 2 + 1 blocks with one
/// entry, longer ones with a pre-request, and entries in extra header segments.
fn probe_answer(request: &Request, host_control: bool, single: u8) -> (ReplyBody, Vec<u8>) {
    let good = |value| {
        let RequestBody::Query(q) = &request.body else { unreachable!("asked of queries only") };
        let (opcode, idn, index, selector, length) = (q.opcode, q.idn, q.index, q.selector, q.length);
        ReplyBody::Query(QueryResponse { result: 0, opcode, idn, index, selector, length, value })
    };
    match &request.body {
        RequestBody::NopOut => (ReplyBody::NopIn, Vec::new()),
        RequestBody::Command(_) => {
            let mut list = vec![0, 0, 0, 16, 0, 0, 0, 0];
            list.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            (ReplyBody::Response(Response::GOOD), list)
        }
        RequestBody::Query(q) => match (q.opcode, q.idn) {
            (opcode::READ_DESCRIPTOR, descriptor::GEOMETRY) => {
                let (hpb_region_size, hpb_sub_region_size) = (11, 9);
                let (hpb_number_lu, hpb_max_active_regions) = (2, 8);
                let g = GeometryDescriptor {
                    hpb_region_size,
                    hpb_sub_region_size,
                    hpb_number_lu,
                    hpb_max_active_regions,
                    ..GeometryDescriptor::default()
                };
                (good(0), g.to_bytes().to_vec())
            }
            (opcode::READ_DESCRIPTOR, descriptor::DEVICE) => {
                let d = DeviceDescriptor {
                    ufs_features: hpb::FEATURE_HPB,
                    hpb_version: hpb::VERSION_2_0,
                    hpb_control: if host_control { hpb::CONTROL_HOST } else { hpb::CONTROL_DEVICE },
                    extended_features: booster::FEATURE_WRITE_BOOSTER,
                    wb_type: booster::BUFFER_SHARED,
                    wb_shared_alloc_units: 1,
                    ..DeviceDescriptor::default()
                };
                (good(0), d.to_bytes().to_vec())
            }
            (opcode::READ_DESCRIPTOR, descriptor::UNIT) => {
                let u = UnitDescriptor {
                    unit_index: q.index,
                    lu_enable: hpb::LU_ENABLED_HPB,
                    logical_block_count: u64::from(BLOCKS) - 5 * u64::from(q.index),
                    hpb_max_active_regions: 4,
                    hpb_pinned_start: 2,
                    hpb_pinned_count: u16::from(q.index),
                    ..UnitDescriptor::default()
                };
                (good(0), u.to_bytes().to_vec())
            }
            (opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD) => (good(u32::from(single) * 2), Vec::new()),
            (opcode::READ_ATTRIBUTE, attribute::EHS_HPB_ENTRIES) => (good(255), Vec::new()),
            (opcode::READ_ATTRIBUTE, attribute::GROUP_ENTRIES) => (good(128), Vec::new()),
            (opcode::READ_FLAG, flag::HPB_EN) => (good(1), Vec::new()),
            _ => (good(0), Vec::new()),
        },
        RequestBody::Task(_) => (ReplyBody::Reject, Vec::new()),
    }
}

fn notification(input: &mut Bytes) -> HpbNotification {
    let [operation, lun, counts, ..] = input.array::<4>();
    let mut at = || SubRegion { region: input.u16() & 0x8FFF, index: u16::from(input.u8()) };
    let active = [at(), at()];
    let inactive = [input.u16() & 0x8FFF, input.u16() & 0x8FFF];
    // Half of all notifications are well-formed, so that the fuzzer need not find out first.
    let (active_count, inactive_count) = if counts & 128 == 0 { (counts & 3, counts >> 2 & 3) } else { (counts, 3) };
    let operation = if operation & 128 == 0 { 1 + u8::from(operation & 15 == 15) } else { operation };
    HpbNotification { operation, lun: lun & 3, active_count, inactive_count, active, inactive }
}

fn groups(input: &mut Bytes) -> Option<GroupNotice> {
    let [has, update] = input.array();
    let dirty = (has & 1 != 0).then(|| u32::from(input.u8()));
    // Most of them within the unit.
    let lba = if has & 4 == 0 { u32::from(input.u16()) & (BLOCKS - 1) } else { input.u32() };
    let pair = (has & 2 != 0).then(|| GroupPair { lba, entry: GroupEntry::of(input.u32()) });
    GroupNotice::new(dirty, pair, update)
}

fn any_reply(input: &mut Bytes) -> ReplyBody {
    match input.u8() % 8 {
        0 => ReplyBody::NopIn,
        1 => ReplyBody::Reject,
        2 => ReplyBody::Task(TaskResponse { service_response: input.u8() }),
        3 => {
            let [result, opcode, idn, index, selector] = input.array();
            let (length, value) = (input.u16(), input.u32());
            ReplyBody::Query(QueryResponse { result, opcode, idn, index, selector, length, value })
        }
        kind => {
            let status = [
                Status::Good,
                Status::CheckCondition,
                Status::Busy,
                Status::ReservationConflict,
                Status::TaskSetFull,
                Status::TaskAborted,
            ];
            let status = if kind < 6 { Status::Good } else { status[usize::from(input.u8()) % status.len()] };
            let [key, asc, ascq, has] = input.array();
            ReplyBody::Response(Response {
                status,
                sense: (has & 1 != 0).then_some(Sense { key, asc, ascq }),
                residual: if has & 2 != 0 { Residual::Under(input.u32()) } else { Residual::None },
                hpb: (has & 4 != 0).then(|| notification(input)),
                groups: if has & 16 != 0 { groups(input) } else { None },
                event_alert: has & 8 != 0,
            })
        }
    }
}

/// A device with two units, small enough that a few requests reach every part of it, and with an erased superblock for
/// every block that could be valid, so that it never runs out of them.
fn device(entries: EntryConfig) -> DeviceConfig {
    let mut config = readpath_testkit::device(BLOCKS);
    config.geometry.dies_per_channel = 1;
    config.geometry.pages_per_block = 16;
    config.geometry.page_bytes = 8192;
    config.ftl.map_changes = 256;
    config.lus = vec![
        LuConfig { blocks: BLOCKS, hpb: true, max_active_regions: 8, pinned_start: 2, pinned_regions: 1, zones: None },
        LuConfig { blocks: 100, hpb: false, max_active_regions: 0, pinned_start: 0, pinned_regions: 0, zones: None },
    ];
    config.hpb = Some(HpbConfig {
        max_active_regions: 8,
        refresh_after: 3,
        replace_after: 2,
        entries,
        v2: Some(Hpb2Config { enabled: true, single_blocks: 8, pre_requests: 2, entries_in_ehs: true }),
        ..readpath_testkit::HPB
    });
    readpath_testkit::give_room(&mut config);
    config
}

/// How the device protects its entries, which the last byte of the input chooses.
fn entries(data: &[u8]) -> EntryConfig {
    let choice = data.last().copied().unwrap_or(0);
    let engine = if choice & 4 == 0 { CheckOn::Firmware } else { CheckOn::Engine };
    let timed = EntryConfig { check_on: engine, make: Ns(101), check: Ns(1009), ..EntryConfig::DEFAULT };
    match choice & 3 {
        0 => EntryConfig { tell_foreign: choice & 8 != 0, ..timed },
        1 => EntryConfig { protection: Protection::Encrypted, ..timed },
        2 => EntryConfig { protection: Protection::None, ..EntryConfig::DEFAULT },
        _ => EntryConfig { tag_bits: 8 + (choice >> 4), ..EntryConfig::DEFAULT },
    }
}

/// Requests as UPIUs, with any data, at any time, between resets; every command ends and nothing is left behind.
pub fn device_requests(data: &[u8]) {
    requests(data, &device(entries(data)));
}

/// The same to a device of the prototype, whose way of updating and list the last byte of the input chooses.
pub fn prototype_requests(data: &[u8]) {
    let choice = data.last().copied().unwrap_or(0);
    let update = if choice & 1 == 0 { GroupUpdate::Host } else { GroupUpdate::Device };
    let prototype = PrototypeConfig { update, group_entries: 64, listed_changes: 1 + u16::from(choice >> 1) };
    let mut config = device(EntryConfig::DEFAULT);
    config.lus[0].pinned_regions = 0;
    config.hpb = config.hpb.map(|hpb| HpbConfig { v2: None, prototype: Some(prototype), ..hpb });
    requests(data, &config);
}

fn requests(data: &[u8], config: &DeviceConfig) {
    let mut input = Bytes(data);
    let mut device: UfsDevice<Lean, NoMedia, ()> =
        UfsDevice::new(config, readpath_testkit::DELAYS, ()).expect("a device");
    device.precondition([(0, 0, 1500)], Layout::Random, 7, |_, _| {}).expect("there is room");
    let mut now = Ns::ZERO;
    // Tags in use; and whether a task management request may have ended commands without a reply.
    let (mut busy, mut tasks) = ([false; 64], false);
    while !input.is_empty() {
        match input.u8() % 8 {
            0..=4 => {
                let mut bytes: Vec<u8> = input.array::<{ upiu::UPIU_BYTES }>().to_vec();
                let n = usize::from(input.u8());
                bytes.extend_from_slice(input.take(n));
                let Ok((mut request, _)) = upiu::parse_request(&bytes) else { continue };
                request.tag &= 63;
                if !std::mem::replace(&mut busy[usize::from(request.tag)], true) {
                    tasks |= matches!(request.body, RequestBody::Task(_));
                    device.submit(now, &request, &bytes[upiu::UPIU_BYTES..]);
                }
            }
            5 => {
                let until = now + Ns::from_us(u64::from(input.u16()));
                advance(&mut device, &mut now, until, &mut busy);
            }
            6 => {
                advance(&mut device, &mut now, Ns::NEVER, &mut busy);
                assert!(tasks || busy == [false; 64], "commands without a reply");
                (busy, tasks) = ([false; 64], false);
            }
            _ => {
                device.hardware_reset(now);
                (busy, tasks) = ([false; 64], false);
            }
        }
    }
    advance(&mut device, &mut now, Ns::NEVER, &mut busy);
    assert!(tasks || busy == [false; 64], "commands without a reply");
    assert_eq!(device.ops_in_use(), 0, "operations are left behind");
}

/// Lets everything happen that is due by `until`; with [`Ns::NEVER`], everything that is under way.
fn advance(device: &mut UfsDevice<Lean, NoMedia, ()>, now: &mut Ns, until: Ns, busy: &mut [bool; 64]) {
    let mut steps = 0u32;
    loop {
        let at = device.next_deadline();
        if at == Ns::NEVER || at > until {
            break;
        }
        *now = at.max(*now);
        device.advance(*now);
        while let Some(reply) = device.poll_reply(*now) {
            assert!(std::mem::take(&mut busy[usize::from(reply.tag)]), "a reply to nothing");
            let mut bytes = Vec::new();
            upiu::encode_reply(&reply, &[], &mut bytes);
            assert_eq!(upiu::parse_reply(&bytes).expect("our own reply").0, reply);
            let _ = device.data_in(reply.tag);
        }
        steps += 1;
        assert!(steps < 10_000_000, "the device never comes to rest");
    }
    if until != Ns::NEVER {
        *now = until.max(*now);
    }
}
