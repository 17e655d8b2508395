// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a request for bytes asks of blocks of 4 KiB. Where it begins or ends within a block, that block is read and
//! written back with what is new. It knows no client and no device.

use readpath_run::rules::Op;
use readpath_workload::IoKind;

pub(crate) const BLOCK: usize = readpath_kit::BLOCK_BYTES as usize;

/// An operation on whole blocks. The steps of a request follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Read all blocks that the request touches.
    Read { block: u32, blocks: u32 },
    /// Read blocks and drop the data.
    Cache { block: u32, blocks: u32 },
    /// Read a block that only part of the request's data goes to.
    Fetch { block: u32 },
    /// Write that block with `bytes` bytes at `from` changed: to the request's data at `at`, or to zeros.
    Merge { block: u32, from: usize, bytes: usize, at: usize },
    /// Write the request's data at `at`.
    Write { block: u32, blocks: u32, at: usize, fua: bool },
    /// Write zeros.
    Zero { block: u32, blocks: u32 },
    /// Discard blocks, which read as zeros then.
    Discard { block: u32, blocks: u32 },
    /// Make everything durable.
    Flush,
}

/// A request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Ask {
    Read,
    Cache,
    Write {
        fua: bool,
    },
    #[default]
    Flush,
    Trim {
        fua: bool,
    },
    Zero {
        fua: bool,
        no_hole: bool,
    },
}

impl Ask {
    /// The kind of request that it counts as.
    pub(crate) fn kind(self) -> IoKind {
        match self {
            Ask::Read | Ask::Cache => IoKind::Read,
            Ask::Write { .. } | Ask::Zero { .. } => IoKind::Write,
            Ask::Flush => IoKind::Flush,
            Ask::Trim { .. } => IoKind::Trim,
        }
    }

    /// What it is to a rule.
    pub(crate) fn op(self) -> Op {
        match self {
            Ask::Read | Ask::Cache => Op::Read,
            Ask::Write { .. } => Op::Write,
            Ask::Flush => Op::Flush,
            Ask::Trim { .. } => Op::Trim,
            Ask::Zero { .. } => Op::Zero,
        }
    }

    /// Whether its changes are durable when it is answered.
    pub(crate) fn is_durable(self) -> bool {
        self == Ask::Flush || self != self.without_promise()
    }

    /// The request without its promise of durability.
    pub(crate) fn without_promise(self) -> Ask {
        match self {
            Ask::Write { .. } => Ask::Write { fua: false },
            Ask::Trim { .. } => Ask::Trim { fua: false },
            Ask::Zero { no_hole, .. } => Ask::Zero { fua: false, no_hole },
            ask => ask,
        }
    }
}

/// The steps of a request, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    steps: [Step; Steps::MOST],
    len: u8,
    next: u8,
    /// Blocks of the step that is due that are done.
    part: u32,
}

impl Default for Steps {
    /// No steps.
    fn default() -> Self {
        Steps { steps: [Step::Flush; Steps::MOST], len: 0, next: 0, part: 0 }
    }
}

impl Steps {
    const MOST: usize = 6;

    /// The steps of a request for `bytes` bytes at `offset`, which lie within the device.
    pub(crate) fn new(ask: Ask, offset: u64, bytes: u32) -> Steps {
        let mut steps = Steps::default();
        let (end, size) = (offset + u64::from(bytes), BLOCK as u64);
        // Blocks of which all bytes are meant, and blocks that are touched at all.
        let (inner, inner_end) = (offset.div_ceil(size) as u32, (end / size) as u32);
        let (outer, outer_end) = ((offset / size) as u32, end.div_ceil(size) as u32);
        let whole = inner_end.saturating_sub(inner);
        match ask {
            Ask::Read => steps.push(Step::Read { block: outer, blocks: outer_end - outer }),
            Ask::Cache => steps.push(Step::Cache { block: outer, blocks: outer_end - outer }),
            Ask::Flush => steps.push(Step::Flush),
            Ask::Trim { fua } => {
                // Partial blocks stay: a trim is a hint.
                steps.push_if(whole > 0, Step::Discard { block: inner, blocks: whole });
                steps.push_if(fua && whole > 0, Step::Flush);
            }
            Ask::Write { .. } | Ask::Zero { .. } => {
                let head = (offset % size) as usize;
                let head_bytes = if head > 0 { (BLOCK - head).min(bytes as usize) } else { 0 };
                let tail_bytes = if outer_end > inner_end && inner_end >= inner { (end % size) as usize } else { 0 };
                if head_bytes > 0 {
                    steps.push(Step::Fetch { block: outer });
                    steps.push(Step::Merge { block: outer, from: head, bytes: head_bytes, at: 0 });
                }
                if whole > 0 {
                    steps.push(match ask {
                        Ask::Zero { no_hole: true, .. } => Step::Zero { block: inner, blocks: whole },
                        Ask::Zero { .. } => Step::Discard { block: inner, blocks: whole },
                        _ => Step::Write { block: inner, blocks: whole, at: head_bytes, fua: false },
                    });
                }
                if tail_bytes > 0 {
                    let at = bytes as usize - tail_bytes;
                    steps.push(Step::Fetch { block: inner_end });
                    steps.push(Step::Merge { block: inner_end, from: 0, bytes: tail_bytes, at });
                }
                if matches!(ask, Ask::Write { fua: true } | Ask::Zero { fua: true, .. }) {
                    steps.make_durable();
                }
            }
        }
        steps
    }

    fn push(&mut self, step: Step) {
        self.steps[usize::from(self.len)] = step;
        self.len += 1;
    }

    fn push_if(&mut self, wanted: bool, step: Step) {
        if wanted {
            self.push(step);
        }
    }

    fn make_durable(&mut self) {
        match &mut self.steps[..usize::from(self.len)] {
            [Step::Write { fua, .. }] => *fua = true,
            _ => self.push(Step::Flush),
        }
    }

    /// The step that is due, or the rest of it.
    pub(crate) fn now(&self) -> Option<Step> {
        let mut step = (self.next < self.len).then(|| self.steps[usize::from(self.next)]);
        if let Some(Step::Zero { block, blocks } | Step::Cache { block, blocks }) = &mut step {
            *block += self.part;
            *blocks -= self.part;
        }
        step
    }

    /// The step that is due is done, or `part` blocks of it.
    pub(crate) fn done(&mut self, part: u32) {
        match self.now() {
            Some(Step::Zero { blocks, .. } | Step::Cache { blocks, .. }) if part < blocks => self.part += part,
            _ => (self.next, self.part) = (self.next + 1, 0),
        }
    }

    /// Whether any step, or a part of one, is done.
    pub(crate) fn have_begun(&self) -> bool {
        self.next > 0 || self.part > 0
    }

    /// All steps are due again.
    pub(crate) fn begin_again(&mut self) {
        (self.next, self.part) = (0, 0);
    }

    /// Whether a block is read to be written back, so that no other request may write it meanwhile.
    pub(crate) fn has_edges(&self) -> bool {
        self.steps[..usize::from(self.len)].iter().any(|step| matches!(step, Step::Fetch { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_kit::Prng;

    fn all(ask: Ask, offset: u64, bytes: u32) -> Vec<Step> {
        let mut steps = Steps::new(ask, offset, bytes);
        let mut list = Vec::new();
        while let Some(step) = steps.now() {
            list.push(step);
            steps.done(u32::MAX);
        }
        list
    }

    #[test]
    fn whole_blocks_take_one_step() {
        assert_eq!(all(Ask::Read, 8192, 4096), [Step::Read { block: 2, blocks: 1 }]);
        let write = |fua| Step::Write { block: 2, blocks: 2, at: 0, fua };
        assert_eq!(all(Ask::Write { fua: false }, 8192, 8192), [write(false)]);
        assert_eq!(all(Ask::Write { fua: true }, 8192, 8192), [write(true)]);
        assert_eq!(all(Ask::Trim { fua: false }, 0, 4096), [Step::Discard { block: 0, blocks: 1 }]);
        assert_eq!(all(Ask::Trim { fua: true }, 1, 4096), [], "not one whole block");
        let zero = Ask::Zero { fua: true, no_hole: false };
        assert_eq!(all(zero, 0, 4096), [Step::Discard { block: 0, blocks: 1 }, Step::Flush]);
    }

    #[test]
    fn a_flush_and_what_has_fua_are_durable() {
        for fua in [false, true] {
            for ask in [Ask::Write { fua }, Ask::Trim { fua }, Ask::Zero { fua, no_hole: true }] {
                assert_eq!((ask.is_durable(), ask.without_promise().is_durable()), (fua, false), "{ask:?}");
            }
        }
        assert!(Ask::Flush.is_durable() && !Ask::Read.is_durable() && !Ask::Cache.is_durable());
    }

    #[test]
    fn long_requests_are_done_in_parts() {
        let mut steps = Steps::new(Ask::Zero { fua: false, no_hole: true }, 0, 40960);
        assert!(!steps.have_begun());
        steps.done(8);
        assert_eq!((steps.now(), steps.have_begun()), (Some(Step::Zero { block: 8, blocks: 2 }), true));
        steps.begin_again();
        assert_eq!((steps.now(), steps.have_begun()), (Some(Step::Zero { block: 0, blocks: 10 }), false));
        steps.done(8);
        steps.done(2);
        assert_eq!(steps.now(), None);
    }

    /// Steps on blocks do to a disk what the request means for its bytes.
    #[test]
    fn steps_do_what_requests_mean() {
        let rng = &mut Prng::new(1);
        let mut disk = vec![0u8; 8 * BLOCK];
        let mut expected = disk.clone();
        for round in 0..20_000u32 {
            let limit = if rng.below(2) == 0 { 600 } else { 3 * BLOCK as u64 };
            let bytes = 1 + rng.below(limit) as usize;
            let mut offset = rng.below((disk.len() - bytes) as u64 + 1) as usize;
            if rng.below(3) == 0 {
                offset -= offset % BLOCK;
            }
            let is_write = rng.below(2) == 0;
            let data: Vec<u8> = (0..bytes).map(|i| if is_write { (round + i as u32) as u8 | 1 } else { 0 }).collect();
            let ask = match is_write {
                true => Ask::Write { fua: rng.below(2) == 0 },
                false => Ask::Zero { fua: rng.below(2) == 0, no_hole: rng.below(2) == 0 },
            };
            expected[offset..offset + bytes].copy_from_slice(&data);
            let mut fetched = None;
            for step in all(ask, offset as u64, bytes as u32) {
                let at = |block: u32| block as usize * BLOCK;
                match step {
                    Step::Fetch { block } => fetched = Some((block, disk[at(block)..at(block) + BLOCK].to_vec())),
                    Step::Merge { block, from, bytes, at: of } => {
                        let (fetched, mut merged) = fetched.take().expect("it was fetched before");
                        assert_eq!(fetched, block);
                        merged[from..from + bytes].copy_from_slice(&data[of..of + bytes]);
                        disk[at(block)..at(block) + BLOCK].copy_from_slice(&merged);
                    }
                    Step::Write { block, blocks, at: of, .. } => {
                        let n = blocks as usize * BLOCK;
                        disk[at(block)..at(block) + n].copy_from_slice(&data[of..of + n]);
                    }
                    Step::Zero { block, blocks } | Step::Discard { block, blocks } => {
                        disk[at(block)..at(block + blocks)].fill(0);
                    }
                    Step::Flush => {}
                    Step::Read { .. } | Step::Cache { .. } => unreachable!("nothing was to be read"),
                }
            }
            assert!(disk == expected, "{ask:?} of {bytes} bytes at {offset}");
        }
    }
}
