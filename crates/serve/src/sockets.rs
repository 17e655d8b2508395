// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unix and TCP sockets: listeners and connections. None of them blocks. It knows no protocol.

use crate::address::Address;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A TCP client that is silent for this long is probed by keepalive.
const SILENCE: Duration = Duration::from_secs(60);

/// A socket that clients connect to.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A connection.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Listener {
    /// The next client that waits.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                // A machine that crashed is noticed, and its place is free again.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, SILENCE)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Stream {
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(bytes),
            Stream::Tcp(stream) => stream.read(bytes),
        }
    }

    pub(crate) fn write(&mut self, slices: &[IoSlice]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(slices),
            Stream::Tcp(stream) => stream.write_vectored(slices),
        }
    }
}

/// Sockets that are listened to. Those in the file system vanish with it.
#[derive(Default)]
pub(crate) struct Sockets {
    pub listeners: Vec<Listener>,
    /// Paths with inode numbers, since another file may have replaced a socket.
    paths: Vec<(PathBuf, u64)>,
}

impl Sockets {
    /// Listens to one more address.
    pub(crate) fn listen(&mut self, address: &Address) -> io::Result<()> {
        let listener = match address {
            Address::Unix(path) => self.listen_at(path).map(Listener::Unix),
            Address::Tcp(at) => TcpListener::bind(at)
                .and_then(|listener| listener.set_nonblocking(true).map(|()| Listener::Tcp(listener))),
        };
        self.listeners.push(listener?);
        Ok(())
    }

    /// Listens at a path.
    pub(crate) fn listen_at(&mut self, path: &Path) -> io::Result<UnixListener> {
        let listener = listen_at(path)?;
        self.paths.push((path.to_owned(), inode(path)?));
        Ok(listener)
    }
}

/// A socket at a path where there is nothing, or one that was left behind.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            use std::os::unix::fs::FileTypeExt;
            let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
            let is_dead = UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
            if !is_socket {
                return Err(io::Error::new(ErrorKind::AddrInUse, "there is a file already, which is no socket"));
            }
            if !is_dead {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another program serves this socket"));
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn inode(path: &Path) -> io::Result<u64> {
    Ok(std::fs::symlink_metadata(path)?.ino())
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for (path, inode) in &self.paths {
            if self::inode(path).is_ok_and(|there| there == *inode) {
                std::fs::remove_file(path).ok();
            }
        }
    }
}
