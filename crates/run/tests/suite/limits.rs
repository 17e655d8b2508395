// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of the host's memory that change in the middle of traffic, those of several units each at its time.

use readpath_device::{Control, Layout};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HpbOptions, ManagedPolicy};
use readpath_kit::Ns;
use readpath_stack::{Stack, Tags, Typed};
use readpath_testkit::{device, give_room, host, lu, one, settle, start};

#[test]
fn limits_of_several_units_come_in_order_of_time() {
    let mut config = device(2_048);
    config.lus.push(lu(2_048));
    config.hpb.as_mut().expect("HPB").control = Control::Host;
    give_room(&mut config);
    let hpb = HpbOptions { policy: Some(ManagedPolicy::Lru), ..HpbOptions::default() };
    let (mut stack, mut now) = start::<Lean, Tags, Typed>(&config, host(Some(hpb)), |s| {
        (0..2).for_each(|lun| s.precondition(lun, 0, 2_048, Layout::Sequential, 1).expect("room"));
    });
    for lun in 0..2 {
        for block in (0..2_048).step_by(64) {
            stack.submit(now, &BlockRequest { cookie: 1, lun, op: BlockOp::Read, block, blocks: 1 });
            settle(&mut stack, &mut now);
            assert!(stack.poll_done().is_some());
        }
    }
    let held = |stack: &Stack<Lean, Tags, (), Typed>, lun| stack.host.memory(lun).expect("HPB").map_bytes;
    assert_eq!((held(&stack, 0), held(&stack, 1)), (32 * 64 * 8, 32 * 64 * 8), "all maps of both");
    let least = |lun| stack.host.hpb(lun).expect("HPB").least_memory().expect("a size");
    let (first, second) = (least(0), least(1));
    let begun = now;
    let at = |ms| begun + Ns::from_ms(ms);
    // The limit that is scheduled first takes effect last.
    let (early, late) = (at(10), at(1_000));
    stack.host.schedule_limits(0, &[(late, first)]).expect("room for the tables");
    stack.host.schedule_limits(1, &[(early, second)]).expect("room for the tables");
    // The deadlines of an idle device do not include timers of the host.
    stack.advance(at(20));
    assert_eq!((held(&stack, 0), held(&stack, 1)), (32 * 64 * 8, 0), "the second unit alone has given its memory back");
    now = late;
    stack.advance(now);
    assert_eq!(held(&stack, 0), 0);
    one(&mut stack, &mut now, BlockOp::Read, 0, 1);
    assert_eq!(held(&stack, 0), 0, "there is no room for a map");
    assert_eq!(stack.payload.wrong, 0);
}
