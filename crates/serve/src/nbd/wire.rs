// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and fixed layouts of the NBD protocol (`doc/proto.md` of the NetworkBlockDevice project). All fields are
//! big-endian. Knows no rule about what may follow what.

/// `NBDMAGIC`, the first bytes of a server.
pub(super) const SERVER_MAGIC: u64 = 0x4E42_444D_4147_4943;
/// `IHAVEOPT`, ahead of every option and in the greeting of a newstyle server.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668E_33EF;

/// Magic, option and length.
pub(super) const OPTION_BYTES: usize = 16;
/// Magic, flags, type, handle, offset and length.
pub(super) const REQUEST_BYTES: usize = 28;
/// The longest string that the protocol allows.
pub(super) const MAX_STRING: usize = 4096;
/// Reserved zeros after the reply to EXPORT_NAME.
pub(super) const EXPORT_NAME_ZEROES: usize = 124;

/// Handshake flags; those of the server and of the client have the same values.
pub(super) mod handshake {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub(crate) const NO_ZEROES: u16 = 1 << 1;
}

/// Options (`NBD_OPT_*`).
pub(super) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Types of option replies (`NBD_REP_*`).
pub(super) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    const ERR: u32 = 1 << 31;
    pub(crate) const ERR_UNSUP: u32 = ERR | 1;
    pub(crate) const ERR_POLICY: u32 = ERR | 2;
    pub(crate) const ERR_INVALID: u32 = ERR | 3;
    pub(crate) const ERR_UNKNOWN: u32 = ERR | 6;
    pub(crate) const ERR_TOO_BIG: u32 = ERR | 9;
}

/// Information types (`NBD_INFO_*`).
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags (`NBD_FLAG_*`).
pub(super) mod transmission {
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_CACHE: u16 = 1 << 10;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Request types (`NBD_CMD_*`).
pub(super) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Command flags (`NBD_CMD_FLAG_*`).
pub(super) mod command_flag {
    pub(crate) const FUA: u16 = 1 << 0;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// Types of structured reply chunks (`NBD_REPLY_TYPE_*`).
pub(super) mod chunk {
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
}

/// `NBD_REPLY_FLAG_DONE`: no chunk follows for this request.
const CHUNK_DONE: u16 = 1 << 0;

/// Status flags of `base:allocation`.
pub(super) const STATE_HOLE: u32 = 1 << 0;
pub(super) const STATE_ZERO: u32 = 1 << 1;

/// Header of a reply to an option; `bytes` of data follow.
pub(super) fn option_reply(option: u32, reply: u32, bytes: usize) -> [u8; 20] {
    let mut b = [0; 20];
    b[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    b[8..12].copy_from_slice(&option.to_be_bytes());
    b[12..16].copy_from_slice(&reply.to_be_bytes());
    b[16..].copy_from_slice(&(bytes as u32).to_be_bytes());
    b
}

/// A simple reply; the data of a successful READ follow.
pub(super) fn simple_reply(handle: u64, error: u32) -> [u8; 16] {
    let mut b = [0; 16];
    b[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    b[4..8].copy_from_slice(&error.to_be_bytes());
    b[8..].copy_from_slice(&handle.to_be_bytes());
    b
}

/// Header of the only chunk of a structured reply; `bytes` of payload follow.
pub(super) fn only_chunk(handle: u64, kind: u16, bytes: usize) -> [u8; 20] {
    let mut b = [0; 20];
    b[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    b[4..6].copy_from_slice(&CHUNK_DONE.to_be_bytes());
    b[6..8].copy_from_slice(&kind.to_be_bytes());
    b[8..16].copy_from_slice(&handle.to_be_bytes());
    b[16..].copy_from_slice(&(bytes as u32).to_be_bytes());
    b
}

/// Takes fields off the front of bytes; `None` when they end too early.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length in the 32 bits ahead of it.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u32()?;
        let (string, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(string)
    }

    /// `None` unless all bytes are taken.
    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
