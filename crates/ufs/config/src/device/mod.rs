// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device files: a device, the delays around it and the host's limits. Numbers are read, converted and checked here,
//! and written in the form of a file; the device interprets them. Each file of this folder has tables of its keys;
//! `docs/formats/device.md` documents them.

mod array;
mod ftl;
mod host;
mod hpb;
mod memory;
mod preset;
mod slc;
mod units;

pub use preset::DevicePreset;

use crate::builtin::{self, ReadFile};
use crate::error::{ConfigFileError, Result};
use crate::keys::{
    Form, Key, Keys, Row, blocks_of_kib, describe, either, fields, json_schema, keys, name, read_document, table, text,
    texts, whole, words, write_document,
};
use crate::overrides::Override;
use crate::tree::{At, Node, Value, parse_document};
use array::{firmware, flash, geometry, link, map_transfer, suspend};
use readpath_device::{CacheOwner, ConfigError, DeviceConfig, MapMemory, Protocol, UfsVersion};
use readpath_flash::{Geometry, Scheduler, SuspendTiming};
use readpath_kit::{Bound, range_of};
use serde::Serialize;
use std::ops::RangeInclusive;

const SCHEMA: &str = "readpath-device/1";

/// The bounds of a field of [`DeviceConfig`], in its unit.
fn bounds(field: &str) -> RangeInclusive<u64> {
    let of_geometry = Geometry::BOUNDS.iter().find(|bound| bound.field == field).map(Bound::range);
    of_geometry.unwrap_or_else(|| range_of(DeviceConfig::BOUNDS, field))
}

#[derive(Clone)]
struct MapCache {
    map_cache_bytes: u32,
    map_page_bytes: u32,
    map_runs_bytes: u32,
    map_read_ahead: u32,
}

fn map_cache(k: &mut Keys<MapCache>) -> Result<MapCache> {
    Ok(keys!(k => MapCache {
        /// SRAM for map pages, at least one
        map_cache_bytes = "size_kib": whole(1..=u64::from(u32::MAX >> 10))
            .scaled(|kib| kib << 10, |bytes| bytes >> 10, " (counted in bytes)");
        /// a map page; 4 bytes an entry; not above `geometry.page_bytes`
        map_page_bytes = "page_bytes": either(4096, 16384);
        /// SRAM for runs of the map: consecutive blocks at consecutive places, 12 bytes a run, in sets of 8; 0 = none
        map_runs_bytes = "runs_kib": whole(0..=1 << 20)
            .scaled(|kib| kib << 10, |bytes| bytes >> 10, " (counted in bytes)").or(0).quiet();
        /// map pages read ahead behind one that a read missed, if SRAM holds the page before it; 0 = none
        map_read_ahead = "read_ahead": whole(bounds("map_read_ahead")).or(0).quiet();
    }))
}

#[derive(Clone)]
struct WriteBuffer {
    write_buffer_blocks: u32,
}

fn write_buffer(k: &mut Keys<WriteBuffer>) -> Result<WriteBuffer> {
    Ok(keys!(k => WriteBuffer {
        /// SRAM for data to be written, at least a multi-plane page
        write_buffer_blocks = "size_kib": blocks_of_kib(bounds("write_buffer_blocks"));
    }))
}

/// The keys of a device file.
fn root(k: &mut Keys<DevicePreset>) -> Result<DevicePreset> {
    k.schema(SCHEMA)?;
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    fields! { k:
        /// name for reports: lower-case letters, digits and `-`, up to 64
        name: name("lower-case letters, digits and '-'", lower);
        /// what it models
        description: text();
        /// where the numbers come from
        sources: texts();
        /// iProductName, 1 to 16 ASCII characters
        product_name of device: text();
        /// version of UFS that the device and its controller claim. HPB of Linux needs 3.1, older devices claim it too
        ufs_version of device: words(UfsVersion::WORDS).or(UfsVersion::V31).quiet();
        /// commands that the device accepts at once (bQueueDepth)
        queue_depth of device: whole(bounds("queue_depth"));
        /// die scheduler: `lean` (in order of arrival, fastest), `queued` (reads overtake and suspend programs and
        /// erases) or `exact` (an event for every stage, the oracle)
        scheduler of device: words(Scheduler::WORDS);
        /// shape of the flash array
        geometry of device: table(geometry);
        /// times of the flash array
        flash of device: table(flash);
        /// suspension of programs and erases
        suspend of device: table(suspend).or(SuspendTiming::OFF);
        /// times of the firmware core
        firmware of device: table(firmware);
        /// times of the link
        link of device: table(link);
    }
    let MapCache { map_cache_bytes, map_page_bytes, map_runs_bytes, map_read_ahead } =
        k.key(Key::new("map_cache", "SRAM for the map").of(""), table(map_cache), |preset| MapCache {
            map_cache_bytes: preset.device.map_cache_bytes,
            map_page_bytes: preset.device.map_page_bytes,
            map_runs_bytes: preset.device.map_runs_bytes,
            map_read_ahead: preset.device.map_read_ahead,
        })?;
    let flash = map_transfer(k, flash, map_page_bytes)?;
    let WriteBuffer { write_buffer_blocks } =
        k.key(Key::new("write_buffer", "SRAM for data to be written").of(""), table(write_buffer), |preset| {
            WriteBuffer { write_buffer_blocks: preset.device.write_buffer_blocks }
        })?;
    let ftl = ftl::read(k)?;
    let (slc, slc_cache) = slc::read(k)?;
    fields! { k:
        /// where the map is held beside flash and SRAM
        map_memory of device: table(memory::map_memory).optional();
    }
    let hpb = k.key(Key::new("hpb", "HPB"), table(hpb::hpb).optional(), hpb::of)?;
    let lus = units::read(k, hpb.is_some())?;
    let of_host = |memory: &Option<MapMemory>| match memory {
        Some(MapMemory::Host(map)) => Some(*map),
        _ => None,
    };
    let map = of_host(&map_memory);
    let host = host::read(
        k,
        slc_cache.is_some_and(|cache| cache.owner == CacheOwner::Host),
        map.is_some_and(|map| map.protocol == Protocol::Hmb),
    )?;
    host::check_memory(k, map.as_ref(), &host.config.host_memory)?;
    host::check_mapper(k, &lus, &host.config)?;
    let fitted = units::fitted(k)?;
    let (only_control, entry_key) = hpb.as_ref().map_or((None, [0; 2]), |hpb| (hpb.only_control, hpb.entry_key));
    let device = DeviceConfig {
        product_name,
        ufs_version,
        geometry,
        flash,
        scheduler,
        suspend,
        firmware,
        link,
        map_cache_bytes,
        map_page_bytes,
        map_runs_bytes,
        map_read_ahead,
        write_buffer_blocks,
        queue_depth,
        lus,
        ftl,
        slc,
        slc_cache,
        map_memory,
        hpb: hpb.map(|hpb| hpb.config),
        entry_key,
    };
    let (delays, host, tree) = (host.delays, host.config, Node::from(Value::table([])));
    Ok(DevicePreset { name, description, sources, device, delays, host, only_control, fitted, tree })
}

/// Reads a device file; `file_name` is for errors.
///
/// # Errors
/// The first mistake, with its line and key.
pub fn parse(text: &str, file_name: &str) -> Result<DevicePreset> {
    interpret(parse_document(text, file_name)?)
}

/// A preset by its name, or the file at a path, which has to contain a `/` or end in `.toml`.
///
/// # Errors
/// When there is no such preset or file, or as [`parse`].
pub fn load(name_or_path: &str, read: ReadFile) -> Result<DevicePreset> {
    let (text, file) = builtin::find("device", builtin::presets(), &[], name_or_path, read)?;
    parse(&text, &file)
}

fn interpret(tree: Node) -> Result<DevicePreset> {
    let preset = read_document(&tree, SCHEMA, root)?;
    preset.device.check().map_err(|e| at_its_key(&tree, &e))?;
    Ok(DevicePreset { tree, ..preset })
}

impl DevicePreset {
    /// The device as if its file had this value for `key`, written in TOML or as a bare word.
    ///
    /// # Errors
    /// Names the key.
    pub fn with_override(&self, key: &str, value: &str) -> Result<DevicePreset> {
        self.with_overrides(&[Override::new(key, value, "override")?])
    }

    /// [`DevicePreset::with_override`] for several keys, checked only when all of them are set.
    ///
    /// # Errors
    /// Names the key, and where its value was given.
    pub fn with_overrides(&self, overrides: &[Override]) -> Result<DevicePreset> {
        let mut tree = self.tree.clone();
        for o in overrides {
            tree.set(&o.key, o.value.clone(), &o.at).map_err(|e| o.at.error(&o.key, e))?;
            match o.key.rsplit('.').next() {
                Some("blocks") => tree.remove_beside(&o.key, "capacity_gib"),
                Some("capacity_gib") => tree.remove_beside(&o.key, "blocks"),
                _ => {}
            }
        }
        interpret(tree)
    }

    /// Place of the value of a key, or of its nearest existing parent.
    pub(crate) fn locate(&self, key: &str) -> At {
        self.tree.locate(key)
    }

    /// Place and text of a key's value, if it was given outside of the device's own file.
    pub(crate) fn given_beside_file(&self, key: &str) -> Option<(At, &str)> {
        let node = self.tree.find(key).filter(|node| node.at.file != self.tree.at.file)?;
        match &node.value {
            Value::String(word) => Some((node.at.clone(), word)),
            _ => None,
        }
    }

    /// All values, in the names and units of the file, for result documents.
    pub fn echo(&self) -> DeviceEcho {
        DeviceEcho(write_document(self, root))
    }
}

/// A device in the form of its file: the same names, nesting and units.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceEcho(Value);

impl DeviceEcho {
    /// The device file. [`parse`] reads it back.
    pub fn to_toml(&self) -> String {
        // Cannot fail: every value is a number, a text, an array or a table. If it did, reading the empty text back
        // would report the error.
        toml::to_string(&self.0).unwrap_or_default()
    }
}

/// A JSON schema of device files.
pub fn schema() -> impl Serialize {
    json_schema("Device file of Readpath", &reference())
}

/// Description of all keys of a device file.
pub(crate) fn reference() -> Vec<Row> {
    describe(root)
}

/// An error of the device's own checks, at the line of its key.
fn at_its_key(tree: &Node, e: &ConfigError) -> ConfigFileError {
    let mut found = Vec::new();
    keys_of_field(&reference(), "", "", e.field, &mut found);
    let index = e.lun.map_or(String::new(), |lun| format!("[{lun}]"));
    let mut found = found.into_iter().map(|(key, counted)| (key.replacen("[]", &index, 1), counted));
    let first = found.next();
    let stands = first.iter().cloned().chain(found).find(|(key, _)| tree.contains(key));
    let (key, counted) = stands.or(first).unwrap_or_else(|| (e.path(), ""));
    let counted = if e.says_value { counted } else { "" };
    tree.locate(&key).error(key, format!("{}{counted}", e.message))
}

/// The keys of a field of [`DeviceConfig`], and its unit.
fn keys_of_field(rows: &[Row], field: &str, key: &str, wanted: &str, found: &mut Vec<(String, &'static str)>) {
    let join = |a: &str, b: &str| if a.is_empty() || b.is_empty() { format!("{a}{b}") } else { format!("{a}.{b}") };
    for row in rows {
        let (field, key) = (join(field, row.key.field), join(key, row.key.name));
        if field == wanted {
            found.push((key.clone(), row.about.counted));
        }
        match &row.about.form {
            Form::Table(rows) => keys_of_field(rows, &field, &key, wanted, found),
            Form::List(item) => {
                if let Form::Table(rows) = &**item {
                    keys_of_field(rows, &format!("{field}[]"), &format!("{key}[]"), wanted, found);
                }
            }
            Form::Plain(_) => {}
        }
    }
}
