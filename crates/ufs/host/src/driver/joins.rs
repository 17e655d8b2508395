// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests that take several commands: the number of parts left of each, and the first error.

use readpath_proto::typed::Sense;

/// A block request with several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct JoinId(u32);

impl JoinId {
    /// For a request with one command.
    pub(super) const NONE: JoinId = JoinId(u32::MAX);
}

#[derive(Clone, Copy)]
struct Join {
    cookie: u32,
    left: u32,
    error: Option<Sense>,
}

#[derive(Default)]
pub(super) struct Joins {
    joins: Vec<Join>,
    free: Vec<JoinId>,
}

impl Joins {
    pub(super) fn begin(&mut self, cookie: u32, left: u32) -> JoinId {
        let join = Join { cookie, left, error: None };
        if let Some(id) = self.free.pop() {
            self.joins[id.0 as usize] = join;
            return id;
        }
        self.joins.push(join);
        JoinId((self.joins.len() - 1) as u32)
    }

    /// Ends a part. Returns the cookie and the first error of the request, if it was the last part.
    pub(super) fn end_part(&mut self, id: JoinId, error: Option<Sense>) -> Option<(u32, Option<Sense>)> {
        let join = &mut self.joins[id.0 as usize];
        join.error = join.error.or(error);
        join.left -= 1;
        if join.left > 0 {
            return None;
        }
        self.free.push(id);
        Some((join.cookie, join.error))
    }
}
