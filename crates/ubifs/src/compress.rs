// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expanding data nodes. Output never exceeds the buffer that is given, whatever the input claims.

use flate2::{Decompress, FlushDecompress, Status};

/// Bytes in a block of data.
pub const BLOCK_BYTES: usize = 4096;

/// How data is compressed; the numbers are those on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZO1X.
    Lzo,
    /// Deflate without a zlib header.
    Zlib,
    /// A Zstandard frame.
    Zstd,
}

impl Compression {
    /// By the number on flash.
    pub fn from_number(number: u16) -> Option<Compression> {
        match number {
            0 => Some(Compression::None),
            1 => Some(Compression::Lzo),
            2 => Some(Compression::Zlib),
            3 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// The name that `mkfs.ubifs -x` takes.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lzo => "lzo",
            Compression::Zlib => "zlib",
            Compression::Zstd => "zstd",
        }
    }
}

/// The decompressors, whose tables are kept from block to block.
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
        Expander::new()
    }
}

impl Expander {
    /// Ready for use.
    pub fn new() -> Expander {
        Expander { inflate: Decompress::new(false), zstd: None }
    }

    /// Expands `input` into `out` and says how many bytes came out. An error says what is wrong with the input.
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
