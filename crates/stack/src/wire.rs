// SPDX-License-Identifier: MIT OR Apache-2.0
//! How requests and replies cross: as values, or encoded to UPIUs and parsed again, which must make no difference.

use readpath_proto::typed::{Reply, Request};
use readpath_proto::upiu::{self, UpiuError};
use std::cell::RefCell;

/// A UPIU that our own encoder made could not be parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a UPIU did not survive its encoding: {0}")]
pub struct WireError(#[from] pub UpiuError);

/// Carries requests and replies.
pub trait Wire {
    /// Host to device; `data` is the data segment or parameter list.
    fn request(&self, request: &Request) -> Result<Request, WireError>;
    /// Device to host.
    fn reply(&self, reply: &Reply) -> Result<Reply, WireError>;
}

/// As values.
#[derive(Default)]
pub struct Typed;

impl Wire for Typed {
    #[inline(always)]
    fn request(&self, request: &Request) -> Result<Request, WireError> {
        Ok(*request)
    }

    #[inline(always)]
    fn reply(&self, reply: &Reply) -> Result<Reply, WireError> {
        Ok(*reply)
    }
}

/// Through bytes. Bulk data (descriptors, parameter lists, entries) is bytes in any case and passes beside.
#[derive(Default)]
pub struct Encoded {
    buffer: RefCell<Vec<u8>>,
}

impl Wire for Encoded {
    fn request(&self, request: &Request) -> Result<Request, WireError> {
        let mut bytes = self.buffer.borrow_mut();
        upiu::encode_request(request, &[], &mut bytes);
        Ok(upiu::parse_request(&bytes)?.0)
    }

    fn reply(&self, reply: &Reply) -> Result<Reply, WireError> {
        let mut bytes = self.buffer.borrow_mut();
        upiu::encode_reply(reply, &[], &mut bytes);
        Ok(upiu::parse_reply(&bytes)?.0)
    }
}
