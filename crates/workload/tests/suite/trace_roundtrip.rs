// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests written in a format are read back equal: with our own writers, and for the other formats with rows made
//! here.

use crate::trace_common::{open, read};
use proptest::prelude::*;
use readpath_kit::Ns;
use readpath_workload::IoKind::{self, Flush, Read, Trim, Write};
use readpath_workload::trace::{CsvWriter, FioWriter, Format, Options, Request};
use std::fmt::Write as _;

/// Requests in whole microseconds and sectors, the first at time 0.
fn requests() -> impl Strategy<Value = Vec<Request>> {
    let kind = prop_oneof![4 => Just(Read), 4 => Just(Write), 1 => Just(Trim), 1 => Just(Flush)];
    let one = (0u64..3_000_000, kind, 0u64..1 << 40, 1u64..8192, 0u32..40_000, 0u64..9_000_000, any::<[bool; 2]>());
    proptest::collection::vec(one, 1..60).prop_map(|rows| {
        let mut time = None;
        rows.into_iter()
            .map(|(gap, kind, sector, sectors, pid, latency, [fua, preflush])| {
                let now = time.map_or(0, |t: u64| t + gap * 1000);
                time = Some(now);
                let data = kind != Flush;
                Request {
                    time: Ns(now),
                    offset: if data { sector * 512 } else { 0 },
                    bytes: if data { sectors * 512 } else { 0 },
                    latency: Some(Ns(latency * 1000)),
                    process: Some(pid),
                    kind,
                    fua: fua && kind == Write,
                    preflush: preflush && kind == Write,
                }
            })
            .collect()
    })
}

fn letters(r: &Request) -> &'static str {
    match (r.kind, r.preflush, r.fua) {
        (Read, ..) => "R",
        (Write, false, false) => "WS",
        (Write, false, true) => "WFS",
        (Write, true, false) => "FWS",
        (Write, true, true) => "FWFSM",
        (Trim, ..) => "D",
        (Flush, ..) => "FN",
    }
}

fn back(bytes: impl Into<Vec<u8>>, format: Format) -> Vec<Request> {
    let bytes = bytes.into();
    assert_eq!(open(bytes.clone(), &Options::default()).unwrap().format(), format);
    read(bytes).unwrap().0
}

/// The requests without fields that the format cannot hold.
fn only(requests: &[Request], process: bool, latency: bool, flags: bool) -> Vec<Request> {
    let keep = |r: &Request| Request {
        process: r.process.filter(|_| process),
        latency: r.latency.filter(|_| latency),
        fua: r.fua && flags,
        preflush: r.preflush && flags,
        ..*r
    };
    requests.iter().map(keep).collect()
}

fn rebased(mut requests: Vec<Request>) -> Vec<Request> {
    let first = requests.first().map_or(Ns::ZERO, |r| r.time);
    requests.iter_mut().for_each(|r| r.time = r.time - first);
    requests
}

fn of_kinds(requests: &[Request], kinds: &[IoKind]) -> Vec<Request> {
    rebased(requests.iter().filter(|r| kinds.contains(&r.kind)).copied().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn our_table_keeps_everything(requests in requests(), odd in 0u64..1000, drop in any::<bool>()) {
        let mut requests = requests;
        // To the nanosecond, with and without the parts that may be missing.
        for (i, r) in requests.iter_mut().enumerate().skip(1) {
            r.time = Ns(r.time.0 + odd);
            if drop && i % 2 == 0 {
                (r.latency, r.process) = (None, None);
            }
        }
        let mut writer = CsvWriter::new("out", Vec::new()).unwrap();
        requests.iter().for_each(|r| writer.write(r).unwrap());
        prop_assert_eq!(back(writer.finish().unwrap(), Format::Csv), requests);
    }

    #[test]
    fn fio_logs_keep_microseconds(requests in requests()) {
        let mut writer = FioWriter::new("out", Vec::new(), "/dev/sda").unwrap();
        requests.iter().for_each(|r| writer.write(r).unwrap());
        prop_assert_eq!(writer.lost_flags(), requests.iter().filter(|r| r.fua || r.preflush).count() as u64);
        prop_assert_eq!(back(writer.finish().unwrap(), Format::FioV3), only(&requests, false, false, false));

        let mut v2 = String::from("fio version 2 iolog\n/f add\n/f open\n");
        let mut last = Ns::ZERO;
        for r in &requests {
            if r.time > last {
                writeln!(v2, "/f wait {} 0", (r.time - last).0 / 1000).unwrap();
                last = r.time;
            }
            let word = match r.kind { Read => "read", Write => "write", Trim => "trim", Flush => "datasync" };
            writeln!(v2, "/f {word} {} {}", r.offset, r.bytes).unwrap();
        }
        prop_assert_eq!(back(v2, Format::FioV2), only(&requests, false, false, false));
    }

    #[test]
    fn tables_with_fixed_columns(requests in requests()) {
        let two = of_kinds(&requests, &[Read, Write]);
        if !two.is_empty() {
            let (mut msr, mut systor) = (String::new(), String::from("Timestamp,Response,IOType,LUN,Offset,Size\n"));
            for r in &two {
                let (t, l) = (r.time.0, r.latency.unwrap().0);
                let word = if r.kind == Read { "Read" } else { "Write" };
                writeln!(msr, "{},usr,0,{word},{},{},{}", 128_166_372_003_061_629 + t / 100, r.offset, r.bytes, l / 100)
                    .unwrap();
                let (s, ns) = (1_456_095_145 + t / 1_000_000_000, t % 1_000_000_000);
                let (ls, lns) = (l / 1_000_000_000, l % 1_000_000_000);
                writeln!(systor, "{s}.{ns:09},{ls}.{lns:09},{},0,{},{}", &word[..1], r.offset, r.bytes).unwrap();
            }
            prop_assert_eq!(back(msr, Format::MsrCambridge), only(&two, false, true, false));
            prop_assert_eq!(back(systor, Format::Systor17), only(&two, false, true, false));
        }
        let mut mobile = String::from("proces,device,rw_flag,sector,size,timestamp\n");
        let mut cloud = String::from("version,time,op,size,lbn\n");
        for r in &requests {
            let (s, us) = (832_636 + r.time.0 / 1_000_000_000, r.time.0 / 1000 % 1_000_000);
            let (sector, sectors) = (r.offset / 512, r.bytes / 512);
            writeln!(mobile, "a-{},8388608,{},{sector},{sectors},{s}.{us:06}", r.process.unwrap(), letters(r)).unwrap();
            let code = match r.kind { Read => "28", Write => "8a", Trim => "42", Flush => "35" };
            writeln!(cloud, "1,{s}.{us:06},{code},{},{sector}", r.bytes).unwrap();
        }
        prop_assert_eq!(back(mobile, Format::Mobile), only(&requests, true, false, true));
        prop_assert_eq!(back(cloud, Format::CloudPhysics), only(&requests, false, false, false));
    }

    #[test]
    fn events_of_linux(requests in requests()) {
        let (mut blk, mut block) = (String::new(), String::from("# tracer: nop\n"));
        for (i, r) in requests.iter().enumerate() {
            let (s, us, pid) = (r.time.0 / 1_000_000_000, r.time.0 / 1000 % 1_000_000, r.process.unwrap());
            let (sector, sectors, rwbs) = (r.offset / 512, r.bytes / 512, letters(r));
            let place = if r.kind == Flush { String::new() } else { format!("{sector} + {sectors} ") };
            writeln!(blk, "  8,0    1 {i:>8} {s:>5}.{us:06}000 {pid:>5}  D {rwbs:>3} {place}[x]").unwrap();
            writeln!(
                block,
                " x-{pid}   [001] d..1. {s:>5}.{us:06}: block_rq_issue: 8,0 {rwbs} {} () {sector} + {sectors} [x]",
                r.bytes
            )
            .unwrap();
        }
        prop_assert_eq!(back(blk, Format::Blkparse), only(&requests, true, false, true));
        prop_assert_eq!(back(block, Format::FtraceBlock), only(&requests, true, false, true));
    }

    #[test]
    fn events_of_the_ufs_driver_with_completions(requests in requests()) {
        // Whole blocks, each request complete before the next tag of the same number.
        let mut wanted = only(&requests, true, true, false);
        wanted.iter_mut().for_each(|r| {
            r.offset = r.offset / 4096 * 4096;
            r.bytes = r.bytes.div_ceil(4096) * 4096;
        });
        let mut events: Vec<(u64, String)> = Vec::new();
        for (i, r) in wanted.iter().enumerate() {
            let code = match r.kind { Read => 0x28, Write => 0x2A, Trim => 0x42, Flush => 0x35 };
            let end = r.time.0 + r.latency.unwrap().0;
            for (time, what) in [(r.time.0, "send_req"), (end, "complete_rsp")] {
                let (s, us) = (time / 1_000_000_000, time / 1000 % 1_000_000);
                let row = format!(
                    " x-{}   [001] d..1. {s:>5}.{us:06}: ufshcd_command: {what}: 1.ufs: tag: {i}, DB: 0x1, size: {}, \
                     IS: 0, LBA: {}, opcode: 0x{code:x} (X), group_id: 0x0\n",
                    r.process.unwrap(),
                    r.bytes,
                    r.offset / 4096
                );
                events.push((time, row));
            }
        }
        events.sort_by_key(|e| e.0);
        let text: String = events.into_iter().map(|e| e.1).collect();
        prop_assert_eq!(back(text, Format::FtraceUfs), wanted);
    }

    #[test]
    fn binary_records(requests in requests(), little in any::<bool>()) {
        let mut bytes = Vec::new();
        for r in &requests {
            let category: u32 = match r.kind {
                Read => 1 << 16,
                Write => 1 << 17 | u32::from(r.fua) << 31 | u32::from(r.preflush) << 18,
                Trim => 1 << 17 | 1 << 29,
                Flush => 1 << 16 | 1 << 18,
            };
            let words = [0x6561_7407, 9];
            let quads = [r.time.0 + 77, r.offset / 512];
            let rest = [r.bytes as u32, category | 1 << 22 | 7, r.process.unwrap(), 8 << 20, 0, 0];
            let four = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
            let eight = |v: u64| if little { v.to_le_bytes() } else { v.to_be_bytes() };
            words.iter().for_each(|&v| bytes.extend(four(v)));
            quads.iter().for_each(|&v| bytes.extend(eight(v)));
            rest.iter().for_each(|&v| bytes.extend(four(v)));
        }
        prop_assert_eq!(back(bytes, Format::Blktrace), only(&requests, true, false, true));
    }

    #[test]
    fn shuffled_rows_come_out_sorted(requests in requests(), seed in any::<u64>()) {
        let mut shuffled = requests.clone();
        let mut p = readpath_kit::Prng::new(seed);
        for i in (1..shuffled.len()).rev() {
            shuffled.swap(i, p.below(i as u64 + 1) as usize);
        }
        let mut writer = CsvWriter::new("out", Vec::new()).unwrap();
        shuffled.iter().for_each(|r| writer.write(r).unwrap());
        let read = read(writer.finish().unwrap()).unwrap().0;
        prop_assert!(read.is_sorted_by_key(|r| r.time));
        let key = |r: &Request| (r.time, r.offset, r.bytes, r.kind as u8, r.process, r.latency, r.fua, r.preflush);
        let sorted = |mut v: Vec<Request>| { v.sort_by_key(key); v };
        prop_assert_eq!(sorted(read), sorted(requests));
    }
}

#[test]
fn a_target_with_blanks_cannot_be_written() {
    for target in ["", "a b", "a\nb"] {
        assert!(FioWriter::new("out.log", Vec::new(), target).is_err());
    }
    let e = FioWriter::new("out.log", Vec::new(), "a b").err().unwrap().to_string();
    assert_eq!(e, "out.log: a file of a fio log has a name without blanks, not \"a b\"");
}

#[test]
fn a_full_disk_is_an_error_of_the_file() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(28))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let e = CsvWriter::new("out.csv", Full).unwrap().finish().err().unwrap().to_string();
    assert!(e.starts_with("out.csv: cannot be written: "), "{e}");
}
