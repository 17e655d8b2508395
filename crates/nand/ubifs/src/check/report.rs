// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check found and counted. Knows nothing of what is checked.

use crate::error::{Damage, DamageKind, Place, Result, UbifsError};
use crate::flash::At;
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
}

/// Everything that the parts of a check share. It knows no erase blocks: they are named at its end.
pub(super) struct Check {
    pub report: CheckReport,
    /// Most findings that are listed.
    most: usize,
    /// Blocks that were reported as not mapped.
    unmapped: BTreeSet<u32>,
}

impl Check {
    pub(super) fn new(most: usize) -> Check {
        Check { report: CheckReport::default(), most, unmapped: BTreeSet::new() }
    }

    pub(super) fn damage(&mut self, kind: DamageKind, at: impl Into<At>, detail: impl Into<String>) {
        let (lnum, offset) = at.into();
        self.add(Damage { kind, place: Place { lnum, offset, peb: None }, detail: detail.into() });
    }

    fn add(&mut self, damage: Damage) {
        // Of a block that is gone, all nodes are missed.
        if damage.kind == DamageKind::UnmappedLeb && !self.unmapped.insert(damage.place.lnum) {
            return;
        }
        let findings = &mut self.report.findings;
        if findings.iter().rev().take(8).any(|d| *d == damage) {
            return;
        }
        if findings.len() < self.most {
            findings.push(damage);
        } else {
            self.report.unlisted += 1;
        }
    }

    /// Whether something was reported at this place.
    pub(super) fn reported(&self, at: At) -> bool {
        self.report.findings.iter().any(|d| (d.place.lnum, d.place.offset) == at)
    }

    /// Notes an error; only damage can be one here.
    pub(super) fn error(&mut self, error: UbifsError) -> Result<()> {
        match error {
            UbifsError::Damage(damage) => {
                self.add(Damage { place: Place { peb: None, ..damage.place }, ..damage });
                Ok(())
            }
            other => Err(other),
        }
    }

    /// What was read, if it could be; otherwise the error is noted.
    pub(super) fn read<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(read) => Ok(Some(read)),
            Err(e) => self.error(e).map(|()| None),
        }
    }
}
