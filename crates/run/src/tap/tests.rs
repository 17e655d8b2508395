// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of small runs, read back as JSON.

use super::*;
use readpath_device::Layout;
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HpbOptions};
use readpath_proto::groups::{GroupEntry, GroupHint};
use readpath_proto::typed::{
    Cdb, Command, Form, HpbEntry, HpbNotification, QueryRequest, QueryResponse, Residual, Sense, Status, SubRegion,
    TaskRequest, TaskResponse,
};
use readpath_stack::{NoData, Stack, Typed};
use readpath_testkit::{DELAYS, device, host, settle};
use serde_json::Value;

const BLOCKS: u32 = 1 << 14;

type Under<'a, W> = Stack<Lean, NoData, Tap<&'a mut W>, Typed>;

fn start<W: io::Write>(out: &mut W, limit: Option<u64>) -> (Under<'_, W>, Ns) {
    let tap = Tap::new(out, "a \"test\"\n", limit);
    let host = host(Some(HpbOptions::default()));
    let mut stack = Stack::new(&device(BLOCKS), host, DELAYS, NoData, tap, Typed).unwrap();
    stack.precondition(0, 0, BLOCKS, Layout::Sequential, 1).unwrap();
    let now = stack.start(Ns::ZERO).unwrap();
    (stack, now)
}

/// Runs one request to its end and everything after it that follows from it; returns both times.
fn one<W: io::Write>(stack: &mut Under<'_, W>, mut now: Ns, op: BlockOp, block: u32) -> (Ns, Ns) {
    stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks: 1 });
    let mut done = None;
    while stack.next_deadline() != Ns::NEVER {
        now = stack.next_deadline();
        stack.advance(now);
        if let Some(end) = stack.poll_done() {
            assert_eq!(end.error, None);
            done = Some(now);
        }
    }
    (done.unwrap(), now)
}

fn parse(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    let all: Vec<Value> = serde_json::from_str(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("[", "]"));
    assert_eq!(lines.len(), all.len() + 2, "one event per line");
    for (line, event) in lines[1..].iter().zip(&all) {
        assert_eq!(serde_json::from_str::<Value>(line.trim_end_matches(',')).unwrap(), *event);
    }
    all
}

fn ns(event: &Value, key: &str) -> u64 {
    (event[key].as_f64().unwrap() * 1e3).round() as u64
}

fn track<'a>(all: &'a [Value], event: &Value) -> &'a str {
    let name = all.iter().find(|e| e["name"] == "thread_name" && e["tid"] == event["tid"] && e["pid"] == event["pid"]);
    name.unwrap()["args"]["name"].as_str().unwrap()
}

/// Reads until the host holds entries, then one hit; the latency of the hit and the trace.
fn trace_of_a_hit() -> (u64, Vec<Value>) {
    let mut out = Vec::new();
    let (mut stack, mut now) = start(&mut out, None);
    for block in 0..4 {
        now = one(&mut stack, now, BlockOp::Read, block).1;
    }
    let since = now;
    let (done, _) = one(&mut stack, now, BlockOp::Read, 9);
    let events = stack.device.probe_mut().finish().unwrap();
    drop(stack);
    let all = parse(&out);
    assert_eq!(all.len() as u64, events);
    ((done - since).0, all)
}

#[test]
fn a_hit_has_five_stages_that_add_up_to_its_latency() {
    let (latency, all) = trace_of_a_hit();
    let span = all.iter().rfind(|e| e["cat"] == "request").unwrap();
    assert_eq!((&span["name"], &span["args"]["lba"]), (&"HPB READ".into(), &9.into()));
    assert_eq!((&span["args"]["status"], &span["args"]["blocks"]), (&"GOOD".into(), &1.into()));
    assert_eq!(span["args"]["entry"].as_str().unwrap().len(), 16);
    assert_eq!(ns(span, "dur"), latency);
    let mine = |e: &&Value| e["pid"] == 2 && e["ph"] == "X" && e["args"]["request"] == span["args"]["request"];
    let stages: Vec<&Value> = all.iter().filter(mine).collect();
    let tracks: Vec<&str> = stages.iter().map(|s| track(&all, s).trim_end_matches(char::is_numeric).trim()).collect();
    // The link carries the data and then the response.
    assert_eq!(tracks, ["link down", "firmware", "die", "channel", "link up", "link up"]);
    let mut at = ns(span, "ts") + DELAYS.to_link.0;
    for stage in &stages {
        assert_eq!(ns(stage, "ts"), at, "{stage}");
        at += ns(stage, "dur");
    }
    assert_eq!(at + DELAYS.from_link.0, ns(span, "ts") + latency);
    let c = device(BLOCKS);
    let firmware = c.firmware.flash_op + c.firmware.hpb_read_extra;
    let link = c.link.request + c.link.block + c.link.response;
    let flash = c.flash.read + c.flash.transfer_block;
    assert_eq!(Ns(latency), DELAYS.to_link + firmware + flash + link + DELAYS.from_link);
}

/// The arrow from a request goes to each of its stages, and the counter goes up and down with what is in flight.
#[test]
fn flows_and_counters() {
    let (_, all) = trace_of_a_hit();
    let span = all.iter().rfind(|e| e["cat"] == "request").unwrap();
    let number = &span["args"]["request"];
    let flow: Vec<&Value> = all.iter().filter(|e| e["cat"] == "flow" && e["id"] == *number).collect();
    assert_eq!((&flow[0]["ph"], &flow[0]["ts"], &flow[0]["tid"]), (&"s".into(), &span["ts"], &span["tid"]));
    let stages = all.iter().filter(|e| e["ph"] == "X" && e["pid"] == 2 && e["args"]["request"] == *number);
    let at = |e: &Value| (e["ts"].to_string(), e["tid"].to_string());
    assert_eq!(flow[1..].iter().map(|e| at(e)).collect::<Vec<_>>(), stages.map(at).collect::<Vec<_>>());
    let counts: Vec<u64> =
        all.iter().filter(|e| e["ph"] == "C").map(|e| e["args"]["requests"].as_u64().unwrap()).collect();
    let spans = all.iter().filter(|e| e["cat"] == "request").count();
    assert_eq!((counts.len(), counts.last()), (2 * spans, Some(&0)));
    assert!(counts.windows(2).all(|two| two[0].abs_diff(two[1]) == 1), "{counts:?}");
}

#[test]
fn upius_notifications_and_map_loads_are_seen() {
    let (_, all) = trace_of_a_hit();
    let named = |name: &str| all.iter().filter(|e| e["name"] == name).collect::<Vec<_>>();
    let reads = all.iter().filter(|e| e["name"] == "HPB READ" && e["cat"] == "request").count();
    let upiu = |e: &Value| e["args"]["upiu"].as_str().unwrap().to_owned();
    let hpb_reads = named("COMMAND UPIU").iter().filter(|e| upiu(e)[32..34] == *"f8").count();
    assert!(reads > 0 && hpb_reads == reads);
    assert!(upiu(named("COMMAND UPIU").last().unwrap()).starts_with("0140"), "a COMMAND that reads");
    let told = named("HPB notification");
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["args"]["operation"], &told[0]["args"]["activate"][0]),
        (&"region update".into(), &"0/0".into())
    );
    let answer = named("RESPONSE UPIU").into_iter().find(|e| e["args"]["request"] == told[0]["args"]["request"]);
    assert_eq!(&upiu(answer.unwrap())[64..72], "00128010", "the notification is in the data segment");
    let buffer = named("HPB READ BUFFER").into_iter().find(|e| e["cat"] == "request").unwrap();
    assert_eq!((&buffer["args"]["region"], &buffer["args"]["sub_region"]), (&0.into(), &0.into()));
    let loads: Vec<&str> = named("map load").iter().map(|e| e["cat"].as_str().unwrap()).collect();
    assert_eq!(loads[..3], ["firmware", "die", "channel"]);
    assert_eq!(named("map load")[0]["args"]["map_page"], 0);
    // The data segment of a query is part of its UPIU.
    let descriptor = named("QUERY RESPONSE UPIU").iter().map(|e| upiu(e).len() / 2).max().unwrap();
    assert!(descriptor > 32, "{descriptor}");
}

#[test]
fn programs_are_seen_and_names_escaped() {
    let mut out = Vec::new();
    let (mut stack, mut now) = start(&mut out, None);
    stack.device.probe_mut().mark(now, "phase \"\u{1}\\\u{2028}");
    for block in 0..16 {
        now = one(&mut stack, now, BlockOp::WriteFua, block).1;
    }
    one(&mut stack, now, BlockOp::Discard, 3);
    stack.device.probe_mut().finish().unwrap();
    drop(stack);
    let all = parse(&out);
    assert!(all.iter().any(|e| e["name"] == "phase \"\u{1}\\\u{2028}" && e["s"] == "g"));
    assert!(all.iter().any(|e| e["args"]["labels"] == "a \"test\"\n"));
    let programs: Vec<&Value> = all.iter().filter(|e| e["name"] == "program" && e["cat"] == "die").collect();
    assert!(!programs.is_empty() && programs.iter().all(|e| Ns(ns(e, "dur")) == device(BLOCKS).flash.program));
    let write = all.iter().find(|e| e["name"] == "WRITE (10)" && e["cat"] == "request").unwrap();
    assert_eq!(write["args"]["fua"], true);
    let unmap = all.iter().rfind(|e| e["name"] == "COMMAND UPIU").unwrap();
    assert_eq!(unmap["args"]["data"].as_str().unwrap().len(), 48, "the list of an UNMAP of one range");
}

/// The flash completes the read of a command that a reset dropped; the host sends it again with the same tag, and once
/// more after UNIT ATTENTION.
#[test]
fn work_of_a_dropped_request_is_not_that_of_the_next() {
    let mut out = Vec::new();
    let (mut stack, mut now) = start(&mut out, None);
    stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Read, block: 0, blocks: 1 });
    now += Ns(100_000);
    stack.advance(now);
    stack.reset(now);
    settle(&mut stack, &mut now);
    assert!(stack.poll_done().is_some_and(|done| done.error.is_none()));
    stack.device.probe_mut().finish().unwrap();
    drop(stack);
    let all = parse(&out);
    let of = |name: &str, cat: &str| all.iter().filter(|e| e["name"] == name && e["cat"] == cat).count();
    assert_eq!([of("READ (10)", "request"), of("READ (10)", "die"), of("dropped", "die")], [3, 1, 1]);
}

#[test]
fn the_limit_counts_requests_and_lets_the_last_one_end() {
    let mut out = Vec::new();
    let (mut stack, mut now) = start(&mut out, Some(3));
    for block in 0..4 {
        now = one(&mut stack, now, BlockOp::Read, block).1;
    }
    assert_eq!(stack.device.probe_mut().requests(), 3);
    stack.device.probe_mut().finish().unwrap();
    drop(stack);
    let all = parse(&out);
    assert_eq!(all.iter().filter(|e| e["cat"] == "request").count(), 3);
    let note = "only the first 3 requests are recorded";
    assert!(all.iter().any(|e| e["name"] == note));
    assert!(all.iter().any(|e| e["args"]["labels"] == format!("a \"test\"\n: {note}")));
    let end = all.iter().filter(|e| e["cat"] == "request").map(|e| ns(e, "ts") + ns(e, "dur")).max().unwrap();
    assert!(all.iter().filter(|e| e["ph"] == "X").all(|e| ns(e, "ts") <= end));
}

const NOP: Request = Request { lun: 0, tag: 7, body: RequestBody::NopOut };

#[test]
fn a_request_without_reply_is_closed_by_the_next_one_and_at_the_end() {
    let mut out = Vec::new();
    let mut tap = Tap::new(&mut out, "", Some(2));
    tap.request(Ns(1_500), &NOP, &[]);
    tap.request(Ns(4_000), &NOP, &[]);
    tap.stage(StageOf::Request(7), Resource::Die(3), Ns(5_000), Ns(9_001));
    tap.stage(StageOf::Request(8), Resource::Die(3), Ns(5_000), Ns(99_000));
    tap.request(Ns(6_000), &Request { tag: 8, ..NOP }, &[]);
    tap.reply(Ns(7_000), &Reply { lun: 0, tag: 8, body: ReplyBody::NopIn }, &[]);
    let events = tap.finish().unwrap();
    assert_eq!(tap.finish().unwrap(), events, "closing again does nothing");
    tap.request(Ns(10_000), &NOP, &[]);
    drop(tap);
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(
        text.contains(r#""ph":"X","ts":1.500,"dur":2.500,"#) && text.contains(r#""ts":5.000,"dur":4.001,"#),
        "{text}"
    );
    let spans: Vec<(u64, u64)> =
        parse(&out).iter().filter(|e| e["args"]["status"] == "no reply").map(|e| (ns(e, "ts"), ns(e, "dur"))).collect();
    assert_eq!(spans, [(1_500, 2_500), (4_000, 5_001)]);
}

/// A writer that takes this many bytes and then fails.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failing_writer_stops_the_recording_and_is_reported() {
    for room in [0, 200_000] {
        let mut full = Full(room);
        let (mut stack, mut now) = start(&mut full, None);
        for block in 0..400 {
            now = one(&mut stack, now, BlockOp::Read, block).1;
        }
        let recorded = stack.device.probe_mut().requests();
        assert!(recorded < 400, "recording goes on after {recorded} requests");
        assert!(stack.device.probe_mut().buffer.capacity() < 2 * BUFFER);
        assert_eq!(stack.device.probe_mut().finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
    let mut full = Full(0);
    let mut tap = Tap::new(&mut full, "short", None);
    assert_eq!(tap.finish().unwrap_err().kind(), io::ErrorKind::StorageFull, "what is still in the buffer counts");
}

#[test]
fn times_are_exact_and_every_kind_of_request_is_valid_json() {
    assert_eq!(Us(Ns(u64::MAX - 1)).to_string(), "18446744073709551.614");
    let mut out = Vec::new();
    let mut tap = Tap::new(&mut out, "", None);
    let at = SubRegion { region: 7, index: 1 };
    let cdbs = [
        Cdb::TestUnitReady,
        Cdb::RequestSense { alloc: 18 },
        Cdb::Inquiry { vpd: None, alloc: 36 },
        Cdb::Inquiry { vpd: Some(0xB0), alloc: 64 },
        Cdb::ModeSense10 { dbd: true, page: 8, subpage: 0, alloc: 64 },
        Cdb::StartStopUnit { immed: false, control: 1 },
        Cdb::ReadCapacity10,
        Cdb::ReadCapacity16 { alloc: 32 },
        Cdb::ReportLuns { select: 0, alloc: 64 },
        Cdb::Read { form: Form::Six, lba: 1, blocks: 2, flags: 0 },
        Cdb::Write { form: Form::Sixteen, lba: 1 << 40, blocks: 2, flags: 8 },
        Cdb::Verify10 { lba: 1, blocks: 2, flags: 0 },
        Cdb::PreFetch { form: Form::Ten, lba: 1, blocks: 2 },
        Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false },
        Cdb::Unmap { list_bytes: 24 },
        Cdb::HpbRead { lba: 1, blocks: 2, entry: HpbEntry([0xAB; 8]), flags: 0, read_id: 3 },
        Cdb::HintedRead { lba: 1, blocks: 2, hint: GroupHint { entry: GroupEntry([0xAB; 4]), seen: 3 }, flags: 0 },
        Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 4096 },
        Cdb::HpbInactivate { region: 7 },
        Cdb::HpbPreRequest { lba: 1, read_id: 3, list_bytes: 8 },
        Cdb::HpbInactivateAll,
        Cdb::Other([0xC0; 16]),
    ];
    let query = QueryRequest { opcode: 9, idn: 1, index: 2, selector: 3, length: 4, value: 5 };
    let task = TaskRequest { function: 1, lun: 0, task_tag: 4 };
    let bodies = cdbs
        .map(|cdb| RequestBody::Command(Command { expected_bytes: 4096, cdb }))
        .into_iter()
        .chain((0..=8).map(|opcode| RequestBody::Query(QueryRequest { opcode, ..query })))
        .chain([1, 2, 4, 8, 0x80, 0x81, 9].map(|function| RequestBody::Task(TaskRequest { function, ..task })));
    let notification =
        HpbNotification { operation: 9, lun: 0, active_count: 2, inactive_count: 2, active: [at; 2], inactive: [3, 4] };
    let sense = Sense { key: 5, asc: 0x24, ascq: 0 };
    let replies = [
        ReplyBody::Response(Response { hpb: Some(notification), event_alert: true, ..Response::GOOD }),
        ReplyBody::Response(Response::check(sense, 4096)),
        ReplyBody::Response(Response { residual: Residual::Over(1), status: Status::Busy, ..Response::GOOD }),
        ReplyBody::Query(QueryResponse { result: 0xFE, opcode: 1, idn: 1, index: 2, selector: 3, length: 4, value: 5 }),
        ReplyBody::Task(TaskResponse { service_response: 8 }),
        ReplyBody::Reject,
    ];
    let mut requests = 0;
    for (i, body) in bodies.enumerate() {
        let now = Ns(i as u64 * 1_000);
        tap.request(now, &Request { lun: 0xD0, tag: i as u8, body }, &[]);
        tap.reply(now + Ns(999), &Reply { lun: 0xD0, tag: i as u8, body: replies[i % replies.len()] }, &[]);
        requests += 1;
    }
    tap.stage(StageOf::Erase, Resource::Die(1), Ns(5), Ns(3_500_005));
    tap.finish().unwrap();
    drop(tap);
    let all = parse(&out);
    assert_eq!(all.iter().filter(|e| e["cat"] == "request").count(), requests);
    assert!(all.iter().any(|e| e["name"] == "erase" && e["dur"] == 3_500.0 && e["pid"] == 2));
    assert!(all.iter().any(|e| e["args"]["sense"] == "5h/24h/00h" && e["args"]["underflow"] == 4096));
    assert!(all.iter().any(|e| e["args"]["inactivate"] == serde_json::json!([3, 4])));
}

/// Lines of a trace without its metadata, without commas at their ends.
fn lines(out: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(out).unwrap();
    text.lines().filter(|l| l.len() > 1 && !l.contains(r#""ph":"M""#)).map(|l| l.trim_end_matches(',').into()).collect()
}

fn read_10(tag: u8, lba: u64) -> Request {
    let cdb = Cdb::Read { form: Form::Ten, lba, blocks: 1, flags: 0 };
    Request { lun: 0, tag, body: RequestBody::Command(Command { expected_bytes: 4096, cdb }) }
}

#[test]
fn a_wall_clock_is_written_beside_virtual_time() {
    let mut out = Vec::new();
    let mut at = 0;
    let wall = move || {
        at += 1_000_000;
        Ns(at)
    };
    let mut tap = Tap::new(&mut out, "", None).with_wall_clock(wall).leaving_out(63);
    tap.mark(Ns(5), "begin");
    tap.request(Ns(1_000), &read_10(3, 7), &[]);
    tap.reply(Ns(9_500), &Reply { lun: 0, tag: 3, body: ReplyBody::Response(Response::GOOD) }, &[]);
    tap.heard(Ns(9_500));
    tap.request(Ns(10_000), &read_10(63, 8), &[]);
    tap.stage(StageOf::Request(63), Resource::LinkDown, Ns(10_000), Ns(10_500));
    tap.reply(Ns(11_000), &Reply { lun: 0, tag: 63, body: ReplyBody::Response(Response::GOOD) }, &[]);
    assert_eq!(tap.requests(), 1, "what is left out does not count");
    tap.finish().unwrap();
    drop(tap);
    assert_eq!(
        lines(&out),
        [
            r#"{"name":"begin","ph":"i","s":"g","ts":0.005,"pid":1,"tid":0,"args":{"wall_ns":1000000}}"#,
            r#"{"name":"in flight","cat":"counter","ph":"C","ts":1.000,"pid":1,"args":{"requests":1}}"#,
            r#"{"name":"request","cat":"flow","ph":"s","bp":"e","id":1,"ts":1.000,"pid":1,"tid":103}"#,
            r#"{"name":"COMMAND UPIU","cat":"upiu","ph":"i","s":"t","ts":1.000,"pid":1,"tid":103,"args":{"request":1,"upiu":"0140000300000000000000000000100028000000000700000100000000000000","wall_ns":2000000}}"#,
            r#"{"name":"RESPONSE UPIU","cat":"upiu","ph":"i","s":"t","ts":9.500,"pid":1,"tid":103,"args":{"request":1,"upiu":"2100000300000000000000000000000000000000000000000000000000000000","wall_ns":3000000}}"#,
            r#"{"name":"READ (10)","cat":"request","ph":"X","ts":1.000,"dur":8.500,"pid":1,"tid":103,"args":{"request":1,"tag":3,"lun":0,"lba":7,"blocks":1,"status":"GOOD"}}"#,
            r#"{"name":"in flight","cat":"counter","ph":"C","ts":9.500,"pid":1,"args":{"requests":0}}"#,
            r#"{"name":"replies heard","cat":"heard","ph":"i","s":"t","ts":9.500,"pid":1,"tid":1,"args":{"wall_ns":4000000}}"#,
        ]
    );
}

/// In virtual time a dropped request ends where its tag is used again: these traces have not changed.
#[test]
fn what_is_dropped_in_real_time_ends_there() {
    let spans = |has_wall: bool| {
        let mut out = Vec::new();
        let tap = Tap::new(&mut out, "", None);
        let mut tap = if has_wall { tap.with_wall_clock(|| Ns(77)) } else { tap };
        tap.request(Ns(1_000), &read_10(3, 7), &[]);
        tap.request(Ns(1_500), &read_10(4, 8), &[]);
        tap.dropped(Ns(2_000), 3);
        tap.dropped(Ns(2_100), 3);
        tap.dropped(Ns(2_200), 200);
        tap.reset(Ns(3_000));
        // A reply to a dropped request would be a fault of the device, and belongs to no request.
        tap.reply(Ns(3_500), &Reply { lun: 0, tag: 9, body: ReplyBody::Response(Response::GOOD) }, &[]);
        tap.request(Ns(5_000), &read_10(3, 9), &[]);
        tap.request(Ns(5_000), &read_10(4, 9), &[]);
        for tag in [3, 4] {
            tap.reply(Ns(6_000), &Reply { lun: 0, tag, body: ReplyBody::Response(Response::GOOD) }, &[]);
        }
        tap.finish().unwrap();
        drop(tap);
        let all = parse(&out);
        assert_eq!(all.iter().any(|e| e["name"] == "reset"), has_wall);
        let spans = all.iter().filter(|e| e["cat"] == "request");
        spans.map(|e| (e["args"]["request"].as_u64().unwrap(), ns(e, "dur"))).collect::<Vec<_>>()
    };
    assert_eq!(spans(true), [(1, 1_000), (2, 1_500), (3, 1_000), (4, 1_000)]);
    assert_eq!(spans(false), [(1, 4_000), (2, 3_500), (3, 1_000), (4, 1_000)]);
}

#[test]
fn upius_are_told_in_words() {
    let told = |request: &Request, data: &[u8]| {
        let mut bytes = Vec::new();
        upiu::encode_request(request, &[], &mut bytes);
        let UpiuText { tag, lun, is_reply, text } = UpiuText::new(&bytes, data);
        assert_eq!((tag, lun, is_reply), (request.tag, request.lun, false));
        text
    };
    let command = |cdb| Request { lun: 2, tag: 9, body: RequestBody::Command(Command { expected_bytes: 0, cdb }) };
    assert_eq!(told(&read_10(3, 7), &[]), "READ (10): LBA 7, 1 block");
    let entry = HpbEntry(0x0123_4567_89AB_CDEFu64.to_be_bytes());
    let read = Cdb::HpbRead { lba: 77, blocks: 2, entry, flags: 8, read_id: 0 };
    assert_eq!(told(&command(read), &[]), "HPB READ: LBA 77, 2 blocks, entry 0123456789abcdef, FUA");
    let mut list = Vec::new();
    readpath_proto::scsi::encode_unmap(&[(8, 16), (64, 1)], &mut list);
    let unmap = command(Cdb::Unmap { list_bytes: list.len() as u16 });
    assert_eq!(told(&unmap, &list), "UNMAP: LBA 8, 16 blocks; LBA 64, 1 block");
    assert_eq!(told(&unmap, &list[..9]), "UNMAP: list of 40 bytes");
    let at = SubRegion { region: 3, index: 1 };
    assert_eq!(
        told(&command(Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 8192 }), &[]),
        "HPB READ BUFFER: region 3, sub-region 1, 8192 bytes"
    );
    let reply = |body| {
        let mut bytes = Vec::new();
        upiu::encode_reply(&Reply { lun: 0, tag: 4, body }, &[], &mut bytes);
        let UpiuText { tag, is_reply, text, .. } = UpiuText::new(&bytes, &[]);
        assert_eq!((tag, is_reply), (4, true));
        text
    };
    let hpb = HpbNotification {
        operation: HpbNotification::REGION_UPDATE,
        lun: 0,
        active_count: 2,
        inactive_count: 1,
        active: [at; 2],
        inactive: [7, 0],
    };
    assert_eq!(
        reply(ReplyBody::Response(Response { hpb: Some(hpb), ..Response::GOOD })),
        "RESPONSE: GOOD; HPB region update, activate 3/1 3/1, inactivate 7"
    );
    let sense = Sense { key: 6, asc: 0x29, ascq: 0 };
    assert_eq!(
        reply(ReplyBody::Response(Response::check(sense, 4096))),
        "RESPONSE: CHECK CONDITION, sense 6h/29h/00h, 4096 bytes fewer than expected"
    );
    for bytes in [&[][..], &[0x01, 0, 0], &[0x7F; 40], &[0x21; 31]] {
        assert!(UpiuText::new(bytes, &[]).text.starts_with("not understood ("));
    }
}
