// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands with data, many at once, aborted, cleared and reset at random moments, against a model of the possible
//! contents of each block.

use crate::machine::{At, BLOCK, Machine, config};
use readpath_kit::Prng;
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, Form, ReplyBody, RequestBody, Response, Sense, Status, TaskRequest,
};

const BLOCKS: u32 = 2_000;

#[derive(Clone, Debug)]
enum Op {
    Read,
    Write(Vec<u64>),
    Trim,
    Sync,
}

#[derive(Clone, Debug)]
struct Sent {
    op: Op,
    block: u32,
    blocks: u32,
}

/// Possible contents of each block: one stamp, or several while it is unknown whether an aborted write took place.
struct Model(Vec<Vec<u64>>);

impl Model {
    fn range(&mut self, sent: &Sent) -> &mut [Vec<u64>] {
        &mut self.0[sent.block as usize..(sent.block + sent.blocks) as usize]
    }

    fn done(&mut self, sent: &Sent, data: &[u8], what: &str) {
        for (i, may) in self.range(sent).iter_mut().enumerate() {
            match &sent.op {
                Op::Read => {
                    let block = &data[i * BLOCK..(i + 1) * BLOCK];
                    let stamp = u64::from_le_bytes(*block.first_chunk().unwrap());
                    assert!(
                        block.chunks_exact(8).all(|word| word == stamp.to_le_bytes()),
                        "{what}: block of two writes"
                    );
                    assert!(may.contains(&stamp), "{what}: block {} holds {stamp}, not {may:?}", sent.block + i as u32);
                    *may = vec![stamp];
                }
                Op::Write(stamps) => *may = vec![stamps[i]],
                Op::Trim => *may = vec![0],
                Op::Sync => {}
            }
        }
    }

    /// The write may have been carried out or not, block by block.
    fn maybe(&mut self, sent: &Sent) {
        for (i, may) in self.range(sent).iter_mut().enumerate() {
            match &sent.op {
                Op::Write(stamps) => may.push(stamps[i]),
                Op::Trim => may.push(0),
                Op::Read | Op::Sync => {}
            }
        }
    }
}

struct Run {
    machine: Machine,
    model: Model,
    sent: [Option<Sent>; 31],
    rng: Prng,
    next: u64,
    seed: u64,
    checks: u32,
    reads: u32,
}

impl Run {
    fn new(seed: u64) -> Run {
        let machine = Machine::started(&config());
        let model = Model(vec![vec![0]; BLOCKS as usize]);
        let rng = Prng::stream(seed, "commands", 0);
        Run { machine, model, sent: [const { None }; 31], rng, next: 1, seed, checks: 0, reads: 0 }
    }

    /// Blocks that no command in flight touches.
    fn free_range(&mut self) -> (u32, u32) {
        loop {
            let most = if self.rng.below(8) == 0 { 200 } else { 6 };
            let blocks = 1 + self.rng.below(most) as u32;
            let block = self.rng.below(u64::from(BLOCKS - blocks)) as u32;
            let is_free = self.sent.iter().flatten().all(|s| s.block + s.blocks <= block || block + blocks <= s.block);
            if is_free {
                return (block, blocks);
            }
        }
    }

    fn send(&mut self, tag: u8) {
        let (block, blocks) = self.free_range();
        let bytes = blocks * BLOCK as u32;
        let (mut data, mut expected) = (Vec::new(), bytes);
        let (op, cdb) = match self.rng.below(10) {
            0..4 => (Op::Read, Cdb::Read { form: Form::Ten, lba: block.into(), blocks, flags: 0 }),
            4..8 => {
                let stamps: Vec<u64> = (self.next..).take(blocks as usize).collect();
                self.next += u64::from(blocks);
                data = stamps.iter().flat_map(|stamp| stamp.to_le_bytes().repeat(BLOCK / 8)).collect();
                let flags = if self.rng.below(4) == 0 { FLAG_FUA } else { 0 };
                (Op::Write(stamps), Cdb::Write { form: Form::Sixteen, lba: block.into(), blocks, flags })
            }
            8 => {
                encode_unmap(&[(block.into(), blocks)], &mut data);
                expected = data.len() as u32;
                (Op::Trim, Cdb::Unmap { list_bytes: data.len() as u16 })
            }
            _ => {
                expected = 0;
                (Op::Sync, Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false })
            }
        };
        self.machine.send(tag, 0, RequestBody::Command(Command { expected_bytes: expected, cdb }), &data);
        self.sent[usize::from(tag)] = Some(Sent { op, block, blocks });
    }

    fn completed(&mut self, transfers: u32) {
        for tag in (0..31).filter(|tag| transfers >> tag & 1 == 1) {
            let sent = self.sent[tag].take().expect("only what was sent completes");
            let (reply, data) = self.machine.port.reply(&self.machine.memory, tag as u8).unwrap();
            let ReplyBody::Response(Response { status, sense, .. }) = reply.body else { panic!("{reply:?}") };
            match status {
                Status::Good => {
                    self.reads += u32::from(matches!(sent.op, Op::Read));
                    let what = format!("seed {}", self.seed);
                    self.model.done(&sent, data, &what);
                }
                // The command was not carried out.
                Status::CheckCondition => {
                    assert_eq!(sense, Some(Sense::RESET_OCCURRED), "{sent:?}");
                    self.checks += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn wait(&mut self) {
        let done = self.machine.wait();
        self.completed(done.transfers);
    }

    /// Aborts a command as Linux does: QUERY TASK, ABORT TASK, and the slot is cleared.
    fn abort(&mut self, tag: u8) {
        for function in [0x80, 0x01] {
            let task = TaskRequest { function, lun: 0, task_tag: tag };
            let Machine { device, port, memory, now } = &mut self.machine;
            port.manage(&mut At(device, *now), memory, 0, task).unwrap();
            loop {
                let done = self.machine.wait();
                self.completed(done.transfers);
                if done.tasks == 1 {
                    break;
                }
            }
            let response = self.machine.port.task_reply(&self.machine.memory, 0).unwrap().service_response;
            let is_there = self.sent[usize::from(tag)].is_some();
            let expected = if function == 0x80 && is_there { 0x08 } else { 0x00 };
            // The command may have ended while the response was on its way.
            assert!(response == expected || function == 0x80 && response == 0x08, "{function:#x}: {response:#x}");
        }
        self.clear(1 << tag);
    }

    /// Takes commands back.
    fn clear(&mut self, transfers: u32) {
        let Machine { device, port, now, .. } = &mut self.machine;
        port.clear(&mut At(device, *now), transfers);
        for tag in (0..31).filter(|tag| transfers >> tag & 1 == 1) {
            if let Some(sent) = self.sent[tag].take() {
                self.model.maybe(&sent);
            }
        }
    }

    fn reset_unit(&mut self) {
        let task = TaskRequest { function: 0x08, lun: 0, task_tag: 0 };
        let Machine { device, port, memory, now } = &mut self.machine;
        port.manage(&mut At(device, *now), memory, 1, task).unwrap();
        loop {
            let done = self.machine.wait();
            self.completed(done.transfers);
            if done.tasks == 2 {
                break;
            }
        }
        assert_eq!(self.machine.port.task_reply(&self.machine.memory, 1).unwrap().service_response, 0);
        self.clear(0x7FFF_FFFF);
    }

    fn reset_host(&mut self) {
        let Machine { device, port, now, .. } = &mut self.machine;
        port.start(&mut At(device, *now)).unwrap();
        for sent in self.sent.iter_mut().filter_map(Option::take) {
            self.model.maybe(&sent);
        }
    }

    fn go(&mut self) {
        for _ in 0..6_000 {
            let tag = self.rng.below(31) as u8;
            let is_free = self.sent[usize::from(tag)].is_none();
            let busy = self.sent.iter().flatten().count();
            match self.rng.below(400) {
                0..3 if !is_free => self.abort(tag),
                3..6 if !is_free => self.clear(1 << tag),
                6 => self.reset_unit(),
                7 => self.reset_host(),
                _ if is_free && busy < 12 => self.send(tag),
                _ if busy > 0 => self.wait(),
                _ => {}
            }
        }
        while self.sent.iter().any(Option::is_some) {
            self.wait();
        }
    }
}

#[test]
fn every_read_returns_what_was_written() {
    for seed in 1..=6 {
        let mut run = Run::new(seed);
        run.go();
        run.machine.device.device.check_consistency().unwrap();
        assert!(run.reads > 500 && run.checks > 3, "{} reads, {} told of a reset", run.reads, run.checks);
        // Acknowledged and flushed data is there at the end.
        run.machine.now = run.machine.device.flush(run.machine.now).unwrap();
        run.machine.start();
        for block in 0..BLOCKS {
            let read = Cdb::Read { form: Form::Ten, lba: block.into(), blocks: 1, flags: 0 };
            let (_, data) = run.machine.command(5, 0, read, BLOCK as u32, &[]);
            run.model.done(&Sent { op: Op::Read, block, blocks: 1 }, &data, "at last");
        }
    }
}
