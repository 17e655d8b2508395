// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits to be sent: headers in one buffer, data in the buffers they came in, so that no data are copied and one
//! system call sends many replies. And the data buffers that are free for use again.

use std::collections::VecDeque;

/// Headers that were sent are dropped once they are this many bytes and most of all.
const COMPACT_BYTES: usize = 32 << 10;
/// Buffers kept for use again.
const SPARE_BUFFERS: usize = 256;
/// Capacity of all spare buffers: 64 of 128 KiB.
pub(super) const SPARE_BYTES: usize = 8 << 20;

/// Bytes that wait to be sent, in order.
#[derive(Default)]
pub(super) struct Output {
    headers: Vec<u8>,
    /// How many bytes of `headers` were sent.
    sent_headers: usize,
    pieces: VecDeque<Piece>,
    /// How many bytes of the first piece's data were sent.
    sent_data: usize,
    bytes: usize,
}

/// A run of headers, then data if there are any.
struct Piece {
    /// Bytes of `Output::headers` that were not sent.
    headers: usize,
    data: Vec<u8>,
}

impl Output {
    /// All bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory that the headers take.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.headers.capacity()
    }

    /// Adds a header, or any other few bytes.
    pub(super) fn put(&mut self, header: &[u8]) {
        self.headers.extend_from_slice(header);
        self.bytes += header.len();
        match self.pieces.back_mut() {
            Some(piece) if piece.data.is_empty() => piece.headers += header.len(),
            _ => self.pieces.push_back(Piece { headers: header.len(), data: Vec::new() }),
        }
    }

    pub(super) fn put_with_data(&mut self, header: &[u8], data: Vec<u8>) {
        self.put(header);
        self.bytes += data.len();
        if let Some(piece) = self.pieces.back_mut() {
            piece.data = data;
        }
    }

    /// What waits, in order; no slice is empty.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut headers = &self.headers[self.sent_headers..];
        let mut sent_data = self.sent_data;
        let slices = self.pieces.iter().flat_map(move |piece| {
            let (header, rest) = headers.split_at(piece.headers);
            headers = rest;
            [header, &piece.data[std::mem::take(&mut sent_data)..]]
        });
        slices.filter(|slice| !slice.is_empty())
    }

    /// Drops the first `bytes`, which were sent; buffers that are sent whole go to `spare`.
    pub(super) fn sent(&mut self, bytes: usize, spare: &mut Spare) {
        let mut left = bytes.min(self.bytes);
        self.bytes -= left;
        while let Some(piece) = self.pieces.front_mut() {
            let headers = left.min(piece.headers);
            piece.headers -= headers;
            self.sent_headers += headers;
            left -= headers;
            let data = left.min(piece.data.len() - self.sent_data);
            self.sent_data += data;
            left -= data;
            if piece.headers > 0 || self.sent_data < piece.data.len() {
                break;
            }
            spare.give(std::mem::take(&mut piece.data));
            self.sent_data = 0;
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() {
            self.headers.clear();
            self.sent_headers = 0;
        } else if self.sent_headers >= COMPACT_BYTES.max(self.headers.len() / 2) {
            self.headers.drain(..self.sent_headers);
            self.sent_headers = 0;
        }
    }
}

/// Data buffers that are free. They keep their length and content: what is initialised needs no zeros again.
#[derive(Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    /// Capacity of all.
    bytes: usize,
}

impl Spare {
    /// Capacity of all.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffers.iter().map(Vec::capacity).sum()
    }

    /// Keeps `buffer` unless enough are kept.
    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes > 0 && self.buffers.len() < SPARE_BUFFERS && bytes <= SPARE_BYTES - self.bytes {
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }

    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// A buffer that holds `data`.
    pub(super) fn copy(&mut self, data: &[u8]) -> Vec<u8> {
        let mut buffer = self.take().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(data);
        buffer
    }

    /// A buffer of `bytes` that begins with `data`, which must not be longer; the rest is to be overwritten.
    pub(super) fn begin(&mut self, data: &[u8], bytes: usize) -> Vec<u8> {
        let mut buffer = match self.take() {
            Some(mut buffer) if buffer.capacity() >= bytes => {
                buffer.resize(bytes, 0);
                buffer
            }
            // Fresh zeros come from the system without being written: a client that only announces costs no memory.
            _ => vec![0; bytes],
        };
        buffer[..data.len()].copy_from_slice(data);
        buffer
    }
}
