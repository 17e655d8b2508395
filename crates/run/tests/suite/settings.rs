// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes and flags that a host has written: which of them outlive resets and the power, and which can be written
//! only once.

use readpath_device::{Hpb2Config, HpbConfig, MediaOp, Own};
use readpath_kit::Ns;
use readpath_proto::query::{attribute, flag, opcode, result};
use readpath_proto::typed::Cdb;
use readpath_testkit::{Bare, HPB, device};

fn bare() -> Bare {
    let mut config = device(1000);
    let v2 = Hpb2Config { enabled: true, single_blocks: 8, pre_requests: 2, entries_in_ehs: true };
    config.hpb = Some(HpbConfig { v2: Some(v2), ..HPB });
    Bare::new(&config)
}

fn ask(b: &mut Bare, opcode: u8, idn: u8, value: u32) -> (u8, u32) {
    let (result, value, _) = b.query(opcode, idn, 0, value);
    (result, value)
}

const fn ok(value: u32) -> (u8, u32) {
    (result::SUCCESS, value)
}

const REFUSED: (u8, u32) = (result::ALREADY_WRITTEN, 0);

/// IDN, the value of a new device, what a host writes, and whether that outlives resets and the power.
const ATTRIBUTES: [(u8, u32, u32, bool); 9] = [
    (attribute::BOOT_LUN_EN, 0, 1, true),
    (attribute::ACTIVE_ICC_LEVEL, 0, 5, false),
    (attribute::OUT_OF_ORDER_DATA_EN, 0, 1, true),
    (attribute::MAX_DATA_IN_SIZE, 8, 4, true),
    (attribute::MAX_DATA_OUT_SIZE, 8, 2, true),
    (attribute::REF_CLK_FREQ, 0, 3, true),
    (attribute::CONFIG_DESCR_LOCK, 0, 1, true),
    (attribute::MAX_NUM_OF_RTT, 2, 1, true),
    (attribute::EXCEPTION_EVENT_CONTROL, 0, 4, false),
];

#[test]
fn what_is_persistent_outlives_resets_and_the_power() {
    for loses_power in [false, true] {
        let mut b = bare();
        for (idn, new, written, _) in ATTRIBUTES {
            assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, idn, 0), ok(new), "{idn:#x}");
            assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, idn, written), ok(written), "{idn:#x}");
        }
        assert_eq!(ask(&mut b, opcode::CLEAR_FLAG, flag::BACKGROUND_OPS_EN, 0), ok(0));
        assert_eq!(ask(&mut b, opcode::CLEAR_FLAG, flag::HPB_EN, 0), ok(0));
        assert_eq!(ask(&mut b, opcode::SET_FLAG, flag::PERMANENT_WP_EN, 0), ok(1));
        for _ in 0..2 {
            if loses_power {
                b.device.power_cut(b.now);
                b.now += Ns::from_ms(1);
                b.now = b.device.recover(b.now).ready_at;
            } else {
                b.device.hardware_reset(b.now);
            }
            b.command(Cdb::TestUnitReady, 0);
            for (idn, new, written, is_kept) in ATTRIBUTES {
                let value = if is_kept { written } else { new };
                assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, idn, 0), ok(value), "{idn:#x}");
            }
            assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::BACKGROUND_OPS_EN, 0), ok(1));
            assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::HPB_EN, 0), ok(0));
            assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::PERMANENT_WP_EN, 0), ok(1));
            assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::DISABLE_FW_UPDATE, 0), ok(0));
        }
    }
}

#[test]
fn what_is_written_once_is_not_written_again() {
    let mut b = bare();
    // The first accepted write counts, with any value; a refused one does not.
    let lock = attribute::CONFIG_DESCR_LOCK;
    assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, lock, 0x100).0, result::INVALID_VALUE);
    assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, lock, 0), ok(0));
    let other = attribute::OUT_OF_ORDER_DATA_EN;
    assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, other, 1), ok(1));
    // A flag can be set once, in either way.
    assert_eq!(ask(&mut b, opcode::CLEAR_FLAG, flag::PERMANENT_WP_EN, 0), ok(0));
    assert_eq!(ask(&mut b, opcode::TOGGLE_FLAG, flag::PERMANENT_WP_EN, 0), ok(1));
    assert_eq!(ask(&mut b, opcode::SET_FLAG, flag::DISABLE_FW_UPDATE, 0), ok(1));
    for _ in 0..2 {
        for idn in [lock, other] {
            for value in [0, 1] {
                assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, idn, value), REFUSED, "{idn:#x}");
            }
        }
        for idn in [flag::PERMANENT_WP_EN, flag::DISABLE_FW_UPDATE] {
            for op in [opcode::SET_FLAG, opcode::CLEAR_FLAG, opcode::TOGGLE_FLAG] {
                assert_eq!(ask(&mut b, op, idn, 0), REFUSED, "{idn:#x} by {op}");
            }
            assert_eq!(ask(&mut b, opcode::READ_FLAG, idn, 0), ok(1));
        }
        assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, lock, 0), ok(0));
        assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, other, 0), ok(1));
        b.power_cycle();
    }
    // Attributes that are not write-once can be written again.
    for value in [1, 2, 2] {
        assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, value), ok(value));
    }
    assert_eq!(ask(&mut b, opcode::SET_FLAG, flag::BUSY_RTC, 0).0, result::NOT_WRITABLE);
    assert_eq!(ask(&mut b, opcode::SET_FLAG, flag::POWER_ON_WP_EN, 0).0, result::NOT_WRITABLE);
}

/// A device that is kept tells before it answers, and only what has changed.
#[test]
fn a_change_is_told_once_and_before_its_answer() {
    let mut b = bare();
    b.device.keep_in_flash();
    let mut told = |opcode, idn, value| {
        ask(&mut b, opcode, idn, value);
        let own = b.media.iter().filter(|op| **op == MediaOp::Own).count();
        let told: Vec<Own> = std::iter::from_fn(|| b.device.take_own()).collect();
        assert_eq!(own, told.len());
        match told[..] {
            [] => None,
            [Own::Settings(settings)] => Some(settings),
            ref other => panic!("{other:?}"),
        }
    };
    let first = told(opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, 1).expect("the attribute");
    assert_eq!(told(opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, 1), None, "the same again");
    assert_eq!(told(opcode::READ_ATTRIBUTE, attribute::BOOT_LUN_EN, 0), None);
    assert_eq!(told(opcode::WRITE_ATTRIBUTE, attribute::EXCEPTION_EVENT_CONTROL, 4), None, "it is volatile");
    assert_eq!(told(opcode::CLEAR_FLAG, flag::BACKGROUND_OPS_EN, 0), None, "it is volatile");
    assert_eq!(told(opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, 0x1_0000), None, "it is refused");
    let second = told(opcode::SET_FLAG, flag::PERMANENT_WP_EN, 0).expect("the flag");
    assert_ne!(first, second);
    assert_eq!(told(opcode::SET_FLAG, flag::PERMANENT_WP_EN, 0), None, "it is refused");
}

#[test]
fn a_device_with_settings_is_not_the_beginning_of_a_medium() {
    let mut b = bare();
    assert!(b.device.seal(|_| {}).is_ok());
    ask(&mut b, opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, 1);
    assert!(b.device.seal(|_| {}).unwrap_err().contains("attributes"));
}
