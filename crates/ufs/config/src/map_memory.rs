// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[map_memory]` of a device file: reading it, and writing it as a file would say it. It knows nothing of the
//! rest of the file.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::{HostMap, LineCheck, MapMemory, Protocol};
use readpath_kit::Ns;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const KINDS: [(&str, Option<Protocol>); 3] =
    [("dram", None), ("hmb", Some(Protocol::Hmb)), ("ume", Some(Protocol::Ume))];
const HOST_KEYS: [&str; 7] =
    ["size_mib", "line_bytes", "outstanding", "firmware_us", "request_us", "response_us", "check"];
const CHECK_KEYS: [&str; 2] = ["check_us", "seal_us"];
const KEYS: [&str; 11] = [
    "kind",
    "access_us",
    "size_mib",
    "line_bytes",
    "outstanding",
    "firmware_us",
    "request_us",
    "response_us",
    "check",
    "check_us",
    "seal_us",
];

/// Reads the table, if the device has it.
pub(crate) fn map_memory(root: &Section) -> Result<Option<MapMemory>> {
    let Some(s) = root.optional("map_memory", &KEYS)? else {
        return Ok(None);
    };
    let access = s.us("access_us")?;
    let Some(protocol) = s.word("kind", &KINDS)? else {
        if let Some(key) = HOST_KEYS.iter().chain(&CHECK_KEYS).find(|key| s.has(key)) {
            return Err(s.error(key, "has no meaning for kind = \"dram\", which holds all of the map in the device"));
        }
        return Ok(Some(MapMemory::Dram { access }));
    };
    let check = if s.flag("check")? {
        Some(LineCheck { check: s.us("check_us")?, seal: s.us("seal_us")? })
    } else {
        if let Some(key) = CHECK_KEYS.iter().find(|key| s.has(key)) {
            return Err(s.error(key, "has no meaning with check = false"));
        }
        None
    };
    Ok(Some(MapMemory::Host(HostMap {
        protocol,
        bytes: s.integer::<u64>("size_mib", 1..=1 << 20)? << 20,
        line_bytes: s.any_u32("line_bytes")?,
        outstanding: s.integer("outstanding", 1..=64)?,
        firmware: s.us("firmware_us")?,
        request: s.us("request_us")?,
        access,
        response: s.us("response_us")?,
        check,
    })))
}

/// `[map_memory]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct MapMemoryEcho {
    kind: String,
    access_us: f64,
    #[serde(flatten)]
    host: Option<HostMapEcho>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct HostMapEcho {
    size_mib: u64,
    line_bytes: u32,
    outstanding: u8,
    firmware_us: f64,
    request_us: f64,
    response_us: f64,
    check: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seal_us: Option<f64>,
}

impl MapMemoryEcho {
    pub fn of(memory: &MapMemory) -> MapMemoryEcho {
        let us = |time: Ns| time.as_us_f64();
        let (protocol, access, host) = match memory {
            MapMemory::Dram { access } => (None, *access, None),
            MapMemory::Host(host) => (Some(host.protocol), host.access, Some(host)),
        };
        MapMemoryEcho {
            kind: KINDS.iter().find(|(_, p)| *p == protocol).map_or("", |(word, _)| word).to_owned(),
            access_us: us(access),
            host: host.map(|host| HostMapEcho {
                size_mib: host.bytes >> 20,
                line_bytes: host.line_bytes,
                outstanding: host.outstanding,
                firmware_us: us(host.firmware),
                request_us: us(host.request),
                response_us: us(host.response),
                check: host.check.is_some(),
                check_us: host.check.map(|c| us(c.check)),
                seal_us: host.check.map(|c| us(c.seal)),
            }),
        }
    }
}
