// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffer that headers and small payloads are read into: one read takes many requests.

/// Bytes that can wait: all writes of 4 KiB of a client at depth 32, and more.
pub(super) const INPUT_BYTES: usize = 256 << 10;

/// Bytes that came and were not taken yet.
pub(super) struct Input {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Input { buffer: vec![0; INPUT_BYTES].into(), start: 0, end: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `bytes`, which must have come.
    pub(super) fn take(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Drops up to `remaining` bytes; `None` when more have to come.
    pub(super) fn skip(&mut self, remaining: &mut u32) -> Option<()> {
        let bytes = self.bytes().len().min(*remaining as usize);
        self.take(bytes);
        *remaining -= bytes as u32;
        (*remaining == 0).then_some(())
    }

    /// Space for the next bytes. Waiting bytes move to the front; they are few once every complete request is taken.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    /// `bytes` were put at the front of [`Input::space`].
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.buffer.len());
    }
}
