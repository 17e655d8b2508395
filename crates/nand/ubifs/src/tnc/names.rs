// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves of the index, and names that share a hash: in the lowest level they follow each other in the order of names.

use super::{Found, Spot, Tnc};
use crate::error::{DamageKind, Result};
use crate::flash::{Flash, leaf_kind};
use crate::key::Key;
use crate::lebs::Lebs;
use crate::node::{Entry, key_of};
use std::cmp::Ordering;

/// How an entry's name compares with the one that is looked for.
enum Match {
    /// The branch leads to a node that is gone.
    Dangling,
    Order(Ordering),
}

impl Tnc {
    /// Reads the node that a branch leads to; it is then in `flash.node()`.
    pub(crate) fn read_leaf<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<()> {
        let branch = self.branch(spot);
        let (key, at) = (branch.key, branch.at);
        let Some((what, kind)) = leaf_kind(key) else {
            let detail = format!("a branch with {key}, a type that does not exist");
            return Err(flash.damage(DamageKind::BadIndex, at.lnum, at.offset, detail));
        };
        let node = flash.read_node(at, kind, what)?;
        let found = key_of(node);
        if found != key {
            let detail = format!("a node with {found}, its branch says {key}");
            return Err(flash.damage(DamageKind::WrongNode, at.lnum, at.offset, detail));
        }
        Ok(())
    }

    /// The entry of a branch whose key has a hash, from memory once it has been read.
    pub(crate) fn entry<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<&Entry> {
        if self.branch(spot).leaf.is_none() {
            self.read_leaf(flash, spot)?;
            let at = self.branch(spot).at;
            let entry =
                Entry::parse(flash.node()).map_err(|e| flash.damage(DamageKind::BadEntry, at.lnum, at.offset, e))?;
            self.branch_mut(spot).leaf = Some(Box::new(entry));
        }
        match &self.branch(spot).leaf {
            Some(entry) => Ok(entry),
            None => unreachable!("it was just put there"),
        }
    }

    fn compare<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot, name: &[u8]) -> Result<Match> {
        if self.replaying && self.branch(spot).leaf.is_none() {
            let branch = self.branch(spot);
            let (key, at) = (branch.key, branch.at);
            let Some((what, kind)) = leaf_kind(key) else { return Ok(Match::Dangling) };
            if flash.try_read_node(at, kind, what)?.is_err() || key_of(flash.node()) != key {
                return Ok(Match::Dangling);
            }
            let entry =
                Entry::parse(flash.node()).map_err(|e| flash.damage(DamageKind::BadEntry, at.lnum, at.offset, e))?;
            self.branch_mut(spot).leaf = Some(Box::new(entry));
        }
        let entry = self.entry(flash, spot)?;
        // Bytes first, then length, which is the order of slices.
        Ok(Match::Order((*entry.name).cmp(name)))
    }

    /// From any branch with the key to the one with the name (`resolve_collision`). If there is none, the spot is the
    /// one behind which it would be.
    pub(crate) fn resolve<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        key: Key,
        from: Spot,
        name: &[u8],
    ) -> Result<Found> {
        let found = |exact, spot| Ok(Found { exact, spot });
        let order = match self.compare(flash, from, name)? {
            Match::Order(Ordering::Equal) => return found(true, from),
            Match::Order(order) => order,
            Match::Dangling => return self.resolve_in_replay(flash, key, from, name, false),
        };
        let mut spot = from;
        if order == Ordering::Greater {
            loop {
                let Some(left) = self.previous(flash, spot)? else {
                    return found(false, Spot { slot: -1, ..spot });
                };
                if self.branch(left).key != key {
                    return found(false, self.insertion_spot(flash, left)?);
                }
                spot = left;
                match self.compare(flash, spot, name)? {
                    Match::Order(Ordering::Equal) => return found(true, spot),
                    Match::Order(Ordering::Less) => return found(false, spot),
                    _ => {}
                }
            }
        }
        loop {
            let Some(right) = self.next(flash, spot)? else { return found(false, spot) };
            if self.branch(right).key != key {
                return found(false, spot);
            }
            match self.compare(flash, right, name)? {
                Match::Order(Ordering::Equal) => return found(true, right),
                Match::Order(Ordering::Greater) => return found(false, spot),
                _ => spot = right,
            }
        }
    }

    /// What is inserted behind the last branch of a node goes before the first one of the next, where lookups begin.
    fn insertion_spot<L: Lebs>(&mut self, flash: &mut Flash<L>, left: Spot) -> Result<Spot> {
        if !self.is_last(left) {
            return Ok(left);
        }
        Ok(match self.next(flash, left)? {
            Some(next) => Spot { slot: -1, ..next },
            None => left,
        })
    }

    /// The same while a journal is replayed, when branches may lead to nodes that are gone
    /// (`fallible_resolve_collision`). Unless a name is added, such a branch is what is meant if nothing else fits.
    pub(crate) fn resolve_in_replay<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        key: Key,
        from: Spot,
        name: &[u8],
        adding: bool,
    ) -> Result<Found> {
        let found = |exact, spot| Ok(Found { exact, spot });
        let mut dangling = None;
        let mut unsure = false;
        let first = match self.compare(flash, from, name)? {
            Match::Order(Ordering::Equal) => return found(true, from),
            Match::Order(order) => {
                unsure |= !adding;
                Some(order)
            }
            Match::Dangling => {
                dangling = Some(from);
                unsure = true;
                None
            }
        };
        let mut spot = from;
        if first == Some(Ordering::Greater) || unsure {
            loop {
                let Some(left) = self.previous(flash, spot)? else {
                    spot.slot = -1;
                    break;
                };
                if self.branch(left).key != key {
                    spot = self.insertion_spot(flash, left)?;
                    break;
                }
                spot = left;
                match self.compare(flash, spot, name)? {
                    Match::Order(Ordering::Equal) => return found(true, spot),
                    Match::Dangling => dangling = Some(spot),
                    Match::Order(_) if !adding => {}
                    Match::Order(Ordering::Less) => break,
                    Match::Order(_) => unsure = false,
                }
            }
        }
        if first == Some(Ordering::Less) || unsure {
            spot = from;
            let mut right = from;
            while let Some(next) = self.next(flash, right)? {
                right = next;
                if self.branch(right).key != key {
                    break;
                }
                match self.compare(flash, right, name)? {
                    Match::Order(Ordering::Greater) => break,
                    Match::Order(Ordering::Equal) => return found(true, right),
                    Match::Order(Ordering::Less) => {}
                    Match::Dangling => dangling = Some(right),
                }
                spot = right;
            }
        }
        match dangling {
            Some(spot) if !adding => found(true, spot),
            _ => found(false, spot),
        }
    }

    /// The branch of a name.
    pub(crate) fn lookup_name<L: Lebs>(&mut self, flash: &mut Flash<L>, key: Key, name: &[u8]) -> Result<Option<Spot>> {
        let found = self.lookup(flash, key)?;
        if !found.exact {
            return Ok(None);
        }
        if *self.entry(flash, found.spot)?.name == *name {
            return Ok(Some(found.spot));
        }
        let found = self.resolve(flash, key, found.spot, name)?;
        Ok(found.exact.then_some(found.spot))
    }

    /// The entry behind the named one, or at or behind `key` if there is no name; none if the next branch is not of the
    /// same inode and type (`ubifs_tnc_next_ent`).
    pub(crate) fn next_entry<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        key: Key,
        name: Option<&[u8]>,
    ) -> Result<Option<Spot>> {
        let mut found = self.lookup(flash, key)?;
        if let Some(name) = name
            && found.exact
        {
            found = if self.replaying {
                self.resolve_in_replay(flash, key, found.spot, name, false)?
            } else {
                self.resolve(flash, key, found.spot, name)?
            };
        }
        let spot = if name.is_none() && found.exact { Some(found.spot) } else { self.next(flash, found.spot)? };
        self.entry_at(flash, spot, key)
    }

    /// The entry behind one whose branch is known, without a search; none as in [`Tnc::next_entry`].
    pub(crate) fn entry_behind<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<Option<Spot>> {
        let key = self.branch(spot).key;
        let next = self.next(flash, spot)?;
        self.entry_at(flash, next, key)
    }

    /// The spot, if it is an entry of the inode and type of `key`; the entry is then in memory.
    fn entry_at<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Option<Spot>, key: Key) -> Result<Option<Spot>> {
        let Some(spot) = spot else { return Ok(None) };
        let branch = self.branch(spot);
        if branch.key.ino != key.ino || branch.key.kind() != key.kind() {
            return Ok(None);
        }
        self.entry(flash, spot)?;
        Ok(Some(spot))
    }
}
