// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decompression of data nodes. Output never exceeds the given buffer, whatever the input claims.

use flate2::{Decompress, FlushDecompress, Status};

/// Bytes in a block of data.
pub const BLOCK_BYTES: usize = 4096;

readpath_kit::named! {
    /// Compression method; the numbers are those on flash.
    #[derive(Hash)]
    pub enum Compression {
        /// Uncompressed.
        None = "none",
        /// LZO1X.
        Lzo = "lzo",
        /// Deflate without a zlib header.
        Zlib = "zlib",
        /// A Zstandard frame.
        Zstd = "zstd",
    }
}

impl Compression {
    /// By the number on flash.
    pub fn from_number(number: u16) -> Option<Compression> {
        Compression::ALL.get(usize::from(number)).copied()
    }
}

/// The decompressors, whose tables are reused for each block.
pub struct Expander {
    inflate: Decompress,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl std::fmt::Debug for Expander {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Expander")
    }
}

impl Default for Expander {
    fn default() -> Self {
        Expander { inflate: Decompress::new(false), zstd: None }
    }
}

impl Expander {
    /// Decompresses `input` into `out` and returns the number of bytes. An error describes the fault of the input.
    pub fn expand(&mut self, how: Compression, input: &[u8], out: &mut [u8]) -> Result<usize, String> {
        match how {
            Compression::None => {
                let n = input.len();
                out.get_mut(..n).ok_or_else(|| format!("{n} bytes, more than a block"))?.copy_from_slice(input);
                Ok(n)
            }
            Compression::Lzo => lzokay::decompress::decompress(input, out).map_err(|e| format!("LZO: {e}")),
            Compression::Zlib => {
                self.inflate.reset(false);
                match self.inflate.decompress(input, out, FlushDecompress::Finish) {
                    Ok(Status::StreamEnd) => Ok(self.inflate.total_out() as usize),
                    Ok(_) => Err("deflate: the stream does not end within a block".to_owned()),
                    Err(e) => Err(format!("deflate: {e}")),
                }
            }
            Compression::Zstd => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    none => none.insert(zstd::bulk::Decompressor::new().map_err(|e| format!("zstd: {e}"))?),
                };
                zstd.decompress_to_buffer(input, out).map_err(|e| format!("zstd: {e}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bombs_stop_at_the_end_of_a_block() {
        let zeros = vec![0; 50 << 20];
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        deflate.write_all(&zeros).expect("memory");
        let deflated = deflate.finish().expect("memory");
        let zstd = zstd::bulk::compress(&zeros, 19).expect("memory");
        // LZO: one literal, then matches of the longest length for 60,000 bytes.
        let mut lzo = vec![18, 0, 0x20];
        lzo.extend([0; 235]);
        lzo.extend([33, 0, 0, 0x11, 0, 0]);
        let mut out = [0; BLOCK_BYTES];
        let mut expander = Expander::default();
        for (how, input) in [(Compression::Zlib, deflated), (Compression::Zstd, zstd), (Compression::Lzo, lzo)] {
            expander.expand(how, &input, &mut out).expect_err(how.name());
        }
        let error = expander.expand(Compression::None, &zeros[..5000], &mut out).expect_err("too long");
        assert_eq!(error, "5000 bytes, more than a block");
    }

    #[test]
    fn one_bad_block_does_not_spoil_the_next() {
        let text = b"flash and flash and flash and flash".repeat(20);
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        deflate.write_all(&text).expect("memory");
        let good = deflate.finish().expect("memory");
        let mut out = [0; BLOCK_BYTES];
        let mut expander = Expander::default();
        expander.expand(Compression::Zlib, &good[..good.len() / 2], &mut out).expect_err("half a stream");
        let n = expander.expand(Compression::Zlib, &good, &mut out).expect("a whole stream");
        assert_eq!(out[..n], text[..]);
    }
}
