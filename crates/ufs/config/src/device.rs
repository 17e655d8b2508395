// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device files: a device, the delays around it and the host's limits. What the numbers do is the business of the device;
//! here they are only read, converted and checked. `docs/formats/device.md` describes the format.

use super::booster::write_booster;
use super::builtin::{self, ReadFile};
use super::echo::DeviceEcho;
use super::error::ConfigFileError;
use super::ftl::ftl;
use super::host_control::MODES;
use super::map_memory::map_memory;
use super::overrides::Override;
use super::section::Section;
use super::tree::{At, Node, Value, parse_document};
use readpath_device::{
    ConfigError, Control, Delays, DeviceConfig, FirmwareTiming, FlashTiming, HpbConfig, LinkTiming, LuConfig,
    Verification,
};
use readpath_flash::{Geometry, SuspendTiming};
use readpath_host::HostConfig;
use readpath_kit::Ns;

type Result<T> = std::result::Result<T, ConfigFileError>;

/// The format that is read and written here.
pub const SCHEMA: &str = "readpath-device/1";

/// Which die scheduler a device is run with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// First come, first served; the fastest.
    Lean,
    /// Reads overtake and suspend programs and erases.
    Queued,
    /// An event for every stage; the oracle.
    Exact,
}

pub(crate) const SCHEDULERS: [(&str, Scheduler); 3] =
    [("lean", Scheduler::Lean), ("queued", Scheduler::Queued), ("exact", Scheduler::Exact)];

/// A device file that has been read and checked.
#[derive(Clone, Debug)]
pub struct DevicePreset {
    /// Name for reports and on the command line.
    pub name: String,
    /// What it is a model of, for people.
    pub description: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// The device.
    pub device: DeviceConfig,
    /// Delays of the host's software.
    pub delays: Delays,
    /// Limits of the host; HPB is up to whoever runs it.
    pub host: HostConfig,
    /// The die scheduler.
    pub scheduler: Scheduler,
    /// The only control mode of HPB that it can be configured for, if not either.
    pub only_control: Option<Control>,
    /// Keys that were fitted, and the published row that each was fitted to.
    pub fitted: Vec<(String, String)>,
    /// What all this was made from, for overrides.
    tree: Node,
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

impl DevicePreset {
    /// The device as it would be if `key` had stood in its file with this value, written in TOML or as a bare word.
    ///
    /// # Errors
    /// Names the key.
    pub fn with_override(&self, key: &str, value: &str) -> Result<DevicePreset> {
        self.with_overrides(&[Override::new(key, value, "override")?])
    }

    /// As [`DevicePreset::with_override`] for several keys, checked only when all of them are in place.
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

    /// Where the value of a key stood, or of what is nearest above it.
    pub(super) fn locate(&self, key: &str) -> At {
        self.tree.locate(key)
    }

    /// Where a word was given for a key if that was not in the device's own file, and the word.
    pub(super) fn given_beside_file(&self, key: &str) -> Option<(At, &str)> {
        let node = self.tree.find(key).filter(|node| node.at.file != self.tree.at.file)?;
        match &node.value {
            Value::String(word) => Some((node.at.clone(), word)),
            _ => None,
        }
    }

    /// Everything that was read, in the names and units of the file, for result documents.
    pub fn echo(&self) -> DeviceEcho {
        DeviceEcho::of(self)
    }
}

impl TryFrom<&DeviceEcho> for DevicePreset {
    type Error = ConfigFileError;

    fn try_from(echo: &DeviceEcho) -> Result<DevicePreset> {
        parse(&echo.to_toml(), "configuration")
    }
}

fn interpret(tree: Node) -> Result<DevicePreset> {
    let keys = [
        "schema",
        "name",
        "description",
        "sources",
        "product_name",
        "queue_depth",
        "scheduler",
        "geometry",
        "flash",
        "suspend",
        "firmware",
        "link",
        "map_cache",
        "write_buffer",
        "ftl",
        "faults",
        "write_booster",
        "map_memory",
        "hpb",
        "lu",
        "host",
        "calibration",
    ];
    let root = Section::document(&tree, SCHEMA, &keys)?;
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let map_cache = root.section("map_cache", &["size_kib", "page_bytes"])?;
    let map_page_bytes = map_cache.any_u32("page_bytes")?;
    let write_buffer = root.section("write_buffer", &["size_kib"])?;
    let (hpb, only_control, entry_key) = match root.optional("hpb", &HPB_KEYS)? {
        Some(section) => (Some(hpb(&section)?), only_control(&section)?, entry_key(&section)?),
        None => (None, None, [0; 2]),
    };
    let device = DeviceConfig {
        product_name: root.string("product_name")?.to_owned(),
        geometry: geometry(&root)?,
        flash: flash(&root, map_page_bytes)?,
        suspend: suspend(&root)?,
        firmware: firmware(&root)?,
        link: link(&root)?,
        map_cache_bytes: map_cache.integer::<u32>("size_kib", 1..=u64::from(u32::MAX >> 10))? << 10,
        map_page_bytes,
        write_buffer_blocks: write_buffer.blocks_of_kib("size_kib", u64::from(u32::MAX))?,
        queue_depth: root.any_u32("queue_depth")?,
        ftl: ftl(&root)?,
        write_booster: write_booster(&root)?,
        map_memory: map_memory(&root)?,
        lus: lus(&root, hpb.is_some())?,
        hpb,
        entry_key,
    };
    let host = root.section("host", &["submit_us", "complete_us", "slots", "max_transfer_kib", "write_booster"])?;
    let preset = DevicePreset {
        name: root.name("name", "lower-case letters, digits and '-'", lower)?,
        description: root.string("description")?.to_owned(),
        sources: root.strings("sources")?,
        device,
        delays: Delays { to_link: host.us("submit_us")?, from_link: host.us("complete_us")? },
        host: HostConfig {
            slots: host.integer("slots", 2..=64)?,
            max_transfer_blocks: host.blocks_of_kib("max_transfer_kib", u64::from(u16::MAX))? as u16,
            hpb: None,
            write_booster: host.flag_or("write_booster", true)?,
        },
        scheduler: root.word("scheduler", &SCHEDULERS)?,
        only_control,
        fitted: fitted(&root, &tree)?,
        tree: tree.clone(),
    };
    preset.device.check().map_err(|e| at_its_key(&tree, &e))?;
    Ok(preset)
}

fn geometry(root: &Section) -> Result<Geometry> {
    let keys = ["channels", "dies_per_channel", "planes", "blocks_per_plane", "pages_per_block", "page_bytes"];
    let s = root.section("geometry", &keys)?;
    Ok(Geometry {
        channels: s.any_u32("channels")?,
        dies_per_channel: s.any_u32("dies_per_channel")?,
        planes: s.any_u32("planes")?,
        blocks_per_plane: s.any_u32("blocks_per_plane")?,
        pages_per_block: s.any_u32("pages_per_block")?,
        page_bytes: s.any_u32("page_bytes")?,
    })
}

fn flash(root: &Section, map_page_bytes: u32) -> Result<FlashTiming> {
    let keys = ["read_us", "map_read_us", "program_us", "erase_us", "transfer_4k_us", "map_transfer_us"];
    let s = root.section("flash", &keys)?;
    for key in ["read_us", "program_us", "erase_us"] {
        if s.us(key)? == Ns::ZERO {
            return Err(s.error(key, "is 0; a flash array takes time"));
        }
    }
    let transfer_block = s.us("transfer_4k_us")?;
    Ok(FlashTiming {
        read: s.us("read_us")?,
        map_read: s.us("map_read_us")?,
        program: s.us("program_us")?,
        erase: s.us("erase_us")?,
        transfer_block,
        map_transfer: map_transfer(&s, transfer_block, map_page_bytes)?,
    })
}

/// The map cache holds whole pages, so a whole page crosses the channel: never faster than as much data, and just as fast
/// unless the file says otherwise.
fn map_transfer(flash: &Section, transfer_block: Ns, map_page_bytes: u32) -> Result<Ns> {
    // Other sizes than these are refused when the device checks itself; their time does not matter.
    let blocks = if map_page_bytes == 16384 { 4 } else { 1 };
    let least = Ns(transfer_block.0 * blocks);
    if !flash.has("map_transfer_us") {
        return Ok(least);
    }
    let given = flash.us("map_transfer_us")?;
    if given < least {
        return Err(flash.error(
            "map_transfer_us",
            format!(
                "is {}; a map page of {map_page_bytes} bytes takes at least {} ({blocks} x transfer_4k_us), which is the \
                 default",
                given.as_us_f64(),
                least.as_us_f64()
            ),
        ));
    }
    Ok(given)
}

fn suspend(root: &Section) -> Result<SuspendTiming> {
    let Some(s) = root.optional("suspend", &["suspend_us", "resume_us", "max_per_op"])? else {
        return Ok(SuspendTiming::OFF);
    };
    Ok(SuspendTiming {
        suspend: s.us("suspend_us")?,
        resume: s.us("resume_us")?,
        max_per_op: s.integer("max_per_op", 0..=1000)?,
    })
}

/// A flag or a count in SRAM for each map page, found and set. Assumption.
const TRIM_MAP_PAGE: Ns = Ns(500);

fn firmware(root: &Section) -> Result<FirmwareTiming> {
    let keys = [
        "flash_op_us",
        "hpb_read_extra_us",
        "write_command_us",
        "buffer_read_us",
        "make_entry_us",
        "control_us",
        "trim_map_page_us",
    ];
    let s = root.section("firmware", &keys)?;
    Ok(FirmwareTiming {
        flash_op: s.us("flash_op_us")?,
        hpb_read_extra: s.us("hpb_read_extra_us")?,
        write_command: s.us("write_command_us")?,
        buffer_read: s.us("buffer_read_us")?,
        make_entry: s.us("make_entry_us")?,
        control: s.us("control_us")?,
        trim_map_page: if s.has("trim_map_page_us") { s.us("trim_map_page_us")? } else { TRIM_MAP_PAGE },
    })
}

fn link(root: &Section) -> Result<LinkTiming> {
    let s = root.section("link", &["request_us", "response_us", "transfer_4k_us"])?;
    Ok(LinkTiming { request: s.us("request_us")?, response: s.us("response_us")?, block: s.us("transfer_4k_us")? })
}

const HPB_KEYS: [&str; 16] = [
    "control_modes",
    "control",
    "region_mib",
    "sub_region_mib",
    "max_active_regions",
    "activate_after_reads",
    "refresh_after_reads",
    "replace_after_reads",
    "repeat_after_ms",
    "freshness_chunk_entries",
    "read_buffers",
    "verify",
    "entry_key",
    "entries",
    "v2",
    "prototype",
];

fn hpb(s: &Section) -> Result<HpbConfig> {
    let exponent = |key: &str, most: u64| {
        let mib: u64 = s.integer(key, 1..=most)?;
        if !mib.is_power_of_two() {
            let below = 1 << mib.ilog2();
            return Err(s.error(key, format!("is {mib}; it must be a power of two, such as {below} or {}", below * 2)));
        }
        Ok(mib.ilog2() as u8 + MIB_EXPONENT)
    };
    let (region_size, sub_region_size) = (exponent("region_mib", 1 << 19)?, exponent("sub_region_mib", 256)?);
    if region_size < sub_region_size {
        return Err(s.error("region_mib", "is less than sub_region_mib; a region is at least a sub-region"));
    }
    Ok(HpbConfig {
        control: control(s)?,
        region_size,
        sub_region_size,
        max_active_regions: s.integer("max_active_regions", 1..=u64::from(u16::MAX))?,
        activate_after: s.integer("activate_after_reads", 1..=255)?,
        refresh_after: s.integer("refresh_after_reads", 1..=255)?,
        replace_after: s.integer("replace_after_reads", 1..=255)?,
        repeat_after: s.ms("repeat_after_ms")?,
        freshness_chunk_entries: s.any_u32("freshness_chunk_entries")?,
        read_buffers: if s.has("read_buffers") { s.integer("read_buffers", 1..=64)? } else { READ_BUFFERS },
        verification: if s.flag("verify")? { Verification::On } else { Verification::Off },
        entries: super::entries::read(s)?,
        v2: super::hpb2::read(s)?,
        prototype: super::prototype::read(s)?,
    })
}

/// Which control modes a device offers.
pub(crate) const CONTROL_MODES: [(&str, Option<Control>); 3] =
    [("device", Some(Control::Device)), ("host", Some(Control::Host)), ("both", None)];

/// The only control mode that the device offers, if it does not offer both.
fn only_control(s: &Section) -> Result<Option<Control>> {
    if s.has("control_modes") { s.word("control_modes", &CONTROL_MODES) } else { Ok(None) }
}

/// bHPBControl: device control unless the file says otherwise.
fn control(s: &Section) -> Result<Control> {
    let only = only_control(s)?;
    if !s.has("control") {
        return Ok(only.unwrap_or(Control::Device));
    }
    let control = s.word("control", &MODES)?;
    match only.filter(|&only| only != control) {
        Some(only) => {
            let (wanted, offered) = (control.name(), only.name());
            Err(s.error("control", format!("is {wanted:?}, but the device offers {offered:?} only (control_modes)")))
        }
        None => Ok(control),
    }
}

/// `hpb.read_buffers`, unless a file says something else.
pub(crate) const READ_BUFFERS: u8 = 4;

/// A region of 512 << this bytes has a MiB.
pub(crate) const MIB_EXPONENT: u8 = 11;

fn entry_key(s: &Section) -> Result<[u64; 2]> {
    let text = s.string("entry_key")?;
    let halves = text.get(..16).zip(text.get(16..)).filter(|_| text.len() == 32);
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    let half = |hex: &str| u64::from_str_radix(hex, 16).ok();
    halves
        .filter(|_| digits)
        .and_then(|(a, b)| Some([half(a)?, half(b)?]))
        .ok_or_else(|| s.error("entry_key", "is not 32 hexadecimal digits (128 bits)"))
}

fn lus(root: &Section, device_has_hpb: bool) -> Result<Vec<LuConfig>> {
    let keys = ["capacity_gib", "blocks", "hpb", "max_active_regions", "pinned_start", "pinned_regions"];
    let count = |s: &Section, key, default: bool| {
        if default && !s.has(key) { Ok(0) } else { s.integer(key, 0..=u64::from(u16::MAX)) }
    };
    let unit = |s: &Section| {
        let hpb = s.flag("hpb")?;
        if hpb && !device_has_hpb {
            return Err(s.error("hpb", "is true, but the device has no HPB; add an [hpb] table, or make it false"));
        }
        Ok(LuConfig {
            blocks: lu_blocks(s)?,
            hpb,
            max_active_regions: count(s, "max_active_regions", !hpb)?,
            pinned_start: count(s, "pinned_start", true)?,
            pinned_regions: count(s, "pinned_regions", true)?,
        })
    };
    root.sections("lu", &keys)?.iter().map(unit).collect()
}

fn lu_blocks(s: &Section) -> Result<u32> {
    match (s.has("capacity_gib"), s.has("blocks")) {
        (true, true) => Err(s.error("blocks", "and capacity_gib say the same; keep one of them")),
        (false, true) => s.any_u32("blocks"),
        (_, false) => {
            let what = "a capacity in GiB (or blocks = a number of 4 KiB blocks)";
            let millionths = s.decimal("capacity_gib", 6, 8192 * 1_000_000, what)?;
            let blocks = u128::from(millionths) << 18;
            if blocks % 1_000_000 != 0 {
                return Err(s.error("capacity_gib", "is no whole number of 4 KiB blocks; give blocks instead"));
            }
            u32::try_from(blocks / 1_000_000).map_err(|_| s.error("capacity_gib", "is beyond 8 TiB"))
        }
    }
}

fn fitted(root: &Section, tree: &Node) -> Result<Vec<(String, String)>> {
    let Some(calibration) = root.optional("calibration", &["fitted"])? else {
        return Ok(Vec::new());
    };
    let pair = |s: &Section| {
        let key = s.string("key")?;
        if !tree.contains(key) {
            return Err(s.error("key", format!("is {key:?}, which is no key of this file")));
        }
        Ok((key.to_owned(), s.string("to")?.to_owned()))
    };
    calibration.sections("fitted", &["key", "to"])?.iter().map(pair).collect()
}

/// Fields of [`DeviceConfig`] whose key has another name, and the unit in which the device counts if it is another one.
const KEYS: &[(&str, &str, &str)] = &[
    ("flash.read", "flash.read_us", ""),
    ("flash.map_read", "flash.map_read_us", ""),
    ("flash.program", "flash.program_us", ""),
    ("flash.erase", "flash.erase_us", ""),
    ("flash.transfer_block", "flash.transfer_4k_us", ""),
    ("flash.map_transfer", "flash.map_transfer_us", ""),
    ("firmware.flash_op", "firmware.flash_op_us", ""),
    ("firmware.hpb_read_extra", "firmware.hpb_read_extra_us", ""),
    ("firmware.write_command", "firmware.write_command_us", ""),
    ("firmware.buffer_read", "firmware.buffer_read_us", ""),
    ("firmware.make_entry", "firmware.make_entry_us", ""),
    ("firmware.control", "firmware.control_us", ""),
    ("firmware.trim_map_page", "firmware.trim_map_page_us", ""),
    ("link.request", "link.request_us", ""),
    ("link.response", "link.response_us", ""),
    ("link.block", "link.transfer_4k_us", ""),
    ("suspend.suspend", "suspend.suspend_us", ""),
    ("suspend.resume", "suspend.resume_us", ""),
    ("map_page_bytes", "map_cache.page_bytes", ""),
    ("map_cache_bytes", "map_cache.size_kib", " (counted in bytes)"),
    ("write_buffer_blocks", "write_buffer.size_kib", " (counted in blocks of 4 KiB)"),
    ("ftl.idle_after", "ftl.idle_after_ms", ""),
    ("ftl.move_buffer_blocks", "ftl.move_buffer_kib", " (counted in blocks of 4 KiB)"),
    ("ftl.faults.program_failures_ppm", "faults.program_failures_ppm", ""),
    ("ftl.faults.erase_failures_ppm", "faults.erase_failures_ppm", ""),
    ("ftl.faults.read_retries_ppm", "faults.read_retries_ppm", ""),
    ("write_booster.buffer_blocks", "write_booster.buffer_mib", " (counted in blocks of 4 KiB)"),
    ("write_booster.slc_read", "write_booster.slc_read_us", ""),
    ("write_booster.slc_program", "write_booster.slc_program_us", ""),
    ("write_booster.slc_erase", "write_booster.slc_erase_us", ""),
    ("map_memory.access", "map_memory.access_us", ""),
    ("map_memory.firmware", "map_memory.firmware_us", ""),
    ("map_memory.request", "map_memory.request_us", ""),
    ("map_memory.response", "map_memory.response_us", ""),
    ("map_memory.check", "map_memory.check_us", ""),
    ("map_memory.seal", "map_memory.seal_us", ""),
    ("map_memory.bytes", "map_memory.size_mib", " (counted in bytes)"),
    ("hpb.region_size", "hpb.region_mib", " (as an exponent: a region is 512 << this bytes)"),
    ("hpb.sub_region_size", "hpb.sub_region_mib", " (as an exponent: a sub-region is 512 << this bytes)"),
    ("hpb.activate_after", "hpb.activate_after_reads", ""),
    ("hpb.refresh_after", "hpb.refresh_after_reads", ""),
    ("hpb.replace_after", "hpb.replace_after_reads", ""),
    ("hpb.repeat_after", "hpb.repeat_after_ms", ""),
    ("hpb.verification", "hpb.verify", ""),
    ("hpb.entries.make", "hpb.entries.make_us", ""),
    ("hpb.entries.check", "hpb.entries.check_us", ""),
    ("hpb.prototype.group_entries", "hpb.prototype.group_kib", " (counted in blocks of 4 KiB)"),
    ("hpb.v2.single_blocks", "hpb.v2.single_kib", " (counted in blocks of 4 KiB)"),
    ("entry_key", "hpb.entry_key", ""),
];

/// Finds the line of what the device finds wrong with itself.
fn at_its_key(tree: &Node, e: &ConfigError) -> ConfigFileError {
    let (mut key, mut message) = (e.field.clone(), e.message.clone());
    if let Some((_, toml, unit)) = KEYS.iter().find(|(field, _, _)| *field == e.field) {
        key = (*toml).to_owned();
        // Messages that give only a count of something else need no unit.
        if message.starts_with("is ") {
            message.push_str(unit);
        }
    } else if let Some(rest) = e.field.strip_prefix("lus") {
        key = format!("lu{rest}");
        if let Some(unit) = key.strip_suffix(".blocks").filter(|_| !tree.contains(&key)) {
            key = format!("{unit}.capacity_gib");
        }
    }
    tree.locate(&key).error(key, message)
}
