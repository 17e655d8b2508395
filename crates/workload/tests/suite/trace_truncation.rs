// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of every format, cut off at every byte of their last two rows: reading fails, or notes that the end is
//! missing, or gives the whole trace. The rows above the cut never change.

use crate::trace_common::{read_with, request};
use readpath_workload::trace::{Columns, Format, Options, Reason, Request};

/// A trace of three rows or more, in order, each a request of its own.
struct Sample {
    format: Format,
    columns: Option<&'static str>,
    text: &'static str,
}

const fn sample(format: Format, text: &'static str) -> Sample {
    Sample { format, columns: None, text }
}

const TEXT: [Sample; 15] = [
    sample(
        Format::MsrCambridge,
        "128166372003061629,usr,0,Read,4096,24576,41286\n128166372003061729,usr,0,Write,8192,24576,41286\n128166372003061829,usr,0,Read,12288,24576,41286\n",
    ),
    sample(
        Format::Systor17,
        "Timestamp,Response,IOType,LUN,Offset,Size\n10.02,0.0008,R,0,4096,512\n10.13,,W,0,8192,1024\n10.24,0.0009,W,0,16384,4096\n",
    ),
    sample(Format::CloudPhysics, "version,time,op,size,lbn\n1,100,28,512,70\n1,111,2A,4096,80\n1,122,28,8192,160\n"),
    sample(
        Format::Mobile,
        "process,device,rw_flag,sector,size,timestamp\nx-2,8388608,R,16,8,832.245743\nx-2,8388608,W,24,16,832.355743\nx-2,8388608,R,32,80,832.465743\n",
    ),
    sample(
        Format::Alibaba,
        "419,W,4096,8192,1577808144360767\n419,R,8192,512,1577808144370767\n419,R,16384,512,1577808144380767\n",
    ),
    sample(Format::Tencent, "1538323200,8,16,1,1283\n1538323201,16,24,0,1283\n1538323202,32,128,0,1283\n"),
    sample(
        Format::Blkparse,
        "  8,0    3        1     0.000010000   697  D   W 223490 + 16 [kjournald]\n  8,0    3        2     0.000020000   \
         697  D  RA 223590 + 24 [kjournald]\n  8,0    3        3     0.000030000   697  D   R 223690 + 128 \
         [kjournald]\n",
    ),
    sample(
        Format::FioV2,
        "fio version 2 iolog\n/dev/sda add\n/dev/sda read 0 4096\n/dev/sda wait 1500 0\n/dev/sda write 40960 \
         5120\n/dev/sda trim 81920 8192\n",
    ),
    sample(
        Format::FioV3,
        "fio version 3 iolog\n18 /dev/sda add\n122 /dev/sda read 0 4096\n1622 /dev/sda write 40960 5120\n2122 /dev/sda \
         trim 81920 8192\n",
    ),
    sample(
        Format::FtraceUfs,
        "# tracer: nop\n kw-2   [003] d..1.   832.245700: ufshcd_command: send_req: 14700000.ufs: tag: 5, DB: 0x20, \
         size: 4096, IS: 0, LBA: 100, opcode: 0x28 (READ_10), group_id: 0x0\n kw-2   [003] d..1.   832.255700: \
         ufshcd_command: send_req: 14700000.ufs: tag: 6, DB: 0x20, size: 8192, IS: 0, LBA: 200, opcode: 0x2a \
         (WRITE_10), group_id: 0x0\n kw-2   [003] d..1.   832.265700: ufshcd_command: send_req: 14700000.ufs: tag: 7, \
         DB: 0x20, size: 40960, IS: 0, LBA: 300, opcode: 0x28 (READ_10), group_id: 0x0\n",
    ),
    sample(
        Format::FtraceBlock,
        " kw-7   [003] ....   833.000200: block_rq_issue: 8,0 WS 4096 () 64 + 8 be,0,4 [kw]\n kw-7   [003] ....   \
         833.000300: block_rq_issue: 8,0 R 131072 () 640 + 256 [kw]\n kw-7   [003] ....   833.000400: block_rq_issue: \
         8,0 R 65536 () 1280 + 128 [kw]\n",
    ),
    sample(
        Format::TraceIo,
        "[\n{\"name\":\"COMMAND UPIU\",\"cat\":\"upiu\",\"ts\":1.000,\"args\":{\"request\":1,\"upiu\":\"014000030000000000000000000010002800000000070000010000000000000000\"}},\n{\"name\":\"COMMAND UPIU\",\"cat\":\"upiu\",\"ts\":2.000,\"args\":{\"request\":2,\"upiu\":\"014000040000000000000000000010002800000000080000010000000000000000\"}},\n{\"name\":\"COMMAND UPIU\",\"cat\":\"upiu\",\"ts\":2.500,\"args\":{\"request\":3,\"upiu\":\"014000050000000000000000000010002800000000090000010000000000000000\"}}\n",
    ),
    sample(
        Format::Csv,
        "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n1000,R,4096,4096,7,900\n2000,WF,8192,16384,7,900\n3000,R,16384,40960,,900\n",
    ),
    Sample {
        format: Format::Csv,
        columns: Some("time=4:us,op=1,offset=2:bytes,size=3:bytes,device=0"),
        text: "419,W,4096,8192,157780046\n419,R,8192,512,157780146\n419,R,16384,512,157780246\n",
    },
    Sample {
        format: Format::Csv,
        columns: Some("time=3:s,op=0,offset=1:blocks,size=2:blocks,sep=space"),
        text: "W 16 2 10.5001\nR 32 24 10.6002\nR 64 48 10.7003\n",
    },
];

fn options(sample: &Sample, lenient: bool) -> Options {
    let columns = sample.columns.map(|spec| Columns::parse(spec).expect("columns"));
    let format = sample.columns.is_none().then_some(sample.format);
    Options { format, columns, lenient, ..Options::default() }
}

/// Without times, which count from the first request, and latencies.
fn asked(requests: &[Request]) -> Vec<Request> {
    requests.iter().map(|r| request(0, r.kind, r.offset, r.bytes)).collect()
}

#[test]
fn a_text_that_was_cut_off_is_never_taken_for_whole() {
    for sample in &TEXT {
        let text = sample.text;
        let (whole, summary) = read_with(text, &options(sample, false)).expect("a trace");
        assert!(!summary.unterminated && whole.len() >= 3, "{:?}", sample.format);
        let starts: Vec<usize> = text.match_indices('\n').map(|(i, _)| i + 1).collect();
        let from = starts[starts.len() - 3];
        for to in from..text.len() {
            let rows = text[..to].matches('\n').count();
            let last = &text[starts[rows - 1]..to];
            let above = read_with(&text[..starts[rows - 1]], &options(sample, false)).expect("a trace").0;
            match read_with(&text[..to], &options(sample, false)) {
                Ok((requests, summary)) => {
                    assert!(summary.unterminated || last.is_empty(), "{:?}: {last:?} has no note", sample.format);
                    assert_eq!(asked(&requests)[..above.len()], asked(&above), "{:?}: {last:?}", sample.format);
                }
                Err(e) => {
                    assert!(
                        e.to_string().starts_with(&format!("t:{}: ", rows + 1)),
                        "{:?}: {last:?}: {e}",
                        sample.format
                    );
                    // Leniently the row is left out, and counted.
                    let (requests, summary) = read_with(&text[..to], &options(sample, true)).expect("the rows above");
                    assert_eq!((asked(&requests), summary.skips.total()), (asked(&above), 1), "{last:?}");
                }
            }
        }
    }
}

#[test]
fn a_compressed_or_binary_trace_that_was_cut_off_is_an_error() {
    let mut record = [0u8; 48];
    record[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    record[24..28].copy_from_slice(&512u32.to_le_bytes());
    record[28..32].copy_from_slice(&(1u32 << 16 | 1 << 22 | 7).to_le_bytes());
    let three = record.repeat(3);
    let packed = zstd::encode_all(&three[..], 1).expect("bytes");
    for (bytes, from) in [(three, 48), (packed, 4)] {
        for to in from..bytes.len() {
            let result = read_with(&bytes[..to], &Options::default());
            match to {
                48 | 96 if from == 48 => assert_eq!(result.expect("whole records").0.len(), to / 48),
                _ => assert_eq!(result.expect_err("a cut").reason, Reason::Truncated, "{to}"),
            }
        }
    }
}

/// A time that lost its last digits is an earlier one, and would be sorted to a wrong place.
#[test]
fn a_time_that_was_cut_off_is_known_by_the_order() {
    let mobile = "x-2,8388608,R,16,8,832.2\nx-2,8388608,W,24,16,832.35\nx-2,8388608,R,32,80,832.4";
    let cut = |by: usize| mobile[..mobile.len() - by].to_owned();
    let strict = |text: &str| read_with(text, &Options::default());
    assert_eq!(strict(&cut(0)).expect("nothing tells that there was more").0.len(), 3);
    for by in [1, 2, 3] {
        let e = strict(&cut(by)).expect_err("it was cut off");
        assert_eq!(
            e.to_string(),
            "t:3: the last line is cut off: it has no end, and ends with a time before that of the rows above, which \
             are in order"
        );
        assert_eq!(strict(&format!("{}\n", cut(by))).expect("a row like any other").1.inversions, 1);
    }
    // In a trace whose rows are out of order, this row may be, too.
    let jitter = mobile.replace("832.2\n", "832.2\nx-1,8388608,R,8,8,832.1\n");
    assert_eq!(strict(&jitter[..jitter.len() - 2]).expect("a trace").1.inversions, 2);
}

#[test]
fn a_row_without_its_bracket_was_cut_off() {
    let blkparse = "  8,0    3        1     0.000010000   697  D   W 223490 + 16 [k]";
    let ftrace = " kw-7   [003] ....   833.000300: block_rq_issue: 8,0 R 131072 () 640 + 256 [k]";
    for row in [blkparse, ftrace] {
        let whole = format!("{row}\n{row}");
        assert_eq!(read_with(&*whole, &Options::default()).expect("a trace").0.len(), 2);
        for by in [1, 3, 4, 5] {
            let e = read_with(&whole[..whole.len() - by], &Options::default()).expect_err("it was cut off");
            assert_eq!(
                e.to_string(),
                "t:2: the last line is cut off: it has no end, and no ], with which such a row closes"
            );
        }
    }
}
