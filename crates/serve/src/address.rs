// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where clients connect: a path of a Unix socket, or an address of TCP. It opens nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error;

/// The port of NBD.
const PORT: u16 = 10809;

/// An address that clients connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// `unix:PATH`
    Unix(PathBuf),
    /// `tcp:HOST:PORT`; the host is a number.
    Tcp(SocketAddr),
}

/// Why a text is no address.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "'{0}' is not an address: write unix:PATH, or tcp:IP:PORT such as tcp:127.0.0.1:10809 (the IP as a number; an IPv6 \
     address in brackets)"
)]
pub struct AddressError(String);

impl Address {
    /// Whether other machines can reach it.
    pub fn is_public(&self) -> bool {
        matches!(self, Address::Tcp(at) if !at.ip().is_loopback())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(path.into())) };
        }
        let at = text.strip_prefix("tcp:").ok_or_else(wrong)?;
        let with_port = |ip: IpAddr| SocketAddr::new(ip, PORT);
        let host = match at.strip_suffix(':').unwrap_or(at) {
            "" => Some(with_port(Ipv4Addr::LOCALHOST.into())),
            "[::1]" => Some(with_port(Ipv6Addr::LOCALHOST.into())),
            host => host.parse().map(with_port).ok(),
        };
        at.parse().ok().or(host).map(Address::Tcp).ok_or_else(wrong)
    }
}

impl std::fmt::Display for Address {
    /// As clients of libnbd and QEMU write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "nbd+unix:///?socket={}", path.display()),
            Address::Tcp(at) => write!(f, "nbd://{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        for (text, address) in [
            ("unix:/tmp/a socket", Address::Unix("/tmp/a socket".into())),
            ("tcp:127.0.0.1:10", tcp("127.0.0.1:10")),
            ("tcp:", tcp("127.0.0.1:10809")),
            ("tcp:10.0.0.1", tcp("10.0.0.1:10809")),
            ("tcp:[::1]:7", tcp("[::1]:7")),
            ("tcp:[::1]", tcp("[::1]:10809")),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for text in ["", "unix:", "tcp", "tcp:localhost:10", "tcp:127.0.0.1:70000", "/tmp/socket", "tcp:1.2.3.4:"] {
            let is_wrong = text.parse::<Address>().is_err();
            assert_eq!(is_wrong, text != "tcp:1.2.3.4:", "{text}");
        }
        assert!(tcp("0.0.0.0:1").is_public() && !tcp("127.0.0.9:1").is_public() && !tcp("[::1]:1").is_public());
    }
}
