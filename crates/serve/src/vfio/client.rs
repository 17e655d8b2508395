// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's connection: bytes and files from its socket become messages, and replies become bytes. It knows no
//! message.

use super::session::{Broken, Function, MOST_FDS, Session, message_bytes};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::io::{ErrorKind, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Bytes that are asked for at once, at least: many messages.
const AT_ONCE_BYTES: usize = 64 << 10;
/// Reads of the socket before listener and device have a turn.
const READS_AT_ONCE: u32 = 64;

/// A client's connection.
pub(crate) struct Client {
    stream: UnixStream,
    session: Session,
    /// Room for what comes: of it `have` bytes came, and `done` of these were handled.
    input: Vec<u8>,
    have: usize,
    done: usize,
    /// Files that came, and where the bytes end with which the last of them came. A read of the socket ends behind a
    /// message that has files, so they belong to the message that ends there.
    files: Vec<OwnedFd>,
    files_end: usize,
    out: Vec<u8>,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> Client {
        let (input, files, out) = (Vec::new(), Vec::new(), Vec::new());
        Client { stream, session: Session::default(), input, have: 0, done: 0, files, files_end: 0, out }
    }

    /// Whether there are answers that the socket does not take yet.
    pub(crate) fn has_answers(&self) -> bool {
        !self.out.is_empty()
    }

    /// Handles what has come, and sends what was answered.
    ///
    /// # Errors
    /// The client has disconnected, or, with the reason, is to be disconnected.
    pub(crate) fn serve(&mut self, function: &mut impl Function) -> Result<(), Option<Broken>> {
        self.send()?;
        let mut reads = 0;
        // What has come and is not handled is handled when the socket takes answers again.
        while !self.has_answers() {
            match self.message_end()? {
                Some(end) => {
                    let files = if self.files_end <= end { std::mem::take(&mut self.files) } else { Vec::new() };
                    let message = &self.input[self.done..end];
                    self.session.handle(message, files, function, &mut self.out).map_err(Some)?;
                    self.done = end;
                    self.send()?;
                }
                None if reads == READS_AT_ONCE || !self.read()? => break,
                None => reads += 1,
            }
        }
        Ok(())
    }

    /// Where the next message ends, if all of it has come.
    fn message_end(&self) -> Result<Option<usize>, Option<Broken>> {
        let Some(header) = self.input[self.done..self.have].first_chunk() else { return Ok(None) };
        let end = self.done + message_bytes(header).map_err(Some)?;
        Ok((end <= self.have).then_some(end))
    }

    /// Reads what has come, behind the part of a message that is there. False if nothing has.
    fn read(&mut self) -> Result<bool, Option<Broken>> {
        self.input.copy_within(self.done..self.have, 0);
        (self.have, self.files_end) = (self.have - self.done, self.files_end.saturating_sub(self.done));
        self.done = 0;
        if self.input.len() < self.have + AT_ONCE_BYTES {
            self.input.resize(self.have + AT_ONCE_BYTES, 0);
        }
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let room = IoSliceMut::new(&mut self.input[self.have..]);
            let read = recvmsg(&self.stream, &mut [room], &mut control, flags);
            let before = self.files.len();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    self.files.extend(files);
                }
            }
            if self.files.len() > MOST_FDS {
                return Err(Some(Broken("more files came with a message than were agreed on")));
            }
            match read {
                Ok(read) if read.bytes == 0 => return Err(None),
                Ok(read) if read.flags.contains(ReturnFlags::CTRUNC) => {
                    return Err(Some(Broken("more files came with a message than there is room for")));
                }
                Ok(read) => {
                    self.have += read.bytes;
                    if self.files.len() > before {
                        self.files_end = self.have;
                    }
                    return Ok(true);
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(None),
            }
        }
    }

    fn send(&mut self) -> Result<(), Option<Broken>> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(None),
            }
        }
        Ok(())
    }
}
