// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever a client sends: no panic, and no more memory than the session promises.

use super::super::output::SPARE_BYTES;
use super::chunking::{answer, conversation};
use super::*;

/// Plays `bytes` in parts of up to `limit`; every request is answered, and the client takes every reply.
fn play(bytes: &[u8], limit: usize, random: &mut Random) {
    let mut session = session();
    let bound = input::INPUT_BYTES + export().max_payload as usize + SPARE_BYTES;
    let mut rest = bytes;
    let mut over = false;
    while !rest.is_empty() {
        let space = session.space();
        let count = space.len().min(rest.len()).min(1 + random.below(limit));
        assert!(count > 0);
        space[..count].copy_from_slice(&rest[..count]);
        session.filled(count);
        rest = &rest[count..];
        let before = session.output_bytes();
        while let Some(event) = session.poll() {
            assert!(!over, "{event:?} after the end");
            match event {
                Event::Closed(closed) => {
                    over = true;
                    assert!(!closed.to_string().is_empty());
                }
                Event::Request(request) => {
                    let end = request.offset.checked_add(request.bytes.into()).expect("checked");
                    assert!(request.command == Command::Flush || (request.bytes > 0 && end <= export().bytes));
                    let own = session.output_bytes();
                    answer(&mut session, &request);
                    assert!(session.output_bytes() > own);
                    session.sent(session.output_bytes());
                    if let Command::Write { data, .. } = request.command {
                        assert_eq!(data.len(), request.bytes as usize);
                        session.give_buffer(data);
                    }
                }
            }
        }
        // Refusals are short: the longest text is about four times the request that it answers.
        assert!(session.output_bytes() <= before + 4 * input::INPUT_BYTES);
        assert!(session.held() <= bound, "{} of {bound} bytes", session.held());
        session.sent(random.below(1 + session.output_bytes()));
    }
}

#[test]
fn random_bytes_are_harmless() {
    let mut random = Random(11);
    for round in 0..2000 {
        // Most would end at the first magic number: begin with ever more of a handshake.
        let mut bytes = greeting(true);
        bytes.truncate(round % (bytes.len() + 1));
        bytes.extend((0..random.below(3000)).map(|_| random.next() as u8));
        play(&bytes, 500, &mut random);
    }
}

#[test]
fn random_headers_are_harmless() {
    let mut random = Random(12);
    for structured in [false, true] {
        for _ in 0..300 {
            let mut bytes = greeting(structured);
            for _ in 0..200 {
                let (flags, kind) = (1 << random.below(16), random.below(9) as u16);
                let offset = random.next() << random.below(17) >> random.below(60);
                let length = (random.next() as u32) >> random.below(32);
                bytes.extend(request(flags & random.next() as u16, kind, random.next(), offset, length));
                if kind == 1 && length < 100_000 {
                    bytes.resize(bytes.len() + length as usize, 0x25);
                }
            }
            play(&bytes, 300_000, &mut random);
        }
    }
}

#[test]
fn random_options_are_harmless() {
    let mut random = Random(13);
    for _ in 0..500 {
        let mut bytes = client_flags(random.below(4) as u32);
        for _ in 0..random.below(60) {
            let mut data = match random.below(3) {
                0 => wanted(["", "disk", "other"][random.below(3)], &[1, 2, 3]),
                1 => queries(["", "disk"][random.below(2)], &["base:allocation", "base:", "x"][random.below(4)..]),
                _ => vec![0; random.below(300) * random.below(200)],
            };
            if random.below(2) == 0 && !data.is_empty() {
                let at = random.below(data.len());
                data[at] ^= 1 << random.below(8);
            }
            bytes.extend(option(random.below(12) as u32, &data));
        }
        play(&bytes, 300_000, &mut random);
    }
}

#[test]
fn mutated_conversations_are_harmless() {
    let mut random = Random(14);
    for round in 0..300 {
        let mut bytes = conversation(round % 2 == 0);
        for _ in 0..1 + random.below(20) {
            // Mostly in the handshake and the first requests, where the headers are.
            let range = if random.below(3) == 0 { bytes.len() } else { 600 };
            let at = if random.below(2) == 0 { random.below(range) } else { 20_300 + random.below(600) };
            bytes[at] = if random.below(2) == 0 { bytes[at] ^ 1 << random.below(8) } else { random.next() as u8 };
        }
        play(&bytes, 300_000, &mut random);
    }
}

#[test]
fn conversations_may_be_cut_anywhere() {
    let mut random = Random(15);
    for structured in [false, true] {
        let bytes = conversation(structured);
        let start = 20_000 - 200;
        for end in (0..400).chain(start..start + 1500).chain((start..bytes.len()).step_by(2999)) {
            play(&bytes[..end], 30_000, &mut random);
        }
    }
}

#[test]
fn announcements_alone_hold_one_payload() {
    let export = Export { max_payload: u32::MAX, bytes: u64::MAX, ..export() };
    let mut session = transmitting(export, false);
    assert_eq!(receive(&mut session, &request(0, 1, 7, 0, 256 << 20)), []);
    assert_eq!(session.space().len(), 256 << 20);
    assert!(session.held() <= input::INPUT_BYTES + (256 << 20));
    session.filled(usize::MAX);
    assert!(session.space().is_empty());
    assert!(matches!(session.poll(), Some(Event::Request(request)) if request.bytes == 256 << 20));
}
