// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and replies as the text of JSON members: names of commands as the standards print them (SPC-4, SBC-3,
//! JESD220, JESD220-3), their fields, what became of them. Knows nothing of events, tracks or writers.

use readpath_kit::Ns;
use readpath_proto::typed::{
    Cdb, FLAG_FUA, Form, HpbNotification, Reply, ReplyBody, Request, RequestBody, Residual, Response, Status,
    ZoneAction,
};
use std::fmt::{self, Display, Formatter};

/// A time in microseconds with its nanoseconds, exactly.
pub(super) struct Us(pub Ns);

impl Display for Us {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1_000, self.0.0 % 1_000)
    }
}

/// Bytes in lower-case hexadecimal.
pub(super) struct Hex<'a>(pub &'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Text escaped for a JSON string.
pub(super) struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            // Line separators of old JavaScript would break a line's end too.
            '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' => write!(f, "\\u{:04x}", u32::from(c)),
            c => write!(f, "{c}"),
        })
    }
}

/// What a request is called.
pub(super) struct Name<'a>(pub &'a Request);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let by_form = |f: &mut Formatter, name: &str, form: Form| {
            let bytes = match form {
                Form::Six => 6,
                Form::Ten => 10,
                Form::Sixteen => 16,
            };
            write!(f, "{name} ({bytes})")
        };
        let cdb = match &self.0.body {
            RequestBody::NopOut => return f.write_str("NOP OUT"),
            RequestBody::Query(q) => return f.write_str(query_name(q.opcode)),
            RequestBody::Task(t) => return f.write_str(task_name(t.function)),
            RequestBody::Command(c) => &c.cdb,
        };
        f.write_str(match cdb {
            Cdb::Read { form, .. } => return by_form(f, "READ", *form),
            Cdb::Write { form, .. } => return by_form(f, "WRITE", *form),
            Cdb::PreFetch { form, .. } => return by_form(f, "PRE-FETCH", *form),
            Cdb::SynchronizeCache { form, .. } => return by_form(f, "SYNCHRONIZE CACHE", *form),
            Cdb::Other(bytes) => return write!(f, "opcode {:02X}h", bytes[0]),
            Cdb::TestUnitReady => "TEST UNIT READY",
            Cdb::RequestSense { .. } => "REQUEST SENSE",
            Cdb::Inquiry { .. } => "INQUIRY",
            Cdb::ModeSense10 { .. } => "MODE SENSE (10)",
            Cdb::StartStopUnit { .. } => "START STOP UNIT",
            Cdb::ReadCapacity10 => "READ CAPACITY (10)",
            Cdb::ReadCapacity16 { .. } => "READ CAPACITY (16)",
            Cdb::ReportLuns { .. } => "REPORT LUNS",
            Cdb::Verify10 { .. } => "VERIFY (10)",
            Cdb::Unmap { .. } => "UNMAP",
            Cdb::ReportZones { .. } => "REPORT ZONES",
            Cdb::ManageZones { action: ZoneAction::Close, .. } => "CLOSE ZONE",
            Cdb::ManageZones { action: ZoneAction::Finish, .. } => "FINISH ZONE",
            Cdb::ManageZones { action: ZoneAction::Open, .. } => "OPEN ZONE",
            Cdb::ManageZones { action: ZoneAction::Reset, .. } => "RESET WRITE POINTER",
            Cdb::HpbRead { .. } => "HPB READ",
            Cdb::HintedRead { .. } => "READ (16) with HPB entry",
            Cdb::HpbReadBuffer { .. } => "HPB READ BUFFER",
            Cdb::HpbInactivate { .. } => "HPB WRITE BUFFER inactivate region",
            Cdb::HpbPreRequest { .. } => "HPB WRITE BUFFER pre-request",
            Cdb::HpbInactivateAll => "HPB WRITE BUFFER inactivate all",
        })
    }
}

fn query_name(opcode: u8) -> &'static str {
    match opcode {
        1 => "READ DESCRIPTOR",
        2 => "WRITE DESCRIPTOR",
        3 => "READ ATTRIBUTE",
        4 => "WRITE ATTRIBUTE",
        5 => "READ FLAG",
        6 => "SET FLAG",
        7 => "CLEAR FLAG",
        8 => "TOGGLE FLAG",
        _ => "QUERY",
    }
}

fn task_name(function: u8) -> &'static str {
    match function {
        0x01 => "ABORT TASK",
        0x02 => "ABORT TASK SET",
        0x04 => "CLEAR TASK SET",
        0x08 => "LOGICAL UNIT RESET",
        0x80 => "QUERY TASK",
        0x81 => "QUERY TASK SET",
        _ => "TASK MANAGEMENT",
    }
}

/// The UPIU that carries a request.
pub(super) fn request_name(body: &RequestBody) -> &'static str {
    match body {
        RequestBody::NopOut => "NOP OUT",
        RequestBody::Command(_) => "COMMAND",
        RequestBody::Query(_) => "QUERY REQUEST",
        RequestBody::Task(_) => "TASK MANAGEMENT REQUEST",
    }
}

/// The UPIU that carries a reply.
pub(super) fn reply_name(body: &ReplyBody) -> &'static str {
    match body {
        ReplyBody::NopIn => "NOP IN",
        ReplyBody::Response(_) => "RESPONSE",
        ReplyBody::Query(_) => "QUERY RESPONSE",
        ReplyBody::Task(_) => "TASK MANAGEMENT RESPONSE",
        ReplyBody::Reject => "REJECT",
    }
}

/// The fields of a request as members, each followed by a comma.
pub(super) struct Details<'a>(pub &'a Request);

impl Display for Details<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, r#""lun":{},"#, self.0.lun)?;
        let cdb = match &self.0.body {
            RequestBody::NopOut => return Ok(()),
            RequestBody::Query(q) => {
                return write!(f, r#""idn":{},"index":{},"selector":{},"#, q.idn, q.index, q.selector);
            }
            RequestBody::Task(t) => return write!(f, r#""task_lun":{},"task_tag":{},"#, t.lun, t.task_tag),
            RequestBody::Command(c) => &c.cdb,
        };
        let range = |f: &mut Formatter, lba: u64, blocks: u32| write!(f, r#""lba":{lba},"blocks":{blocks},"#);
        match *cdb {
            Cdb::Read { lba, blocks, flags, .. } | Cdb::Write { lba, blocks, flags, .. } => {
                range(f, lba, blocks)?;
                if flags & FLAG_FUA != 0 { f.write_str(r#""fua":true,"#) } else { Ok(()) }
            }
            Cdb::HpbRead { lba, blocks, entry, read_id, .. } => {
                range(f, lba.into(), blocks.into())?;
                write!(f, r#""entry":"{}","#, Hex(&entry.0))?;
                if read_id != 0 { write!(f, r#""read_id":{read_id},"#) } else { Ok(()) }
            }
            Cdb::HintedRead { lba, blocks, hint, .. } => {
                range(f, lba.into(), blocks)?;
                write!(f, r#""entry":"{}","update_seen":{},"#, Hex(&hint.entry.0), hint.seen)
            }
            Cdb::Verify10 { lba, blocks, .. } => range(f, lba.into(), blocks.into()),
            Cdb::PreFetch { lba, blocks, .. } | Cdb::SynchronizeCache { lba, blocks, .. } => range(f, lba, blocks),
            Cdb::HpbReadBuffer { at, alloc, .. } => {
                write!(f, r#""region":{},"sub_region":{},"bytes":{alloc},"#, at.region, at.index)
            }
            Cdb::HpbInactivate { region } => write!(f, r#""region":{region},"#),
            Cdb::HpbPreRequest { lba, read_id, list_bytes } => {
                write!(f, r#""lba":{lba},"read_id":{read_id},"bytes":{list_bytes},"#)
            }
            Cdb::Unmap { list_bytes } => write!(f, r#""bytes":{list_bytes},"#),
            Cdb::ReportZones { start, options, .. } => write!(f, r#""lba":{start},"options":{options},"#),
            Cdb::ManageZones { lba, all, .. } => write!(f, r#""lba":{lba},"all":{all},"#),
            Cdb::Inquiry { vpd: Some(page), .. } => write!(f, r#""vpd":{page},"#),
            Cdb::ModeSense10 { page, .. } => write!(f, r#""page":{},"#, page & 0x3F),
            Cdb::Other(ref bytes) => write!(f, r#""cdb":"{}","#, Hex(bytes)),
            Cdb::TestUnitReady
            | Cdb::RequestSense { .. }
            | Cdb::Inquiry { vpd: None, .. }
            | Cdb::StartStopUnit { .. }
            | Cdb::ReadCapacity10
            | Cdb::ReadCapacity16 { .. }
            | Cdb::ReportLuns { .. }
            | Cdb::HpbInactivateAll => Ok(()),
        }
    }
}

/// What became of a request, as members without a comma at the end.
pub(super) struct Outcome<'a>(pub Option<&'a Reply>);

impl Display for Outcome<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let status = |f: &mut Formatter, text: &str| write!(f, r#""status":"{text}""#);
        let Some(reply) = self.0 else { return status(f, "no reply") };
        match &reply.body {
            ReplyBody::NopIn => status(f, "NOP IN"),
            ReplyBody::Reject => status(f, "REJECT"),
            ReplyBody::Query(q) if q.result == 0 => status(f, "success"),
            ReplyBody::Query(q) => write!(f, r#""status":"query result {:02X}h""#, q.result),
            ReplyBody::Task(t) => write!(f, r#""status":"service response {:02X}h""#, t.service_response),
            ReplyBody::Response(r) => response(f, r),
        }
    }
}

pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Good => "GOOD",
        Status::CheckCondition => "CHECK CONDITION",
        Status::Busy => "BUSY",
        Status::ReservationConflict => "RESERVATION CONFLICT",
        Status::TaskSetFull => "TASK SET FULL",
        Status::TaskAborted => "TASK ABORTED",
    }
}

fn response(f: &mut Formatter, r: &Response) -> fmt::Result {
    write!(f, r#""status":"{}""#, status_name(r.status))?;
    if let Some(s) = r.sense {
        write!(f, r#","sense":"{:X}h/{:02X}h/{:02X}h""#, s.key, s.asc, s.ascq)?;
    }
    match r.residual {
        Residual::None => {}
        Residual::Under(bytes) => write!(f, r#","underflow":{bytes}"#)?,
        Residual::Over(bytes) => write!(f, r#","overflow":{bytes}"#)?,
    }
    if r.event_alert { f.write_str(r#","event_alert":true"#) } else { Ok(()) }
}

/// An HPB notification as members without a comma at the end. Sub-regions are written as region/sub-region.
pub(super) struct Notification<'a>(pub &'a HpbNotification);

impl Display for Notification<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let n = self.0;
        match n.operation {
            HpbNotification::REGION_UPDATE => f.write_str(r#""operation":"region update""#)?,
            HpbNotification::RESET => f.write_str(r#""operation":"reset""#)?,
            other => write!(f, r#""operation":"{other:02X}h""#)?,
        }
        write!(f, r#","lun":{},"activate":["#, n.lun)?;
        for (i, at) in n.active.iter().take(n.active_count.into()).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, r#"{comma}"{}/{}""#, at.region, at.index)?;
        }
        f.write_str(r#"],"inactivate":["#)?;
        for (i, region) in n.inactive.iter().take(n.inactive_count.into()).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{region}")?;
        }
        f.write_str("]")
    }
}
