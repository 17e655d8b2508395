// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs that share a flow: each makes its share of their requests, as fio regulates it (`flow`, `flow_id`,
//! `flow_sleep`). A job that is ahead of its share is held until the others have caught up, or until it is the only
//! one. Knows no streams and no stack.

use readpath_kit::Ns;
use readpath_workload::Job;

/// The jobs of one `flow_id`.
struct Shared {
    id: u32,
    /// Their requests, and 1.
    made: u64,
    weight: u64,
}

struct Member {
    of: usize,
    weight: u64,
    sleep: Ns,
    made: u64,
    /// Since when it is held.
    held: Option<Ns>,
}

/// All flows of a phase. A job is a member from the phase's start, whatever its own start, until it is over.
pub(crate) struct Flows {
    shared: Vec<Shared>,
    /// By job; empty when no job has a flow.
    members: Vec<Option<Member>>,
}

impl Flows {
    pub(crate) fn new(jobs: &[Job]) -> Flows {
        let mut flows = Flows { shared: Vec::new(), members: Vec::new() };
        if jobs.iter().all(|job| job.flow.is_none()) {
            return flows;
        }
        for job in jobs {
            let member = job.flow.map(|flow| {
                let of = flows.shared.iter().position(|s| s.id == flow.id).unwrap_or_else(|| {
                    flows.shared.push(Shared { id: flow.id, made: 1, weight: 0 });
                    flows.shared.len() - 1
                });
                let weight = u64::from(flow.weight);
                flows.shared[of].weight += weight;
                Member { of, weight, sleep: flow.sleep, made: 0, held: None }
            });
            flows.members.push(member);
        }
        flows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn is_ahead(&self, member: &Member) -> bool {
        let shared = &self.shared[member.of];
        u128::from(member.made) * u128::from(shared.weight) > u128::from(member.weight) * u128::from(shared.made)
    }

    /// Whether a job may not make a request now. If so, the time that it sleeps for once nothing is in flight, or
    /// `None` if it is held until [`Flows::release`].
    #[cold]
    pub(crate) fn holds(&mut self, job: u32, is_idle: bool, now: Ns) -> Option<Option<Ns>> {
        let member = self.members.get(job as usize)?.as_ref()?;
        if !self.is_ahead(member) {
            return None;
        }
        let member = self.members[job as usize].as_mut()?;
        if member.sleep > Ns::ZERO && !is_idle {
            return Some(Some(member.sleep));
        }
        member.held.get_or_insert(now);
        Some(None)
    }

    /// A job has made a request.
    #[cold]
    pub(crate) fn count(&mut self, job: u32) {
        if let Some(Some(member)) = self.members.get_mut(job as usize) {
            member.made += 1;
            self.shared[member.of].made += 1;
        }
    }

    /// A job is over, and its share is that of the others.
    pub(crate) fn leave(&mut self, job: u32) {
        if let Some(member) = self.members.get_mut(job as usize).and_then(Option::take) {
            let shared = &mut self.shared[member.of];
            shared.made -= member.made;
            shared.weight -= member.weight;
        }
    }

    /// A held job that may go on, and when: at once, or at the end of a sleep, after each of which fio looks again.
    pub(crate) fn release(&mut self, now: Ns) -> Option<(u32, Ns)> {
        let may = |m: &Option<Member>| m.as_ref().is_some_and(|m| m.held.is_some() && !self.is_ahead(m));
        let job = self.members.iter().position(may)?;
        let member = self.members[job].as_mut()?;
        let since = member.held.take()?;
        let at = match member.sleep {
            Ns::ZERO => now,
            Ns(sleep) => since + Ns((now - since).0.div_ceil(sleep).max(1) * sleep),
        };
        Some((job as u32, at))
    }
}
