// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay protected memory block on the wire: message frames, their authentication code, and the SECURITY PROTOCOL
//! commands that carry them.
//!
//! Layouts: JESD220 (RPMB in normal mode, region 0) and SPC-4 (SECURITY PROTOCOL IN and OUT). All fields are
//! big-endian. It knows bytes and signatures; the state and answers of a device are elsewhere.

use crate::cdb::{be16, be32};
use crate::typed::Cdb;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a message frame.
pub const FRAME_BYTES: usize = 512;
/// Bytes of data in a frame: a logical block.
pub const BLOCK_BYTES: usize = 256;
/// Bytes of a key, and of a code.
const KEY_BYTES: usize = 32;
/// Logical blocks of region 0, the only one: 4 MiB.
pub const BLOCKS: u32 = 16_384;
/// Frames of one read or write, at most: bRPMB_ReadWriteSize.
pub const MOST_FRAMES: usize = 64;

/// SECURITY PROTOCOL: information about protocols (SPC-4).
pub const PROTOCOL_INFORMATION: u8 = 0x00;
/// SECURITY PROTOCOL: UFS (JESD220).
pub const PROTOCOL_UFS: u8 = 0xEC;
/// SECURITY PROTOCOL SPECIFIC: region 0 (JESD220).
pub const REGION_0: u16 = 0x0001;

/// A key shared by host and device.
pub type Key = [u8; KEY_BYTES];

/// Types of requests. The type of a response is the same value in the upper byte.
pub mod request {
    /// Program the key, once.
    pub const PROGRAM_KEY: u16 = 0x0001;
    /// Read the write counter.
    pub const READ_COUNTER: u16 = 0x0002;
    /// Write blocks.
    pub const WRITE: u16 = 0x0003;
    /// Read blocks.
    pub const READ: u16 = 0x0004;
    /// Read the result of a key programming or a write.
    pub const READ_RESULT: u16 = 0x0005;
    /// Write the Secure Write Protect configuration block.
    pub const WRITE_PROTECTION: u16 = 0x0006;
    /// Read the Secure Write Protect configuration block.
    pub const READ_PROTECTION: u16 = 0x0007;
}

/// Results.
pub mod result {
    /// Success.
    pub const OK: u16 = 0x0000;
    /// General failure.
    pub const GENERAL: u16 = 0x0001;
    /// The authentication code is wrong.
    pub const AUTHENTICATION: u16 = 0x0002;
    /// The write counter is wrong.
    pub const COUNTER: u16 = 0x0003;
    /// The address is out of range.
    pub const ADDRESS: u16 = 0x0004;
    /// Write failure.
    pub const WRITE: u16 = 0x0005;
    /// Read failure.
    pub const READ: u16 = 0x0006;
    /// The key has not been programmed.
    pub const NO_KEY: u16 = 0x0007;
    /// The Secure Write Protect configuration block is not accessible.
    pub const PROTECTION_ACCESS: u16 = 0x0008;
    /// Added to any of them: the write counter has expired.
    pub const COUNTER_EXPIRED: u16 = 0x0080;
}

/// A message frame. The 196 bytes before it are stuff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Key (of a request to program it), or code of all frames of the message (in the last of them).
    pub mac: Key,
    /// A block.
    pub data: [u8; BLOCK_BYTES],
    /// Random number that ties a response to its request.
    pub nonce: [u8; 16],
    /// Write counter.
    pub counter: u32,
    /// First block.
    pub address: u16,
    /// Blocks.
    pub blocks: u16,
    /// See [`result`].
    pub result: u16,
    /// Type of the request or response: see [`request`].
    pub kind: u16,
}

const MAC: usize = 196;
/// Offset of the signed part of a frame, which extends to its end.
const DATA: usize = 228;
const NONCE: usize = 484;
const COUNTER: usize = 500;

impl Frame {
    /// All fields are 0.
    pub const ZERO: Frame = Frame {
        mac: [0; KEY_BYTES],
        data: [0; BLOCK_BYTES],
        nonce: [0; 16],
        counter: 0,
        address: 0,
        blocks: 0,
        result: 0,
        kind: 0,
    };

    /// The bytes of the frame.
    pub fn to_bytes(&self) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[MAC..DATA].copy_from_slice(&self.mac);
        bytes[DATA..NONCE].copy_from_slice(&self.data);
        bytes[NONCE..COUNTER].copy_from_slice(&self.nonce);
        bytes[COUNTER..504].copy_from_slice(&self.counter.to_be_bytes());
        let numbers = [self.address, self.blocks, self.result, self.kind];
        for (at, number) in bytes[504..].chunks_exact_mut(2).zip(numbers) {
            at.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Parses a frame. Stuff bytes are ignored.
    pub fn parse(bytes: &[u8; FRAME_BYTES]) -> Frame {
        let mut frame = Frame {
            counter: be32(bytes, COUNTER),
            address: be16(bytes, 504),
            blocks: be16(bytes, 506),
            result: be16(bytes, 508),
            kind: be16(bytes, 510),
            ..Frame::ZERO
        };
        frame.mac.copy_from_slice(&bytes[MAC..DATA]);
        frame.data.copy_from_slice(&bytes[DATA..NONCE]);
        frame.nonce.copy_from_slice(&bytes[NONCE..COUNTER]);
        frame
    }
}

fn hmac<'a>(key: &Key, parts: impl Iterator<Item = &'a [u8]>) -> Hmac<Sha256> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("a key of HMAC has any length");
    parts.for_each(|part| hmac.update(part));
    hmac
}

/// The signed bytes of a message of whole frames.
fn signed(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    message.as_chunks::<FRAME_BYTES>().0.iter().map(|frame| &frame[DATA..])
}

/// Puts the code of a message of whole frames into the last of them (HMAC-SHA-256).
pub fn sign(key: &Key, message: &mut [u8]) {
    let mac = hmac(key, signed(message)).finalize().into_bytes();
    if let Some(last) = message.as_chunks_mut::<FRAME_BYTES>().0.last_mut() {
        last[MAC..DATA].copy_from_slice(&mac);
    }
}

/// Whether the code in the last frame of a message is right, in constant time.
pub fn is_signed(key: &Key, message: &[u8]) -> bool {
    let Some(last) = message.as_chunks::<FRAME_BYTES>().0.last() else { return false };
    hmac(key, signed(message)).verify_slice(&last[MAC..DATA]).is_ok()
}

/// SECURITY PROTOCOL IN or OUT (SPC-4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecurityProtocol {
    /// OUT: data goes to the device.
    pub out: bool,
    /// SECURITY PROTOCOL.
    pub protocol: u8,
    /// SECURITY PROTOCOL SPECIFIC.
    pub specific: u16,
    /// INC_512: `length` is in units of 512 bytes. UFS does not use it.
    pub in_sectors: bool,
    /// ALLOCATION LENGTH or TRANSFER LENGTH.
    pub length: u32,
}

const SECURITY_PROTOCOL_IN: u8 = 0xA2;
const SECURITY_PROTOCOL_OUT: u8 = 0xB5;

impl SecurityProtocol {
    /// A command that carries frames of region 0.
    pub fn of_frames(out: bool, frames: usize) -> Self {
        let length = (frames * FRAME_BYTES) as u32;
        SecurityProtocol { out, protocol: PROTOCOL_UFS, specific: REGION_0, in_sectors: false, length }
    }

    /// The command.
    pub fn cdb(&self) -> Cdb {
        let mut b = [0; 16];
        b[0] = if self.out { SECURITY_PROTOCOL_OUT } else { SECURITY_PROTOCOL_IN };
        b[1] = self.protocol;
        b[2..4].copy_from_slice(&self.specific.to_be_bytes());
        b[4] = u8::from(self.in_sectors) << 7;
        b[6..10].copy_from_slice(&self.length.to_be_bytes());
        Cdb::Other(b)
    }

    /// Parses a command; `None` if it is another one.
    pub fn parse(cdb: &Cdb) -> Option<SecurityProtocol> {
        let Cdb::Other(b) = cdb else { return None };
        let out = match b[0] {
            SECURITY_PROTOCOL_IN => false,
            SECURITY_PROTOCOL_OUT => true,
            _ => return None,
        };
        Some(SecurityProtocol {
            out,
            protocol: b[1],
            specific: be16(b, 2),
            in_sectors: b[4] & 0x80 != 0,
            length: be32(b, 6),
        })
    }
}

#[cfg(test)]
mod tests;
