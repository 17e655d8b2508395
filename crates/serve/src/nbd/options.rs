// SPDX-License-Identifier: MIT OR Apache-2.0
//! Option haggling: what the client may ask before it picks the export. Each option is answered from its data alone
//! and from what was agreed before.

use super::output::Output;
use super::types::{Closed, Export};
use super::wire::{self, Fields, MAX_STRING, info, option, reply, transmission};
use std::borrow::Cow;

/// Longest data of an option that is looked at: an export name and a dozen queries of the longest kind.
pub(super) const MAX_OPTION: u32 = 16 << 10;
/// Longest data of an option that is skipped; beyond that the session ends.
pub(super) const MAX_SKIPPED_OPTION: u32 = 64 << 10;
/// Clients need about ten.
pub(super) const MAX_OPTIONS: u32 = 1000;

/// The only metadata context.
const CONTEXT: &[u8] = b"base:allocation";
/// Asks LIST_META_CONTEXT for every context of its namespace.
const NAMESPACE: &[u8] = b"base:";
/// Names the context in replies to BLOCK_STATUS.
pub(super) const CONTEXT_ID: u32 = 1;

/// What client and server agreed on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Agreed {
    /// The reply to EXPORT_NAME ends without zeros.
    pub no_zeroes: bool,
    /// Structured replies.
    pub structured: bool,
    /// The context `base:allocation`, of the export at this place.
    pub allocation: Option<usize>,
    /// Place of the export that the client chose.
    pub export: usize,
}

/// What follows an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Option,
    Transmission,
}

/// An error reply: its type, and a text.
type Refused = (u32, Cow<'static, str>);

/// The message for an option that is skipped.
pub(super) const TOO_BIG: Refused = (reply::ERR_TOO_BIG, Cow::Borrowed("the option is too long"));

/// The end of a session for an option of `bytes` that is not even skipped. A name that is too long cannot be refused
/// in any other way.
pub(super) fn check_length(option: u32, bytes: u32) -> Result<(), Closed> {
    let limit = if option == option::EXPORT_NAME { MAX_STRING as u32 } else { MAX_SKIPPED_OPTION };
    if bytes > limit { Err(Closed::OptionTooLong { option, bytes, limit }) } else { Ok(()) }
}

/// Answers an option whose `data` came whole.
pub(super) fn answer(
    option: u32,
    data: &[u8],
    exports: &[Export],
    agreed: &mut Agreed,
    output: &mut Output,
) -> Result<Next, Closed> {
    let mut next = Next::Option;
    let refused = match option {
        option::EXPORT_NAME => return export_name(data, exports, agreed, output),
        // The client need not wait for the reply, and whatever it added does not matter.
        option::ABORT => {
            put(output, option, reply::ACK, &[]);
            return Err(Closed::Abort);
        }
        option::LIST => list(data, exports, output),
        option::STARTTLS => Err((reply::ERR_POLICY, "TLS is not offered".into())),
        option::INFO | option::GO => export_info(option, data, exports, agreed, output),
        option::STRUCTURED_REPLY => no_data(data).map(|()| agreed.structured = true),
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => meta_context(option, data, exports, agreed, output),
        _ => Err((reply::ERR_UNSUP, "the option is not supported".into())),
    };
    match refused {
        Ok(()) => {
            put(output, option, reply::ACK, &[]);
            if option == option::GO {
                next = Next::Transmission;
            }
        }
        Err(refused) => refuse(output, option, refused),
    }
    Ok(next)
}

/// Queues an error reply.
pub(super) fn refuse(output: &mut Output, option: u32, (kind, text): Refused) {
    put(output, option, kind, &[text.as_bytes()]);
}

/// Queues one reply, its data in `parts`.
fn put(output: &mut Output, option: u32, kind: u32, parts: &[&[u8]]) {
    output.put(&wire::option_reply(option, kind, parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        output.put(part);
    }
}

fn no_data(data: &[u8]) -> Result<(), Refused> {
    if data.is_empty() { Ok(()) } else { Err((reply::ERR_INVALID, "the option takes no data".into())) }
}

/// Place of the export that a client means by `name`; the empty name is that of the first.
fn place_of(name: &[u8], exports: &[Export]) -> Option<usize> {
    if name.is_empty() { Some(0) } else { exports.iter().position(|export| name == export.name.as_bytes()) }
}

/// As [`place_of`].
fn find(name: &[u8], exports: &[Export]) -> Result<usize, Refused> {
    place_of(name, exports).ok_or_else(|| {
        let names: Vec<&str> = exports.iter().map(|export| &*export.name).collect();
        (reply::ERR_UNKNOWN, format!("no such export; there are: {}", names.join(", ")).into())
    })
}

fn transmission_flags(export: &Export, agreed: Agreed) -> u16 {
    use transmission::*;
    let mut flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE;
    flags |= if export.read_only { READ_ONLY } else { SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO };
    if agreed.structured {
        flags |= SEND_DF;
    }
    flags
}

fn export_name(name: &[u8], exports: &[Export], agreed: &mut Agreed, output: &mut Output) -> Result<Next, Closed> {
    let unknown = || Closed::UnknownExport(String::from_utf8_lossy(name).into_owned());
    agreed.export = place_of(name, exports).ok_or_else(unknown)?;
    let export = &exports[agreed.export];
    output.put(&export.bytes.to_be_bytes());
    output.put(&transmission_flags(export, *agreed).to_be_bytes());
    if !agreed.no_zeroes {
        output.put(&[0; wire::EXPORT_NAME_ZEROES]);
    }
    Ok(Next::Transmission)
}

fn list(data: &[u8], exports: &[Export], output: &mut Output) -> Result<(), Refused> {
    no_data(data)?;
    for export in exports {
        let name_bytes = (export.name.len() as u32).to_be_bytes();
        let parts = [&name_bytes[..], export.name.as_bytes(), export.description.as_bytes()];
        put(output, option::LIST, reply::SERVER, &parts);
    }
    Ok(())
}

/// Size, flags and block sizes are always sent, names only on request.
fn export_info(
    option: u32,
    data: &[u8],
    exports: &[Export],
    agreed: &mut Agreed,
    output: &mut Output,
) -> Result<(), Refused> {
    let cut_off = (reply::ERR_INVALID, "name or information requests are cut off".into());
    let (name, wanted) = parse_info(data).ok_or(cut_off)?;
    let place = find(name, exports)?;
    let export = &exports[place];
    agreed.export = place;
    let mut send = |kind: u16, parts: [&[u8]; 3]| {
        put(output, option, reply::INFO, &[&kind.to_be_bytes(), parts[0], parts[1], parts[2]]);
    };
    let wants = |kind: u16| wanted.chunks_exact(2).any(|id| id == kind.to_be_bytes());
    let flags = transmission_flags(export, *agreed);
    send(info::EXPORT, [&export.bytes.to_be_bytes(), &flags.to_be_bytes(), &[]]);
    if wants(info::NAME) {
        send(info::NAME, [export.name.as_bytes(), &[], &[]]);
    }
    if wants(info::DESCRIPTION) && !export.description.is_empty() {
        send(info::DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
    }
    let sizes = [export.min_block, export.preferred_block, export.payload_limit()].map(u32::to_be_bytes);
    send(info::BLOCK_SIZE, [&sizes[0], &sizes[1], &sizes[2]]);
    Ok(())
}

/// The name and the information requests, two bytes each.
fn parse_info(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    (fields.0.len() == usize::from(count) * 2).then_some((name, fields.0))
}

fn meta_context(
    option: u32,
    data: &[u8],
    exports: &[Export],
    agreed: &mut Agreed,
    output: &mut Output,
) -> Result<(), Refused> {
    let set = option == option::SET_META_CONTEXT;
    if set {
        // Each choice replaces the one before, also when it fails.
        agreed.allocation = None;
        if !agreed.structured {
            return Err((reply::ERR_INVALID, "structured replies must be negotiated first".into()));
        }
    }
    let cut_off = (reply::ERR_INVALID, "name or queries are cut off".into());
    let (name, matched) = parse_queries(data, !set).ok_or(cut_off)?;
    let place = find(name, exports)?;
    if matched {
        // Only a choice gives the context a number.
        let id = if set { CONTEXT_ID } else { 0 };
        put(output, option, reply::META_CONTEXT, &[&id.to_be_bytes(), CONTEXT]);
    }
    if set && matched {
        agreed.allocation = Some(place);
    }
    Ok(())
}

/// The export's name, and whether the queries ask for the context. A list may also be of everything.
fn parse_queries(data: &[u8], list: bool) -> Option<(&[u8], bool)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u32()?;
    let mut matched = list && count == 0;
    for _ in 0..count {
        let query = fields.string()?;
        matched |= query == CONTEXT || list && query == NAMESPACE;
    }
    fields.end()?;
    Some((name, matched))
}
