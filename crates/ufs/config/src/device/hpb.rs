// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of HPB: the device's features, protection of entries, HPB 2.0, and the prototype.

use super::bounds;
use super::preset::DevicePreset;
use crate::error::Result;
use crate::keys::{
    Key, Keys, Kind, blocks_of_kib, fields, flag, keys, ms, power_of_two, power_of_two_blocks_of_kib, table, text, us,
    whole, words,
};
use crate::tree::Value;
use readpath_device::{
    CheckOn, Control, EntryConfig, GroupUpdate, Hpb2Config, HpbConfig, Protection, PrototypeConfig, Verification,
};
use readpath_kit::Ns;

/// The table `[hpb]`.
#[derive(Clone)]
pub(super) struct Hpb {
    pub config: HpbConfig,
    pub only_control: Option<Control>,
    pub entry_key: [u64; 2],
}

/// The table of a device.
pub(super) fn of(preset: &DevicePreset) -> Option<Hpb> {
    let (only_control, entry_key) = (preset.only_control, preset.device.entry_key);
    preset.device.hpb.map(|config| Hpb { config, only_control, entry_key })
}

/// Control modes that a device offers.
const CONTROL_MODES: [(&str, Option<Control>); 3] =
    [("device", Some(Control::Device)), ("host", Some(Control::Host)), ("both", None)];

/// The most sectors of a MiB as a power of two.
const MIB_EXPONENT: u64 = 11;

/// A power of two in MiB, as an exponent of sectors of 512 bytes.
fn exponent_of_mib(most: u64, counted: &'static str) -> Kind<'static, u8> {
    let (there, back) =
        (|mib: u64| u64::from(mib.ilog2()) + MIB_EXPONENT, |exponent: u64| 1 << exponent.saturating_sub(MIB_EXPONENT));
    power_of_two(1..=most).scaled(there, back, counted)
}

pub(super) fn hpb(k: &mut Keys<Hpb>) -> Result<Hpb> {
    fields! { k:
        /// control modes that the device offers
        only_control = "control_modes": words(CONTROL_MODES).or(None);
        /// configured mode (bHPBControl); by default `device` if it is offered. A variant's `mode` overrides it
        control of config: words(Control::WORDS).or(only_control.unwrap_or(Control::Device));
        /// size of a region, the unit of eviction; at least a sub-region and at most 65,536 of them
        region_size of config = "region_mib":
            exponent_of_mib(1 << 19, " (as an exponent: a region is 512 << this bytes)");
        /// size of a sub-region, the unit of loading
        sub_region_size of config = "sub_region_mib":
            exponent_of_mib(
                1 << (bounds("hpb.sub_region_size").end() - MIB_EXPONENT),
                " (as an exponent: a sub-region is 512 << this bytes)",
            );
        /// wDeviceMaxActiveHPBRegions
        max_active_regions of config: whole(bounds("hpb.max_active_regions"));
        /// reads without a good entry before a sub-region is recommended
        activate_after of config = "activate_after_reads": whole(bounds("hpb.activate_after"));
        /// the same for a sub-region that is loaded
        refresh_after of config = "refresh_after_reads": whole(bounds("hpb.refresh_after"));
        /// if no more regions may be active: reads of an inactive sub-region before its region replaces one that is
        /// read little
        replace_after of config = "replace_after_reads": whole(bounds("hpb.replace_after"));
        /// time after which a recommendation that was not followed is repeated
        repeat_after of config = "repeat_after_ms": ms(0..=Ns::from_secs(1000).0);
        /// entries that share a bit of the freshness table; at most those of a sub-region
        freshness_chunk_entries of config: power_of_two(bounds("hpb.freshness_chunk_entries"));
        /// HPB READ BUFFERs served at the same time; more wait in order of arrival. Each takes SRAM for the map pages
        /// and the entries (8 bytes each) of a sub-region
        read_buffers of config: whole(bounds("hpb.read_buffers")).or(4);
    }
    let verify = Key::new("verify", "false = the device uses any entry, right or wrong; for tests").of("verification");
    let verify = k.key(verify, flag(), |hpb| hpb.config.verification == Verification::On)?;
    fields! { k:
        /// key that authenticates entries, 32 hexadecimal digits
        entry_key: text().parsed(hex, |[a, b]| Value::text(format!("{a:016x}{b:016x}")));
        /// how entries are protected
        entries of config: table(entries).or(EntryConfig::DEFAULT).quiet();
        /// HPB 2.0
        v2 of config: table(v2).optional();
        /// the prototype of 2017
        prototype of config: table(prototype).optional();
    }
    if let Some(only) = only_control {
        let message = format!("is {:?}, but the device offers {:?} only (control_modes)", control.name(), only.name());
        k.refuse(control != only, "control", message)?;
    }
    let smaller = region_size < sub_region_size;
    k.refuse(smaller, "region_mib", "is less than sub_region_mib; a region is at least a sub-region")?;
    let config = HpbConfig {
        control,
        region_size,
        sub_region_size,
        max_active_regions,
        activate_after,
        refresh_after,
        replace_after,
        repeat_after,
        freshness_chunk_entries,
        read_buffers,
        verification: if verify { Verification::On } else { Verification::Off },
        entries,
        v2,
        prototype,
    };
    Ok(Hpb { config, only_control, entry_key })
}

fn hex(text: String) -> std::result::Result<[u64; 2], String> {
    let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let both = digits.then(|| u128::from_str_radix(&text, 16).ok()).flatten();
    let both = both.ok_or("is not 32 hexadecimal digits (128 bits)")?;
    Ok([(both >> 64) as u64, both as u64])
}

fn entries(k: &mut Keys<EntryConfig>) -> Result<EntryConfig> {
    let default = EntryConfig::DEFAULT;
    Ok(keys!(k => EntryConfig {
        /// `mac` (a keyed tag beside the physical address), `encrypted` (the host learns no address) or `none` (unsafe:
        /// an address is believed if it exists and nothing near it has changed)
        protection: words(Protection::WORDS).or(default.protection);
        /// bits of the tag; fewer than 32 are for measuring how often forgeries succeed. Only with `mac`
        tag_bits: whole(bounds("hpb.entries.tag_bits")).or(default.tag_bits);
        /// who makes and checks entries: the `firmware` core, or an `engine` of its own, first come, first served. Not
        /// with `none`
        check_on: words(CheckOn::WORDS).or(default.check_on);
        /// time to protect an entry that is handed out, on top of `firmware.make_entry_us`. 0 with `none`
        make = "make_us": us(bounds("hpb.entries.make")).or(default.make);
        /// time to check an entry of an HPB READ, on top of `firmware.hpb_read_extra_us`. 0 with `none`
        check = "check_us": us(bounds("hpb.entries.check")).or(default.check);
        /// read the spare area of the slice that a forged entry names, to count entries made for another block
        /// separately. Only with `mac`
        tell_foreign: flag().or(default.tell_foreign);
    }))
}

fn v2(k: &mut Keys<Hpb2Config>) -> Result<Hpb2Config> {
    Ok(keys!(k => Hpb2Config {
        /// longest HPB READ without a pre-request (bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD)
        single_blocks = "single_kib": blocks_of_kib(bounds("hpb.v2.single_blocks"));
        /// pre-requests held at once; each takes 2048 bytes of SRAM
        pre_requests: whole(bounds("hpb.v2.pre_requests")).or(16);
        /// factory setting of fHPBEn
        enabled: flag().or(true);
        /// an HPB READ may carry an entry for each block in an extra header segment; an extension of this program, not
        /// part of JESD220-3A
        entries_in_ehs: flag().or(false);
    }))
}

fn prototype(k: &mut Keys<PrototypeConfig>) -> Result<PrototypeConfig> {
    Ok(keys!(k => PrototypeConfig {
        /// who starts an update: the `host`, which loads a group that responses name, or the `device`, whose responses
        /// carry entries
        update: words(GroupUpdate::WORDS).or(GroupUpdate::Host);
        /// data covered by a group; each takes a bit of SRAM. Default: a map page of 16 KiB (HotStorage 2017)
        group_entries = "group_kib": power_of_two_blocks_of_kib(bounds("hpb.prototype.group_entries")).or(4096);
        /// with `update = "device"`: changed entries listed until the host has them; 6 bytes of SRAM each. Default:
        /// more than the write buffer of a preset holds (assumption)
        listed_changes: whole(bounds("hpb.prototype.listed_changes")).or(512);
    }))
}
