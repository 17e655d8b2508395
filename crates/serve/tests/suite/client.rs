// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small NBD client that waits for each answer, and a server in a thread of its own.

use readpath_serve::{Address, Faults, Options, ServeError, Served, Speed, serve};
use readpath_store::Image;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use tempfile::TempDir;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const ZERO: u16 = 6;
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;

/// What all servers of this process have logged.
pub static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A connection that is past its handshake.
pub struct Client {
    socket: UnixStream,
    pub bytes: u64,
    handle: u64,
    /// Reads that [`Client::any_reply`] may meet: their handles and bytes.
    reads: Vec<(u64, u32)>,
}

impl Client {
    pub fn connect(path: &Path) -> Client {
        Client::try_connect(path).expect("the server takes the connection")
    }

    /// Connects to a server that may end the connection at any moment.
    pub fn try_connect(path: &Path) -> std::io::Result<Client> {
        Client::connect_to(path, "")
    }

    /// Connects to the export of this name.
    pub fn connect_to(path: &Path, name: &str) -> std::io::Result<Client> {
        let mut socket = UnixStream::connect(path)?;
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle without zeroes, then EXPORT_NAME.
        socket.write_all(&3u32.to_be_bytes())?;
        socket.write_all(b"IHAVEOPT\0\0\0\x01")?;
        socket.write_all(&(name.len() as u32).to_be_bytes())?;
        socket.write_all(name.as_bytes())?;
        let mut export = [0; 10];
        socket.read_exact(&mut export)?;
        let bytes = u64::from_be_bytes(export[..8].try_into().unwrap());
        Ok(Client { socket, bytes, handle: 0, reads: Vec::new() })
    }

    /// Sends a request without waiting.
    pub fn send(&mut self, command: u16, flags: u16, offset: u64, bytes: u32, data: &[u8]) {
        assert!(self.may_send(command, flags, offset, bytes, data), "the server has closed the connection");
    }

    /// Sends a request; false if the server has closed the connection.
    pub fn may_send(&mut self, command: u16, flags: u16, offset: u64, bytes: u32, data: &[u8]) -> bool {
        self.handle += 1;
        if command == READ {
            self.reads.push((self.handle, bytes));
        }
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(self.handle.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.extend(data);
        self.socket.write_all(&request).is_ok()
    }

    /// Reads the next reply: its error, or its data of `bytes` bytes.
    pub fn reply(&mut self, bytes: usize) -> Result<Vec<u8>, u32> {
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(reply[4..8].try_into().unwrap());
        if error != 0 {
            return Err(error);
        }
        let mut data = vec![0; bytes];
        self.socket.read_exact(&mut data).unwrap();
        Ok(data)
    }

    /// Takes the next reply, to any request.
    pub fn any_reply(&mut self) {
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        let handle = u64::from_be_bytes(reply[8..].try_into().unwrap());
        let at = self.reads.iter().position(|&(read, _)| read == handle);
        let bytes = at.map_or(0, |at| self.reads.swap_remove(at).1);
        if reply[4..8] == [0; 4] {
            self.socket.read_exact(&mut vec![0; bytes as usize]).unwrap();
        }
    }

    /// Takes a reply without data; false if the server has closed the connection.
    pub fn may_reply(&mut self) -> bool {
        self.socket.read_exact(&mut [0; 16]).is_ok()
    }

    /// Whether the server has sent nothing that was not read.
    pub fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let read = (&self.socket).read(&mut [0]);
        self.socket.set_nonblocking(false).unwrap();
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Whether the server has closed the connection and not answered.
    pub fn is_closed(&mut self) -> bool {
        self.socket.read(&mut [0]).map_or(true, |bytes| bytes == 0)
    }

    pub fn read(&mut self, offset: u64, bytes: u32) -> Result<Vec<u8>, u32> {
        self.send(READ, 0, offset, bytes, &[]);
        self.reply(bytes as usize)
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> Result<(), u32> {
        self.send(WRITE, flags, offset, data.len() as u32, data);
        self.reply(0).map(drop)
    }

    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, bytes: u32) -> Result<(), u32> {
        self.send(command, flags, offset, bytes, &[]);
        self.reply(0).map(drop)
    }
}

/// A server that runs in a thread.
pub struct Server {
    folder: TempDir,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<Served, ServeError>>>,
}

/// How to serve.
#[derive(Clone, Copy)]
pub struct How {
    pub speed: Speed,
    pub read_only: bool,
    /// What the host does.
    pub host: &'static str,
    /// What goes wrong, and when.
    pub faults: &'static str,
    /// Whether requests are recorded.
    pub records: bool,
}

pub const INSTANT: How = How { speed: Speed::Instant, read_only: false, host: "hpb=dcm", faults: "", records: false };
pub const REAL: How = How { speed: Speed::Real(1.0), ..INSTANT };

/// A device of some MiB that is so full that it collects garbage all the time.
pub fn device_file() -> String {
    let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g")).unwrap().text;
    let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu.0.blocks=4800"]
        .map(|set| readpath_config::Override::from_argument(set, "test").unwrap())
        .into();
    let preset = readpath_config::device::parse(text, "preset").unwrap().with_overrides(&set).unwrap();
    preset.echo().to_toml()
}

impl Server {
    /// Makes an image of a small device in a folder of its own, and serves it.
    pub fn new(how: How) -> Server {
        Server::of(&device_file(), how)
    }

    /// The same for the device of a file.
    pub fn of(text: &str, how: How) -> Server {
        let folder = TempDir::new().unwrap();
        let preset = readpath_config::device::parse(text, "test").unwrap();
        let mut device = readpath_device::UfsDevice::<readpath_flash::AnySched, readpath_device::WithMedia, ()>::new(
            &preset.device,
            preset.delays,
            (),
        )
        .unwrap();
        Image::create(&folder.path().join("image"), text, 1, &mut device).unwrap();
        let mut server = Server { folder, stop: None, thread: None };
        server.start(how);
        server
    }

    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    /// What the control socket says to a line.
    pub fn tell(&self, line: &str) -> String {
        let mut socket = UnixStream::connect(self.control()).unwrap();
        writeln!(socket, "{line}").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A counter of the server's, host's or device's.
    pub fn counter(&self, name: &str) -> f64 {
        let stats = self.tell("stats");
        let value = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} in {stats}")).parse().unwrap()
    }

    /// Waits until `in_flight` requests are in flight.
    pub fn wait_for_requests(&self, in_flight: f64) {
        while self.counter("readpath_requests_in_flight") < in_flight {
            std::thread::yield_now();
        }
    }

    pub fn recording(&self) -> PathBuf {
        self.folder.path().join("recording")
    }

    pub fn start(&mut self, How { speed, read_only, host, faults, records }: How) {
        let record = records.then(|| Box::new(File::create(self.recording()).unwrap()) as Box<dyn Write + Send>);
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (image, socket, control) = (self.image(), self.socket(), self.control());
        let (begun, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let image = readpath_serve::open(&image, !read_only, true).expect("an image");
            let preset = readpath_config::device::parse(&image.text, "test").unwrap();
            let options = Options {
                addresses: vec![Address::Unix(socket)],
                control: Some(control),
                metrics: None,
                faults: Faults::read(faults, "faults").unwrap(),
                record: record.map(|record| record as Box<dyn Write>),
                record_data: true,
                post: None,
                speed,
                read_only,
                stop: stopped.as_fd(),
                log: |line| LOG.lock().unwrap().push(line.to_owned()),
            };
            let host = host.parse().unwrap();
            serve(image, &preset, &host, options, &mut |_| {}, |_| begun.send(()).unwrap())
        });
        wait.recv().expect("the server begins");
        (self.stop, self.thread) = (Some(stop), Some(thread));
    }

    /// Ends the server as a signal does.
    pub fn stop(&mut self) -> Served {
        self.end().expect("the server ends well")
    }

    /// As [`Server::stop`], but it may fail.
    pub fn end(&mut self) -> Result<Served, ServeError> {
        self.stop.take();
        self.thread.take().unwrap().join().unwrap()
    }
}
