// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's connection: how bytes and files become messages, and what becomes of answers that are not taken.

use super::client::Client;
use super::session::{Errno, Function, HEADER_BYTES, Irqs, Mapping};
use super::tests::message;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

const VERSION: u16 = 1;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
/// Most bytes of a read.
const MIB: u32 = 1 << 20;

/// Notes what it is asked for.
#[derive(Default)]
struct Noted(Vec<String>);

impl Function for Noted {
    fn region_bytes(&self, _: u32) -> u64 {
        1 << 30
    }

    fn read(&mut self, _: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        self.0.push(format!("read {offset}"));
        data.fill(offset as u8);
        Ok(())
    }

    fn write(&mut self, _: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        self.0.push(format!("write {offset} {data:?}"));
        Ok(())
    }

    fn map(&mut self, _: Mapping) -> Result<(), Errno> {
        Err(Errno::NoSpace)
    }

    fn unmap(&mut self, _: Option<(u64, u64)>) -> Result<(), Errno> {
        Err(Errno::NoEntry)
    }

    fn irqs(&mut self, irqs: Irqs) -> Result<(), Errno> {
        self.0.push(match irqs {
            Irqs::Trigger(file) => format!("trigger {}", file.is_some()),
            other => format!("{other:?}"),
        });
        Ok(())
    }

    fn reset(&mut self) {
        self.0.push("reset".to_owned());
    }
}

fn read(offset: u64, count: u32) -> Vec<u8> {
    message(REGION_READ, 0, &[&offset.to_le_bytes()[..], &[0; 4], &count.to_le_bytes()].concat())
}

fn write(offset: u64, value: u8) -> Vec<u8> {
    message(REGION_WRITE, 0, &[&offset.to_le_bytes()[..], &[0; 4], &1u32.to_le_bytes(), &[value]].concat())
}

/// An eventfd for INTx goes with it.
fn trigger() -> Vec<u8> {
    message(SET_IRQS, 0, [20u32, 32 | 4, 0, 0, 1].map(u32::to_le_bytes).as_flattened())
}

/// A client that has agreed on the version, and its other end, on which nothing waits.
fn pair() -> (Client, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("a socket");
    let mut client = Client::new(ours);
    theirs.write_all(&message(VERSION, 0, &[0; 4])).expect("room");
    client.serve(&mut Noted::default()).expect("a version");
    theirs.set_nonblocking(true).expect("a socket");
    assert!(theirs.read(&mut [0; 4096]).expect("an answer") > HEADER_BYTES);
    (client, theirs)
}

fn send_with_file(stream: &UnixStream, bytes: &[u8]) {
    let file = eventfd(0, EventfdFlags::empty()).expect("an eventfd");
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    let sent = sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
    assert_eq!(sent, Ok(bytes.len()));
}

#[test]
fn messages_come_together_or_in_pieces() {
    let wanted: Vec<String> = (0..9).map(|i| format!("write {i} [{}]", 2 * i)).collect();
    let all: Vec<u8> = (0..9).flat_map(|i| write(i, 2 * i as u8)).collect();
    for piece in [all.len(), 1, 7, 16, 17, 60] {
        let ((mut client, mut theirs), mut noted) = (pair(), Noted::default());
        for bytes in all.chunks(piece) {
            theirs.write_all(bytes).expect("room");
            client.serve(&mut noted).expect("messages");
        }
        assert_eq!(noted.0, wanted, "{piece} bytes at a time");
        let mut answers = vec![0; 9 * (HEADER_BYTES + 16)];
        theirs.read_exact(&mut answers).expect("an answer for each");
        assert!(theirs.read(&mut [0; 1]).is_err(), "and no more");
    }
}

/// Files that come belong to the message with which they came, whatever lies before and behind it on the socket.
#[test]
fn files_come_with_their_message() {
    let ((mut client, mut theirs), mut noted) = (pair(), Noted::default());
    theirs.write_all(&[read(1, 4), trigger()].concat()).expect("room");
    send_with_file(&theirs, &trigger());
    theirs.write_all(&[trigger(), read(2, 4)].concat()).expect("room");
    client.serve(&mut noted).expect("messages");
    assert_eq!(noted.0, ["read 1", "trigger false", "trigger true", "trigger false", "read 2"]);
    // In pieces, with the file at the first.
    noted.0.clear();
    let cut = trigger();
    theirs.write_all(&read(3, 4)).expect("room");
    send_with_file(&theirs, &cut[..5]);
    client.serve(&mut noted).expect("a message");
    assert_eq!(noted.0, ["read 3"]);
    theirs.write_all(&[&cut[5..], &trigger()].concat()).expect("room");
    client.serve(&mut noted).expect("messages");
    assert_eq!(noted.0, ["read 3", "trigger true", "trigger false"]);
}

/// Nothing more is done for a client that does not take its answers; then all that it sent is.
#[test]
fn answers_that_are_not_taken_hold_up_what_follows() {
    let ((mut client, mut theirs), mut noted) = (pair(), Noted::default());
    theirs.write_all(&(0..6).flat_map(|i| read(i, MIB)).collect::<Vec<_>>()).expect("room");
    client.serve(&mut noted).expect("messages");
    assert!(client.has_answers() && noted.0.len() < 6, "{:?}", noted.0);
    let (mut taken, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while taken.len() < 6 * (HEADER_BYTES + 16 + MIB as usize) {
        match theirs.read(&mut buffer) {
            Ok(bytes) => taken.extend_from_slice(&buffer[..bytes]),
            Err(_) => client.serve(&mut noted).expect("messages"),
        }
    }
    assert!(!client.has_answers());
    assert_eq!(noted.0, (0..6).map(|i| format!("read {i}")).collect::<Vec<_>>());
    let last: Vec<u8> = taken.chunks(HEADER_BYTES + 16 + MIB as usize).map(|answer| answer[answer.len() - 1]).collect();
    assert_eq!(last, [0, 1, 2, 3, 4, 5]);
}

/// A client that always has more to say is left for others after a while, with nothing half done.
#[test]
fn a_client_that_goes_on_is_served_in_turns() {
    let ((mut client, mut theirs), mut noted) = (pair(), Noted::default());
    let no_reply = 1 << 4;
    let one = message(REGION_WRITE, no_reply, &[&[0; 12][..], &1u32.to_le_bytes(), &[5]].concat());
    let mut sent = 0;
    let mut turns = 0;
    while sent < 20_000 {
        while sent < 20_000 && theirs.write_all(&one).is_ok() {
            sent += 1;
        }
        client.serve(&mut noted).expect("messages");
        turns += 1;
        assert!(turns < 20_000, "{sent} messages in {turns} turns");
    }
    client.serve(&mut noted).expect("messages");
    assert_eq!(noted.0.len(), 20_000);
}
