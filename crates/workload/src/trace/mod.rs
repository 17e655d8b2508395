// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces: read, described, converted and prepared for replay.
//!
//! ```text
//!  bytes ─▶ Reader ─▶ Request ─┬─▶ Analysis ─▶ Info               what the trace is like
//!  (any Read)                  ├─▶ CsvWriter, FioWriter           the trace in another format
//!                              └─▶ Prepare ─▶ Replay ─▶ Loaded    what a device of a given size is asked for
//! ```
//!
//! [`Reader`] recognises compression and format, sorts small inversions, and yields [`Request`]s in order of time, the
//! first at time 0. It takes any `Read` and a name for messages; this part opens no file and reads no clock.
//! Each module under `formats` knows one format; `docs/formats/block-traces.md` describes them all.
//!
//! Bounds: the reader keeps a window of 256 KiB, the decoder's window and `Options::window` requests, whatever the
//! length of the trace; of Perfetto's, 4 MiB and 64 times as many events. [`info`] says what an [`Analysis`] keeps; a
//! [`replay::Replay`] keeps two bits for each block of the device, and [`Loaded`] 16 bytes for each request.

pub mod bench;
mod detect;
mod error;
pub mod example;
mod formats;
pub mod info;
mod input;
mod joined;
mod messages;
pub mod mrc;
mod notes;
mod number;
mod packets;
mod reader;
pub mod replay;
pub mod reuse;
mod sorter;
mod stamps;
mod table;
pub mod upius;
mod window;
pub mod write;

use readpath_kit::Ns;

use crate::IoKind;

pub use detect::UfsBlocks;
pub use error::{Place, Reason, Skips, TraceError};
pub use formats::columns::Columns;
pub use info::{Analysis, Info};
pub use input::{Compression, decompress};
pub use joined::Joined;
pub use messages::Summary;
pub use reader::Reader;
pub use replay::{Fit, Loaded, NO_DEVICE, Prepare, Replay, Speed, TimedIo, Within};
pub use stamps::Stamps;
pub use table::Format;
pub use write::{CsvWriter, FioWriter};

/// Bytes of the sector in which Linux and most traces count.
pub const SECTOR_BYTES: u64 = 512;

/// One request of a trace, as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it was made, from the first request of the trace.
    pub time: Ns,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Length in bytes, at least 1; 0 for a flush. Reads and writes have less than 4 GiB.
    pub bytes: u64,
    /// How long it took, where the trace says so.
    pub latency: Option<Ns>,
    /// Process or thread that made it, where the trace says so.
    pub process: Option<u32>,
    /// Its kind.
    pub kind: IoKind,
    /// Force unit access.
    pub fua: bool,
    /// A write before which everything acknowledged is to be made durable.
    pub preflush: bool,
}

impl Request {
    /// A flush at time 0, to initialise arrays that [`Reader::fill`] will overwrite.
    pub const NONE: Request = Request {
        time: Ns::ZERO,
        offset: 0,
        bytes: 0,
        latency: None,
        process: None,
        kind: IoKind::Flush,
        fua: false,
        preflush: false,
    };

    /// The operation in Readpath's own table: `R`, `W`, `D` for a trim, `F` for a flush; `WF` is a write with force
    /// unit access, `FW` one with a flush before it.
    pub fn letters(&self) -> &'static str {
        match (self.kind, self.preflush, self.fua) {
            (IoKind::Read, ..) => "R",
            (IoKind::Write, false, false) => "W",
            (IoKind::Write, false, true) => "WF",
            (IoKind::Write, true, false) => "FW",
            (IoKind::Write, true, true) => "FWF",
            (IoKind::Trim, ..) => "D",
            (IoKind::Flush, ..) => "F",
        }
    }

    /// Why a reader cannot give this request after one at `last`.
    fn fault(&self, last: Ns) -> Option<&'static str> {
        let size_fits = match self.kind {
            IoKind::Flush => true,
            IoKind::Trim => self.bytes > 0,
            IoKind::Read | IoKind::Write => self.bytes > 0 && self.bytes <= u64::from(u32::MAX),
        };
        if self.time < last {
            return Some("it is earlier than the one before; requests come in order of time");
        }
        if !size_fits {
            return Some("its size is 0, or 4 GiB or more for a read or write");
        }
        self.offset.checked_add(self.bytes).is_none().then_some("it ends beyond 2^64 bytes")
    }
}

/// Which moment in the life of a request counts as the request, in traces that record several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Event {
    /// [`Event::Issue`] if the first 256 KiB have one, else [`Event::Queue`], else [`Event::Complete`].
    #[default]
    Auto,
    /// Entering the block layer (`Q`, `block_bio_queue`).
    Queue,
    /// Going to the driver (`D`, `block_rq_issue`, `send_req`). Its completion then gives the latency.
    Issue,
    /// Coming back (`C`, `block_rq_complete`, `complete_rsp`).
    Complete,
}

/// What to do with requests to several devices (disks, logical units, files) in one trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Devices {
    /// There is one; a second one is an error. In [`Format::TraceIo`], which has all logical units of a device, unit 0;
    /// the others are counted.
    #[default]
    Single,
    /// Only this device, named as in the trace; requests of others are counted.
    Named(String),
    /// All, in one address space, as if they were one device.
    Merge,
    /// These devices, each on a logical unit of its own: addresses are those of all units in a row. Requests of others
    /// are counted.
    Units(Vec<TraceUnit>),
}

/// A device of a trace, and the logical unit that it is put on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceUnit {
    /// Its name in the trace.
    pub name: String,
    /// Start of the unit among all units, in bytes.
    pub first_byte: u64,
    /// Bytes of the unit, from which on a request is a fault of its row.
    pub bytes: u64,
}

/// How to read a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The format, or `None` to recognise it by the content.
    pub format: Option<Format>,
    /// The columns of [`Format::Csv`]; implies that format.
    pub columns: Option<Columns>,
    /// Faults are skipped and counted instead of ending the reading.
    pub lenient: bool,
    /// Which moment is the request.
    pub event: Event,
    /// Which devices.
    pub devices: Devices,
    /// Bytes in which `ufshcd_command` counts LBA: 4096, or 512 in Linux before 5.14. Without it, sequential requests
    /// tell; where there are none, it is 4096.
    pub ufs_block_bytes: Option<u32>,
    /// Bytes by which numbers of objects count, where [`Format::has_objects`]: 512 for sectors, 1 for bytes, 4096 for
    /// blocks. Such a trace cannot be read without it, and it goes with no other.
    pub object_bytes: Option<u32>,
    /// Requests within which rows may be out of order, and a completion must follow; about 100 bytes each.
    pub window: usize,
    /// Longest line in bytes.
    pub max_line_bytes: usize,
    /// Most bytes after decompression.
    pub max_expanded_bytes: u64,
    /// The device that requests have to lie on, if that is known: one that does not is a fault of its row.
    pub within: Option<Within>,
    /// For the file that blktrace wrote for one processor: how many of these are read as one ([`Joined`]).
    pub processors: Option<usize>,
}

impl Options {
    /// Options with the format of a name and the columns of a description, if they are given.
    ///
    /// # Errors
    /// Begins with the option at fault, `format` or `columns`, and says what would be right.
    pub fn of_words(format: Option<&str>, columns: Option<&str>) -> Result<Options, String> {
        let named = |name| {
            Format::by_name(name)
                .ok_or_else(|| format!("format: {name:?} is not a format; there are {}", Format::names()))
        };
        let format = format.map(named).transpose()?;
        let columns = columns.map(Columns::parse).transpose()?;
        if format == Some(Format::Csv) && columns.is_none() {
            return Err("format: csv needs columns; Readpath's own table is recognised without either".to_owned());
        }
        Ok(Options { format, columns, ..Options::default() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            format: None,
            columns: None,
            lenient: false,
            event: Event::Auto,
            devices: Devices::Single,
            ufs_block_bytes: None,
            object_bytes: None,
            window: 4096,
            max_line_bytes: 64 << 10,
            max_expanded_bytes: 1 << 40,
            within: None,
            processors: None,
        }
    }
}
