// SPDX-License-Identifier: MIT OR Apache-2.0
//! An episode: a small device, faults and a mix of operations drawn from the seed, and the operations.

use super::Cache;
use super::truth::{Content, Leb, Stamps, bytes, is_remnant, small, stamp};
use readpath_kit::Prng;
use readpath_nand_testkit::{Device, Ecc, Faults, Nand, NewVolume, Options, PebState, Work};
use readpath_ubi::mtd::{Geometry, MtdError, ReadOutcome};
use readpath_ubi::{ReadCache, UbiError};

/// Statistics of an episode.
#[derive(Default, Debug)]
pub struct Stats {
    pub operations: u64,
    pub cuts: u64,
    pub cuts_in_attach: u64,
    pub cuts_in_repair: u64,
    pub moves: u64,
    pub scrubs: u64,
    pub recoveries: u64,
    pub torn_pages: u64,
    pub came_back: u64,
    pub bad: u64,
    pub hits: u64,
    pub updates: u64,
}

impl Stats {
    pub fn add(&mut self, o: &Stats) {
        self.operations += o.operations;
        self.cuts += o.cuts;
        self.cuts_in_attach += o.cuts_in_attach;
        self.cuts_in_repair += o.cuts_in_repair;
        self.moves += o.moves;
        self.scrubs += o.scrubs;
        self.recoveries += o.recoveries;
        self.torn_pages += o.torn_pages;
        self.came_back += o.came_back;
        self.bad += o.bad;
        self.hits += o.hits;
        self.updates += o.updates;
    }
}

/// The operation in progress when the power was cut.
enum Flight {
    Nothing,
    /// Pages appended to a logical block.
    Append(usize, Content),
    /// A logical block replaced.
    Change(usize, Content),
    /// The static volume made, filled with a stamp, or removed.
    Static(Option<Option<u64>>),
}

/// An interrupted operation, or a detected fault.
enum Stop {
    PowerOff,
    Wrong(String),
}

impl From<UbiError> for Stop {
    fn from(e: UbiError) -> Self {
        match e {
            UbiError::Mtd(MtdError::PowerOff { .. }) => Stop::PowerOff,
            e => Stop::Wrong(e.to_string()),
        }
    }
}

type Done = Result<(), Stop>;

fn wrong<T>(what: String) -> Result<T, Stop> {
    Err(Stop::Wrong(what))
}

pub struct Episode {
    p: Prng,
    geometry: Geometry,
    options: Options,
    weights: [u64; 8],
    cut_every: u64,
    lebs: Vec<Leb>,
    /// Logical blocks of volume 0; the others belong to volume 1.
    first_lebs: usize,
    /// The static volume 2, if it exists, and its contents, if it has any.
    third: Option<Option<u64>>,
    flight: Flight,
    stamps: Stamps,
    /// Bytes of a logical block, and of one more page.
    buffer: Vec<u8>,
    expected: Vec<u8>,
    stats: Stats,
}

impl Episode {
    pub fn new(seed: u64) -> Self {
        let mut p = Prng::stream(seed, "model", 0);
        let page_bytes = 512;
        let geometry = Geometry {
            page_bytes,
            subpage_bytes: [page_bytes, page_bytes / 2][p.below(2) as usize],
            peb_bytes: page_bytes * 8,
            pebs: 40 + p.below(20) as u32,
        };
        let wear_threshold = [4096, 10, 3][p.below(3) as usize];
        let options = Options {
            wear_threshold,
            bad_pebs_per_1024: 150,
            image_seq_if_empty: p.next_u64() as u32,
            ..Options::default()
        };
        // Reads, appends, changes, unmaps, maps, steps of work, flushes, the static volume.
        let mut weights = [600, 150, 60, 30, 10, 200, 2, 2];
        for w in &mut weights[1..] {
            *w = *w * [1, 1, 2, 4][p.below(4) as usize] / [1, 1, 2, 8][p.below(4) as usize];
        }
        let (a, b) = (12 + p.below(4) as usize, 4 + p.below(4) as usize);
        Episode {
            geometry,
            options,
            weights,
            cut_every: [100, 300, 1000, 10_000][p.below(4) as usize],
            lebs: vec![Leb::default(); a + b],
            first_lebs: a,
            third: None,
            flight: Flight::Nothing,
            stamps: Stamps::new(),
            buffer: Vec::new(),
            expected: Vec::new(),
            stats: Stats::default(),
            p,
        }
    }

    fn place(&self, leb: usize) -> (u32, u32) {
        if leb < self.first_lebs { (0, leb as u32) } else { (1, (leb - self.first_lebs) as u32) }
    }

    /// Runs operations until there were `count`; the error is the fault found.
    pub fn run(mut self, count: u64, cache: fn(u32) -> Cache) -> Result<Stats, String> {
        let seed = self.p.next_u64();
        let mut nand = Nand::new(self.geometry, Ecc::new(256, 8), seed).expect("a device");
        let mut ubi = Device::attach(nand, cache(512), &self.options).map_err(|e| format!("format: {e}"))?;
        let (a, b) = (self.first_lebs as u32, (self.lebs.len() - self.first_lebs) as u32);
        ubi.create_volume(&NewVolume::dynamic("first", a)).map_err(|e| e.to_string())?;
        ubi.create_volume(&NewVolume::dynamic("second", b)).map_err(|e| e.to_string())?;
        let size = ubi.layout().leb_bytes as usize;
        (self.buffer, self.expected) = (vec![0; size], vec![0; size]);
        ubi.mtd_mut().faults = Faults {
            program_fails_ppm: [0, 100, 500][self.p.below(3) as usize],
            erase_fails_ppm: [0, 50][self.p.below(2) as usize],
            flips_ppm: [0, 1000, 10_000][self.p.below(3) as usize],
            disturb_reads: [0, 20][self.p.below(2) as usize],
            most_flips: 8,
        };
        while self.stats.operations < count {
            if self.p.below(self.cut_every) == 0 {
                let operations = small(&mut self.p, 40);
                ubi.mtd_mut().cut_after(operations);
            }
            self.stats.operations += 1;
            match self.operation(&mut ubi) {
                Ok(()) => self.flight = Flight::Nothing,
                Err(Stop::Wrong(what)) => return Err(format!("operation {}: {what}", self.stats.operations)),
                Err(Stop::PowerOff) => {
                    self.leave(&ubi);
                    nand = ubi.into_mtd();
                    ubi = match self.restart(nand, cache) {
                        Ok(ubi) => ubi,
                        Err(Stop::Wrong(what)) => {
                            return Err(format!("after a cut in operation {}: {what}", self.stats.operations));
                        }
                        Err(Stop::PowerOff) => return Err("no power".into()),
                    };
                }
            }
            // No block waits to be erased, so no old version can return.
            if ubi.wear.erase_count() == 0 {
                self.lebs.iter_mut().for_each(|leb| leb.ghosts.clear());
            }
        }
        ubi.mtd_mut().power_on();
        self.leave(&ubi);
        self.stats.bad += u64::from(ubi.wear.count(PebState::Bad));
        let nand = ubi.into_mtd();
        // In the end a device without faults has to hold the same contents.
        self.flight = Flight::Nothing;
        match self.restart(nand, cache) {
            Ok(_) => Ok(self.stats),
            Err(Stop::Wrong(what)) => Err(format!("in the end: {what}")),
            Err(Stop::PowerOff) => Err("in the end: no power".into()),
        }
    }

    fn leave(&mut self, ubi: &Device<Nand, Cache>) {
        self.stats.moves += ubi.moves;
        self.stats.recoveries += ubi.recoveries;
        self.stats.hits += ubi.cache.counters().hits;
    }

    fn operation(&mut self, ubi: &mut Device<Nand, Cache>) -> Done {
        let total: u64 = self.weights.iter().sum();
        let mut draw = self.p.below(total);
        let mut kind = 0;
        while draw >= self.weights[kind] {
            draw -= self.weights[kind];
            kind += 1;
        }
        let leb = self.p.below(self.lebs.len() as u64) as usize;
        match kind {
            0 => {
                let leb = small(&mut self.p, self.lebs.len() as u64) as usize;
                self.read(ubi, leb)
            }
            1 => self.append(ubi, leb),
            2 => {
                let content: Content = (0..=small(&mut self.p, 6)).map(|_| Some(self.stamps.next())).collect();
                self.change(ubi, leb, content)
            }
            3 => {
                let (volume, lnum) = self.place(leb);
                ubi.unmap(volume, lnum)?;
                self.lebs[leb].bury();
                Ok(())
            }
            4 if self.lebs[leb].now.is_none() => self.write(ubi, leb, Vec::new()),
            4 => Ok(()),
            5 => {
                let scrubs = ubi.wear.count(PebState::Scrub);
                if let Work::Moved { .. } = ubi.work()? {
                    self.stats.scrubs += u64::from(scrubs > ubi.wear.count(PebState::Scrub));
                }
                Ok(())
            }
            6 => Ok(ubi.flush()?),
            _ => self.third_volume(ubi),
        }
    }

    /// Reads some bytes, which the model knows.
    fn read(&mut self, ubi: &mut Device<Nand, Cache>, leb: usize) -> Done {
        let size = self.buffer.len() as u64;
        let offset = self.p.below(size) as usize;
        let longest = (size as usize - offset).min(if self.p.chance_per_mille(900) { 200 } else { 2000 });
        let len = 1 + self.p.below(longest as u64) as usize;
        let (volume, lnum) = self.place(leb);
        let outcome = ubi.read(volume, lnum, offset as u32, &mut self.buffer[..len], 0)?;
        if outcome == ReadOutcome::Uncorrectable {
            return wrong(format!("LEB {leb}: uncorrectable"));
        }
        let pages = self.lebs[leb].now.as_deref().unwrap_or_default();
        let (first, last) = (offset / 512, (offset + len - 1) / 512);
        for page in first..=last {
            let out = &mut self.expected[page * 512..(page + 1) * 512];
            match pages.get(page) {
                Some(stamp) => bytes(stamp.expect("readable"), out),
                None => out.fill(0xFF),
            }
        }
        if self.buffer[..len] != self.expected[offset..offset + len] {
            return wrong(format!("LEB {leb} offset {offset} length {len}: other bytes"));
        }
        Ok(())
    }

    fn append(&mut self, ubi: &mut Device<Nand, Cache>, leb: usize) -> Done {
        let written = self.lebs[leb].now.as_ref().map_or(0, Vec::len);
        let room = self.buffer.len() / 512 - written;
        if room == 0 {
            return Ok(());
        }
        let pages = (0..=small(&mut self.p, room as u64)).map(|_| Some(self.stamps.next())).collect();
        self.write(ubi, leb, pages)
    }

    /// Writes pages behind the existing ones.
    fn write(&mut self, ubi: &mut Device<Nand, Cache>, leb: usize, pages: Content) -> Done {
        let (volume, lnum) = self.place(leb);
        let written = self.lebs[leb].now.as_ref().map_or(0, Vec::len);
        let len = fill(&mut self.buffer, &pages);
        self.flight = Flight::Append(leb, pages);
        ubi.write(volume, lnum, written as u32 * 512, &self.buffer[..len])?;
        if let Flight::Append(_, pages) = std::mem::replace(&mut self.flight, Flight::Nothing) {
            self.lebs[leb].now.get_or_insert_default().extend(pages);
        }
        Ok(())
    }

    fn change(&mut self, ubi: &mut Device<Nand, Cache>, leb: usize, pages: Content) -> Done {
        let (volume, lnum) = self.place(leb);
        let len = fill(&mut self.buffer, &pages);
        self.flight = Flight::Change(leb, pages);
        ubi.change(volume, lnum, &self.buffer[..len])?;
        if let Flight::Change(_, pages) = std::mem::replace(&mut self.flight, Flight::Nothing) {
            self.lebs[leb].bury();
            self.lebs[leb].now = Some(pages);
        }
        Ok(())
    }

    /// Makes the static volume, fills it or removes it.
    fn third_volume(&mut self, ubi: &mut Device<Nand, Cache>) -> Done {
        let next = match self.third {
            None => Some(None),
            Some(_) if self.p.chance_per_mille(300) => None,
            Some(_) => Some(Some(self.stamps.next())),
        };
        self.flight = Flight::Static(next);
        match (self.third, next) {
            (None, _) => {
                let new = NewVolume { id: Some(2), is_static: true, ..NewVolume::dynamic("third", 2) };
                if ubi.available < 2 {
                    return Ok(());
                }
                ubi.create_volume(&new)?;
            }
            (Some(_), None) => ubi.remove_volume(2)?,
            (Some(_), Some(stamp)) => ubi.update_volume(2, &static_bytes(stamp.unwrap_or(0)))?,
        }
        self.third = next;
        self.stats.updates += 1;
        Ok(())
    }

    /// After a cut: attaches, retrying after further cuts, and compares everything.
    fn restart(&mut self, mut nand: Nand, cache: fn(u32) -> Cache) -> Result<Device<Nand, Cache>, Stop> {
        self.stats.cuts += 1;
        loop {
            nand.power_on();
            if self.p.chance_per_mille(300) {
                nand.cut_after(small(&mut self.p, 12));
            }
            // A borrowed device survives a failed attach.
            match Device::attach(&mut nand, cache(512), &self.options) {
                Ok(ubi) => drop(ubi),
                Err(UbiError::Mtd(MtdError::PowerOff { .. })) => {
                    self.stats.cuts_in_attach += 1;
                    continue;
                }
                Err(e) => return wrong(e.to_string()),
            }
            let mut ubi = match Device::attach(nand, cache(512), &self.options) {
                Ok(ubi) => ubi,
                Err(e) => return wrong(format!("second attach: {e}")),
            };
            match self.compare(&mut ubi) {
                Ok(()) => return Ok(ubi),
                Err(Stop::PowerOff) => self.stats.cuts_in_repair += 1,
                Err(wrong) => return Err(wrong),
            }
            self.leave(&ubi);
            nand = ubi.into_mtd();
        }
    }

    /// Compares all logical blocks with their possible contents, and repairs those that were being written.
    fn compare(&mut self, ubi: &mut Device<Nand, Cache>) -> Done {
        for leb in 0..self.lebs.len() {
            let (volume, lnum) = self.place(leb);
            let found = match ubi.is_mapped(volume, lnum)? {
                true => Some(self.content(ubi, volume, lnum)?),
                false => None,
            };
            self.accept(leb, found)?;
        }
        self.compare_third(ubi)?;
        self.flight = Flight::Nothing;
        for leb in 0..self.lebs.len() {
            let Some(content) = &self.lebs[leb].now else { continue };
            if content.iter().all(Option::is_some) {
                continue;
            }
            // As in a file system: pages before the damage are kept.
            self.stats.torn_pages += 1;
            let good: Content = content.iter().copied().take_while(Option::is_some).collect();
            if good.is_empty() || self.p.chance_per_mille(300) {
                let (volume, lnum) = self.place(leb);
                ubi.unmap(volume, lnum)?;
                self.lebs[leb].bury();
            } else {
                self.change(ubi, leb, good)?;
            }
        }
        Ok(())
    }

    /// The contents of a logical block after a cut.
    fn content(&mut self, ubi: &mut Device<Nand, Cache>, volume: u32, lnum: u32) -> Result<Content, Stop> {
        let mut content = Content::new();
        let pages = self.buffer.len() / 512;
        for page in 0..pages {
            let out = &mut self.buffer[..512];
            let outcome = ubi.read(volume, lnum, page as u32 * 512, out, 0)?;
            if outcome != ReadOutcome::Uncorrectable && out.iter().all(|&b| b == 0xFF) {
                continue;
            }
            // A written page behind an erased one: the latter was torn so early that it looks erased.
            content.resize(page, None);
            content.push(if outcome == ReadOutcome::Uncorrectable { None } else { stamp(out) });
        }
        Ok(content)
    }

    /// Checks whether a logical block may have these contents, and takes them over.
    fn accept(&mut self, leb: usize, found: Option<Content>) -> Done {
        let this = &mut self.lebs[leb];
        let mut fits = match (&found, &this.now) {
            (Some(found), Some(now)) => found == now,
            (None, None) => true,
            (None, Some(_)) => false,
            (Some(found), None) => this.may_come_back(found),
        };
        match &self.flight {
            Flight::Append(at, pages) if *at == leb && !fits => {
                let mut whole = this.now.clone().unwrap_or_default();
                let before = whole.len();
                whole.extend(pages);
                // All old pages, and new pages up to any number, of which the last may be torn.
                fits = found.as_ref().is_some_and(|found| {
                    let cut = found.iter().position(Option::is_none).unwrap_or(found.len());
                    found.len() >= before && cut >= before && cut + 1 >= found.len() && is_remnant(found, &whole)
                });
            }
            Flight::Change(at, pages) if *at == leb && !fits => {
                // With an older version to fall back to: all or nothing. Without one, no checksum is compared.
                let part = |found: &Content| this.now.is_none() && is_remnant(found, pages);
                fits = found.as_ref().is_some_and(|found| found == pages || part(found));
                if fits {
                    this.bury();
                }
            }
            _ => {}
        }
        if !fits {
            return wrong(format!("LEB {leb} holds {found:?} instead of {:?} or {:?}", this.now, this.ghosts));
        }
        if this.now.is_none() && found.is_some() {
            self.stats.came_back += 1;
        }
        this.now = found;
        Ok(())
    }

    fn compare_third(&mut self, ubi: &mut Device<Nand, Cache>) -> Done {
        let found = match ubi.volume(2) {
            Err(_) => None,
            Ok(v) if v.record.update_marker => {
                let updating = matches!(self.flight, Flight::Static(Some(Some(_))));
                if !updating {
                    return wrong("an update was under way that was not".into());
                }
                // Retries as a user would.
                let Flight::Static(next) = std::mem::replace(&mut self.flight, Flight::Static(Some(Some(0)))) else {
                    return Ok(());
                };
                let stamp = next.flatten().unwrap_or(0);
                self.flight = Flight::Static(Some(Some(stamp)));
                ubi.update_volume(2, &static_bytes(stamp))?;
                Some(Some(stamp))
            }
            Ok(v) if v.bytes() == 0 => Some(None),
            Ok(v) => {
                let (size, corrupted) = (v.bytes(), v.corrupted);
                ubi.check_static(2)?;
                let mut word = [0; 8];
                ubi.read(2, 0, 0, &mut word, 0)?;
                let stamp = u64::from_le_bytes(word);
                if corrupted || size != static_bytes(stamp).len() as u64 {
                    return wrong(format!("the static volume has {size} bytes, corrupted: {corrupted}"));
                }
                Some(Some(stamp))
            }
        };
        let may_be_new = matches!(self.flight, Flight::Static(next) if found == next);
        if found != self.third && !may_be_new {
            return wrong(format!("the static volume is {found:?} instead of {:?}", self.third));
        }
        self.third = found;
        Ok(())
    }
}

/// One or two logical blocks.
fn static_bytes(stamp: u64) -> Vec<u8> {
    let mut data = vec![0; 504 + stamp as usize % 11 * 504];
    bytes(stamp, &mut data);
    data
}

/// Puts the bytes of readable pages into `buffer`; returns their number.
fn fill(buffer: &mut [u8], pages: &[Option<u64>]) -> usize {
    for (page, out) in pages.iter().zip(buffer.chunks_exact_mut(512)) {
        bytes(page.expect("readable"), out);
    }
    pages.len() * 512
}
