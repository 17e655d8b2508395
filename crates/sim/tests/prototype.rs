// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB (HotStorage 2017), host and device together: hits, updates, and that no read ever returns old data.

mod common;

use common::{DELAYS, HPB};
use readpath_device::{DeviceConfig, GroupUpdate, HpbConfig, Layout, PrototypeConfig, Verification};
use readpath_flash::Lean;
use readpath_host::{BlockOp, HpbOptions};
use readpath_kit::Ns;
use readpath_stack::{Encoded, Stack, Tags, Typed, Wire};

const BLOCKS: u32 = 2048;
const GROUP: u32 = 256;
const BOTH: [GroupUpdate; 2] = [GroupUpdate::Host, GroupUpdate::Device];

fn device(update: GroupUpdate) -> DeviceConfig {
    let mut config = common::device(BLOCKS);
    let prototype = PrototypeConfig { update, group_entries: GROUP, listed_changes: 128 };
    config.hpb = Some(HpbConfig { prototype: Some(prototype), ..HPB });
    config
}

fn options() -> HpbOptions {
    HpbOptions { prototype: Some(GroupUpdate::Host), ..HpbOptions::default() }
}

fn stack<W: Wire + Default>(config: &DeviceConfig, layout: Layout) -> (Stack<Lean, Tags, (), W>, Ns) {
    common::start(config, common::host(Some(options())), |stack| {
        stack.precondition(0, 0, BLOCKS, layout, 3).expect("room");
    })
}

#[test]
fn one_hit() {
    for update in BOTH {
        let (mut s, mut now) = stack::<Encoded>(&device(update), Layout::Random);
        for _ in 0..3 {
            common::one(&mut s, &mut now, BlockOp::Read, 5, 1);
        }
        common::one(&mut s, &mut now, BlockOp::Read, 6, 1);
        let (d, h) = (*s.device.stats(), *s.host.counters(0).expect("groups"));
        assert_eq!((d.hpb_reads, d.hpb_hits, d.read_buffers, h.hit_cnt, h.miss_cnt), (2, 2, 1, 2, 2), "{d:?}");
        assert_eq!(s.payload.wrong, 0);
    }
}
