// SPDX-License-Identifier: MIT OR Apache-2.0
//! UPIUs as lines for people, with the names of [`super::text`]. Knows no times and no columns.

use super::text::{Hex, Name, reply_name, status_name};
use readpath_proto::scsi::parse_unmap;
use readpath_proto::typed::{Cdb, FLAG_FUA, HpbNotification, Reply, ReplyBody, Request, RequestBody, Residual};
use readpath_proto::upiu;
use std::fmt::{self, Display, Formatter};

/// What the bytes of a UPIU say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpiuText {
    /// Task tag.
    pub tag: u8,
    /// Logical unit.
    pub lun: u8,
    /// Whether it goes from the device to the host.
    pub is_reply: bool,
    /// The UPIU in words.
    pub text: String,
}

impl UpiuText {
    /// The text of the UPIU in `bytes`, whose parameter list is `data`; the bytes in hexadecimal if neither device nor
    /// host would send such a UPIU.
    pub fn new(bytes: &[u8], data: &[u8]) -> UpiuText {
        let byte = |i: usize| bytes.get(i).copied().unwrap_or_default();
        // Bit 5 of the transaction code says who sends it.
        let (tag, lun, is_reply) = (byte(3), byte(2), byte(0) & 0x20 != 0);
        let text = match is_reply {
            false => upiu::parse_request(bytes).map(|(request, _)| RequestLine(&request, data).to_string()),
            true => upiu::parse_reply(bytes).map(|(reply, _)| ReplyLine(&reply).to_string()),
        };
        let text = text.unwrap_or_else(|error| format!("not understood ({error}): {}", Hex(bytes)));
        UpiuText { tag, lun, is_reply, text }
    }
}

struct RequestLine<'a>(&'a Request, &'a [u8]);

impl Display for RequestLine<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RequestLine(request, data) = *self;
        write!(f, "{}", Name(request))?;
        let cdb = match &request.body {
            RequestBody::NopOut => return Ok(()),
            RequestBody::Query(q) => {
                return write!(f, ": idn {:02X}h, index {}, selector {}", q.idn, q.index, q.selector);
            }
            RequestBody::Task(t) => return write!(f, ": LUN {}, tag {}", t.lun, t.task_tag),
            RequestBody::Command(c) => &c.cdb,
        };
        let range = |f: &mut Formatter, lba: u64, blocks: u32| write!(f, ": {}", Range(lba, blocks));
        let fua = |flags: u8| if flags & FLAG_FUA != 0 { ", FUA" } else { "" };
        match *cdb {
            Cdb::Read { lba, blocks, flags, .. } | Cdb::Write { lba, blocks, flags, .. } => {
                range(f, lba, blocks)?;
                f.write_str(fua(flags))
            }
            Cdb::HpbRead { lba, blocks, entry, flags, read_id } => {
                range(f, lba.into(), blocks.into())?;
                write!(f, ", entry {}", Hex(&entry.0))?;
                if read_id != 0 {
                    write!(f, ", read ID {read_id}")?;
                }
                f.write_str(fua(flags))
            }
            Cdb::HintedRead { lba, blocks, hint, flags } => {
                range(f, lba.into(), blocks)?;
                write!(f, ", entry {}, update seen {}{}", Hex(&hint.entry.0), hint.seen, fua(flags))
            }
            Cdb::Verify10 { lba, blocks, .. } => range(f, lba.into(), blocks.into()),
            Cdb::PreFetch { lba, blocks, .. } => range(f, lba, blocks),
            Cdb::SynchronizeCache { lba, blocks, immed, .. } => {
                range(f, lba, blocks)?;
                f.write_str(if immed { ", immediate" } else { "" })
            }
            Cdb::Unmap { list_bytes } => match parse_unmap(data) {
                Ok(ranges) if list_bytes > 0 => ranges.enumerate().try_for_each(|(i, (lba, blocks))| {
                    let separator = if i == 0 { ':' } else { ';' };
                    write!(f, "{separator} {}", Range(lba, blocks))
                }),
                _ => write!(f, ": list of {list_bytes} bytes"),
            },
            Cdb::ReportZones { start, options, .. } => write!(f, ": from LBA {start}, options {options:02X}h"),
            Cdb::ManageZones { all: true, .. } => f.write_str(": all zones"),
            Cdb::ManageZones { lba, .. } => write!(f, ": LBA {lba}"),
            Cdb::HpbReadBuffer { at, alloc, .. } => {
                write!(f, ": region {}, sub-region {}, {alloc} bytes", at.region, at.index)
            }
            Cdb::HpbInactivate { region } => write!(f, ": region {region}"),
            Cdb::HpbPreRequest { lba, read_id, list_bytes } => {
                write!(f, ": LBA {lba}, read ID {read_id}, list of {list_bytes} bytes")
            }
            Cdb::Inquiry { vpd: Some(page), .. } => write!(f, ": VPD page {page:02X}h"),
            Cdb::ModeSense10 { page, .. } => write!(f, ": page {:02X}h", page & 0x3F),
            Cdb::StartStopUnit { control, .. } => write!(f, ": control {control:02X}h"),
            Cdb::Other(ref bytes) => write!(f, ": {}", Hex(bytes)),
            Cdb::TestUnitReady
            | Cdb::RequestSense { .. }
            | Cdb::Inquiry { vpd: None, .. }
            | Cdb::ReadCapacity10
            | Cdb::ReadCapacity16 { .. }
            | Cdb::ReportLuns { .. }
            | Cdb::HpbInactivateAll => Ok(()),
        }
    }
}

struct Range(u64, u32);

impl Display for Range {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Range(lba, blocks) = *self;
        write!(f, "LBA {lba}, {blocks} block{}", if blocks == 1 { "" } else { "s" })
    }
}

struct ReplyLine<'a>(&'a Reply);

impl Display for ReplyLine<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(reply_name(&self.0.body))?;
        let response = match &self.0.body {
            ReplyBody::NopIn | ReplyBody::Reject => return Ok(()),
            ReplyBody::Query(q) if q.result == 0 => return f.write_str(": success"),
            ReplyBody::Query(q) => return write!(f, ": result {:02X}h", q.result),
            ReplyBody::Task(t) => return write!(f, ": service response {:02X}h", t.service_response),
            ReplyBody::Response(response) => response,
        };
        write!(f, ": {}", status_name(response.status))?;
        if let Some(s) = response.sense {
            write!(f, ", sense {:X}h/{:02X}h/{:02X}h", s.key, s.asc, s.ascq)?;
        }
        match response.residual {
            Residual::None => {}
            Residual::Under(bytes) => write!(f, ", {bytes} bytes fewer than expected")?,
            Residual::Over(bytes) => write!(f, ", {bytes} bytes more than expected")?,
        }
        if response.event_alert {
            f.write_str(", event alert")?;
        }
        response.hpb.iter().try_for_each(|n| notification(f, n))
    }
}

fn notification(f: &mut Formatter, n: &HpbNotification) -> fmt::Result {
    match n.operation {
        HpbNotification::REGION_UPDATE => f.write_str("; HPB region update")?,
        HpbNotification::RESET => f.write_str("; HPB reset")?,
        other => write!(f, "; HPB operation {other:02X}h")?,
    }
    for (i, at) in n.active.iter().take(n.active_count.into()).enumerate() {
        write!(f, "{} {}/{}", if i == 0 { ", activate" } else { "" }, at.region, at.index)?;
    }
    for (i, region) in n.inactive.iter().take(n.inactive_count.into()).enumerate() {
        write!(f, "{} {region}", if i == 0 { ", inactivate" } else { "" })?;
    }
    Ok(())
}
