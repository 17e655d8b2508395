// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's connection: bytes and files from its socket become messages, and replies become bytes. It knows no
//! message.

use super::session::{Broken, Function, HEADER_BYTES, MOST_FDS, Session, message_bytes};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::io::{ErrorKind, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Messages that are handled before listener and device have a turn.
const AT_ONCE: u32 = 64;

/// A client's connection.
pub(crate) struct Client {
    stream: UnixStream,
    session: Session,
    /// The message that is being read, as far as it has come, and the files that came with it.
    message: Vec<u8>,
    have: usize,
    files: Vec<OwnedFd>,
    out: Vec<u8>,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> Client {
        let message = vec![0; HEADER_BYTES];
        Client { stream, session: Session::default(), message, have: 0, files: Vec::new(), out: Vec::new() }
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
        for _ in 0..AT_ONCE {
            if self.has_answers() || !self.read_message()? {
                break;
            }
            let files = std::mem::take(&mut self.files);
            self.session.handle(&self.message, files, function, &mut self.out).map_err(Some)?;
            self.message.truncate(HEADER_BYTES);
            self.have = 0;
            self.send()?;
        }
        Ok(())
    }

    /// True when a whole message has been read. Header and rest are read apart, so that files come with the message
    /// that they were sent with.
    fn read_message(&mut self) -> Result<bool, Option<Broken>> {
        loop {
            if self.have == HEADER_BYTES && self.message.len() == HEADER_BYTES {
                let header = self.message.first_chunk().expect("a whole header");
                let bytes = message_bytes(header).map_err(Some)?;
                self.message.resize(bytes, 0);
            }
            if self.have >= HEADER_BYTES && self.have == self.message.len() {
                return Ok(true);
            }
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let read =
                recvmsg(&self.stream, &mut [IoSliceMut::new(&mut self.message[self.have..])], &mut control, flags);
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
                Ok(read) => self.have += read.bytes,
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
