// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who meddles with notifications, entries and commands of HPB on the wire.

use super::options::{Options, one_of};
use readpath_kit::Prng;
use readpath_proto::typed::{
    Cdb, HpbEntry, HpbNotification, Reply, ReplyBody, Request, RequestBody, Status, SubRegion,
};
use readpath_testkit::Meddler;

/// What happens to HPB on the wire, in per mille of the messages that could be meddled with.
#[derive(Clone, Copy, Default, Debug)]
pub struct Trouble {
    pub lose: u32,
    pub delay: u32,
    pub double: u32,
    pub invent: u32,
    pub stale: u32,
    pub random: u32,
    pub flip: u32,
    pub zero: u32,
    pub swap: u32,
    /// Plain reads turned into HPB READs with an entry that once was right.
    pub replay: u32,
    /// HPB READ BUFFERs that ask for another sub-region, which may not exist.
    pub misdirect: u32,
    /// Not on the wire: of a million steps of a run, those before which another host sets fHPBReset.
    pub hpb_resets_per_million: u64,
}

/// Loses, delays, doubles and invents notifications; replaces entries.
pub struct Troublemaker {
    rng: Prng,
    trouble: Trouble,
    kept: Vec<HpbNotification>,
    /// Entries seen, by unit and block: the newest and an older one.
    seen: Vec<Vec<[HpbEntry; 2]>>,
}

impl Troublemaker {
    pub fn new(o: &Options) -> Self {
        let seen = o.config.lus.iter().map(|lu| vec![[HpbEntry::ZERO; 2]; lu.blocks as usize]).collect();
        Troublemaker { rng: Prng::stream(o.seed, "trouble", 0), trouble: o.trouble, kept: Vec::new(), seen }
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng.chance_per_mille(per_mille)
    }

    fn invented(&mut self) -> HpbNotification {
        let mut at = || SubRegion { region: self.rng.next_u64() as u16, index: self.rng.below(10) as u16 };
        let active = [at(), at()];
        HpbNotification {
            operation: one_of(&mut self.rng, &[0, 1, 1, 1, 2, 3, 255]),
            lun: one_of(&mut self.rng, &[0, 0, 1, 7, 0x7F, 0xD0]),
            active_count: one_of(&mut self.rng, &[0, 1, 2, 3, 255]),
            inactive_count: one_of(&mut self.rng, &[0, 1, 2, 3, 255]),
            active: if self.rng.below(2) == 0 {
                active
            } else {
                active.map(|a| SubRegion { region: a.region % 8, ..a })
            },
            inactive: [self.rng.below(40) as u16, self.rng.next_u64() as u16],
        }
    }

    /// A READ ID that another command may have, or none.
    fn changed_id(&mut self, read_id: u8) -> u8 {
        if read_id != 0 && self.happens(self.trouble.swap) { self.rng.below(4) as u8 } else { read_id }
    }

    fn changed(&mut self, lun: usize, lba: u32, entry: HpbEntry) -> HpbEntry {
        let Trouble { stale, random, flip, zero, swap, .. } = self.trouble;
        if self.happens(stale) {
            return self.seen[lun][lba as usize][1];
        }
        if self.happens(random) {
            return HpbEntry(self.rng.next_u64().to_be_bytes());
        }
        if self.happens(flip) {
            let mut flipped = entry;
            let bit = self.rng.below(64) as usize;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            return flipped;
        }
        if self.happens(zero) {
            return HpbEntry::ZERO;
        }
        if self.happens(swap) {
            let near = (u64::from(lba) + self.rng.below(4)) as usize;
            return self.seen[lun].get(near).map_or(entry, |seen| seen[0]);
        }
        entry
    }
}

impl Meddler for Troublemaker {
    fn request(&mut self, request: &mut Request) {
        let RequestBody::Command(command) = &mut request.body else { return };
        let lun = usize::from(request.lun);
        match command.cdb {
            Cdb::HpbRead { lba, blocks, entry, flags, read_id } => {
                let seen = &mut self.seen[lun][lba as usize];
                if seen[0] != entry {
                    *seen = [entry, seen[0]];
                }
                let entry = self.changed(lun, lba, entry);
                let read_id = self.changed_id(read_id);
                command.cdb = Cdb::HpbRead { lba, blocks, entry, flags, read_id };
            }
            Cdb::Read { lba, blocks, flags, .. } if blocks < 256 && self.happens(self.trouble.replay) => {
                let [new, old] = self.seen[lun][lba as usize];
                let entry = if self.rng.below(2) == 0 { new } else { old };
                if entry != HpbEntry::ZERO {
                    command.cdb = Cdb::HpbRead { lba: lba as u32, blocks: blocks as u8, entry, flags, read_id: 0 };
                }
            }
            Cdb::HpbPreRequest { lba, read_id, list_bytes } => {
                // READ ID 0 is refused, like too many entries; neither is the read's concern.
                let read_id = self.changed_id(read_id);
                let lba = if self.happens(self.trouble.misdirect) { self.rng.next_u64() as u32 } else { lba };
                command.cdb = Cdb::HpbPreRequest { lba, read_id, list_bytes };
            }
            Cdb::HpbReadBuffer { buffer_id, at, alloc } if self.happens(self.trouble.misdirect) => {
                let region =
                    if self.rng.below(2) == 0 { at.region.wrapping_add(1) } else { self.rng.next_u64() as u16 };
                let at = SubRegion { region, index: self.rng.below(4) as u16 };
                command.cdb = Cdb::HpbReadBuffer { buffer_id, at, alloc };
            }
            _ => {}
        }
    }

    fn reply(&mut self, reply: &mut Reply) {
        let ReplyBody::Response(response) = &mut reply.body else { return };
        if response.status != Status::Good {
            return;
        }
        let Trouble { lose, delay, double, invent, .. } = self.trouble;
        if let Some(n) = response.hpb {
            if self.happens(lose) {
                response.hpb = None;
            } else if self.happens(delay) {
                self.kept.push(n);
                response.hpb = None;
            } else if self.happens(double) {
                self.kept.push(n);
            }
        } else if self.happens(invent) {
            response.hpb = Some(self.invented());
        } else if !self.kept.is_empty() && self.rng.below(20) == 0 {
            let at = self.rng.below(self.kept.len() as u64) as usize;
            response.hpb = Some(self.kept.swap_remove(at));
        }
    }
}
