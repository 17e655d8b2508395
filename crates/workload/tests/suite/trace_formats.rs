// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every format on rows as its recorder writes them: which rows are requests, and their units.

use crate::trace_common::{fault, open, read, read_with, request};
use readpath_kit::Ns;
use readpath_workload::IoKind::{Flush, Read, Trim, Write};
use readpath_workload::trace::{Columns, Devices, Event, Format, Options, Request, UfsBlocks};

const MS: u64 = 1_000_000;

fn format_of(text: &str) -> Format {
    open(text, &Options::default()).expect("a known format").format()
}

#[test]
fn msr_cambridge() {
    let text = "128166372003061629,src,1,Read,4096,512,59\n128166372003061729,src,1,Write,8192,4096,100\r\n";
    assert_eq!(format_of(text), Format::MsrCambridge);
    let expected = [
        Request { latency: Some(Ns(5_900)), ..request(0, Read, 4096, 512) },
        Request { latency: Some(Ns(10_000)), ..request(10_000, Write, 8192, 4096) },
    ];
    let (requests, summary) = read(text).unwrap();
    assert_eq!(requests, expected);
    assert_eq!((summary.first_ns, summary.with_latency), (12_816_637_200_306_162_900, 2));
}

#[test]
fn systor17() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n10.000002000,0.000806000,R,0,4096,512\n10.5,,W,0,0,1024\n";
    assert_eq!(format_of(text), Format::Systor17);
    let expected =
        [Request { latency: Some(Ns(806_000)), ..request(0, Read, 4096, 512) }, request(499_998_000, Write, 0, 1024)];
    assert_eq!(read(text).unwrap().0, expected);
    // The header may be missing.
    let bare = text.split_once('\n').unwrap().1;
    assert_eq!(read(bare).unwrap().0, expected);
    let blank = "Timestamp,Response,IOType,LUN,Offset,Size\n10.0,,,0,4096,512\n";
    assert!(fault(blank).starts_with("t:2: IOType: expected R or W (blank where"), "{}", fault(blank));
}

#[test]
fn cloudphysics() {
    let text =
        "version,time,op,size,lbn\n1,100,28,512,7\n1,101,2A,4096,8\n1,101,0,0,0\n1,102,42,8192,16\n1,102,35,0,0\n";
    assert_eq!(format_of(text), Format::CloudPhysics);
    let second = 1_000 * MS;
    let expected = [
        request(0, Read, 3584, 512),
        request(second, Write, 4096, 4096),
        request(2 * second, Trim, 8192, 8192),
        request(2 * second, Flush, 0, 0),
    ];
    let (requests, summary) = read(text).unwrap();
    assert_eq!(requests, expected);
    assert_eq!(summary.other_rows, 1, "a command that moves no data");
}

#[test]
fn mobile() {
    for header in
        ["proces,device,rw_flag,sector,size,timestamp\n", "process,device,rw_flag,sector,size,timestamp\n", ""]
    {
        let text = format!(
            "{header}kworker/u17:0-21454,8388608,W,16,8,832636.2457430001\n<...>-2230,8388608,RA,0,240,832636.245744\n\
             a,b-77,8388608,FN,0,0,832636.25\nx-1,8388608,D,8,8,832636.25\nx-1,8388608,N,0,0,832636.25\n\
             noid,8388608,WFS,8,8,832636.26\n"
        );
        assert_eq!(format_of(&text), Format::Mobile);
        let expected = [
            Request { process: Some(21454), ..request(0, Write, 8192, 4096) },
            Request { process: Some(2230), ..request(1_000, Read, 0, 122_880) },
            Request { process: Some(77), ..request(4_257_000, Flush, 0, 0) },
            Request { process: Some(1), ..request(4_257_000, Trim, 4096, 4096) },
            Request { fua: true, ..request(14_257_000, Write, 4096, 4096) },
        ];
        let (requests, summary) = read(text).unwrap();
        assert_eq!(requests, expected);
        assert_eq!(summary.other_rows, 1);
    }
}

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000002000   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000003000   697  P   N [kjournald]
  8,0    3        5     0.000004000   697  I   W 223490 + 8 [kjournald]
  8,0    3        6     0.000005000   697  U   N [kjournald] 1
  8,0    3        7     0.000010000   697  D   W 223490 + 8 [kjournald]
  8,0    1        0     0.000011000     0  m   N cfq697 a message, + commas
  8,0    3        8     0.000012000   698  Q  RA 64 + 16 [cat]
  8,0    3        9     0.000020000   698  D  RA 64 + 16 [cat]
  8,0    3       10     0.000030000     0  C   W 223490 + 8 [0]
  8,0    3       11     0.000031000     0  D  FN [kworker/3:1H]
  8,0    3       12     0.000032000   700  D   R 36 (12 00 00 00 24 00 ..) [smartd]
  8,0    3       13     0.000040000   699  D WFSM 8 + 8 (   12000) [jbd2]
  8,0    3       14     0.000050000     0  C  RA 64 + 16 [0]
  8,0    3       15     0.000060000   701  D  DS 4096 + 2048 [fstrim]
CPU3 (8,0):
 Reads Queued:           1,        8KiB  Writes Queued:           1,        4KiB

Total (8,0):
Throughput (R/W): 0KiB/s / 0KiB/s
";

#[test]
fn blkparse_issues_with_latencies_from_completions() {
    assert_eq!(format_of(BLKPARSE), Format::Blkparse);
    let expected = [
        Request { process: Some(697), latency: Some(Ns(20_000)), ..request(0, Write, 223_490 * 512, 4096) },
        Request { process: Some(698), latency: Some(Ns(30_000)), ..request(10_000, Read, 64 * 512, 8192) },
        Request { process: Some(0), ..request(21_000, Flush, 0, 0) },
        Request { process: Some(699), fua: true, ..request(30_000, Write, 4096, 4096) },
        Request { process: Some(701), ..request(50_000, Trim, 2 << 20, 1 << 20) },
    ];
    let (requests, summary) = read(BLKPARSE).unwrap();
    assert_eq!(requests, expected);
    assert_eq!((summary.rows, summary.other_rows, summary.with_latency), (17, 11, 2));
}

#[test]
fn blkparse_other_events_on_demand_or_when_there_is_no_issue() {
    let with = |event| read_with(BLKPARSE, &Options { event, ..Options::default() }).unwrap().0;
    let queued = [
        Request { process: Some(697), ..request(0, Write, 223_490 * 512, 4096) },
        Request { process: Some(698), ..request(11_000, Read, 64 * 512, 8192) },
    ];
    assert_eq!(with(Event::Queue), queued);
    let complete = with(Event::Complete);
    assert_eq!(complete.iter().map(|r| (r.time.0, r.kind)).collect::<Vec<_>>(), [(0, Write), (20_000, Read)]);

    let keep = |letters: &[&str]| -> String {
        BLKPARSE
            .lines()
            .filter(|l| letters.iter().any(|a| l.contains(&format!("  {a}  "))))
            .map(|l| format!("{l}\n"))
            .collect()
    };
    let (q, c) = (keep(&["Q", "C"]), keep(&["C"]));
    assert_eq!(open(&*q, &Options::default()).unwrap().event(), Event::Queue);
    assert_eq!(read(&*q).unwrap().0, queued);
    assert_eq!(open(&*c, &Options::default()).unwrap().event(), Event::Complete);
    assert_eq!(read(&*c).unwrap().0.len(), 2);
    // An issue event after the choice was made for queue events must not mix with them.
    let late = q.repeat(3000) + "  8,0    3   7     9.0   697  D   W 223490 + 8 [x]\n";
    assert!(fault(late.replace("0.0000", "1.0000")).contains("expected no issue (D) event"), "mixes events");
}

/// A record of `struct blk_io_trace`.
fn record(little: bool, time: u64, action: u32, sector: u64, bytes: u32, device: u32, payload: &[u8]) -> Vec<u8> {
    let four = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let eight = |v: u64| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let two = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let mut r = Vec::new();
    r.extend(four(0x6561_7407));
    r.extend(four(1));
    r.extend(eight(time));
    r.extend(eight(sector));
    for v in [bytes, action, 4242, device, 3] {
        r.extend(four(v));
    }
    r.extend(two(0));
    r.extend(two(payload.len() as u16));
    assert_eq!(r.len(), 48);
    r.extend(payload);
    r
}

fn blktrace(little: bool) -> Vec<u8> {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    const FLUSH: u32 = 1 << 18;
    let (dev, tc) = (8 << 20 | 16, |t: u32, a: u32| t | a);
    let mut all = Vec::new();
    // A notification with the process's name, and a message.
    all.extend(record(little, 90, 1 << 26, 0, 0, 0, b"kjournald\0\0\0\0\0\0\0"));
    all.extend(record(little, 95, tc(1 << 26, 2), 0, 0, dev, b"hello"));
    all.extend(record(little, 98, tc(WRITE | 1 << 20, 1), 8, 4096, dev, b""));
    all.extend(record(little, 100, tc(WRITE | 1 << 22, 7), 8, 4096, dev, b""));
    // From a control group: its number follows.
    all.extend(record(little, 150, tc(READ | 1 << 22, 0x107), 16, 512, dev, &[1; 8]));
    all.extend(record(little, 180, tc(WRITE | 1 << 23, 8), 8, 4096, dev, b""));
    all.extend(record(little, 200, tc(WRITE | 1 << 29 | 1 << 22, 7), 0, 1 << 20, dev, b""));
    all.extend(record(little, 250, tc(READ | FLUSH | 1 << 22, 7), 0, 0, dev, b""));
    all.extend(record(little, 300, tc(WRITE | FLUSH | 1 << 31 | 1 << 22, 7), 24, 1024, dev, b""));
    // A command that passes through.
    all.extend(record(little, 320, tc(READ | 1 << 25 | 1 << 22, 7), 0, 36, dev, b"\x12\0\0\0\x24\0"));
    all
}

#[test]
fn blktrace_in_both_byte_orders() {
    for little in [true, false] {
        let (requests, summary) = read(blktrace(little)).unwrap();
        let mine = |r: Request| Request { process: Some(4242), ..r };
        let expected = [
            mine(Request { latency: Some(Ns(80)), ..request(0, Write, 4096, 4096) }),
            mine(request(50, Read, 8192, 512)),
            mine(request(100, Trim, 0, 1 << 20)),
            mine(request(150, Flush, 0, 0)),
            mine(Request { fua: true, preflush: true, ..request(200, Write, 24 * 512, 1024) }),
        ];
        assert_eq!(requests, expected, "little {little}");
        assert_eq!((summary.rows, summary.other_rows), (10, 5));
    }
    let options = Options { devices: Devices::Named("8,16".into()), ..Options::default() };
    assert_eq!(read_with(blktrace(true), &options).unwrap().0.len(), 5);
}

#[test]
fn a_newer_blktrace_is_refused_by_its_version() {
    let mut bytes = blktrace(true);
    bytes[0] = 8;
    assert_eq!(fault(bytes), "t: blktrace records of version 8; version 7 can be read");
}

#[test]
fn fio_logs() {
    let v2 = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 1500 0\n\
              /dev/sda write 4096 512\n/dev/sda wait 500 0\n/dev/sda trim 0 8192\n/dev/sda datasync 0 0\n/dev/sda \
              close\n";
    assert_eq!(format_of(v2), Format::FioV2);
    let expected = [
        request(0, Read, 0, 4096),
        request(1_500_000, Write, 4096, 512),
        request(2_000_000, Trim, 0, 8192),
        request(2_000_000, Flush, 0, 0),
    ];
    assert_eq!(read(v2).unwrap().0, expected);
    let v3 = "fio version 3 iolog\n18 /dev/sda add\n118 /dev/sda open\n122 /dev/sda read 0 4096\n\
              1622 /dev/sda write 4096 512\n2122 /dev/sda trim 0 8192\n2122 /dev/sda sync\n2123 /dev/sda close\n";
    assert_eq!(format_of(v3), Format::FioV3);
    assert_eq!(read(v3).unwrap().0, expected);
    assert_eq!(fault("fio version 4 iolog\n"), "t: fio I/O log of version 4; versions 2 and 3 can be read");
    assert!(fault("fio version 3 iolog\n0 /a wait 10 0\n").contains("action: expected read, write"));
}

const UFS: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
 kworker/u17:0-21454   [003] d..1.   832.245700: ufshcd_command: send_req: 14700000.ufs: tag: 5, DB: 0x20, size: 4096, \
IS: 0, LBA: 100, opcode: 0x28 (READ_10), group_id: 0x0
 kworker/u17:0-21454   [003] d..1.   832.245701: ufshcd_upiu: send_req: 14700000.ufs: HDR:01 20, CDB:28 00
CPU:2 [LOST 153 EVENTS]
   <idle>-0     (-----) [000] d.h2.   832.245800: ufshcd_command: complete_rsp: 14700000.ufs: tag: 5, DB: 0x0, size: \
   4096, \
IS: 0, LBA: 100, opcode: 0x28 (READ_10), group_id: 0x0
 odd [7] name-99 (   88) [001] d..1.   832.246000: ufshcd_command: send_req: 14700000.ufs: tag: 6, DB: 0x40, size: \
 8192, \
IS: 0, LBA: 7, opcode: 0x2a (WRITE_10), group_id: 0x0, hwq_id: 2
 sync-7   [001] d..1.   832.246100: ufshcd_command: send_req: 14700000.ufs: tag: 7, DB: 0x80, size: -1, IS: 0, \
LBA: 18446744073709551615, opcode: 0x35 (SYNC), group_id: 0x0
 fstrim-8   [001] ...1   832.246200: ufshcd_command: send_req: 14700000.ufs: tag: 8, DB: 0x80, size: 1048576, IS: 0, \
LBA: 256, opcode: 0x42 (UNMAP), group_id: 0x0
 x-8   [001] ...1   832.246300: ufshcd_command: send_req: 14700000.ufs: tag: 9, DB: 0x80, size: -1, IS: 0, LBA: 0, \
opcode: 0x1b, group_id: 0x0
 x-8   [001] ...1   832.246300: sched_switch: prev_comm=a [120] ==> next_comm=b
";

#[test]
fn ftrace_of_the_ufs_driver() {
    // The row with two brackets: the processor is the first pair with digits alone, so the name must not look like one.
    let text = UFS.replace("odd [7] name", "odd [x] name");
    assert_eq!(format_of(&text), Format::FtraceUfs);
    let expected = [
        Request { process: Some(21454), latency: Some(Ns(100_000)), ..request(0, Read, 409_600, 4096) },
        Request { process: Some(99), ..request(300_000, Write, 28_672, 8192) },
        Request { process: Some(7), ..request(400_000, Flush, 0, 0) },
        Request { process: Some(8), ..request(500_000, Trim, 1 << 20, 1 << 20) },
    ];
    let (requests, summary) = read(&*text).unwrap();
    assert_eq!(requests, expected);
    assert_eq!(summary.lost_events, 153);
    // Linux before 5.14 counted in sectors.
    let options = Options { ufs_block_bytes: Some(512), ..Options::default() };
    assert_eq!(read_with(&*text, &options).unwrap().0[0].offset, 51_200);
    // A kernel that does not record where HPB READ goes.
    let hpb = text.replace("LBA: 100, opcode: 0x28 (READ_10)", "LBA: 18446744073709551615, opcode: 0xf8");
    assert!(fault(hpb).starts_with("t:4: LBA: expected an address and a size"));
    let device = text.replace("14700000.ufs", "0:0:0:0");
    assert_eq!(read(device).unwrap().0, expected);
}

/// Linux changed the unit of addresses in 5.14, and its text is the same.
#[test]
fn sequential_requests_tell_the_unit_of_ufs_addresses() {
    let text = |lbas: &[u64]| -> String {
        let row = |(i, lba): (usize, &u64)| {
            format!(
                "  app-7 [000] d..1 {i}.000000: ufshcd_command: send_req: 1d84000.ufs: tag: {i}, DB: 0x1, size: 16384, \
                 IS: 0, LBA: {lba}, opcode: 0x28 (READ_10), group_id: 0x0\n"
            )
        };
        lbas.iter().enumerate().map(row).collect()
    };
    let first = |lbas: &[u64], bytes| {
        let options = Options { ufs_block_bytes: bytes, ..Options::default() };
        let (requests, summary) = read_with(text(lbas), &options).expect("a trace");
        (requests[0].offset, summary.ufs_blocks)
    };
    // Sixteen KiB are 32 sectors, and four blocks. Two streams are mixed.
    assert_eq!(first(&[800, 64_000, 832, 64_032, 864], None), (800 * 512, UfsBlocks::Seen(512)));
    assert_eq!(first(&[800, 64_000, 804, 64_004, 808], None), (800 * 4096, UfsBlocks::Seen(4096)));
    assert_eq!(first(&[800, 64_000, 8000], None), (800 * 4096, UfsBlocks::Assumed));
    assert_eq!(first(&[801, 64_000, 8000], None), (801 * 4096, UfsBlocks::Seen(4096)));
    assert_eq!(first(&[800, 64_000, 804], Some(512)), (800 * 512, UfsBlocks::Given(512)));
    let notes = |lbas: &[u64]| {
        let mut reader = open(text(lbas), &Options::default()).expect("a trace");
        while reader.next().is_some() {}
        reader.notes("t").join("\n")
    };
    assert!(notes(&[800, 832]).contains("sectors of 512 bytes, as its sequential requests show"));
    assert!(notes(&[800, 8000]).contains("addresses were TAKEN for blocks of 4096 bytes"));
    assert!(!notes(&[800, 804]).contains("addresses"));
}

/// Programs pad the cells of a table, quote them, and print addresses in hexadecimal digits.
#[test]
fn cells_may_be_padded_quoted_or_hexadecimal() {
    let expected = [request(0, Read, 4096, 4096), request(1_000_000_000, Write, 8192, 4096)];
    for (columns, text) in [
        ("time=0:s,op=1,offset=2:bytes,size=3:bytes", "    0.000000, R, 4096, 4096\n    1.000000, W, 8192, 4096 \n"),
        ("time=0:s,op=1,offset=2:bytes,size=3:bytes", "\"0\",\"R\",\"4096\",\"4096\"\n\"1\", \"W\",\"8192\",4096\n"),
        ("time=0:s,op=2,offset=3:bytes,size=4:bytes", "0,\"a, b\",R,0x1000,0X1000\n1,c,W,0x2000,4096\n"),
        ("time=t:s,op=o,offset=a:bytes,size=n:bytes", " t , \"o\" , a , n\n0,R,4096,4096\n1,W,8192,4096\n"),
        ("sep=tab,time=0:s,op=1,offset=2:bytes,size=3:bytes", "0\t R \t 4096\t4096\n1\tW\t8192\t4096\n"),
    ] {
        let options = Options::of_words(None, Some(columns)).expect("columns");
        assert_eq!(read_with(text, &options).expect(text).0, expected, "{text}");
    }
    let options = Options::of_words(None, Some("time=0:s,op=1,offset=2:bytes,size=3:bytes")).expect("columns");
    let error = read_with("0,R,0,4096\n1, Q ,0,4096\n", &options).expect_err("no operation").to_string();
    assert!(error.starts_with("t:2: op: ") && error.contains("found \"Q"), "{error}");
    // Published tables, padded.
    for (head, row) in [
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            " 128166372003061629 , hm , 1 , Read , 4096 , 512 , 9 ",
        ),
        ("Timestamp,Response,IOType,LUN,Offset,Size", " 1.5 , 0.25 , R , 3 , 4096 , 512 "),
        ("version,time,op,size,lbn", " 1 , 1.5 , 28 , 512 , 8 "),
        ("device_id,opcode,offset,length,timestamp", " 3 , R , 4096 , 512 , 9 "),
        ("process,device,rw_flag,sector,size,timestamp", "a-1 , 3 , R , 8 , 1 , 1.5 "),
    ] {
        let bare = row.replace(' ', "");
        let of = |row: &str| read(format!("{head}\n{row}\n")).expect(row).0;
        assert_eq!(of(row), of(&bare), "{row}");
        assert_eq!((of(row)[0].offset, of(row)[0].bytes), (4096, 512), "{row}");
    }
}

#[test]
fn blkparse_of_a_terminal() {
    let events = "  8,0    1        2     0.000000400   312  D   R 64 + 8 [fio]\n";
    let head = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n";
    let (requests, summary) = read(format!("{head}{events}")).expect("a trace");
    assert_eq!((requests[0].offset, requests.len(), summary.other_rows), (64 * 512, 1, 2));
}

/// As Linux 7.3 prints it, shortened: the logical unit in place of the controller, and the number of a queue.
const UFS_7_3: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 370/370   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
    kworker/0:1H-103     [000] .....     6.657853: block_rq_issue: 8,0 WS 65536 () 2048 + 128 be,0,4 [kworker/0:1H]
    kworker/0:1H-103     [000] .....     6.658622: ufshcd_upiu: send_req: 0000:00:01.0: HDR:01 20 00 13 00 00 00 00 \
00 00 00 00, CDB:2a 00 00 00 01 00 00 00 10 00 00 00 00 00 00 00
    kworker/0:1H-103     [000] .....     6.658955: ufshcd_command: send_req: 0:0:0:0: tag: 19, DB: 0x0, size: 65536, \
IS: 0, LBA: 256, opcode: 0x2a (WRITE_10), group_id: 0x0, hwq_id: 0
          <idle>-0       [000] d.h1.     6.679779: ufshcd_command: complete_rsp: 0:0:0:0: tag: 19, DB: 0x0, size: \
65536, IS: 0, LBA: 256, opcode: 0x2a (WRITE_10), group_id: 0x0, hwq_id: 0
    kworker/0:1H-103     [000] .....     6.806878: ufshcd_command: send_req: 0:0:0:0: tag: 19, DB: 0x0, size: 65536, \
IS: 0, LBA: 256, opcode: 0x42 (UNMAP), group_id: 0x0, hwq_id: 0
    kworker/0:1H-103     [000] d.h1.     6.807397: ufshcd_command: complete_rsp: 0:0:0:0: tag: 19, DB: 0x0, size: \
65536, IS: 0, LBA: 256, opcode: 0x42 (UNMAP), group_id: 0x0, hwq_id: 0
";

/// As Linux 6.1 prints it, where ufshpb replaces READ (10): the command row has no address, the UPIU before it has.
const HPB_6_1: &str = "\
    kworker/0:1H-28      [000] .....     3.652953: ufshcd_upiu: send_req: 0000:00:01.0: HDR:01 40 00 0e 00 00 00 00 \
00 00 00 00, CDB:f8 00 00 00 01 2f 00 02 40 2f 48 7c 5d 4a 01 00
    kworker/0:1H-28      [000] .....     3.653218: ufshcd_command: send_req: 0000:00:01.0: tag: 14, DB: 0x0, size: -1, \
IS: 0, LBA: 0, opcode: 0xf8 (0xf8), group_id: 0x0
          <idle>-0       [000] d.h..     3.653511: ufshcd_command: complete_rsp: 0000:00:01.0: tag: 14, DB: 0x0, size: \
-1, IS: 0, LBA: 0, opcode: 0xf8 (0xf8), group_id: 0x0
";

#[test]
fn ftrace_of_newer_kernels_and_of_hpb_reads() {
    let mine = |us: u64, r| Request { process: Some(103), latency: Some(Ns(us * 1000)), ..r };
    let expected =
        [mine(20_824, request(0, Write, 1 << 20, 65_536)), mine(519, request(147_923_000, Trim, 1 << 20, 65_536))];
    assert_eq!(format_of(UFS_7_3), Format::FtraceUfs);
    let (requests, summary) = read(UFS_7_3).unwrap();
    assert_eq!((requests, summary.unmatched_completions, summary.other_layer), (expected.to_vec(), 0, 1));
    let other = Options { devices: Devices::Named("0:0:0:1".into()), ..Options::default() };
    assert!(read_with(UFS_7_3, &other).unwrap_err().message.contains("there is no request"));

    let read_of = |text: &str| read(text).map(|r| r.0);
    let hpb = Request { process: Some(28), latency: Some(Ns(293_000)), ..request(0, Read, 303 * 4096, 4096) };
    assert_eq!(read_of(HPB_6_1).unwrap(), [hpb]);
    // The first row has another tag, too few bytes, or is no command: then the address is unknown.
    for (row, other) in
        [("40 00 0e", "40 00 0f"), ("7c 5d 4a 01 00", "7c 5d"), ("send_req: 0000:00:01.0: HDR", "x: HDR")]
    {
        let e = fault(HPB_6_1.replace(row, other));
        assert!(e.starts_with("t:2: LBA: expected an address and a size (this kernel does not record"), "{e}");
    }
    // The address is that of the next command only.
    let again = HPB_6_1.lines().skip(1).map(|l| format!("{l}\n")).collect::<String>();
    assert!(fault(format!("{HPB_6_1}{again}")).starts_with("t:4: LBA: "), "used twice");
}

#[test]
fn ftrace_of_the_block_layer() {
    let text = "\
cpus=8
 kworker/3:1H-221   [003] d..1.   832.000100: block_bio_queue: 8,0 WS 64 + 8 [kworker/3:1H]
 kworker/3:1H-221   [003] d..1.   832.000200: block_rq_issue: 8,0 WS 4096 () 64 + 8 be,0,4 [kworker/3:1H]
          <idle>-0  [000] d.h1.   832.000900: block_rq_complete: 8,0 WS () 64 + 8 be,0,4 [0]
 cat-5   [003]   832.001000: block_rq_issue:       8,0 RA 131072 () 0 + 256 [cat]
 old-6   [003] ....   832.002000: block_rq_issue: 8,0 D 0 () 8 + 16 [old]
 kw-7   [003] ....   832.003000: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kw]
 kw-7   [003] ....   832.003500: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [kw]
 perf 99 [002]   832.004000: block:block_rq_issue: 8,0 R 512 () 9 + 1 [perf]
";
    assert_eq!(format_of(text), Format::FtraceBlock);
    let expected = [
        Request { process: Some(221), latency: Some(Ns(700_000)), ..request(0, Write, 32_768, 4096) },
        Request { process: Some(5), ..request(800_000, Read, 0, 131_072) },
        Request { process: Some(6), ..request(1_800_000, Trim, 4096, 8192) },
        Request { process: Some(7), ..request(2_800_000, Flush, 0, 0) },
        Request { process: Some(99), ..request(3_800_000, Read, 4608, 512) },
    ];
    assert_eq!(read(text).unwrap().0, expected);
    let queued = read_with(text, &Options { event: Event::Queue, ..Options::default() }).unwrap().0;
    assert_eq!(queued, [Request { process: Some(221), ..request(0, Write, 32_768, 4096) }]);
    // With both kinds of events, those nearer to the device count.
    assert_eq!(format_of(&format!("{text}{UFS}")), Format::FtraceUfs);
    let counter = text.replace("832.001000", "832001000");
    assert!(fault(counter).contains("seconds with a fraction (a clock of tracefs"));
}

/// Other events may fill all of the beginning by which the format is recognised.
#[test]
fn ftrace_is_known_by_its_header() {
    let switch = " x-8   [001] ...1   832.246300: sched_switch: prev_comm=a [120] ==> next_comm=b\n";
    let noise = format!("# tracer: nop\n#\n{}", switch.repeat(5_000));
    assert!(noise.len() > 256 << 10);
    let issue = " kw-7   [003] ....   833.000200: block_rq_issue: 8,0 WS 4096 () 64 + 8 be,0,4 [kw]\n";
    let both = format!("{noise}{}{issue}{issue}", UFS.replace("odd [7] name", "odd [x] name"));
    let (requests, summary) = read(&*both).unwrap();
    assert_eq!((requests.len(), summary.other_layer), (4, 2));
    let block = Options { format: Some(Format::FtraceBlock), ..Options::default() };
    let (requests, summary) = read_with(&*both, &block).unwrap();
    assert_eq!((requests.len(), summary.other_layer), (2, 5), "one of the five moves no data");
    // Without commands of the driver, the message says which events there are.
    assert_eq!(
        fault(format!("{noise}{issue}")),
        "t: there is no request: of 5003 rows, 5003 are no requests, 0 are for other devices, 0 were skipped; format \
         ftrace-block would find 1"
    );
}

#[test]
fn tables_by_place_and_by_name() {
    let columns = |spec: &str| Options { columns: Some(Columns::parse(spec).unwrap()), ..Options::default() };
    // Alibaba: device, opcode, offset, length, microseconds.
    let text = "419,W,4096,8192,1577808000000046\n419,R,0,512,1577808000000146\n";
    let ali = columns("time=4:us,op=1,offset=2:bytes,size=3:bytes,device=0");
    let expected = [request(0, Write, 4096, 8192), request(100_000, Read, 0, 512)];
    assert_eq!(read_with(text, &ali).unwrap().0, expected);
    // Numbers for operations, sectors, another separator, a header that is skipped.
    let text = "when;what;where;len;took\n1.0;1;8;16;5\n1.1;0;0;1;\n1.2;2;8;8;7\n";
    let own = columns("time=0:ms,op=3:9/8,offset=2:sectors,size=3:sectors,sep=;");
    let e = read_with(text, &own).unwrap_err();
    assert!(e.message.starts_with("op: expected a known operation (9 for read, 8 for write), found \"16\""), "{e}");
    // A decimal comma is an error, and must not be ignored.
    let comma = columns("time=0:ms,op=1,offset=2:bytes,size=3:bytes,sep=semicolon");
    let e = read_with("0,5;R;0;512\n", &comma).unwrap_err();
    assert!(e.message.starts_with("time: expected nothing more after the number, found \",5\";"), "{e}");
    let own = columns("time=0:ms,op=1:0/1/2,offset=2:sectors,size=3:kib,latency=4:us,sep=;");
    let expected = [
        Request { latency: Some(Ns(5_000)), ..request(0, Write, 4096, 16 << 10) },
        request(100_000, Read, 0, 1024),
        Request { latency: Some(Ns(7_000)), ..request(200_000, Trim, 4096, 8192) },
    ];
    assert_eq!(read_with(text, &own).unwrap().0, expected);
    let named = columns("time=when:ms,op=what:0/1/2,offset=where:sectors,size=len:kib,latency=took:us,sep=semicolon");
    assert_eq!(read_with(text, &named).unwrap().0, expected);
    let missing = columns("time=then:ms,op=what:0/1/2,offset=where:sectors,size=len:kib,sep=semicolon");
    assert_eq!(
        read_with(text, &missing).unwrap_err().to_string(),
        "t:1: there is no column \"then\" in the first row, which has when, what, where, len, took"
    );
    // A name that looks like a time.
    let odd = columns("time=0th:ms,op=1,offset=2:bytes,size=3:bytes");
    let text = "0th,1st,2nd,3rd\n7,R,0,512\n";
    assert_eq!(read_with(text, &odd).unwrap().0, [request(0, Read, 0, 512)]);
    // Blanks of any number.
    let text = "  0.5   read  1   2\n 0.75 FLUSH - -\n";
    let blanks = columns("time=0:s,op=1,offset=2:blocks,size=3:blocks,sep=space");
    assert_eq!(read_with(text, &blanks).unwrap().0, [request(0, Read, 4096, 8192), request(250 * MS, Flush, 0, 0)]);
}

#[test]
fn descriptions_of_columns_that_cannot_be() {
    for (spec, message) in [
        ("", "columns: \"\" is not KEY=COLUMN, such as time=0:us"),
        ("time=0:us,op=1,offset=2:bytes", "columns: \"size\" is missing, such as size=0"),
        ("time=0,op=1,offset=2:bytes,size=3:bytes", "columns: time needs a unit: time=0:s, ms, us, 100ns or ns"),
        (
            "time=0:s,op=1,offset=2:b,size=3:bytes",
            "columns: offset needs a unit: offset=2:bytes, sectors, kib or blocks",
        ),
        ("time=0:s,time=1:s", "columns: \"time\" is given twice"),
        ("when=0:s", "columns: unknown key \"when\"; keys are time, op, offset, size, latency, process, device, sep"),
        ("time=64:s,op=1,offset=2:bytes,size=3:bytes", "columns: time: columns 0 to 63 can be used, not 64"),
        (
            "time=0:s,op=1:x,offset=2:bytes,size=3:bytes",
            "columns: op takes two to four words, READ/WRITE/TRIM/FLUSH, such as op=1:0/1",
        ),
        (
            "time=0:s,op=1,offset=2:bytes,size=3:bytes,sep=ab",
            "columns: sep is one character, comma, tab, space or semicolon, not \"ab\"",
        ),
        ("time=:s,op=1,offset=2:bytes,size=3:bytes", "columns: time needs a column, by its number from 0 or its name"),
    ] {
        assert_eq!(Columns::parse(spec).unwrap_err(), message, "{spec}");
    }
}

#[test]
fn several_devices() {
    let text = "1,a,0,Read,0,512,1\n2,a,1,Read,512,512,1\n3,a,0,Write,1024,512,1\n";
    assert_eq!(
        fault(text),
        "t:2: expected the device of the rows before (choose one device by its name, or merge all), found \
         \"a,1,Read,512,512,1\""
    );
    let with = |devices| read_with(text, &Options { devices, ..Options::default() }).unwrap();
    let (one, summary) = with(Devices::Named("a,0".into()));
    assert_eq!((one.len(), summary.other_device), (2, 1));
    assert_eq!(with(Devices::Merge).0.len(), 3);
    let none = read_with(text, &Options { devices: Devices::Named("b,0".into()), ..Options::default() }).unwrap_err();
    assert!(
        none.message.contains("there is no request: of 3 rows, 0 are no requests, 3 are for other devices"),
        "{none}"
    );
    let none = Options { devices: Devices::Named("b".into()), ..Options::default() };
    let nameless = read_with("version,time,op,size,lbn\n1,100,28,512,7\n", &none).unwrap_err();
    assert!(nameless.message.contains("name no device"), "{nameless}");
}

/// An event with a UPIU, of 32 bytes with what is given in front and from byte 16 on.
fn upiu(us: &str, number: u64, head: &str, cdb: &str, more: &str) -> String {
    let bytes = format!("{head:0<32}{cdb:0<32}");
    let args = format!("\"request\":{number},\"upiu\":\"{bytes}\"{more}");
    format!(
        "{{\"name\":\"X UPIU\",\"cat\":\"upiu\",\"ph\":\"i\",\"s\":\"t\",\"ts\":{us},\"pid\":1,\"tid\":103,\"args\":{{{args}}}}},\n"
    )
}

/// A trace in the form that `--trace-io` and `attach --trace-io` write.
fn trace_io() -> String {
    let list = ",\"data\":\"002600200000000000000000000000080000001000000000\
                00000000000000400000000100000000\",\"wall_ns\":77";
    let none = ",\"data\":\"00160010000000000000000000000008000000000000000000\"";
    [
        "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"host\"}},\n".into(),
        upiu("5.000", 1, "00", "", ""),
        upiu("6.000", 1, "20", "", ""),
        upiu("10.000", 2, "01400003", "28000000000700000800", ""),
        // HPB READ, with an entry where other commands have a length.
        upiu("11.500", 3, "01400004", "f8000000000901234567890abcde0200", ""),
        // READ (16) of the prototype, with its entry in front of the address.
        upiu("11.500", 4, "01400005", "88010a0b0c0d0000000a00000001", ""),
        "{\"name\":\"READ (10)\",\"cat\":\"link\",\"ph\":\"X\",\"ts\":10.0,\"dur\":0.5,\"pid\":2,\"tid\":1000,\"args\":{}},\n".into(),
        upiu("15.000", 2, "21000003", "", ""),
        // Another unit, and a well-known one.
        upiu("16.000", 5, "01400103", "28000000000700000800", ""),
        upiu("16.000", 6, "0140b003", "28000000000700000800", ""),
        // FUA; then what moves no data.
        upiu("20.000", 7, "01200006", "2a080000000100000200", ""),
        upiu("20.000", 8, "01200007", "2a080000000100000000", ""),
        upiu("20.000", 9, "01400008", "12", ""),
        // Replies to unknown requests, and of another unit.
        upiu("21.000", 9, "21000008", "", ""),
        upiu("21.000", 5, "21000103", "", ""),
        // UNMAP of two ranges, of an empty one, of none.
        upiu("30.000", 10, "01200009", "42000000000000002800", list),
        upiu("31.000", 11, "01200009", "42000000000000001800", none),
        upiu("32.000", 12, "01200009", "42000000000000000000", ""),
        upiu("39.000", 10, "21000009", "", ""),
        upiu("40.000", 13, "0100000a", "35", ""),
        // READ (6) of 256 blocks, WRITE (16), READ (12).
        upiu("50.000", 14, "0140000b", "08e1000200", ""),
        upiu("51.000", 15, "0120000c", "8a00000000010000000000000001", ""),
        upiu("52.000", 16, "0140000d", "a8000000000200000003", ""),
        "{\"name\":\"reset\",\"ph\":\"i\",\"s\":\"g\",\"ts\":60.000,\"pid\":1,\"tid\":0,\"args\":{\"wall_ns\":9}}\n]\n".into(),
    ]
    .concat()
}

#[test]
fn upius_of_our_own_traces() {
    const BLOCK: u64 = 4096;
    let text = trace_io();
    assert_eq!(format_of(&text), Format::TraceIo);
    let took = |us: u64, r: Request| Request { latency: Some(Ns(us * 1000)), ..r };
    let expected = [
        took(5, request(0, Read, 7 * BLOCK, 8 * BLOCK)),
        request(1_500, Read, 9 * BLOCK, 2 * BLOCK),
        request(1_500, Read, 10 * BLOCK, BLOCK),
        Request { fua: true, ..request(10_000, Write, BLOCK, 2 * BLOCK) },
        request(20_000, Trim, 8 * BLOCK, 16 * BLOCK),
        took(9, request(20_000, Trim, 64 * BLOCK, BLOCK)),
        request(30_000, Flush, 0, 0),
        request(40_000, Read, 0x1_0002 * BLOCK, 256 * BLOCK),
        request(41_000, Write, (1 << 32) * BLOCK, BLOCK),
        request(42_000, Read, 2 * BLOCK, 3 * BLOCK),
    ];
    let (requests, summary) = read(&*text).unwrap();
    assert_eq!(requests, expected);
    assert_eq!((summary.other_device, summary.unmatched_completions, summary.skips.total()), (2, 0, 0));
    // The same trace in the style of another program, and a part cut out of it.
    let spaced = text.replace("\":", "\": ").replace(",\"", ", \"").replace('\n', "\r\n");
    assert_eq!(read(spaced).unwrap().0, expected);
    let part: String = text.lines().filter(|l| l.contains("\"upiu\"")).map(|l| format!("{l}\n")).collect();
    assert_eq!((format_of(&part), read(&*part).unwrap().0), (Format::TraceIo, expected.to_vec()));
    let with = |devices| read_with(&*text, &Options { devices, ..Options::default() }).unwrap().0;
    assert_eq!(with(Devices::Named("1".into())), [took(5, request(0, Read, 7 * BLOCK, 8 * BLOCK))]);
    assert_eq!(with(Devices::Named("176".into())).len(), 1);
    assert_eq!(with(Devices::Merge).len(), expected.len() + 2);
    let e = read(&*text.lines().take(4).map(|l| format!("{l}\n")).collect::<String>()).unwrap_err();
    assert!(e.message.starts_with("there is no request: of 4 rows, 4 are no requests"), "{e}");
}

#[test]
fn upius_that_cannot_be() {
    let good = upiu("5.000", 1, "0140", "28000000000700000800", "");
    let text = |row: &str| format!("[\n{good}{row}{good}]\n");
    for (row, message) in [
        (
            good.replace("5.000", "-1"),
            "ts: expected a time that is not negative and below 2^64 ns, found \"-1\"; a row",
        ),
        (
            good.replace("\"ts\":5.000,", ""),
            "ts: expected a member of that name, found nothing; a row of format trace-io",
        ),
        (good.replace("\"request\":1,", ""), "request: expected a member of that name"),
        (good.replace("\"request\":1", "\"request\":\"1\""), "request: expected a whole number from 0 to 2^64-1"),
        (good.replace("\"upiu\":\"01", "\"upiu\":\"0x"), "upiu: expected bytes in hexadecimal, two digits each, found"),
        (good.replace("\"upiu\":\"01", "\"upiu\":\"1"), "upiu: expected bytes in hexadecimal, two digits each"),
        (good.replace("\"upiu\":\"01", "\"upiu\":\""), "upiu: expected at least 32 bytes"),
        (good.replace("\"upiu\":\"", "\"upiu\":[\""), "upiu: expected bytes in hexadecimal"),
        (good.replace("}},", "}"), "expected a comma or a brace after a member, found \"\""),
        (good.replace("}},", "}},{}"), "expected the end of the line after an event, found \"{}\""),
        (good.replace("{\"name\"", "{name"), "expected text in quotes, found"),
        (good.replace("{\"name\":", "{\"name\""), "expected a colon after the name of a member"),
        (good.replace("\"ph\":\"i\"", "\"ph\":"), "expected a value, found"),
        ("{\"name\":\"\\\n".into(), "expected a quote after the text"),
        ("null\n".into(), "expected one event per line, {\"name\":...}, found \"null\""),
        (upiu("5.0", 1, "0120", "42000000000000001800", ""), "data: expected the parameter list of UNMAP"),
        (
            upiu("5.0", 1, "0140", "88000000000000000000ffffffff", ""),
            "size: expected less than 4 GiB for a read or write",
        ),
        (upiu("5.0", 1, "0140", "8800ffffffffffffffff00000001", ""), "offset: expected less than 2^64 bytes"),
    ] {
        let e = fault(text(&row));
        assert!(e.starts_with("t:3: ") && e.contains(message), "{row}: {e}");
        let kept = read_with(text(&row), &Options { lenient: true, ..Options::default() }).unwrap();
        assert_eq!((kept.0.len(), kept.1.skips.total()), (2, 1), "{row}");
    }
}
