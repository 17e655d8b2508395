// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the text of a read stream to records. Memory is bounded by the limits, whatever the input.

use super::error::{Skips, StreamError, excerpt};
use super::fit::Misfits;
use super::{Geometry, Op, Record};
use crate::mtd;
use std::io::{self, BufRead};

/// Limits of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Records; each takes 16 bytes.
    pub records: usize,
    /// Bytes of one line.
    pub line_bytes: usize,
    /// Bytes of one line that a lenient reader may skip.
    pub passed_over_bytes: u64,
    /// Bytes of text after decompression.
    pub text_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { records: 1 << 26, line_bytes: 4096, passed_over_bytes: 16 << 20, text_bytes: 1 << 36 }
    }
}

/// Counts of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Lines, comments and skipped ones included.
    pub lines: u64,
    /// Reads through `ubi_eba_read_leb`.
    pub reads: u64,
    /// Other reads.
    pub other_reads: u64,
    /// Writes.
    pub writes: u64,
    /// Erases.
    pub erases: u64,
    /// Lines that were left out because of a fault; 0 unless lenient.
    pub skips: Skips,
    /// The last line had no end: the recording may be cut off.
    pub unterminated: bool,
    /// Bytes of a page according to the last comment `# page_bytes=N`, if there is one.
    pub page_bytes: Option<u32>,
    /// Records that do not fit pages of that size, or of the size given to the reader.
    pub misfits: Misfits,
}

impl Summary {
    /// Counts one more record.
    fn note(&mut self, op: Op) {
        *match op {
            Op::Read => &mut self.reads,
            Op::Other => &mut self.other_reads,
            Op::Write => &mut self.writes,
            Op::Erase => &mut self.erases,
        } += 1;
    }
}

/// A stream in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    /// The records in order.
    pub records: Vec<Record>,
    /// Counts of what was read.
    pub summary: Summary,
}

impl Stream {
    /// The log of a device with pages of `page_bytes`, as if it had been [written](crate::mtd::write_stream) and read
    /// back.
    pub fn of_log(log: &[mtd::Record], page_bytes: u32) -> Stream {
        let mut stream = Stream::default();
        stream.summary.page_bytes = Some(page_bytes);
        for record in log {
            let op = match record.op {
                mtd::Op::Read if record.is_of_leb() => Op::Read,
                mtd::Op::Read => Op::Other,
                mtd::Op::Write => Op::Write,
                mtd::Op::Erase => Op::Erase,
            };
            stream.summary.note(op);
            stream.records.push(Record { peb: record.peb, offset: record.offset, bytes: record.len, op });
        }
        stream
    }
}

/// Reads the stream called `file` in messages. A lenient reader leaves out lines with a fault and counts them.
///
/// # Errors
/// The first fault, with its line and field. A lenient reader fails only for unreadable or damaged input, exceeded
/// limits, and a stream without any read.
pub fn load(
    file: &str,
    input: &mut impl BufRead,
    geometry: Geometry,
    lenient: bool,
    limits: Limits,
) -> Result<Stream, StreamError> {
    let mut stream = Stream::default();
    let mut line = Vec::with_capacity(128);
    let mut text_bytes = 0;
    loop {
        let at = stream.summary.lines + 1;
        let fault = |line: u64, message: String| StreamError { file: file.to_owned(), line, field: "", message };
        let end = next_line(input, &mut line, &limits, lenient, &mut text_bytes)
            .map_err(|e| fault(at, format!("cannot be read, or its compressed content is damaged: {e}")))?;
        match end {
            End::Input => break,
            End::Endless => {
                let message = format!("the line is longer than {} bytes; this is no text", limits.passed_over_bytes);
                return Err(fault(at, message));
            }
            End::TooMuch => {
                let message = format!("the text is longer than {} bytes; no stream is", limits.text_bytes);
                return Err(fault(at, message));
            }
            _ => {}
        }
        stream.summary.lines = at;
        let parsed = if end == End::LongLine {
            Err(Fault::of_line(format!(
                "the line is longer than {} bytes; this is not a read stream",
                limits.line_bytes
            )))
        } else {
            stream.summary.unterminated = end == End::Unterminated;
            stream.summary.page_bytes = said_page_bytes(&line).or(stream.summary.page_bytes);
            parse(&line, geometry)
        };
        match parsed {
            Ok(None) => {}
            Ok(Some(_)) if stream.records.len() == limits.records => {
                let message = format!("there are more than {} records; split the stream", limits.records);
                return Err(fault(at, message));
            }
            Ok(Some(record)) => {
                let page_bytes = stream.summary.page_bytes.unwrap_or(geometry.page_bytes);
                stream.summary.note(record.op);
                stream.summary.misfits.note(&record, at, page_bytes);
                stream.records.push(record);
            }
            Err(Fault { field, message }) => {
                let fault = StreamError { file: file.to_owned(), line: at, field, message };
                if !lenient {
                    return Err(fault);
                }
                stream.summary.skips.note(&fault);
            }
        }
    }
    if stream.records.is_empty() {
        let skips = &stream.summary.skips;
        let skipped = match &skips.first {
            Some((line, what)) => format!("; {} lines were skipped, the first is line {line}: {what}", skips.count),
            None => String::new(),
        };
        let message = format!("there is no record in {} lines{skipped}", stream.summary.lines);
        return Err(StreamError { file: file.to_owned(), line: 0, field: "", message });
    }
    Ok(stream)
}

/// How a line ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Line,
    Unterminated,
    /// The line is longer than allowed.
    LongLine,
    /// Longer than even a skipped line may be.
    Endless,
    /// There is no further line.
    Input,
    TooMuch,
}

/// Puts the next line without its end into `line`. A line that is too long is read to its end only to be skipped.
fn next_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
    limits: &Limits,
    pass_over: bool,
    seen: &mut u64,
) -> io::Result<End> {
    line.clear();
    let (mut any, mut long) = (false, false);
    let begin = *seen;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if bytes.is_empty() {
            return Ok(match (any, long) {
                (false, _) => End::Input,
                (true, true) => End::LongLine,
                (true, false) => End::Unterminated,
            });
        }
        any = true;
        let found = bytes.iter().position(|&b| b == b'\n');
        let part = &bytes[..found.unwrap_or(bytes.len())];
        if long || line.len() + part.len() > limits.line_bytes {
            if !pass_over {
                return Ok(End::LongLine);
            }
            long = true;
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(found.is_some());
        input.consume(used);
        *seen += used as u64;
        if *seen > limits.text_bytes {
            return Ok(End::TooMuch);
        }
        if *seen - begin > limits.passed_over_bytes {
            return Ok(End::Endless);
        }
        if found.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(if long { End::LongLine } else { End::Line });
        }
    }
}

struct Fault {
    field: &'static str,
    message: String,
}

impl Fault {
    #[cold]
    fn of_line(message: String) -> Fault {
        Fault { field: "", message }
    }

    #[cold]
    fn new(field: &'static str, message: String) -> Fault {
        Fault { field, message }
    }
}

/// The largest erase block: 64 MiB.
const MOST_PEB_BYTES: u64 = 64 << 20;

/// The value of a comment `# page_bytes=N`; `readpath ubi stream` writes one.
fn said_page_bytes(line: &[u8]) -> Option<u32> {
    let text = line.strip_prefix(b"#")?.trim_ascii().strip_prefix(b"page_bytes=")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The record of a line; `None` for a comment or an empty line.
fn parse(line: &[u8], geometry: Geometry) -> Result<Option<Record>, Fault> {
    if line.trim_ascii().is_empty() || line[0] == b'#' {
        return Ok(None);
    }
    let mut fields = line.splitn(6, |&b| b == b',');
    let (Some(op), Some(peb), Some(offset), Some(bytes), Some(lnum), Some(_what)) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let message = format!("expected the six fields op,peb,offset,len,lnum,what, found {}", excerpt(line));
        return Err(Fault::of_line(message));
    };
    let op = match op {
        b"r" => Op::Read,
        b"R" => Op::Other,
        b"w" => Op::Write,
        b"e" => Op::Erase,
        other => return Err(Fault::new("op", format!("expected r, R, w or e, found {}", excerpt(other)))),
    };
    let record =
        Record { op, peb: number("peb", peb)?, offset: number("offset", offset)?, bytes: number("len", bytes)? };
    // Not used, but checked, because other values show another format.
    if !lnum.is_empty() {
        number("lnum", lnum)?;
    }
    check(&record, geometry)?;
    Ok(Some(record))
}

fn number(field: &'static str, text: &[u8]) -> Result<u32, Fault> {
    let mut value = 0u64;
    for &b in text {
        if !b.is_ascii_digit() || text.len() > 10 {
            value = u64::MAX;
            break;
        }
        value = value * 10 + u64::from(b - b'0');
    }
    match u32::try_from(value) {
        Ok(value) if !text.is_empty() => Ok(value),
        _ => Err(Fault::new(field, format!("expected a whole number from 0 to {}, found {}", u32::MAX, excerpt(text)))),
    }
}

fn check(record: &Record, geometry: Geometry) -> Result<(), Fault> {
    let Record { offset, bytes, op, .. } = *record;
    if bytes == 0 && op != Op::Erase {
        return Err(Fault::new("len", "expected at least 1 byte, found 0".into()));
    }
    let end = u64::from(offset) + u64::from(bytes);
    let (limit, what) = match geometry.peb_bytes {
        Some(peb) => (u64::from(peb), "the erase block"),
        None => (MOST_PEB_BYTES, "any erase block"),
    };
    if end > limit {
        let message = format!("{bytes} bytes from offset {offset} end at {end}, beyond {what} ({limit} bytes)");
        return Err(Fault::new("len", message));
    }
    if op == Op::Erase && (offset != 0 || geometry.peb_bytes.is_some_and(|peb| bytes != 0 && bytes != peb)) {
        let whole = geometry.peb_bytes.map_or("the whole erase block".to_owned(), |peb| format!("{peb} bytes"));
        let message = format!("an erase covers {whole} from offset 0, found {bytes} bytes from offset {offset}");
        return Err(Fault::new("offset", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: Geometry = Geometry { page_bytes: 16384, peb_bytes: Some(1 << 21) };

    fn strict(text: &str) -> Result<Stream, StreamError> {
        load("s.csv", &mut text.as_bytes(), PAGES, false, Limits::default())
    }

    #[test]
    fn a_log_is_the_stream_that_is_written_of_it() {
        use mtd::Why;
        let record = |op, peb, offset, len, why| mtd::Record { op, peb, offset, len, why };
        let leb = Why::Leb { volume: 0, lnum: 5, tag: 0 };
        let log = [
            record(mtd::Op::Read, 0, 0, 64, Why::EcHeader),
            record(mtd::Op::Read, 7, 32768, 188, leb),
            record(mtd::Op::Read, 8, 32768, 60, Why::Move),
            record(mtd::Op::Write, 8, 32768, 16384, leb),
            record(mtd::Op::Erase, 7, 0, 1 << 21, leb),
        ];
        let mut text = b"# page_bytes=16384\n".to_vec();
        mtd::write_stream(&log, &mut text, |_| "").unwrap();
        let mut read = load("s.csv", &mut &text[..], PAGES, false, Limits::default()).unwrap();
        read.summary.lines = 0;
        assert_eq!(Stream::of_log(&log, 16384), read);
        assert_eq!((read.summary.reads, read.summary.other_reads), (1, 2));
    }

    #[test]
    fn records_of_every_kind_are_read() {
        let text = "# op,peb,offset,len,lnum,what\nr,3,40,188,1,idx\r\n\nR,0,0,64,,ubiattach\nw,1,16384,16384,,a,b\ne,4294967295,0,2097152,,\n# end";
        let stream = strict(text).unwrap();
        let record = |op, peb, offset, bytes| Record { op, peb, offset, bytes };
        assert_eq!(
            stream.records,
            [
                record(Op::Read, 3, 40, 188),
                record(Op::Other, 0, 0, 64),
                record(Op::Write, 1, 16384, 16384),
                record(Op::Erase, u32::MAX, 0, 1 << 21),
            ]
        );
        let s = &stream.summary;
        assert_eq!((s.lines, s.reads, s.other_reads, s.writes, s.erases), (7, 1, 1, 1, 1));
        assert!(s.unterminated);
    }

    #[test]
    fn errors_name_line_field_and_what_would_be_right() {
        for (line, says) in [
            ("r,3,40,188", "s.csv:2: expected the six fields op,peb,offset,len,lnum,what, found \"r,3,40,188\""),
            ("x,3,40,188,1,idx", "s.csv:2: op: expected r, R, w or e, found \"x\""),
            ("r,,40,188,1,idx", "s.csv:2: peb: expected a whole number from 0 to 4294967295, found \"\""),
            ("r,3,-1,188,1,idx", "s.csv:2: offset: expected a whole number from 0 to 4294967295, found \"-1\""),
            (
                "r,3,0,4294967296,1,i",
                "s.csv:2: len: expected a whole number from 0 to 4294967295, found \"4294967296\"",
            ),
            ("r,3,0,0,1,idx", "s.csv:2: len: expected at least 1 byte, found 0"),
            ("r,3,0,1,one,idx", "s.csv:2: lnum: expected a whole number from 0 to 4294967295, found \"one\""),
            (
                "r,3,2097100,188,1,idx",
                "s.csv:2: len: 188 bytes from offset 2097100 end at 2097288, beyond the erase block (2097152 bytes)",
            ),
            (
                "e,3,0,16384,,",
                "s.csv:2: offset: an erase covers 2097152 bytes from offset 0, found 16384 bytes from offset 0",
            ),
        ] {
            let error = strict(&format!("r,1,0,4,0,a\n{line}\nr,1,0,4,0,a\n")).unwrap_err();
            assert_eq!(error.to_string(), says);
        }
        assert_eq!(strict("#\n\n").unwrap_err().to_string(), "s.csv: there is no record in 2 lines");
    }

    #[test]
    fn a_lenient_reader_counts_what_it_leaves_out() {
        let text = format!("r,1,0,4,0,a\nr,1,0,x,0,a\n{}\nr,2,0,4,0,a\n", "y".repeat(10_000));
        let stream = load("s.csv", &mut text.as_bytes(), PAGES, true, Limits::default()).unwrap();
        assert_eq!(stream.summary.reads, 2);
        assert_eq!(stream.summary.lines, 4);
        assert_eq!(stream.summary.skips.count, 2);
        let (line, what) = stream.summary.skips.first.unwrap();
        assert_eq!((line, what.as_str()), (2, "len: expected a whole number from 0 to 4294967295, found \"x\""));
    }

    #[test]
    fn limits_hold() {
        let long = "y".repeat(5000);
        let error = strict(&format!("r,1,0,4,0,{long}\n")).unwrap_err();
        assert_eq!(error.to_string(), "s.csv:1: the line is longer than 4096 bytes; this is not a read stream");
        // The endless line is not read beyond the limit.
        let endless = std::io::repeat(b'y');
        let error = load("s.csv", &mut std::io::BufReader::new(endless), PAGES, false, Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "s.csv:1: the line is longer than 4096 bytes; this is not a read stream");
        let endless = std::io::repeat(b'y');
        let error = load("s.csv", &mut std::io::BufReader::new(endless), PAGES, true, Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "s.csv:1: the line is longer than 16777216 bytes; this is no text");
        let few = Limits { records: 1, ..Limits::default() };
        let two = "r,1,0,4,0,a\nr,1,0,4,0,a\n";
        let error = load("s.csv", &mut two.as_bytes(), PAGES, true, few).unwrap_err();
        assert_eq!(error.to_string(), "s.csv:2: there are more than 1 records; split the stream");
        let short = Limits { text_bytes: 15, ..Limits::default() };
        let error = load("s.csv", &mut two.as_bytes(), PAGES, true, short).unwrap_err();
        assert_eq!(error.to_string(), "s.csv:2: the text is longer than 15 bytes; no stream is");
    }
}
