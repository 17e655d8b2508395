// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay protected memory block: its state, and the handling of messages. It knows neither time nor commands,
//! nor when flash has carried out what a message asks for.
//!
//! *The state* changes in one step, when the program that holds it has ended: data and write counter together. So a
//! power cut before that leaves both unchanged.
//!
//! *In SRAM* are the key and the write counter (36 bytes), the result of the last request (512), and one message of
//! up to 64 frames (32 KiB). Blocks are read from flash each time.

use crate::ids::TagRef;
use readpath_proto::rpmb::{self, BLOCK_BYTES, BLOCKS, FRAME_BYTES, Frame, Key, MOST_FRAMES, request, result};
use std::collections::VecDeque;

/// The state of an RPMB whose key has been programmed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RpmbState {
    /// The key.
    pub key: Key,
    /// The write counter.
    pub counter: u32,
    /// Logical blocks from the first on. Those beyond its end are zeros.
    pub data: Vec<u8>,
}

/// A change of the state, which has to become durable as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RpmbUpdate {
    /// The key.
    pub key: Key,
    /// The new write counter.
    pub counter: u32,
    /// The first changed logical block.
    pub first: u16,
    /// The changed blocks: none if the key is programmed.
    pub data: Vec<u8>,
}

/// What the device has to do for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Only reply.
    Reply,
    /// Read this many logical blocks from flash, then call [`Rpmb::was_read`].
    Read(u16),
    /// Program an update, then call [`Rpmb::was_programmed`].
    Program,
}

/// The flash operation in progress, and the answer after it.
enum Busy {
    Read(Frame),
    Program(RpmbUpdate, Frame),
}

#[derive(Default)]
pub(crate) struct Rpmb {
    kept: Option<RpmbState>,
    busy: Option<Busy>,
    /// The result of the last programming request.
    result: Option<Frame>,
    /// Response to be fetched by the host. It stays until the next message.
    response: Vec<u8>,
    waiting: VecDeque<TagRef>,
}

impl Rpmb {
    /// Starts with the state on a medium.
    pub(crate) fn begin_with(&mut self, kept: Option<RpmbState>) {
        self.kept = kept;
    }

    /// Whether the key has been programmed.
    pub(crate) fn is_programmed(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether a flash operation is in progress, so that no message is accepted.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Queues a command until the flash operation has ended.
    pub(crate) fn wait(&mut self, tag: TagRef) {
        self.waiting.push_back(tag);
    }

    /// Takes the first waiting command.
    pub(crate) fn next_waiting(&mut self) -> Option<TagRef> {
        self.waiting.pop_front()
    }

    pub(crate) fn response(&self) -> &[u8] {
        &self.response
    }

    /// Forgets messages at a reset of the device. A program in progress continues.
    pub(crate) fn reset(&mut self) {
        self.result = None;
        self.response.clear();
        self.waiting.clear();
    }

    /// Forgets messages at a loss of power. A program in progress is lost.
    pub(crate) fn lose_power(&mut self) {
        self.reset();
        self.busy = None;
    }

    /// Handles a message of whole frames, at least one.
    pub(crate) fn take(&mut self, message: &[u8]) -> Next {
        debug_assert!(!self.is_busy());
        let Some(bytes) = message.as_chunks::<FRAME_BYTES>().0.first() else { return Next::Reply };
        let asked = Frame::parse(bytes);
        self.response.clear();
        if asked.kind != request::READ_RESULT {
            self.result = None;
        }
        let answer = Frame { kind: asked.kind << 8, nonce: asked.nonce, ..Frame::ZERO };
        match (asked.kind, &self.kept) {
            (request::PROGRAM_KEY, None) => {
                let update = RpmbUpdate { key: asked.mac, counter: 0, first: 0, data: Vec::new() };
                self.busy = Some(Busy::Program(update, Frame { kind: answer.kind, ..Frame::ZERO }));
                Next::Program
            }
            (request::PROGRAM_KEY, Some(_)) => self.end(Frame { kind: answer.kind, ..Frame::ZERO }, result::WRITE),
            (request::WRITE, _) => self.write(message, asked),
            (request::READ_RESULT, _) => {
                let answer = self.result.unwrap_or(Frame { result: self.with_expiry(result::GENERAL), ..answer });
                self.respond(answer)
            }
            (request::WRITE_PROTECTION, Some(_)) => self.end(answer, result::PROTECTION_ACCESS),
            (request::WRITE_PROTECTION, None) => self.end(answer, result::NO_KEY),
            (request::READ_COUNTER, Some(kept)) => {
                let counter = kept.counter;
                self.respond(Frame { counter, result: self.with_expiry(result::OK), ..answer })
            }
            (request::READ, kept) => {
                let answer = Frame { address: asked.address, blocks: asked.blocks, ..answer };
                match kept.as_ref().ok_or(result::NO_KEY).and_then(|_| place(&asked)) {
                    Ok(()) => {
                        self.busy = Some(Busy::Read(answer));
                        Next::Read(asked.blocks)
                    }
                    Err(code) => self.respond(Frame { result: self.with_expiry(code), ..answer }),
                }
            }
            (request::READ_PROTECTION, Some(_)) => {
                self.respond(Frame { result: self.with_expiry(result::PROTECTION_ACCESS), ..answer })
            }
            (request::READ_COUNTER | request::READ_PROTECTION, None) => {
                self.respond(Frame { result: result::NO_KEY, ..answer })
            }
            _ => self.respond(Frame { result: self.with_expiry(result::GENERAL), ..answer }),
        }
    }

    fn write(&mut self, message: &[u8], asked: Frame) -> Next {
        let (kind, nonce, address) = (asked.kind << 8, asked.nonce, asked.address);
        let counter = self.kept.as_ref().map_or(0, |kept| kept.counter);
        let answer = Frame { kind, nonce, address, counter, ..Frame::ZERO };
        match self.judge(message, &asked) {
            Ok(update) => {
                self.busy = Some(Busy::Program(update, answer));
                Next::Program
            }
            Err(code) => self.end(answer, code),
        }
    }

    /// The update of a write, or its result if it changes nothing. The order of checks is that of JESD220.
    fn judge(&self, message: &[u8], asked: &Frame) -> Result<RpmbUpdate, u16> {
        let Some(kept) = &self.kept else { return Err(result::NO_KEY) };
        let Some(counter) = kept.counter.checked_add(1) else { return Err(result::WRITE) };
        place(asked)?;
        let frames = message.as_chunks::<FRAME_BYTES>().0;
        let of_all = |frame: &Frame| (frame.kind, frame.counter, frame.address, frame.blocks);
        if frames.len() != usize::from(asked.blocks)
            || frames.iter().any(|frame| of_all(&Frame::parse(frame)) != of_all(asked))
        {
            return Err(result::GENERAL);
        }
        if !rpmb::is_signed(&kept.key, message) {
            return Err(result::AUTHENTICATION);
        }
        if asked.counter != kept.counter {
            return Err(result::COUNTER);
        }
        let data = frames.iter().flat_map(|frame| Frame::parse(frame).data).collect();
        Ok(RpmbUpdate { key: kept.key, counter, first: asked.address, data })
    }

    /// The requested blocks have been read.
    pub(crate) fn was_read(&mut self, is_wanted: bool) {
        let Some(Busy::Read(answer)) = self.busy.take() else { return };
        let Some(kept) = self.kept.as_ref().filter(|_| is_wanted) else { return };
        let first = usize::from(answer.address) * BLOCK_BYTES;
        for at in (first..).step_by(BLOCK_BYTES).take(usize::from(answer.blocks)) {
            let mut frame = Frame { result: self.with_expiry(result::OK), ..answer };
            if let Some(block) = kept.data.get(at..at + BLOCK_BYTES) {
                frame.data.copy_from_slice(block);
            }
            self.response.extend(frame.to_bytes());
        }
        rpmb::sign(&kept.key, &mut self.response);
    }

    /// The program has ended; returns the update to be stored unless it failed. A command that was aborted
    /// (`is_wanted` is false) leaves no result.
    pub(crate) fn was_programmed(&mut self, has_failed: bool, is_wanted: bool) -> Option<RpmbUpdate> {
        let Some(Busy::Program(update, mut answer)) = self.busy.take() else { return None };
        let code = if has_failed { result::WRITE } else { result::OK };
        if !has_failed {
            let empty = RpmbState { key: update.key, counter: 0, data: Vec::new() };
            self.kept.get_or_insert(empty).apply(&update);
            answer.counter = update.counter;
        }
        self.end(answer, code);
        if !is_wanted {
            self.result = None;
        }
        (!has_failed).then_some(update)
    }

    /// Stores the result of a programming message, which the host has to request.
    fn end(&mut self, answer: Frame, code: u16) -> Next {
        self.result = Some(Frame { result: self.with_expiry(code), ..answer });
        Next::Reply
    }

    fn respond(&mut self, answer: Frame) -> Next {
        self.response.extend(answer.to_bytes());
        // Without a key no code can be checked, and a host that programs the key need not send one.
        if answer.kind != request::PROGRAM_KEY << 8
            && let Some(kept) = &self.kept
        {
            rpmb::sign(&kept.key, &mut self.response);
        }
        Next::Reply
    }

    fn with_expiry(&self, code: u16) -> u16 {
        let is_expired = self.kept.as_ref().is_some_and(|kept| kept.counter == u32::MAX);
        if is_expired { code | result::COUNTER_EXPIRED } else { code }
    }
}

impl RpmbState {
    /// Applies an update.
    pub fn apply(&mut self, update: &RpmbUpdate) {
        (self.key, self.counter) = (update.key, update.counter);
        let from = usize::from(update.first) * BLOCK_BYTES;
        let end = from + update.data.len();
        if !update.data.is_empty() {
            self.data.resize(self.data.len().max(end), 0);
            self.data[from..end].copy_from_slice(&update.data);
        }
    }
}

/// Whether the blocks exist and are not too many.
fn place(asked: &Frame) -> Result<(), u16> {
    if u32::from(asked.address) >= BLOCKS || u32::from(asked.address) + u32::from(asked.blocks) > BLOCKS {
        return Err(result::ADDRESS);
    }
    if asked.blocks == 0 || usize::from(asked.blocks) > MOST_FRAMES {
        return Err(result::GENERAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
