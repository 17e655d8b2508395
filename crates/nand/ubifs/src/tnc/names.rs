// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves of the index, and names that share a hash: in the lowest level they are consecutive, in the order of names.

use super::{Lookup, Spot, Tnc};
use crate::error::Result;
use crate::flash::{Flash, leaf_kind};
use crate::key::Key;
use crate::lebs::Lebs;
use crate::node::{Entry, key_of};
use std::cmp::Ordering;

impl Tnc {
    /// Reads the node that a branch leads to; it is then in `flash.node()`.
    pub(crate) fn read_leaf<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<()> {
        let branch = self.branch(spot);
        flash.read_leaf(branch.key, branch.at, None).map(drop)
    }

    /// The entry of a branch whose key has a hash, from memory once it has been read.
    pub(crate) fn entry<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<&Entry> {
        if self.branch(spot).leaf.is_none() {
            self.read_leaf(flash, spot)?;
            self.keep_entry(flash, spot)?;
        }
        Ok(self.branch(spot).leaf.as_ref().expect("it was just put there"))
    }

    /// Keeps the entry in the node that was read last.
    fn keep_entry<L: Lebs>(&mut self, flash: &Flash<L>, spot: Spot) -> Result<()> {
        let entry = flash.entry(self.branch(spot).at)?;
        self.branch_mut(spot).leaf = Some(Box::new(entry));
        Ok(())
    }

    /// Compares an entry's name with another one: bytes first, then length, which is the order of slices.
    fn order<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot, name: &[u8]) -> Result<Ordering> {
        Ok((*self.entry(flash, spot)?.name).cmp(name))
    }

    /// [`Tnc::order`] during a replay; `None` if the branch leads to an erased node.
    fn order_in_replay<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot, name: &[u8]) -> Result<Option<Ordering>> {
        let branch = self.branch(spot);
        if branch.leaf.is_none() {
            let (key, at) = (branch.key, branch.at);
            let Some((what, kind)) = leaf_kind(key) else { return Ok(None) };
            if flash.try_read_node(at, kind, what)?.is_err() || key_of(flash.node()) != key {
                return Ok(None);
            }
            self.keep_entry(flash, spot)?;
        }
        self.order(flash, spot, name).map(Some)
    }

    /// From any branch with the key, finds the one with the name, which is to be added or not. If there is none, the
    /// spot is the one behind which it would be inserted.
    pub(super) fn resolve<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        key: Key,
        from: Spot,
        name: &[u8],
        adding: bool,
    ) -> Result<Lookup> {
        if self.replaying {
            self.resolve_in_replay(flash, key, from, name, adding)
        } else {
            self.resolve_name(flash, key, from, name)
        }
    }

    /// [`Tnc::resolve`] after the replay, when every branch leads to its node (`resolve_collision`).
    fn resolve_name<L: Lebs>(&mut self, flash: &mut Flash<L>, key: Key, from: Spot, name: &[u8]) -> Result<Lookup> {
        let found = |exact, spot| Ok(Lookup { exact, spot });
        let order = self.order(flash, from, name)?;
        if order == Ordering::Equal {
            return found(true, from);
        }
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
                match self.order(flash, spot, name)? {
                    Ordering::Equal => return found(true, spot),
                    Ordering::Less => return found(false, spot),
                    Ordering::Greater => {}
                }
            }
        }
        loop {
            let Some(right) = self.next(flash, spot)? else { return found(false, spot) };
            if self.branch(right).key != key {
                return found(false, spot);
            }
            match self.order(flash, right, name)? {
                Ordering::Equal => return found(true, right),
                Ordering::Greater => return found(false, spot),
                Ordering::Less => spot = right,
            }
        }
    }

    /// A branch behind the last one of a node is inserted before the first one of the next, where lookups begin.
    fn insertion_spot<L: Lebs>(&mut self, flash: &mut Flash<L>, left: Spot) -> Result<Spot> {
        if !self.is_last(left) {
            return Ok(left);
        }
        Ok(match self.next(flash, left)? {
            Some(next) => Spot { slot: -1, ..next },
            None => left,
        })
    }

    /// [`Tnc::resolve`] during a replay, when branches may lead to erased nodes (`fallible_resolve_collision`).
    /// Unless a name is added, such a branch is the result if no other matches.
    fn resolve_in_replay<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        key: Key,
        from: Spot,
        name: &[u8],
        adding: bool,
    ) -> Result<Lookup> {
        let found = |exact, spot| Ok(Lookup { exact, spot });
        let mut dangling = None;
        let mut unsure = false;
        let first = self.order_in_replay(flash, from, name)?;
        match first {
            Some(Ordering::Equal) => return found(true, from),
            Some(_) => unsure |= !adding,
            None => (dangling, unsure) = (Some(from), true),
        }
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
                match self.order_in_replay(flash, spot, name)? {
                    Some(Ordering::Equal) => return found(true, spot),
                    None => dangling = Some(spot),
                    Some(_) if !adding => {}
                    Some(Ordering::Less) => break,
                    Some(_) => unsure = false,
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
                match self.order_in_replay(flash, right, name)? {
                    Some(Ordering::Greater) => break,
                    Some(Ordering::Equal) => return found(true, right),
                    Some(Ordering::Less) => {}
                    None => dangling = Some(right),
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
        let found = self.resolve(flash, key, found.spot, name, false)?;
        Ok(found.exact.then_some(found.spot))
    }

    /// The entry behind the named one, or at or behind `key` if there is no name; `None` if the next branch is of
    /// another inode or type (`ubifs_tnc_next_ent`).
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
            found = self.resolve(flash, key, found.spot, name, false)?;
        }
        let spot = if name.is_none() && found.exact { Some(found.spot) } else { self.next(flash, found.spot)? };
        self.entry_at(flash, spot, key)
    }

    /// The entry behind one whose branch is known, without a search; `None` as in [`Tnc::next_entry`].
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
