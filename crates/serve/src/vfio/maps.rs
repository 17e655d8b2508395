// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's memory, as far as it has mapped it. Memory comes as files, and is read and written as such: a client that
//! cuts a file short gets an error, where mapped memory would end the server by a signal.

use super::session::{Errno, Mapping};
use readpath_hci::{GuestMem, Unreachable};
use rustix::fs::{FileType, fstat, fstatfs};
use rustix::io::{pread, pwrite};

/// Mappings at once, at most: each may keep a file open.
const MOST: usize = 512;
/// File systems (statfs(2)) that cannot be written like others, or block a reader: hugetlbfs and FUSE.
const REFUSED: [u32; 2] = [0x9584_58F6, 0x6573_5546];

/// A client's memory.
#[derive(Debug, Default)]
pub struct Maps {
    /// Mappings in the order of their addresses, without overlap.
    maps: Vec<Mapping>,
    /// Whether the function may reach memory at all.
    is_master: bool,
}

impl Maps {
    /// Memory that may be reached from now on.
    ///
    /// # Errors
    /// It overlaps other memory, there are too many mappings, or its file is shorter than it or no ordinary one.
    pub fn map(&mut self, mapping: Mapping) -> Result<(), Errno> {
        if let Some((file, offset)) = &mapping.file {
            let stat = fstat(file).map_err(|_| Errno::Invalid)?;
            // A pipe or a device could keep the server waiting.
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let system = fstatfs(file).map_err(|_| Errno::Invalid)?;
            if REFUSED.contains(&(system.f_type as u32)) {
                return Err(Errno::NotSupported);
            }
            if !is_file || (stat.st_size as u64) < offset + mapping.bytes {
                return Err(Errno::Invalid);
            }
        }
        let last = |map: &Mapping| map.address + (map.bytes - 1);
        let at = self.maps.partition_point(|map| last(map) < mapping.address);
        if self.maps.get(at).is_some_and(|map| map.address <= last(&mapping)) {
            return Err(Errno::Exists);
        }
        if self.maps.len() == MOST {
            return Err(Errno::NoSpace);
        }
        self.maps.insert(at, mapping);
        Ok(())
    }

    /// Memory that may not be reached any more: one mapping, or all.
    ///
    /// # Errors
    /// There is no such mapping.
    pub fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let Some((address, bytes)) = range else {
            self.maps.clear();
            return Ok(());
        };
        let at = self.maps.iter().position(|map| (map.address, map.bytes) == (address, bytes));
        self.maps.remove(at.ok_or(Errno::NoEntry)?);
        Ok(())
    }

    /// Whether the function may reach memory: bus master, in the command register of PCI.
    pub fn set_master(&mut self, is_master: bool) {
        self.is_master = is_master;
    }

    /// The pieces of mappings that a range consists of, in order.
    fn each(
        &self,
        address: u64,
        bytes: usize,
        may: impl Fn(&Mapping) -> bool,
        mut piece: impl FnMut(&Mapping, u64, std::ops::Range<usize>) -> Option<()>,
    ) -> Result<(), Unreachable> {
        let unreachable = Unreachable { address, bytes };
        let mut done = 0;
        let mut at = self.maps.partition_point(|map| map.address + (map.bytes - 1) < address);
        while done < bytes {
            let from = address.checked_add(done as u64).ok_or(unreachable)?;
            let map = self.maps.get(at).filter(|map| self.is_master && map.address <= from && may(map));
            let map = map.ok_or(unreachable)?;
            let skipped = from - map.address;
            let end = bytes.min(done.saturating_add(usize::try_from(map.bytes - skipped).unwrap_or(usize::MAX)));
            piece(map, skipped, done..end).ok_or(unreachable)?;
            done = end;
            at += 1;
        }
        Ok(())
    }
}

impl GuestMem for Maps {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        self.each(
            address,
            bytes.len(),
            |map| map.read,
            |map, skipped, range| {
                let (file, offset) = map.file.as_ref()?;
                let mut rest = &mut bytes[range];
                let mut from = offset + skipped;
                while !rest.is_empty() {
                    let read = pread(file, &mut *rest, from).ok().filter(|read| *read > 0)?;
                    from += read as u64;
                    rest = &mut rest[read..];
                }
                Some(())
            },
        )
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        self.each(
            address,
            bytes.len(),
            |map| map.write,
            |map, skipped, range| {
                let (file, offset) = map.file.as_ref()?;
                let mut rest = &bytes[range];
                let mut from = offset + skipped;
                while !rest.is_empty() {
                    let written = pwrite(file, rest, from).ok().filter(|written| *written > 0)?;
                    from += written as u64;
                    rest = &rest[written..];
                }
                Some(())
            },
        )
    }
}
