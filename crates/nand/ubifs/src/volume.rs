// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounting: superblock, masters, journal, orphans, in the order in which Linux reads them (`fs/ubifs/super.c`,
//! `mount_ubifs`), and the mounted volume.

use crate::error::{DamageKind, Place, Result, UbifsError};
use crate::flash::Flash;
use crate::journal::{self, Bud, Log};
use crate::key::{Key, KeyType};
use crate::lebs::{LebSizes, Lebs, ReadKind};
use crate::lpt::{Lpt, Space};
use crate::master::{self, Master};
use crate::node::{Inode, NodeType, SUPERBLOCK_BYTES};
use crate::orphans;
use crate::superblock::{Refusal, SUPERBLOCK_LEB, Superblock};
use crate::tnc::{Tnc, Visit};
use std::collections::BTreeMap;

/// Inode of the root directory.
pub(crate) const ROOT_INO: u32 = 1;

/// Mode of a mount, which decides what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountMode {
    /// As the kernel mounts for writing. Nothing is written, but reads for these writes are made.
    ReadWrite,
    /// As the kernel mounts for reading.
    ReadOnly,
    /// Without the properties of blocks: enough for files, and possible if these are damaged.
    Inspect,
}

/// Result of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// The volume had not been unmounted.
    pub unclean: bool,
    /// Nodes of the journal that were applied.
    pub journal_nodes: u64,
    /// Inodes that waited for deletion.
    pub orphans: u64,
}

/// A mounted volume.
pub struct Ubifs<L> {
    pub(crate) flash: Space<L>,
    pub(crate) tnc: Tnc,
    pub(crate) master: Master,
    pub(crate) log: Log,
    /// Sizes that recovery corrected.
    pub(crate) sizes: BTreeMap<u32, u64>,
    /// The root directory at the time of the mount.
    pub(crate) root: Inode,
    pub(crate) mode: MountMode,
    report: MountReport,
}

impl<L> std::fmt::Debug for Ubifs<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ubifs").field("superblock", &self.flash.sb).field("master", &self.master).finish()
    }
}

pub(crate) fn read_superblock<L: Lebs>(lebs: &mut L) -> Result<Superblock> {
    let place = Place { lnum: SUPERBLOCK_LEB, offset: 0, peb: lebs.peb(SUPERBLOCK_LEB) };
    let bad = |detail: String| UbifsError::Damage(crate::Damage { kind: DamageKind::BadSuperblock, place, detail });
    let sizes @ LebSizes { leb_bytes, leb_count, .. } = lebs.sizes();
    if leb_bytes < SUPERBLOCK_BYTES || leb_count == 0 {
        return Err(bad(format!("{leb_count} blocks of {leb_bytes} bytes hold no superblock")));
    }
    if !lebs.is_mapped(SUPERBLOCK_LEB) {
        return Err(bad(match (0..leb_count).any(|lnum| lebs.is_mapped(lnum)) {
            true => format!("LEB {SUPERBLOCK_LEB}, which has the superblock, has no PEB"),
            false => "the volume is empty: nothing was ever written to it".to_owned(),
        }));
    }
    let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
    crate::flash::read_tolerant(lebs, place, &mut bytes[..], ReadKind::Superblock)?;
    Superblock::parse(&bytes, sizes).map_err(|refusal| match refusal {
        Refusal::Bad(detail) => bad(detail),
        Refusal::Unsupported(what) => UbifsError::Unsupported(what),
    })
}

impl<L: Lebs> Ubifs<L> {
    /// Mounts a volume. Nothing is written: what recovery would repair on flash is repaired in memory.
    pub fn mount(mut lebs: L, mode: MountMode) -> Result<Ubifs<L>> {
        let sb = read_superblock(&mut lebs)?;
        let write = mode == MountMode::ReadWrite;
        if write && sb.space_fixup {
            let what = "the first mount with write access rewrites all blocks (mkfs.ubifs -F); mount it to read";
            return Err(UbifsError::Unsupported(what.to_owned()));
        }
        let mut flash = Space::new(Flash::new(lebs, sb));
        let master = master::read(&mut flash)?;
        let unclean = master.is_dirty();
        if mode != MountMode::Inspect {
            // The size of the old index is noted from its root (`dbg_old_index_check_init`).
            flash.read_node(master.root, NodeType::Index, ReadKind::Index)?;
            if unclean && write {
                check_heads(&mut flash, &master)?;
            }
            let saved = (write && flash.sb.big_lpt).then_some(master.lsave);
            let mut lpt = Lpt::init(&mut flash, master.lpt_root, master.ltab, saved)?;
            // The block in which the index continues is marked as taken (`take_ihead`).
            lpt.get(&mut flash, master.index_head.0)?.taken = true;
            flash.lpt = Some(lpt);
        }
        let mut tnc = Tnc::new(&flash, master.root);
        let mut log = journal::read_log(&mut flash, master.log_lnum, master.commit, unclean)?;
        let replayed = journal::replay(&mut flash, &mut tnc, &mut log, unclean, write)?;
        let mut report = MountReport { unclean, journal_nodes: replayed.nodes, orphans: 0 };
        journal::set_bud_properties(&mut flash, &log)?;
        if unclean && master.flags & master::FLAG_NO_ORPHANS == 0 {
            report.orphans = orphans::kill_orphans(&mut flash, &mut tnc)?;
        }
        let mut sizes = BTreeMap::new();
        if unclean {
            sizes = journal::recover_sizes(&mut flash, &mut tnc, replayed, write)?;
        } else if master.gc_lnum != u32::MAX {
            flash.with_lpt(|lpt, flash| {
                lpt.get(flash, master.gc_lnum)?.taken = true;
                Ok(())
            })?;
        }
        // The root directory is looked up at the end of every mount.
        let root = inode(&mut flash, &mut tnc, &sizes, ROOT_INO)?;
        if root.file_type() != Some(crate::FileType::Directory) {
            return Err(UbifsError::path(b"/", "its inode is not a directory"));
        }
        Ok(Ubifs { flash, tnc, master, log, sizes, root, mode, report })
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.flash.sb
    }

    /// The master.
    pub fn master(&self) -> &Master {
        &self.master
    }

    /// The blocks of the journal.
    pub fn buds(&self) -> &[Bud] {
        &self.log.buds
    }

    /// The result of the mount.
    pub fn report(&self) -> &MountReport {
        &self.report
    }

    /// The blocks underneath.
    pub fn lebs(&mut self) -> &mut L {
        &mut self.flash.lebs
    }

    /// Unmounts.
    pub fn into_lebs(self) -> L {
        self.flash.into_flash().lebs
    }

    /// Bytes of flash that the data nodes of each inode take. Walks over the whole index, and keeps none of the nodes
    /// in memory.
    pub fn stored_bytes(&mut self) -> Result<BTreeMap<u32, u64>> {
        let (mut stored, mut damage) = (BTreeMap::new(), None);
        self.tnc.walk(&mut self.flash, |_, visit| match visit {
            Visit::Leaf(key, at) if key.kind() == Some(KeyType::Data) => {
                *stored.entry(key.ino).or_default() += u64::from(at.len);
            }
            Visit::Damage(e) => damage = damage.take().or(Some(e)),
            _ => {}
        });
        damage.map_or(Ok(stored), Err)
    }

    /// Reads an inode.
    pub fn inode(&mut self, ino: u32) -> Result<Inode> {
        inode(&mut self.flash, &mut self.tnc, &self.sizes, ino)
    }
}

fn inode<L: Lebs>(flash: &mut Space<L>, tnc: &mut Tnc, sizes: &BTreeMap<u32, u64>, ino: u32) -> Result<Inode> {
    let found = tnc.lookup(flash, Key::inode(ino))?;
    if !found.exact {
        return Err(UbifsError::path(format!("inode {ino}").as_bytes(), "no such inode"));
    }
    tnc.read_leaf(flash, found.spot)?;
    let at = tnc.branch(found.spot).at;
    let mut inode = flash.inode(at)?;
    if let Some(&size) = sizes.get(&ino) {
        inode.size = inode.size.max(size);
    }
    Ok(inode)
}

/// Checks that index and properties tree can be continued where the master says (`ubifs_recover_inl_heads`). If that
/// space is not empty, the kernel rewrites the block, for which it reads the bytes before.
fn check_heads<L: Lebs>(flash: &mut Space<L>, master: &Master) -> Result<()> {
    for (lnum, offset) in [master.index_head, master.lpt_head] {
        let len = flash.sb.min_io_bytes.min(flash.sb.leb_bytes - offset);
        if len == 0 {
            continue;
        }
        let mut head = vec![0; len as usize];
        flash.read(lnum, offset, &mut head, ReadKind::RecoverHead)?;
        if !crate::scan::all_ff(&head) && offset > 0 {
            let mut before = vec![0; offset as usize];
            flash.read(lnum, 0, &mut before, ReadKind::RecoverHead)?;
        }
    }
    Ok(())
}
