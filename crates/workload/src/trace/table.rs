// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of trace formats: name, what recognises it, how it is read, and what a row of it says. Detection, the
//! values of `--format`, errors and the table in the book follow from it.

use super::error::RowError;
use super::formats::columns::{self, OWN_HEADER};
use super::formats::{
    Context, Gate, Row, blkparse, blktrace, csv, fio, ftrace, libcachesim, perfetto, trace_io, vscsi,
};
use super::{Devices, Event, TraceError};

/// How the rows of a format are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Lines.
    Text,
    /// Binary records.
    Records,
    /// Packets of Perfetto.
    Packets,
}

/// Reads rows of one kind of content until there are some more requests.
pub(super) trait ReadRows {
    /// Lines, each of which `parse` makes a row of.
    fn text(&mut self, parse: impl Fn(&[u8], &mut Context) -> Result<Row, RowError>) -> Result<(), TraceError>;

    /// Binary records.
    fn records(&mut self) -> Result<(), TraceError>;

    /// Packets of Perfetto.
    fn packets(&mut self) -> Result<(), TraceError>;
}

/// What recognises a format. Where it has headers, each of them does too.
pub(super) enum Recognised {
    /// The beginning of the content.
    Start(fn(&[u8]) -> bool),
    /// A row.
    RowShape(fn(&[u8]) -> bool),
    /// A header.
    Header,
    /// Its name, or a header that the trace may lack. A row that looks like one of the format is a hint: other tables
    /// have such rows too, in other units.
    Name(fn(&[u8]) -> bool),
}

/// One format.
pub(super) struct About {
    /// What its header may begin with, in any case. A format with headers is a table with commas, but for `csv`.
    pub headers: &'static [&'static str],
    recognised: Recognised,
    /// What a row looks like, for messages.
    pub shape: &'static str,
    /// Unit of time, units of address and size, latency, and process, for the book.
    units: [&'static str; 4],
}

use Recognised::{Header, Name, RowShape, Start};

/// A format with the row of the table that describes it.
macro_rules! formats {
    ($($variant:ident = $name:literal, $recorded:literal, $content:ident $(($parser:path))?: $about:expr;)+) => {
        readpath_kit::named! {
            /// A format of traces.
            #[derive(Hash)]
            pub enum Format {
                $(#[doc = $recorded] $variant = $name,)+
            }
        }

        impl Format {
            /// Its row of the table.
            pub(super) fn about(self) -> &'static About {
                match self {
                    $(Format::$variant => const { &$about },)+
                }
            }

            /// How its rows are read.
            pub(super) fn content(self) -> Content {
                match self {
                    $(Format::$variant => Content::$content,)+
                }
            }

            /// Description for the book.
            fn recorded(self) -> &'static str {
                match self {
                    $(Format::$variant => $recorded,)+
                }
            }

            /// Reads some rows; each format has a copy of its own, with the parser inlined.
            pub(super) fn read(self, rows: &mut impl ReadRows) -> Result<(), TraceError> {
                match self {
                    $(Format::$variant => formats!(rows $content $($parser)?),)+
                }
            }
        }
    };
    ($rows:ident Text $parser:path) => {
        $rows.text($parser)
    };
    ($rows:ident Records) => {
        $rows.records()
    };
    ($rows:ident Packets) => {
        $rows.packets()
    };
}

formats! {
    MsrCambridge = "msr",
        "MSR Cambridge: `timestamp,host,disk,Read\\|Write,offset,size,response`",
        Text(csv::msr): About {
        headers: &["Timestamp,Hostname,DiskNumber"],
        recognised: RowShape(|row| is_request(csv::msr, row)),
        shape: "timestamp,host,disk,Read|Write,offset,size,response",
        units: ["100 ns", "bytes", "yes", "–"],
    };
    Systor17 = "systor17",
        "SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`",
        Text(csv::systor): About {
        headers: &["Timestamp,Response,IOType"],
        recognised: RowShape(|row| is_request(csv::systor, row)),
        shape: "Timestamp,Response,IOType,LUN,Offset,Size",
        units: ["s", "bytes", "yes", "–"],
    };
    CloudPhysics = "cloudphysics",
        "CloudPhysics: `version,time,op,size,lbn`; `op` is a SCSI operation code in hexadecimal",
        Text(csv::cloudphysics): About {
        headers: &["version,time,op,size,lbn"],
        recognised: Header,
        shape: "version,time,op,size,lbn",
        units: ["s", "512 bytes; bytes", "–", "–"],
    };
    Mobile = "mobile",
        "MobileBlockIOTraces: `process,device,rw_flag,sector,size,timestamp` (also `proces`)",
        Text(csv::mobile): About {
        headers: &["process,device,rw_flag", "proces,device,rw_flag"],
        recognised: RowShape(|row| is_request(csv::mobile, row)),
        shape: "process,device,rw_flag,sector,size,timestamp",
        units: ["s", "512 bytes", "–", "yes"],
    };
    Alibaba = "alibaba",
        "Alibaba block traces: `device_id,opcode,offset,length,timestamp`",
        Text(csv::alibaba): About {
        headers: &["device_id,opcode,offset,length,timestamp"],
        recognised: Name(|row| is_request(csv::alibaba, row)),
        shape: "device_id,opcode,offset,length,timestamp",
        units: ["us", "bytes", "–", "–"],
    };
    Tencent = "tencent",
        "Tencent CBS: `timestamp,offset,size,iotype,volumeid`",
        Text(csv::tencent): About {
        headers: &["Timestamp,Offset,Size,IOType,VolumeID"],
        recognised: Name(|row| is_request(csv::tencent, row)),
        shape: "timestamp,offset,size,iotype,volumeid",
        units: ["s", "512 bytes", "–", "–"],
    };
    Blkparse = "blkparse",
        "text of `blkparse` in its default format",
        Text(blkparse::row): About {
        headers: &[],
        recognised: RowShape(|row| blkparse::action(row).is_some()),
        shape: "MAJOR,MINOR CPU SEQUENCE TIME PID ACTION RWBS SECTOR + SECTORS [PROCESS]",
        units: ["s", "512 bytes", "from completions", "yes"],
    };
    Blktrace = "blktrace",
        "binary of `blktrace`, version 7, either byte order",
        Records: About {
        headers: &[],
        recognised: Start(|head| matches!(blktrace::magic(head), blktrace::Magic::Known(_))),
        shape: "a record with the magic number 0x65617407",
        units: ["ns", "512 bytes; bytes", "from completions", "yes"],
    };
    Vscsi = "vscsi",
        "binary of VMware's `vscsiStats`, versions 1 and 2",
        Records: About {
        headers: &[],
        recognised: Start(|head| vscsi::recognise(head).is_some()),
        shape: "32 bytes (version 1) or 40 (version 2)",
        units: ["us", "512 bytes; bytes", "–", "–"],
    };
    OracleGeneral = "oracle-general",
        "libCacheSim's `oracleGeneral`: objects, no operations",
        Records: About {
        headers: &[],
        recognised: Name(|_| false),
        shape: "24 bytes: time (4), object (8), size (4), next access (8)",
        units: ["s", "`--object-bytes`; bytes", "–", "–"],
    };
    Lcs = "lcs",
        "libCacheSim's `lcs`, versions 1 to 8",
        Records: About {
        headers: &[],
        recognised: Start(libcachesim::is_lcs),
        shape: "24 to 100 bytes: time (4), object (8), size, and more",
        units: ["s", "`--object-bytes`; bytes", "–", "–"],
    };
    FioV2 = "fio2",
        "fio I/O log, version 2; no times but `wait` in us",
        Text(fio::v2): About {
        headers: &[],
        recognised: RowShape(|row| fio::announced(row) == Some(Ok(2))),
        shape: "FILE ACTION [OFFSET LENGTH]",
        units: ["us", "bytes", "–", "–"],
    };
    FioV3 = "fio3",
        "fio I/O log, version 3",
        Text(fio::v3): About {
        headers: &[],
        recognised: RowShape(|row| fio::announced(row) == Some(Ok(3))),
        shape: "TIME FILE ACTION [OFFSET LENGTH]",
        units: ["us", "bytes", "–", "–"],
    };
    FtraceUfs = "ftrace-ufs",
        "ftrace text with `ufshcd_command`",
        Text(ftrace::ufs): About {
        headers: &[],
        recognised: RowShape(|row| ftrace::event(row, true).is_some()),
        shape: "TASK-PID [CPU] FLAGS TIME: ufshcd_command: send_req: DEVICE: tag: N, ...",
        units: ["s", "4 KiB; bytes", "from completions", "yes"],
    };
    FtraceBlock = "ftrace-block",
        "ftrace text with `block_rq_issue`, `block_rq_complete`, `block_bio_queue`",
        Text(ftrace::block): About {
        headers: &[],
        recognised: RowShape(|row| ftrace::event(row, false).is_some()),
        shape: "TASK-PID [CPU] FLAGS TIME: block_rq_issue: MAJOR,MINOR RWBS BYTES () SECTOR + SECTORS",
        units: ["s", "512 bytes", "from completions", "yes"],
    };
    PerfettoUfs = "perfetto-ufs",
        "Perfetto (`.pftrace`) with `ufshcd_command`",
        Packets: About {
        headers: &[],
        recognised: Start(perfetto::is_trace),
        shape: "TracePacket { ftrace_events { event { ufshcd_command } } }",
        units: ["ns", "4 KiB; bytes", "from completions", "yes"],
    };
    PerfettoBlock = "perfetto-block",
        "Perfetto with `block_rq_issue`, `block_rq_complete`, `block_bio_queue`",
        Packets: About {
        headers: &[],
        recognised: Start(perfetto::is_trace),
        shape: "TracePacket { ftrace_events { event { block_rq_issue } } }",
        units: ["ns", "512 bytes", "from completions", "yes"],
    };
    TraceIo = "trace-io",
        "[`--trace-io` and `attach --trace-io`](trace-io.md): COMMAND UPIUs",
        Text(trace_io::row): About {
        headers: &[],
        recognised: RowShape(trace_io::is_event),
        shape: "{\"name\":\"COMMAND UPIU\",\"cat\":\"upiu\",\"ts\":TIME,\"args\":{\"request\":N,\"upiu\":\"HEX\"}},",
        units: ["us, three decimals", "4 KiB", "from RESPONSE UPIUs", "–"],
    };
    Csv = "csv",
        "any table, see below",
        Text(columns::row): About {
        headers: &[OWN_HEADER],
        recognised: Header,
        shape: "TIME, OPERATION, OFFSET and SIZE, in the order of the table's header or of its description",
        units: ["as given", "as given", "if there", "if there"],
    };
}

impl Format {
    /// Whether rows name a device, so that [`Devices`] has a meaning; tables only with a `device` column.
    pub(super) fn names_devices(self) -> bool {
        !matches!(self, Format::CloudPhysics | Format::Vscsi | Format::OracleGeneral)
    }

    /// Whether requests go to numbered objects, whose unit only [`super::Options::object_bytes`] says.
    pub fn has_objects(self) -> bool {
        matches!(self, Format::OracleGeneral | Format::Lcs)
    }

    /// The format that reads the other layer's requests from the same text.
    pub(super) fn other_layer(self) -> Option<Format> {
        match self {
            Format::FtraceUfs => Some(Format::FtraceBlock),
            Format::FtraceBlock => Some(Format::FtraceUfs),
            Format::PerfettoUfs => Some(Format::PerfettoBlock),
            Format::PerfettoBlock => Some(Format::PerfettoUfs),
            _ => None,
        }
    }

    /// Whether it is a trace of Perfetto.
    pub(super) fn is_perfetto(self) -> bool {
        self.content() == Content::Packets
    }

    /// The names of all formats, for messages.
    pub(super) fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    /// The format that content which begins with `head` has. Which of Perfetto's two shows when it is expanded.
    pub(super) fn by_start(head: &[u8]) -> Option<Format> {
        Format::ALL.into_iter().find(|format| matches!(format.about().recognised, Start(is) if is(head)))
    }

    /// The format of which `row` is the header.
    pub(super) fn by_header(row: &[u8]) -> Option<Format> {
        let begins =
            |with: &&str| row.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
        Format::ALL.into_iter().find(|format| format.about().headers.iter().any(begins))
    }

    /// The format that `row` must be of.
    pub(super) fn by_row(row: &[u8]) -> Option<Format> {
        let is_row = |format: &Format| matches!(format.about().recognised, RowShape(is) if is(row));
        Format::by_header(row).or_else(|| Format::ALL.into_iter().find(is_row))
    }

    /// The format that has to be named, of which `row` seems to be.
    pub(super) fn by_likeness(row: &[u8]) -> Option<Format> {
        Format::ALL.into_iter().find(|format| matches!(format.about().recognised, Name(is) if is(row)))
    }

    /// The table of formats in Markdown, for the book. An asterisk marks those that have to be named.
    pub fn reference() -> String {
        let head = "| Name | Recorded by | Time | Address, size | Latency | Process |\n|---|---|---|---|---|---|\n";
        Format::ALL.into_iter().fold(head.to_owned(), |text, format| {
            let About { recognised, units, .. } = format.about();
            let mark = if matches!(recognised, Name(_)) { " \\*" } else { "" };
            format!("{text}| `{}`{mark} | {} | {} |\n", format.name(), format.recorded(), units.join(" | "))
        })
    }
}

/// Whether `parse` makes a request of `row`.
fn is_request(parse: fn(&[u8], &mut Context) -> Result<Row, RowError>, row: &[u8]) -> bool {
    matches!(parse(row, &mut Context::new(Gate::new(&Devices::Merge), Event::Issue)), Ok(Row::Request(_)))
}
