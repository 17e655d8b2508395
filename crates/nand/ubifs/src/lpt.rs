// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of block properties (LPT): how many bytes of each main block are free and how many no longer used.
//!
//! Reading files does not need it. Deleting does: every byte that is no longer used is counted at its block, and the
//! first access to a block's properties reads them. Facts: Linux `fs/ubifs/lpt.c`, `lprops.c`, `find.c`.

use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::lebs::{Lebs, ReadKind};
use crate::node::align8;
use crate::superblock::Superblock;
use std::ops::{Deref, DerefMut};

/// Children of a node.
const FANOUT: u32 = 4;
const CRC_BITS: u32 = 16;
const TYPE_BITS: u32 = 4;

/// Widths and sizes that follow from the superblock (`ubifs_calc_lpt_geom`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LptShape {
    /// Levels of inner nodes.
    pub height: u32,
    /// Bits of free or dirty space, counted in 8 bytes.
    pub space_bits: u32,
    /// Bits of a block number within the area.
    pub lnum_bits: u32,
    /// Bits of a byte within a block.
    pub offset_bits: u32,
    /// Bits of bytes in a block.
    pub whole_bits: u32,
    /// Bits of a node's number; 0 in the small model.
    pub number_bits: u32,
    /// Bits of a main block's number.
    pub big_lnum_bits: u32,
    /// Bytes of a leaf.
    pub leaf_bytes: u32,
    /// Bytes of an inner node.
    pub inner_bytes: u32,
    /// Bytes of the table of the area's own blocks.
    pub table_bytes: u32,
    /// Bytes of the list of saved blocks (`lsave`).
    pub lsave_bytes: u32,
    /// Leaves that the main area has.
    pub leaves: u32,
}

/// Position of the highest bit that is set, counted from 1.
fn fls(n: u32) -> u32 {
    32 - n.leading_zeros()
}

impl LptShape {
    /// The shape for a volume.
    pub fn new(sb: &Superblock) -> LptShape {
        let groups = (sb.main_lebs() + sb.max_leb_count - sb.leb_count).div_ceil(FANOUT);
        let mut height = 1;
        let mut reach = FANOUT;
        while reach < groups {
            height += 1;
            reach = reach.saturating_mul(FANOUT);
        }
        let space_bits = fls(sb.leb_bytes) - 3;
        let lnum_bits = fls(sb.lpt_lebs);
        let offset_bits = fls(sb.leb_bytes - 1);
        let whole_bits = fls(sb.leb_bytes);
        let number_bits = if sb.big_lpt { fls(sb.max_leb_count.div_ceil(FANOUT) - 1) } else { 0 };
        let big_lnum_bits = fls(sb.max_leb_count - 1);
        let head = CRC_BITS + TYPE_BITS;
        let bytes = |bits: u64| u32::try_from(bits.div_ceil(8)).unwrap_or(u32::MAX);
        LptShape {
            height,
            space_bits,
            lnum_bits,
            offset_bits,
            whole_bits,
            number_bits,
            big_lnum_bits,
            leaf_bytes: bytes(u64::from(head + number_bits + (2 * space_bits + 1) * FANOUT)),
            inner_bytes: bytes(u64::from(head + number_bits + (lnum_bits + offset_bits) * FANOUT)),
            table_bytes: bytes(u64::from(head) + u64::from(sb.lpt_lebs) * u64::from(whole_bits) * 2),
            lsave_bytes: bytes(u64::from(head) + u64::from(sb.lsave_count) * u64::from(big_lnum_bits)),
            leaves: sb.main_lebs().div_ceil(FANOUT),
        }
    }
}

/// Numbers packed without gaps, lowest bit first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    /// The bits of a packed node behind its checksum and type.
    fn body(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: (CRC_BITS + TYPE_BITS) as usize }
    }

    fn take(&mut self, bits: u32) -> u32 {
        let mut value = 0u64;
        for i in 0..bits as usize {
            let at = self.at + i;
            let bit = self.bytes.get(at / 8).map_or(0, |b| b >> (at % 8) & 1);
            value |= u64::from(bit) << i;
        }
        self.at += bits as usize;
        value as u32
    }
}

/// CRC-16 with the polynomial 0xA001 (reflected), starting at 0xFFFF.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xFFFF, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xA001 } else { c >> 1 })
    })
}

/// Properties of a main block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Properties {
    /// Bytes at the end that are not written.
    pub free: u32,
    /// Bytes that are no longer used.
    pub dirty: u32,
    /// The block holds index nodes.
    pub index: bool,
    /// The block is in use by a journal head or by garbage collection.
    pub taken: bool,
}

/// Kinds of its nodes; the numbers are those on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Leaf = 0,
    Inner = 1,
    Table = 2,
    Saved = 3,
}

/// The part of the tree read so far.
#[derive(Debug)]
pub(crate) struct Lpt {
    pub shape: LptShape,
    root: (u32, u32),
    /// Inner nodes by their number in breadth-first order of a full tree of fanout 4.
    inner: std::collections::BTreeMap<u64, [(u32, u32); 4]>,
    /// Properties by leaf.
    leaves: Vec<Option<[Properties; 4]>>,
    /// Leaves in the order in which they were read.
    order: Vec<u32>,
}

impl Lpt {
    /// Reads and checks the table of the area's own blocks (`lpt_init_rd`), and, for write access, the list of saved
    /// blocks with their properties (`lpt_init_wr`).
    pub(crate) fn init<L: Lebs>(
        flash: &mut Flash<L>,
        root: (u32, u32),
        table: (u32, u32),
        saved: Option<(u32, u32)>,
    ) -> Result<Lpt> {
        let mut lpt = Lpt::unread(flash, root);
        let shape = lpt.shape;
        read_packed(flash, table, shape.table_bytes, NodeKind::Table, ReadKind::LptInit)?;
        if let Some(saved) = saved {
            let bytes = read_packed(flash, saved, shape.lsave_bytes, NodeKind::Saved, ReadKind::LptInit)?;
            let mut bits = Bits::body(&bytes);
            for _ in 0..flash.sb.lsave_count {
                let lnum = bits.take(shape.big_lnum_bits);
                if !flash.sb.in_main(lnum, 0, 0) {
                    let detail = format!("the list of LEBs to save (lsave) names block {lnum}, not of the main area");
                    return Err(flash.damage(DamageKind::BadProperties, saved, detail));
                }
                lpt.get(flash, lnum)?;
            }
        }
        Ok(lpt)
    }

    /// A tree for a walk of all properties: nothing is read yet.
    pub(crate) fn unread<L>(flash: &Flash<L>, root: (u32, u32)) -> Lpt {
        let shape = LptShape::new(&flash.sb);
        Lpt { shape, root, inner: Default::default(), leaves: vec![None; shape.leaves as usize], order: Vec::new() }
    }

    /// Properties of a main block, read if they have not been yet (`ubifs_lpt_lookup`).
    pub(crate) fn get<L: Lebs>(&mut self, flash: &mut Flash<L>, lnum: u32) -> Result<&mut Properties> {
        let i = lnum - flash.sb.main_first();
        let leaf = i / FANOUT;
        if self.leaves[leaf as usize].is_none() {
            let mut at = self.root;
            // Numbers of inner nodes: the root is 1, children of n are 4n to 4n+3.
            let mut number = 1u64;
            for level in (0..self.shape.height).rev() {
                let children = match self.inner.get(&number) {
                    Some(children) => *children,
                    None => {
                        let children = self.read_inner(flash, at)?;
                        self.inner.insert(number, children);
                        children
                    }
                };
                let child = leaf >> (2 * level) & (FANOUT - 1);
                at = children[child as usize];
                number = number * u64::from(FANOUT) + u64::from(child);
            }
            let properties = self.read_leaf(flash, at)?;
            self.leaves[leaf as usize] = Some(properties);
            self.order.push(leaf);
        }
        let leaf = self.leaves[leaf as usize].get_or_insert_default();
        Ok(&mut leaf[(i % FANOUT) as usize])
    }

    fn read_inner<L: Lebs>(&self, flash: &mut Flash<L>, at: (u32, u32)) -> Result<[(u32, u32); 4]> {
        if at.0 == 0 {
            return Ok([(0, 0); 4]);
        }
        let shape = &self.shape;
        let bytes = read_packed(flash, at, shape.inner_bytes, NodeKind::Inner, ReadKind::LptInner)?;
        let mut bits = Bits::body(&bytes);
        bits.take(shape.number_bits);
        let mut children = [(0, 0); 4];
        for child in &mut children {
            let (lnum, offset) = (bits.take(shape.lnum_bits), bits.take(shape.offset_bits));
            // A number beyond the last block means that there is no child: all blocks below are empty.
            if lnum < flash.sb.lpt_lebs {
                if offset >= flash.sb.leb_bytes {
                    let detail = format!("a child at byte {offset} of a block of {} bytes", flash.sb.leb_bytes);
                    return Err(flash.damage(DamageKind::BadProperties, at, detail));
                }
                *child = (lnum + flash.sb.lpt_first(), offset);
            } else if lnum > flash.sb.lpt_lebs {
                let detail = format!("a child in block {lnum} of {} of the properties tree", flash.sb.lpt_lebs);
                return Err(flash.damage(DamageKind::BadProperties, at, detail));
            }
        }
        Ok(children)
    }

    fn read_leaf<L: Lebs>(&self, flash: &mut Flash<L>, at: (u32, u32)) -> Result<[Properties; 4]> {
        let whole = flash.sb.leb_bytes;
        if at.0 == 0 {
            return Ok([Properties { free: whole, ..Properties::default() }; 4]);
        }
        let shape = &self.shape;
        let bytes = read_packed(flash, at, shape.leaf_bytes, NodeKind::Leaf, ReadKind::LptLeaf)?;
        let mut bits = Bits::body(&bytes);
        bits.take(shape.number_bits);
        let mut leaf = [Properties::default(); 4];
        for p in &mut leaf {
            *p = Properties {
                free: bits.take(shape.space_bits) << 3,
                dirty: bits.take(shape.space_bits) << 3,
                index: bits.take(1) == 1,
                taken: false,
            };
            if p.free > whole || p.dirty > whole || p.free + p.dirty > whole {
                let detail = format!("{} free and {} dirty bytes in a block of {whole}", p.free, p.dirty);
                return Err(flash.damage(DamageKind::BadProperties, at, detail));
            }
        }
        Ok(leaf)
    }

    /// Counts further bytes of a block as no longer used (`ubifs_add_dirt`).
    pub(crate) fn add_dirt<L: Lebs>(&mut self, flash: &mut Flash<L>, lnum: u32, bytes: u32) -> Result<()> {
        if !flash.sb.in_main(lnum, 0, 0) {
            return Err(flash.damage(DamageKind::BadIndex, (lnum, 0), "a branch leads out of the main area"));
        }
        let whole = flash.sb.leb_bytes;
        let p = self.get(flash, lnum)?;
        p.dirty = p.dirty.saturating_add(align8(bytes)).min(whole);
        Ok(())
    }

    /// Finds a block with at least `bytes` free for the base head, which fills partly used blocks first: among
    /// properties in memory, then among blocks in turn from `from` on (`ubifs_find_free_space`).
    pub(crate) fn find_free<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        bytes: u32,
        from: u32,
    ) -> Result<Option<(u32, u32)>> {
        let whole = flash.sb.leb_bytes;
        let (first, count) = (flash.sb.main_first(), flash.sb.main_lebs());
        let fits = |p: &Properties| !p.taken && !p.index && p.free >= bytes;
        let partly = |p: &Properties| fits(p) && p.free < whole && p.free + p.dirty < whole && p.dirty <= p.free;
        let mut best: Option<(u32, u32)> = None;
        let mut empty = None;
        for &leaf in &self.order {
            for (i, p) in self.leaves[leaf as usize].iter().flatten().enumerate() {
                let lnum = first + leaf * FANOUT + i as u32;
                if lnum >= flash.sb.leb_count {
                    continue;
                }
                if partly(p) && best.is_none_or(|(_, free)| p.free > free) {
                    best = Some((lnum, p.free));
                }
                // The most recently read one is taken first.
                if fits(p) && p.free == whole {
                    empty = Some((lnum, p.free));
                }
            }
        }
        let mut found = best.or(empty);
        let start = if flash.sb.in_main(from, 0, 0) { from - first } else { 0 };
        let mut step = 1;
        while found.is_none() && step <= count {
            let lnum = first + (start + step) % count;
            let p = *self.get(flash, lnum)?;
            if fits(&p) && (p.free + p.dirty < whole || p.dirty == 0) {
                found = Some((lnum, p.free));
            }
            step += 1;
        }
        if let Some((lnum, _)) = found {
            self.get(flash, lnum)?.taken = true;
        }
        Ok(found)
    }
}

/// The blocks, and the properties of main blocks if space is accounted for.
pub(crate) struct Space<L> {
    flash: Flash<L>,
    pub lpt: Option<Lpt>,
}

impl<L> Deref for Space<L> {
    type Target = Flash<L>;

    fn deref(&self) -> &Flash<L> {
        &self.flash
    }
}

impl<L> DerefMut for Space<L> {
    fn deref_mut(&mut self) -> &mut Flash<L> {
        &mut self.flash
    }
}

impl<L: Lebs> Space<L> {
    /// Without accounting of space.
    pub(crate) fn new(flash: Flash<L>) -> Space<L> {
        Space { flash, lpt: None }
    }

    /// The blocks alone.
    pub(crate) fn into_flash(self) -> Flash<L> {
        self.flash
    }

    /// Counts the bytes of a node as no longer used, for which the properties of its block may have to be read.
    pub(crate) fn add_dirt(&mut self, at: NodeRef) -> Result<()> {
        match &mut self.lpt {
            Some(lpt) if at.len > 0 => lpt.add_dirt(&mut self.flash, at.lnum, at.len),
            _ => Ok(()),
        }
    }

    /// Runs `f` with the properties, if space is accounted for.
    pub(crate) fn with_lpt(&mut self, f: impl FnOnce(&mut Lpt, &mut Flash<L>) -> Result<()>) -> Result<()> {
        self.lpt.as_mut().map_or(Ok(()), |lpt| f(lpt, &mut self.flash))
    }
}

/// Free and dirty bytes of each of the area's own blocks, according to the table.
pub(crate) fn own_blocks<L: Lebs>(flash: &mut Flash<L>, table: (u32, u32)) -> Result<Vec<(u32, u32)>> {
    let shape = LptShape::new(&flash.sb);
    let bytes = read_packed(flash, table, shape.table_bytes, NodeKind::Table, ReadKind::Check)?;
    let mut bits = Bits::body(&bytes);
    let blocks = (0..flash.sb.lpt_lebs).map(|_| (bits.take(shape.whole_bits), bits.take(shape.whole_bits)));
    Ok(blocks.collect())
}

/// Reads a packed node and checks its checksum and type.
fn read_packed<L: Lebs>(
    flash: &mut Flash<L>,
    at: (u32, u32),
    len: u32,
    kind: NodeKind,
    what: ReadKind,
) -> Result<Vec<u8>> {
    let bad = |flash: &Flash<L>, detail: String| Err(flash.damage(DamageKind::BadProperties, at, detail));
    let sb = &flash.sb;
    if !(sb.lpt_first()..sb.orphans_first()).contains(&at.0) || at.1.saturating_add(len) > sb.leb_bytes {
        let detail = format!(
            "a properties node of {len} bytes here, outside of blocks {} to {}",
            sb.lpt_first(),
            sb.orphans_first() - 1
        );
        return bad(flash, detail);
    }
    let mut bytes = vec![0; len as usize];
    flash.read(at.0, at.1, &mut bytes, what)?;
    let found = u16::from_le_bytes([bytes[0], bytes[1]]);
    let computed = crc16(&bytes[2..]);
    if found != computed {
        return bad(flash, format!("checksum {found:#06x} of a properties node, its bytes give {computed:#06x}"));
    }
    let number = Bits { bytes: &bytes, at: CRC_BITS as usize }.take(TYPE_BITS);
    if number != kind as u32 {
        return bad(flash, format!("properties node of type {number}, expected {} ({kind:?})", kind as u32));
    }
    Ok(bytes)
}
