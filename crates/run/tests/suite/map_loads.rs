// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the host has more maps to load than tags, the next load goes out with the next tag that is free, not later.

use readpath_device::Layout;
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions};
use readpath_kit::Ns;
use readpath_proto::typed::{
    Cdb, Command, HpbNotification, Reply, ReplyBody, Request, RequestBody, Response, Status, SubRegion,
};
use readpath_stack::NoData;
use readpath_testkit::{Meddled, Meddler, device, host, start_on};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Seen {
    loads: usize,
    inject: Option<HpbNotification>,
}

#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Seen>>);

impl Meddler for Spy {
    fn request(&mut self, request: &mut Request) {
        if let RequestBody::Command(Command { cdb: Cdb::HpbReadBuffer { .. }, .. }) = request.body {
            self.0.lock().unwrap().loads += 1;
        }
    }

    fn reply(&mut self, reply: &mut Reply) {
        if let ReplyBody::Response(Response { status: Status::Good, hpb, .. }) = &mut reply.body {
            *hpb = self.0.lock().unwrap().inject.take();
        }
    }
}

#[test]
fn a_load_without_a_tag_goes_out_with_the_next_reply() {
    let spy = Spy::default();
    let config = device(1_000);
    // Two tags for requests, the third is kept for queries.
    let host = HostConfig { slots: 3, ..host(Some(HpbOptions::default())) };
    let wire = Meddled::new(spy.clone(), false);
    let (mut stack, mut now) = start_on::<Lean, NoData, _>(&config, host, wire, |stack| {
        stack.precondition(0, 0, 1_000, Layout::Sequential, 1).expect("room");
    });
    let active = [SubRegion { region: 0, index: 0 }, SubRegion { region: 0, index: 1 }];
    let operation = HpbNotification::REGION_UPDATE;
    let notification = HpbNotification { operation, active_count: 2, active, ..HpbNotification::default() };
    spy.0.lock().unwrap().inject = Some(notification);
    for cookie in 0..2 {
        stack.submit(now, &BlockRequest { cookie, lun: 0, op: BlockOp::Read, block: 500 + 4 * cookie, blocks: 1 });
    }
    for ended in 1..=2 {
        while stack.poll_done().is_none() {
            now = stack.next_deadline();
            assert_ne!(now, Ns::NEVER, "every request ends");
            stack.advance(now);
        }
        let loads = spy.0.lock().unwrap().loads;
        assert_eq!(loads, ended, "each reply frees a tag, and a load takes it");
        assert_eq!(stack.host.counters(0).expect("an HPB unit").map_error_cnt, 0);
    }
}
