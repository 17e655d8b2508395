// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfer of requests and replies: as values, or encoded to UPIUs and parsed again, with equal results.

use readpath_proto::typed::{Cdb, Command, Reply, Request, RequestBody};
use readpath_proto::upiu::{self, UpiuError};

/// A failed transfer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A UPIU that our own encoder made could not be parsed.
    #[error("a UPIU did not survive its encoding: {0}")]
    Upiu(#[from] UpiuError),
    /// A host controller did not respond to its driver as required.
    #[error("the host controller: {0}")]
    Controller(String),
}

/// A request, or a reply, and the bytes that accompany it.
pub type Crossed<'a, T = Request> = (&'a T, &'a [u8]);

/// Carries requests and replies. Tests implement it to drop, delay or change them.
pub trait Wire {
    /// Whether requests pass unchanged and unobserved, so that they need not be built as requests at all.
    #[inline(always)]
    fn is_open(&self) -> bool {
        false
    }

    /// Host to device, with the accompanying bytes: a parameter list, or the entries in an extra header segment.
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError>;
    /// Device to host, with the accompanying bytes: a descriptor, entries, or other data-in besides blocks.
    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError>;

    /// Controller and device are reset: transfers in progress are dropped.
    fn reset(&mut self) {}
}

/// As values.
#[derive(Default)]
pub struct Typed;

impl Wire for Typed {
    #[inline(always)]
    fn is_open(&self) -> bool {
        true
    }

    #[inline(always)]
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        Ok((request, data))
    }

    #[inline(always)]
    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        Ok((reply, data))
    }
}

/// Through bytes. Bulk data (descriptors, parameter lists, entries) is bytes in any case and is passed separately,
/// except the extra header segment of an HPB READ, which is part of the request.
#[derive(Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    request: Option<Request>,
    reply: Option<Reply>,
}

impl Wire for Encoded {
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        let is_read = matches!(request.body, RequestBody::Command(Command { cdb: Cdb::HpbRead { .. }, .. }));
        upiu::encode_request(request, if is_read { data } else { &[] }, &mut self.bytes);
        let (request, header) = upiu::parse_request(&self.bytes)?;
        Ok((self.request.insert(request), if is_read { header } else { data }))
    }

    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        upiu::encode_reply(reply, &[], &mut self.bytes);
        Ok((self.reply.insert(upiu::parse_reply(&self.bytes)?.0), data))
    }
}

/// Either way, chosen when a run begins.
pub enum AnyWire {
    /// As values.
    Typed(Typed),
    /// Through bytes.
    Encoded(Encoded),
}

impl AnyWire {
    /// Through bytes if `encoded`, otherwise as values.
    pub fn new(encoded: bool) -> Self {
        if encoded { AnyWire::Encoded(Encoded::default()) } else { AnyWire::Typed(Typed) }
    }
}

impl Wire for AnyWire {
    #[inline(always)]
    fn is_open(&self) -> bool {
        matches!(self, AnyWire::Typed(_))
    }

    #[inline(always)]
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        match self {
            AnyWire::Typed(wire) => wire.request(request, data),
            AnyWire::Encoded(wire) => wire.request(request, data),
        }
    }

    #[inline(always)]
    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        match self {
            AnyWire::Typed(wire) => wire.reply(reply, data),
            AnyWire::Encoded(wire) => wire.reply(reply, data),
        }
    }
}
