// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[hpb.entries]`: its fields, their round trip through documents, and refused values.

use super::{back, no_file};
use crate::{DevicePreset, Override, device};
use readpath_device::{CheckOn, EntryConfig, Protection};
use readpath_kit::Ns;

/// `ufs21-64g` with keys changed, or the error.
fn with(keys: &[(&str, &str)]) -> Result<DevicePreset, String> {
    let set: Vec<Override> = keys.iter().map(|(k, v)| Override::new(k, v, "--set").expect("a value")).collect();
    let preset = device::load("ufs21-64g", &no_file).expect("a preset");
    preset.with_overrides(&set).map_err(|e| e.to_string())
}

fn entries(overrides: &[(&str, &str)]) -> EntryConfig {
    with(overrides).expect("a possible device").device.hpb.expect("it has HPB").entries
}

#[test]
fn without_the_table_entries_have_a_tag_of_32_bits() {
    assert_eq!(entries(&[]), EntryConfig::DEFAULT);
    assert_eq!(entries(&[("hpb.entries.protection", "mac")]), EntryConfig::DEFAULT);
    assert!(
        !with(&[]).expect("a preset").echo().to_toml().contains("hpb.entries"),
        "documents say only what is not as usual"
    );
}

#[test]
fn what_the_table_says_comes_back_from_documents() {
    let all = [
        ("hpb.entries.tag_bits", "12"),
        ("hpb.entries.check_on", "engine"),
        ("hpb.entries.make_us", "0.02"),
        ("hpb.entries.check_us", "1.5"),
        ("hpb.entries.tell_foreign", "true"),
    ];
    let p = with(&all).expect("a possible device");
    let expected = EntryConfig {
        protection: Protection::Mac,
        tag_bits: 12,
        check_on: CheckOn::Engine,
        make: Ns(20),
        check: Ns(1500),
        tell_foreign: true,
    };
    assert_eq!(p.device.hpb.expect("it has HPB").entries, expected);
    assert_eq!(back(&p).device, p.device);
    for (protection, word) in [(Protection::Encrypted, "encrypted"), (Protection::None, "none")] {
        let p = with(&[("hpb.entries.protection", word)]).expect("a possible device");
        assert_eq!(p.device.hpb.expect("it has HPB").entries.protection, protection);
        assert_eq!(back(&p).device, p.device);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let none = ("hpb.entries.protection", "none");
    let encrypted = ("hpb.entries.protection", "encrypted");
    for (overrides, message) in [
        (&[("hpb.entries.protection", "mack")][..], "hpb.entries.protection: is \"mack\""),
        (&[("hpb.entries.tag_bits", "7")], "hpb.entries.tag_bits: is 7; expected a whole number from 8 to 32"),
        (&[("hpb.entries.tag_bits", "33")], "hpb.entries.tag_bits: is 33; expected a whole number from 8 to 32"),
        (&[("hpb.entries.check_on", "host")], "hpb.entries.check_on: is \"host\""),
        (&[("hpb.entries.check_us", "1000000.1")], "hpb.entries.check_us: is "),
        (&[("hpb.entries.make", "1")], "hpb.entries.make: "),
        (&[encrypted, ("hpb.entries.tag_bits", "16")], "hpb.entries.tag_bits: belongs to protection = \"mac\""),
        (&[encrypted, ("hpb.entries.tell_foreign", "true")], "hpb.entries.tell_foreign: needs protection = \"mac\""),
        (
            &[none, ("hpb.entries.check_us", "1")],
            "hpb.entries.check_us: is 1.000 us; without protection there is nothing",
        ),
        (&[none, ("hpb.entries.check_on", "engine")], "hpb.entries.check_on: is \"engine\", but without protection"),
        (&[none, ("hpb.verify", "false")], "hpb.entries: says how entries are checked, but verify = false"),
    ] {
        let error = with(overrides).map(drop).expect_err(message);
        assert!(error.contains(message), "{error:?} does not say {message:?}");
    }
}
