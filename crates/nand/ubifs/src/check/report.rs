// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings and counts of a check.

use crate::error::{Damage, DamageKind, Place, Result, UbifsError};
use crate::flash::At;
use std::collections::BTreeSet;

/// Counts of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Index nodes.
    pub index_nodes: u64,
    /// Inodes, including those of attributes.
    pub inodes: u64,
    /// Directory entries.
    pub entries: u64,
    /// Attribute entries.
    pub xattrs: u64,
    /// Data nodes.
    pub data_nodes: u64,
    /// Bytes of data after decompression.
    pub data_bytes: u64,
    /// Nodes of the journal that were applied.
    pub journal_nodes: u64,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Findings, in the order in which they were found.
    pub findings: Vec<Damage>,
    /// Number of findings that are not listed.
    pub unlisted: u64,
    /// The volume had not been unmounted; its journal was recovered.
    pub unclean: bool,
    /// Counts.
    pub counts: CheckCounts,
}

impl CheckReport {
    /// Whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unlisted == 0
    }
}

/// State that the parts of a check share. It knows no physical erase blocks: they are added at its end.
pub(super) struct Check {
    pub report: CheckReport,
    /// The most findings that are listed.
    most: usize,
    /// Blocks already reported as not mapped.
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
        // A missing block is reported once, not for each of its nodes.
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

    /// Whether a finding was reported at this place.
    pub(super) fn reported(&self, at: At) -> bool {
        self.report.findings.iter().any(|d| (d.place.lnum, d.place.offset) == at)
    }

    /// Notes an error if it is damage; otherwise returns it.
    pub(super) fn error(&mut self, error: UbifsError) -> Result<()> {
        match error {
            UbifsError::Damage(damage) => {
                self.add(Damage { place: Place { peb: None, ..damage.place }, ..damage });
                Ok(())
            }
            other => Err(other),
        }
    }

    /// The result of a read; `None` if it failed, after noting the error.
    pub(super) fn read<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(read) => Ok(Some(read)),
            Err(e) => self.error(e).map(|()| None),
        }
    }
}
