// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which format a trace has, told by its beginning, and which of several events in it counts.

use super::formats::columns::OWN_HEADER;
use super::formats::{
    Context, Gate, Row, blkparse, blktrace, csv, fio, ftrace, libcachesim, perfetto, trace_io, vscsi,
};
use super::{Devices, Event, Format};

/// What the beginning of a trace tells.
pub(super) enum Detected {
    Format(Format),
    /// A known kind in a version that is not supported.
    Unsupported(String),
    Unknown,
}

/// Recognises the format of content that begins with `head`.
pub(super) fn format(head: &[u8]) -> Detected {
    match blktrace::magic(head) {
        blktrace::Magic::Known(_) => return Detected::Format(Format::Blktrace),
        blktrace::Magic::Version(v) => {
            return Detected::Unsupported(format!("blktrace records of version {v}; version 7 can be read"));
        }
        blktrace::Magic::No => {}
    }
    if libcachesim::is_lcs(head) {
        return Detected::Format(Format::Lcs);
    }
    if vscsi::recognise(head).is_some() {
        return Detected::Format(Format::Vscsi);
    }
    if perfetto::is_trace(head) {
        // Which of the two is seen when it is expanded.
        return Detected::Format(Format::PerfettoUfs);
    }
    if let Some(Err(version)) = rows(head).next().and_then(fio::announced) {
        return Detected::Unsupported(format!("fio I/O log of version {version}; versions 2 and 3 can be read"));
    }
    match rows(head).find_map(row) {
        // Each UFS command is a request of the block layer too; the one nearer to the device counts.
        Some(Format::FtraceBlock) if rows(head).any(|r| ftrace::event(r, true).is_some()) => {
            Detected::Format(Format::FtraceUfs)
        }
        Some(format) => Detected::Format(format),
        // Other events may fill the beginning; which requests there are is seen later.
        None if rows(head).any(|r| r.starts_with(ftrace::HEADER)) => Detected::Format(Format::FtraceUfs),
        None => Detected::Unknown,
    }
}

/// Complete rows, and the last one as well.
fn rows(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(head)
        .split(|&b| b == b'\n')
        .map(|r| r.strip_suffix(b"\r").unwrap_or(r))
}

/// The format that one row must be of.
pub(super) fn row(row: &[u8]) -> Option<Format> {
    if let Some(Ok(format)) = fio::announced(row) {
        return Some(format);
    }
    if row.starts_with(OWN_HEADER.as_bytes()) {
        return Some(Format::Csv);
    }
    if let Some(format) = csv::header(row) {
        return Some(format);
    }
    let cx = &mut Context::new(Gate::new(&Devices::Merge), Event::Issue);
    let request = |r| matches!(r, Ok(Row::Request(_)));
    if request(csv::msr(row, cx)) {
        return Some(Format::MsrCambridge);
    }
    if request(csv::systor(row, cx)) {
        return Some(Format::Systor17);
    }
    if request(csv::mobile(row, cx)) {
        return Some(Format::Mobile);
    }
    if trace_io::is_event(row) {
        return Some(Format::TraceIo);
    }
    if blkparse::action(row).is_some() {
        return Some(Format::Blkparse);
    }
    if ftrace::event(row, true).is_some() {
        return Some(Format::FtraceUfs);
    }
    ftrace::event(row, false).map(|_| Format::FtraceBlock)
}

/// The format that has to be named, of which this row seems to be: other tables may have such rows too, in other units.
pub(super) fn named_row(row: &[u8]) -> Option<Format> {
    let cx = &mut Context::new(Gate::new(&Devices::Merge), Event::Issue);
    if matches!(csv::alibaba(row, cx), Ok(Row::Request(_))) {
        return Some(Format::Alibaba);
    }
    matches!(csv::tencent(row, cx), Ok(Row::Request(_))).then_some(Format::Tencent)
}

/// Which event counts when the user did not say: issue, else queue, else completion, by what `head` has.
pub(super) fn event(head: &[u8], format: Format) -> Event {
    let events: Box<dyn Iterator<Item = Event> + '_> = match format {
        Format::Blkparse => Box::new(rows(head).filter_map(|r| blkparse::action(r).and_then(blkparse::event))),
        Format::FtraceUfs => Box::new(rows(head).filter_map(|r| ftrace::event(r, true))),
        Format::FtraceBlock => Box::new(rows(head).filter_map(|r| ftrace::event(r, false))),
        Format::Blktrace => Box::new(records(head).filter_map(|r| r.event())),
        Format::PerfettoUfs | Format::PerfettoBlock => {
            return perfetto::Survey::of(head).event(format == Format::PerfettoUfs);
        }
        _ => return Event::Issue,
    };
    let mut found = None;
    for event in events {
        match event {
            Event::Issue => return event,
            Event::Complete if found.is_some() => {}
            _ => found = Some(event),
        }
    }
    found.unwrap_or(Event::Issue)
}

fn records(head: &[u8]) -> impl Iterator<Item = blktrace::Record> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = head.get(at..)?.first_chunk()?;
        let blktrace::Magic::Known(order) = blktrace::magic(bytes) else { return None };
        let record = blktrace::Record::parse(bytes, order);
        at += blktrace::RECORD_BYTES + record.payload;
        Some(record)
    })
}
