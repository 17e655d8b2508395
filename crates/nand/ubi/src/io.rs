// SPDX-License-Identifier: MIT OR Apache-2.0
//! UBI's way of reading flash: retries, and classification of headers as good, empty or damaged (Linux,
//! drivers/mtd/ubi/io.c: `ubi_io_read`, `ubi_io_read_ec_hdr`, `ubi_io_read_vid_hdr`). It knows nothing of volumes.

use crate::error::UbiError;
use crate::headers::{Damage, EcHeader, HeaderFault, VidHeader};
use crate::layout::{HEADER_BYTES, Layout};
use crate::mtd::{Mtd, MtdError, ReadOutcome, Why};

/// How often a failed operation is repeated (`UBI_IO_RETRIES`).
pub const RETRIES: u32 = 3;

/// Result of reading a header.
#[derive(Clone, Copy, Debug)]
pub enum Header<T> {
    /// Good.
    Good {
        /// The header.
        header: T,
        /// Whether the block should be moved.
        flips: bool,
    },
    /// All 0xFF.
    Empty {
        /// Whether bits had to be corrected.
        flips: bool,
    },
    /// Damaged.
    Bad {
        /// Whether the flash reported errors too.
        ecc: bool,
    },
}

/// Flash and UBI's layout on it.
#[derive(Debug)]
pub struct Io<M> {
    pub(crate) mtd: M,
    pub(crate) layout: Layout,
    /// Sub-pages that hold a VID header.
    header: Vec<u8>,
}

/// The error for a header with an invalid field.
fn wrong(peb: u32, offset: u32, header: &str, fault: HeaderFault) -> UbiError {
    let error = UbiError::Peb { peb, offset, what: format!("{header} header: {}", fault.what) };
    if fault.of_sizes { error.doubting_sizes() } else { error }
}

impl<M: Mtd> Io<M> {
    pub(crate) fn new(mtd: M, layout: Layout) -> Self {
        Io { mtd, layout, header: vec![0; layout.vid_write_bytes() as usize] }
    }

    pub(crate) fn pebs(&self) -> u32 {
        self.mtd.geometry().pebs
    }

    /// Reads; repeats the read if it cannot be corrected.
    #[inline]
    pub fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, MtdError> {
        let mut tries = 0;
        loop {
            let outcome = self.mtd.read(peb, offset, out, why)?;
            if outcome != ReadOutcome::Uncorrectable || tries == RETRIES {
                return Ok(outcome);
            }
            tries += 1;
        }
    }

    /// Reads in the data area.
    #[inline]
    pub fn read_data(&mut self, peb: u32, offset: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, MtdError> {
        self.read(peb, self.layout.data_offset + offset, out, why)
    }

    /// Reads an EC header. A good one with invalid fields is an error.
    pub(crate) fn read_ec(&mut self, peb: u32) -> Result<Header<EcHeader>, UbiError> {
        let mut bytes = [0; HEADER_BYTES];
        let outcome = self.read(peb, 0, &mut bytes, Why::EcHeader)?;
        let header = classify(EcHeader::parse(&bytes), outcome);
        if let Header::Good { header, .. } = &header {
            header.check(&self.layout).map_err(|fault| wrong(peb, 0, "EC", fault))?;
        }
        Ok(header)
    }

    /// Reads a VID header. A good one with invalid fields is an error.
    pub fn read_vid(&mut self, peb: u32) -> Result<Header<VidHeader>, UbiError> {
        // A header that is not at the start of its sub-page is read together with the bytes before it.
        let start = self.layout.vid_read_offset();
        let shift = (self.layout.vid_offset - start) as usize;
        let mut scratch = [0; HEADER_BYTES];
        let outcome = if shift == 0 {
            self.read(peb, start, &mut scratch, Why::VidHeader)?
        } else {
            let mut buffer = std::mem::take(&mut self.header);
            let outcome = self.read(peb, start, &mut buffer[..shift + HEADER_BYTES], Why::VidHeader);
            scratch.copy_from_slice(&buffer[shift..shift + HEADER_BYTES]);
            self.header = buffer;
            outcome?
        };
        let header = classify(VidHeader::parse(&scratch), outcome);
        if let Header::Good { header, .. } = &header {
            header.check(&self.layout).map_err(|fault| wrong(peb, self.layout.vid_offset, "VID", fault))?;
        }
        Ok(header)
    }
}

fn classify<T>(parsed: Result<T, Damage>, outcome: ReadOutcome) -> Header<T> {
    let ecc = outcome == ReadOutcome::Uncorrectable;
    let flips = outcome >= ReadOutcome::BitFlips;
    match parsed {
        Ok(header) => Header::Good { header, flips },
        Err(Damage::Empty) if !ecc => Header::Empty { flips },
        Err(Damage::Empty | Damage::Magic(_)) => Header::Bad { ecc },
        // Linux counts a bad checksum with corrected flips as an error of the flash, too.
        Err(Damage::Crc(..)) => Header::Bad { ecc: flips },
    }
}
