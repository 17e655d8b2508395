// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each command and each refusal, as simple and as structured replies.

use super::*;

const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// The error and the text in the reply for `handle`.
fn error_of(reply: &[u8], structured: bool, handle: u64) -> (u32, String) {
    let word = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
    if !structured {
        assert_eq!(reply.len(), 16);
        assert_eq!((word(0), &reply[8..]), (0x6744_6698, &handle.to_be_bytes()[..]));
        return (word(4), String::new());
    }
    assert_eq!(reply[..8], hex("668e33ef 0001 8001"));
    assert_eq!(reply[8..16], handle.to_be_bytes());
    assert_eq!(word(16) as usize, reply.len() - 20);
    assert_eq!(usize::from(reply[24]) << 8 | usize::from(reply[25]), reply.len() - 26);
    (word(20), String::from_utf8(reply[26..].to_vec()).unwrap())
}

/// Structured replies, and no more.
fn session_without_context() -> Session {
    let mut session = session();
    let handshake = [client_flags(3), option(8, &[]), option(1, &[])].concat();
    reply_to(&mut session, &handshake);
    session
}

/// `bytes` are refused with `errno`, with simple and with structured replies.
#[track_caller]
fn refused(export: Export, bytes: &[u8], errno: u32) {
    for structured in [false, true] {
        let mut session = transmitting(export.clone(), structured);
        let reply = reply_to(&mut session, bytes);
        let handle = u64::from_be_bytes(bytes[8..16].try_into().unwrap());
        assert_eq!(error_of(&reply, structured, handle).0, errno);
        // The next request is found where it begins.
        assert_eq!(one_request(&mut session, &request(0, 3, 1, 0, 0)).command, Command::Flush);
    }
}

#[test]
fn requests_are_read_as_they_are_written() {
    let mut session = transmitting(export(), true);
    let bytes = hex("25609513 0004 0000 0123456789abcdef 0000000000001000 00002000");
    assert_eq!(bytes, request(4, 0, 0x0123_4567_89ab_cdef, 0x1000, 0x2000));
    let read = one_request(&mut session, &bytes);
    assert_eq!(read, Request { handle: 0x0123_4567_89ab_cdef, offset: 0x1000, bytes: 0x2000, command: Command::Read });
}

#[test]
fn each_command_with_its_flags() {
    let mut session = transmitting(export(), true);
    let zeroes = |fua, no_hole, fast| Command::WriteZeroes { fua, no_hole, fast };
    let cases = [
        (0, 0, Command::Read),
        (4, 0, Command::Read),
        (1, 0, Command::Read),
        (0, 3, Command::Flush),
        (1, 3, Command::Flush),
        (0, 4, Command::Trim { fua: false }),
        (1, 4, Command::Trim { fua: true }),
        (0, 5, Command::Cache),
        (0, 6, zeroes(false, false, false)),
        (1, 6, zeroes(true, false, false)),
        (2, 6, zeroes(false, true, false)),
        (16, 6, zeroes(false, false, true)),
        (19, 6, zeroes(true, true, true)),
        (0, 7, Command::BlockStatus { one: false }),
        (8, 7, Command::BlockStatus { one: true }),
    ];
    for (flags, kind, command) in cases {
        let found = one_request(&mut session, &request(flags, kind, 9, 512, 1024));
        assert_eq!(found, Request { handle: 9, offset: 512, bytes: 1024, command });
    }
    for (flags, fua) in [(0, false), (1, true)] {
        let found = one_request(&mut session, &write(flags, 9, 512, b"data"));
        let command = Command::Write { data: b"data".to_vec(), fua };
        assert_eq!(found, Request { handle: 9, offset: 512, bytes: 4, command });
    }
    assert!(!session.has_output());
}

#[test]
fn read_replies() {
    for (structured, header) in [
        (false, "67446698 00000000 0000000000000005"),
        (true, "668e33ef 0001 0001 0000000000000005 0000000b 0000000000000200"),
    ] {
        let mut session = transmitting(export(), structured);
        one_request(&mut session, &request(0, 0, 5, 512, 3));
        session.reply_data(5, 512, b"abc".to_vec());
        assert_eq!(sent(&mut session), [hex(header), b"abc".to_vec()].concat());
        assert_eq!(session.take_spare_buffer(), Some(b"abc".to_vec()));
    }
}

#[test]
fn replies_without_data_are_simple() {
    for structured in [false, true] {
        let mut session = transmitting(export(), structured);
        session.reply_done(0xA1A2_A3A4_A5A6_A7A8);
        assert_eq!(sent(&mut session), hex("67446698 00000000 a1a2a3a4a5a6a7a8"));
    }
}

#[test]
fn error_replies() {
    let all = [
        (Errno::Perm, 1),
        (Errno::Io, 5),
        (Errno::NoMem, 12),
        (Errno::Inval, 22),
        (Errno::NoSpace, 28),
        (Errno::Overflow, 75),
        (Errno::NotSup, 95),
        (Errno::Shutdown, 108),
    ];
    let mut simple = transmitting(export(), false);
    let mut structured = transmitting(export(), true);
    for (errno, number) in all {
        simple.reply_error(7, errno, "bad");
        structured.reply_error(7, errno, "bad");
        let number = format!("{number:08x}");
        assert_eq!(sent(&mut simple), hex(&format!("67446698 {number} 0000000000000007")));
        let chunk = hex(&format!("668e33ef 0001 8001 0000000000000007 00000009 {number} 0003 626164"));
        assert_eq!(sent(&mut structured), chunk);
    }
    // Long texts end before the character that does not fit.
    structured.reply_error(7, Errno::Io, &format!("x{}", "é".repeat(3000)));
    let (_, text) = error_of(&sent(&mut structured), true, 7);
    assert_eq!(text, format!("x{}", "é".repeat(2047)));
}

#[test]
fn status_replies() {
    let mut session = transmitting(export(), true);
    let extent = |bytes, hole, zero| Extent { bytes, hole, zero };
    let extents =
        [extent(512, false, false), extent(1, true, false), extent(2, false, true), extent(0xFFFF_FFFF, true, true)];
    session.reply_status(3, &extents);
    let expected = "668e33ef 0001 0005 0000000000000003 00000024 00000001
        00000200 00000000 00000001 00000001 00000002 00000002 ffffffff 00000003";
    assert_eq!(sent(&mut session), hex(expected));
}

#[test]
fn disc_ends_and_pending_requests_are_still_answered() {
    let mut session = transmitting(export(), false);
    one_request(&mut session, &request(0, 0, 5, 0, 1));
    let closed = end_of(&mut session, &request(0, 2, 6, 0, 0));
    assert_eq!(closed, Closed::Disconnect);
    assert!(!closed.is_error());
    session.reply_data(5, 0, b"z".to_vec());
    assert_eq!(sent(&mut session), [hex("67446698 00000000 0000000000000005"), b"z".to_vec()].concat());
}

#[test]
fn what_came_with_the_end_takes_no_space() {
    let mut session = transmitting(export(), false);
    let mut bytes = request(0, 2, 0, 0, 0);
    bytes.resize(input::INPUT_BYTES, 0);
    assert_eq!(end_of(&mut session, &bytes), Closed::Disconnect);
    assert_eq!(session.space().len(), input::INPUT_BYTES);
}

#[test]
fn writes_of_every_size_come_whole() {
    for bytes in [1, 2, 8191, 8192, 8193, 65535, 65536] {
        let data = pattern(bytes);
        let mut session = transmitting(export(), false);
        let both = [write(0, 1, 0, &data), write(0, 2, 4096, &data)].concat();
        let events = receive(&mut session, &both);
        let written = |handle, offset| {
            let command = Command::Write { data: data.clone(), fua: false };
            Event::Request(Request { handle, offset, bytes: bytes as u32, command })
        };
        assert!(events == [written(1, 0), written(2, 4096)], "{bytes} bytes");
    }
}

#[test]
fn lengths_of_zero_are_refused() {
    for kind in [0, 1, 4, 5, 6] {
        refused(export(), &request(0, kind, 77, 0, 0), EINVAL);
    }
}

#[test]
fn ranges_beyond_the_export_are_refused() {
    for (kind, errno) in [(0, EINVAL), (4, EINVAL), (5, EINVAL), (6, ENOSPC), (7, EINVAL)] {
        for offset in [0x10_0000 - 511, 0x10_0000, u64::MAX - 511, u64::MAX] {
            refused(export(), &request(0, kind, 77, offset, 512), errno);
        }
    }
    for offset in [0x10_0000 - 511, 0x10_0000, u64::MAX] {
        refused(export(), &write(0, 77, offset, &[3; 512]), ENOSPC);
    }
    // The last bytes are inside.
    let mut session = transmitting(export(), false);
    one_request(&mut session, &request(0, 0, 1, 0x10_0000 - 512, 512));
    one_request(&mut session, &request(0, 6, 1, 0, 0x10_0000));
    // The last bytes of the largest export are inside, too.
    let mut session = transmitting(Export { bytes: u64::MAX, ..export() }, false);
    one_request(&mut session, &request(0, 4, 1, u64::MAX - 512, 512));
    assert_eq!(receive(&mut session, &request(0, 4, 1, u64::MAX - 511, 512)), []);
}

#[test]
fn payloads_above_the_maximum_are_refused() {
    refused(export(), &request(0, 0, 77, 0, 0x1_0001), EINVAL);
    refused(export(), &write(0, 77, 0, &pattern(0x1_0001)), EINVAL);
    refused(export(), &write(0, 77, 0, &pattern(0x40_0000)), EINVAL);
    // Other commands have no payload.
    let mut session = transmitting(export(), true);
    one_request(&mut session, &request(0, 7, 1, 0, 0x10_0000));
}

#[test]
fn a_refused_payload_takes_no_buffer() {
    let mut session = transmitting(export(), false);
    assert_eq!(receive(&mut session, &request(0, 1, 77, 0, 256 << 20)), []);
    for _ in 0..(256 << 20) / input::INPUT_BYTES {
        assert!(session.is_transmitting() && !session.has_output());
        let space = session.space().len();
        assert_eq!(space, input::INPUT_BYTES);
        session.filled(space);
        assert_eq!(session.poll(), None);
    }
    assert_eq!(sent(&mut session), hex("67446698 00000016 000000000000004d"));
    let closed = end_of(&mut session, &request(0, 1, 77, 0, (256 << 20) + 1));
    assert_eq!(closed.to_string(), "a WRITE announces 268435457 bytes; at most 268435456 are read");
}

#[test]
fn unknown_commands_and_flags_are_refused() {
    for kind in [8, 9, 255, 0xFFFF] {
        refused(export(), &request(0, kind, 77, 0, 512), EINVAL);
    }
    for (kind, flags) in [(0, 2), (0, 8), (3, 2), (4, 2), (5, 4), (6, 4), (6, 8), (7, 2), (7, 16), (0, 0x8000)] {
        refused(export(), &request(flags, kind, 77, 0, 512), EINVAL);
    }
    refused(export(), &write(2, 77, 0, &pattern(512)), EINVAL);
    refused(export(), &write(32, 77, 0, &pattern(9000)), EINVAL);
    // DF and BLOCK_STATUS have to be negotiated.
    let mut session = transmitting(export(), false);
    for bytes in [request(4, 0, 77, 0, 512), request(0, 7, 77, 0, 512)] {
        assert_eq!(error_of(&reply_to(&mut session, &bytes), false, 77).0, EINVAL);
    }
    let mut session = session_without_context();
    assert_eq!(error_of(&reply_to(&mut session, &request(0, 7, 77, 0, 512)), true, 77).0, EINVAL);
}

#[test]
fn a_refusal_says_why() {
    let mut session = transmitting(Export { read_only: true, ..export() }, true);
    let reply = reply_to(&mut session, &write(0, 77, 0, &pattern(20_000)));
    assert_eq!(error_of(&reply, true, 77), (EPERM, "the export is read-only".to_owned()));
}

#[test]
fn read_only_exports_are_not_written() {
    let export = Export { read_only: true, ..export() };
    refused(export.clone(), &write(0, 77, 0, &pattern(512)), EPERM);
    refused(export.clone(), &request(0, 4, 77, 0, 512), EPERM);
    refused(export.clone(), &request(0, 6, 77, 0, 512), EPERM);
    let mut session = transmitting(export, true);
    for kind in [0, 3, 5, 7] {
        one_request(&mut session, &request(0, kind, 77, 0, 512));
    }
}

#[test]
fn requests_keep_to_the_minimum_block_size() {
    let export = Export { min_block: 512, ..export() };
    refused(export.clone(), &request(0, 0, 77, 256, 512), EINVAL);
    refused(export.clone(), &request(0, 0, 77, 512, 256), EINVAL);
    refused(export.clone(), &write(0, 77, 1, &pattern(512)), EINVAL);
    one_request(&mut transmitting(export, false), &request(0, 0, 77, 512, 1024));
}

#[test]
fn wrong_magic_ends() {
    let mut session = transmitting(export(), false);
    let closed = end_of(&mut session, &option(3, &[0; 12]));
    assert_eq!(closed, Closed::RequestMagic(0x4948_4156));
    assert_eq!(closed.to_string(), "a request begins with 0x49484156; it must be 0x25609513");
}
