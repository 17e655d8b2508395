// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a host grants to a device that asks for some, as decided by Linux 6.12's NVMe driver
//! (`nvme_setup_host_mem` and `nvme_alloc_host_mem` of `drivers/nvme/host/pci.c`).

use thiserror::Error;

/// A device's request, as in the controller data of NVMe (NVM Express 1.2 and later), in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryAsk {
    /// Preferred size (HMPRE).
    pub preferred: u64,
    /// The least size that the device can use (HMMIN).
    pub minimum: u64,
    /// The smallest piece that the device accepts (HMMINDS); 0 if not stated.
    pub least_chunk: u64,
    /// The most pieces (HMMAXD); 0 if not stated.
    pub most_chunks: u32,
}

/// The limits of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryLimit {
    /// The most bytes. Linux: the parameter `max_host_mem_size_mb` of the module `nvme`.
    pub bytes: u64,
    /// The largest piece that the host's allocator finds.
    pub largest_chunk: u64,
}

impl HostMemoryLimit {
    /// Linux 6.12 on x86-64 with unfragmented memory: 128 MiB, in blocks of 4 MiB (`MAX_PAGE_ORDER` is 10).
    pub const LINUX: HostMemoryLimit = HostMemoryLimit { bytes: 128 << 20, largest_chunk: 4 << 20 };
}

/// Memory that a host grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryGrant {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of each piece but the last, which may be smaller.
    pub chunk: u64,
    /// Pieces, and so entries of the list of descriptors.
    pub chunks: u32,
}

/// Why a host grants no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NoHostMemory {
    /// The device asks for none, or the host allows none.
    #[error("no host memory is asked for or allowed")]
    NotWanted,
    /// The device needs more than the host allows.
    #[error("the device needs {minimum} bytes at least, the host allows {limit}")]
    LimitBelowMinimum {
        /// The device's minimum.
        minimum: u64,
        /// The host's limit.
        limit: u64,
    },
    /// The pieces that the device accepts, at the host's largest size, are below the minimum.
    #[error("the device needs {minimum} bytes at least, and takes {chunks} pieces, of {chunk} bytes at most")]
    ChunksBelowMinimum {
        /// The device's minimum.
        minimum: u64,
        /// The most pieces that the device accepts.
        chunks: u32,
        /// The largest piece.
        chunk: u64,
    },
    /// The host's largest piece is smaller than the device accepts.
    #[error("the device takes no piece below {least} bytes, the largest that the host has is {largest}")]
    ChunksTooSmall {
        /// The smallest piece that the device accepts.
        least: u64,
        /// The host's largest piece.
        largest: u64,
    },
}

/// Two pages, the least that Linux tries.
const LEAST_CHUNK: u64 = 8192;

/// The memory that a host grants for the request `ask`.
///
/// Linux takes the smaller of the preferred size and its own limit, and tries pieces of 4 MiB; if they cannot be
/// allocated it halves their size. It grants less than preferred if the device accepts too few pieces: a device that
/// accepts eight gets 32 MiB.
///
/// # Errors
/// Why it grants none. Linux then continues without.
pub fn grant(ask: &HostMemoryAsk, limit: &HostMemoryLimit) -> Result<HostMemoryGrant, NoHostMemory> {
    let wanted = ask.preferred.min(limit.bytes);
    if wanted == 0 {
        return Err(NoHostMemory::NotWanted);
    }
    if ask.minimum > limit.bytes {
        return Err(NoHostMemory::LimitBelowMinimum { minimum: ask.minimum, limit: limit.bytes });
    }
    let least = ask.least_chunk.max(LEAST_CHUNK);
    // Linux tries larger pieces, fails, and halves them until it reaches this size.
    let mut chunk = wanted.min(HostMemoryLimit::LINUX.largest_chunk);
    while chunk > limit.largest_chunk {
        chunk /= 2;
    }
    if chunk < least {
        return Err(NoHostMemory::ChunksTooSmall { least, largest: chunk });
    }
    let most = if ask.most_chunks == 0 { u64::MAX } else { u64::from(ask.most_chunks) };
    let chunks = wanted.div_ceil(chunk).min(most);
    let bytes = chunk.saturating_mul(chunks).min(wanted);
    let chunks = chunks as u32;
    // Smaller pieces would be even less in total.
    match bytes < ask.minimum {
        true => Err(NoHostMemory::ChunksBelowMinimum { minimum: ask.minimum, chunks, chunk }),
        false => Ok(HostMemoryGrant { bytes, chunk, chunks }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const ASK: HostMemoryAsk = HostMemoryAsk { preferred: 200 * MIB, minimum: 4 * MIB, least_chunk: 0, most_chunks: 0 };

    fn given(ask: HostMemoryAsk, mib: u64) -> Result<(u64, u64, u32), NoHostMemory> {
        let limit = HostMemoryLimit { bytes: mib * MIB, ..HostMemoryLimit::LINUX };
        grant(&ask, &limit).map(|g| (g.bytes, g.chunk, g.chunks))
    }

    #[test]
    fn the_smaller_of_what_is_preferred_and_allowed() {
        assert_eq!(given(ASK, 128), Ok((128 * MIB, 4 * MIB, 32)));
        assert_eq!(given(ASK, 200), Ok((200 * MIB, 4 * MIB, 50)));
        assert_eq!(given(ASK, 1000), Ok((200 * MIB, 4 * MIB, 50)));
        assert_eq!(given(ASK, 38), Ok((38 * MIB, 4 * MIB, 10)), "the last piece is not whole");
        assert_eq!(given(HostMemoryAsk { preferred: 38 * MIB, ..ASK }, 128), Ok((38 * MIB, 4 * MIB, 10)));
        assert_eq!(given(HostMemoryAsk { preferred: 3 * MIB, minimum: 0, ..ASK }, 128), Ok((3 * MIB, 3 * MIB, 1)));
        assert_eq!(given(ASK, 0), Err(NoHostMemory::NotWanted));
        assert_eq!(given(HostMemoryAsk { preferred: 0, minimum: 0, ..ASK }, 128), Err(NoHostMemory::NotWanted));
    }

    #[test]
    fn too_few_pieces_are_less_memory() {
        let eight = HostMemoryAsk { most_chunks: 8, ..ASK };
        assert_eq!(given(eight, 200), Ok((32 * MIB, 4 * MIB, 8)));
        let fragmented = HostMemoryLimit { bytes: 128 * MIB, largest_chunk: MIB };
        assert_eq!(grant(&eight, &fragmented), Ok(HostMemoryGrant { bytes: 8 * MIB, chunk: MIB, chunks: 8 }));
        let needs = HostMemoryAsk { minimum: 16 * MIB, ..eight };
        let error = NoHostMemory::ChunksBelowMinimum { minimum: 16 * MIB, chunks: 8, chunk: MIB };
        assert_eq!(grant(&needs, &fragmented), Err(error));
        assert_eq!(
            error.to_string(),
            "the device needs 16777216 bytes at least, and takes 8 pieces, of 1048576 bytes at most"
        );
    }

    #[test]
    fn nothing_below_what_the_device_needs() {
        let needs = HostMemoryAsk { minimum: 64 * MIB, preferred: 64 * MIB, ..ASK };
        let error = NoHostMemory::LimitBelowMinimum { minimum: 64 * MIB, limit: 32 * MIB };
        assert_eq!(given(needs, 32), Err(error));
        let large = HostMemoryAsk { least_chunk: 2 * MIB, ..ASK };
        let fragmented = HostMemoryLimit { bytes: 128 * MIB, largest_chunk: MIB };
        assert_eq!(grant(&large, &fragmented), Err(NoHostMemory::ChunksTooSmall { least: 2 * MIB, largest: MIB }));
    }
}
