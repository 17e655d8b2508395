// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of a trace: decompression recognised by its first bytes, a bounded buffer, lines cut out of it without
//! copying. Knows no format. Decoders: flate2 on zlib-rs, zstd, liblzma; their windows are bounded as well.

use super::packets::{Damaged, Expand, ZSTD_WINDOW_LOG};
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

readpath_kit::named! {
    /// How a trace is compressed.
    pub enum Compression {
        /// Not compressed.
        Plain = "not compressed",
        /// gzip, one or several members.
        Gzip = "gzip",
        /// Zstandard, one or several frames.
        Zstd = "zstd",
        /// xz, one or several streams.
        Xz = "xz",
    }
}

impl Compression {
    fn of(head: &[u8]) -> Compression {
        match head {
            [0x1F, 0x8B, ..] => Compression::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Compression::Zstd,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            _ => Compression::Plain,
        }
    }
}

/// Memory that the xz decoder may take; level 9 needs 65 MiB.
pub(super) const XZ_MEMORY: u64 = 256 << 20;
/// Bytes kept at once, at least.
const BUFFER: usize = 256 << 10;

/// Bytes kept at once of a trace of Perfetto, which may have much else in front of the events.
const PACKETS_BUFFER: usize = 4 << 20;

/// Most bytes of a line, and of blank lines in a row, that are passed over.
pub(super) const MOST_PASSED: usize = 16 << 20;

/// Why no more bytes come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    End,
    /// More bytes than allowed.
    Limit,
    /// The compressed content is cut off or damaged.
    Damaged(String),
    /// Decompressing it would take more memory than allowed.
    Memory,
    /// The system could not read.
    Io(String),
    /// The caller asked to stop.
    Asked,
}

/// What the message of a decoder means; zstd and xz distinguish a limit from damage in words only.
fn decoding(message: &str) -> Stop {
    if message.contains("too much memory") || message.contains("memory limit") {
        Stop::Memory
    } else {
        Stop::Damaged(message.to_owned())
    }
}

/// The content of `source` after decompression, which is recognised by the first bytes; memory is bounded. Content that
/// is not recognised is passed on unchanged.
///
/// # Errors
/// Those of reading `source`.
pub fn decompress(source: Box<dyn Read + Send>) -> io::Result<(Box<dyn Read + Send>, Compression)> {
    let mut source = source;
    let mut head = Vec::with_capacity(8);
    source.by_ref().take(6).read_to_end(&mut head)?;
    let compression = Compression::of(&head);
    let whole = Cursor::new(head).chain(source);
    let source: Box<dyn Read + Send> = match compression {
        Compression::Plain => Box::new(whole),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole))),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, whole))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
            let whole = BufReader::with_capacity(BUFFER, whole);
            Box::new(liblzma::bufread::XzDecoder::new_stream(whole, stream))
        }
    };
    Ok((source, compression))
}

/// A window over the decompressed bytes.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    pub(super) compression: Compression,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` from the beginning.
    pub(super) offset: u64,
    limit: u64,
    max_line: usize,
    stop: Option<Stop>,
    /// Why the source has ended.
    at_end: Stop,
    /// Checked before each read.
    pub(super) asked: Option<Arc<AtomicBool>>,
    /// The content of the window belongs to a line that is too long.
    in_long_line: bool,
    /// The last line had no newline.
    pub(super) unterminated: bool,
}

/// What [`Input::line`] found.
pub(super) enum Line {
    /// A line without its end, as a range of [`Input::bytes`].
    Text(usize, usize),
    /// A line longer than the limit.
    TooLong,
    /// The rest of the line before does not end within [`MOST_PASSED`].
    Endless,
    /// Nothing more.
    End,
}

impl Input {
    /// Opens the source. Lines longer than `max_line` bytes are not kept; more than `limit` bytes are not delivered.
    pub(super) fn new(source: Box<dyn Read + Send>, max_line: usize, limit: u64) -> io::Result<Input> {
        let (source, compression) = decompress(source)?;
        let size = BUFFER.max(max_line.saturating_mul(2)).max(1 << 17);
        let buffer = vec![0; size];
        Ok(Input {
            source,
            compression,
            buffer,
            start: 0,
            end: 0,
            offset: 0,
            limit,
            max_line,
            stop: None,
            at_end: Stop::End,
            asked: None,
            in_long_line: false,
            unterminated: false,
        })
    }

    /// Expands packets of Perfetto from the beginning, the content of the window included, through a larger window.
    pub(super) fn expand_packets(&mut self) {
        let seen = Cursor::new(self.bytes().to_vec());
        let rest: Box<dyn Read + Send> = match self.stop.take() {
            None => std::mem::replace(&mut self.source, Box::new(io::empty())),
            Some(stop) => {
                self.at_end = stop;
                Box::new(io::empty())
            }
        };
        self.source = Box::new(Expand::new(Box::new(seen.chain(rest))));
        // Allocated anew, not enlarged: zeroed memory that is never written costs nothing.
        self.buffer = vec![0; PACKETS_BUFFER.max(self.buffer.len())];
        (self.start, self.end) = (0, 0);
        self.refill();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes behind a range that [`Input::line`] gave.
    #[inline]
    pub(super) fn slice(&self, from: usize, to: usize) -> &[u8] {
        &self.buffer[from..to]
    }

    /// Fills the window as far as it goes.
    pub(super) fn refill(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.stop.is_none() && self.end < self.buffer.len() {
            if self.asked.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed)) {
                self.stop = Some(Stop::Asked);
                return;
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.stop = Some(self.at_end.clone()),
                Ok(n) if self.offset + (self.end + n) as u64 > self.limit => self.stop = Some(Stop::Limit),
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.get_ref().is_some_and(|e| e.is::<Damaged>()) => self.stop = Some(decoding(&e.to_string())),
                Err(e) if e.raw_os_error().is_some() || self.compression == Compression::Plain => {
                    self.stop = Some(Stop::Io(e.to_string()));
                }
                Err(e) => self.stop = Some(decoding(&e.to_string())),
            }
        }
    }

    /// Whether bytes may follow those in the window.
    pub(super) fn has_more(&self) -> bool {
        self.stop.is_none()
    }

    /// Why the content ended; asked after the end.
    pub(super) fn stop(&self) -> Stop {
        self.stop.clone().unwrap_or(Stop::End)
    }

    /// At least `n` bytes in the window, or fewer when there are no more. `n` may not exceed 128 KiB.
    #[inline]
    pub(super) fn need(&mut self, n: usize) -> &[u8] {
        debug_assert!(n <= 1 << 17);
        if self.end - self.start < n && self.stop.is_none() {
            self.refill();
        }
        self.bytes()
    }

    #[inline]
    pub(super) fn skip(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    #[inline]
    pub(super) fn line(&mut self) -> Line {
        if self.in_long_line && !self.pass_rest() {
            return Line::Endless;
        }
        if let Some(n) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
            return self.cut(n, n + 1);
        }
        self.line_across()
    }

    #[inline]
    fn cut(&mut self, n: usize, with_end: usize) -> Line {
        let from = self.start;
        self.skip(with_end);
        if n > self.max_line {
            return Line::TooLong;
        }
        let n = if n > 0 && self.buffer[from + n - 1] == b'\r' { n - 1 } else { n };
        Line::Text(from, from + n)
    }

    /// A line that does not end in the window.
    #[cold]
    fn line_across(&mut self) -> Line {
        let seen = self.end - self.start;
        self.refill();
        match memchr::memchr(b'\n', &self.buffer[self.start + seen..self.end]) {
            Some(n) => self.cut(seen + n, seen + n + 1),
            // Skipped when the next line is asked for: a caller that ends with an error need not wait for its end.
            None if self.stop.is_none() => {
                self.in_long_line = true;
                Line::TooLong
            }
            None if self.start == self.end => Line::End,
            // A line that is cut off with the content may end in the middle of a number.
            None if self.stop != Some(Stop::End) => {
                self.skip(self.end - self.start);
                Line::End
            }
            None => {
                self.unterminated = true;
                let n = self.end - self.start;
                self.cut(n, n)
            }
        }
    }

    /// Passes blank lines and returns how many: a few bytes of compressed content can hold billions of them. `None` if
    /// they do not end within [`MOST_PASSED`].
    #[cold]
    pub(super) fn pass_blank(&mut self) -> Option<u64> {
        let (from, mut lines) = (self.offset, 0);
        loop {
            let (mut passed, mut is_over) = (0, false);
            for (i, byte) in self.bytes().iter().enumerate() {
                match byte {
                    b'\n' => (passed, lines) = (i + 1, lines + 1),
                    b' ' | b'\t' | b'\r' if i - passed < self.max_line => {}
                    _ => {
                        is_over = true;
                        break;
                    }
                }
            }
            self.skip(passed);
            if self.offset - from > MOST_PASSED as u64 {
                return None;
            }
            if is_over || passed == 0 {
                return Some(lines);
            }
            self.refill();
        }
    }

    /// Passes the rest of a line that is longer than the window; false when it does not end soon.
    #[cold]
    fn pass_rest(&mut self) -> bool {
        self.in_long_line = false;
        let from = self.offset;
        while self.start < self.end {
            let end = memchr::memchr(b'\n', self.bytes());
            let length = end.unwrap_or(self.end - self.start);
            if self.offset - from + length as u64 > MOST_PASSED as u64 {
                return false;
            }
            self.skip(length + usize::from(end.is_some()));
            if end.is_some() {
                return true;
            }
            self.refill();
        }
        true
    }
}
