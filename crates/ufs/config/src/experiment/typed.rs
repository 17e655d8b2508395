// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants given on the command line, not in a file: the same keys with the same meaning, and errors that name the
//! argument. It knows the keys of the host; all other keys are the device's, and checked there.

use super::variant::{Variant, hpb_keys, variant};
use crate::error::ConfigFileError;
use crate::keys::{KeyValue, read_table};
use crate::overrides::Override;
use crate::tree::{At, Node, Table, Value, parse_value};
use readpath_host::{Control, GroupUpdate, PolicyChoice};

/// A key of a variant with its value, as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenKey {
    /// `hpb` (`off`, `dcm` or `hcm`, which implies `mode`, `prototype-host` or `prototype-device`, which implies
    /// `prototype`), another host key of a variant, or a dotted key of the device.
    pub key: String,
    /// The value, in TOML or as a bare word.
    pub text: String,
    /// Source of the key, for errors: `--vary`.
    pub origin: String,
}

/// Name of the variant of each word of `--hpb`, and the word.
const HPB_MODES: [(&str, &str); 5] = [
    ("HPB off", "off"),
    ("HPB dcm", "dcm"),
    ("HPB hcm", "hcm"),
    ("HPB prototype (host)", "prototype-host"),
    ("HPB prototype (device)", "prototype-device"),
];

/// Name of the variant that a word of `--hpb` stands for, and the word, which is one of the key `hpb`.
pub fn hpb_mode(word: &str) -> Option<(&'static str, &'static str)> {
    HPB_MODES.into_iter().find(|(_, known)| *known == word)
}

impl GivenKey {
    /// A key, its value and its source.
    pub fn new(key: impl Into<String>, text: impl Into<String>, origin: impl Into<String>) -> Self {
        GivenKey { key: key.into(), text: text.into(), origin: origin.into() }
    }

    fn at(&self) -> At {
        At::outside(&self.origin)
    }

    fn value(&self) -> Result<Value, ConfigFileError> {
        let error = |e| self.at().error(&self.key, format!("{:?} is not a value: {e}", self.text));
        match (self.key.as_str(), self.text.trim()) {
            ("hpb", "off") => Ok(Value::Boolean(false)),
            ("hpb", word) if mode_of(word).is_some() || update_of(word).is_some() => Ok(Value::Boolean(true)),
            ("hpb", other) => {
                let message = format!(
                    "is {other:?}; expected \"off\", \"dcm\" or \"hcm\", \"prototype-host\" or \"prototype-device\""
                );
                Err(self.at().error("hpb", message))
            }
            // Always a word, so that the error for an unknown one lists the policies, not a TOML error.
            ("policy", word) if !word.starts_with(['"', '\'']) => Ok(Value::String(word.to_owned())),
            (_, text) => parse_value(text, &self.at()).map_err(error),
        }
    }
}

/// The control mode that a word for `hpb` names.
fn mode_of(word: &str) -> Option<Control> {
    match word {
        "dcm" => Some(Control::Device),
        "hcm" => Some(Control::Host),
        _ => None,
    }
}

/// The side that begins updates, for a word for `hpb` that names the prototype.
fn update_of(word: &str) -> Option<GroupUpdate> {
    GroupUpdate::by_name(word.strip_prefix("prototype-")?)
}

/// Refuses a key of HPB if the key `hpb`, which may have another source, selects another kind of HPB or none.
fn contradicted(given: &GivenKey, keys: &[GivenKey]) -> Result<(), ConfigFileError> {
    let Some(hpb) = keys.iter().find(|k| k.key == "hpb") else { return Ok(()) };
    let word = hpb.text.trim();
    let says = format!("hpb={word}, which {} says", hpb.origin);
    if word == "off" && hpb_keys().contains(&given.key.as_str()) {
        return Err(given.at().error(&given.key, format!("has no meaning with {says}; leave one of them out")));
    }
    let policy = PolicyChoice::ALL.into_iter().find(|p| given.key == "policy" && p.name() == given.text.trim());
    if let (Some(policy), Some(mode)) = (policy, mode_of(word))
        && policy.mode() != mode
    {
        let (name, takes) = (policy.name(), policy.mode().name());
        let message = format!("{name:?} takes {takes} control mode, unlike {says}; leave that out");
        return Err(given.at().error("policy", message));
    }
    Ok(())
}

impl Variant {
    /// The host keys of a variant; any other key is the device's.
    pub fn host_keys() -> Vec<&'static str> {
        let typed = hpb_keys().into_iter().filter(|key| !matches!(*key, "mode" | "prototype"));
        ["hpb"].into_iter().chain(typed).collect()
    }

    /// The variant `name` that these keys describe; `hpb` must be among them, or `policy`, which implies it.
    ///
    /// # Errors
    /// An invalid value, or a key that is given twice. Unknown keys of the device are found when the device is made.
    pub fn of_keys(name: &str, keys: &[GivenKey]) -> Result<Variant, ConfigFileError> {
        let nowhere = At::outside(name);
        let hpb_keys = hpb_keys();
        let mut keys_of_host = Table::default();
        let mut put = |key: &str, at: At, value: Value| keys_of_host.push(key, at, value);
        put("name", nowhere.clone(), Value::String(name.to_owned()));
        let mut set = Vec::new();
        for (i, given) in keys.iter().enumerate() {
            if let Some(before) = keys[..i].iter().find(|k| k.key == given.key) {
                let message = match before.origin == given.origin {
                    true => "is given twice".to_owned(),
                    false => format!("is given by {} too", before.origin),
                };
                return Err(given.at().error(&given.key, message));
            }
            // `hpb` implies both keys.
            if given.key == "mode" && keys.iter().any(|k| k.key == "hpb") {
                return Err(given.at().error("mode", "is what hpb=dcm and hpb=hcm say; leave it out"));
            }
            if given.key == "prototype" {
                return Err(given
                    .at()
                    .error("prototype", "is what hpb=prototype-host and hpb=prototype-device say; leave it out"));
            }
            contradicted(given, keys)?;
            if given.key == "hpb"
                && let Some(mode) = mode_of(given.text.trim())
            {
                put("mode", given.at(), Value::String(mode.name().to_owned()));
            }
            if given.key == "hpb"
                && let Some(update) = update_of(given.text.trim())
            {
                put("prototype", given.at(), Value::String(update.name().to_owned()));
            }
            if given.key == "policy" && !keys.iter().any(|k| k.key == "hpb") {
                put("hpb", given.at(), Value::Boolean(true));
            }
            if given.key == "hpb" || hpb_keys.contains(&given.key.as_str()) {
                put(&given.key, given.at(), given.value()?);
            } else {
                set.push(Override::new(&given.key, &given.text, &given.origin)?);
            }
        }
        let node = Node { at: nowhere, value: Value::Table(keys_of_host) };
        let mut made = read_table(&KeyValue { node: &node, path: String::new() }, variant)?;
        made.set = set;
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DevicePreset;
    use readpath_host::{HpbParams, ListOrder};

    fn of(keys: &[(&str, &str)]) -> Result<Variant, String> {
        let keys: Vec<GivenKey> = keys.iter().map(|(k, v)| GivenKey::new(*k, *v, "--vary")).collect();
        Variant::of_keys("small", &keys).map_err(|e| e.to_string())
    }

    #[test]
    fn keys_of_host_and_device() {
        let v = of(&[
            ("hpb", "dcm"),
            ("map_cache.size_kib", "256"),
            ("order", "recency"),
            ("max_map_mib", "4"),
            ("scheduler", "exact"),
        ])
        .expect("a variant");
        let hpb = v.hpb.expect("HPB");
        assert_eq!((v.name.as_str(), hpb.order, hpb.max_map_bytes), ("small", ListOrder::Recency, Some(4 << 20)));
        let keys: Vec<&str> = v.set.iter().map(Override::key).collect();
        assert_eq!(keys, ["map_cache.size_kib", "scheduler"]);
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        assert_eq!(preset.with_overrides(&v.set).expect("a device").device.map_cache_bytes, 256 << 10);
        assert!(of(&[("hpb", "off")]).expect("a variant").hpb.is_none());
        assert_eq!((hpb.mode, hpb.params), (Some(Control::Device), HpbParams::LINUX));
    }

    #[test]
    fn memory_is_said_in_whole_mib_or_with_a_suffix() {
        let bytes = |keys: &[(&str, &str)]| of(keys).map(|v| v.hpb.map(|hpb| (hpb.max_map_bytes, hpb.memory_bytes)));
        for (value, bytes_of) in [("524288", 512 << 10), ("512K", 512 << 10), ("3M", 3 << 20), ("1G", 1 << 30)] {
            assert_eq!(bytes(&[("hpb", "dcm"), ("max_map", value)]), Ok(Some((Some(bytes_of), None))));
            assert_eq!(bytes(&[("policy", "lru"), ("memory", value)]), Ok(Some((None, Some(bytes_of)))));
        }
        // Parameters that a policy of this host accepts.
        assert!(of(&[("policy", "lru"), ("inflight_map_req", "4"), ("requeue_timeout_ms", "1")]).is_ok());
        assert!(of(&[("policy", "linux-hcm"), ("activation_thld", "9")]).is_ok());
        assert!(of(&[("policy", "\"lru\"")]).is_ok());
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        let small = of(&[("hpb", "dcm"), ("max_map", "16K")]).expect("a variant");
        let message = small.device(&preset).expect_err("no region fits").to_string();
        assert_eq!(message, "--vary: max_map: 16384 bytes do not hold the map of one region, which has 32768");
    }

    #[test]
    fn hcm_configures_host_and_device() {
        let v = of(&[("hpb", "hcm"), ("inflight_map_req", "4")]).expect("a variant");
        let hpb = v.hpb.expect("HPB");
        assert_eq!((hpb.mode, hpb.params.inflight_map_req), (Some(Control::Host), 4));
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        let control = |preset: &DevicePreset| preset.device.hpb.expect("HPB").control;
        assert_eq!(control(&preset), Control::Device);
        assert_eq!(control(&v.device(&preset).expect("it offers both")), Control::Host);
        let only = preset.with_overrides(&[Override::new("hpb.control_modes", "device", "--set").expect("a value")]);
        let message = v.device(&only.expect("a device")).expect_err("it does not").to_string();
        assert!(
            message.contains("--vary: hpb.control: is \"host\", but the device offers \"device\" only"),
            "{message}"
        );
        let message = v.device(&without_hpb()).expect_err("it has no HPB").to_string();
        assert!(message.contains("has no HPB, so it has no host control mode"), "{message}");
        // And the reverse: the key on the command line overrides the device file.
        let host = preset.with_override("hpb.control", "host").expect("a device");
        let file = crate::device::parse(&host.echo().to_toml(), "file.toml").expect("the same");
        let v = of(&[("hpb", "dcm")]).expect("a variant");
        assert_eq!(control(&v.device(&file).expect("it offers both")), Control::Device);
    }

    fn without_hpb() -> DevicePreset {
        let mut preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        preset.device.hpb = None;
        preset.device.lus.iter_mut().for_each(|lu| (lu.hpb, lu.max_active_regions) = (false, 0));
        preset.fitted.clear();
        crate::device::parse(&preset.echo().to_toml(), "small.toml").expect("a device")
    }

    /// Keys that would make a variant with HPB in its name run without.
    #[test]
    fn a_device_on_which_hpb_would_not_be_found_is_refused() {
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        let made = |word: &str, key: &str, value: &str| {
            let device =
                preset.with_overrides(&[Override::new(key, value, "--set").expect("a value")]).expect("a device");
            of(&[("hpb", word)]).expect("a variant").device(&device).map_err(|e| e.to_string())
        };
        let prototype = "makes the device one of the prototype, on which a host with HPB of JESD220-3 finds none";
        let units = "is false, as for all logical units: variant \"small\" would be called one with HPB and have none";
        for (word, key, value, says) in [
            ("dcm", "hpb.prototype.listed_changes", "9", format!("--set: hpb.prototype: {prototype}")),
            ("hcm", "hpb.prototype.group_kib", "4096", format!("--set: hpb.prototype: {prototype}")),
            ("dcm", "lu[0].hpb", "false", format!("--set: lu[0].hpb: {units}")),
            ("hcm", "lu[0].hpb", "false", format!("--set: lu[0].hpb: {units}")),
            ("prototype-host", "lu[0].hpb", "false", format!("--set: lu[0].hpb: {units}")),
            (
                "dcm",
                "hpb.control",
                "host",
                "--set: hpb.control: is \"host\", but variant \"small\" says \"device\"".into(),
            ),
            ("hcm", "hpb.control", "device", "--set: hpb.control: is \"device\", but variant \"small\" says".into()),
            (
                "prototype-host",
                "hpb.prototype.update",
                "device",
                "--set: hpb.prototype.update: is \"device\", but".into(),
            ),
        ] {
            let message = made(word, key, value).expect_err("a contradiction");
            assert!(message.starts_with(&says), "{says}: {message}");
        }
        for (word, key, value) in [
            ("off", "lu[0].hpb", "false"),
            ("off", "hpb.prototype.listed_changes", "9"),
            ("hcm", "hpb.control", "host"),
            ("prototype-device", "hpb.prototype.update", "device"),
            ("prototype-device", "hpb.prototype.listed_changes", "9"),
        ] {
            assert!(made(word, key, value).is_ok(), "{word}: {key}");
        }
        // A host that may use HPB runs without it on a device that has none.
        assert!(of(&[("hpb", "dcm")]).expect("a variant").device(&without_hpb()).is_ok());
    }

    /// Parameters that only this device refuses are reported before the run, at their places.
    #[test]
    fn parameters_are_checked_against_the_device() {
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        for (key, value, says) in [
            (
                "inflight_map_req",
                "31",
                "--vary: inflight_map_req: is 31; it must be 1 to 30 (less than the queue depth",
            ),
            ("normalization_factor", "13", "--vary: normalization_factor: is 13; it must be 1 to 12 (the logarithm of"),
        ] {
            let v = of(&[("hpb", "hcm"), (key, value)]).expect("possible elsewhere");
            let message = v.device(&preset).expect_err("not here").to_string();
            assert!(message.starts_with(says), "{says}: {message}");
        }
    }

    #[test]
    fn the_prototype_makes_the_device_one() {
        let preset = crate::device::load("ufs21-64g", &|_| unreachable!()).expect("a preset");
        for (word, update) in [("prototype-host", GroupUpdate::Host), ("prototype-device", GroupUpdate::Device)] {
            let v = of(&[("hpb", word), ("order", "recency"), ("hpb.prototype.group_kib", "4096")]).expect("a variant");
            assert_eq!(v.hpb.expect("HPB").prototype, Some(update));
            let device = v.device(&preset).expect("it can be one");
            let prototype = device.device.hpb.and_then(|hpb| hpb.prototype).expect("one of the prototype");
            assert_eq!((prototype.update, prototype.group_entries), (update, 1024));
            let echo: DevicePreset = crate::device::parse(&device.echo().to_toml(), "echo").expect("the same");
            assert_eq!(echo.device, device.device);
        }
        let v = of(&[("hpb", "prototype-host")]).expect("a variant");
        let message = v.device(&without_hpb()).expect_err("it has no HPB").to_string();
        assert!(message.contains("hpb.prototype: the device 'ufs21-64g' has no HPB, so it cannot be"), "{message}");
        for (key, value, says) in [
            (
                "hpb.prototype.group_kib",
                "3000",
                "hpb.prototype.group_kib: is 3000; it must be a power of two from 256 to 262144, such as 2048",
            ),
            ("hpb.prototype.group_kib", "128", "hpb.prototype.group_kib: is 128; expected a whole number from 256"),
            ("hpb.prototype.update", "\"both\"", "hpb.prototype.update: is \"both\"; "),
            ("hpb.prototype.flags", "1", "hpb.prototype.flags"),
            ("hpb.v2.single_kib", "8", "hpb.v2: is there, but the prototype is older than HPB 2.0"),
            ("hpb.entries.protection", "\"encrypted\"", "hpb.entries.protection: is \"encrypted\", but entries of the"),
            ("lu[0].pinned_regions", "2", "lu[0].pinned_regions: is not 0, but the prototype pins nothing"),
        ] {
            let v = of(&[("hpb", "prototype-device"), (key, value)]).expect("keys of the device are looked at later");
            let message = v.device(&preset).expect_err("a mistake").to_string();
            assert!(message.contains(says), "{says}: {message}");
        }
    }

    #[test]
    fn mistakes_name_the_argument_and_the_key() {
        for (keys, says) in [
            (
                &[("hpb", "on")][..],
                "--vary: hpb: is \"on\"; expected \"off\", \"dcm\" or \"hcm\", \"prototype-host\" or",
            ),
            (&[("hpb", "prototype")], "--vary: hpb: is \"prototype\"; expected \"off\", "),
            (&[("hpb", "prototype-host"), ("prototype", "host")], "--vary: prototype: is what hpb=prototype-host and"),
            (&[("hpb", "dcm"), ("prototype", "host")], "--vary: prototype: is what hpb=prototype-host and"),
            (
                &[("hpb", "prototype-host"), ("strict_linux", "true")],
                "--vary: strict_linux: belongs to HPB of JESD220-3; ",
            ),
            (&[("hpb", "prototype-device"), ("policy", "lru")], "--vary: policy: belongs to HPB of JESD220-3; "),
            (&[("hpb", "prototype-device"), ("activation_thld", "9")], "--vary: activation_thld: belongs to HPB of "),
            (&[("hpb", "hcm"), ("mode", "host")], "--vary: mode: is what hpb=dcm and hpb=hcm say"),
            (&[("hpb", "hcm"), ("activation_thld", "0")], "--vary: activation_thld: is 0; it must be 1 to"),
            (
                &[("hpb", "dcm"), ("activation_thld", "9")],
                "--vary: activation_thld: can be changed in host control mode only",
            ),
            (
                &[("hpb", "off"), ("order", "recency")],
                "--vary: order: has no meaning with hpb=off, which --vary says; ",
            ),
            (&[("hpb", "dcm"), ("policy", "lru")], "--vary: policy: \"lru\" takes host control mode, unlike hpb=dcm, "),
            (
                &[("hpb", "dcm"), ("order", "recency"), ("strict_linux", "true")],
                "--vary: order: does not go with strict_linux: Linux keeps its list by activation",
            ),
            (
                &[("hpb", "hcm"), ("dirty_bitmap", "false"), ("strict_linux", "true")],
                "--vary: dirty_bitmap: does not go with strict_linux: Linux always marks",
            ),
            (
                &[("hpb", "dcm"), ("long_reads", "pre-request"), ("strict_linux", "true")],
                "--vary: long_reads: does not go with strict_linux: Linux 6.1 sends",
            ),
            (&[("hpb", "dcm"), ("order", "recent")], "--vary: order: is \"recent\"; "),
            (&[("hpb", "dcm"), ("max_map_mib", "0")], "--vary: max_map_mib: is 0; expected a whole number from 1"),
            (&[("hpb", "dcm"), ("a.b", "1"), ("a.b", "1")], "--vary: a.b: is given twice"),
            (&[("hpb", "dcm"), ("a.b", "[1")], "--vary: a.b: \"[1\" is not a value"),
            (&[("hpb", "dcm"), ("max_map", "12Q")], "--vary: max_map: \"12Q\" is not a size such as"),
            (
                &[("hpb", "dcm"), ("max_map", "1M"), ("max_map_mib", "1")],
                "--vary: max_map: is what max_map_mib says too",
            ),
            (&[("policy", "")], "--vary: policy: is \"\"; expected \"linux-dcm\" or \"linux-hcm\" or "),
            (&[("policy", "a b")], "--vary: policy: is \"a b\"; expected \"linux-dcm\" or "),
            (&[("policy", "\"lur\"")], "--vary: policy: is \"lur\"; expected \"linux-dcm\" or "),
            (&[("policy", "lru"), ("max_map", "1M"), ("memory_mib", "1")], "--vary: memory_mib: bounds maps, dirty"),
            (
                &[("policy", "lru"), ("activation_thld", "9")],
                "--vary: activation_thld: belongs to Linux's host control",
            ),
            (
                &[("policy", "lru"), ("read_timeout_ms", "90")],
                "--vary: read_timeout_ms: belongs to Linux's host control",
            ),
            (&[("a.b", "1")], "small: hpb: is missing"),
        ] {
            let message = of(keys).expect_err("a mistake");
            assert!(message.starts_with(says), "{says}: {message}");
        }
        let keys = [GivenKey::new("a", "1", "--variant x"), GivenKey::new("a", "2", "--vary")];
        let message = Variant::of_keys("x", &keys).expect_err("twice").to_string();
        assert_eq!(message, "--vary: a: is given by --variant x too");
    }
}
