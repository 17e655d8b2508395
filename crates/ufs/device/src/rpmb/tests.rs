// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages against a small model that knows the intention of each message and does not parse it.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: [Key; 2] = [[0x11; 32], [0x22; 32]];

/// A message.
#[derive(Clone, Debug)]
enum Sent {
    ProgramKey(usize),
    ReadCounter(u8),
    /// Number of blocks, address, number of the data, and the fault.
    Write(u16, u16, u8, Wrong),
    /// Number of a successful write, which is sent again.
    Replay(usize),
    Read(u16, u16, u8),
    ReadResult,
    Other(u16),
    Reset,
    PowerCut,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Wrong {
    Nothing,
    Key,
    /// This bit of the signed bytes is flipped after signing.
    Bit(usize),
    Counter(i32),
    /// The block count exceeds the number of frames by one.
    Count,
    /// One frame has another address than the others.
    Frame,
    /// The program fails.
    Program,
    /// The command is aborted while it is programmed.
    Aborted,
    /// The power is cut meanwhile.
    PowerCut,
}

fn sent() -> impl Strategy<Value = Sent> {
    let address = || prop_oneof![0..8u16, 16_330..16_390u16, Just(u16::MAX)];
    let blocks = || prop_oneof![4 => 1..5u16, 1 => Just(64), 1 => Just(65), 1 => Just(0)];
    let wrong = prop_oneof![
        8 => Just(Wrong::Nothing),
        1 => Just(Wrong::Key),
        // Data, nonce or counter of the last frame, so that nothing else is wrong.
        1 => (0..276usize * 8).prop_map(Wrong::Bit),
        1 => prop_oneof![Just(1), Just(-1), Just(7)].prop_map(Wrong::Counter),
        1 => Just(Wrong::Count),
        1 => Just(Wrong::Frame),
        1 => Just(Wrong::Program),
        1 => Just(Wrong::Aborted),
        1 => Just(Wrong::PowerCut),
    ];
    prop_oneof![
        1 => (0..2usize).prop_map(Sent::ProgramKey),
        2 => any::<u8>().prop_map(Sent::ReadCounter),
        8 => (address(), blocks(), any::<u8>(), wrong).prop_map(|(a, n, data, wrong)| Sent::Write(a, n, data, wrong)),
        1 => any::<usize>().prop_map(Sent::Replay),
        4 => (address(), blocks(), any::<u8>()).prop_map(|(a, n, nonce)| Sent::Read(a, n, nonce)),
        6 => Just(Sent::ReadResult),
        1 => prop_oneof![Just(0), 6..10u16, Just(0x0300), any::<u16>()].prop_map(Sent::Other),
        1 => Just(Sent::Reset),
        1 => Just(Sent::PowerCut),
    ]
}

#[derive(Default)]
struct Model {
    key: Option<Key>,
    counter: u32,
    blocks: BTreeMap<u16, u8>,
    /// The result register, unsigned.
    result: Option<Frame>,
    /// The response, signed.
    response: Vec<u8>,
}

impl Model {
    fn code(&self, code: u16) -> u16 {
        code + if self.key.is_some() && self.counter == u32::MAX { 0x80 } else { 0 }
    }

    fn responds(&mut self, frames: &[Frame]) {
        self.response = frames.iter().flat_map(Frame::to_bytes).collect();
        if let Some(key) = self.key.filter(|_| frames[0].kind != 0x0100) {
            rpmb::sign(&key, &mut self.response);
        }
    }

    /// The result if only the address and the state matter.
    fn at(&self, address: u16, blocks: u16) -> u16 {
        match (u32::from(address), u32::from(blocks)) {
            _ if self.key.is_none() => 7,
            (address, blocks) if address > 16_383 || address + blocks > 16_384 => 4,
            (_, 0 | 65..) => 1,
            _ => 0,
        }
    }
}

/// The frame with `byte` in the whole block, or zeros.
fn filled(frame: &Frame, byte: Option<&u8>) -> Frame {
    let data = [byte.copied().unwrap_or(0); 256];
    Frame { data, ..*frame }
}

fn message(key: Option<Key>, frames: usize, frame: impl Fn(usize) -> Frame) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..frames).flat_map(|i| frame(i).to_bytes()).collect();
    if let Some(key) = key {
        rpmb::sign(&key, &mut bytes);
    }
    bytes
}

/// Sends a message, and carries out the flash operation.
fn finish(rpmb: &mut Rpmb, bytes: &[u8], how: Wrong) -> Option<RpmbUpdate> {
    match rpmb.take(bytes) {
        Next::Reply => None,
        Next::Read(_) => {
            rpmb.was_read(true);
            None
        }
        Next::Program => {
            assert!(rpmb.is_busy());
            if how == Wrong::PowerCut {
                rpmb.lose_power();
                return None;
            }
            rpmb.was_programmed(how == Wrong::Program, how != Wrong::Aborted)
        }
    }
}

fn run(all: &[Sent], start: Option<u32>) {
    let mut rpmb = Rpmb::default();
    let mut model = Model::default();
    // A medium that stores every update.
    let mut medium: Option<RpmbState> = None;
    if let Some(counter) = start {
        medium = Some(RpmbState { key: KEYS[0], counter, data: Vec::new() });
        rpmb.begin_with(medium.clone());
        (model.key, model.counter) = (Some(KEYS[0]), counter);
    }
    let mut done: Vec<Vec<u8>> = Vec::new();
    for (step, sent) in all.iter().enumerate() {
        let what = format!("step {step}: {sent:?}");
        let kind = |kind| Frame { kind, ..Frame::ZERO };
        let mut tell = |update: Option<RpmbUpdate>| match (&mut medium, update) {
            (Some(medium), Some(update)) => medium.apply(&update),
            (None, Some(RpmbUpdate { key, counter, .. })) => {
                medium = Some(RpmbState { key, counter, data: Vec::new() });
            }
            _ => {}
        };
        match *sent {
            Sent::ProgramKey(which) => {
                tell(finish(&mut rpmb, &Frame { mac: KEYS[which], ..kind(1) }.to_bytes(), Wrong::Nothing));
                let is_first = model.key.is_none();
                if is_first {
                    (model.key, model.counter) = (Some(KEYS[which]), 0);
                }
                let result = if is_first { 0 } else { model.code(5) };
                (model.result, model.response) = (Some(Frame { result, ..kind(0x0100) }), Vec::new());
            }
            Sent::ReadCounter(nonce) => {
                let nonce = [nonce; 16];
                finish(&mut rpmb, &Frame { nonce, ..kind(2) }.to_bytes(), Wrong::Nothing);
                let result = if model.key.is_some() { model.code(0) } else { 7 };
                model.responds(&[Frame { nonce, counter: model.counter, result, ..kind(0x0200) }]);
                model.result = None;
            }
            Sent::Write(address, blocks, data, wrong) => {
                let expired = model.counter == u32::MAX;
                let counter = match wrong {
                    Wrong::Counter(by) => model.counter.wrapping_add_signed(by),
                    _ => model.counter,
                };
                let claimed = if wrong == Wrong::Count { blocks.max(1) + 1 } else { blocks };
                let frame = |i: usize| Frame {
                    data: [data.wrapping_add(i as u8); 256],
                    nonce: [data; 16],
                    counter,
                    address: address ^ u16::from(wrong == Wrong::Frame && i == 1),
                    blocks: claimed,
                    ..kind(3)
                };
                let key = if wrong == Wrong::Key { KEYS[1].map(|b| b ^ 1) } else { model.key.unwrap_or(KEYS[0]) };
                let mut bytes = message(Some(key), usize::from(blocks).max(1), frame);
                let last = bytes.len() - 512;
                if let Wrong::Bit(bit) = wrong {
                    bytes[last + 228 + bit / 8] ^= 1 << (bit % 8);
                }
                let update = finish(&mut rpmb, &bytes, wrong);
                // Frames whose counters differ are not one message.
                let is_torn = matches!(wrong, Wrong::Bit(bit) if bit >= 272 * 8) && blocks > 1;
                let code = match (model.at(address, claimed), wrong) {
                    (7, _) => 7,
                    _ if expired => 5,
                    (0, Wrong::Count) => 1,
                    (0, Wrong::Frame) if blocks > 1 => 1,
                    (0, Wrong::Bit(_)) if is_torn => 1,
                    (0, Wrong::Key | Wrong::Bit(_)) => 2,
                    (0, Wrong::Counter(_)) => 3,
                    (0, Wrong::Program) => 5,
                    (code, _) => code,
                };
                let changes = code == 0 && wrong != Wrong::PowerCut;
                assert_eq!(update.is_some(), changes, "{what}");
                tell(update);
                if changes {
                    model.counter += 1;
                    (0..blocks).for_each(|i| _ = model.blocks.insert(address + i, data.wrapping_add(i as u8)));
                    done.push(bytes.clone());
                }
                // Of the first frame, as it was sent.
                let asked = Frame::parse(bytes.first_chunk().unwrap());
                let (result, counter, nonce) = (model.code(code), model.counter, asked.nonce);
                let frame = Frame { result, counter, address: asked.address, nonce, ..kind(0x0300) };
                let is_known = !(code == 0 && matches!(wrong, Wrong::PowerCut | Wrong::Aborted));
                (model.result, model.response) = (is_known.then_some(frame), Vec::new());
            }
            Sent::Replay(which) => {
                let Some(bytes) = done.get(which % done.len().max(1)) else { continue };
                let update = finish(&mut rpmb, bytes, Wrong::Nothing);
                assert_eq!(update, None, "{what}");
                let asked = Frame::parse(bytes.first_chunk().unwrap());
                let code = if model.counter == u32::MAX { 5 } else { 3 };
                let (address, nonce, result) = (asked.address, asked.nonce, model.code(code));
                let frame = Frame { result, counter: model.counter, address, nonce, ..kind(0x0300) };
                (model.result, model.response) = (Some(frame), Vec::new());
            }
            Sent::Read(address, blocks, nonce) => {
                let asked = Frame { address, blocks, nonce: [nonce; 16], ..kind(4) };
                finish(&mut rpmb, &asked.to_bytes(), Wrong::Nothing);
                let code = model.at(address, blocks);
                let answer = Frame { kind: 0x0400, result: if code == 7 { 7 } else { model.code(code) }, ..asked };
                let frames: Vec<Frame> = match code {
                    0 => (address..address + blocks).map(|at| filled(&answer, model.blocks.get(&at))).collect(),
                    _ => vec![answer],
                };
                model.responds(&frames);
                model.result = None;
            }
            Sent::ReadResult => {
                finish(&mut rpmb, &kind(5).to_bytes(), Wrong::Nothing);
                let nothing = Frame { result: model.code(1), ..kind(0x0500) };
                model.responds(&[model.result.unwrap_or(nothing)]);
            }
            Sent::Other(1..=5) => continue,
            Sent::Other(number) => {
                finish(&mut rpmb, &kind(number).to_bytes(), Wrong::Nothing);
                let code = match (number, model.key) {
                    (6 | 7, None) => 7,
                    (6 | 7, Some(_)) => model.code(8),
                    _ => model.code(1),
                };
                let answer = Frame { result: code, ..kind(number << 8) };
                (model.result, model.response) = (None, Vec::new());
                if number == 6 {
                    model.result = Some(answer);
                } else {
                    model.responds(&[answer]);
                }
            }
            Sent::Reset | Sent::PowerCut => {
                if matches!(sent, Sent::Reset) {
                    rpmb.reset()
                } else {
                    rpmb.lose_power()
                };
                (model.result, model.response) = (None, Vec::new());
            }
        }
        assert!(!rpmb.is_busy(), "{what}");
        let told = |bytes: &[u8]| bytes.chunks(512).map(|frame| frame[484..].to_vec()).collect::<Vec<_>>();
        assert_eq!(told(rpmb.response()), told(&model.response), "{what}");
        assert!(rpmb.response() == model.response, "{what}: data or code");
        assert!(rpmb.kept == medium, "{what}: the medium differs");
        assert_eq!(medium.as_ref().map(|kept| (kept.key, kept.counter)), model.key.map(|k| (k, model.counter)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// For every message: the model's answer, and a medium equal to the device.
    #[test]
    fn messages_are_answered_as_a_model_answers_them(
        all in proptest::collection::vec(sent(), 1..60),
        start in prop_oneof![2 => Just(None), 3 => Just(Some(0)), 1 => (u32::MAX - 4..=u32::MAX).prop_map(Some)],
    ) {
        run(&all, start);
    }
}

#[test]
fn the_last_write_counts_to_the_end_and_none_follows() {
    let write = |data| Sent::Write(0, 1, data, Wrong::Nothing);
    run(&[write(1), Sent::ReadResult, write(2), Sent::ReadResult, Sent::Read(0, 1, 9)], Some(u32::MAX - 1));
    let mut rpmb = Rpmb::default();
    rpmb.begin_with(Some(RpmbState { key: KEYS[0], counter: u32::MAX - 1, data: Vec::new() }));
    for (counter, code) in [(u32::MAX - 1, 0x80), (u32::MAX, 0x85)] {
        let frame = Frame { counter, blocks: 1, kind: request::WRITE, ..Frame::ZERO };
        finish(&mut rpmb, &message(Some(KEYS[0]), 1, |_| frame), Wrong::Nothing);
        finish(&mut rpmb, &Frame { kind: request::READ_RESULT, ..Frame::ZERO }.to_bytes(), Wrong::Nothing);
        let result = Frame::parse(rpmb.response().first_chunk().unwrap());
        assert_eq!((result.kind, result.result, result.counter), (0x0300, code, u32::MAX));
        assert!(rpmb::is_signed(&KEYS[0], rpmb.response()));
    }
}
