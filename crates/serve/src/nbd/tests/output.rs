// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output queue: what is offered when only part was sent, and which buffers come back.

use super::super::output::SPARE_BYTES;
use super::*;

#[test]
fn any_part_may_be_sent() {
    let mut random = Random(5);
    for limit in [1, 7, 100, 5000] {
        let mut session = transmitting(export(), true);
        let mut twin = transmitting(export(), true);
        let (mut got, mut expected) = (Vec::new(), Vec::new());
        for handle in 0..400 {
            for session in [&mut session, &mut twin] {
                match handle % 5 {
                    0 => session.reply_data(handle, 0, Vec::new()),
                    1 | 2 => session.reply_data(handle, handle, pattern(handle as usize * 3)),
                    3 => session.reply_done(handle),
                    _ => session.reply_error(handle, Errno::Io, "text"),
                }
            }
            expected.extend(sent(&mut twin));
            let count = random.below(limit).min(session.output_bytes());
            got.extend(session.output().flatten().take(count));
            session.sent(count);
        }
        got.extend(sent(&mut session));
        assert!(got == expected);
    }
}

#[test]
fn data_are_not_copied() {
    let mut session = transmitting(export(), false);
    let data = pattern(4096);
    let place = data.as_ptr();
    session.reply_done(1);
    session.reply_data(2, 0, data);
    session.reply_done(3);
    session.reply_done(4);
    let slices: Vec<&[u8]> = session.output().collect();
    assert_eq!(slices.iter().map(|slice| slice.len()).collect::<Vec<_>>(), [32, 4096, 32]);
    assert_eq!(slices[1].as_ptr(), place);
    session.sent(32 + 4095);
    assert_eq!(session.take_spare_buffer(), None);
    session.sent(1);
    assert_eq!(session.take_spare_buffer().map(|buffer| buffer.as_ptr()), Some(place));
}

#[test]
fn headers_that_were_sent_are_dropped_while_others_wait() {
    let mut session = transmitting(export(), false);
    for handle in 0..100_000 {
        session.reply_done(handle);
        session.reply_done(handle);
        session.sent(if session.output_bytes() > 1000 { 32 } else { 31 });
        assert!(session.has_output());
    }
    assert!(session.output.held() < 100_000, "{}", session.output.held());
}

#[test]
fn more_than_waits_cannot_be_sent() {
    let mut session = session();
    session.sent(usize::MAX);
    assert_eq!(session.output_bytes(), 0);
    session.reply_done(1);
    assert_eq!(session.output_bytes(), 16);
}

#[test]
fn spare_buffers_are_limited() {
    let mut session = session();
    session.give_buffer(Vec::new());
    assert_eq!(session.take_spare_buffer(), None);
    for bytes in [1, 1 << 20, 1 << 20, SPARE_BYTES + 1] {
        for _ in 0..1000 {
            session.give_buffer(Vec::with_capacity(bytes));
        }
        let kept: Vec<Vec<u8>> = std::iter::from_fn(|| session.take_spare_buffer()).collect();
        let capacity: usize = kept.iter().map(Vec::capacity).sum();
        assert!(kept.len() <= 256 && capacity <= SPARE_BYTES);
        assert_eq!(kept.is_empty(), bytes > SPARE_BYTES);
    }
}

#[test]
fn payloads_go_into_spare_buffers() {
    for bytes in [4096, 65_536] {
        let mut session = transmitting(export(), false);
        session.give_buffer(vec![0xEE; 70_000]);
        let found = one_request(&mut session, &write(0, 1, 0, &pattern(bytes)));
        let Command::Write { data, .. } = found.command else { panic!("not a write") };
        assert!(data == pattern(bytes));
        assert_eq!(data.capacity(), 70_000);
    }
}
