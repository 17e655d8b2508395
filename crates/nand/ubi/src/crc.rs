// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CRC-32 of UBI: reflected polynomial 0xEDB88320, start value 0xFFFFFFFF, no final inversion
//! (`UBI_CRC32_INIT` in Linux, drivers/mtd/ubi/ubi-media.h). That is the complement of the CRC of zlib.

/// The CRC of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_the_complement_of_the_common_crc() {
        // The check value of CRC-32/JAMCRC in every catalogue of CRCs.
        assert_eq!(super::crc32(b"123456789"), 0x340B_C6D9);
    }
}
