// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way to the transmission phase, and every option that does not lead there.

use super::*;

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = hex("0003e889045565a9");
    for field in [option, kind, data.len() as u32] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

/// The error reply of `kind` to `option`: the text that it carries.
fn error_text(bytes: &[u8], option: u32, kind: u32) -> String {
    let text = String::from_utf8(bytes[20..].to_vec()).unwrap();
    assert_eq!(bytes, reply(option, 0x8000_0000 | kind, text.as_bytes()));
    text
}

/// A session that has its client's flags.
fn haggling() -> Session {
    let mut session = session();
    assert_eq!(sent(&mut session), hex("4e42444d41474943 49484156454f5054 0003"));
    assert_eq!(reply_to(&mut session, &client_flags(3)), []);
    session
}

#[test]
fn export_name_starts_transmission_with_or_without_zeros() {
    for (flags, name) in [(0, ""), (1, "disk"), (2, ""), (3, "disk")] {
        let mut session = session();
        sent(&mut session);
        assert_eq!(reply_to(&mut session, &client_flags(flags)), []);
        assert!(!session.is_transmitting());
        let mut expected = hex("0000000000100000 0d6d");
        if flags & 2 == 0 {
            expected.resize(10 + 124, 0);
        }
        assert_eq!(reply_to(&mut session, &option(1, name.as_bytes())), expected);
        assert!(session.is_transmitting());
    }
}

#[test]
fn go_tells_size_and_block_sizes_and_starts_transmission() {
    for name in ["", "disk"] {
        let mut session = haggling();
        let expected = hex("0003e889045565a9 00000007 00000003 0000000c 0000 0000000000100000 0d6d
             0003e889045565a9 00000007 00000003 0000000e 0003 00000001 00001000 00010000
             0003e889045565a9 00000007 00000001 00000000");
        assert_eq!(reply_to(&mut session, &option(7, &wanted(name, &[]))), expected);
        assert!(session.is_transmitting());
    }
}

#[test]
fn info_tells_names_to_those_who_ask_and_goes_on() {
    let mut session = haggling();
    let size = reply(6, 3, &hex("0000 0000000000100000 0d6d"));
    let name = reply(6, 3, b"\0\x01disk");
    let description = reply(6, 3, b"\0\x02A disk");
    let blocks = reply(6, 3, &hex("0003 00000001 00001000 00010000"));
    let ack = reply(6, 1, b"");
    // Repeated and unknown requests make no difference.
    let all = option(6, &wanted("", &[3, 2, 1, 0, 1, 77]));
    assert_eq!(reply_to(&mut session, &all), [&size[..], &name, &description, &blocks, &ack].concat());
    assert!(!session.is_transmitting());
    assert_eq!(reply_to(&mut session, &option(6, &wanted("disk", &[1]))), [size, name, blocks, ack].concat());
}

#[test]
fn an_export_without_description_tells_none() {
    let export = Export { description: String::new(), ..export() };
    let mut session = Session::new([export].into());
    receive(&mut session, &client_flags(3));
    sent(&mut session);
    let told = reply_to(&mut session, &option(6, &wanted("", &[2])));
    assert_eq!(told.len(), 32 + 34 + 20);
}

#[test]
fn list_names_the_export() {
    let mut session = haggling();
    let expected = hex("0003e889045565a9 00000003 00000002 0000000e 00000004 6469736b 41206469736b
         0003e889045565a9 00000003 00000001 00000000");
    assert_eq!(reply_to(&mut session, &option(3, &[])), expected);
    error_text(&reply_to(&mut session, &option(3, b"x")), 3, 3);
}

/// A session that has its client's flags, to one of two exports.
fn haggling_with_two() -> Session {
    let small = Export { name: "small".to_owned(), bytes: 0x1000, ..export() };
    let mut session = Session::new([export(), small].into());
    sent(&mut session);
    reply_to(&mut session, &client_flags(3));
    session
}

#[test]
fn each_export_is_listed_and_can_be_chosen() {
    let listed = reply_to(&mut haggling_with_two(), &option(3, &[]));
    let of = |name: &str| reply(3, 2, &[string(name), b"A disk".to_vec()].concat());
    assert_eq!(listed, [of("disk"), of("small"), reply(3, 1, b"")].concat());
    for (name, place, bytes) in [("", 0, "100000"), ("disk", 0, "100000"), ("small", 1, "001000")] {
        let size = hex(&format!("0000000000{bytes} 0d6d"));
        let mut session = haggling_with_two();
        assert_eq!(reply_to(&mut session, &option(1, name.as_bytes())), size);
        assert_eq!(session.export(), place, "{name}");
        let mut session = haggling_with_two();
        // What is asked about another export before is no choice.
        reply_to(&mut session, &option(6, &wanted("small", &[])));
        let told = reply_to(&mut session, &option(7, &wanted(name, &[])));
        assert_eq!((&told[22..32], session.export()), (&size[..], place), "{name}");
        let bytes = if place == 0 { 0x10_0000 } else { 0x1000 };
        one_request(&mut session, &request(0, 0, 1, bytes - 512, 512));
        assert_eq!(reply_to(&mut session, &request(0, 0, 1, bytes, 512))[4..8], 22_u32.to_be_bytes(), "{name}");
    }
    for number in [6, 7] {
        let told = reply_to(&mut haggling_with_two(), &option(number, &wanted("smal", &[])));
        assert_eq!(error_text(&told, number, 6), "no such export; there are: disk, small");
    }
}

/// A context is of the export that it was chosen for.
#[test]
fn a_context_of_another_export_is_none() {
    for (name, is_chosen) in [("small", true), ("disk", false), ("", false)] {
        let mut session = haggling_with_two();
        reply_to(&mut session, &option(8, &[]));
        reply_to(&mut session, &option(10, &queries("small", &["base:allocation"])));
        reply_to(&mut session, &option(7, &wanted(name, &[])));
        let asked = receive(&mut session, &request(0, 7, 1, 0, 4096));
        assert_eq!(asked.len(), usize::from(is_chosen), "{name}");
    }
}

#[test]
fn abort_is_acknowledged_and_ends() {
    let mut session = haggling();
    let closed = end_of(&mut session, &option(2, &[]));
    assert_eq!(closed, Closed::Abort);
    assert!(!closed.is_error());
    assert_eq!(sent(&mut session), reply(2, 1, b""));
}

#[test]
fn structured_replies_add_a_flag() {
    let mut session = haggling();
    error_text(&reply_to(&mut session, &option(8, b"x")), 8, 3);
    assert_eq!(reply_to(&mut session, &option(8, &[])), reply(8, 1, b""));
    let told = reply_to(&mut session, &option(7, &wanted("", &[])));
    assert_eq!(told[30..32], hex("0ded"));
}

#[test]
fn a_read_only_export_offers_no_command_that_writes() {
    let export = Export { read_only: true, ..export() };
    let mut session = Session::new([export].into());
    receive(&mut session, &client_flags(3));
    sent(&mut session);
    assert_eq!(reply_to(&mut session, &option(1, b"")), hex("0000000000100000 050f"));
}

#[test]
fn meta_contexts_are_listed_by_name_and_namespace() {
    let mut session = haggling();
    let context = reply(9, 4, b"\0\0\0\0base:allocation");
    let ack = reply(9, 1, b"");
    for asked in [&[][..], &["base:"], &["base:allocation"], &["x:y", "base:allocation", "base:"]] {
        let told = reply_to(&mut session, &option(9, &queries("", asked)));
        assert_eq!(told, [&context[..], &ack].concat(), "{asked:?}");
    }
    assert_eq!(reply_to(&mut session, &option(9, &queries("disk", &["base:other", ""]))), ack);
    error_text(&reply_to(&mut session, &option(9, &queries("other", &[]))), 9, 6);
}

#[test]
fn a_meta_context_is_set_after_structured_replies() {
    let mut session = haggling();
    let choice = option(10, &queries("disk", &["base:allocation"]));
    let text = error_text(&reply_to(&mut session, &choice), 10, 3);
    assert_eq!(text, "structured replies must be negotiated first");
    reply_to(&mut session, &option(8, &[]));
    let chosen = [reply(10, 4, b"\0\0\0\x01base:allocation"), reply(10, 1, b"")].concat();
    assert_eq!(reply_to(&mut session, &choice), chosen);
    assert_eq!(session.agreed.allocation, Some(0));
    // A namespace is no choice, and the last choice counts.
    assert_eq!(reply_to(&mut session, &option(10, &queries("", &["base:"]))), reply(10, 1, b""));
    assert_eq!(session.agreed.allocation, None);
    reply_to(&mut session, &choice);
    error_text(&reply_to(&mut session, &option(10, &queries("other", &["base:allocation"]))), 10, 6);
    assert_eq!(session.agreed.allocation, None);
    reply_to(&mut session, &choice);
    assert_eq!(reply_to(&mut session, &option(10, &queries("", &[]))), reply(10, 1, b""));
    assert_eq!(session.agreed.allocation, None);
}

#[test]
fn other_exports_are_unknown() {
    for number in [6, 7] {
        let mut session = haggling();
        let text = error_text(&reply_to(&mut session, &option(number, &wanted("other", &[3]))), number, 6);
        assert_eq!(text, "no such export; there are: disk");
        assert!(!session.is_transmitting());
    }
    let closed = end_of(&mut haggling(), &option(1, b"ot\nher"));
    assert_eq!(closed, Closed::UnknownExport("ot\nher".to_owned()));
    assert_eq!(closed.to_string(), r#"export "ot\nher" is not served here"#);
    assert!(closed.is_error());
}

#[test]
fn tls_and_unknown_options_are_refused() {
    let mut session = haggling();
    assert_eq!(error_text(&reply_to(&mut session, &option(5, &[])), 5, 2), "TLS is not offered");
    for number in [0, 4, 11, 99, u32::MAX] {
        error_text(&reply_to(&mut session, &option(number, b"abc")), number, 1);
    }
}

#[test]
fn cut_data_is_invalid() {
    let mut session = haggling();
    reply_to(&mut session, &option(8, &[]));
    let cases = [(7, wanted("disk", &[3, 1])), (9, queries("disk", &["a:b"])), (10, queries("disk", &["a:b"]))];
    for (number, data) in cases {
        for bytes in 0..data.len() {
            error_text(&reply_to(&mut session, &option(number, &data[..bytes])), number, 3);
        }
        let longer = [&data[..], &[0]].concat();
        error_text(&reply_to(&mut session, &option(number, &longer)), number, 3);
    }
    // Lengths and counts that are not true.
    error_text(&reply_to(&mut session, &option(7, &hex("ffffffff 0000"))), 7, 3);
    error_text(&reply_to(&mut session, &option(9, &hex("00000000 ffffffff"))), 9, 3);
    error_text(&reply_to(&mut session, &option(9, &hex("00000000 00000001 ffffffff 00"))), 9, 3);
}

#[test]
fn long_options_are_skipped_and_longer_ones_end() {
    let mut session = haggling();
    error_text(&reply_to(&mut session, &option(99, &vec![1; 16 << 10])), 99, 1);
    error_text(&reply_to(&mut session, &option(99, &vec![1; (16 << 10) + 1])), 99, 9);
    error_text(&reply_to(&mut session, &option(7, &vec![1; 64 << 10])), 7, 9);
    let header = &option(7, &vec![1; (64 << 10) + 1])[..16];
    let closed = end_of(&mut session, header);
    assert_eq!(closed.to_string(), "option 7 has 65537 bytes of data; at most 65536 are read");
    let header = &option(1, &vec![b'x'; 4097])[..16];
    assert_eq!(end_of(&mut haggling(), header), Closed::OptionTooLong { option: 1, bytes: 4097, limit: 4096 });
}

#[test]
fn a_client_cannot_haggle_for_ever() {
    let mut session = haggling();
    for _ in 0..1000 {
        error_text(&reply_to(&mut session, &option(99, &[])), 99, 1);
    }
    assert_eq!(end_of(&mut session, &option(99, &[])), Closed::TooManyOptions(1000));
}

#[test]
fn unknown_client_flags_and_wrong_magic_end() {
    let closed = end_of(&mut session(), &client_flags(7));
    assert_eq!(closed.to_string(), "client flags 0x00000007 are not those of the fixed newstyle handshake");
    assert_eq!(end_of(&mut session(), &client_flags(0x8000_0001)), Closed::ClientFlags(0x8000_0001));
    let closed = end_of(&mut haggling(), b"GET / HTTP/1.1\r\n");
    assert_eq!(
        closed.to_string(),
        "an option begins with 0x474554202f204854; it must be IHAVEOPT (0x49484156454f5054)"
    );
}
