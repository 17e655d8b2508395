// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that are damaged, hostile or out of order: what the message says, what a lenient reader keeps and counts.

use crate::trace_common::{fault, lenient, open, read, read_with, request};
use flate2::write::GzEncoder;
use readpath_kit::Ns;
use readpath_workload::IoKind::{Read, Write};
use readpath_workload::trace::{
    Columns, Compression, Format, NO_DEVICE, Options, Place, Reader, Reason, Request, TraceError, Within,
};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HEAD: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n";

/// A table of ours with these times.
fn at(times: impl IntoIterator<Item = u64>) -> String {
    let rows: String = times.into_iter().map(|t| format!("{t},R,{},4096,,\n", t * 4096)).collect();
    format!("{HEAD}{rows}")
}

fn times(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|r| r.time.0).collect()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut e = liblzma::write::XzEncoder::new(Vec::new(), 1);
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A way to compress.
type Compress = (Compression, fn(&[u8]) -> Vec<u8>);
const COMPRESS: [Compress; 3] = [(Compression::Gzip, gz), (Compression::Zstd, zst), (Compression::Xz, xz)];

#[test]
fn faults_name_line_field_and_what_would_be_right() {
    for (row, message) in [
        ("x,R,0,512,,", "time: expected a time that is not negative and below 2^64 ns, found \"x\"; a row of"),
        ("-5,R,0,512,,", "time: expected a time that is not negative and below 2^64 ns, found \"-5\""),
        ("5,R,-512,512,,", "offset: expected a whole number from 0 to 2^64-1, found \"-512\""),
        ("5,R,18446744073709551616,1,,", "offset: expected a whole number from 0 to 2^64-1"),
        ("5,R,18446744073709551615,1,,", "offset: expected an end below 2^64 bytes"),
        ("99999999999999999999,R,0,1,,", "time: expected a time"),
        ("5,R,0,0,,", "size: expected at least 1 byte, found \"0\""),
        ("5,D,0,0,,", "size: expected at least 1 byte"),
        ("5,R,0,4294967296,,", "size: expected less than 4 GiB for a read or write"),
        ("5,Q,0,512,,", "op: expected a known operation, found \"Q\""),
        ("5,,0,512,,", "op: expected a known operation, found nothing"),
        ("5,R,0", "expected a row with a field for every column that is used, found \"5,R,0\"; a row of"),
        ("5,R,0,5x,,", "size: expected nothing more after the number, found \"x\""),
        ("5,R,0,512,,y", "latency: expected a time"),
        (
            "\u{0}\u{ff}\u{1b}[2J",
            "expected a row with a field for every column that is used, found \"\\x00\\xc3\\xbf\\x1b[2J\"",
        ),
        ("128166372003061629,src,1,Read,4096,512,59", "this is a row of format msr, not csv"),
        (
            "  8,0    3        7     0.000010000   697  D   W 223490 + 8 [k]",
            "this is a row of format blkparse, not csv",
        ),
    ] {
        let text = format!("{HEAD}1,R,0,4096,,\n\n# a comment\n{row}\n9,W,0,512,,\n");
        let e = read(&*text).unwrap_err();
        assert_eq!(e.place, Place::Line(5), "{row}: {e}");
        assert!(e.to_string().starts_with("t:5: ") && e.message.contains(message), "{row}: {e}");
        // A lenient reader keeps the other rows, and counts the fault with its place.
        let (requests, summary) = lenient(text).unwrap();
        assert_eq!(requests, [request(0, Read, 0, 4096), request(8, Write, 0, 512)], "{row}");
        let skips: Vec<_> = summary.skips.iter().collect();
        assert_eq!(skips.len(), 1, "{row}");
        assert_eq!((skips[0].0, skips[0].1, skips[0].2), (e.reason, 1, Place::Line(5)));
        assert!(skips[0].3.contains(message));
        assert_eq!(summary.other_rows, 2, "blank line and comment");
    }
}

#[test]
fn every_fault_counts_and_the_first_is_the_example() {
    let text =
        format!("{HEAD}1,R,0,512,,\nx,R,0,512,,\n2,R,0,0,,\ny,R,0,512,,\nz,R,0,512,,\n3,R,0,512,,\n3,Q,0,512,,\n");
    let (requests, summary) = lenient(text).unwrap();
    assert_eq!(requests.len(), 2);
    let skips: Vec<_> = summary.skips.iter().map(|s| (s.0, s.1, s.2)).collect();
    let expected = [(Reason::Number, 3, 3), (Reason::ZeroSize, 1, 4), (Reason::Operation, 1, 8)];
    assert_eq!(skips, expected.map(|(reason, n, line)| (reason, n, Place::Line(line))));
    assert!(summary.skips.iter().next().unwrap().3.contains("found \"x\""));
    assert_eq!((summary.skips.total(), summary.rows), (5, 8));
}

#[test]
fn after_a_fault_there_is_nothing_more() {
    let mut reader = open(format!("{HEAD}1,R,0,4096,,\nx\n2,R,0,4096,,\n"), &Options::default()).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
    assert_eq!(reader.fill(&mut [Request::NONE; 4]), Ok(0));
}

/// Blank lines and comments lack no fields, and do not set how many a row has.
#[test]
fn remarks_are_not_cut_off() {
    for text in ["1,R,0,4096,,\n# end", "1,R,0,4096,,\n   ", "# of, a, day, in, May, 2016, or, so\n1,R,0,4096,,"] {
        let with_head = format!("{HEAD}{text}");
        let mut reader = open(with_head, &Options::default()).unwrap();
        assert!(reader.next().unwrap().is_ok(), "{text:?}");
        assert!(reader.next().is_none(), "{text:?}");
    }
}

/// A last line without an end was cut off if fields are missing. A cut within the last field cannot be noticed.
#[test]
fn a_last_line_that_is_too_short_was_cut_off() {
    let whole = "128166372003061629,usr,0,Read,4096,24576,41286\n128166372003061639,usr,0,Read,8192,24576,41286";
    let read = |text: &str, lenient| {
        let options = Options { lenient, ..Options::default() };
        let mut reader = Reader::new("t", Box::new(std::io::Cursor::new(text.to_owned())), &options)?;
        let requests = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok::<_, TraceError>((requests.len(), reader.summary().clone()))
    };
    for cut in ["", "6", "86"] {
        let (requests, summary) = read(whole.strip_suffix(cut).expect("a suffix"), false).expect("a trace");
        assert_eq!((requests, summary.unterminated), (2, true));
    }
    // The response is missing, which rows may lack, and then a part of the size.
    for cut in [",41286", "76,41286"] {
        let text = whole.strip_suffix(cut).expect("a suffix");
        let e = read(text, false).expect_err("it is cut off");
        assert_eq!((e.reason, e.place), (Reason::Truncated, Place::Line(2)), "{e}");
        assert!(e.message.contains("it has 6 fields and no end, where the first has 7"), "{e}");
        let (requests, summary) = read(text, true).expect("one row is left out");
        assert_eq!((requests, summary.skips.count(Reason::Truncated)), (1, 1));
        // With a newline, the last row is complete.
        assert_eq!(read(&format!("{text}\n"), false).expect("a trace").0, 2);
    }
}

/// The name of a process may contain nearly anything, but not a row.
#[test]
fn rows_that_run_into_each_other_are_no_names() {
    let blk = |n, tail: &str| format!("  8,0    3        {n}     0.00000{n}000   697  D   W 223490 + 8 [kj{tail}");
    let joined = [blk(1, "]"), blk(2, "]")].concat();
    let torn = [blk(1, ""), blk(2, "]")].concat();
    for (good, bad, says) in [
        (
            "p-1,8388608,R,8,8,0.001",
            "p-2,8388608,R,16,p-3,8388608,R,24,8,0.003",
            "size: expected a whole number from 0 to 2^64-1, found \"p-3\"",
        ),
        (
            "a,b-77,8388608,R,8,8,0.001",
            "p-1,8388608,R,8,8,0.001p-2,8388608,R,16,8,0.002",
            "expected the end of the row, found \"p-2,8388608,R,16,8,0.002\"",
        ),
        ("a,1,R,b-77,8388608,R,8,8,0.001", "p-1,8388608,R,1p-2,8388608,R,16,8,0.002", "sector: expected"),
        (&blk(1, "]"), &joined, "expected the end of the row, found \"8,0    3 "),
        (&blk(1, " 1,2]"), &torn, "expected the end of the row, found \"8,0    3 "),
    ] {
        let text = format!("{good}\n{bad}\n");
        let e = read(&*text).unwrap_err();
        assert_eq!(e.place, Place::Line(2), "{e}");
        assert!(e.message.contains(says), "{e}");
        let (requests, summary) = lenient(text).unwrap();
        assert_eq!((requests.len(), summary.skips.total()), (1, 1), "{bad}");
    }
}

#[test]
fn nothing_at_all() {
    assert_eq!(fault(""), "t: it is empty; a trace has at least one request");
    assert_eq!(fault("\n \n"), "t: it is empty; a trace has at least one request");
    assert!(fault(HEAD).starts_with("t: there is no request: of 1 rows, 0 are no requests"));
    let all_bad = lenient(format!("{HEAD}a\nb\n")).unwrap_err();
    assert_eq!(all_bad.reason, Reason::Empty);
    assert!(all_bad.message.contains("2 were skipped; first skipped: line 2, expected a row"), "{all_bad}");
    for (_, compress) in COMPRESS {
        assert_eq!(fault(compress(b"")), "t: it is empty; a trace has at least one request");
    }
    assert!(read(b"\x1f\x8b".to_vec()).is_err());
}

#[test]
fn an_unknown_format_is_said_to_be_one() {
    let message = fault("hello world\n1 2 3\n");
    assert!(message.starts_with("t: the format is not recognised (it begins with \"hello world\"); give"), "{message}");
    assert!(message.contains("msr, systor17, cloudphysics, mobile, alibaba, tencent, blkparse"));
    // A format that was given is not looked for.
    let forced = Options { format: Some(Format::MsrCambridge), ..Options::default() };
    let e = read_with("hello world\n", &forced).unwrap_err();
    assert_eq!(e.place, Place::Line(1));
    assert!(e.message.ends_with("a row of format msr is timestamp,host,disk,Read|Write,offset,size,response"), "{e}");
    let forced = Options { format: Some(Format::FioV3), ..Options::default() };
    assert_eq!(
        read_with("0 /a add\n", &forced).err().unwrap().to_string(),
        "t:1: expected \"fio version 3 iolog\", found \"0 /a add\""
    );
    let columns = Some(Columns::own());
    let both = Options { format: Some(Format::Mobile), columns, ..Options::default() };
    assert_eq!(open("", &both).err().unwrap().message, "columns go with format csv, not with mobile");
}

#[test]
fn every_compression_gives_the_same() {
    let text = at(0..20_000);
    let plain = read(&*text).unwrap();
    for (compression, compress) in COMPRESS {
        let whole = compress(text.as_bytes());
        assert_eq!(open(whole.clone(), &Options::default()).unwrap().compression(), compression);
        assert_eq!(read(whole).unwrap(), plain, "{compression:?}");
        // Several members, frames or streams after one another.
        let (a, b) = text.as_bytes().split_at(100_001);
        assert_eq!(read([compress(a), compress(b)].concat()).unwrap(), plain, "{compression:?} in two");
    }
}

#[test]
fn cut_off_content_is_an_error_and_leniently_a_count() {
    let mut p = readpath_kit::Prng::new(1);
    let mut time = 0;
    let text = at((0..20_000).map(|_| {
        time += p.below(1 << 20);
        time
    }));
    let all = read(&*text).unwrap().0;
    for (compression, compress) in COMPRESS {
        let whole = compress(text.as_bytes());
        for keep in [whole.len() - 1, whole.len() / 2] {
            let cut = &whole[..keep];
            let e = read(cut).unwrap_err();
            assert_eq!(e.reason, Reason::Truncated, "{compression:?}: {e}");
            assert!(e.message.starts_with("the compressed content is cut off or damaged: "), "{e}");
            let (requests, summary) = lenient(cut).unwrap();
            assert_eq!(requests, all[..requests.len()], "what is kept is right");
            assert!(requests.len() > 5_000, "{compression:?}: {}", requests.len());
            assert_eq!(summary.skips.count(Reason::Truncated), 1);
        }
        // A flipped bit in the middle is found by the checksum at the latest.
        let mut bad = whole.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 4;
        assert!(read(bad).is_err(), "{compression:?}");
    }
    // Plain text that ends in the middle of a row is read as far as rows are valid, and the missing newline is noted.
    let (requests, summary) = read(&text[..text.len() - 1]).unwrap();
    assert_eq!((requests.len(), summary.unterminated), (all.len(), true));
    assert!(!read(&*text).unwrap().1.unterminated);
}

#[test]
fn damage_before_the_format_is_known_has_a_place() {
    let hello = gz(b"hello\n");
    let e = read(&hello[..hello.len() - 1]).unwrap_err();
    assert!(e.to_string().starts_with("t: byte 6: the compressed content is cut off or damaged: "), "{e}");
    assert_eq!(read(&hello[..5]).unwrap_err().place, Place::Byte(0));
    // The largest window that is allowed, and one that is not, though nothing is damaged: a frame with one raw block.
    let frame = |window: u8| [&[0x28, 0xB5, 0x2F, 0xFD, 0, window << 3, 5 << 3 | 1, 0, 0][..], b"hello"].concat();
    let e = read(frame(17)).unwrap_err();
    assert!(e.message.starts_with("the format is not recognised (it begins with \"hello\")"), "{e}");
    let e = read(frame(18)).unwrap_err();
    assert_eq!(e.reason, Reason::Limit);
    assert!(e.message.contains("a window of 128 MiB for zstd, 256 MiB in all for xz"), "{e}");
}

#[test]
fn garbage_after_gzip_is_an_error() {
    let mut bytes = gz(at(0..10).as_bytes());
    bytes.extend(b"trailing garbage");
    assert_eq!(read(bytes).unwrap_err().reason, Reason::Truncated);
}

#[test]
fn more_than_the_limit_is_not_expanded() {
    let bomb = gz(&[b"1,R,0,4096,,\n".repeat(1 << 18), Vec::new()].concat());
    assert!(bomb.len() < 40_000);
    let options = Options {
        max_expanded_bytes: 1 << 20,
        columns: Some(Columns::parse("time=0:ns,op=1,offset=2:bytes,size=3:bytes").unwrap()),
        lenient: true,
        ..Options::default()
    };
    let e = read_with(bomb, &options).unwrap_err();
    assert_eq!((e.reason, &*e.message), (Reason::Limit, "the content is larger than the limit on expanded bytes"));
    // The whole of a trace that just fits.
    let text = at(0..1000);
    let fits = Options { max_expanded_bytes: text.len() as u64, ..Options::default() };
    assert_eq!(read_with(gz(text.as_bytes()), &fits).unwrap().0.len(), 1000);
    let short = Options { max_expanded_bytes: text.len() as u64 - 1, ..Options::default() };
    assert_eq!(read_with(gz(text.as_bytes()), &short).unwrap_err().reason, Reason::Limit);
}

/// Endless text without a newline, or the same byte again and again.
struct Endless {
    left: u64,
    tail: &'static [u8],
}

impl io::Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return self.tail.read(out);
        }
        let n = out.len().min(self.left as usize);
        out[..n].fill(b'7');
        self.left -= n as u64;
        Ok(n)
    }
}

#[test]
fn a_line_without_end_is_refused_without_keeping_it() {
    let endless = |left| {
        let head = io::Cursor::new(format!("{HEAD}1,R,0,4096,,\n"));
        Box::new(io::Read::chain(head, Endless { left, tail: b"\n3,W,0,512,,\n" }))
    };
    let e = Reader::new("t", endless(u64::MAX), &Options::default()).unwrap().last().unwrap().unwrap_err();
    assert_eq!((e.place, e.reason), (Place::Line(3), Reason::LongLine));
    // A lenient reader skips the line, and continues after it.
    let options = Options { lenient: true, ..Options::default() };
    let mut reader = Reader::new("t", endless(16 << 20), &options).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(requests, [request(0, Read, 0, 4096), request(2, Write, 0, 512)]);
    assert_eq!(reader.summary().skips.count(Reason::LongLine), 1);
    // Unless it is too long for a line of any trace.
    for left in [(16 << 20) + 1, u64::MAX] {
        let e = Reader::new("t", endless(left), &options).unwrap().find_map(Result::err).expect("an error");
        assert_eq!(e.to_string(), "t:3: the line is longer than 16 MiB; this is no text");
    }
    // The limit is exact.
    let line = |n: usize| format!("{HEAD}1,R,0,4096,,{}\n", " ".repeat(n - 12));
    let options = Options { max_line_bytes: 100, ..Options::default() };
    assert_eq!(read_with(line(100), &options).unwrap().0.len(), 1);
    assert_eq!(read_with(line(101), &options).unwrap_err().reason, Reason::LongLine);
}

/// Blank lines of any kind take next to no space in a compressed trace.
#[test]
fn blank_lines_are_passed_over_until_they_cannot_be_meant() {
    let text = |blank: &str, times: usize| format!("{HEAD}1,R,0,4096,,\n{}3,W,0,512,,\n", blank.repeat(times));
    // Across the reader's window, so that no line is counted twice or not at all.
    for blank in ["\n", "\r\n", " \t\n", "     \n\n"] {
        let (requests, summary) = read(text(blank, 100_001)).unwrap();
        assert_eq!(requests, [request(0, Read, 0, 4096), request(2, Write, 0, 512)]);
        let lines = 100_001 * blank.matches('\n').count() as u64;
        assert_eq!((summary.rows, summary.other_rows), (3 + lines, lines), "{blank:?}");
    }
    // A blank line may be too long as well.
    let e = read(text(&format!("\n{}\n", " ".repeat((64 << 10) + 1)), 1)).unwrap_err();
    assert_eq!((e.place, e.reason), (Place::Line(4), Reason::LongLine));
    assert_eq!(read(text("\n", (16 << 20) + 1)).unwrap().0.len(), 2);
    for (format, head) in [(None, &*at(1..2)), (Some(Format::FtraceUfs), "# tracer: nop\n")] {
        let options = Options { format, lenient: true, ..Options::default() };
        let lines = io::Read::take(io::repeat(b'\n'), 1 << 40);
        let source = Box::new(io::Read::chain(io::Cursor::new(head.to_owned()), lines));
        let e = Reader::new("t", source, &options).unwrap().find_map(Result::err).expect("an error");
        assert_eq!(e.reason, Reason::Limit, "{e}");
        assert!(e.message.ends_with("more than 16 MiB of blank lines follow; this is no text"), "{e}");
    }
    let blank = Reader::new("t", Box::new(io::repeat(b'\n')), &Options::default()).err().unwrap();
    assert_eq!(blank.to_string(), "t: the first 256 KiB are blank; name the format (--format) if a trace follows");
}

/// Later requests may need a larger device than the first one beyond it.
#[test]
fn the_device_that_is_advised_is_one_for_all_requests() {
    let within = Some(Within { device_blocks: 4, shift_sectors: 0 });
    // Further rows that are bad do not matter; the trace is refused anyway.
    let text = at([0, 4, 3, 9, 2]) + "x\n" + &at([5])[HEAD.len()..];
    let strict = Options { within, ..Options::default() };
    let e = read_with(&*text, &strict).unwrap_err();
    assert_eq!(
        e.to_string(),
        "t:3: it ends at byte 20480, beyond the device of 16384 bytes; 3 requests of the trace lie beyond it; take a \
         device of at least 40960 bytes (0.0 GiB, 10 blocks), or have addresses folded"
    );
    let e = read_with(at([0, 4, 3]), &strict).unwrap_err();
    assert!(
        e.message.ends_with("take a device of at least 20480 bytes (0.0 GiB, 5 blocks), or have addresses folded"),
        "{e}"
    );
    let (requests, summary) = read_with(text, &Options { lenient: true, ..strict.clone() }).unwrap();
    assert_eq!((requests.len(), summary.beyond, summary.needed_bytes), (3, 3, 40960));
    // Blocks of 4 KiB have numbers of 32 bits: no device is larger.
    let huge = at([0, 4]) + &at([1 << 33])[HEAD.len()..];
    let e = read_with(&*huge, &strict).unwrap_err();
    assert!(
        e.message.ends_with("2 requests of the trace lie beyond it; no device is that large, so have addresses folded"),
        "{e}"
    );
    let (_, summary) = read_with(huge, &Options { lenient: true, ..strict.clone() }).unwrap();
    assert_eq!(summary.needed_bytes, NO_DEVICE);
    // The end of a damaged trace does not say what is missing.
    let mut cut = gz((at([0, 4]) + &at([5; 5000])[HEAD.len()..]).as_bytes());
    cut.truncate(cut.len() - 9);
    let e = read_with(cut, &strict).unwrap_err();
    assert!(e.message.contains("blocks) for what can be read of the trace, or have"), "{e}");
}

struct Failing(io::Cursor<Vec<u8>>);

impl io::Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out) {
            Ok(0) => Err(io::Error::from_raw_os_error(5)),
            other => other,
        }
    }
}

#[test]
fn a_failing_disk_is_never_skipped() {
    let options = Options { lenient: true, ..Options::default() };
    for bytes in [at(0..10).into_bytes(), gz(at(0..10_000).as_bytes())[..9_000].to_vec()] {
        let source = Box::new(Failing(io::Cursor::new(bytes)));
        let e = Reader::new("t", source, &options).unwrap().find_map(Result::err).expect("an error");
        assert_eq!(e.reason, Reason::Io, "{e}");
    }
}

/// Blank lines or other noise without end; the reader is asked to stop at the tenth read.
struct Asking {
    reads: u32,
    asked: Arc<AtomicBool>,
    noise: u8,
}

impl io::Read for Asking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        assert!(self.reads <= 10, "it reads on");
        self.asked.store(self.reads == 10, Ordering::Relaxed);
        out.fill(self.noise);
        Ok(out.len())
    }
}

#[test]
fn reading_stops_when_asked_though_no_request_comes() {
    for (format, noise) in [(Format::MsrCambridge, b'\n'), (Format::Blktrace, 7)] {
        let asked = Arc::new(AtomicBool::new(false));
        let source = Asking { reads: 0, asked: asked.clone(), noise };
        let options = Options { format: Some(format), lenient: true, ..Options::default() };
        let mut reader = Reader::new("t", Box::new(source), &options).unwrap();
        reader.stop_when(asked);
        let e = reader.fill(&mut [Request::NONE; 4]).unwrap_err();
        assert_eq!((e.reason, &*e.message), (Reason::Io, "reading was stopped"), "{format:?}");
    }
}

#[test]
fn small_inversions_are_sorted_and_counted() {
    let (requests, summary) = read(at([10, 30, 20, 30, 5, 40])).unwrap();
    assert_eq!(times(&requests), [0, 5, 15, 25, 25, 35], "counted from the earliest, not from the first row");
    assert_eq!((summary.inversions, summary.furthest_inversion, summary.first_ns), (2, Ns(25), 5));
    // Equal times stay in the order of the rows.
    let text = format!("{HEAD}5,R,0,1,,\n7,R,1,1,,\n5,R,2,1,,\n7,R,3,1,,\n5,R,4,1,,\n");
    let offsets: Vec<u64> = read(text).unwrap().0.iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [0, 2, 4, 1, 3]);
}

#[test]
fn the_window_reaches_as_far_as_it_says() {
    let options = |window, lenient| Options { window, lenient, ..Options::default() };
    // The last of n+1 rows belongs in front of the n others.
    let late = |n: u64| at((1..=n).chain([0]).chain(n + 1..1000));
    // 256 and 512 fill whole batches of rows, so that not one request more may be given out.
    for n in [1, 5, 256, 512, 700] {
        let sorted = read_with(late(n), &options(n as usize, false)).unwrap().0;
        assert_eq!(times(&sorted), (0..1000).collect::<Vec<_>>());
    }
    // Beyond the window, and the batch of rows that the reader takes on top of it.
    for window in [8, 300] {
        let e = read_with(late(700), &options(window, false)).unwrap_err();
        assert_eq!((e.place, e.reason), (Place::Line(702), Reason::Order));
        assert!(e.message.starts_with("this row is "), "{e}");
        assert!(e.message.ends_with("before it; sort the trace by time, for example with sort"), "{e}");
    }
    let (requests, summary) = read_with(late(700), &options(8, true)).unwrap();
    assert_eq!(requests.len(), 1000);
    assert!(requests.is_sorted_by_key(|r| r.time), "moved, not left where it was");
    assert_eq!(summary.skips.count(Reason::Order), 1);
    assert!(requests.iter().any(|r| r.offset == 0 && r.time > Ns(400)));
    // Without a window, sorted traces are still read.
    assert_eq!(read_with(at(0..600), &options(0, false)).unwrap().0.len(), 600);
}

#[test]
fn damaged_binary_records() {
    let record = |time: u64| {
        let mut r = [0u8; 48];
        r[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
        r[8..16].copy_from_slice(&time.to_le_bytes());
        r[24..28].copy_from_slice(&512u32.to_le_bytes());
        r[28..32].copy_from_slice(&(1u32 << 16 | 1 << 22 | 7).to_le_bytes());
        r
    };
    let three = [record(1), record(2), record(3)].concat();
    assert_eq!(read(&*three).unwrap().0.len(), 3);
    let e = read(&three[..100]).unwrap_err();
    assert_eq!(e.to_string(), "t: byte 96: the record is cut off; 4 bytes are left");
    let (two, summary) = lenient(&three[..100]).unwrap();
    assert_eq!((two.len(), summary.skips.count(Reason::Truncated)), (2, 1));
    // A payload that claims more than there is.
    let mut long = three.clone();
    long[142..144].copy_from_slice(&u16::MAX.to_le_bytes());
    assert_eq!(read(long).unwrap_err().place, Place::Byte(96));
    // Garbage between records.
    let garbled = [&three[..48], b"noise\x07\x07teatea", &three[48..]].concat();
    let e = read(&*garbled).unwrap_err();
    assert!(e.to_string().starts_with("t: byte 48: expected a record that begins with the magic number 0x65617407"));
    let (requests, summary) = lenient(garbled).unwrap();
    assert_eq!(times(&requests), [0, 1, 2]);
    assert_eq!(summary.skips.count(Reason::Syntax), 1);
    // Garbage that ends, and a record that begins, about where the reader's buffer ends.
    for length in (256 << 10) - 5..(256 << 10) + 1 {
        let long = [&three[..48], &vec![7; length - 48], &three[48..]].concat();
        assert_eq!(times(&lenient(long).unwrap().0), [0, 1, 2], "{length}");
    }
    // No bytes.
    let mut zero = three.clone();
    zero[24..28].fill(0);
    zero[28..32].copy_from_slice(&(1u32 << 17 | 7).to_le_bytes());
    assert_eq!(read(zero).unwrap_err().to_string(), "t: byte 0: size: expected at least 1 byte");
}

#[test]
fn options_out_of_range() {
    let base = Options::default();
    for (options, part) in [
        (Options { window: 1 << 25, ..base.clone() }, "a window of 33554432 requests is more than 16777216"),
        (Options { max_line_bytes: 1, ..base.clone() }, "the longest line is 64 to 16777216 bytes"),
        (Options { ufs_block_bytes: Some(8192), ..base.clone() }, "UFS blocks have 4096 or 512 bytes, not 8192"),
    ] {
        let e = open(at(0..3), &options).err().unwrap();
        assert_eq!((e.reason, &*e.message), (Reason::Options, part));
    }
}

#[test]
fn byte_order_mark_and_windows_line_ends() {
    let text = format!("\u{feff}{}", at(0..3)).replace('\n', "\r\n");
    assert_eq!(read(text).unwrap().0.len(), 3);
}
