// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the bytes of a conversation are cut into reads and writes makes no difference.

use super::*;

/// A valid conversation with every command, refused ones too.
pub(super) fn conversation(structured: bool) -> Vec<u8> {
    let mut bytes = client_flags(3);
    bytes.extend(option(5, &[]));
    bytes.extend(option(3, &[]));
    bytes.extend(option(6, &wanted("disk", &[1, 2])));
    bytes.extend(option(99, &vec![7; 20_000]));
    bytes.extend(option(9, &queries("", &[])));
    bytes.extend(&greeting(structured)[4..]);
    for round in 0..6 {
        let handle = round * 100;
        for kind in [0, 3, 4, 5, 6, 7, 8] {
            bytes.extend(request(0, kind, handle + u64::from(kind), round * 512, 512));
        }
        for (at, size) in [1, 4096, 8192, 8193, 65536, 65537].into_iter().enumerate() {
            bytes.extend(write(1, handle + 10 + at as u64, round * 4096, &pattern(size)));
        }
        bytes.extend(write(0, handle + 20, 0x10_0000, &pattern(30_000)));
        bytes.extend(request(0, 0, handle + 21, 0, 65536));
    }
    bytes.extend(request(0, 2, 0, 0, 0));
    bytes
}

/// Answers as a server does.
pub(super) fn answer(session: &mut Session, request: &Request) {
    let handle = request.handle;
    match &request.command {
        Command::Read => {
            let mut data = session.take_spare_buffer().unwrap_or_default();
            data.clear();
            data.resize(request.bytes as usize, request.offset as u8);
            session.reply_data(handle, request.offset, data);
        }
        Command::BlockStatus { .. } => {
            session.reply_status(handle, &[Extent { bytes: request.bytes, hole: true, zero: true }]);
        }
        Command::Cache => session.reply_error(handle, Errno::Io, "no cache"),
        _ => session.reply_done(handle),
    }
}

/// Events and output of `bytes`, read and sent in parts of the lengths that `length` gives.
fn talk(bytes: &[u8], mut length: impl FnMut() -> usize) -> (Vec<Event>, Vec<u8>) {
    let mut session = session();
    let (mut events, mut output) = (Vec::new(), Vec::new());
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = session.space();
        let count = space.len().min(rest.len()).min(length());
        space[..count].copy_from_slice(&rest[..count]);
        session.filled(count);
        rest = &rest[count..];
        while let Some(event) = session.poll() {
            if let Event::Request(request) = &event {
                answer(&mut session, request);
            }
            events.push(event);
            let count = length().min(session.output_bytes());
            output.extend(session.output().flatten().take(count));
            session.sent(count);
        }
    }
    output.extend(sent(&mut session));
    (events, output)
}

#[test]
fn parts_of_any_length_give_the_same() {
    for structured in [false, true] {
        let bytes = conversation(structured);
        let (events, output) = talk(&bytes, || usize::MAX);
        assert_eq!(events.last(), Some(&Event::Closed(Closed::Disconnect)));
        assert_eq!(events.len(), 6 * (if structured { 6 } else { 5 } + 5 + 1) + 1);
        let mut random = Random(1);
        for limit in [1, 2, 3, 17, 29, 100, 1000, 5000, 9000, 70_000, 200_000] {
            let other = talk(&bytes, || 1 + random.below(limit));
            assert!(other.0 == events, "events in parts of up to {limit} bytes");
            assert!(other.1 == output, "output in parts of up to {limit} bytes");
        }
    }
}
