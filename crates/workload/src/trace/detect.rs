// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises the format of a trace by its beginning, and which of several events in it counts.

use super::formats::{Context, Gate, Raw, Row, blkparse, blktrace, fio, ftrace, perfetto};
use super::{Event, Format};
use std::collections::VecDeque;

/// In which bytes the UFS driver of a trace counts addresses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UfsBlocks {
    /// The trace is not of that driver.
    #[default]
    None,
    /// As the options say.
    Given(u32),
    /// As requests say that begin where others end, in the beginning of the trace.
    Seen(u32),
    /// No request there begins where another ends: 4096, which may be wrong.
    Assumed,
}

impl UfsBlocks {
    /// The bytes.
    pub(super) fn bytes(self) -> u64 {
        match self {
            UfsBlocks::Given(bytes) | UfsBlocks::Seen(bytes) => bytes.into(),
            UfsBlocks::None | UfsBlocks::Assumed => 4096,
        }
    }
}

/// Requests among which the one before is looked for: several streams may be mixed.
const NEAR: usize = 32;

/// In which bytes the UFS driver counted addresses. Linux 5.14 changed them from sectors to blocks, which a trace does
/// not say; but the step of a sequential stream in addresses is its size in one unit or the other.
pub(super) fn ufs_blocks(head: &[u8], format: Format, event: Event) -> UfsBlocks {
    let mut cx = Context::new(Gate::Merge, event);
    cx.ufs_block_bytes = 1;
    let mut found = Vec::new();
    let mut take = |row| {
        if let Ok(Row::Issue(raw, _) | Row::Request(raw)) = row {
            found.push(raw);
        }
    };
    match format {
        Format::FtraceUfs => rows(head).for_each(|row| take(ftrace::ufs(row, &mut cx))),
        Format::PerfettoUfs => perfetto::ufs_commands(head, &mut cx).for_each(take),
        _ => return UfsBlocks::None,
    }
    let mut near: VecDeque<&Raw> = VecDeque::with_capacity(NEAR);
    let (mut in_sectors, mut in_blocks) = (0, 0);
    for raw in found.iter().filter(|raw| raw.bytes > 0) {
        // A device has blocks of 4 KiB, so an address that is no multiple of 8 is none in sectors.
        in_blocks += u32::from(raw.offset % 8 != 0);
        let steps =
            |bytes: u64| near.iter().any(|one| one.op == raw.op && one.offset + one.bytes / bytes == raw.offset);
        in_sectors += u32::from(steps(512));
        in_blocks += u32::from(steps(4096));
        if near.len() == NEAR {
            near.pop_front();
        }
        near.push_back(raw);
    }
    match in_sectors.cmp(&in_blocks) {
        std::cmp::Ordering::Greater => UfsBlocks::Seen(512),
        std::cmp::Ordering::Less => UfsBlocks::Seen(4096),
        std::cmp::Ordering::Equal => UfsBlocks::Assumed,
    }
}

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
