// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts of the reader: the account of a trace, and the messages about its faults.

use super::detect::{self, Detected};
use super::error::{Place, Reason, RowError, Skips, TraceError, excerpt};
use super::formats::columns::Resolved;
use super::formats::perfetto;
use super::input::{Input, Stop, XZ_MEMORY};
use super::packets::ZSTD_WINDOW_LOG;
use super::{Format, Options, Stamps, UfsBlocks};
use readpath_kit::Ns;

/// Counts of a reader; complete when it has ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Lines of text or binary records read, headers and comments included.
    pub rows: u64,
    /// Requests given out.
    pub requests: u64,
    /// Time from the first request to the last.
    pub span: Ns,
    /// Time of the first as recorded, in nanoseconds of the trace's own clock.
    pub first_ns: u64,
    /// How fine their times are.
    pub stamps: Stamps,
    /// Requests with a latency.
    pub with_latency: u64,
    /// Rows that came after one with a later time, and were sorted.
    pub inversions: u64,
    /// The longest time that one of them was behind.
    pub furthest_inversion: Ns,
    /// Rows that are no requests: events that do not count, commands that move no data, file management.
    pub other_rows: u64,
    /// Requests that ftrace recorded in the other layer, of block layer and UFS driver, than the format reads.
    pub other_layer: u64,
    /// Requests to devices that were not asked for.
    pub other_device: u64,
    /// Requests that do not lie on the device.
    pub beyond: u64,
    /// Bytes of a device on which all of these requests would lie; [`super::NO_DEVICE`] if there is none so large.
    pub needed_bytes: u64,
    /// Completions without their request.
    pub unmatched_completions: u64,
    /// Events that the recorder says it lost; of Perfetto's traces, bundles that say so.
    pub lost_events: u64,
    /// In which bytes a trace of the UFS driver counts addresses, and how that is known.
    pub ufs_blocks: UfsBlocks,
    /// The last line had no newline; the trace may be cut off.
    pub unterminated: bool,
    /// What a lenient reader left out or, for [`Reason::Order`], moved to the time of the request before.
    pub skips: Skips,
}

/// The error for the end of the input, if it is one.
pub(super) fn stop_error(file: &str, place: Place, stop: &Stop) -> Option<TraceError> {
    let (reason, message) = match stop {
        Stop::End => return None,
        Stop::Limit => (Reason::Limit, "the content is larger than the limit on expanded bytes".into()),
        Stop::Damaged(e) => (Reason::Truncated, format!("the compressed content is cut off or damaged: {e}")),
        Stop::Memory => {
            let message = format!(
                "decompressing it takes more memory than is allowed: a window of {} MiB for zstd, {} MiB in all for \
                 xz; compress it anew with a smaller window",
                (1 << ZSTD_WINDOW_LOG) >> 20,
                XZ_MEMORY >> 20
            );
            (Reason::Limit, message)
        }
        Stop::Asked => (Reason::Io, "reading was stopped".into()),
        Stop::Io(e) => (Reason::Io, format!("cannot be read: {e}")),
    };
    Some(TraceError { file: file.into(), place, reason, message, needed_bytes: None })
}

pub(super) fn recognise(file: &str, input: &Input, options: &Options) -> Result<Format, TraceError> {
    let head = input.bytes();
    match detect::format(head) {
        Detected::Format(format) => Ok(format),
        Detected::Unsupported(what) => Err(TraceError::of_file(file, Reason::Format, what)),
        Detected::Unknown => {
            // For an empty input, the reason of its end says more.
            let place = match input.stop() {
                Stop::Damaged(_) => Place::Byte(head.len() as u64),
                _ => Place::File,
            };
            if let Some(e) = stop_error(file, place, &input.stop()).filter(|_| head.is_empty() || !options.lenient) {
                return Err(e);
            }
            if head.trim_ascii().is_empty() && input.has_more() {
                let message = format!(
                    "the first {} KiB are blank; name the format (--format) if a trace follows",
                    head.len() >> 10
                );
                return Err(TraceError::of_file(file, Reason::Format, message));
            }
            if head.trim_ascii().is_empty() {
                return Err(TraceError::of_file(file, Reason::Empty, "it is empty; a trace has at least one request"));
            }
            let first = &head[..memchr::memchr(b'\n', head).unwrap_or(head.len())];
            let mut message = format!(
                "the format is not recognised (it begins with \"{}\"); give the columns of a table, or one of the \
                 formats {}",
                excerpt(first),
                Format::names()
            );
            if let Some(format) = Format::by_likeness(first.trim_ascii_end()) {
                message += &format!("; rows of format {} look like this one", format.name());
            }
            if perfetto::may_be_trace(head) {
                message += "; if it is a trace of Perfetto, --format perfetto-block says where it is damaged";
            }
            Err(TraceError::of_file(file, Reason::Format, message))
        }
    }
}

/// The message about a row, with the shape that rows of the format have, or the format that this row seems to have.
#[cold]
pub(super) fn explain(e: &RowError, row: &[u8], format: Format, columns: Option<&Resolved>) -> String {
    let message = match columns.filter(|_| e.reason == Reason::Operation) {
        Some(columns) => e.message(row, &columns.operations()),
        None => e.message(row, e.expected),
    };
    if e.reason != Reason::Syntax && e.reason != Reason::Number && e.reason != Reason::Operation {
        return message;
    }
    match Format::by_row(row) {
        Some(other) if other != format => {
            format!("{message}; this is a row of format {}, not {}", other.name(), format.name())
        }
        _ => format!("{message}; a row of format {} is {}", format.name(), format.about().shape),
    }
}
