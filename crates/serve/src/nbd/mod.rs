// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server's side of one NBD connection (network block device), without any input or output of its own: bytes of the
//! client go in, requests come out, replies go in, bytes for the client come out.
//!
//! Knows the fixed newstyle handshake and the transmission phase with simple and structured replies (`doc/proto.md` of
//! the NetworkBlockDevice project). Does not know sockets, TLS, or what an export is made of.
//!
//! The client is not trusted. Nothing that it sends panics, and a session holds at most the input buffer of 64 KiB, one
//! payload and 8 MiB of spare buffers, and the output. Its driver bounds the output by not reading from a
//! client that takes no replies ([`Session::output_bytes`]): what the session says by itself are the replies to at most
//! 1000 options, and to refused requests at most four times their bytes.

mod input;
mod options;
mod output;
mod requests;
#[cfg(test)]
mod tests;
mod types;
mod wire;

use input::Input;
use options::{Agreed, Next};
use output::{Output, Spare};
pub use readpath_run::rules::Errno;
use requests::{Header, Refusal};
use std::rc::Rc;
pub use types::{Closed, Command, Event, Export, Extent, Request};
use wire::{Fields, REQUEST_BYTES, chunk, command, handshake};

/// Payloads up to this wait in the input buffer and are copied: one read takes many of them. Longer ones are read into
/// their own buffer.
const COPIED_PAYLOAD: usize = 8 << 10;

/// One connection.
pub struct Session {
    exports: Rc<[Export]>,
    agreed: Agreed,
    phase: Phase,
    /// Options that came.
    options: u32,
    input: Input,
    output: Output,
    spare: Spare,
}

/// What the next bytes are.
enum Phase {
    ClientFlags,
    Option,
    /// Data of an option that is too long.
    SkippedOption {
        option: u32,
        remaining: u32,
    },
    Request,
    /// Data of a WRITE, of which the first `filled` bytes came.
    Payload {
        handle: u64,
        offset: u64,
        fua: bool,
        data: Vec<u8>,
        filled: usize,
    },
    /// Data of a WRITE that is refused.
    SkippedPayload {
        handle: u64,
        remaining: u32,
        refusal: Refusal,
    },
    Closed,
}

/// What a phase made of the bytes that came: a request, or nothing but a next phase, or the end. `None`: it needs more.
type Step = Option<Result<Option<Request>, Closed>>;

impl Session {
    /// A connection that was just accepted, to one of these exports; its greeting waits in the output.
    pub fn new(exports: Rc<[Export]>) -> Self {
        let mut output = Output::default();
        output.put(&wire::SERVER_MAGIC.to_be_bytes());
        output.put(&wire::OPTION_MAGIC.to_be_bytes());
        output.put(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
        Session {
            exports,
            agreed: Agreed::default(),
            phase: Phase::ClientFlags,
            options: 0,
            input: Input::new(),
            output,
            spare: Spare::default(),
        }
    }

    /// Space for the next bytes of the client. Not empty once [`Session::poll`] has no event; before that it may be.
    /// After [`Event::Closed`] these bytes are ignored.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.phase {
            Phase::Payload { data, filled, .. } => &mut data[*filled..],
            _ => self.input.space(),
        }
    }

    /// `bytes` came into the front of [`Session::space`].
    pub fn filled(&mut self, bytes: usize) {
        match &mut self.phase {
            Phase::Payload { data, filled, .. } => *filled = filled.saturating_add(bytes).min(data.len()),
            Phase::Closed => {}
            _ => self.input.filled(bytes),
        }
    }

    /// The next thing to do, if enough has come. [`Event::Closed`] comes once, and nothing after it.
    pub fn poll(&mut self) -> Option<Event> {
        loop {
            match self.step()? {
                Ok(Some(request)) => return Some(Event::Request(request)),
                Ok(None) => {}
                Err(closed) => {
                    self.phase = Phase::Closed;
                    self.input.take(self.input.bytes().len());
                    return Some(Event::Closed(closed));
                }
            }
        }
    }

    /// Whether the handshake is over and the client may send requests.
    pub fn is_transmitting(&self) -> bool {
        matches!(self.phase, Phase::Request | Phase::Payload { .. } | Phase::SkippedPayload { .. })
    }

    /// Place of the export that the client chose, once it sends requests.
    pub fn export(&self) -> usize {
        self.agreed.export
    }

    fn step(&mut self) -> Step {
        match &mut self.phase {
            Phase::Request => self.request(),
            Phase::Payload { .. } => self.payload(),
            Phase::SkippedPayload { handle, remaining, refusal } => {
                let (handle, (errno, message)) = (*handle, *refusal);
                self.input.skip(remaining)?;
                self.phase = Phase::Request;
                self.reply_error(handle, errno, message);
                Some(Ok(None))
            }
            Phase::ClientFlags => self.client_flags(),
            Phase::Option => self.option(),
            Phase::SkippedOption { option, remaining } => {
                self.input.skip(remaining)?;
                options::refuse(&mut self.output, *option, options::TOO_BIG);
                self.phase = Phase::Option;
                Some(Ok(None))
            }
            Phase::Closed => None,
        }
    }

    fn client_flags(&mut self) -> Step {
        let flags = Fields(self.input.bytes()).u32()?;
        let no_zeroes = u32::from(handshake::NO_ZEROES);
        if flags & !(u32::from(handshake::FIXED_NEWSTYLE) | no_zeroes) != 0 {
            return Some(Err(Closed::ClientFlags(flags)));
        }
        // A client that does not know the fixed handshake sends only EXPORT_NAME; it needs no other treatment.
        self.agreed.no_zeroes = flags & no_zeroes != 0;
        self.input.take(size_of_val(&flags));
        self.phase = Phase::Option;
        Some(Ok(None))
    }

    fn option(&mut self) -> Step {
        let mut fields = Fields(self.input.bytes());
        let (magic, option, bytes) = (fields.u64()?, fields.u32()?, fields.u32()?);
        if magic != wire::OPTION_MAGIC {
            return Some(Err(Closed::OptionMagic(magic)));
        }
        if self.options == options::MAX_OPTIONS {
            return Some(Err(Closed::TooManyOptions(options::MAX_OPTIONS)));
        }
        if let Err(closed) = options::check_length(option, bytes) {
            return Some(Err(closed));
        }
        let mut taken = wire::OPTION_BYTES;
        let next = if bytes > options::MAX_OPTION {
            Ok(Phase::SkippedOption { option, remaining: bytes })
        } else {
            let data = fields.0.get(..bytes as usize)?;
            taken += data.len();
            match options::answer(option, data, &self.exports, &mut self.agreed, &mut self.output) {
                Ok(Next::Option) => Ok(Phase::Option),
                Ok(Next::Transmission) => Ok(Phase::Request),
                Err(closed) => Err(closed),
            }
        };
        self.options += 1;
        self.input.take(taken);
        Some(next.map(|phase| {
            self.phase = phase;
            None
        }))
    }

    fn request(&mut self) -> Step {
        let bytes = self.input.bytes();
        let header = match Header::parse(bytes)? {
            Ok(header) => header,
            Err(magic) => return Some(Err(Closed::RequestMagic(magic))),
        };
        let is_write = match header.kind {
            command::DISC => return Some(Err(Closed::Disconnect)),
            command::WRITE if header.bytes > Export::LARGEST_PAYLOAD => {
                return Some(Err(Closed::PayloadTooLong(header.bytes)));
            }
            kind => kind == command::WRITE,
        };
        let Header { handle, offset, bytes: expected, .. } = header;
        let mut command = match header.check(&self.exports[self.agreed.export], self.agreed) {
            Ok(command) => command,
            Err(refusal) => {
                self.input.take(REQUEST_BYTES);
                if is_write {
                    self.phase = Phase::SkippedPayload { handle, remaining: expected, refusal };
                } else {
                    self.reply_error(handle, refusal.0, refusal.1);
                }
                return Some(Ok(None));
            }
        };
        let mut taken = REQUEST_BYTES;
        if let Command::Write { data, fua } = &mut command {
            let came = &bytes[REQUEST_BYTES..];
            let Some(whole) = came.get(..expected as usize) else {
                if expected as usize > COPIED_PAYLOAD {
                    let (data, filled) = (self.spare.begin(came, expected as usize), came.len());
                    self.phase = Phase::Payload { handle, offset, fua: *fua, data, filled };
                    self.input.take(REQUEST_BYTES + filled);
                }
                return None;
            };
            *data = self.spare.copy(whole);
            taken += whole.len();
        }
        self.input.take(taken);
        Some(Ok(Some(Request { handle, offset, bytes: expected, command })))
    }

    fn payload(&mut self) -> Step {
        let Phase::Payload { handle, offset, fua, data, filled } = &mut self.phase else { return None };
        if *filled < data.len() {
            return None;
        }
        let (bytes, command) = (data.len() as u32, Command::Write { data: std::mem::take(data), fua: *fua });
        let request = Request { handle: *handle, offset: *offset, bytes, command };
        self.phase = Phase::Request;
        Some(Ok(Some(request)))
    }
}

/// Replies and what becomes of them. They may come in any order, and also after [`Event::Closed`].
impl Session {
    /// Request `handle`, not a READ or BLOCK_STATUS, is done.
    pub fn reply_done(&mut self, handle: u64) {
        // Simple replies are allowed without payload, and shorter.
        self.output.put(&wire::simple_reply(handle, 0));
    }

    /// Request `handle` failed. The client sees `message` if it takes structured replies, of long ones only the first
    /// 4096 bytes.
    pub fn reply_error(&mut self, handle: u64, error: Errno, message: &str) {
        if !self.agreed.structured {
            self.output.put(&wire::simple_reply(handle, error as u32));
            return;
        }
        let mut bytes = message.len().min(wire::MAX_STRING);
        while !message.is_char_boundary(bytes) {
            bytes -= 1;
        }
        self.output.put(&wire::only_chunk(handle, chunk::ERROR, 4 + 2 + bytes));
        self.output.put(&(error as u32).to_be_bytes());
        self.output.put(&(bytes as u16).to_be_bytes());
        self.output.put(&message.as_bytes()[..bytes]);
    }

    /// Answers READ `handle` with all its bytes; `offset` is that of the request. The buffer can be used again once it
    /// is sent ([`Session::take_spare_buffer`]).
    pub fn reply_data(&mut self, handle: u64, offset: u64, data: Vec<u8>) {
        if self.agreed.structured {
            let offset = offset.to_be_bytes();
            self.output.put(&wire::only_chunk(handle, chunk::OFFSET_DATA, offset.len() + data.len()));
            self.output.put_with_data(&offset, data);
        } else {
            self.output.put_with_data(&wire::simple_reply(handle, 0), data);
        }
    }

    /// Answers BLOCK_STATUS `handle` with at least one extent, and only one if the client wants no more. They begin at
    /// the request's offset, and together are not longer than it.
    pub fn reply_status(&mut self, handle: u64, extents: &[Extent]) {
        debug_assert!(!extents.is_empty(), "the protocol wants at least one extent");
        self.output.put(&wire::only_chunk(handle, chunk::BLOCK_STATUS, 4 + 8 * extents.len()));
        self.output.put(&options::CONTEXT_ID.to_be_bytes());
        for extent in extents {
            let hole = if extent.hole { wire::STATE_HOLE } else { 0 };
            let zero = if extent.zero { wire::STATE_ZERO } else { 0 };
            self.output.put(&extent.bytes.to_be_bytes());
            self.output.put(&(hole | zero).to_be_bytes());
        }
    }

    /// What waits to be sent, in order; no slice is empty.
    pub fn output(&self) -> impl Iterator<Item = &[u8]> {
        self.output.slices()
    }

    /// The first `bytes` of the output were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.output.sent(bytes, &mut self.spare);
    }

    /// Whether bytes wait to be sent.
    pub fn has_output(&self) -> bool {
        self.output.bytes() > 0
    }

    /// How many bytes wait to be sent. A client that lets them pile up should not be read from.
    pub fn output_bytes(&self) -> usize {
        self.output.bytes()
    }

    /// A buffer of a READ that was sent or of a WRITE that was given back, with whatever length and content it had.
    pub fn take_spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.spare.take()
    }

    /// Keeps a buffer that is no longer needed, such as that of a WRITE, for use again.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.spare.give(buffer);
    }
}
