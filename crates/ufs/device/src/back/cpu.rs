// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware cores, first-in-first-out servers: until when they are reserved, and the work that they complete, in
//! order. It knows neither the purpose of its work nor the request that waits for it.

use crate::config::FirmwareTiming;
use crate::ids::TagRef;
use readpath_flash::OpId;
use readpath_kit::{FrontQueue, Ns};

/// Work of the firmware whose end is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A flash operation is handed to its die.
    Flash(OpId),
    /// A fetch from host memory is ready for the link.
    AskHost(OpId),
    /// A map page for host memory is ready for the link.
    WriteHost,
    /// Blocks from SRAM are ready for the link.
    Served {
        /// The read.
        tag: TagRef,
        /// Blocks served.
        count: u16,
    },
    /// The data of a write may enter the buffer.
    Accept(TagRef),
    /// The entries of a sub-region have been made.
    HandOut(TagRef),
    /// UNMAP has marked its map pages.
    Trimmed(TagRef),
    /// A command without media access has been carried out.
    Control(TagRef),
}

pub(crate) struct Cpu {
    timing: FirmwareTiming,
    /// When the core that is free first is free.
    free: Ns,
    /// Exists if there are several cores.
    others: Option<Box<Others>>,
    line: FrontQueue<(Ns, Work)>,
    /// Next event other than the end of a flash operation: the head of `line` or a deadline passed to `wake_at`.
    soon: Ns,
    /// When the newest command arrived or will arrive.
    last_command: Ns,
}

/// The cores that are not free first. They stand apart, because most devices have one core.
struct Others {
    /// When each is free.
    free: Vec<Ns>,
    /// When the work of any core that was reserved last leaves.
    leaves: Ns,
}

impl Others {
    /// A core was reserved until `free`, which becomes the time when the core that takes the next work is free. Returns
    /// when the work leaves.
    #[inline(never)]
    fn next_core(&mut self, free: &mut Ns) -> Ns {
        self.leaves = self.leaves.max(*free);
        let first = self.free.iter_mut().min().expect("there is another core");
        if *first < *free {
            std::mem::swap(first, free);
        }
        self.leaves
    }
}

impl Cpu {
    pub(crate) fn new(timing: FirmwareTiming) -> Self {
        Cpu {
            timing,
            free: Ns::ZERO,
            others: (timing.cores > 1).then(|| {
                let free = vec![Ns::ZERO; usize::from(timing.cores) - 1];
                Box::new(Others { free, leaves: Ns::ZERO })
            }),
            line: FrontQueue::with_capacity(256),
            soon: Ns::NEVER,
            last_command: Ns::ZERO,
        }
    }

    #[inline(always)]
    pub(crate) fn timing(&self) -> &FirmwareTiming {
        &self.timing
    }

    /// Reserves a core for `cost` from `now` on; returns the start, and the end, not before that of earlier work: what
    /// comes behind the cores is told in order.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, now: Ns, cost: Ns) -> (Ns, Ns) {
        let start = now.max(self.free);
        self.free = start + cost;
        match &mut self.others {
            None => (start, self.free),
            Some(others) => (start, others.next_core(&mut self.free)),
        }
    }

    /// When work that costs `cost` and arrives at `now` leaves the cores, if nothing else is done until then. With it
    /// arrives work that costs `other`, for which nobody waits.
    #[inline(always)]
    pub(crate) fn alone(&self, now: Ns, other: Ns, cost: Ns) -> Option<Ns> {
        match &self.others {
            None => Some(now.max(self.free) + other + cost),
            // Each on a core of its own; what leaves is told in order.
            Some(others) => (self.free <= now && others.leaves <= now).then(|| now + other.max(cost)),
        }
    }

    /// Keeps a core busy for `cost` with work that no request waits for.
    pub(crate) fn occupy(&mut self, now: Ns, cost: Ns) {
        if cost > Ns::ZERO {
            self.reserve(now, cost);
        }
    }

    /// Queues work that ends at `at`, not before the work queued earlier.
    #[inline(always)]
    pub(crate) fn will_be_done(&mut self, at: Ns, work: Work) {
        self.line.push_back((at, work));
        self.wake_at(at);
    }

    /// When the first queued work ends.
    #[inline]
    pub(crate) fn next(&self) -> Ns {
        self.line.front().map_or(Ns::NEVER, |work| work.0)
    }

    /// Takes the first queued work.
    pub(crate) fn take(&mut self) -> Option<Work> {
        self.line.pop_front().map(|(_, work)| work)
    }

    /// Time of the next event other than the end of a flash operation.
    #[inline(always)]
    pub(crate) fn soon(&self) -> Ns {
        self.soon
    }

    #[inline(always)]
    pub(crate) fn wake_at(&mut self, at: Ns) {
        self.soon = self.soon.min(at);
    }

    /// Computes [`Cpu::soon`] again; `others` is the earliest deadline outside the core.
    #[inline]
    pub(crate) fn find_soon(&mut self, others: Ns) {
        self.soon = self.next().min(others);
    }

    #[inline(always)]
    pub(crate) fn command_at(&mut self, at: Ns) {
        self.last_command = at;
    }

    pub(crate) fn last_command(&self) -> Ns {
        self.last_command
    }

    /// Drops all work.
    pub(crate) fn lose_power(&mut self) {
        self.line.clear();
        self.set_busy_until(Ns::ZERO);
    }

    /// The cores begin nothing before `ready`.
    pub(crate) fn set_busy_until(&mut self, ready: Ns) {
        self.free = ready;
        if let Some(others) = &mut self.others {
            others.free.fill(ready);
            others.leaves = Ns::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cores: u8) -> Cpu {
        Cpu::new(FirmwareTiming {
            cores,
            read_command: Ns::ZERO,
            flash_op: Ns::ZERO,
            hpb_read_extra: Ns::ZERO,
            write_command: Ns::ZERO,
            buffer_read: Ns::ZERO,
            unmapped_read: None,
            make_entry: Ns::ZERO,
            control: Ns::ZERO,
            trim_map_page: Ns::ZERO,
        })
    }

    #[test]
    fn work_of_several_cores_leaves_in_the_order_in_which_it_came() {
        let mut cpu = cpu(2);
        assert_eq!(cpu.reserve(Ns(0), Ns(100)), (Ns(0), Ns(100)));
        // The other core is done sooner, and waits with the result.
        assert_eq!(cpu.reserve(Ns(10), Ns(20)), (Ns(10), Ns(100)));
        // That core takes more meanwhile.
        assert_eq!(cpu.reserve(Ns(40), Ns(90)), (Ns(40), Ns(130)));
        assert_eq!(cpu.reserve(Ns(40), Ns(5)), (Ns(100), Ns(130)));

        cpu.set_busy_until(Ns(1_000));
        assert_eq!(cpu.reserve(Ns(500), Ns(7)), (Ns(1_000), Ns(1_007)));
        assert_eq!(cpu.reserve(Ns(500), Ns(8)), (Ns(1_000), Ns(1_008)));
    }

    /// What is foreseen of work alone is what happens to it.
    #[test]
    fn work_alone_is_what_it_is_with_reservations() {
        for cores in 1..4 {
            let mut cpu = cpu(cores);
            for (now, other, cost) in [(5, 0, 7), (100, 40, 7), (300, 4, 70), (1_000, 0, 1)] {
                let foreseen = cpu.alone(Ns(now), Ns(other), Ns(cost));
                cpu.occupy(Ns(now), Ns(other));
                assert_eq!(foreseen, Some(cpu.reserve(Ns(now), Ns(cost)).1), "{cores} cores at {now}");
            }
            // Nobody waits for this: several cores do not say what comes behind it, one does.
            cpu.occupy(Ns(2_000), Ns(500));
            let foreseen = cpu.alone(Ns(2_100), Ns(3), Ns(20));
            assert_eq!(foreseen, (cores == 1).then_some(Ns(2_523)), "{cores} cores");
        }
    }
}
