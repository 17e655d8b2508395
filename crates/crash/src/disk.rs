// SPDX-License-Identifier: MIT OR Apache-2.0
//! A state as a disk that clients write to: what they write is theirs and ends with it. The server's side of NBD
//! connections is `nbd` of the crate `serve`.

use crate::base::{BLOCK, Base, Block};
use crate::error::CrashError;
use crate::log::Log;
use crate::state::State;
use readpath_serve::nbd::{Command, Errno, Event, Export, Extent, Request, Session};
use std::collections::HashMap;
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// A client that takes no answers is not read from beyond so many bytes.
const MOST_UNSENT: usize = 4 << 20;

/// Extents of an answer to BLOCK_STATUS.
const MOST_EXTENTS: usize = 4096;

/// A state, and what was written to it.
pub(crate) struct Served<'a> {
    pub log: &'a Log,
    pub base: &'a Base,
    pub state: &'a State,
    written: HashMap<u32, Box<Block>>,
    /// Why a read failed.
    pub fault: Option<CrashError>,
}

impl<'a> Served<'a> {
    pub(crate) fn new(log: &'a Log, base: &'a Base, state: &'a State) -> Self {
        Served { log, base, state, written: HashMap::new(), fault: None }
    }

    fn block(&self, number: u32, to: &mut Block) -> Result<(), CrashError> {
        match self.written.get(&number) {
            Some(block) => *to = **block,
            None => self.state.read(self.log, self.base, number, to)?,
        }
        Ok(())
    }

    /// The parts of a range: number of the block, offset in it, and how many bytes.
    fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = (u32, usize, usize)> {
        let end = offset + bytes as u64;
        let mut at = offset;
        std::iter::from_fn(move || {
            let (number, from) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let count = ((BLOCK - from) as u64).min(end - at) as usize;
            at += count as u64;
            (count > 0).then_some((number as u32, from, count))
        })
    }

    pub(crate) fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), CrashError> {
        let mut block = [0; BLOCK];
        let mut done = 0;
        for (number, from, count) in Self::parts(offset, data.len()) {
            self.block(number, &mut block)?;
            data[done..done + count].copy_from_slice(&block[from..from + count]);
            done += count;
        }
        Ok(())
    }

    /// Writes data, or zeros.
    fn write(&mut self, offset: u64, bytes: usize, data: Option<&[u8]>) -> Result<(), CrashError> {
        let mut done = 0;
        for (number, from, count) in Self::parts(offset, bytes) {
            let mut block = Box::new([0; BLOCK]);
            if count < BLOCK {
                self.block(number, &mut block)?;
            }
            match data {
                Some(data) => block[from..from + count].copy_from_slice(&data[done..done + count]),
                None => block[from..from + count].fill(0),
            }
            self.written.insert(number, block);
            done += count;
        }
        Ok(())
    }

    /// What is known to be zeros, so that copies of a state leave it out.
    fn extents(&self, offset: u64, bytes: u32, most: usize) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for (number, _, count) in Self::parts(offset, bytes as usize) {
            let hole = !self.written.contains_key(&number) && self.state.is_hole(self.log, self.base, number);
            let (is_full, count) = (extents.len() == most, count as u32);
            match extents.last_mut() {
                Some(last) if last.hole == hole => last.bytes += count,
                _ if is_full => break,
                _ => extents.push(Extent { bytes: count, hole, zero: hole }),
            }
        }
        extents
    }

    fn answer(&mut self, session: &mut Session, request: Request) {
        let Request { handle, offset, bytes, command } = request;
        let done = match command {
            Command::Read => {
                let mut data = session.take_spare_buffer().unwrap_or_default();
                data.resize(bytes as usize, 0);
                match self.read(offset, &mut data) {
                    Ok(()) => return session.reply_data(handle, offset, data),
                    Err(error) => Err(error),
                }
            }
            Command::BlockStatus { one } => {
                let extents = self.extents(offset, bytes, if one { 1 } else { MOST_EXTENTS });
                return session.reply_status(handle, &extents);
            }
            Command::Write { data, .. } => {
                let written = self.write(offset, data.len(), Some(&data));
                session.give_buffer(data);
                written
            }
            Command::WriteZeroes { .. } | Command::Trim { .. } => self.write(offset, bytes as usize, None),
            Command::Flush | Command::Cache => Ok(()),
        };
        match done {
            Ok(()) => session.reply_done(handle),
            Err(error) => {
                session.reply_error(handle, Errno::Io, &error.to_string());
                self.fault.get_or_insert(error);
            }
        }
    }
}

/// A connection to a served state.
pub(crate) struct Client {
    pub stream: UnixStream,
    session: Session,
    is_over: bool,
}

impl Client {
    pub(crate) fn new(stream: UnixStream, exports: Rc<[Export]>) -> Client {
        Client { stream, session: Session::new(exports), is_over: false }
    }

    /// Whether it may send more.
    pub(crate) fn reads(&self) -> bool {
        !self.is_over && self.session.output_bytes() < MOST_UNSENT
    }

    /// Whether answers wait to be sent.
    pub(crate) fn writes(&self) -> bool {
        self.session.has_output()
    }

    /// Reads and answers what it has sent, as far as it comes; false if the connection is over.
    pub(crate) fn serve(&mut self, served: &mut Served) -> bool {
        loop {
            while let Some(event) = self.session.poll() {
                match event {
                    Event::Request(request) => served.answer(&mut self.session, request),
                    Event::Closed(_) => self.is_over = true,
                }
            }
            let is_sent = match self.send() {
                Ok(is_sent) => is_sent,
                Err(_) => return false,
            };
            if self.is_over {
                return !is_sent;
            }
            if !self.reads() {
                return true;
            }
            match self.stream.read(self.session.space()) {
                Ok(0) => return false,
                Ok(bytes) => self.session.filled(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// Sends what waits; true if nothing is left.
    fn send(&mut self) -> std::io::Result<bool> {
        while self.session.has_output() {
            let slices: Vec<IoSlice> = self.session.output().take(64).map(IoSlice::new).collect();
            match self.stream.write_vectored(&slices) {
                Ok(bytes) => self.session.sent(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
