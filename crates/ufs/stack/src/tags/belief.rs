// SPDX-License-Identifier: MIT OR Apache-2.0
//! What blocks may read as, by the requests that were sent and how they ended. It knows no data.

/// Content of a slice, a buffer slot or a moving block: logical page plus one, whether a rule spoiled it, and version.
/// 0 = no data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Content(pub u64);

impl Content {
    /// Content after a torn program: no data.
    pub(super) const TORN: Content = Content(u64::MAX);
    const SPOILED: u64 = 1 << 31;

    pub(super) fn of(lpn: u32, version: u32) -> Self {
        Content(u64::from(lpn + 1) << 32 | u64::from(version))
    }

    /// Nobody has asked for this content.
    pub(super) fn spoiled(self) -> Self {
        Content(self.0 | Content::SPOILED)
    }

    pub(super) fn is_spoiled(self) -> bool {
        self.0 & Content::SPOILED != 0
    }

    pub(super) fn version(self) -> u32 {
        self.0 as u32 & !(Content::SPOILED as u32)
    }

    fn version_for(self, lpn: u32) -> Option<u32> {
        ((self.0 >> 32) as u32 == lpn + 1).then_some(self.version())
    }
}

/// Versions that a logical page may read as.
#[derive(Clone, Copy, Default)]
struct Expectation {
    /// Oldest version that a read may still return; 0 = never written.
    floor: u32,
    /// Newest version that a read may return.
    newest: u32,
    sent: u32,
    /// Newest version that was a discard.
    discarded: u32,
    /// Writes and discards in flight.
    in_flight: u16,
    /// Some of them overlapped, so acknowledgement of one does not say which is newest.
    overlapped: bool,
    /// Oldest version that may come back after a power cut: the newest that was flushed.
    durable: u32,
}

/// State of a block with unflushed writes after a power cut.
#[derive(Clone, Copy, Default)]
struct Remnant {
    /// Newest version sent before the cut; 0 = the block was not touched by a cut.
    cut: u32,
    /// The one version that survived, once a read has shown it.
    left: Option<u32>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Belief {
    expected: Vec<Expectation>,
    remnants: Vec<Remnant>,
    /// Blocks and versions acknowledged since the last flush; below, how many of them each flush in flight covers.
    acknowledged: Vec<(u32, u32)>,
    flushes: Vec<Option<usize>>,
}

impl Belief {
    /// The most bytes for each logical block.
    pub(super) const BYTES: u64 = (size_of::<Expectation>() + size_of::<Remnant>()) as u64;

    pub(super) fn new(logical_blocks: usize) -> Belief {
        Belief {
            expected: vec![Expectation::default(); logical_blocks],
            remnants: vec![Remnant::default(); logical_blocks],
            ..Belief::default()
        }
    }

    /// Bytes of what is expected.
    pub(super) fn bytes(&self) -> u64 {
        (self.expected.len() * size_of::<Expectation>()) as u64
    }

    /// The block holds version 1, which is durable.
    pub(super) fn preset(&mut self, lpn: u32) {
        let e = &mut self.expected[lpn as usize];
        (e.floor, e.newest, e.sent, e.durable) = (1, 1, 1, 1);
    }

    /// The newest version that was sent.
    pub(super) fn sent(&self, lpn: u32) -> u32 {
        self.expected[lpn as usize].sent
    }

    /// The oldest version that a read may return which is sent now.
    pub(super) fn floor(&self, lpn: u32) -> u32 {
        self.expected[lpn as usize].floor
    }

    /// The newest version that a read may return.
    pub(super) fn newest(&self, lpn: u32) -> u32 {
        self.expected[lpn as usize].newest
    }

    pub(super) fn write_begins(&mut self, lpn: u32, version: u32, discard: bool) {
        let e = &mut self.expected[lpn as usize];
        (e.sent, e.newest) = (version, version);
        e.overlapped |= e.in_flight > 0;
        e.in_flight += 1;
        if discard {
            e.discarded = version;
        }
    }

    pub(super) fn write_ends(&mut self, lpn: u32, version: u32, good: bool, fua: bool) {
        let e = &mut self.expected[lpn as usize];
        e.in_flight -= 1;
        // A write in flight together with it may have replaced it since.
        if good && !e.overlapped {
            e.floor = version;
            self.acknowledged.push((lpn, version));
            if fua {
                e.durable = e.durable.max(version);
            }
        }
        if e.in_flight == 0 {
            e.overlapped = false;
        }
    }

    pub(super) fn flush_begins(&mut self, slot: usize) {
        if self.flushes.len() <= slot {
            self.flushes.resize(slot + 1, None);
        }
        self.flushes[slot] = Some(self.acknowledged.len());
    }

    pub(super) fn flush_ends(&mut self, slot: usize, good: bool) {
        let Some(covered) = self.flushes[slot].take().filter(|_| good) else { return };
        for (lpn, version) in self.acknowledged.drain(..covered) {
            let e = &mut self.expected[lpn as usize];
            e.durable = e.durable.max(version);
        }
        // Other flushes in flight cover fewer by that number.
        self.flushes.iter_mut().flatten().for_each(|n| *n = n.saturating_sub(covered));
    }

    /// Whether a read may return this, which was sent when `floor` was the oldest that it may return.
    pub(super) fn allows(&mut self, lpn: u32, floor: u32, got: Content) -> bool {
        let e = &mut self.expected[lpn as usize];
        let remnant = &mut self.remnants[lpn as usize];
        let is_left = |v: u32| v > remnant.cut || remnant.left.is_none_or(|left| left == v);
        let right = match got {
            Content(0) => floor == 0 || e.discarded >= floor,
            content => content.version_for(lpn).is_some_and(|v| (floor..=e.newest).contains(&v) && is_left(v)),
        };
        // Zeros may come from a discard before the cut or after it.
        let version = if got == Content(0) { e.discarded } else { got.version() };
        if right && remnant.left.is_none() && version <= remnant.cut {
            remnant.left = Some(version);
            e.floor = e.floor.max(version);
            e.durable = e.durable.max(version);
            if e.newest == remnant.cut {
                e.newest = version;
            }
        }
        right
    }

    pub(super) fn power_cut(&mut self) {
        self.acknowledged.clear();
        self.flushes.fill(None);
        for (e, remnant) in self.expected.iter_mut().zip(&mut self.remnants) {
            if e.newest > e.durable {
                e.floor = e.durable;
                *remnant = Remnant { cut: e.sent, left: None };
                e.newest = e.sent;
            }
        }
    }
}
