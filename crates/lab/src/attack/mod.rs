// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a dishonest host gains from HPB entries, by protection: entries that are forged, replayed after they became
//! stale, swapped with those of another block, unit or device, or changed in one bit. An attack succeeds if a read
//! returns other data than an ordinary READ of the same block.

mod document;
mod question;

pub use document::{Attempt, FORGERIES};
pub(crate) use document::{document, verdict_metrics};
pub use question::Attacks;
pub use readpath_run::rogue::{BLOCKS, Content, Got, Means, Rogue, device};

use readpath_device::{ConfigError, DeviceConfig, DeviceStats, EntryConfig, Protection};
use readpath_kit::{Ns, Prng};
use readpath_proto::typed::HpbEntry;
use serde::{Deserialize, Serialize};

/// Blocks of both units.
const ALL: u32 = 2 * BLOCKS;
/// The key of the device that is attacked, and of one that entries are stolen from.
const KEYS: [[u64; 2]; 2] = [[0x5EED, 0xC0FFEE], [0x5EED, 0xC0FFEF]];

readpath_kit::named! {
    /// A kind of attack.
    pub enum Attack {
        /// Entries that were never given out. Addresses exist; tags, or whole words where all is encrypted, are
        /// guessed.
        Forge = "forge",
        /// Entries of blocks that have since been written, trimmed or moved, whether or not newer ones were given out.
        Replay = "replay",
        /// Entries of another block, of the same unit or of another.
        Swap = "swap",
        /// Entries of another device.
        Foreigner = "other device",
        /// Good entries with one bit changed, each of the 64.
        Flip = "flip a bit",
    }
}

impl Attack {}

/// What came of an attack.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Entries that were sent.
    pub tries: u64,
    /// Blocks that were read from where an entry said: one for each entry that was believed, or as many as it says that
    /// lie in a row (HPB 2.0).
    pub believed: u64,
    /// Blocks that were returned and that an ordinary READ would not have.
    pub leaked: u64,
    /// What the device counted meanwhile.
    pub device: DeviceStats,
    /// Virtual time of all tries, one after another.
    pub time: Ns,
}

/// Tries one attack on a device whose entries are protected so and sent by `means`: `forgeries` forged entries, at
/// most as many with a bit changed, and as many of the other kinds as there are blocks, or a few times that.
pub fn attack(
    attack: Attack,
    times: &DeviceConfig,
    entries: EntryConfig,
    means: Means,
    forgeries: u64,
    seed: u64,
) -> Result<Tally, ConfigError> {
    let mut rogue = Rogue::new(&device(times, entries, means, KEYS[0])?, seed)?;
    let loaded = rogue.load();
    let before = *rogue.stats();
    let rng = Prng::stream(seed, "attack", 0);
    let mut tries = Tries { rogue, tally: Tally::default(), rng, means, first: 0, list: Vec::new() };
    match attack {
        Attack::Forge => tries.forge(&entries, forgeries),
        Attack::Replay => tries.replay(loaded),
        Attack::Swap => tries.swap(&loaded),
        Attack::Foreigner => {
            let other = Rogue::new(&device(times, entries, means, KEYS[1])?, seed + 1)?.load();
            (0..ALL).for_each(|lpn| tries.one(lpn, other[lpn as usize]));
        }
        Attack::Flip => tries.flip(&loaded, forgeries),
    }
    tries.send();
    // Checks that are still in progress have to reach the counters.
    tries.rogue.flush();
    tries.tally.device = tries.rogue.stats().since(&before);
    Ok(tries.tally)
}

/// An attack in progress.
struct Tries {
    rogue: Rogue,
    tally: Tally,
    rng: Prng,
    means: Means,
    /// Entries that wait to be sent together, and the block of the first.
    list: Vec<HpbEntry>,
    first: u32,
}

impl Tries {
    /// Tries an entry for a block: together with those before it, if they are for the blocks before it.
    fn one(&mut self, lpn: u32, entry: HpbEntry) {
        let next = self.next();
        // One block between two is read without an entry: the zeros in its place are no try, but the device counts
        // them.
        let joins = (next..=next + 1).contains(&lpn) && lpn / BLOCKS == self.first / BLOCKS;
        if !joins || (lpn - self.first) as usize >= self.means.most() {
            self.send();
        }
        if self.list.is_empty() {
            self.first = lpn;
        }
        self.list.resize((lpn - self.first) as usize, HpbEntry::default());
        self.list.push(entry);
        self.tally.tries += 1;
        if self.list.len() == self.means.most() {
            self.send();
        }
    }

    /// The block behind those of the list.
    fn next(&self) -> u32 {
        self.first + self.list.len() as u32
    }

    /// Sends the waiting entries.
    fn send(&mut self) {
        if self.list.is_empty() {
            return;
        }
        let from = self.rogue.now();
        let got = self.rogue.read(self.first, &self.list, self.means);
        self.list.clear();
        self.tally.believed += got.believed;
        self.tally.leaked += got.leaked;
        self.tally.time += self.rogue.now().saturating_sub(from);
    }

    fn any_block(&mut self) -> u32 {
        self.rng.below(u64::from(ALL)) as u32
    }

    fn forge(&mut self, entries: &EntryConfig, forgeries: u64) {
        let slices = u64::from(self.rogue.slices());
        for _ in 0..forgeries {
            let lpn = if self.list.is_empty() { self.any_block() } else { self.next() % ALL };
            let guess = self.rng.next_u64();
            let address = self.rng.below(slices) << 32;
            let word = match entries.protection {
                Protection::Mac => address | guess >> (64 - u32::from(entries.tag_bits)),
                Protection::Encrypted => guess,
                Protection::None => address,
            };
            self.one(lpn, HpbEntry(word.to_be_bytes()));
        }
    }

    /// Old entries in every state in which they are old.
    fn replay(&mut self, mut old: Vec<HpbEntry>) {
        let even = |lpn: &u32| lpn.is_multiple_of(2);
        // Half of all blocks change: three quarters of them are written, the others trimmed.
        for lpn in (0..ALL).filter(even) {
            if lpn % 8 == 0 { self.rogue.trim(lpn) } else { self.rogue.write(lpn) }
        }
        self.rogue.flush();
        // No newer entries, then newer ones, then still newer ones.
        for _ in 0..3 {
            (0..ALL).filter(even).for_each(|lpn| self.one(lpn, old[lpn as usize]));
            self.send();
            self.rogue.load();
        }
        // The other half is moved by garbage collection, while the first is written again and again.
        old = self.rogue.load();
        let moved = self.rogue.stats().slices_moved + 2 * u64::from(ALL);
        while self.rogue.stats().slices_moved < moved {
            let lpn = self.any_block() & !1;
            self.rogue.write(lpn);
        }
        for _ in 0..3 {
            (0..ALL).for_each(|lpn| self.one(lpn, old[lpn as usize]));
            self.send();
            self.rogue.load();
        }
    }

    fn swap(&mut self, loaded: &[HpbEntry]) {
        // The next block, a block of another region, and the same block of the second unit.
        for other in [|lpn| lpn ^ 1, |lpn| (lpn + 512) % ALL, |lpn| (lpn + BLOCKS) % ALL] {
            (0..ALL).for_each(|lpn: u32| self.one(lpn, loaded[other(lpn) as usize]));
        }
        for lpn in 0..ALL {
            let any = (lpn + 1 + self.rng.below(u64::from(ALL - 1)) as u32) % ALL;
            self.one(lpn, loaded[any as usize]);
        }
    }

    /// Each bit of the entries of as many blocks as so many tries suffice for.
    fn flip(&mut self, loaded: &[HpbEntry], most: u64) {
        let blocks = (most / 64).min(u64::from(ALL)) as u32;
        for bit in 0..64 {
            for lpn in 0..blocks {
                let word = u64::from_be_bytes(loaded[lpn as usize].0) ^ 1 << bit;
                self.one(lpn, HpbEntry(word.to_be_bytes()));
            }
        }
    }
}
