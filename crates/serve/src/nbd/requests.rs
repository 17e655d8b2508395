// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of the transmission phase: their header, and every check that needs no more than the export's figures.

use super::Errno;
use super::options::Agreed;
use super::types::{Command, Export};
use super::wire::{Fields, REQUEST_BYTES, REQUEST_MAGIC, command, command_flag};

/// The header of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    flags: u16,
    pub kind: u16,
    pub handle: u64,
    pub offset: u64,
    pub bytes: u32,
}

/// Why a request is not served: what the reply says.
pub(super) type Refusal = (Errno, &'static str);

impl Header {
    /// The header at the front of `bytes` if it is there, or the wrong magic number.
    pub(super) fn parse(bytes: &[u8]) -> Option<Result<Self, u32>> {
        let mut fields = Fields(bytes.first_chunk::<REQUEST_BYTES>()?);
        let magic = fields.u32()?;
        let header = Header {
            flags: fields.u16()?,
            kind: fields.u16()?,
            handle: fields.u64()?,
            offset: fields.u64()?,
            bytes: fields.u32()?,
        };
        Some(if magic == REQUEST_MAGIC { Ok(header) } else { Err(magic) })
    }

    /// The command, a WRITE still without its data.
    pub(super) fn check(&self, export: &Export, agreed: Agreed) -> Result<Command, Refusal> {
        let command = self.command(agreed)?;
        if command == Command::Flush {
            return Ok(command);
        }
        let writes = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
        if export.read_only && (writes || matches!(command, Command::Trim { .. })) {
            return Err((Errno::Perm, "the export is read-only"));
        }
        let has_payload = matches!(command, Command::Read | Command::Write { .. });
        if has_payload && self.bytes > export.payload_limit() {
            return Err((Errno::Inval, "the length is above the maximum payload"));
        }
        if self.bytes == 0 {
            return Err((Errno::Inval, "the length is zero"));
        }
        let block = export.min_block;
        if !self.offset.is_multiple_of(block.into()) || !self.bytes.is_multiple_of(block) {
            return Err((Errno::Inval, "offset or length is not a multiple of the minimum block size"));
        }
        if self.offset.checked_add(self.bytes.into()).is_none_or(|end| end > export.bytes) {
            let errno = if writes { Errno::NoSpace } else { Errno::Inval };
            return Err((errno, "the range ends beyond the export"));
        }
        Ok(command)
    }

    /// The command, if it is known and its flags are.
    fn command(&self, agreed: Agreed) -> Result<Command, Refusal> {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        let has = |flag| self.flags & flag != 0;
        let fua = has(FUA);
        let (command, flags) = match self.kind {
            // Replies are never split, which is all that DF asks for.
            command::READ => (Command::Read, if agreed.structured { DF } else { 0 }),
            command::WRITE => (Command::Write { data: Vec::new(), fua }, 0),
            command::FLUSH => (Command::Flush, 0),
            command::TRIM => (Command::Trim { fua }, 0),
            command::CACHE => (Command::Cache, 0),
            command::WRITE_ZEROES => {
                (Command::WriteZeroes { fua, no_hole: has(NO_HOLE), fast: has(FAST_ZERO) }, NO_HOLE | FAST_ZERO)
            }
            command::BLOCK_STATUS if agreed.allocation != Some(agreed.export) => {
                return Err((Errno::Inval, "no metadata context of this export was negotiated"));
            }
            command::BLOCK_STATUS => (Command::BlockStatus { one: has(REQ_ONE) }, REQ_ONE),
            _ => return Err((Errno::Inval, "the command is not supported")),
        };
        // FUA must be accepted with every command; it has a meaning only for those that write.
        if self.flags & !(flags | FUA) != 0 {
            return Err((Errno::Inval, "a flag does not belong to the command"));
        }
        Ok(command)
    }
}
