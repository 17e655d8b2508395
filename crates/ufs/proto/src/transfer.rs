// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures that a host writes to memory for its UFS controller: transfer and task management request descriptors,
//! and the list of memory that a command moves.
//!
//! Layouts: JESD223 (UTRD, PRDT, UTMRD), Linux `include/ufs/ufshci.h` (`struct utp_transfer_req_desc`, `struct
//! ufshcd_sg_entry`, `struct utp_task_req_desc`). Fields are little-endian, unlike those of UPIUs. It knows layouts
//! only: the reader of that memory checks whether the described memory exists.

/// Bytes of a transfer request descriptor (UTRD).
pub const UTRD_BYTES: usize = 32;
/// Offset of the overall command status in a UTRD and in a UTMRD.
pub const OCS_OFFSET: usize = 8;
/// Bytes of an entry of the physical region description table (PRDT).
pub const PRDT_ENTRY_BYTES: usize = 16;
/// Most bytes that one PRDT entry describes (18 bits).
pub const PRDT_ENTRY_MOST: u32 = 1 << 18;
/// Bytes of a task management request descriptor (UTMRD).
pub const UTMRD_BYTES: usize = 80;
/// Offset of the request UPIU in a UTMRD.
pub const UTMRD_REQUEST_OFFSET: usize = 16;
/// Offset of the response UPIU in a UTMRD.
pub const UTMRD_RESPONSE_OFFSET: usize = 48;

/// Overall command status (OCS; Linux `enum utp_ocs`).
pub mod ocs {
    /// The response UPIU has the result of the command.
    pub const SUCCESS: u8 = 0x0;
    /// The descriptor is not valid.
    pub const INVALID_TABLE: u8 = 0x1;
    /// The PRDT is not valid.
    pub const INVALID_PRDT: u8 = 0x2;
    /// The PRDT describes less memory than the command moves.
    pub const DATA_SIZE: u8 = 0x3;
    /// The response UPIU is longer than its room.
    pub const RESPONSE_SIZE: u8 = 0x4;
    /// The command was aborted.
    pub const ABORTED: u8 = 0x6;
    /// Value set by a host before it starts a command.
    pub const INVALID: u8 = 0xF;
}

/// Command type of UFS storage from UFSHCI 2.0 on.
pub const COMMAND_TYPE_UFS: u8 = 1;

/// A UTRD. Offsets and lengths are in bytes here; on the wire all but the number of PRDT entries are in words of 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferDescriptor {
    /// Command type, 4 bits: [`COMMAND_TYPE_UFS`].
    pub command_type: u8,
    /// Data direction, 2 bits: 0 none, 1 to the device, 2 from the device.
    pub direction: u8,
    /// The completion of this command raises an interrupt of its own.
    pub interrupt: bool,
    /// Data is encrypted by the controller.
    pub crypto: bool,
    /// Overall command status.
    pub ocs: u8,
    /// Address of the UTP command descriptor (UCD), which begins with the request UPIU.
    pub command_base: u64,
    /// Offset of the response UPIU in the UCD.
    pub response_offset: u32,
    /// Room for the response UPIU.
    pub response_bytes: u32,
    /// Offset of the PRDT in the UCD.
    pub prdt_offset: u32,
    /// Entries of the PRDT.
    pub prdt_entries: u16,
}

impl TransferDescriptor {
    /// The bytes of the descriptor.
    pub fn to_bytes(&self) -> [u8; UTRD_BYTES] {
        let mut bytes = [0; UTRD_BYTES];
        let words = |bytes: u32| (bytes / 4) & 0xFFFF;
        let flags = u32::from(self.interrupt) << 24 | u32::from(self.crypto) << 23;
        put(&mut bytes, 0, u32::from(self.command_type & 0xF) << 28 | u32::from(self.direction & 3) << 25 | flags);
        put(&mut bytes, OCS_OFFSET, u32::from(self.ocs & 0xF));
        put(&mut bytes, 16, self.command_base as u32);
        put(&mut bytes, 20, (self.command_base >> 32) as u32);
        put(&mut bytes, 24, words(self.response_offset) << 16 | words(self.response_bytes));
        put(&mut bytes, 28, words(self.prdt_offset) << 16 | u32::from(self.prdt_entries));
        bytes
    }

    /// Parses the bytes of a descriptor.
    pub fn parse(bytes: &[u8; UTRD_BYTES]) -> TransferDescriptor {
        let (first, response, prdt) = (get(bytes, 0), get(bytes, 24), get(bytes, 28));
        TransferDescriptor {
            command_type: (first >> 28) as u8,
            direction: (first >> 25 & 3) as u8,
            interrupt: first >> 24 & 1 == 1,
            crypto: first >> 23 & 1 == 1,
            ocs: bytes[OCS_OFFSET] & 0xF,
            command_base: u64::from(get(bytes, 16)) | u64::from(get(bytes, 20)) << 32,
            response_offset: (response >> 16) * 4,
            response_bytes: (response & 0xFFFF) * 4,
            prdt_offset: (prdt >> 16) * 4,
            prdt_entries: prdt as u16,
        }
    }
}

/// A piece of memory that a command moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrdtEntry {
    /// Its address.
    pub address: u64,
    /// Its bytes, 1 to [`PRDT_ENTRY_MOST`].
    pub bytes: u32,
}

impl PrdtEntry {
    /// The bytes of the entry.
    pub fn to_bytes(&self) -> [u8; PRDT_ENTRY_BYTES] {
        let mut bytes = [0; PRDT_ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        put(&mut bytes, 12, self.bytes.wrapping_sub(1) & (PRDT_ENTRY_MOST - 1));
        bytes
    }

    /// Parses the bytes of an entry.
    pub fn parse(bytes: &[u8; PRDT_ENTRY_BYTES]) -> PrdtEntry {
        let address = u64::from(get(bytes, 0)) | u64::from(get(bytes, 4)) << 32;
        PrdtEntry { address, bytes: (get(bytes, 12) & (PRDT_ENTRY_MOST - 1)) + 1 }
    }
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Linux 6.1 writes for READ (10) of one block into a controller of version 2.0 and later: `ufshcd_compose`
    /// and `ufshcd_map_sg`, with the offsets of `ufshcd_host_memory_configure`.
    #[test]
    fn a_descriptor_of_linux() {
        let mut bytes = [0; UTRD_BYTES];
        put(&mut bytes, 0, 0x1500_0000);
        put(&mut bytes, 8, 0x0000_000F);
        put(&mut bytes, 16, 0x0123_4000);
        put(&mut bytes, 20, 0x0000_0001);
        put(&mut bytes, 24, 0x0080_0080);
        put(&mut bytes, 28, 0x0100_0001);
        let descriptor = TransferDescriptor {
            command_type: COMMAND_TYPE_UFS,
            direction: 2,
            interrupt: true,
            crypto: false,
            ocs: ocs::INVALID,
            command_base: 0x1_0123_4000,
            response_offset: 512,
            response_bytes: 512,
            prdt_offset: 1024,
            prdt_entries: 1,
        };
        assert_eq!(TransferDescriptor::parse(&bytes), descriptor);
        assert_eq!(descriptor.to_bytes(), bytes);
    }

    proptest! {
        #[test]
        fn prdt_entries_survive(address: u64, bytes in 1..=PRDT_ENTRY_MOST) {
            let entry = PrdtEntry { address, bytes };
            prop_assert_eq!(PrdtEntry::parse(&entry.to_bytes()), entry);
        }
    }
}
