// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the descriptors to HPB in use: the requests, their order, and what prevents the use of HPB (Linux 6.1
//! `ufshcd_device_params_init`, `ufshpb_get_dev_info`, `ufshpb_init`, `ufshpb_hpb_lu_prepared`).

use crate::common::{Device, Host, cdb};
use readpath_host::{BlockOp, Control, HpbOptions, HpbParam, HpbParams, LongReads, LuState, ProbeError};
use readpath_proto::hpb;
use readpath_proto::typed::Cdb;

const OWN: HpbOptions = HpbOptions::DEFAULT;
const LINUX: HpbOptions = HpbOptions { strict_linux: true, ..OWN };

const BEFORE: &[&str] = &["geometry", "device"];
const AFTER: &[&str] = &["luns", "unit"];

/// The requests to a device, and the state of the HPB of its first unit.
fn probed(change: impl Fn(&mut Device), options: HpbOptions) -> (Vec<String>, Option<LuState>) {
    let mut device = Device::new();
    change(&mut device);
    let host = Host::probe(&mut device, options);
    assert!(host.driver.is_ready(), "{:?}", host.driver.failure());
    (device.log, host.driver.hpb(0).map(|hpb| hpb.state()))
}

#[track_caller]
fn asks(change: impl Fn(&mut Device), between: &[&str], after: &[&str], state: Option<LuState>) {
    for options in [OWN, LINUX] {
        let (log, found) = probed(&change, options);
        assert_eq!(log, [BEFORE, between, AFTER, after].concat());
        assert_eq!(found, state, "{options:?}");
    }
}

const RESET: &[&str] = &["flag 11h!"];
const POLL: &[&str] = &["flag 11h?"];
const PRESENT: Option<LuState> = Some(LuState::Present);

#[test]
fn the_order_of_requests() {
    asks(|_| {}, RESET, POLL, PRESENT);
    asks(|d| *d = d.clone().version_2(), &["attribute 01h", "flag 12h?", "flag 11h!"], POLL, PRESENT);
}

/// What the device needs so that the host can send more than one entry, and the error if it lacks that.
#[test]
fn long_reads_need_a_device_that_takes_them() {
    let version_1 = Device::new;
    let version_2 = || Device::new().version_2();
    let with_ehs = || Device { ehs_entries: Some(255), ..Device::new().version_2() };
    for (long_reads, device, asked, needed) in [
        (LongReads::First, version_1(), RESET, None),
        (LongReads::First, with_ehs(), &["attribute 01h", "flag 12h?", "flag 11h!"][..], None),
        (LongReads::PreRequest, version_2(), &["attribute 01h", "flag 12h?", "flag 11h!"], None),
        (LongReads::Ehs, with_ehs(), &["attribute 01h", "flag 12h?", "attribute C0h", "flag 11h!"], None),
        (LongReads::PreRequest, version_1(), &[], Some("HPB 2.0")),
        (LongReads::Ehs, version_1(), &[], Some("HPB 2.0")),
        (LongReads::Ehs, version_2(), &["attribute 01h", "flag 12h?", "attribute C0h"], Some("extra header segments")),
        (
            LongReads::Ehs,
            Device { ehs_entries: Some(0), ..version_2() },
            &["attribute 01h", "flag 12h?", "attribute C0h"],
            Some("extra header segments"),
        ),
        // Without HPB it does not matter.
        (LongReads::Ehs, Device { enabled: Some(0), ..version_2() }, &["attribute 01h", "flag 12h?"], None),
    ] {
        let mut device = device;
        let host = Host::probe(&mut device, HpbOptions { long_reads, ..OWN });
        assert!(device.log.join(" ").starts_with(&[BEFORE, asked].concat().join(" ")), "{:?}", device.log);
        match (host.driver.failure(), needed) {
            (None, None) => assert!(host.driver.is_ready()),
            (Some(e @ ProbeError::LongReads { .. }), Some(needed)) => assert!(e.to_string().contains(needed), "{e}"),
            other => panic!("{long_reads:?}: {other:?}"),
        }
    }
}

#[test]
fn what_keeps_hpb_from_being_used() {
    for change in [
        (|d| d.geometry.hpb_region_size = 0) as fn(&mut Device),
        |d| d.geometry.hpb_sub_region_size = 0,
        |d| d.geometry.hpb_number_lu = 0,
        |d| d.geometry.hpb_max_active_regions = 0,
        |d| d.descriptor.spec_version = 0x0300,
        |d| d.descriptor.ufs_features = 0,
        |d| d.descriptor.hpb_version = 0x0110,
    ] {
        asks(change, &[], &[], None);
    }
    let asked = ["attribute 01h", "flag 12h?"];
    for enabled in [Some(0), None] {
        asks(|d| *d = Device { enabled, ..d.clone().version_2() }, &asked, &[], None);
    }
    for (lu_enable, regions) in [(1, 2), (2, 0)] {
        asks(|d| (d.units[0].lu_enable, d.units[0].hpb_max_active_regions) = (lu_enable, regions), RESET, &[], None);
    }
}

#[test]
fn the_reset_of_the_devices_hpb() {
    // Requested up to ten times; failure does not matter.
    asks(|d| d.refuse_reset = 3, &["flag 11h!"; 4], POLL, PRESENT);
    asks(|d| d.refuse_reset = 99, &["flag 11h!"; 10], POLL, PRESENT);
    // Read up to ten times; an invalid answer ends it.
    asks(|d| d.busy = Some(9), RESET, &["flag 11h?"; 10], PRESENT);
    asks(|d| d.busy = Some(10), RESET, &["flag 11h?"; 10], Some(LuState::Failed));
    asks(|d| d.busy = None, RESET, POLL, Some(LuState::Failed));
}

#[test]
fn a_unit_that_failed_has_no_counters_and_reads_without_entries() {
    let mut host = Host::probe(&mut Device { busy: None, ..Device::new() }, OWN);
    assert!(host.driver.counters(0).is_none());
    let e = host.driver.store_hpb_param(0, HpbParam::RequeueTimeoutMs, 1).expect_err("no HPB");
    assert_eq!(e.errno(), "ENODEV");
    let read = host.submit(0, BlockOp::Read, 0);
    assert!(matches!(cdb(&read), Cdb::Read { .. }));
}

/// The most blocks of an HPB READ: 1; with HPB 2.0 the value of the attribute, if it is valid.
#[test]
fn the_longest_hpb_read() {
    for (version_2, max_single, most) in
        [(false, Some(7), 1), (true, Some(7), 8), (true, Some(0), 1), (true, Some(255), 255), (true, None, 1)]
    {
        let mut device = Device { max_single, ..Device::new() };
        if version_2 {
            device = device.version_2();
        }
        device.units[0].logical_block_count = 4096;
        let mut host = Host::probe(&mut device, OWN);
        for (blocks, counted) in [(most, 1), (most + 1, 1)] {
            host.driver.submit(&readpath_host::BlockRequest { cookie: 0, lun: 0, op: BlockOp::Read, block: 0, blocks });
            while let Some(request) = host.sent() {
                host.good(&request, None);
            }
            // Longer requests are split, and the last part is short.
            if blocks <= 128 {
                assert_eq!(host.driver.counters(0).expect("HPB").miss_cnt, counted, "{version_2} {most} {blocks}");
            }
        }
    }
}

/// Linux counts bNumberLU units, and starts HPB when it has seen that many.
#[test]
fn the_number_of_units() {
    for (number_lu, states) in [
        (2, [Some(LuState::Present); 2]),
        (3, [Some(LuState::Init); 2]),
        (1, [Some(LuState::Present), Some(LuState::Init)]),
    ] {
        for options in [OWN, LINUX] {
            let mut device = Device::new();
            device.descriptor.number_lu = number_lu;
            device.units.push(device.units[0]);
            let host = Host::probe(&mut device, options);
            let found = [0, 1].map(|lun| host.driver.hpb(lun).map(|hpb| hpb.state()));
            let expected = if options.strict_linux { states } else { [Some(LuState::Present); 2] };
            assert_eq!(found, expected, "{number_lu} {options:?}");
        }
    }
}

#[test]
fn the_control_mode_is_the_devices() {
    for (byte, control) in [(0, Control::Host), (1, Control::Device), (2, Control::Device), (255, Control::Device)] {
        let device = || {
            let mut device = Device::new();
            device.descriptor.hpb_control = byte;
            device
        };
        for mode in [None, Some(control)] {
            let host = Host::probe(&mut device(), HpbOptions { mode, ..OWN });
            let hpb = host.driver.hpb(0).expect("HPB");
            assert_eq!(hpb.is_host_control(), control == Control::Host, "{byte}");
        }
        let other = if control == Control::Host { Control::Device } else { Control::Host };
        let host = Host::probe(&mut device(), HpbOptions { mode: Some(other), ..OWN });
        let says = host.driver.failure().expect("the wrong mode").to_string();
        let (is, not) = (control.name(), other.name());
        assert!(says.contains(&format!("configured for HPB in {is} control mode")), "{says}");
        assert!(says.ends_with(&format!("not for {not} control mode")), "{says}");
    }
}

#[test]
fn parameters_that_the_unit_does_not_take_end_the_probe() {
    let probe = |hpb_control, params| {
        let mut device = Device::new();
        device.descriptor.hpb_control = hpb_control;
        let host = Host::probe(&mut device, HpbOptions { params, ..OWN });
        host.driver.failure().map(ToString::to_string)
    };
    let more = HpbParams { activation_thld: 9, ..HpbParams::LINUX };
    let shift = HpbParams { normalization_factor: 7, ..HpbParams::LINUX };
    let loads = HpbParams { inflight_map_req: 31, ..HpbParams::LINUX };
    assert_eq!(probe(hpb::CONTROL_HOST, more), None);
    let says = |params, words: &str| {
        let text = probe(hpb::CONTROL_HOST, params).expect("a mistake");
        assert!(text.starts_with("HPB of logical unit 0: ") && text.contains(words), "{text}");
    };
    says(shift, "normalization_factor is 7; it must be 1 to 6");
    says(loads, "inflight_map_req is 31; it must be 1 to 30");
    assert!(probe(hpb::CONTROL_DEVICE, more).expect("a mistake").contains("host control mode only"));
}
