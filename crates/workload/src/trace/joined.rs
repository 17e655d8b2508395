// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that blktrace writes, one for each processor, as one: their records in order of time. Knows only the
//! header of a record.

use super::formats::blktrace::{Magic, RECORD_BYTES, Record, magic};
use std::io::{self, Read};

/// One file, and its next record.
struct Part {
    source: Box<dyn Read + Send>,
    /// Empty at the end.
    record: Vec<u8>,
    time: u64,
}

impl Part {
    /// Takes the next record. What is no record comes before everything else, for the reader to refuse.
    fn advance(&mut self) -> io::Result<()> {
        self.record.clear();
        self.time = 0;
        self.source.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut self.record)?;
        let (Some(head), Magic::Known(order)) = (self.record.first_chunk(), magic(&self.record)) else { return Ok(()) };
        let record = Record::parse(head, order);
        self.time = record.time;
        self.source.by_ref().take(record.payload as u64).read_to_end(&mut self.record)?;
        Ok(())
    }
}

/// Records of several files in order of time; at the same time those of the first file come first.
pub struct Joined {
    parts: Vec<Part>,
    record: Vec<u8>,
    at: usize,
}

impl Joined {
    /// Joins files of binary records of blktrace, each of which is in order of time.
    ///
    /// # Errors
    /// When the beginning of one cannot be read.
    pub fn new(sources: Vec<Box<dyn Read + Send>>) -> io::Result<Joined> {
        let part = |source| {
            let mut part = Part { source, record: Vec::new(), time: 0 };
            part.advance().map(|()| part)
        };
        let parts = sources.into_iter().map(part).collect::<io::Result<Vec<_>>>()?;
        Ok(Joined { parts, record: Vec::new(), at: 0 })
    }
}

impl Read for Joined {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.record.len() {
            let waiting = self.parts.iter_mut().filter(|part| !part.record.is_empty());
            let Some(next) = waiting.min_by_key(|part| part.time) else { return Ok(0) };
            std::mem::swap(&mut self.record, &mut next.record);
            self.at = 0;
            next.advance()?;
        }
        let n = (&self.record[self.at..]).read(into)?;
        self.at += n;
        Ok(n)
    }
}
