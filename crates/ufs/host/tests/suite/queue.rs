// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits in the driver, and how much of it is under way.

use crate::common::{Device, Host};
use readpath_host::{BlockOp, BlockRequest, HpbOptions};

/// Linux `ufshcd_lu_init`: the length of the device's queue bounds the commands under way, not only the controller's
/// slots.
#[test]
fn no_more_commands_are_under_way_than_the_device_takes() {
    for (depth, expected) in [(0, 31), (1, 1), (7, 7), (32, 31), (200, 31)] {
        let mut device = Device::new();
        device.descriptor.queue_depth = depth;
        let mut host = Host::probe(&mut device, HpbOptions::default());
        let sent: Vec<_> = (0..40).filter_map(|i| host.submit_blocks(0, BlockOp::Read, i, 1)).collect();
        assert_eq!(sent.len(), expected, "bQueueDepth {depth}");
        host.good(&sent[0], None);
        assert!(host.done().is_some() && host.sent().is_some() && host.sent().is_none());
    }
}

/// More than 16 bits could count.
#[test]
fn many_requests_in_parts_wait_at_once() {
    const REQUESTS: u32 = 70_000;
    let mut host = Host::probe(&mut Device::new(), HpbOptions::default());
    for cookie in 0..REQUESTS {
        host.driver.submit(&BlockRequest { cookie, lun: 0, op: BlockOp::Read, block: 0, blocks: 130 });
    }
    let (mut commands, mut ended) = (0, vec![0; REQUESTS as usize]);
    while let Some(request) = host.sent() {
        commands += 1;
        host.good(&request, None);
        while let Some(done) = host.done() {
            assert_eq!(done.error, None);
            ended[done.cookie as usize] += 1;
        }
    }
    assert_eq!(commands, 2 * REQUESTS);
    assert!(ended.iter().all(|&n| n == 1) && host.driver.is_idle());
}
