// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Perfetto without the compression that they may have inside: a packet that holds nothing but compressed
//! packets (`TracePacket.compressed_packets` for zlib, `zstd_compressed_packets`) is replaced by those. Knows where
//! packets begin, but not their content; after the first byte that begins no packet, the rest is passed on unchanged,
//! for the reader to report.

use flate2::{Decompress, FlushDecompress, Status};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use zstd::stream::raw::{self, Operation};
use zstd::zstd_safe::DParameter;

/// Largest window of a zstd frame: 2^27 bytes, what the `zstd` program accepts by default.
pub(super) const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;
/// Tag of a packet: field 1 of `Trace`, bytes with their length.
pub(super) const PACKET: u8 = 0x0A;
/// Most bytes in front of what a compressed packet holds: two tags and two lengths.
const HEAD_BYTES: usize = 1 + 10 + 2 + 10;

/// Why compressed packets could not be expanded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Damaged(String);

/// A number of base 128, lowest digits first, and its bytes: `None` if it does not end here.
///
/// # Errors
/// It is 2^64 or more.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, ()> {
    match bytes.first() {
        Some(&byte) if byte < 0x80 => return Ok(Some((byte.into(), 1))),
        None => return Ok(None),
        _ => {}
    }
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            return if i == 9 && byte > 1 { Err(()) } else { Ok(Some((value, i + 1))) };
        }
    }
    if bytes.len() < 10 { Ok(None) } else { Err(()) }
}

#[derive(Clone, Copy)]
enum Packing {
    Zlib,
    Zstd,
}

/// What the first bytes of a packet say.
enum Class {
    /// Nothing yet.
    More,
    /// An uncompressed packet, of which this many bytes follow.
    Plain(u64),
    /// This many compressed bytes follow, and no other field.
    Packed(Packing, u64),
    /// It is not a packet.
    Broken,
}

fn class(head: &[u8]) -> Class {
    if head[0] != PACKET {
        return Class::Broken;
    }
    let (length, first) = match varint(&head[1..]) {
        Err(()) => return Class::Broken,
        Ok(None) => return Class::More,
        Ok(Some((length, n))) => (length, 1 + n),
    };
    let inner = &head[first..];
    let plain = Class::Plain(length.saturating_sub(inner.len() as u64));
    let packing = match inner {
        _ if inner.len() as u64 >= length => return plain,
        // The tags of fields 50 and 133, bytes with their length.
        [] | [0x92 | 0xAA] => return Class::More,
        [0x92, 0x03, ..] => Packing::Zlib,
        [0xAA, 0x08, ..] => Packing::Zstd,
        _ => return plain,
    };
    match varint(&inner[2..]) {
        Ok(None) => Class::More,
        Ok(Some((bytes, n))) if bytes.checked_add(2 + n as u64) == Some(length) => Class::Packed(packing, bytes),
        _ => plain,
    }
}

enum State {
    /// The head of a packet is being read.
    Head,
    /// The head is output, from this byte on, and then this many bytes after it.
    Emit(usize, u64),
    /// This many bytes of the packet are output.
    Pass(u64),
    /// This many bytes are to be decompressed.
    Zlib(Decompress, u64),
    Zstd(raw::Decoder<'static>, u64),
    /// Everything goes out.
    Rest,
}

/// A trace in which no packet is compressed.
pub(super) struct Expand {
    source: BufReader<Box<dyn Read + Send>>,
    state: State,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes taken from the source.
    taken: u64,
    /// Offset of the packet in the source.
    packet_at: u64,
    /// Returned after all output before it.
    failure: Option<io::Error>,
}

impl Expand {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Expand {
        Expand {
            source: BufReader::with_capacity(BUFFER, source),
            state: State::Head,
            head: [0; HEAD_BYTES],
            head_bytes: 0,
            taken: 0,
            packet_at: 0,
            failure: None,
        }
    }

    fn damaged(&self, what: impl fmt::Display) -> io::Error {
        let message = format!("the compressed packets at byte {} {what}", self.packet_at);
        io::Error::other(Damaged(message))
    }

    /// Takes one more byte of a head; false at the end.
    fn head(&mut self) -> io::Result<bool> {
        let Some(&byte) = self.source.fill_buf()?.first() else {
            // The input ends within a head: its bytes go out as they are.
            self.state = State::Emit(0, u64::MAX);
            return Ok(self.head_bytes > 0);
        };
        self.source.consume(1);
        if self.head_bytes == 0 {
            self.packet_at = self.taken;
        }
        self.taken += 1;
        self.head[self.head_bytes] = byte;
        self.head_bytes += 1;
        match class(&self.head[..self.head_bytes]) {
            Class::More => {}
            Class::Plain(rest) => self.state = State::Emit(0, rest),
            Class::Broken => self.state = State::Emit(0, u64::MAX),
            Class::Packed(packing, bytes) => {
                self.head_bytes = 0;
                self.state = match packing {
                    Packing::Zlib => State::Zlib(Decompress::new(true), bytes),
                    Packing::Zstd => {
                        let mut decoder = raw::Decoder::new()?;
                        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
                        State::Zstd(decoder, bytes)
                    }
                };
            }
        }
        Ok(true)
    }

    /// Makes the next step; returns the bytes that came out, or `None` at the end.
    fn step(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let (used, made, over) = match &mut self.state {
            State::Head => return self.head().map(|more| more.then_some(0)),
            State::Emit(from, rest) => {
                let head = &self.head[*from..self.head_bytes];
                let n = head.len().min(out.len());
                out[..n].copy_from_slice(&head[..n]);
                *from += n;
                if *from == self.head_bytes {
                    self.head_bytes = 0;
                    self.state = match *rest {
                        0 => State::Head,
                        u64::MAX => State::Rest,
                        rest => State::Pass(rest),
                    };
                }
                return Ok(Some(n));
            }
            State::Rest => {
                let n = self.source.read(out)?;
                return Ok((n > 0).then_some(n));
            }
            State::Pass(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(out.len());
                let n = self.source.read(&mut out[..most])?;
                *left -= n as u64;
                if n == 0 {
                    return Ok(None);
                }
                (n, n, *left == 0)
            }
            State::Zlib(decoder, left) => {
                let bytes = self.source.fill_buf()?;
                let bytes = &bytes[..bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
                let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(bytes, out, FlushDecompress::None);
                let (used, made) = (decoder.total_in() - before_in, decoder.total_out() - before_out);
                *left -= used;
                let left = *left;
                match status {
                    Err(e) => return Err(self.damaged(e)),
                    Ok(Status::StreamEnd) if left > 0 => return Err(self.damaged("go on behind their end")),
                    Ok(Status::StreamEnd) => (used as usize, made as usize, true),
                    Ok(_) if used == 0 && made == 0 => return Err(self.damaged("are cut off")),
                    Ok(_) => (used as usize, made as usize, false),
                }
            }
            State::Zstd(decoder, left) => {
                let bytes = self.source.fill_buf()?;
                let bytes = &bytes[..bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
                match decoder.run_on_buffers(bytes, out) {
                    Err(e) => return Err(self.damaged(e)),
                    Ok(status) => {
                        *left -= status.bytes_read as u64;
                        let over = status.remaining == 0 && *left == 0;
                        if status.bytes_read == 0 && status.bytes_written == 0 && !over {
                            return Err(self.damaged("are cut off"));
                        }
                        (status.bytes_read, status.bytes_written, over)
                    }
                }
            }
        };
        if !matches!(self.state, State::Pass(_)) {
            self.source.consume(used);
        }
        self.taken += used as u64;
        if over {
            self.state = State::Head;
        }
        Ok(Some(made))
    }
}

impl Read for Expand {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut n = 0;
        while n < out.len() {
            match self.step(&mut out[n..]) {
                Ok(Some(made)) => n += made,
                Ok(None) => break,
                Err(e) if n == 0 => return Err(e),
                Err(e) => {
                    self.failure = Some(e);
                    break;
                }
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Write};

    /// A field of bytes.
    fn bytes(tag: &[u8], content: &[u8]) -> Vec<u8> {
        let (mut out, mut n) = (tag.to_vec(), content.len());
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out.extend_from_slice(content);
        out
    }

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).expect("a vector");
        bytes(&[PACKET], &bytes(&[0x92, 0x03], &encoder.finish().expect("a vector")))
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        bytes(&[PACKET], &bytes(&[0xAA, 0x08], &zstd::encode_all(content, 1).expect("a vector")))
    }

    fn expand(trace: &[u8], at_once: usize) -> Result<Vec<u8>, (Vec<u8>, String)> {
        let mut source = Expand::new(Box::new(Cursor::new(trace.to_vec())));
        let (mut all, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return Ok(all),
                Ok(n) => all.extend_from_slice(&buffer[..n]),
                Err(e) => return Err((all, e.to_string())),
            }
        }
    }

    #[test]
    fn compressed_packets_are_replaced_and_others_stay() {
        let plain = [bytes(&[PACKET], &[0x40, 7]), bytes(&[PACKET], &[]), bytes(&[PACKET], &[9; 300])].concat();
        let mixed = [&plain[..], &zlib(&plain), &plain, &zstd(&plain), &zlib(&[])].concat();
        for at_once in [1, 2, 7, 100, 1 << 17] {
            assert_eq!(expand(&mixed, at_once).expect("a trace"), plain.repeat(4), "{at_once}");
        }
        // Only one level is expanded, and only in packets without other fields.
        let twice = zlib(&zlib(&plain));
        assert_eq!(expand(&twice, 64).expect("a trace"), zlib(&plain));
        let beside = bytes(&[PACKET], &[bytes(&[0x92, 0x03], &[1, 2]), vec![0x40, 7]].concat());
        assert_eq!(expand(&beside, 64).expect("a trace"), beside);
        // Other bytes are passed on as they are.
        let broken = [&plain[..], &[0x55], &zlib(&plain)].concat();
        assert_eq!(expand(&broken, 64).expect("a trace"), broken);
    }

    #[test]
    fn damage_names_the_packet_and_what_came_before_it_comes_out() {
        let plain = bytes(&[PACKET], &[0x40, 7]);
        let at = plain.len();
        for pack in [zlib as fn(&[u8]) -> Vec<u8>, zstd] {
            let packed = pack(&plain.repeat(50));
            for to in at + 5..at + packed.len() {
                let cut = [&plain[..], &packed].concat();
                let (out, message) = expand(&cut[..to], 64).expect_err("it is cut off");
                assert!(out.starts_with(&plain), "{out:?}");
                assert_eq!(message, format!("the compressed packets at byte {at} are cut off"));
            }
        }
        let garbled = [plain.clone(), bytes(&[PACKET], &bytes(&[0x92, 0x03], &[7; 90]))].concat();
        assert!(expand(&garbled, 64).expect_err("no zlib").1.starts_with("the compressed packets at byte 4 "));
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).expect("a vector");
        let more = [encoder.finish().expect("a vector"), vec![1]].concat();
        let trace = bytes(&[PACKET], &bytes(&[0x92, 0x03], &more));
        assert_eq!(expand(&trace, 64).expect_err("more").1, "the compressed packets at byte 0 go on behind their end");
    }

    #[test]
    fn numbers_of_base_128() {
        for (bytes, value) in [
            (&[0x00][..], Ok(Some((0, 1)))),
            (&[0x96, 0x01, 9], Ok(Some((150, 2)))),
            (&[0xFF; 9], Ok(None)),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], Ok(Some((u64::MAX, 10)))),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], Err(())),
            (&[0xFF; 11], Err(())),
            (&[], Ok(None)),
        ] {
            assert_eq!(varint(bytes), value, "{bytes:x?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any content ends, and is unchanged where it has no compressed packet.
        #[test]
        fn anything(mut trace in proptest::collection::vec(0u8..0x91, 0..200), at_once in 1usize..70) {
            prop_assert_eq!(expand(&trace, at_once).map_err(|(_, e)| e), Ok(trace.clone()));
            trace.insert(0, PACKET);
            prop_assert_eq!(expand(&trace, at_once).map_err(|(_, e)| e), Ok(trace));
        }
    }
}
