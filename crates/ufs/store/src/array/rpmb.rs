// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of RPMB, in a part of its own: a change becomes durable as a whole, or not at all.
//!
//! *A change* is first written as a record, with the key, the write counter and the changed blocks, and synced. From
//! then on it counts. Only then are the blocks written to their places. There are two records, written in turn: the
//! newest is always whole, or being written while the other one is. A reader of the part writes the blocks of both
//! records to their places again, because a crash may have come before that.
//!
//! *The mark* is the number of the newest synced record. An unreadable newest record was cut short by a crash, unless
//! the mark includes it: then it is damaged, and the other one, with its older counter, must not replace it.

use super::FlashFile;
use crate::disk::Disk;
use crate::layout::{Format, Rpmb};
use readpath_device::{RpmbState, RpmbUpdate};
use readpath_proto::rpmb::{BLOCK_BYTES, BLOCKS, Key, MOST_FRAMES};
use std::io::{self, ErrorKind};

const KEY_IS_SET: u8 = 1;
/// From this record on all blocks are zeros.
const CLEARS: u8 = 2;
/// Bytes of a record before its blocks.
const RECORD_HEAD: usize = 64;
const MARK_BYTES: usize = 12;
const BLOCKS_BYTES: usize = BLOCKS as usize * BLOCK_BYTES;
const CHECKS_BYTES: usize = BLOCKS as usize * 4;

/// A change in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Record {
    /// Number of changes so far, including this one.
    number: u64,
    key: Option<Key>,
    counter: u32,
    clears: bool,
    first: u32,
    data: Vec<u8>,
}

/// Result of parsing a record.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Read {
    Blank,
    Torn,
    Record(Record),
}

impl Record {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_HEAD];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.counter.to_le_bytes());
        let flags = [(KEY_IS_SET, self.key.is_some()), (CLEARS, self.clears)];
        bytes[12] = flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).sum();
        bytes[16..20].copy_from_slice(&self.first.to_le_bytes());
        bytes[20..24].copy_from_slice(&((self.data.len() / BLOCK_BYTES) as u32).to_le_bytes());
        bytes[24..56].copy_from_slice(&self.key.unwrap_or_default());
        bytes.extend(&self.data);
        let check = Record::check(&bytes);
        bytes[60..RECORD_HEAD].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Check of all bytes but itself.
    fn check(bytes: &[u8]) -> u32 {
        let mut check = crc32fast::Hasher::new();
        check.update(&bytes[..60]);
        check.update(&bytes[RECORD_HEAD..]);
        check.finalize()
    }

    fn from_bytes(bytes: &[u8]) -> Read {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[..RECORD_HEAD] == [0; RECORD_HEAD] {
            return Read::Blank;
        }
        let (first, blocks) = (number(16), number(20) as usize);
        let end = RECORD_HEAD + blocks.min(MOST_FRAMES) * BLOCK_BYTES;
        let is_whole = Record::check(&bytes[..end]) == number(60);
        if !is_whole || blocks > MOST_FRAMES || first > BLOCKS - blocks as u32 {
            return Read::Torn;
        }
        Read::Record(Record {
            number: u64::from(number(0)) | u64::from(number(4)) << 32,
            key: (bytes[12] & KEY_IS_SET != 0).then(|| bytes[24..56].try_into().expect("the bytes of a key")),
            counter: number(8),
            clears: bytes[12] & CLEARS != 0,
            first,
            data: bytes[RECORD_HEAD..end].to_vec(),
        })
    }
}

/// Whether the check of a block is right. A block that was never written has none, and is zeros.
fn is_right(block: &[u8], check: &[u8]) -> bool {
    crc32fast::hash(block).to_le_bytes() == check || check == [0; 4] && super::is_zero(block)
}

fn checks_of(data: &[u8]) -> Vec<u8> {
    data.chunks_exact(BLOCK_BYTES).flat_map(|block| crc32fast::hash(block).to_le_bytes()).collect()
}

impl<D: Disk> FlashFile<D> {
    /// Writes a change of RPMB. It survives a crash of the machine when this returns, unless a write has failed.
    pub(crate) fn put_rpmb(&mut self, update: &RpmbUpdate) {
        let RpmbUpdate { key, counter, first, data } = update.clone();
        self.change_rpmb(|number| Record { number, key: Some(key), counter, clears: false, first: first.into(), data });
    }

    /// Removes key, write counter and blocks. Returns whether there were any.
    ///
    /// # Errors
    /// The state is damaged, or the disk cannot be written.
    pub fn reset_rpmb(&mut self) -> Result<bool, String> {
        let (newest, _) = self.rpmb_records()?;
        if newest.is_none_or(|newest| newest.key.is_none()) {
            return Ok(false);
        }
        self.change_rpmb(|number| Record { number, key: None, counter: 0, clears: true, first: 0, data: Vec::new() });
        // The old key is in the other record.
        let number = self.rpmb_newest.unwrap_or_default();
        let other = self.rpmb().record(number + 1);
        self.write(|disk| disk.zero(other, Rpmb::RECORD_BYTES));
        self.sync()?;
        Ok(true)
    }

    fn change_rpmb(&mut self, record: impl FnOnce(u64) -> Record) {
        if let Err(error) = self.begin_rpmb() {
            self.failure.get_or_insert(error);
        }
        let record = record(self.rpmb_newest.unwrap_or_default() + 1);
        let at = self.rpmb().record(record.number);
        self.write(|disk| disk.write_at(&record.to_bytes(), at));
        self.sync_at_once();
        self.put_blocks(&record);
        // Without syncs no record is known to have reached the disk.
        if self.syncs {
            self.put_mark(record.number);
        }
        self.rpmb_newest = Some(record.number);
    }

    /// Writes the blocks of a record to their places.
    fn put_blocks(&mut self, record: &Record) {
        let rpmb = self.rpmb();
        if record.clears {
            self.write(|disk| disk.zero(rpmb.checks(0), CHECKS_BYTES as u64));
            self.write(|disk| disk.zero(rpmb.block(0), BLOCKS_BYTES as u64));
        }
        if !record.data.is_empty() {
            self.write(|disk| disk.write_at(&record.data, rpmb.block(record.first)));
            self.write(|disk| disk.write_at(&checks_of(&record.data), rpmb.checks(record.first)));
        }
    }

    fn put_mark(&mut self, number: u64) {
        let mut mark = [0; MARK_BYTES];
        mark[..8].copy_from_slice(&number.to_le_bytes());
        let check = crc32fast::hash(&mark[..8]);
        mark[8..].copy_from_slice(&check.to_le_bytes());
        let at = self.rpmb().mark();
        self.write(|disk| disk.write_at(&mark, at));
    }

    fn rpmb(&self) -> Rpmb {
        self.format.rpmb()
    }

    /// Whether the file has the part. A file of version 1 gets it with the first change.
    fn has_rpmb(&self) -> Result<bool, String> {
        match self.disk.read_at(&mut [0], self.rpmb().end() - 1) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && self.format.version < Format::WITH_RPMB => {
                Ok(false)
            }
            read => read.map(|()| true).map_err(|error| self.rpmb_error("its last byte", self.rpmb().end() - 1, error)),
        }
    }

    fn rpmb_error(&self, what: &str, at: u64, error: io::Error) -> String {
        format!("RPMB: {what} (byte {at} of the image): {error}")
    }

    fn read_rpmb(&self, what: &str, at: u64, bytes: u64) -> Result<Vec<u8>, String> {
        let mut read = vec![0; bytes as usize];
        self.disk.read_at(&mut read, at).map_err(|error| self.rpmb_error(what, at, error))?;
        Ok(read)
    }

    /// The newest record, and the one before it.
    fn rpmb_records(&self) -> Result<(Option<Record>, Option<Record>), String> {
        if !self.has_rpmb()? {
            return Ok((None, None));
        }
        let rpmb = self.rpmb();
        let mut records = Vec::new();
        let mut torn = 0;
        for at in [0, 1] {
            match Record::from_bytes(&self.read_rpmb("a record", rpmb.record(at), Rpmb::RECORD_BYTES)?) {
                Read::Record(record) if record.number % 2 == at && record.number > 0 => records.push(record),
                Read::Blank => {}
                Read::Torn | Read::Record(_) => torn += 1,
            }
        }
        records.sort_by_key(|record| std::cmp::Reverse(record.number));
        let mut records = records.into_iter();
        let (newest, before) = (records.next(), records.next());
        let mark = self.read_rpmb("its mark", rpmb.mark(), MARK_BYTES as u64)?;
        let (number, check) = mark.split_at(8);
        let marked = match mark == [0; MARK_BYTES] {
            true => 0,
            false if crc32fast::hash(number).to_le_bytes() == check => {
                u64::from_le_bytes(number.try_into().expect("eight bytes"))
            }
            false => return Err(format!("RPMB: its mark (byte {} of the image) is damaged", rpmb.mark())),
        };
        let number = newest.as_ref().map_or(0, |record| record.number);
        if torn == 2 || number < marked || before.as_ref().is_some_and(|before| before.number + 1 != number) {
            let at = rpmb.record(marked);
            return Err(format!("RPMB: the record of change {marked} (byte {at} of the image) is damaged"));
        }
        Ok((newest, before))
    }

    /// Once, before any other access: writes blocks to their places that a crash may have prevented.
    fn begin_rpmb(&mut self) -> Result<Option<Record>, String> {
        let (newest, before) = self.rpmb_records()?;
        if self.rpmb_newest.is_some() {
            return Ok(newest);
        }
        if !self.has_rpmb()? {
            // The part is the last of the file. The file system makes a hole of the skipped range.
            let last = self.rpmb().end() - 1;
            self.write(|disk| disk.write_at(&[0], last));
        }
        let mut has_changed = false;
        for record in before.iter().chain(&newest) {
            if record.clears || self.has_to_be_put(record)? {
                self.put_blocks(record);
                has_changed = true;
            }
        }
        if has_changed {
            // Its record will be overwritten.
            self.sync_at_once();
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.rpmb_newest = Some(newest.as_ref().map_or(0, |record| record.number));
        Ok(newest)
    }

    fn has_to_be_put(&self, record: &Record) -> Result<bool, String> {
        let (block, check) = (self.rpmb().block(record.first), self.rpmb().checks(record.first));
        let checks = checks_of(&record.data);
        Ok(self.read_rpmb("blocks", block, record.data.len() as u64)? != record.data
            || self.read_rpmb("checks of blocks", check, checks.len() as u64)? != checks)
    }

    /// The state of RPMB; `None` if there is no key.
    pub(super) fn load_rpmb(&mut self) -> Result<Option<RpmbState>, String> {
        // A file without the part keeps its length until the first change.
        if !self.has_rpmb()? {
            return Ok(None);
        }
        let Some(Record { key: Some(key), counter, .. }) = self.begin_rpmb()? else { return Ok(None) };
        let mut damaged = Vec::new();
        let mut data = self.rpmb_blocks(|block| damaged.push(block))?;
        if let Some(&block) = damaged.first() {
            return Err(self.damaged_block(block));
        }
        let used = data.rchunks_exact(BLOCK_BYTES).position(|block| !super::is_zero(block));
        data.truncate(used.map_or(0, |zeros| data.len() - zeros * BLOCK_BYTES));
        Ok(Some(RpmbState { key, counter, data }))
    }

    fn damaged_block(&self, block: u32) -> String {
        format!("RPMB: block {block} (byte {} of the image) is not what was written", self.rpmb().block(block))
    }

    /// Reads all blocks; `damaged` gets those that differ from what was written.
    fn rpmb_blocks(&self, mut damaged: impl FnMut(u32)) -> Result<Vec<u8>, String> {
        let checks = self.read_rpmb("checks of blocks", self.rpmb().checks(0), CHECKS_BYTES as u64)?;
        let data = self.read_rpmb("blocks", self.rpmb().block(0), BLOCKS_BYTES as u64)?;
        let each = data.chunks_exact(BLOCK_BYTES).zip(checks.chunks_exact(4));
        for (number, _) in (0..).zip(each).filter(|(_, (block, check))| !is_right(block, check)) {
            damaged(number);
        }
        Ok(data)
    }

    /// Examines the whole part; `each` gets the faults.
    pub(crate) fn examine_rpmb(&mut self, mut each: impl FnMut(String)) {
        let blocks = match self.has_rpmb() {
            Ok(true) => self.begin_rpmb().map(|_| ()),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let mut damaged = Vec::new();
        let read = blocks.and_then(|()| self.rpmb_blocks(|block| damaged.push(block)));
        damaged.into_iter().for_each(|block| each(self.damaged_block(block)));
        read.err().into_iter().for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_tells_damage() {
        let data = (0..300).map(|i| i as u8).cycle().take(2 * BLOCK_BYTES).collect();
        let record = Record { number: 7 << 32 | 5, key: Some([9; 32]), counter: 77, clears: true, first: 16_382, data };
        let mut bytes = record.to_bytes();
        let used = bytes.len();
        bytes.resize(Rpmb::RECORD_BYTES as usize, 0);
        assert_eq!(Record::from_bytes(&bytes), Read::Record(record));
        for bit in 0..used * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::from_bytes(&bytes), Read::Torn, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Record::from_bytes(&[0; Rpmb::RECORD_BYTES as usize]), Read::Blank);
    }

    #[test]
    fn a_block_without_a_check_is_zeros() {
        let (zeros, ones) = ([0; BLOCK_BYTES], [1; BLOCK_BYTES]);
        let check = |block: &[u8]| crc32fast::hash(block).to_le_bytes();
        assert!(is_right(&zeros, &[0; 4]) && is_right(&zeros, &check(&zeros)) && is_right(&ones, &check(&ones)));
        assert!(!is_right(&ones, &[0; 4]) && !is_right(&zeros, &check(&ones)) && !is_right(&ones, &check(&zeros)));
    }
}
