// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of the lines; none for replays, where only the decisions count.

/// Where lines keep their bytes.
pub trait Store {
    /// The bytes of a line, to be filled.
    fn line_mut(&mut self, line: u32) -> &mut [u8];

    /// The bytes of a line that was filled.
    fn line(&self, line: u32) -> &[u8];

    /// Releases the memory of a line.
    fn free(&mut self, line: u32);
}

/// Lines without bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoData;

impl Store for NoData {
    fn line_mut(&mut self, _line: u32) -> &mut [u8] {
        &mut []
    }

    fn line(&self, _line: u32) -> &[u8] {
        &[]
    }

    fn free(&mut self, _line: u32) {}
}

/// A page of memory for each line, allocated when it is first filled.
#[derive(Clone, Debug)]
pub struct Lines {
    page_bytes: usize,
    lines: Vec<Option<Box<[u8]>>>,
}

impl Lines {
    /// Room for `lines` pages of `page_bytes`.
    pub fn new(page_bytes: u32, lines: u32) -> Lines {
        Lines { page_bytes: page_bytes as usize, lines: vec![None; lines as usize] }
    }
}

impl Store for Lines {
    fn line_mut(&mut self, line: u32) -> &mut [u8] {
        self.lines[line as usize].get_or_insert_with(|| vec![0; self.page_bytes].into_boxed_slice())
    }

    fn line(&self, line: u32) -> &[u8] {
        self.lines[line as usize].as_deref().unwrap_or_default()
    }

    fn free(&mut self, line: u32) {
        self.lines[line as usize] = None;
    }
}
