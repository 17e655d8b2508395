// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index in memory against a sorted map, under random changes with frequent name collisions.

use super::*;
use crate::key::NameHash;
use crate::lebs::{LebError, LebSizes};
use crate::lpt::Space;
use crate::sample;
use crate::superblock::Superblock;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LEB_BYTES: usize = 64 << 10;
const LEBS: u32 = 24;

struct Memory(Vec<u8>);

impl Lebs for Memory {
    fn sizes(&self) -> LebSizes {
        LebSizes { leb_bytes: LEB_BYTES as u32, leb_count: LEBS, min_io_bytes: 8 }
    }

    fn peb(&self, lnum: u32) -> Option<u32> {
        Some(lnum)
    }

    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], _what: ReadKind) -> std::result::Result<(), LebError> {
        let at = lnum as usize * LEB_BYTES + offset as usize;
        buf.copy_from_slice(&self.0[at..at + buf.len()]);
        Ok(())
    }
}

/// An index with inode 1 in it, and room for more nodes.
struct Index {
    flash: Space<Memory>,
    tnc: Tnc,
    /// Where the next node goes.
    end: usize,
}

impl Index {
    fn new(fanout: u32) -> Index {
        let sizes = LebSizes { leb_bytes: LEB_BYTES as u32, leb_count: LEBS, min_io_bytes: 8 };
        let mut sb = Superblock::parse(&sample::superblock(sizes), sizes).expect("a superblock");
        (sb.hash, sb.fanout) = (NameHash::Test, fanout);
        let end = sb.main_first() as usize * LEB_BYTES;
        let mut flash = Space::new(Flash::new(Memory(vec![0xFF; LEB_BYTES * LEBS as usize]), sb));
        let inode = write(&mut flash, &mut { end }, NodeType::Inode, &[0; 136]);
        let mut end = end + 160;
        let mut body = vec![1, 0, 0, 0];
        for word in [inode.lnum, inode.offset, inode.len, 1, 0] {
            body.extend(word.to_le_bytes());
        }
        let root = write(&mut flash, &mut end, NodeType::Index, &body);
        let tnc = Tnc::new(&flash, root);
        Index { flash, tnc, end }
    }

    fn all(&mut self) -> Vec<(Key, NodeRef)> {
        let mut all = Vec::new();
        let found = self.tnc.lookup(&mut self.flash, Key::inode(1)).expect("the index");
        assert!(found.exact, "inode 1 is always there");
        let mut at = Some(found.spot);
        while let Some(spot) = at {
            let branch = self.tnc.branch(spot);
            all.push((branch.key, branch.at));
            at = self.tnc.next(&mut self.flash, spot).expect("the index");
        }
        // The same backwards.
        let mut spot = Spot { ..self.last() };
        for &(key, node) in all.iter().rev() {
            let branch = self.tnc.branch(spot);
            assert_eq!((branch.key, branch.at), (key, node));
            match self.tnc.previous(&mut self.flash, spot).expect("the index") {
                Some(previous) => spot = previous,
                None => assert_eq!(key, Key::inode(1)),
            }
        }
        all
    }

    fn last(&mut self) -> Spot {
        self.tnc.lookup(&mut self.flash, Key::last_of(u32::MAX)).expect("the index").spot
    }
}

fn write(flash: &mut Flash<Memory>, end: &mut usize, kind: NodeType, body: &[u8]) -> NodeRef {
    let node = sample::node(kind, 0, body);
    let len = node.len();
    if *end % LEB_BYTES + len > LEB_BYTES {
        *end = end.next_multiple_of(LEB_BYTES);
    }
    flash.lebs.0[*end..*end + len].copy_from_slice(&node);
    let at = NodeRef { lnum: (*end / LEB_BYTES) as u32, offset: (*end % LEB_BYTES) as u32, len: len as u32 };
    *end = (*end + len).next_multiple_of(8);
    at
}

#[derive(Clone, Debug)]
enum Change {
    Data(u32, u32),
    Inode(u32),
    Name(u32, u8, u8),
    RemoveName(u32, u8, u8),
    RemoveBlocks(u32, u32, u32),
    RemoveInode(u32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let ino = 2..9u32;
    let change = prop_oneof![
        6 => (ino.clone(), 0..60u32).prop_map(|(i, b)| Change::Data(i, b)),
        1 => ino.clone().prop_map(Change::Inode),
        6 => (1..4u32, 0..3u8, 0..40u8).prop_map(|(d, h, n)| Change::Name(d, h, n)),
        3 => (1..4u32, 0..3u8, 0..40u8).prop_map(|(d, h, n)| Change::RemoveName(d, h, n)),
        1 => (ino.clone(), 0..60u32, 0..60u32).prop_map(|(i, a, b)| Change::RemoveBlocks(i, a.min(b), a.max(b))),
        1 => ino.prop_map(Change::RemoveInode),
    ];
    prop::collection::vec(change, 1..400)
}

/// Names with one of three hashes; beyond the first four bytes they differ.
fn name(hash: u8, number: u8) -> Vec<u8> {
    let mut name = vec![b'a' + hash; 4];
    name.extend(format!("{number}").bytes());
    name
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_do_what_they_say(
        changes in changes(),
        fanout in prop_oneof![Just(3u32), Just(8), Just(9)],
        replaying: bool,
    ) {
        let mut index = Index::new(fanout);
        index.tnc.replaying = replaying;
        let mut model: BTreeMap<(Key, Vec<u8>), NodeRef> = BTreeMap::new();
        let first = index.all();
        model.insert((first[0].0, Vec::new()), first[0].1);
        for change in changes {
            let Index { flash, tnc, end } = &mut index;
            match change {
                Change::Data(ino, block) => {
                    let key = Key::data(ino, block);
                    let at = NodeRef { lnum: 10, offset: (model.len() * 8) as u32, len: 60 };
                    tnc.add(flash, key, at).expect("an addition");
                    model.insert((key, Vec::new()), at);
                }
                Change::Inode(ino) => {
                    let at = NodeRef { lnum: 11, offset: (model.len() * 8) as u32, len: 160 };
                    tnc.add(flash, Key::inode(ino), at).expect("an addition");
                    model.insert((Key::inode(ino), Vec::new()), at);
                }
                Change::Name(dir, hash, number) => {
                    let name = name(hash, number);
                    let key = Key::dentry(dir, NameHash::Test.of(&name));
                    let mut body = vec![0; 32];
                    body[..4].copy_from_slice(&key.ino.to_le_bytes());
                    body[4..8].copy_from_slice(&key.rest.to_le_bytes());
                    body[16] = 5;
                    body[26] = name.len() as u8;
                    body.extend(&name);
                    body.push(0);
                    let at = write(flash, end, NodeType::Dentry, &body);
                    tnc.add_name(flash, key, at, &name).expect("an addition");
                    model.insert((key, name), at);
                }
                Change::RemoveName(dir, hash, number) => {
                    let name = name(hash, number);
                    let key = Key::dentry(dir, NameHash::Test.of(&name));
                    tnc.remove_name(flash, key, &name).expect("a removal");
                    model.remove(&(key, name));
                }
                Change::RemoveBlocks(ino, from, to) => {
                    tnc.remove_range(flash, Key::data(ino, from), Key::data(ino, to)).expect("a removal");
                    model.retain(|(key, _), _| !(Key::data(ino, from)..=Key::data(ino, to)).contains(key));
                }
                Change::RemoveInode(ino) => {
                    tnc.remove_inode(flash, ino).expect("a removal");
                    model.retain(|(key, _), _| key.ino != ino);
                }
            }
        }
        let wanted: Vec<(Key, NodeRef)> = model.iter().map(|((key, _), &at)| (*key, at)).collect();
        prop_assert_eq!(index.all(), wanted);
        // Up to its bound, a missing key is found where its neighbours are.
        for key in (2..9).flat_map(|ino| (0..60).map(move |block| (ino, block))) {
            let Index { flash, tnc, .. } = &mut index;
            let found = tnc.lookup(flash, Key::data(key.0, key.1)).expect("a lookup");
            let bound = tnc.next_bound(found.spot).unwrap_or(Key::last_of(u32::MAX));
            let later = (key.1 + 1..60).map(|block| Key::data(key.0, block));
            for next in later.take_while(|&next| !found.exact && next < bound) {
                prop_assert_eq!(tnc.lookup(flash, next).expect("a lookup"), found);
            }
        }
        for ((key, name), at) in &model {
            let Index { flash, tnc, .. } = &mut index;
            if name.is_empty() {
                let found = tnc.lookup(flash, *key).expect("a lookup");
                prop_assert!(found.exact && tnc.branch(found.spot).at == *at);
            } else {
                tnc.replaying = false;
                let spot = tnc.lookup_name(flash, *key, name).expect("a lookup");
                prop_assert_eq!(spot.map(|spot| tnc.branch(spot).at), Some(*at));
                let missing = [&name[..], b"?"].concat();
                prop_assert_eq!(tnc.lookup_name(flash, *key, &missing).expect("a lookup"), None);
            }
        }
    }
}

#[test]
fn an_index_that_leads_to_the_same_nodes_again_and_again_ends() {
    let mut index = Index::new(8);
    let key = Key::dentry(1, 5);
    let mut below = NodeRef { lnum: 10, offset: 0, len: 60 };
    // Twenty levels, on each of which all branches lead to one node: eight to the power of twenty leaves.
    for level in 0..20u16 {
        let mut body = [8, 0].to_vec();
        body.extend(level.to_le_bytes());
        for word in [below.lnum, below.offset, below.len, key.ino, key.rest].repeat(8) {
            body.extend(word.to_le_bytes());
        }
        below = write(&mut index.flash, &mut index.end, NodeType::Index, &body);
    }
    let mut tnc = Tnc::new(&index.flash, below);
    let (mut bytes, mut leaves, mut damage) = (0, 0, Vec::new());
    tnc.walk(&mut index.flash, |_, visit| match visit {
        Visit::Index(at) => bytes += u64::from(at.len),
        Visit::Leaf(..) => leaves += 1,
        Visit::Damage(e) => damage.push(e.to_string()),
    });
    let room = u64::from(index.flash.sb.main_lebs()) * LEB_BYTES as u64;
    assert!(bytes <= 2 * room + 1000 && leaves <= room / 56, "{bytes} bytes, {leaves} leaves");
    assert!(damage.iter().all(|d| d.contains("are referenced more than once")) && !damage.is_empty(), "{damage:#?}");
    let (mut entries, mut last) = (0, String::new());
    Tnc::new(&index.flash, below).walk_entries(&mut index.flash, Key::dentry(1, 0), |_, found| {
        entries += 1;
        last = found.expect_err("no entry is there").to_string();
    });
    assert!(entries <= room / 56 + 1 && last.contains("are referenced more than once"), "{entries} entries, {last}");
}
