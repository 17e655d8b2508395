// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that writes behind: writes are gathered into batches, and a thread carries them out in order, while the
//! device goes on. Reads find what is not written yet. It knows no layout.
//!
//! *Order.* At any moment the file has the state that a prefix of the writes leaves: a kill of the process loses only
//! the newest ones. Data ([`Disk::write_data_at`]) may be in the file earlier, since nothing names it yet.

use crate::disk::Disk;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Bytes of a batch that is handed to the thread: they fit the caches of a processor.
const BATCH_BYTES: usize = 256 << 10;
/// The most batches that wait for the thread.
const MOST_BATCHES: usize = 128;
/// A kill of the process cuts no write within such a page of the file.
const MEMORY_PAGE: u64 = 4096;

/// Bytes of a batch, and their place on the disk.
#[derive(Clone, Debug)]
struct Piece {
    offset: u64,
    bytes: Range<usize>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// How a batch ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum End {
    #[default]
    Open,
    Zero(u64, u64),
    Sync,
}

/// Writes that are carried out together: data first, then the others in order, then the end.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    data: Pieces,
    writes: Pieces,
    end: End,
}

#[derive(Debug, Default)]
struct Pieces {
    list: Vec<Piece>,
    /// They lie within this part of the disk.
    span: Range<u64>,
}

impl Pieces {
    fn add(&mut self, piece: Piece) {
        let start = if self.list.is_empty() { piece.offset } else { self.span.start.min(piece.offset) };
        self.span = start..self.span.end.max(piece.end());
        self.list.push(piece);
    }

    fn clear(&mut self) {
        self.list.clear();
        self.span = 0..0;
    }

    /// Those that touch `part`.
    fn within(&self, part: Range<u64>) -> impl Iterator<Item = &Piece> {
        let near = if self.span.start < part.end && part.start < self.span.end { &self.list[..] } else { &[] };
        near.iter().filter(move |piece| piece.offset < part.end && part.start < piece.end())
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.end == End::Open
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.data.clear();
        self.writes.clear();
        self.end = End::Open;
    }

    fn add(&mut self, bytes: &[u8], offset: u64) -> Piece {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Piece { offset, bytes: from..self.bytes.len() }
    }

    /// What this makes of the bytes of `offset`.
    fn change(&self, bytes: &mut [u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        for piece in self.data.within(offset..end).chain(self.writes.within(offset..end)) {
            let (from, to) = (piece.offset.max(offset), piece.end().min(end));
            let new = &self.bytes[piece.bytes.clone()][(from - piece.offset) as usize..(to - piece.offset) as usize];
            bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(new);
        }
        if let End::Zero(first, count) = self.end {
            let (from, to) = (first.max(offset), (first + count).min(end));
            if from < to {
                bytes[(from - offset) as usize..(to - offset) as usize].fill(0);
            }
        }
    }

    /// Writes everything to `disk`.
    fn carry_out(&self, disk: &mut impl Disk) -> io::Result<()> {
        let mut data: Vec<&Piece> = self.data.list.iter().collect();
        data.sort_by_key(|piece| piece.offset);
        for run in data.chunk_by(|one, next| one.end() == next.offset) {
            let mut slices: Vec<IoSlice> =
                run.iter().map(|piece| IoSlice::new(&self.bytes[piece.bytes.clone()])).collect();
            disk.write_slices_at(&mut slices, run[0].offset)?;
        }
        let page = |piece: &Piece| piece.offset / MEMORY_PAGE;
        let lies_in_one = |piece: &Piece| page(piece) == (piece.end() - 1) / MEMORY_PAGE;
        for of_page in
            self.writes.list.chunk_by(|one, next| page(one) == page(next) && lies_in_one(one) && lies_in_one(next))
        {
            self.write_together(disk, of_page)?;
        }
        match self.end {
            End::Open => Ok(()),
            End::Zero(offset, bytes) => disk.zero(offset, bytes),
            End::Sync => disk.sync(),
        }
    }

    /// Writes pieces of one page of memory at once, so that a kill takes all of them or none.
    fn write_together(&self, disk: &mut impl Disk, pieces: &[Piece]) -> io::Result<()> {
        if let [piece] = pieces {
            return disk.write_at(&self.bytes[piece.bytes.clone()], piece.offset);
        }
        let from = pieces.iter().map(|piece| piece.offset).min().unwrap_or_default();
        let to = pieces.iter().map(Piece::end).max().unwrap_or_default();
        let mut bytes = [0; MEMORY_PAGE as usize];
        let bytes = &mut bytes[..(to - from) as usize];
        // What lies between them stays.
        if pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>() != bytes.len() {
            disk.read_at(bytes, from)?;
        }
        for piece in pieces {
            let at = (piece.offset - from) as usize;
            bytes[at..at + piece.bytes.len()].copy_from_slice(&self.bytes[piece.bytes.clone()]);
        }
        disk.write_at(bytes, from)
    }
}

/// How far the thread has come.
#[derive(Debug, Default)]
struct Progress {
    /// Batches that are on the disk.
    done: Mutex<(u64, Option<(ErrorKind, String)>)>,
    changed: Condvar,
}

/// The thread, and what it was given.
#[derive(Debug)]
struct Writer {
    thread: Option<JoinHandle<()>>,
    batches: Option<Sender<Arc<Batch>>>,
    progress: Arc<Progress>,
    /// Batches that it had carried out when it was last looked at.
    done: u64,
}

/// A disk that writes behind.
#[derive(Debug)]
pub struct Behind<D> {
    disk: D,
    writer: Option<Writer>,
    batch: Batch,
    /// Batches that the thread has, oldest first. After a failure they stay, and are read.
    sent: VecDeque<Arc<Batch>>,
    /// Batches to be used again.
    spare: Vec<Batch>,
}

impl Writer {
    fn new<D: Disk + Send + 'static>(disk: D) -> io::Result<Writer> {
        let (sender, receiver) = channel();
        let progress = Arc::new(Progress::default());
        let of_thread = progress.clone();
        let thread = std::thread::Builder::new().name("image".to_owned());
        let thread = thread.spawn(move || work(disk, &receiver, &of_thread))?;
        Ok(Writer { thread: Some(thread), batches: Some(sender), progress, done: 0 })
    }
}

fn work<D: Disk>(mut disk: D, batches: &Receiver<Arc<Batch>>, progress: &Progress) {
    while let Ok(batch) = batches.recv() {
        let written = batch.carry_out(&mut disk);
        drop(batch);
        let mut done = progress.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match written {
            Ok(()) => done.0 += 1,
            Err(error) => done.1 = Some((error.kind(), error.to_string())),
        }
        let has_failed = done.1.is_some();
        drop(done);
        progress.changed.notify_all();
        if has_failed {
            return;
        }
    }
}

impl<D: Disk> Behind<D> {
    /// A disk that is read here, and written by a thread through `other`, which is the same disk. Without `other` the
    /// write that completes a batch carries it out, and a drop loses the last one, as a kill of the process does.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn new(disk: D, other: Option<D>) -> io::Result<Behind<D>>
    where
        D: Send + 'static,
    {
        let writer = other.map(Writer::new).transpose()?;
        Ok(Behind { disk, writer, batch: Batch::default(), sent: VecDeque::new(), spare: Vec::new() })
    }

    /// The disk itself.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk itself, for tests that change it.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Hands the batch to the thread; waits if it has too many.
    fn send(&mut self) -> io::Result<()> {
        let Some(writer) = &self.writer else {
            self.batch.carry_out(&mut self.disk)?;
            self.batch.clear();
            return Ok(());
        };
        if !self.batch.is_empty() {
            let batch = Arc::new(std::mem::replace(&mut self.batch, self.spare.pop().unwrap_or_default()));
            self.sent.push_back(batch.clone());
            // The thread is gone after a failure, which is found below.
            writer.batches.as_ref().map(|batches| batches.send(batch));
        }
        self.wait(MOST_BATCHES)
    }

    /// Waits until the thread has at most so many batches.
    fn wait(&mut self, most: usize) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut done = writer.progress.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            while writer.done < done.0 {
                writer.done += 1;
                if let Some(mut batch) = self.sent.pop_front().and_then(Arc::into_inner) {
                    batch.clear();
                    self.spare.push(batch);
                }
            }
            if let Some((kind, error)) = &done.1 {
                return Err(io::Error::new(*kind, error.clone()));
            }
            if self.sent.len() <= most {
                return Ok(());
            }
            done = writer.progress.changed.wait(done).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn end(&mut self, end: End) -> io::Result<()> {
        self.batch.end = end;
        self.send()
    }
}

impl<D: Disk> Disk for Behind<D> {
    #[inline]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.read_at(bytes, offset)?;
        for batch in &self.sent {
            batch.change(bytes, offset);
        }
        self.batch.change(bytes, offset);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let piece = self.batch.add(bytes, offset);
        self.batch.writes.add(piece);
        if self.batch.bytes.len() >= BATCH_BYTES { self.send() } else { Ok(()) }
    }

    fn write_data_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let piece = self.batch.add(bytes, offset);
        self.batch.data.add(piece);
        Ok(())
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.end(End::Zero(offset, bytes))
    }

    fn order(&mut self) -> io::Result<()> {
        self.end(End::Sync)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.send()?;
        self.wait(0)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.end(End::Sync)?;
        self.wait(0)
    }
}

impl<D> Drop for Behind<D> {
    fn drop(&mut self) {
        if let Some(Writer { thread, batches, .. }) = &mut self.writer {
            if let Some(batches) = batches.take() {
                // If it fails, nobody waits for it.
                batches.send(Arc::new(std::mem::take(&mut self.batch))).ok();
            }
            // A panic has been reported.
            thread.take().map(JoinHandle::join);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{FileDisk, MemoryDisk};
    use readpath_kit::Prng;

    const BYTES: usize = 4 << 20;
    /// Data is below, and what names it above.
    const NAMES: u64 = 3 << 20;

    /// What is read is what was written, whether or not it has reached the file; and the file has all of it in the end.
    #[test]
    fn it_reads_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = FileDisk::create(&path, BYTES as u64).unwrap();
        let other = file.again().unwrap();
        let mut disk = Behind::new(file, other).unwrap();
        let (rng, mut expected) = (&mut Prng::new(1), vec![0; BYTES]);
        let mut unordered: Vec<u64> = Vec::new();
        for i in 0..6000u32 {
            let bytes = 1 + rng.below(9000) as usize;
            let data = vec![i as u8; bytes];
            let below = rng.below(NAMES - 9001);
            let above = NAMES + rng.below(BYTES as u64 - NAMES - 9001);
            match rng.below(40) {
                0 => disk.sync().unwrap(),
                1 => disk.order().unwrap(),
                2 => disk.hand_over().unwrap(),
                3..6 => {
                    disk.zero(below, bytes as u64).unwrap();
                    expected[below as usize..below as usize + bytes].fill(0);
                }
                6..12 => {
                    disk.write_at(&data[..bytes.min(200)], above).unwrap();
                    expected[above as usize..above as usize + bytes.min(200)].fill(i as u8);
                }
                12..24 => {
                    if unordered.iter().any(|at| at.abs_diff(below) < 9001) {
                        disk.order().unwrap();
                        unordered.clear();
                    }
                    unordered.push(below);
                    disk.write_data_at(&data, below).unwrap();
                    expected[below as usize..below as usize + bytes].fill(i as u8);
                }
                _ => {
                    let from = rng.below((BYTES - 9001) as u64);
                    let mut data = vec![7; bytes];
                    disk.read_at(&mut data, from).unwrap();
                    assert!(data == expected[from as usize..from as usize + bytes], "{bytes} bytes at {from}");
                }
            }
        }
        drop(disk);
        assert!(std::fs::read(&path).unwrap() == expected);
    }

    /// What a disk was told, and from which write on it fails.
    #[derive(Debug, Default)]
    struct Told {
        bytes: Vec<u8>,
        /// The bytes after each write.
        states: Vec<Vec<u8>>,
        syncs: u32,
        left: u64,
    }

    #[derive(Clone, Debug)]
    struct Shared(Arc<Mutex<Told>>);

    impl Disk for Shared {
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            let told = self.0.lock().unwrap();
            bytes.copy_from_slice(&told.bytes[offset as usize..offset as usize + bytes.len()]);
            Ok(())
        }

        fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let mut told = self.0.lock().unwrap();
            told.left = told.left.checked_sub(1).ok_or(ErrorKind::StorageFull)?;
            told.bytes[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
            let state = told.bytes.clone();
            told.states.push(state);
            Ok(())
        }

        fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
            self.write_at(&vec![0; bytes as usize], offset)
        }

        fn sync(&mut self) -> io::Result<()> {
            self.0.lock().unwrap().syncs += 1;
            Ok(())
        }
    }

    fn shared(left: u64) -> (Shared, Behind<Shared>) {
        let told = Told { bytes: vec![0; 1 << 16], left, ..Told::default() };
        let disk = Shared(Arc::new(Mutex::new(told)));
        (disk.clone(), Behind::new(disk.clone(), Some(disk)).unwrap())
    }

    /// Unit `n` has data in page `n % 8`, and is named in a place of its own among 1500 of 24 bytes; two of them are in
    /// the wrong order, as dies are.
    fn unit(n: u64) -> (u64, u64) {
        (n % 8 * 4096, (32 << 10) + (n ^ 1) * 24)
    }

    /// After each write of the disk the named units are a prefix, and each has its data.
    #[test]
    fn a_kill_leaves_a_prefix() {
        let (told, mut disk) = shared(u64::MAX);
        for n in 0..600u64 {
            let (data, name) = unit(n);
            if n % 7 == 0 {
                disk.order().unwrap();
            }
            disk.write_data_at(&[n as u8 | 1; 4096], data).unwrap();
            disk.write_at(&[n as u8 | 1; 24], name).unwrap();
        }
        disk.hand_over().unwrap();
        let told = told.0.lock().unwrap();
        // The data of 600 units, and what names those of a batch at once.
        assert!(told.syncs >= 80 && told.states.len() < 720, "{} writes", told.states.len());
        for state in &told.states {
            let named = |n: u64| state[unit(n).1 as usize] != 0;
            let count = (0..600).take_while(|&n| named(n)).count() as u64;
            assert!((count..600).all(|n| !named(n)), "after {count}");
            for n in count.saturating_sub(8) / 8 * 8..count {
                let byte = state[unit(n).0 as usize];
                // That of the next batches may be there already.
                assert!([n, n + 8, n + 16].iter().any(|&n| byte == n as u8 | 1), "{n} of {count}: {byte}");
            }
        }
    }

    /// After a failure nothing is written, a sync reports it, and reads find what was written before.
    #[test]
    fn a_failure_ends_it() {
        for left in 0..6 {
            let (told, mut disk) = shared(left);
            for n in 0..3 {
                let (data, name) = unit(n);
                disk.write_data_at(&[9; 4096], data).unwrap();
                disk.write_at(&[9; 24], name).unwrap();
                if disk.order().is_err() {
                    break;
                }
            }
            assert_eq!(disk.sync().map_err(|e| e.kind()), Err(ErrorKind::StorageFull), "{left}");
            assert!(disk.hand_over().is_err() && disk.order().is_err(), "{left}");
            let mut data = [0; 4096];
            disk.read_at(&mut data, 0).unwrap();
            assert_eq!(data, [9; 4096], "{left}");
            drop(disk);
            assert_eq!(told.0.lock().unwrap().states.len() as u64, left);
        }
    }

    #[test]
    fn a_sync_waits_for_everything() {
        let mut disk = Behind::new(MemoryDisk::new(1 << 16), None).unwrap();
        for (n, ends) in [Behind::sync, Behind::hand_over, Behind::order].into_iter().enumerate() {
            disk.write_at(&[n as u8 + 1], n as u64).unwrap();
            assert_eq!(disk.disk_mut().bytes_mut()[n], 0);
            ends(&mut disk).unwrap();
            assert_eq!(disk.disk_mut().bytes_mut()[n], n as u8 + 1);
        }
        let (told, mut disk) = shared(u64::MAX);
        for n in 0..200 {
            disk.write_at(&[n as u8; 24], n * 24).unwrap();
            disk.sync().unwrap();
            assert_eq!(told.0.lock().unwrap().bytes[n as usize * 24], n as u8);
        }
    }
}
