// SPDX-License-Identifier: MIT OR Apache-2.0
//! The built-in experiments: what `reproduce` takes, in the order in which `all` makes them.

use crate::attack::FORGERIES;

/// What kind of question an experiment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file of cases and variants.
    File {
        /// Attacks on HPB entries follow its runs.
        attacks: bool,
    },
    /// [`crate::hmb`].
    Hmb,
    /// [`crate::policies`].
    Policies,
    /// [`crate::ubi`].
    Ubi,
}

/// A built-in experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Kind of experiment.
    pub kind: Kind,
}

impl Builtin {
    /// Whether it is an experiment file.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. } | Kind::Hmb)
    }
}

const fn file(name: &'static str) -> Builtin {
    Builtin { name, kind: Kind::File { attacks: false } }
}

/// All built-in experiments.
pub const BUILTINS: [Builtin; 26] = [
    file("iozone"),
    file("tiobench"),
    file("appstart"),
    file("mixed"),
    file("chunk"),
    file("memory"),
    Builtin { name: "verification", kind: Kind::File { attacks: true } },
    file("rivals"),
    file("rivals_apps"),
    file("zones_reads"),
    file("zones_fragmented"),
    file("zones_writes"),
    file("zones_apps"),
    file("zones_programs"),
    file("zones_ageing"),
    file("ufs31"),
    file("ufs40"),
    file("nvme_reads"),
    file("nvme_writes"),
    file("qlc_writes"),
    file("raspberry"),
    Builtin { name: "hmb", kind: Kind::Hmb },
    file("hmb_map"),
    file("raspberry_memory"),
    Builtin { name: "policies", kind: Kind::Policies },
    Builtin { name: "ubi", kind: Kind::Ubi },
];

/// Experiments that answer one question together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Name that means them all.
    pub name: &'static str,
    /// What their page is called.
    pub title: &'static str,
    /// Their names.
    pub members: &'static [&'static str],
    /// Whether published values are all that is shown.
    pub is_of_published: bool,
    /// Name of the member on whose variants recorded traces are replayed, if they can be.
    pub replays: Option<&'static str>,
}

/// All groups.
pub const GROUPS: [Group; 2] = [
    Group {
        name: "devices",
        title: "devices beside published measurements",
        members: &["ufs31", "ufs40", "nvme_reads", "nvme_writes", "qlc_writes", "raspberry"],
        is_of_published: true,
        replays: None,
    },
    Group {
        name: "zones",
        title: "the map in SRAM, in host memory, in DRAM, or in zones",
        members: &["zones_reads", "zones_fragmented", "zones_writes", "zones_apps", "zones_programs", "zones_ageing"],
        is_of_published: false,
        replays: Some("zones_apps"),
    },
];

/// The built-in experiment of this name.
pub fn find(name: &str) -> Option<Builtin> {
    BUILTINS.into_iter().find(|builtin| builtin.name == name)
}

/// The forged entries of the attacks that follow the runs of the experiment of this name, if attacks do.
pub fn forgeries(name: &str) -> Option<u64> {
    find(name).filter(|builtin| builtin.kind == Kind::File { attacks: true }).map(|_| FORGERIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_come_with_the_program_are_those_of_the_list() {
        let listed: Vec<&str> = BUILTINS.iter().filter(|b| b.is_file()).map(|b| b.name).collect();
        let files: Vec<&str> = readpath_config::experiments().iter().map(|file| file.name).collect();
        assert_eq!(listed, files);
    }
}
