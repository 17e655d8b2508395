// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in progress as others see and change them: a [`Board`] with a [`Post`] for each planned run. Between requests
//! the run now and then publishes a copy of what host and device answer ([`View`]) at its post, and makes the changes
//! of HPB parameters that were asked for there. All others read the copy.
//!
//! It knows no names of files and no sockets, and costs nothing without a board.

use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::{Driver, HpbCounters, HpbParam, HpbParams, ParamError};
use readpath_kit::Ns;
use readpath_proto::desc::{DeviceDescriptor, parse_string};
use readpath_proto::query::{attribute, descriptor, opcode};
use readpath_proto::typed::QueryRequest;
use readpath_stack::{Payload, Stack, Wire};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Logical units that a device may have.
const UNITS: u8 = 8;
/// Flags and attributes with lower numbers are shown.
const NUMBERS: usize = 32;
/// Changes that are remembered one by one.
const REMEMBERED: usize = 8;

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Its host has not found its device yet.
    Waiting,
    /// The run is in progress.
    Running,
    /// Ended, well or not.
    Over,
}

/// A logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitView {
    /// Its number.
    pub lun: u8,
    /// Its unit descriptor, as read.
    pub descriptor: Vec<u8>,
    /// dDynCapNeeded, or nothing if the device refuses.
    pub dyn_cap_needed: Option<u32>,
    /// Its HPB, if the host uses it.
    pub hpb: Option<HpbView>,
}

/// HPB of a logical unit at the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbView {
    /// Counters since the host found the device.
    pub counters: HpbCounters,
    /// Its parameters.
    pub params: HpbParams,
    /// Whether the host heeds each parameter, in the order of [`HpbParam::ALL`].
    heeded: [bool; HpbParam::ALL.len()],
}

impl HpbView {
    /// Whether the unit heeds a parameter.
    pub fn takes(&self, param: HpbParam) -> bool {
        HpbParam::ALL.into_iter().zip(self.heeded).any(|(p, heeded)| p == param && heeded)
    }
}

/// What host and device answer at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Virtual time.
    pub now: Ns,
    /// Requests that had ended.
    pub ios: u64,
    /// Descriptors by number (IDN), as read; empty if the device has none.
    pub descriptors: [Vec<u8>; 16],
    /// Manufacturer, product, OEM, serial number, product revision.
    pub strings: [Option<String>; 5],
    /// Flags by number; nothing if the device refuses.
    pub flags: [Option<bool>; NUMBERS],
    /// Attributes by number; nothing if the device refuses.
    pub attributes: [Option<u32>; NUMBERS],
    /// Logical units that the host has found.
    pub units: Vec<UnitView>,
}

/// A parameter that was changed while a run went on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Virtual time of the change.
    pub at: Ns,
    /// Logical unit.
    pub lun: u8,
    /// The parameter.
    pub param: HpbParam,
    /// The new value.
    pub value: u32,
}

/// Why a parameter was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum StoreError {
    /// ENODEV: there is no host any more, or not yet.
    #[error("the run is not in progress")]
    NotRunning,
    /// The host refused.
    #[error(transparent)]
    Refused(#[from] ParamError),
}

/// A change that was asked of a run, and its answer.
struct Letter {
    id: u64,
    lun: u8,
    param: HpbParam,
    value: u32,
    answer: Option<Result<(), StoreError>>,
}

struct Inner {
    state: RunState,
    view: Option<View>,
    letters: Vec<Letter>,
    next_id: u64,
    changes: Vec<Change>,
    changed: u64,
}

/// One run.
pub struct Post {
    /// Name of its case.
    pub case: String,
    /// Name of its variant.
    pub variant: String,
    inner: Mutex<Inner>,
    answered: Condvar,
}

impl Post {
    fn new(case: String, variant: String) -> Self {
        let inner = Inner {
            state: RunState::Waiting,
            view: None,
            letters: Vec::new(),
            next_id: 0,
            changes: Vec::new(),
            changed: 0,
        };
        Post { case, variant, inner: Mutex::new(inner), answered: Condvar::new() }
    }

    /// The data behind the lock is consistent after every statement, so a panic while it was held does no harm.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the progress of the run and what it published last. The call should not take long: the run may have to
    /// wait.
    pub fn read<T>(&self, see: impl FnOnce(RunState, Option<&View>) -> T) -> T {
        let inner = self.lock();
        see(inner.state, inner.view.as_ref())
    }

    /// How far the run is.
    pub fn state(&self) -> RunState {
        self.lock().state
    }

    /// Asks for a change of a parameter and waits until the run has made or refused it: it checks every few thousand
    /// requests.
    ///
    /// # Errors
    /// As the host's; [`StoreError::NotRunning`] if the run has not begun, or ends before it checks.
    pub fn store(&self, lun: u8, param: HpbParam, value: u32) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if inner.state != RunState::Running {
            return Err(StoreError::NotRunning);
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.letters.push(Letter { id, lun, param, value, answer: None });
        loop {
            if let Some(at) = inner.letters.iter().position(|l| l.id == id && l.answer.is_some()) {
                return inner.letters.swap_remove(at).answer.unwrap_or(Err(StoreError::NotRunning));
            }
            inner = self.answered.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first changes that were made, and how many there were in all. A run with changes depends on their times, so
    /// it cannot be repeated exactly.
    pub fn changes(&self) -> (Vec<Change>, u64) {
        let inner = self.lock();
        (inner.changes.clone(), inner.changed)
    }
}

/// All runs of a command, in the order of its plan.
pub struct Board {
    posts: Vec<Post>,
}

impl Board {
    /// A board for runs with these cases and variants.
    pub fn new(runs: impl IntoIterator<Item = (String, String)>) -> Self {
        Board { posts: runs.into_iter().map(|(case, variant)| Post::new(case, variant)).collect() }
    }

    /// The runs.
    pub fn posts(&self) -> &[Post] {
        &self.posts
    }
}

/// A run's side of its post. When it is dropped the run is over.
pub struct Publisher<'a>(&'a Post);

impl<'a> Publisher<'a> {
    /// The run that `post` is of.
    pub fn new(post: &'a Post) -> Self {
        Publisher(post)
    }

    /// Withdraws the published copy: host and device have started again.
    pub fn begin_again(&self) {
        self.0.lock().view = None;
    }

    /// Makes the changes that were asked for, then publishes the new state.
    #[cold]
    #[inline(never)]
    pub fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&self, stack: &mut Stack<S, X, P, W>, now: Ns, ios: u64) {
        let inner = &mut *self.0.lock();
        let mut any = false;
        for letter in inner.letters.iter_mut().filter(|l| l.answer.is_none()) {
            let &mut Letter { lun, param, value, .. } = letter;
            let stored = stack.host.store_hpb_param(lun, param, value);
            if stored.is_ok() {
                inner.changed += 1;
                if inner.changes.len() < REMEMBERED {
                    inner.changes.push(Change { at: now, lun, param, value });
                }
            }
            letter.answer = Some(stored.map_err(StoreError::from));
            any = true;
        }
        let view = inner.view.get_or_insert_with(|| View::of(stack));
        view.update(stack, now, ios);
        inner.state = RunState::Running;
        if any {
            self.0.answered.notify_all();
        }
    }
}

impl Drop for Publisher<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.state = RunState::Over;
        inner.letters.iter_mut().for_each(|l| _ = l.answer.get_or_insert(Err(StoreError::NotRunning)));
        self.0.answered.notify_all();
    }
}

impl View {
    /// A view with the parts that never change.
    fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> View {
        let read = |idn, index| {
            let mut data = Vec::new();
            stack.device.inspect(&query(opcode::READ_DESCRIPTOR, idn, index), &mut data).ok().map(|_| data)
        };
        let descriptors = std::array::from_fn(|idn| match idn as u8 {
            descriptor::UNIT | descriptor::STRING => Vec::new(),
            idn => read(idn, 0).unwrap_or_default(),
        });
        let strings = match DeviceDescriptor::parse(&descriptors[usize::from(descriptor::DEVICE)]) {
            Ok(d) => [d.manufacturer_name, d.product_name, d.oem_id, d.serial_number, d.product_revision]
                .map(|index| parse_string(&read(descriptor::STRING, index)?).ok()),
            Err(_) => Default::default(),
        };
        let units = (0..UNITS)
            .filter(|&lun| stack.host.unit_blocks(lun).is_some())
            .map(|lun| {
                let descriptor = read(descriptor::UNIT, lun).unwrap_or_default();
                UnitView { lun, descriptor, dyn_cap_needed: None, hpb: None }
            })
            .collect();
        View { now: Ns::ZERO, ios: 0, descriptors, strings, flags: [None; NUMBERS], attributes: [None; NUMBERS], units }
    }

    /// Updates the parts that change.
    fn update<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>, now: Ns, ios: u64) {
        (self.now, self.ios) = (now, ios);
        let ask = |opcode, idn, index| stack.device.inspect(&query(opcode, idn, index), &mut Vec::new()).ok();
        for (idn, flag) in self.flags.iter_mut().enumerate() {
            *flag = ask(opcode::READ_FLAG, idn as u8, 0).map(|value| value & 1 == 1);
        }
        for (idn, value) in self.attributes.iter_mut().enumerate() {
            *value = ask(opcode::READ_ATTRIBUTE, idn as u8, 0);
        }
        for unit in &mut self.units {
            unit.dyn_cap_needed = ask(opcode::READ_ATTRIBUTE, attribute::DYN_CAP_NEEDED, unit.lun);
            unit.hpb = hpb_of(&stack.host, unit.lun);
        }
    }
}

fn hpb_of(host: &Driver, lun: u8) -> Option<HpbView> {
    // Counters are withheld where HPB was given up.
    let (counters, hpb) = (*host.counters(lun)?, host.hpb(lun)?);
    let heeded = HpbParam::ALL.map(|param| hpb.takes_param(param));
    Some(HpbView { counters, params: *hpb.params(), heeded })
}

fn query(opcode: u8, idn: u8, index: u8) -> QueryRequest {
    QueryRequest { opcode, idn, index, selector: 0, length: 0xFF, value: 0 }
}
