// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of more than one block with HPB 2.0, as the driver sends them: with the entry of the first block (Linux 6.1),
//! with a pre-request before them (Linux 5.15-rc), or with all entries in an extra header segment.

use crate::common::{Device, Host, cdb};
use readpath_host::{BlockOp, HpbOptions, HpbParams, LongReads};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, HpbEntry, ReplyBody, Request, Response, Sense};

/// A host that holds the first 64 blocks of unit 0. Entry n has n in every byte; one command covers 8 blocks.
fn host(long_reads: LongReads, requeue_timeout_ms: u32) -> Host {
    host_of(HpbOptions { long_reads, ..HpbOptions::default() }, requeue_timeout_ms)
}

fn host_of(options: HpbOptions, requeue_timeout_ms: u32) -> Host {
    // More than a command has blocks.
    let mut device = Device { ehs_entries: Some(256), ..Device::new().version_2() };
    let params = HpbParams { requeue_timeout_ms, ..HpbParams::LINUX };
    let mut host = Host::probe(&mut device, HpbOptions { params, ..options });
    host.load();
    // Again, with entries that differ.
    let read = host.submit(0, BlockOp::Read, 0);
    let n = readpath_proto::typed::HpbNotification { operation: 1, active_count: 1, ..Default::default() };
    host.good(&read, Some(n));
    let load = host.sent().expect("a load");
    let bytes: Vec<u8> = (0..64u8).flat_map(|n| [n; 8]).collect();
    host.reply(&load, ReplyBody::Response(Response::GOOD), &bytes);
    host.done();
    host
}

fn list(blocks: std::ops::Range<u8>) -> Vec<u8> {
    blocks.flat_map(|n| [n; 8]).collect()
}

/// The commands that a read becomes.
fn read(host: &mut Host, block: u32, blocks: u32) -> Vec<Request> {
    let first = host.submit_blocks(0, BlockOp::Read, block, blocks);
    first.into_iter().chain(std::iter::from_fn(|| host.sent())).collect()
}

fn cdbs(requests: &[Request]) -> Vec<Cdb> {
    requests.iter().map(cdb).collect()
}

fn hpb(lba: u32, blocks: u8, read_id: u8) -> Cdb {
    Cdb::HpbRead { lba, blocks, entry: HpbEntry([lba as u8; 8]), flags: 0, read_id }
}

fn plain(requests: &[Request]) -> bool {
    matches!(cdbs(requests)[..], [Cdb::Read { .. }])
}

fn counters(host: &Host) -> [u64; 3] {
    let c = host.driver.counters(0).expect("an HPB unit");
    [c.hit_cnt, c.miss_cnt, c.pre_req_cnt]
}

#[test]
fn the_entry_of_the_first_block_up_to_the_limit() {
    let mut h = host(LongReads::First, 0);
    let before = counters(&h);
    for (block, blocks) in [(1, 1), (2, 8), (56, 8)] {
        let sent = read(&mut h, block, blocks);
        assert_eq!(cdbs(&sent), [hpb(block, blocks as u8, 0)]);
        assert!(h.driver.data_out(sent[0].tag).is_empty());
    }
    assert!(plain(&read(&mut h, 0, 9)), "too long");
    assert_eq!(counters(&h), [before[0] + 3, before[1], 0], "which is neither hit nor miss");
    assert!(plain(&read(&mut h, 60, 8)), "the next sub-region is not held");
    h.submit(0, BlockOp::Write, 12);
    assert!(plain(&read(&mut h, 10, 8)), "one of them is dirty");
    assert_eq!(counters(&h), [before[0] + 3, before[1] + 2, 0]);
}

#[test]
fn a_pre_request_goes_before_a_longer_read() {
    let mut h = host(LongReads::PreRequest, 0);
    assert_eq!(cdbs(&read(&mut h, 2, 8)), [hpb(2, 8, 0)], "short enough without");
    let before = counters(&h);
    let sent = read(&mut h, 3, 9);
    assert_eq!(cdbs(&sent), [Cdb::HpbPreRequest { lba: 3, read_id: 1, list_bytes: 72 }, hpb(3, 9, 1)]);
    assert_eq!(h.driver.data_out(sent[0].tag), list(3..12));
    assert!(h.driver.data_out(sent[1].tag).is_empty() && sent[0].tag != sent[1].tag);
    assert_eq!(h.driver.carried(sent[0].tag), None);
    assert_eq!(counters(&h), [before[0] + 1, before[1], 1]);
    // The pre-request and the read end independently, in any order.
    h.good(&sent[1], None);
    assert!(h.done().is_some_and(|d| d.error.is_none()));
    h.check(&sent[0], Sense::INVALID_FIELD);
    assert!(h.done().is_none());
    // READ IDs go from 1 to 126.
    let mut ids: Vec<u8> = Vec::new();
    for _ in 0..130 {
        let sent = read(&mut h, 0, 20);
        let [Cdb::HpbPreRequest { read_id, .. }, Cdb::HpbRead { read_id: same, .. }] = cdbs(&sent)[..] else {
            panic!("{sent:?}")
        };
        assert_eq!(read_id, same);
        ids.push(read_id);
        sent.iter().for_each(|request| h.good(request, None));
    }
    assert_eq!((ids[0], ids[124], ids[125], ids[129]), (2, 126, 1, 5));
    assert!(std::iter::from_fn(|| h.done()).count() == 130 && h.driver.is_ready());
    h.submit(0, BlockOp::Write, 12);
    assert!(plain(&read(&mut h, 3, 20)), "one of them is dirty");
}

/// 31 tags, so at most 15 pre-requests at a time, and none without a second tag.
#[test]
fn without_a_tag_for_it_a_read_goes_without_entries() {
    let mut h = host(LongReads::PreRequest, 0);
    let before = counters(&h);
    let mut sent: Vec<Request> = Vec::new();
    for _ in 0..15 {
        let two = read(&mut h, 0, 9);
        assert_eq!(two.len(), 2);
        sent.extend(two);
    }
    assert!(plain(&read(&mut h, 0, 9)), "30 tags are taken");
    assert_eq!(counters(&h), [before[0] + 15, before[1] + 1, 15]);
    // The reads' tags become free, but half of the queue is in pre-requests.
    sent.iter().skip(1).step_by(2).for_each(|request| h.good(request, None));
    assert!(plain(&read(&mut h, 0, 9)));
    h.good(&sent[0], None);
    assert_eq!(read(&mut h, 0, 9).len(), 2);
    assert!(plain(&read(&mut h, 0, 9)));
}

#[test]
fn a_read_waits_for_its_pre_request_for_requeue_timeout_ms() {
    let mut h = host(LongReads::PreRequest, 7);
    let before = counters(&h);
    let mut sent: Vec<Request> = (0..15).flat_map(|_| read(&mut h, 0, 9)).collect();
    assert_eq!(read(&mut h, 20, 9), [], "it waits");
    let since = h.now;
    assert_eq!(
        (h.driver.requeue_deadline(), h.driver.next_deadline()),
        (since + Ns::from_ms(7), since + Ns::from_ms(7))
    );
    assert_eq!(counters(&h), [before[0] + 15, before[1], 15]);
    // A pre-request ends: another takes its tag.
    h.good(&sent.remove(0), None);
    let two: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
    assert_eq!(cdbs(&two), [Cdb::HpbPreRequest { lba: 20, read_id: 16, list_bytes: 72 }, hpb(20, 9, 16)]);
    assert_eq!(h.driver.next_deadline(), Ns::NEVER);
    // A read ends, and another takes its tag; no further command ends before the timeout: READ.
    h.good(&sent.remove(0), None);
    assert_eq!(read(&mut h, 30, 9), []);
    h.now += Ns::from_ms(7) - Ns(1);
    h.driver.advance(h.now);
    assert_eq!(h.sent(), None);
    h.now += Ns(1);
    h.driver.advance(h.now);
    let late: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
    assert!(plain(&late), "{late:?}");
    assert_eq!(counters(&h), [before[0] + 16, before[1] + 1, 16]);
    assert_eq!(h.driver.next_deadline(), Ns::NEVER);
    // A reset of the controller forgets waiting reads; their requests are started again.
    h.good(&late[0], None);
    assert_eq!(read(&mut h, 40, 9), []);
    h.driver.reset(h.now);
    assert_eq!(h.driver.next_deadline(), Ns::NEVER);
    let again: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
    assert_eq!(again.len(), 30, "16 reads: 15 pairs, and one that waits");
    assert_eq!(h.driver.requeue_deadline(), h.now + Ns::from_ms(7));
}

#[test]
fn all_entries_in_the_header() {
    let mut h = host(LongReads::Ehs, 0);
    let sent = read(&mut h, 5, 1);
    assert_eq!((cdbs(&sent), h.driver.data_out(sent[0].tag)), (vec![hpb(5, 1, 0)], &[][..]), "one is in the command");
    for (block, blocks) in [(5, 2), (0, 40)] {
        let sent = read(&mut h, block, blocks);
        assert_eq!(cdbs(&sent), [hpb(block, blocks as u8, 0)]);
        assert_eq!(h.driver.data_out(sent[0].tag), list(block as u8..(block + blocks) as u8));
    }
    h.submit(0, BlockOp::Write, 12);
    let sent = read(&mut h, 10, 4);
    assert!(plain(&sent) && h.driver.data_out(sent[0].tag).is_empty());
}

/// A read that is sent again is a new one: another READ ID, and present entries.
#[test]
fn sent_again() {
    for (long_reads, first, again) in
        [(LongReads::PreRequest, 2, (2, 2)), (LongReads::Ehs, 1, (1, 0)), (LongReads::First, 1, (1, 0))]
    {
        let mut h = host(long_reads, 0);
        let blocks = if long_reads == LongReads::First { 8 } else { 20 };
        let sent = read(&mut h, 0, blocks);
        assert_eq!(sent.len(), first);
        h.check(sent.last().expect("the read"), Sense { key: 6, asc: 0x29, ascq: 0 });
        let resent: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
        let Some(Cdb::HpbRead { read_id, .. }) = resent.last().map(cdb) else { panic!("{resent:?}") };
        assert_eq!((resent.len(), read_id), again, "{long_reads:?}");
        // A device that refuses it gets a READ.
        let last = *resent.last().expect("the read");
        h.check(&last, Sense::INVALID_FIELD);
        let resent: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
        assert!(plain(&resent), "{resent:?}");
        assert!(h.driver.data_out(resent[0].tag).is_empty());
    }
}

/// As Linux: the unchanged command, although one of its blocks was written meanwhile.
#[test]
fn sent_again_by_a_host_that_does_as_linux() {
    let mut h =
        host_of(HpbOptions { long_reads: LongReads::PreRequest, strict_linux: true, ..HpbOptions::default() }, 0);
    let before = counters(&h);
    let sent = read(&mut h, 0, 20);
    assert_eq!(sent.len(), 2);
    h.submit(0, BlockOp::Write, 12);
    h.check(&sent[1], Sense { key: 6, asc: 0x29, ascq: 0 });
    let again: Vec<Request> = std::iter::from_fn(|| h.sent()).collect();
    assert_eq!(cdbs(&again), [hpb(0, 20, 0)]);
    assert_eq!(counters(&h), [before[0] + 1, before[1] + 1, 1]);
}
