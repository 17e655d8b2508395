// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a session takes and gives. Knows no bytes.

/// An export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its name, at most 4096 bytes. Clients may also ask for the empty name.
    pub name: String,
    /// Text of at most 4096 bytes; may be empty.
    pub description: String,
    /// Its size.
    pub bytes: u64,
    /// Whether writes, trims and zeroing are refused.
    pub read_only: bool,
    /// Every offset and length must be a multiple of this, the size too. A power of two; usually 1.
    pub min_block: u32,
    /// Requests should be a multiple of this. A power of two; usually 4096.
    pub preferred_block: u32,
    /// Longest READ and WRITE; more than [`Export::LARGEST_PAYLOAD`] has no effect. Usually 32 MiB, which clients that
    /// do not ask take for granted.
    pub max_payload: u32,
}

impl Export {
    /// Announced payloads above this end the session instead of being skipped.
    pub const LARGEST_PAYLOAD: u32 = 256 << 20;

    /// The longest READ and WRITE that is served.
    pub(super) fn payload_limit(&self) -> u32 {
        self.max_payload.min(Self::LARGEST_PAYLOAD)
    }
}

/// What a client wants next.
#[derive(PartialEq, Eq, Debug)]
pub enum Event {
    /// A request that passed all checks of the protocol. It must be answered once.
    Request(Request),
    /// Nothing more comes from this client.
    Closed(Closed),
}

/// One request. Its range lies inside the export.
#[derive(PartialEq, Eq, Debug)]
pub struct Request {
    /// The client's name for it, which the reply repeats. Clients may use one twice.
    pub handle: u64,
    /// First byte; for a flush, the value that the client sent.
    pub offset: u64,
    /// Number of bytes, at least 1; for a flush, the value that the client sent.
    pub bytes: u32,
    /// What to do.
    pub command: Command,
}

/// What a request asks for. `fua`: it is on stable storage before the reply.
#[derive(PartialEq, Eq, Debug)]
pub enum Command {
    /// Answered by [`Session::reply_data`](super::Session::reply_data) with all bytes.
    Read,
    /// Write `data`.
    Write {
        /// The data, with the length of the request.
        data: Vec<u8>,
        /// Force unit access.
        fua: bool,
    },
    /// Writes that were answered before are on stable storage before the reply.
    Flush,
    /// The range is no longer needed.
    Trim {
        /// Force unit access.
        fua: bool,
    },
    /// The range reads as zeros from now on.
    WriteZeroes {
        /// Force unit access.
        fua: bool,
        /// The range stays allocated.
        no_hole: bool,
        /// Answered with [`Errno::NotSup`](super::Errno::NotSup) when it would take as long as a WRITE of zeros.
        fast: bool,
    },
    /// The range will be read soon.
    Cache,
    /// Answered by [`Session::reply_status`](super::Session::reply_status).
    BlockStatus {
        /// Only the first extent is wanted.
        one: bool,
    },
}

/// Status of consecutive bytes in the context `base:allocation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// How many, at least 1.
    pub bytes: u32,
    /// Not allocated.
    pub hole: bool,
    /// They read as zeros.
    pub zero: bool,
}

/// Why a session is over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Closed {
    /// DISC: pending requests should be answered before the connection is closed.
    #[error("the client disconnected")]
    Disconnect,
    /// ABORT: the output, which acknowledges it, should be sent before the connection is closed.
    #[error("the client ended the negotiation")]
    Abort,
    /// Flags of the client that are not in the protocol.
    #[error("client flags {0:#010x} are not those of the fixed newstyle handshake")]
    ClientFlags(u32),
    /// An option does not begin as options do.
    #[error("an option begins with {0:#018x}; it must be IHAVEOPT (0x49484156454f5054)")]
    OptionMagic(u64),
    /// An option is too long even to be skipped.
    #[error("option {option} has {bytes} bytes of data; at most {limit} are read")]
    OptionTooLong {
        /// Its number.
        option: u32,
        /// Its length.
        bytes: u32,
        /// What would have been read.
        limit: u32,
    },
    /// The client negotiates without end.
    #[error("the client sent more than {0} options")]
    TooManyOptions(u32),
    /// EXPORT_NAME with another name; its reply cannot say so.
    #[error("export {0:?} is not served here")]
    UnknownExport(String),
    /// A request does not begin as requests do.
    #[error("a request begins with {0:#010x}; it must be 0x25609513")]
    RequestMagic(u32),
    /// A WRITE is too long even to be skipped.
    #[error("a WRITE announces {0} bytes; at most {limit} are read", limit = Export::LARGEST_PAYLOAD)]
    PayloadTooLong(u32),
}

impl Closed {
    /// Whether the client broke the protocol, rather than leaving in one of the two ways that it may.
    pub fn is_error(&self) -> bool {
        !matches!(self, Closed::Disconnect | Closed::Abort)
    }
}
