// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states that this device's own recovery yields: power goes after each of its flash operations, or in the middle
//! of it, and once more while it recovers. The recording is replayed once, which gives all writes to flash in order;
//! another device then recovers from the image with the first of them, and its map says what each touched block holds.

use crate::base::{BLOCK, Base};
use crate::error::CrashError;
use crate::log::{Log, digest};
use crate::permitted::spread;
use crate::state::{Cell, State};
use crate::states::States;
use readpath_config::DevicePreset;
use readpath_kit::{Ns, Prng};
use readpath_serve::{DiskWrite, FlashLog, FlashMoment, Logged, Recorded, flash_log, recovery_log, torn_writes};
use readpath_store::{Disk, FileDisk, Image};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const KIND: &str = "device:";
/// A second cut comes after fewer writes to the disk than this.
const MOST_AGAIN: u64 = 64;
/// Ways in which an operation is torn.
const TEARS: u64 = 16;

/// One state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Power goes after this operation of flash, counted from 1; none: at the end, and nothing is lost.
    operation: Option<usize>,
    /// Or in the middle of it: what is left is one of many ways.
    torn: Option<u64>,
    /// And again while the device recovers, after so many writes to its disk.
    again: Option<usize>,
    /// Or in the middle of the last operation of flash among them.
    torn_again: Option<u64>,
    /// Places of the touched blocks that lose something; the others hold what was written last. None: as the device
    /// leaves them.
    only: Option<Vec<usize>>,
}

impl Cut {
    /// At the end.
    const NONE: Cut = Cut { operation: None, torn: None, again: None, torn_again: None, only: None };

    /// When power goes.
    fn time(&self, moment: FlashMoment) -> Ns {
        Ns(moment.at.0.saturating_sub(u64::from(self.torn.is_some())))
    }
}

/// See the module.
pub struct Device<'a> {
    log: &'a Log,
    flash: FlashLog,
    image: PathBuf,
    preset: DevicePreset,
    seed: u64,
    /// Cells by place and digest.
    cells: HashMap<(usize, u128), Cell>,
    /// The last state that was made: states that are reduced are made of one.
    last: Mutex<Option<(Cut, State)>>,
}

impl<'a> Device<'a> {
    /// The states of a recording that began with the image at `path`.
    ///
    /// # Errors
    /// The recording cannot be replayed on it.
    pub fn new(
        (log, recorded): (&'a Log, &Recorded),
        path: &Path,
        preset: &DevicePreset,
        seed: u64,
    ) -> Result<Device<'a>, CrashError> {
        let image = Image::open_as(path, false, true, Logged::new)?;
        let flash = flash_log(image, preset, recorded).map_err(|error| CrashError::Recording(error.to_string()))?;
        let (image, preset) = (path.to_owned(), preset.clone());
        Ok(Device { log, flash, image, preset, seed, cells: log.cells(), last: Mutex::new(None) })
    }

    /// The image after the first writes to flash, and some of a recovery.
    fn image<D: Disk>(
        &self,
        (writes, more): (usize, &[DiskWrite]),
        make: impl FnOnce(FileDisk) -> D,
    ) -> Result<Image<D>, CrashError> {
        let mut failure = Ok(());
        let image = Image::open_as(&self.image, false, true, |mut disk| {
            let mut all = self.flash.writes[..writes].iter().chain(more);
            failure = all.try_for_each(|write| write.make(&mut disk));
            make(disk)
        })?;
        failure?;
        Ok(image)
    }

    fn moment(&self, cut: &Cut) -> Option<FlashMoment> {
        self.flash.moments.get(cut.operation?.checked_sub(1)?).copied()
    }

    /// What was written last, when power goes.
    fn newest(&self, now: Ns, base: &Base) -> Result<State, CrashError> {
        let mut state = State::before(self.log, now);
        for (index, _) in self.log.changes.iter().enumerate().filter(|(_, change)| change.sent <= now) {
            state.apply(self.log, base, index, None)?;
        }
        Ok(state)
    }

    /// What the recovery of the device yields.
    fn recovered(&self, cut: &Cut, moment: FlashMoment) -> Result<State, CrashError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = Cut { only: None, ..cut.clone() };
        if let Some((known, state)) = &*last
            && *known == cut
        {
            return Ok(state.clone());
        }
        let state = self.recover(&cut, moment)?;
        *last = Some((cut, state.clone()));
        Ok(state)
    }

    /// The first writes to flash that are whole when power goes, and what is left of others.
    fn left(&self, cut: &Cut, moment: FlashMoment) -> (usize, Vec<DiskWrite>) {
        let (Some(tear), Some(operation)) = (cut.torn, cut.operation) else { return (moment.writes, Vec::new()) };
        let before = operation.checked_sub(2).map_or(0, |before| self.flash.moments[before].writes);
        let writes = &self.flash.writes[before..moment.writes];
        (before, torn_writes(&self.flash.format, writes, &mut Prng::stream(tear, "torn", operation as u64)))
    }

    fn recover(&self, cut: &Cut, moment: FlashMoment) -> Result<State, CrashError> {
        let (whole, mut more) = self.left(cut, moment);
        if let Some(again) = cut.again {
            let image = self.image((whole, &more), Logged::new)?;
            let mut writes =
                recovery_log(image, &self.preset).map_err(|error| CrashError::Recording(error.to_string()))?;
            writes.truncate(again);
            if let Some(tear) = cut.torn_again {
                writes = torn_writes(&self.flash.format, &writes, &mut Prng::stream(tear, "torn again", again as u64));
            }
            more.extend(writes);
        }
        let after = Base::new(self.image((whole, &more), |disk| disk)?, &self.preset, None)?;
        let mut state = State::before(self.log, cut.time(moment));
        let mut block = [0; BLOCK];
        for (place, &number) in self.log.blocks.iter().enumerate() {
            after.read(number, &mut block)?;
            let known = self.cells.get(&(place, digest(&block))).cloned();
            state.set(place, known.unwrap_or_else(|| Cell::Own(Box::new(block))));
        }
        Ok(state)
    }

    fn parsed(&self, name: &str) -> Result<Cut, String> {
        let words = name.strip_prefix(KIND).ok_or_else(|| format!("it does not begin with '{KIND}'"))?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("'{text}' is not a number"));
        let mut cut = Cut::NONE;
        for word in words.split(',') {
            match word.split_once('=') {
                _ if word == "whole" => {}
                Some(("cut", of)) => cut.operation = Some(number(of)?),
                Some(("again", of)) => cut.again = Some(number(of)?),
                Some(("torn", of)) if cut.again.is_none() => cut.torn = Some(number(of)? as u64),
                Some(("torn", of)) => cut.torn_again = Some(number(of)? as u64),
                Some(("only", list)) => {
                    let place = |block: &str| -> Result<usize, String> {
                        let block = number(block)? as u32;
                        self.log.blocks.binary_search(&block).map_err(|_| format!("block {block} was not written"))
                    };
                    let mut places = list.split('+').filter(|block| *block != "none").map(place);
                    cut.only = Some(places.by_ref().collect::<Result<_, _>>()?);
                }
                _ => return Err(format!("'{word}' is neither cut=, torn=, again= nor only=")),
            }
        }
        let most = self.flash.moments.len();
        match cut.operation {
            Some(operation) if (1..=most).contains(&operation) => Ok(cut),
            None if name == "device:whole" => Ok(cut),
            _ => Err(format!("cut= has the number of one of {most} flash operations")),
        }
    }
}

impl States for Device<'_> {
    type Spec = Cut;

    fn systematic(&self) -> u64 {
        3 * self.flash.moments.len() as u64
    }

    fn whole(&self) -> Option<Cut> {
        (!self.log.blocks.is_empty()).then_some(Cut::NONE)
    }

    fn nth(&self, n: u64) -> Option<Cut> {
        let moments = self.flash.moments.len() as u64;
        if moments == 0 {
            return None;
        }
        let rng = &mut Prng::stream(self.seed, "crash", n);
        let (operation, kind) = match n < self.systematic() {
            true => {
                let n = spread(n, self.systematic());
                (n % moments, n / moments)
            }
            false => (rng.below(moments), 1 + rng.below(2)),
        };
        let is_random = n >= self.systematic();
        let mut cut = Cut { operation: Some(operation as usize + 1), ..Cut::NONE };
        if kind == 2 {
            cut.torn = Some(rng.below(TEARS));
        }
        if kind == 1 || is_random {
            cut.again = Some(rng.below(MOST_AGAIN) as usize);
            cut.torn_again = (rng.below(2) == 0).then(|| rng.below(TEARS));
        }
        Some(cut)
    }

    fn state(&self, cut: &Cut, base: &Base) -> Result<State, CrashError> {
        let Some(moment) = self.moment(cut) else { return self.newest(Ns::NEVER, base) };
        let recovered = match &cut.only {
            // States side by side are all of other cuts.
            None => return self.recover(cut, moment),
            Some(_) => self.recovered(cut, moment)?,
        };
        let mut state = self.newest(cut.time(moment), base)?;
        cut.only.iter().flatten().for_each(|&place| state.set(place, recovered.cell(place).clone()));
        Ok(state)
    }

    fn name(&self, cut: &Cut) -> String {
        let Some(operation) = cut.operation else { return format!("{KIND}whole") };
        let mut name = format!("{KIND}cut={operation}");
        let numbers = [("torn", cut.torn), ("again", cut.again.map(|again| again as u64)), ("torn", cut.torn_again)];
        for (word, number) in numbers.into_iter().filter_map(|(word, number)| Some((word, number?))) {
            let _ = write!(name, ",{word}={number}");
        }
        if let Some(only) = &cut.only {
            let blocks: Vec<String> = only.iter().map(|&place| self.log.blocks[place].to_string()).collect();
            let list = if blocks.is_empty() { "none".to_owned() } else { blocks.join("+") };
            let _ = write!(name, ",only={list}");
        }
        name
    }

    fn parse(&self, name: &str) -> Result<Cut, CrashError> {
        self.parsed(name).map_err(|what| CrashError::Name { name: name.to_owned(), what })
    }

    fn losses(&self, cut: &Cut, base: &Base) -> Result<Vec<usize>, CrashError> {
        let Some(moment) = self.moment(cut) else { return Ok(Vec::new()) };
        let (newest, recovered) = (self.newest(cut.time(moment), base)?, self.recovered(cut, moment)?);
        let differs = |&place: &usize| newest.cell_digest(self.log, place) != recovered.cell_digest(self.log, place);
        Ok((0..self.log.blocks.len()).filter(differs).collect())
    }

    fn with_losses(&self, cut: &Cut, losses: &[usize]) -> Cut {
        Cut { only: Some(losses.to_vec()), ..cut.clone() }
    }

    /// Only of a state that loses nothing: what the recovery of another moment loses is something else.
    fn earlier(&self, cut: &Cut) -> Vec<Cut> {
        let before = match (cut.operation, &cut.only) {
            (Some(operation), Some(only)) if only.is_empty() => operation,
            _ => 1,
        };
        let of = |operation| Cut { operation: Some(operation), only: Some(Vec::new()), ..Cut::NONE };
        (1..before).map(of).collect()
    }

    fn moment(&self, cut: &Cut) -> String {
        let Some(moment) = self.moment(cut) else { return "power goes at the end".to_owned() };
        let (operation, at) = (cut.operation.unwrap_or_default(), cut.time(moment));
        let place = if cut.torn.is_some() { "in the middle of" } else { "behind" };
        format!("power goes {place} flash operation {operation}, at {at}{}", self.log.marked(at))
    }

    fn described(&self, cut: &Cut) -> Vec<String> {
        let now = self.moment(cut).map_or(Ns::NEVER, |moment| cut.time(moment));
        let of = |&place: &usize| {
            let block = self.log.blocks[place];
            let last = self.log.last_of(place, now).map(|change| self.log.described(change)).unwrap_or_default();
            format!("block {block} does not hold what was written there last: {last}")
        };
        cut.only.iter().flatten().map(of).collect()
    }
}
