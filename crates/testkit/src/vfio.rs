// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of vfio-user that drives a UFS host controller: what QEMU and a guest's driver are together, without
//! either.

use readpath_hci::{Bus, Completed, GuestMem, Port, PortError, Unreachable};
use readpath_proto::typed::{Cdb, Command, Reply, Request, RequestBody, TaskRequest};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Start of the client's memory.
pub const BASE: u64 = 0x4000_0000;

/// Memory of a client, which its server reaches through a file.
#[derive(Clone)]
pub struct Memory(pub Rc<OwnedFd>);

impl Memory {
    fn new() -> io::Result<Memory> {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, Port::MEMORY)?;
        Ok(Memory(Rc::new(file)))
    }
}

impl GuestMem for Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        let whole = bytes.len();
        let read = pread(&*self.0, bytes, address - BASE);
        if read == Ok(whole) { Ok(()) } else { Err(Unreachable { address, bytes: whole }) }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        let written = pwrite(&*self.0, bytes, address - BASE);
        if written == Ok(bytes.len()) { Ok(()) } else { Err(Unreachable { address, bytes: bytes.len() }) }
    }
}

/// A connection.
pub struct Client {
    stream: UnixStream,
    id: u16,
    /// What went wrong with a register access: a bus cannot say so.
    pub failed: Option<io::Error>,
}

impl Client {
    /// A client that has agreed on the version.
    ///
    /// # Errors
    /// No server listens, or it closes the connection.
    pub fn connect(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Client { stream, id: 0, failed: None };
        let version = [&[0, 0, 0, 0][..], b"{\"capabilities\":{\"max_msg_fds\":8}}\0"].concat();
        client.call(1, &version, &[])?;
        Ok(client)
    }

    /// Sends a message and returns the payload of its answer.
    ///
    /// # Errors
    /// The server refuses it (then the error has a number), or hangs up.
    pub fn call(&mut self, command: u16, payload: &[u8], files: &[BorrowedFd]) -> io::Result<Vec<u8>> {
        self.id = self.id.wrapping_add(1);
        let mut message = Vec::with_capacity(16 + payload.len());
        message.extend_from_slice(&self.id.to_le_bytes());
        message.extend_from_slice(&command.to_le_bytes());
        message.extend_from_slice(&(16 + payload.len() as u32).to_le_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(payload);
        self.send(&message, files)?;
        let mut header = [0; 16];
        self.stream.read_exact(&mut header)?;
        let word = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().expect("a word"));
        let mut answer = vec![0; word(4) as usize - header.len()];
        self.stream.read_exact(&mut answer)?;
        let is_answer = header[..4] == message[..4] && word(8) & 0xF == 1;
        match word(12) {
            _ if !is_answer => Err(io::Error::new(ErrorKind::InvalidData, "an answer to something else")),
            0 => Ok(answer),
            errno => Err(io::Error::from_raw_os_error(errno as i32)),
        }
    }

    /// Sends bytes as they are, with files.
    ///
    /// # Errors
    /// The server has hung up.
    pub fn send(&mut self, mut bytes: &[u8], files: &[BorrowedFd]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        while !bytes.is_empty() {
            let sent = sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
            bytes = &bytes[sent..];
            control.clear();
        }
        Ok(())
    }

    /// Whether the server has hung up: nothing comes any more.
    pub fn is_over(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 4096]), Ok(0) | Err(_))
    }

    /// Lends memory to the server.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn map(&mut self, file: BorrowedFd, offset: u64, address: u64, bytes: u64, flags: u32) -> io::Result<()> {
        let words = [(u64::from(flags) << 32) | 32, offset, address, bytes];
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.call(2, &payload, &[file]).map(drop)
    }

    /// Accesses a region.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn write_region(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut payload = offset.to_le_bytes().to_vec();
        payload.extend_from_slice(&region.to_le_bytes());
        payload.extend_from_slice(&(data.len() as u32).to_le_bytes());
        payload.extend_from_slice(data);
        self.call(10, &payload, &[]).map(drop)
    }

    /// Accesses a region.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn read_region(&mut self, region: u32, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let mut payload = offset.to_le_bytes().to_vec();
        payload.extend_from_slice(&region.to_le_bytes());
        payload.extend_from_slice(&bytes.to_le_bytes());
        self.call(9, &payload, &[]).map(|answer| answer[16..].to_vec())
    }

    /// SET_IRQS of the one interrupt.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn set_irqs(&mut self, flags: u32, count: u32, files: &[BorrowedFd]) -> io::Result<()> {
        let payload: Vec<u8> = [20, flags, 0, 0, count].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        self.call(8, &payload, files).map(drop)
    }
}

impl Bus for Client {
    fn read(&mut self, offset: u32) -> u32 {
        match self.read_region(0, offset.into(), 4) {
            Ok(bytes) => u32::from_le_bytes(*bytes.first_chunk().expect("four bytes")),
            Err(error) => {
                self.failed.get_or_insert(error);
                0
            }
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        if let Err(error) = self.write_region(0, offset.into(), &value.to_le_bytes()) {
            self.failed.get_or_insert(error);
        }
    }
}

/// A machine with a driver: client, memory and interrupt.
pub struct Host {
    /// The connection.
    pub client: Client,
    /// The lower half of its driver.
    pub port: Port,
    /// Its memory.
    pub memory: Memory,
    interrupt: OwnedFd,
}

impl Host {
    /// A machine that has been switched on: it lends its memory, hears the interrupt and lets the function be master of
    /// the bus.
    ///
    /// # Errors
    /// The server refuses that.
    pub fn connect(path: &Path) -> io::Result<Host> {
        let mut client = Client::connect(path)?;
        let memory = Memory::new()?;
        // In two pieces, so that some data lies in both.
        let first = Port::MEMORY - (1 << 24) - 2048;
        client.map(memory.0.as_fd(), 0, BASE, first, 3)?;
        client.map(memory.0.as_fd(), first, BASE + first, Port::MEMORY - first, 3)?;
        let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // An eventfd triggers it.
        client.set_irqs(4 | 32, 1, &[interrupt.as_fd()])?;
        client.write_region(7, 4, &6u16.to_le_bytes())?;
        Ok(Host { client, port: Port::new(BASE, 32, true), memory, interrupt })
    }

    /// Enables the controller.
    ///
    /// # Errors
    /// It does not do as it should, or the server has gone.
    pub fn start(&mut self) -> Result<(), PortError> {
        self.port.start(&mut self.client)
    }

    /// Waits for the interrupt and handles it; `None` if it does not come for so long, or the server has gone.
    pub fn wait(&mut self, limit: Duration) -> Option<Completed> {
        let until = Instant::now() + limit;
        loop {
            let left = until.checked_duration_since(Instant::now())?;
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut ready = [
                PollFd::new(&self.interrupt, PollFlags::IN),
                PollFd::new(&self.client.stream, PollFlags::IN | PollFlags::RDHUP),
            ];
            poll(&mut ready, Some(&left)).ok()?;
            if !ready[1].revents().is_empty() {
                return None;
            }
            if rustix::io::read(&self.interrupt, &mut [0; 8]) == Ok(8) {
                let completed = self.port.interrupt(&mut self.client).ok()?;
                // The line was low meanwhile: it is let go.
                self.client.set_irqs(1 | 16, 1, &[]).ok()?;
                return Some(completed);
            }
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn send(&mut self, tag: u8, lun: u8, body: RequestBody, data: &[u8]) -> Result<(), PortError> {
        self.port.send(&mut self.client, &mut self.memory, &Request { lun, tag, body }, data)
    }

    /// The answer to a request that is sent while nothing else is under way; `None` if the server has gone.
    pub fn ask(&mut self, tag: u8, lun: u8, body: RequestBody, data: &[u8]) -> Option<(Reply, Vec<u8>)> {
        self.send(tag, lun, body, data).ok()?;
        while self.wait(Duration::from_secs(20))?.transfers & 1 << tag == 0 {}
        self.port.reply(&self.memory, tag).map(|(reply, data)| (reply, data.to_vec())).ok()
    }

    /// The answer to a command.
    pub fn command(&mut self, tag: u8, lun: u8, cdb: Cdb, bytes: u32, data: &[u8]) -> Option<(Reply, Vec<u8>)> {
        self.ask(tag, lun, RequestBody::Command(Command { expected_bytes: bytes, cdb }), data)
    }

    /// The service response of a task management function.
    pub fn manage(&mut self, task: TaskRequest) -> Option<u8> {
        self.port.manage(&mut self.client, &mut self.memory, 0, task).ok()?;
        while self.wait(Duration::from_secs(20))?.tasks != 1 {}
        self.port.task_reply(&self.memory, 0).ok().map(|response| response.service_response)
    }
}
