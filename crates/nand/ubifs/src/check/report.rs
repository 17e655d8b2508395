// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check found and counted. Knows nothing of what is checked.

use crate::error::{Damage, DamageKind, Result, UbifsError};
use crate::flash::{Flash, NodeRef};
use crate::lebs::Lebs;
use std::collections::BTreeSet;

/// What a check counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Index nodes.
    pub index_nodes: u64,
    /// Inodes, those of attributes among them.
    pub inodes: u64,
    /// Directory entries.
    pub entries: u64,
    /// Attribute entries.
    pub xattrs: u64,
    /// Data nodes.
    pub data_nodes: u64,
    /// Bytes that these expand to.
    pub data_bytes: u64,
    /// Nodes of the journal that were applied.
    pub journal_nodes: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Damage>,
    /// How much more is wrong than is listed.
    pub unlisted: u64,
    /// The volume had not been unmounted; its journal was recovered.
    pub unclean: bool,
    /// What there is.
    pub counts: CheckCounts,
}

impl CheckReport {
    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unlisted == 0
    }

    fn add(&mut self, damage: Damage, most: usize) {
        if self.findings.iter().rev().take(8).any(|d| d == &damage) {
            return;
        }
        if self.findings.len() < most {
            self.findings.push(damage);
        } else {
            self.unlisted += 1;
        }
    }
}

/// Everything that the parts of a check share.
pub(super) struct Check {
    pub report: CheckReport,
    /// Most findings that are listed.
    pub most: usize,
    /// Blocks of which it was told that they are not mapped.
    pub unmapped: BTreeSet<u32>,
}

impl Check {
    pub(super) fn damage<L: Lebs>(&mut self, flash: &Flash<L>, kind: DamageKind, at: NodeRef, detail: String) {
        self.add(Damage { kind, place: flash.place(at.lnum, at.offset), detail });
    }

    pub(super) fn add(&mut self, damage: Damage) {
        // Of a block that is gone, all nodes are missed.
        if damage.kind != DamageKind::UnmappedLeb || self.unmapped.insert(damage.place.lnum) {
            self.report.add(damage, self.most);
        }
    }

    /// Notes an error; only damage can be one here.
    pub(super) fn error(&mut self, error: UbifsError) -> Result<()> {
        match error {
            UbifsError::Damage(damage) => {
                self.add(damage);
                Ok(())
            }
            other => Err(other),
        }
    }
}
