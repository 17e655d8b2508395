// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that a device tells newest from older data after more writes than the span of numbers that a simulation keeps
//! for spare areas (`Spares::SPAN` of the device), even if one block has been in its write buffer all the time.

use readpath_flash::Lean;
use readpath_host::BlockOp;
use readpath_kit::Ns;
use readpath_stack::{Tags, Typed};
use readpath_testkit::{device, host, one, start};

#[test]
fn a_block_in_the_buffer_outlives_the_span_of_numbers() {
    let (mut stack, mut now) = start::<Lean, Tags, Typed>(&device(4096), host(None), |_| ());
    let (patient, busy) = (17, 2000);
    one(&mut stack, &mut now, BlockOp::Write, patient, 1);
    let checkpoints = stack.device.stats().checkpoints;
    for _ in 0..(1 << 24) + 100_000 {
        one(&mut stack, &mut now, BlockOp::Write, busy, 1);
    }
    // Nothing but the span asks for them.
    assert!(stack.device.stats().checkpoints > checkpoints, "{:?}", stack.device.stats());
    one(&mut stack, &mut now, BlockOp::Flush, 0, 0);
    stack.device.check_consistency().expect("all counts are right");
    stack.power_cycle(now, now + Ns(1));
    now = stack.start(now + Ns(1)).expect("host and device find each other");
    for block in [patient, busy] {
        one(&mut stack, &mut now, BlockOp::Read, block, 1);
    }
    assert_eq!(stack.payload.wrong, 0);
}
