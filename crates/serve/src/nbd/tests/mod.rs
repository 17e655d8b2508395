// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the session, and the client that they play. Its numbers are written out: they check those of the session.

mod chunking;
mod handshake;
mod hostile;
mod output;
mod transmission;

use super::*;

/// 1 MiB that takes payloads of up to 64 KiB.
fn export() -> Export {
    Export {
        name: "disk".to_owned(),
        description: "A disk".to_owned(),
        bytes: 0x10_0000,
        read_only: false,
        min_block: 1,
        preferred_block: 4096,
        max_payload: 0x1_0000,
    }
}

fn session() -> Session {
    Session::new([export()].into())
}

/// Bytes in hexadecimal; spaces mean nothing.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    assert!(digits.len().is_multiple_of(2));
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn client_flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// Data of INFO (6) and GO (7).
fn wanted(name: &str, information: &[u16]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((information.len() as u16).to_be_bytes());
    information.iter().for_each(|id| bytes.extend(id.to_be_bytes()));
    bytes
}

/// Data of LIST_META_CONTEXT (9) and SET_META_CONTEXT (10).
fn queries(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| bytes.extend(string(query)));
    bytes
}

fn request(flags: u16, kind: u16, handle: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = hex("25609513");
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(handle.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

fn write(flags: u16, handle: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(flags, 1, handle, offset, data.len() as u32), data.to_vec()].concat()
}

/// `count` bytes that differ from their neighbours.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Everything that waits, which is then sent.
fn sent(session: &mut Session) -> Vec<u8> {
    let bytes: Vec<u8> = session.output().flatten().copied().collect();
    assert_eq!(bytes.len(), session.output_bytes());
    assert_eq!(bytes.is_empty(), !session.has_output());
    session.sent(bytes.len());
    assert!(!session.has_output() && session.output().next().is_none());
    bytes
}

/// Takes all `bytes` in, as much at a time as there is space, and gives the events.
fn receive(session: &mut Session, mut bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let space = session.space();
        let count = space.len().min(bytes.len());
        assert!(count > 0, "no space after all events");
        space[..count].copy_from_slice(&bytes[..count]);
        session.filled(count);
        bytes = &bytes[count..];
        events.extend(std::iter::from_fn(|| session.poll()));
    }
    events
}

/// What the client gets for `bytes`, in which there is neither request nor end.
fn reply_to(session: &mut Session, bytes: &[u8]) -> Vec<u8> {
    assert_eq!(receive(session, bytes), []);
    sent(session)
}

/// The only request in `bytes`.
fn one_request(session: &mut Session, bytes: &[u8]) -> Request {
    let mut events = receive(session, bytes);
    match (events.pop(), events.len()) {
        (Some(Event::Request(request)), 0) => request,
        other => panic!("{other:?}"),
    }
}

/// How the session ends with `bytes`, in which there is no request.
fn end_of(session: &mut Session, bytes: &[u8]) -> Closed {
    let mut events = receive(session, bytes);
    match (events.pop(), events.len()) {
        (Some(Event::Closed(closed)), 0) => {
            assert!(!session.is_transmitting());
            assert_eq!(receive(session, &[0; 100_000]), [], "nothing follows the end");
            closed
        }
        other => panic!("{other:?}"),
    }
}

/// What a client sends to get to the transmission phase: by GO alone, or with all that can be negotiated.
fn greeting(structured: bool) -> Vec<u8> {
    let mut bytes = client_flags(3);
    if structured {
        bytes.extend(option(8, &[]));
        bytes.extend(option(10, &queries("disk", &["base:allocation"])));
    }
    bytes.extend(option(7, &wanted("disk", &[3])));
    bytes
}

/// A session after its handshake.
fn transmitting(export: Export, structured: bool) -> Session {
    let mut session = Session::new([export].into());
    assert_eq!(receive(&mut session, &greeting(structured)), []);
    assert!(session.is_transmitting());
    sent(&mut session);
    session
}

impl Session {
    /// Memory that the input and the spare buffers take.
    fn held(&self) -> usize {
        let payload = match &self.phase {
            Phase::Payload { data, .. } => data.capacity(),
            _ => 0,
        };
        input::INPUT_BYTES + payload + self.spare.held()
    }
}

/// Pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
