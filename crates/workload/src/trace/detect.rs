// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises the format of a trace by its beginning, and which of several events in it counts.

use super::formats::{blkparse, blktrace, fio, ftrace, perfetto};
use super::{Event, Format};

/// What the beginning of a trace is.
pub(super) enum Detected {
    Format(Format),
    /// A known kind in a version that is not supported.
    Unsupported(String),
    Unknown,
}

/// Recognises the format of content that begins with `head`.
pub(super) fn format(head: &[u8]) -> Detected {
    if let blktrace::Magic::Version(v) = blktrace::magic(head) {
        return Detected::Unsupported(format!("blktrace records of version {v}; version 7 can be read"));
    }
    if let Some(format) = Format::by_start(head) {
        return Detected::Format(format);
    }
    if let Some(Err(version)) = rows(head).next().and_then(fio::announced) {
        return Detected::Unsupported(format!("fio I/O log of version {version}; versions 2 and 3 can be read"));
    }
    match rows(head).find_map(Format::by_row) {
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
