// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of a variant: the host's use of HPB, and overrides of the device's keys. It does not interpret them.

use super::host_control::{self, memory};
use crate::device::DevicePreset;
use crate::error::Result;
use crate::keys::{Key, KeyValue, Keys, fields, filled, flag, names, open_table, words};
use crate::overrides::Override;
use crate::tree::{At, Value};
use readpath_host::{GroupUpdate, HostConfig, HpbOptions, ListOrder, LongReads};

/// A variant to be compared.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name, unique in the experiment.
    pub name: String,
    /// HPB options of the host; `None` disables HPB.
    pub hpb: Option<HpbOptions>,
    /// Overrides of the device's keys.
    pub set: Vec<Override>,
    /// Places of its keys of HPB.
    places: Vec<(&'static str, At)>,
}

impl Variant {
    /// A variant that is not from a file.
    pub fn new(name: impl Into<String>, hpb: Option<HpbOptions>, set: Vec<Override>) -> Variant {
        Variant { name: name.into(), hpb, set, places: Vec::new() }
    }

    /// Whether a key of HPB was given.
    pub(super) fn says(&self, key: &str) -> bool {
        self.places.iter().any(|(said, _)| *said == key)
    }

    /// Place of a key of HPB, or of the variant if the key was not given.
    pub(super) fn place_of(&self, key: &str) -> At {
        let place = self.places.iter().find(|(said, _)| *said == key);
        place.map_or_else(|| At::outside(&self.name), |(_, at)| at.clone())
    }

    /// The host of this variant on a device.
    pub fn host(&self, device: &DevicePreset) -> HostConfig {
        HostConfig { hpb: self.hpb, ..device.host }
    }
}

const PROTOTYPE: &str = "prototype";

/// `[[variant]]`, in a file or not.
pub(super) fn variant(k: &mut Keys<Variant>) -> Result<Variant> {
    fields! { k:
        /// name, unlike that of any other variant
        name: filled();
    }
    let given = |key: &str, KeyValue { node, .. }: &KeyValue| {
        Ok(Override { key: key.to_owned(), value: node.value.clone(), at: node.at.clone() })
    };
    let written = |set: &Vec<Override>| Value::table(set.iter().map(|o| (o.key.as_str(), o.value.clone())));
    let hpb = k.key(Key::new("hpb", "whether the host uses HPB"), flag(), |variant| variant.hpb.is_some())?;
    let hpb = k.group(hpb, Some("has no meaning with hpb = false"), |variant| variant.hpb, hpb_options)?;
    fields! { k:
        /// keys of the device to change: `{ "map_cache.size_kib" = 512 }`
        set: open_table(given, written).or(Vec::new()).quiet();
    }
    let places = hpb_keys().into_iter().filter_map(|key| Some((key, k.place(key)?))).collect();
    Ok(Variant { name, hpb, set, places })
}

/// Keys of a variant that belong to `hpb = true`.
pub(super) fn hpb_keys() -> Vec<&'static str> {
    names(hpb_options)
}

fn hpb_options(k: &mut Keys<HpbOptions>) -> Result<HpbOptions> {
    let default = HpbOptions::DEFAULT;
    fields! { k:
        /// order in which regions are evicted: `activation`, as Linux does, or `recency` of use
        order: words(ListOrder::WORDS).or(default.order);
        /// do as Linux 6.1, faults included; only with Linux's `order`, `long_reads` and `policy`, and not with
        /// `dirty_bitmap = false`
        strict_linux: flag().or(default.strict_linux);
        /// whether writes make entries dirty; false only for tests
        dirty_bitmap: flag().or(default.dirty_bitmap);
    }
    let max_map = "limit of the maps that the host holds, at least those of one region; by default what the device \
        allows. Not together with `memory` or `memory_mib`";
    let max_map_bytes = memory(k, ["max_map_mib", "max_map"], max_map, |options| options.max_map_bytes)?;
    fields! { k:
        /// entries sent with reads of more than one block, if the device has [HPB
        /// 2.0](../hpb-modes.md#longer-reads-hpb-20); all but the first are refused without it, and `measured` without
        /// one of this host's own policies
        long_reads: words(LongReads::WORDS).or(default.long_reads).quiet();
        /// [the prototype of 2017](../hpb-modes.md#the-prototype-of-2017) instead of HPB of JESD220-3, and who starts
        /// its updates; the device becomes one. Only `order`, `max_map` and `memory` (or `_mib`) may be given with it
        prototype: words(GroupUpdate::WORDS).optional();
    }
    let options = HpbOptions { order, strict_linux, dirty_bitmap, max_map_bytes, long_reads, prototype, ..default };
    let options = host_control::read(k, options)?;
    // It replaces the modes of JESD220-3 and all their keys. Experiments also write two keys with their default
    // values.
    let usual = |key: &str| match key {
        "strict_linux" => !strict_linux,
        "dirty_bitmap" => dirty_bitmap,
        key => [PROTOTYPE, "order", "max_map_mib", "max_map", "memory_mib", "memory"].contains(&key),
    };
    if k.has(PROTOTYPE) {
        let other = hpb_keys().into_iter().find(|key| k.has(key) && !usual(key));
        let message = "belongs to HPB of JESD220-3; the prototype does not have it";
        k.refuse(other.is_some(), other.unwrap_or_default(), message)?;
    }
    Ok(options)
}
