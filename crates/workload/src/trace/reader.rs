// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader: bytes in, requests in order of time out. It joins input, format and window, and decides what follows
//! from a fault. The formats know the meaning of a row.

mod perfetto;
mod records;

use super::error::{Place, Reason, RowError, TraceError, excerpt};
use super::formats::perfetto::Survey;
use super::formats::{Context, DeviceName, Gate, Raw, Row, fio};
use super::input::{Compression, Input, Line, MOST_PASSED, Stop};
use super::messages::{Summary, explain, recognise, stop_error};
use super::replay::advice;
use super::table::{Content, ReadRows};
use super::window::Window;
use super::{Columns, Devices, Event, Format, Options, Request, TraceUnit, UfsBlocks, Within, detect};
use readpath_kit::Ns;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Requests taken from the input at a time.
const BATCH: usize = 256;
/// Largest reorder window.
const MAX_WINDOW: usize = 1 << 24;
/// Bounds of the longest line.
const LINE_BYTES: std::ops::RangeInclusive<usize> = 64..=MOST_PASSED;

/// Reads one trace. Yields [`Request`]s in order of time, the first at time 0; requests at the same time in the order
/// of the trace. After an error it yields nothing more.
///
/// ```
/// use readpath_workload::trace::{Options, Reader};
/// let text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n5,R,4096,4096,,\n9,W,0,512,,\n";
/// let mut reader = Reader::new("mine.csv", Box::new(text.as_bytes()), &Options::default()).unwrap();
/// let requests: Result<Vec<_>, _> = reader.by_ref().collect();
/// assert_eq!(requests.unwrap()[1].time.0, 4);
/// assert_eq!(reader.summary().requests, 2);
/// ```
pub struct Reader {
    file: String,
    input: Input,
    format: Format,
    lenient: bool,
    within: Option<Within>,
    cx: Context,
    records: records::Layout,
    levels: perfetto::Levels,
    device_name: DeviceName,
    window: Window,
    /// The separator of a table, and how often it stands in the first line that is no remark.
    separators: Option<(u8, Option<usize>)>,
    /// Nothing more comes into the window.
    ended: bool,
    failed: bool,
    base: Option<u64>,
    summary: Summary,
    pub(super) processors: Option<usize>,
}

impl Reader {
    /// Opens a trace called `file` in messages.
    ///
    /// # Errors
    /// When it cannot be read, is empty, its format is not recognised or not the given one, or the options contradict
    /// each other.
    pub fn new(file: &str, source: Box<dyn Read + Send>, options: &Options) -> Result<Reader, TraceError> {
        let wrong = |message: String| TraceError::of_file(file, Reason::Options, message);
        if options.columns.is_some() && options.format.is_some_and(|f| f != Format::Csv) {
            let name = options.format.map_or("", Format::name);
            return Err(wrong(format!("columns go with format csv, not with {name}")));
        }
        if options.window > MAX_WINDOW {
            return Err(wrong(format!("a window of {} requests is more than {MAX_WINDOW}", options.window)));
        }
        if !LINE_BYTES.contains(&options.max_line_bytes) {
            return Err(wrong(format!("the longest line is {} to {} bytes", LINE_BYTES.start(), LINE_BYTES.end())));
        }
        if let Some(bytes) = options.ufs_block_bytes.filter(|bytes| !matches!(bytes, 512 | 4096)) {
            return Err(wrong(format!("UFS blocks have 4096 or 512 bytes, not {bytes}")));
        }
        let mut input = Input::new(source, options.max_line_bytes, options.max_expanded_bytes)
            .map_err(|e| TraceError::of_file(file, Reason::Io, format!("cannot be read: {e}")))?;
        input.refill();
        let mut format = match (&options.columns, options.format) {
            (Some(_), _) => Format::Csv,
            (None, Some(format)) => format,
            (None, None) => recognise(file, &input, options)?,
        };
        if format.is_perfetto() {
            input.expand_packets();
            if options.format.is_none() && !Survey::of(input.bytes()).is_of_ufs() {
                format = Format::PerfettoBlock;
            }
        }
        let names_devices = match format {
            Format::Csv => options.columns.as_ref().is_some_and(Columns::names_devices),
            other => other.names_devices(),
        };
        if matches!(options.devices, Devices::Named(_) | Devices::Units(_)) && !names_devices {
            return Err(wrong(format!("rows of this trace (format {}) name no device to choose by", format.name())));
        }
        let event = match options.event {
            Event::Auto => detect::event(input.bytes(), format),
            chosen => chosen,
        };
        let gate = match (format, &options.devices) {
            // It has the commands of all units, and one is what others call a device.
            (Format::TraceIo, Devices::Single) => Gate::Named(b"0".to_vec()),
            (_, devices) => Gate::new(devices),
        };
        let mut cx = Context::new(gate, event);
        cx.guessed = options.event == Event::Auto && event != Event::Issue;
        let ufs_blocks = match options.ufs_block_bytes {
            Some(bytes) => UfsBlocks::Given(bytes),
            None => detect::ufs_blocks(input.bytes(), format, event),
        };
        cx.ufs_block_bytes = ufs_blocks.bytes();
        cx.object_bytes = object_bytes(format, options).map_err(wrong)?;
        let mut reader = Reader {
            file: file.into(),
            input,
            format,
            lenient: options.lenient,
            within: options.within,
            cx,
            records: records::Layout::default(),
            levels: perfetto::Levels::new(options.window),
            device_name: DeviceName::default(),
            window: Window::new(options.window),
            separators: None,
            ended: false,
            failed: false,
            base: None,
            summary: Summary { ufs_blocks, ..Summary::default() },
            processors: options.processors.filter(|_| format == Format::Blktrace),
        };
        match format.content() {
            Content::Records => reader.layout()?,
            Content::Packets => {}
            Content::Text => reader.header(options.columns.as_ref())?,
        }
        if matches!(options.devices, Devices::Named(_) | Devices::Units(_)) && reader.records.is_nameless() {
            return Err(wrong("records of this trace (lcs of version 1) name no device to choose by".into()));
        }
        Ok(reader)
    }

    /// Reading ends with an error soon after `asked` is set, even if the content yields no request.
    pub fn stop_when(&mut self, asked: Arc<AtomicBool>) {
        self.input.asked = Some(asked);
    }

    /// The format that was recognised or given.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Bytes per object, if the format numbers objects.
    pub fn object_bytes(&self) -> u64 {
        self.cx.object_bytes
    }

    /// Whether records have an operation; if not, all are reads.
    pub(super) fn has_operations(&self) -> bool {
        self.records.has_operations()
    }

    /// The compression that was recognised.
    pub fn compression(&self) -> Compression {
        self.input.compression
    }

    /// Devices that are put on units, and to which no request was found so far.
    pub fn devices_not_found(&self) -> impl Iterator<Item = &str> {
        let (units, seen): (&[TraceUnit], &[bool]) = match &self.cx.gate {
            Gate::Units(units, _, seen) => (units, seen),
            _ => (&[], &[]),
        };
        units.iter().zip(seen).filter(|(_, seen)| !**seen).map(|(unit, _)| unit.name.as_str())
    }

    /// Which event counts as the request, in formats that have several.
    pub fn event(&self) -> Event {
        self.cx.event
    }

    /// Counts so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The next requests; how many. Fewer than `out` has room for only at the end.
    ///
    /// # Errors
    /// The first fault, with its place, and then nothing more, not even what was read before it; in a lenient reader
    /// only what cannot be skipped: failing input, exceeded limits, a trace without any request.
    pub fn fill(&mut self, out: &mut [Request]) -> Result<usize, TraceError> {
        let mut n = 0;
        while n < out.len() && !self.failed {
            let Some((raw, latency)) = self.window.pop(self.ended) else {
                if self.ended {
                    break;
                }
                if let Err(error) = self.read_rows() {
                    self.failed = true;
                    return Err(if self.is_advised(&error) { self.advise(error) } else { error });
                }
                continue;
            };
            let base = *self.base.get_or_insert_with(|| {
                self.summary.first_ns = raw.time;
                raw.time
            });
            self.summary.stamps.take(raw.time);
            out[n] = raw.request(base, latency);
            self.summary.span = out[n].time;
            self.summary.with_latency += u64::from(out[n].latency.is_some());
            n += 1;
        }
        self.summary.requests += n as u64;
        if n == 0 && !out.is_empty() && !self.failed && self.summary.requests == 0 {
            self.failed = true;
            return Err(self.nothing());
        }
        Ok(n)
    }

    #[cold]
    fn nothing(&self) -> TraceError {
        let s = &self.summary;
        let skipped = match s.skips.iter().next() {
            Some((_, _, Place::Line(line), example)) => format!("; first skipped: line {line}, {example}"),
            Some((_, _, Place::Byte(byte), example)) => format!("; first skipped: byte {byte}, {example}"),
            _ => String::new(),
        };
        let layer = match self.format.other_layer().filter(|_| s.other_layer > 0) {
            Some(format) => format!("; format {} would find {}", format.name(), s.other_layer),
            None => String::new(),
        };
        let message = format!(
            "there is no request: of {} rows, {} are no requests, {} are for other devices, {} were \
             skipped{skipped}{layer}",
            s.rows,
            s.other_rows,
            s.other_device,
            s.skips.total()
        );
        TraceError::of_file(&self.file, Reason::Empty, message)
    }

    /// Passes a byte order mark, a header or the line with the version; resolves names of columns.
    fn header(&mut self, columns: Option<&Columns>) -> Result<(), TraceError> {
        if self.input.bytes().starts_with(b"\xEF\xBB\xBF") {
            self.input.skip(3);
        }
        let bytes = self.input.bytes();
        let first = &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())];
        let first = first.strip_suffix(b"\r").unwrap_or(first);
        let header = match self.format {
            Format::Csv => {
                let own = Columns::own();
                let (resolved, header) = columns.unwrap_or(&own).resolve(first).map_err(|m| self.at_start(m))?;
                self.cx.columns = Some(resolved);
                header
            }
            Format::FioV2 | Format::FioV3 => {
                let version = if self.format == Format::FioV2 { 2 } else { 3 };
                if fio::announced(first) != Some(Ok(version)) {
                    let found = excerpt(first);
                    return Err(self.at_start(format!("expected \"fio version {version} iolog\", found \"{found}\"")));
                }
                true
            }
            _ => Format::by_header(first).is_some(),
        };
        let separator = match &self.cx.columns {
            Some(columns) => columns.separator(),
            None => (!self.format.about().headers.is_empty()).then_some(b','),
        };
        self.separators = separator.map(|s| (s, separators_in(s, first)));
        if header {
            self.summary.rows = 1;
            self.input.line();
        }
        Ok(())
    }

    fn at_start(&self, message: String) -> TraceError {
        TraceError {
            file: self.file.clone(),
            place: Place::Line(1),
            reason: Reason::Format,
            message,
            needed_bytes: None,
        }
    }

    fn read_rows(&mut self) -> Result<(), TraceError> {
        let result = self.format.read(self);
        let s = &mut self.summary;
        s.other_layer = self.cx.other_layer;
        s.inversions = self.window.inversions + self.levels.sorter.inversions;
        s.furthest_inversion = self.window.furthest.max(self.levels.sorter.furthest);
        // That format has the replies to all commands, and most are to commands that are no requests.
        s.unmatched_completions = if self.format == Format::TraceIo { 0 } else { self.window.unmatched };
        s.unterminated = self.input.unterminated;
        result
    }

    /// Whether the last line, which has no end, has fewer fields than the first: then its values may not be those
    /// recorded. A cut within its last field goes unnoticed.
    #[cold]
    fn is_cut(&mut self, from: usize, to: usize) -> Result<bool, TraceError> {
        let Some((separator, Some(expected))) = self.separators else { return Ok(false) };
        let Some(found) = separators_in(separator, self.input.slice(from, to)) else { return Ok(false) };
        if found >= expected {
            return Ok(false);
        }
        let (found, expected) = (found + 1, expected + 1);
        let message =
            format!("the last line is cut off: it has {found} fields and no end, where the first has {expected}");
        self.fault(Reason::Truncated, Place::Line(self.summary.rows), message)?;
        Ok(true)
    }

    /// Whether the last line, which has no end, is recognisably a part of a line although it parses.
    #[cold]
    fn is_torn(&mut self, row: &Row, from: usize, to: usize) -> Result<bool, TraceError> {
        let text = self.input.slice(from, to);
        let is_event = matches!(row, Row::Request(_) | Row::Issue(..) | Row::Complete { .. });
        let closes = matches!(self.format, Format::Blkparse | Format::FtraceBlock);
        let ends_with_time = match self.format {
            Format::Mobile | Format::Alibaba => true,
            Format::Csv => self.cx.columns.as_ref().is_some_and(|columns| columns.ends_with_time(text)),
            _ => false,
        };
        let what = match row {
            _ if is_event && closes && !text.trim_ascii_end().ends_with(b"]") => {
                "and no ], with which such a row closes"
            }
            // A time that lost digits is an earlier one. It shows only where rows are in order.
            Row::Request(raw) if ends_with_time && self.window.inversions == 0 && raw.time < self.window.latest => {
                "and ends with a time before that of the rows above, which are in order"
            }
            _ => return Ok(false),
        };
        let message = format!("the last line is cut off: it has no end, {what}");
        self.fault(Reason::Truncated, Place::Line(self.summary.rows), message)?;
        Ok(true)
    }

    /// Passes the blank lines that follow one.
    fn pass_blank(&mut self) -> Result<(), TraceError> {
        let Some(lines) = self.input.pass_blank() else {
            let message = format!("more than {} MiB of blank lines follow; this is no text", MOST_PASSED >> 20);
            return self.fault(Reason::Limit, Place::Line(self.summary.rows), message);
        };
        self.summary.rows += lines;
        self.summary.other_rows += lines;
        Ok(())
    }

    /// A request that is neither too far out of order nor beyond the device.
    #[inline(always)]
    fn is_usual(&self, raw: &Raw) -> bool {
        raw.time >= self.window.given && self.fits(raw)
    }

    #[inline(always)]
    fn fits(&self, raw: &Raw) -> bool {
        self.within.is_none_or(|within| within.holds(raw.op.kind, raw.offset, raw.bytes))
    }

    #[cold]
    fn unusual(&mut self, row: Row, place: Place) -> Result<(), TraceError> {
        let (raw, key): (Raw, Option<u64>) = match row {
            Row::Complete { key, time } => {
                self.window.complete(key, time);
                self.summary.other_rows += 1;
                return Ok(());
            }
            Row::Other => {
                self.summary.other_rows += 1;
                return Ok(());
            }
            Row::OtherDevice => {
                self.summary.other_device += 1;
                return Ok(());
            }
            Row::Lost(n) => {
                self.summary.lost_events = self.summary.lost_events.saturating_add(n);
                return Ok(());
            }
            Row::End => {
                self.ended = true;
                return Ok(());
            }
            Row::Several { key } => {
                let several = std::mem::take(&mut self.cx.several);
                return several.into_iter().try_for_each(|raw| match self.is_usual(&raw) {
                    true => {
                        self.window.push_issued(raw, key);
                        Ok(())
                    }
                    false => self.unusual(Row::Issue(raw, key), place),
                });
            }
            Row::Request(raw) => (raw, None),
            Row::Issue(raw, key) => (raw, Some(key)),
        };
        if let Some(within) = self.within.filter(|_| !self.fits(&raw)) {
            self.summary.beyond += 1;
            self.summary.needed_bytes =
                self.summary.needed_bytes.max(within.needed(raw.op.kind, raw.offset, raw.bytes));
            return self.fault(Reason::Beyond, place, within.message(raw.op.kind, raw.offset, raw.bytes));
        }
        let message = format!(
            "this row is {} earlier than one that is more than the reorder window before it; sort the trace by \
             time, for example with sort",
            Ns(self.window.given.saturating_sub(raw.time))
        );
        self.fault(Reason::Order, place, message)?;
        let raw = Raw { time: self.window.given, ..raw };
        match key {
            Some(key) => self.window.push_issued(raw, key),
            None => self.window.push(raw),
        }
        Ok(())
    }

    /// Whether a larger device would help; unknown for a request beyond its logical unit.
    fn is_advised(&self, error: &TraceError) -> bool {
        error.reason == Reason::Beyond && !matches!(self.cx.gate, Gate::Units(..))
    }

    /// Adds to the error of the first request beyond the device the size that all requests need; reads them all for it.
    #[cold]
    fn advise(&mut self, mut error: TraceError) -> TraceError {
        self.lenient = true;
        while !self.ended && self.read_rows().is_ok() {
            while self.window.pop(true).is_some() {}
        }
        let all_were_read = self.ended && matches!(self.input.stop(), Stop::End);
        error.needed_bytes = Some(self.summary.needed_bytes);
        error.message += &advice(self.summary.beyond, self.summary.needed_bytes, all_were_read);
        error
    }

    /// Counts a fault if it may be skipped, else ends the reading with it.
    #[cold]
    fn fault(&mut self, reason: Reason, place: Place, message: String) -> Result<(), TraceError> {
        if self.lenient && self.summary.skips.note(reason, place, || message.clone()) {
            return Ok(());
        }
        Err(TraceError { file: self.file.clone(), place, reason, message, needed_bytes: None })
    }

    /// No more bytes come.
    fn end(&mut self, place: Place) -> Result<(), TraceError> {
        self.ended = true;
        match stop_error(&self.file, place, &self.input.stop()) {
            None => Ok(()),
            Some(e) => self.fault(e.reason, e.place, e.message),
        }
    }
}

impl ReadRows for Reader {
    /// Reads rows until about [`BATCH`] more requests are in the window. One copy for each format.
    #[inline(always)]
    fn text(&mut self, parse: impl Fn(&[u8], &mut Context) -> Result<Row, RowError>) -> Result<(), TraceError> {
        let target = self.window.len() + BATCH;
        while self.window.len() < target && !self.ended {
            match self.input.line() {
                Line::Text(from, to) => {
                    self.summary.rows += 1;
                    if let Some((separator, expected @ None)) = &mut self.separators {
                        *expected = separators_in(*separator, self.input.slice(from, to));
                    }
                    if self.input.unterminated && self.is_cut(from, to)? {
                        continue;
                    }
                    match parse(self.input.slice(from, to), &mut self.cx).and_then(|row| self.cx.placed(row)) {
                        Ok(row) if self.input.unterminated && self.is_torn(&row, from, to)? => {}
                        Ok(Row::Request(raw)) if self.is_usual(&raw) => self.window.push(raw),
                        Ok(Row::Issue(raw, key)) if self.is_usual(&raw) => {
                            self.window.push_issued(raw, key);
                        }
                        Ok(row) => self.unusual(row, Place::Line(self.summary.rows))?,
                        Err(e) => {
                            let row = self.input.slice(from, to);
                            if is_remark(row) {
                                self.summary.other_rows += 1;
                                self.pass_blank()?;
                            } else if !self.lenient || !self.summary.skips.again(e.reason) {
                                let message = explain(&e, row, self.format, self.cx.columns.as_ref());
                                self.fault(e.reason, Place::Line(self.summary.rows), message)?;
                            }
                        }
                    }
                }
                Line::TooLong => {
                    self.summary.rows += 1;
                    let message = "the line is longer than the limit; this is no text of the format".to_owned();
                    self.fault(Reason::LongLine, Place::Line(self.summary.rows), message)?;
                }
                Line::Endless => {
                    let message = format!("the line is longer than {} MiB; this is no text", MOST_PASSED >> 20);
                    return self.fault(Reason::Limit, Place::Line(self.summary.rows), message);
                }
                Line::End => return self.end(Place::Line(self.summary.rows + 1)),
            }
        }
        Ok(())
    }

    fn records(&mut self) -> Result<(), TraceError> {
        self.read_records()
    }

    fn packets(&mut self) -> Result<(), TraceError> {
        self.read_packets()
    }
}

impl Iterator for Reader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut one = [Request::NONE];
        match self.fill(&mut one) {
            Ok(0) => None,
            Ok(_) => Some(Ok(one[0])),
            Err(e) => Some(Err(e)),
        }
    }
}

/// The factor of the numbers of objects, in bytes.
fn object_bytes(format: Format, options: &Options) -> Result<u64, String> {
    match options.object_bytes {
        Some(bytes) if !format.has_objects() => {
            Err(format!("objects of {bytes} bytes go with oracle-general and lcs, not with {}", format.name()))
        }
        Some(0) => Err("objects count by at least 1 byte".into()),
        Some(bytes) => Ok(bytes.into()),
        None if format.has_objects() => Err(format!(
            "{} numbers objects, and does not say by how many bytes their addresses count; give that (--object-bytes): \
             512 for sectors, 1 for bytes, 4096 for blocks",
            format.name()
        )),
        None => Ok(1),
    }
}

/// Whether a line of text has nothing to say: it is blank, or begins with `#`.
fn is_remark(row: &[u8]) -> bool {
    row.trim_ascii().is_empty() || row[0] == b'#'
}

/// Number of `separator`s in a line, unless the line is blank or a comment.
fn separators_in(separator: u8, row: &[u8]) -> Option<usize> {
    (!is_remark(row)).then(|| memchr::memchr_iter(separator, row).count())
}
