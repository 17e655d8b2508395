// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by the paths of a read: a run of its blocks, and its residual.

use crate::back::Op;
use crate::ids::{Lpn, TagRef};
use readpath_proto::typed::Residual;

/// Operations that one request may have in progress; the rest of a long read follows as they end.
pub(crate) const OPS_PER_REQUEST: u32 = 16;

/// Consecutive blocks of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The read.
    pub tag: TagRef,
    /// Number of the first block within the read.
    pub index: u32,
    /// Its logical page.
    pub lpn: Lpn,
    /// How many.
    pub blocks: u32,
}

impl Run {
    /// The blocks that an operation is for.
    pub(crate) fn of(op: &Op) -> Run {
        Run { tag: op.tag, index: op.index, lpn: Lpn(op.lpn), blocks: u32::from(op.count) }
    }

    /// All but the first `done`.
    #[inline(always)]
    pub(crate) fn behind(self, done: u32) -> Run {
        Run { index: self.index + done, lpn: self.lpn + done, blocks: self.blocks - done, ..self }
    }

    /// No more than the first `most`.
    #[inline(always)]
    pub(crate) fn at_most(self, most: u32) -> Run {
        Run { blocks: self.blocks.min(most), ..self }
    }
}

/// The bytes that the host expects against those that a command has for it (JESD220 §10.7.2).
#[cold]
pub(crate) fn residual(have: u64, expected: u32) -> Residual {
    let have = have.min(u64::from(u32::MAX)) as u32;
    match expected.checked_sub(have) {
        Some(0) => Residual::None,
        Some(more) => Residual::Under(more),
        None => Residual::Over(have - expected),
    }
}
