// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of its memory a host gives to a device that asks for some: the decision of Linux 6.12's NVMe driver
//! (`nvme_setup_host_mem` and `nvme_alloc_host_mem` of `drivers/nvme/host/pci.c`). What the device does with it is not
//! known here.

use thiserror::Error;

/// What a device asks for, as the controller data of NVMe (NVM Express 1.2 and later) have it, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryAsk {
    /// What it would like (HMPRE).
    pub preferred: u64,
    /// What it needs at least, if it is to use any (HMMIN).
    pub minimum: u64,
    /// The smallest piece that it takes (HMMINDS); 0 if it does not say.
    pub least_chunk: u64,
    /// Pieces at most (HMMAXD); 0 if it does not say.
    pub most_chunks: u32,
}

/// What a host is ready to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryLimit {
    /// Bytes at most. Linux: the parameter `max_host_mem_size_mb` of the module `nvme`.
    pub bytes: u64,
    /// The largest piece that its allocator finds.
    pub largest_chunk: u64,
}

impl HostMemoryLimit {
    /// Linux 6.12 on x86-64, its memory not in pieces: 128 MiB, in blocks of 4 MiB (`MAX_PAGE_ORDER` is 10).
    pub const LINUX: HostMemoryLimit = HostMemoryLimit { bytes: 128 << 20, largest_chunk: 4 << 20 };
}

/// What a host gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemoryGrant {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of each piece but the last, which may be smaller.
    pub chunk: u64,
    /// Pieces, and so entries of the list of descriptors.
    pub chunks: u32,
}

/// Why a host gives nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NoHostMemory {
    /// The device asks for none, or the host gives none to any device.
    #[error("no host memory is asked for or allowed")]
    NotWanted,
    /// The device needs more than the host allows.
    #[error("the device needs {minimum} bytes at least, the host allows {limit}")]
    LimitBelowMinimum {
        /// What the device needs.
        minimum: u64,
        /// What the host allows.
        limit: u64,
    },
    /// The pieces that the device takes, each as large as the host can find, are less than it needs.
    #[error("the device needs {minimum} bytes at least, and takes {chunks} pieces, of {chunk} bytes at most")]
    ChunksBelowMinimum {
        /// What the device needs.
        minimum: u64,
        /// Pieces that it takes.
        chunks: u32,
        /// The largest piece.
        chunk: u64,
    },
    /// The largest piece that the host can find is smaller than the device takes.
    #[error("the device takes no piece below {least} bytes, the largest that the host has is {largest}")]
    ChunksTooSmall {
        /// The smallest that it takes.
        least: u64,
        /// The largest that the host can find.
        largest: u64,
    },
}

/// Two pages, the least that Linux tries.
const LEAST_CHUNK: u64 = 8192;

/// What a host gives to a device that asks for `ask`.
///
/// Linux takes the smaller of what the device prefers and what it allows itself, and tries pieces of 4 MiB; if these
/// cannot be had it halves them. It gives less than what is preferred if the device takes too few pieces, which is why
/// a device that takes eight gets 32 MiB.
///
/// # Errors
/// Why it gives nothing. Linux then goes on without.
pub fn grant(ask: &HostMemoryAsk, limit: &HostMemoryLimit) -> Result<HostMemoryGrant, NoHostMemory> {
    let wanted = ask.preferred.min(limit.bytes);
    if wanted == 0 {
        return Err(NoHostMemory::NotWanted);
    }
    if ask.minimum > limit.bytes {
        return Err(NoHostMemory::LimitBelowMinimum { minimum: ask.minimum, limit: limit.bytes });
    }
    let least = ask.least_chunk.max(LEAST_CHUNK);
    // Pieces that are larger than what can be had fail at once, and half of them is tried.
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
    // Smaller pieces would be less still.
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
