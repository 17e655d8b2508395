// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search: states are made and tried side by side, equal ones once, and what fails is reduced. Which states are
//! tried and what is found does not depend on the number of threads.

use crate::base::Base;
use crate::check::{Check, Outcome, Ran};
use crate::error::CrashError;
use crate::kept::Kept;
use crate::log::{Digest, Log};
use crate::reduce::{first, reduce};
use crate::states::States;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many failing states are reduced: those that lose least.
const REDUCED: usize = 3;

/// A search for some time ends when so many random states in a row were known.
const ENOUGH: u64 = 10_000;

/// The number of states that are not looked at for themselves.
const NO_NUMBER: u64 = u64::MAX;

/// How long a search goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// So many states are looked at.
    States(u64),
    /// So long, or until nothing new comes.
    Time(Duration),
}

/// How far a search has come.
#[derive(Default)]
pub struct Progress {
    /// States that were looked at.
    pub looked_at: AtomicU64,
    /// States that failed.
    pub failed: AtomicU64,
}

/// A search.
pub struct Hunt<'a, T> {
    /// The content before.
    pub base: &'a Base,
    /// The recorded changes.
    pub log: &'a Log,
    /// The states.
    pub states: &'a T,
    /// The program.
    pub check: &'a Check,
    /// Where sockets are made: an empty folder with a short path.
    pub folder: &'a Path,
    /// How many states are tried at a time.
    pub threads: usize,
    /// How long it goes on.
    pub budget: Budget,
    /// Known outcomes.
    pub kept: Option<Kept>,
    /// It ends early if this is set.
    pub stop: &'a AtomicBool,
    /// How far it has come.
    pub progress: &'a Progress,
}

/// A state that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tried {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// How much it loses.
    pub losses: usize,
    /// How it ended.
    pub ran: Ran,
}

/// A failing state with the fewest losses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduced {
    /// Its name.
    pub name: String,
    /// The name of the state that it was made of.
    pub from: String,
    /// When power goes: CHECK survives the moment before with the same losses.
    pub moment: String,
    /// What it loses, a line each; empty if the moment alone is enough.
    pub losses: Vec<String>,
    /// How it ended.
    pub ran: Ran,
}

/// What a search has found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Found {
    /// States that were looked at.
    pub looked_at: u64,
    /// Of those, systematic ones; and how many of those there are.
    pub systematic: (u64, u64),
    /// Different states among them.
    pub different: u64,
    /// States whose outcome was known.
    pub known: u64,
    /// States that failed, by number.
    pub failed: Vec<Tried>,
    /// The smallest failing states.
    pub reduced: Vec<Reduced>,
}

/// A state that was seen: the first number that it had, and its outcome when it is known.
struct Seen {
    first: u64,
    ran: Option<Ran>,
}

#[derive(Default)]
struct Shared {
    next: u64,
    seen: HashMap<Digest, Seen>,
    /// States since the last one that nobody had seen.
    since_new: u64,
    known: u64,
    error: Option<CrashError>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: States> Hunt<'_, T> {
    /// Tries one state.
    ///
    /// # Errors
    /// As [`Hunt::search`].
    pub fn one(&self, spec: &T::Spec) -> Result<Ran, CrashError> {
        let state = self.states.state(spec, self.base)?;
        let parts = (self.log, self.base, &state);
        self.check.run(parts, &self.states.name(spec), self.folder, self.stop)
    }

    /// Tries all states.
    ///
    /// # Errors
    /// The image cannot be read, the program cannot be started or does not survive a state in which nothing is lost, an
    /// outcome cannot be kept, or the search was to stop.
    pub fn search(&self) -> Result<Found, CrashError> {
        let shared = Mutex::new(Shared::default());
        let until = match self.budget {
            Budget::States(_) => None,
            Budget::Time(time) => Instant::now().checked_add(time),
        };
        let Some(whole) = self.states.whole() else { return Ok(Found::default()) };
        let ran = self.outcome(&whole, &shared, NO_NUMBER)?;
        if let Some(Ran { outcome, said }) = ran.filter(|ran| ran.outcome != Outcome::Survived) {
            return Err(CrashError::Whole { how: outcome.to_string(), said });
        }
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                let shared = &shared;
                scope.spawn(move || {
                    if let Err(error) = self.work(shared, until) {
                        lock(shared).error.get_or_insert(error);
                    }
                });
            }
        });
        if let Some(error) = lock(&shared).error.take() {
            return Err(error);
        }
        self.found(&shared)
    }

    /// Takes numbers until there are none, or another worker has failed.
    fn work(&self, shared: &Mutex<Shared>, until: Option<Instant>) -> Result<(), CrashError> {
        loop {
            let number = {
                let mut shared = lock(shared);
                let is_over = match self.budget {
                    Budget::States(most) => shared.next >= most,
                    Budget::Time(_) => {
                        let is_known = shared.since_new >= ENOUGH && shared.next >= self.states.systematic() + ENOUGH;
                        is_known || until.is_some_and(|until| Instant::now() >= until)
                    }
                };
                if is_over || shared.error.is_some() {
                    return Ok(());
                }
                shared.next += 1;
                shared.next - 1
            };
            if self.stop.load(Ordering::Relaxed) {
                return Err(CrashError::Interrupted);
            }
            let Some(spec) = self.states.nth(number) else {
                lock(shared).next = number;
                return Ok(());
            };
            let ran = self.outcome(&spec, shared, number)?;
            let has_failed = ran.is_some_and(|ran| ran.outcome != Outcome::Survived);
            self.progress.failed.fetch_add(has_failed.into(), Ordering::Relaxed);
            self.progress.looked_at.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The outcome of a state, which has this number; none if another worker is about to know it.
    fn outcome(&self, spec: &T::Spec, shared: &Mutex<Shared>, number: u64) -> Result<Option<Ran>, CrashError> {
        let state = self.states.state(spec, self.base)?;
        let digest = state.digest(self.log);
        let known = self.kept.as_ref().and_then(|kept| kept.get(digest));
        {
            let mut shared = lock(shared);
            if let Some(seen) = shared.seen.get_mut(&digest) {
                seen.first = seen.first.min(number);
                let ran = seen.ran.clone();
                shared.since_new += 1;
                return Ok(ran);
            }
            shared.since_new = 0;
            shared.known += u64::from(known.is_some());
            shared.seen.insert(digest, Seen { first: number, ran: known.cloned() });
        }
        if let Some(known) = known {
            return Ok(Some(known.clone()));
        }
        let parts = (self.log, self.base, &state);
        let ran = self.check.run(parts, &self.states.name(spec), self.folder, self.stop)?;
        self.kept.as_ref().map_or(Ok(()), |kept| kept.add(digest, &ran))?;
        if let Some(seen) = lock(shared).seen.get_mut(&digest) {
            seen.ran = Some(ran.clone());
        }
        Ok(Some(ran))
    }

    fn found(&self, shared: &Mutex<Shared>) -> Result<Found, CrashError> {
        let (looked_at, different, known, mut failed) = {
            let shared = lock(shared);
            let has_failed = |seen: &&Seen| seen.ran.as_ref().is_some_and(|ran| ran.outcome != Outcome::Survived);
            let failed = shared.seen.values().filter(has_failed).filter(|seen| seen.first != NO_NUMBER);
            let failed: Vec<(u64, Option<Ran>)> = failed.map(|seen| (seen.first, seen.ran.clone())).collect();
            let different = shared.seen.values().filter(|seen| seen.first != NO_NUMBER).count() as u64;
            (shared.next, different, shared.known, failed)
        };
        failed.sort_by_key(|&(number, _)| number);
        let all = self.states.systematic();
        let mut found =
            Found { looked_at, systematic: (looked_at.min(all), all), different, known, ..Found::default() };
        for (number, ran) in failed {
            let (Some(spec), Some(ran)) = (self.states.nth(number), ran) else { continue };
            let losses = self.states.losses(&spec, self.base)?.len();
            found.failed.push(Tried { number, name: self.states.name(&spec), losses, ran });
        }
        let mut smallest: Vec<(usize, u64)> = found.failed.iter().map(|tried| (tried.losses, tried.number)).collect();
        smallest.sort_unstable();
        for (_, number) in smallest.into_iter().take(REDUCED) {
            let Some(spec) = self.states.nth(number) else { continue };
            let reduced = self.reduced(&spec, shared)?;
            if found.reduced.iter().all(|other| other.name != reduced.name) {
                found.reduced.push(reduced);
            }
        }
        found.reduced.sort_by_key(|reduced| reduced.losses.len());
        Ok(found)
    }

    /// Takes losses back as long as the state still fails, and then the moment: so that of several promises that were
    /// not kept one is left.
    fn reduced(&self, spec: &T::Spec, shared: &Mutex<Shared>) -> Result<Reduced, CrashError> {
        let mut last = None;
        let mut fails = |smaller: T::Spec| -> Result<bool, CrashError> {
            if self.stop.load(Ordering::Relaxed) {
                return Err(CrashError::Interrupted);
            }
            let ran = self.outcome(&smaller, shared, NO_NUMBER)?;
            let ran = ran.filter(|ran| ran.outcome != Outcome::Survived);
            let fails = ran.is_some();
            if let Some(ran) = ran {
                last = Some((smaller, ran));
            }
            Ok(fails)
        };
        let losses = self.states.losses(spec, self.base)?;
        let all = fails(self.states.with_losses(spec, &losses))?;
        debug_assert!(all, "it failed before");
        let losses = reduce(losses, |losses| fails(self.states.with_losses(spec, losses)))?;
        let smallest = self.states.with_losses(spec, &losses);
        let earlier = self.states.earlier(&smallest);
        let moment = first(earlier.len(), |n| fails(earlier[n].clone()))?;
        if let Some(smallest) = earlier.get(moment) {
            let losses = self.states.losses(smallest, self.base)?;
            reduce(losses, |losses| fails(self.states.with_losses(smallest, losses)))?;
        }
        let Some((smallest, ran)) = last else { unreachable!("the outcome of a state that failed is known") };
        Ok(Reduced {
            name: self.states.name(&smallest),
            from: self.states.name(spec),
            moment: self.states.moment(&smallest),
            losses: self.states.described(&smallest),
            ran,
        })
    }
}
