// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes: folders, links and files, numbered as they appear. A host appears when it has found its device, and
//! stays.

use crate::Errno;
use crate::errno::of_store;
use crate::names::{ATTRIBUTES, DESCRIPTORS, FLAGS, STATS, STRINGS, UNIT, power_levels};
use crate::number::parse_uint;
use readpath_host::HpbParam;
use readpath_proto::query::descriptor;
use readpath_run::{Board, HpbView, Post, RunState, UnitView, View};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Number of the root folder, as FUSE requires it.
pub(crate) const ROOT: u64 = 1;

/// Default of Linux's module parameter `ufshpb_host_map_kbytes`.
const HOST_MAP_KBYTES: u32 = 2048;

/// What a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A symbolic link, and where it leads.
    Link(String),
    /// A file, and whether it can be written.
    File {
        /// Mode 0644 instead of 0444.
        writable: bool,
    },
}

/// A node in its folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Number.
    pub node: u64,
    /// Kind of the node.
    pub kind: Kind,
}

/// What a file shows of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    Field { idn: u8, offset: u8, bytes: u8 },
    Text(usize),
    Flag(u8),
    Attribute(u8),
    UnitField { unit: usize, offset: u8, bytes: u8 },
    DynCapNeeded { unit: usize },
    Counter { unit: usize, place: usize },
    Param { unit: usize, param: HpbParam },
    Case,
    Variant,
    State,
    Requests,
    VirtualTime,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Folder(Vec<(String, u64)>),
    Link(String),
    OfRun { run: usize, shown: Shown },
    HostMapKbytes,
}

struct Node {
    parent: u64,
    what: What,
}

struct Nodes {
    /// Node `n` is at place `n - 1`.
    list: Vec<Node>,
    /// Whether the host of a run has appeared.
    appeared: Vec<bool>,
}

/// The files of all runs of a board.
pub struct Tree {
    board: Arc<Board>,
    nodes: RwLock<Nodes>,
    /// Kept, and without effect: Linux looks at it only before it finds a device, and this host reserves nothing.
    host_map_kbytes: AtomicU32,
}

impl Tree {
    /// The tree of a board.
    pub fn new(board: Arc<Board>) -> Self {
        let runs = board.posts().len();
        let root = Node { parent: ROOT, what: What::Folder(Vec::new()) };
        let mut nodes = Nodes { list: vec![root], appeared: vec![false; runs] };
        nodes.add("module/ufshcd_core/parameters/ufshpb_host_map_kbytes", What::HostMapKbytes);
        for folder in ["devices/platform", "bus/platform/devices", "bus/platform/drivers/ufshcd", "bus/scsi/devices"] {
            nodes.folder(folder);
        }
        nodes.folder("class/scsi_device");
        for run in 0..runs {
            let files = [
                ("case", Shown::Case),
                ("variant", Shown::Variant),
                ("state", Shown::State),
                ("requests", Shown::Requests),
                ("virtual_time_ns", Shown::VirtualTime),
            ];
            for (name, shown) in files {
                nodes.add(&format!("readpath/host{run}/{name}"), What::OfRun { run, shown });
            }
        }
        Tree { board, nodes: RwLock::new(nodes), host_map_kbytes: AtomicU32::new(HOST_MAP_KBYTES) }
    }

    /// Lets hosts appear that have found their devices since.
    fn refresh(&self) {
        let waiting: Vec<usize> = {
            let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
            (0..nodes.appeared.len()).filter(|&run| !nodes.appeared[run]).collect()
        };
        for run in waiting {
            let luns = self.board.posts()[run].read(|_, view| view.map(|v| v.units.iter().map(|u| u.lun).collect()));
            let Some(luns) = luns else { continue };
            let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
            if !nodes.appeared[run] {
                nodes.appeared[run] = true;
                nodes.add_host(run, luns);
            }
        }
    }

    fn with<T>(&self, node: u64, see: impl FnOnce(&Nodes, &Node) -> Result<T, Errno>) -> Result<T, Errno> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        see(&nodes, nodes.get(node).ok_or(Errno::NOENT)?)
    }

    /// What a node is.
    ///
    /// # Errors
    /// ENOENT for a number that was never given out.
    pub fn kind(&self, node: u64) -> Result<Kind, Errno> {
        self.with(node, |_, node| Ok(node.what.kind()))
    }

    /// The folder that a node is in; the outermost is in itself.
    pub fn parent(&self, node: u64) -> Result<u64, Errno> {
        self.with(node, |_, node| Ok(node.parent))
    }

    /// The entries of a folder in a stable order: later ones come last.
    ///
    /// # Errors
    /// ENOTDIR if the node is no folder.
    pub fn entries(&self, folder: u64) -> Result<Vec<Entry>, Errno> {
        self.refresh();
        self.with(folder, |nodes, node| {
            let What::Folder(children) = &node.what else { return Err(Errno::NOTDIR) };
            let entry = |(name, node): &(String, u64)| {
                let kind = nodes.get(*node).map_or(Kind::Folder, |n| n.what.kind());
                Entry { name: name.clone(), node: *node, kind }
            };
            Ok(children.iter().map(entry).collect())
        })
    }

    /// The node of that name in a folder.
    ///
    /// # Errors
    /// ENOENT if there is none, ENOTDIR for something else than a folder.
    pub fn lookup(&self, folder: u64, name: &str) -> Result<u64, Errno> {
        self.refresh();
        self.with(folder, |_, node| {
            let What::Folder(children) = &node.what else { return Err(Errno::NOTDIR) };
            children.iter().find(|(n, _)| n == name).map(|(_, node)| *node).ok_or(Errno::NOENT)
        })
    }

    /// The node at a path from the outermost folder, all links followed.
    pub fn find(&self, path: &str) -> Result<u64, Errno> {
        self.find_from(ROOT, path)
    }

    fn find_from(&self, folder: u64, path: &str) -> Result<u64, Errno> {
        // No link leads to another more than once.
        path.split('/').filter(|part| !part.is_empty() && *part != ".").try_fold(folder, |at, part| {
            let next = if part == ".." { self.parent(at)? } else { self.lookup(at, part)? };
            match self.kind(next)? {
                Kind::Link(target) => self.find_from(at, &target),
                _ => Ok(next),
            }
        })
    }

    /// Whether a file may be opened, to be written if `write`. Even the superuser may not write a file that has no
    /// store function (Linux `kernfs_fop_open`).
    ///
    /// # Errors
    /// EACCES, or EISDIR for a folder.
    pub fn check_open(&self, file: u64, write: bool) -> Result<(), Errno> {
        match self.kind(file)? {
            Kind::File { writable } if writable || !write => Ok(()),
            Kind::File { .. } => Err(Errno::ACCESS),
            _ => Err(Errno::ISDIR),
        }
    }

    /// What is in a file, its newline included.
    ///
    /// # Errors
    /// ENODEV for HPB of a unit that has none, EINVAL where the device refuses the query or its descriptor is too
    /// short.
    pub fn read(&self, file: u64) -> Result<String, Errno> {
        let what = self.with(file, |_, node| Ok(node.what.clone()))?;
        let text = match what {
            What::OfRun { run, shown } => {
                let post = &self.board.posts()[run];
                post.read(|state, view| shown.text(post, state, view))?
            }
            What::HostMapKbytes => self.host_map_kbytes.load(Ordering::Relaxed).to_string(),
            What::Folder(_) | What::Link(_) => return Err(Errno::ISDIR),
        };
        Ok(text + "\n")
    }

    /// Writes to a file: the value as a whole. Returns when the run has taken it, between two of its requests.
    ///
    /// # Errors
    /// As Linux's `_store` functions, in their order: ENODEV without HPB or when the run is over, EOPNOTSUPP for all
    /// but `requeue_timeout_ms` outside host control mode, EINVAL for a text that is no number or out of range. EACCES
    /// for files that cannot be written.
    pub fn write(&self, file: u64, written: &[u8]) -> Result<(), Errno> {
        match self.with(file, |_, node| Ok(node.what.clone()))? {
            What::OfRun { run, shown: Shown::Param { unit, param } } => {
                let post = &self.board.posts()[run];
                let unit = post.read(|state, view| {
                    let unit = view.filter(|_| state == RunState::Running)?.units.get(unit)?;
                    Some((unit.lun, unit.hpb?))
                });
                let (lun, hpb) = unit.ok_or(Errno::NODEV)?;
                if !hpb.takes(param) {
                    return Err(Errno::OPNOTSUPP);
                }
                // These functions return EINVAL for a text that is no number, also where it is too large.
                let value = parse_uint(written).map_err(|_| Errno::INVAL)?;
                post.store(lun, param, value).map_err(of_store)
            }
            What::HostMapKbytes => {
                self.host_map_kbytes.store(parse_uint(written)?, Ordering::Relaxed);
                Ok(())
            }
            What::OfRun { .. } => Err(Errno::ACCESS),
            What::Folder(_) | What::Link(_) => Err(Errno::ISDIR),
        }
    }
}

impl What {
    fn kind(&self) -> Kind {
        match self {
            What::Folder(_) => Kind::Folder,
            What::Link(target) => Kind::Link(target.clone()),
            What::HostMapKbytes | What::OfRun { shown: Shown::Param { .. }, .. } => Kind::File { writable: true },
            What::OfRun { .. } => Kind::File { writable: false },
        }
    }
}

impl Shown {
    /// What the file says, without the newline, in the formats of `sysfs_emit` in the kernel.
    fn text(self, post: &Post, state: RunState, view: Option<&View>) -> Result<String, Errno> {
        let known = || view.ok_or(Errno::NODEV);
        let unit = |unit: usize| -> Result<&UnitView, Errno> { known()?.units.get(unit).ok_or(Errno::NODEV) };
        let hpb = |at: usize| -> Result<HpbView, Errno> { unit(at)?.hpb.ok_or(Errno::NODEV) };
        Ok(match self {
            Shown::Field { idn, offset, bytes } => {
                field(&known()?.descriptors[usize::from(idn)], offset, bytes).ok_or(Errno::INVAL)?
            }
            Shown::Text(place) => known()?.strings[place].clone().ok_or(Errno::INVAL)?,
            Shown::Flag(idn) => known()?.flags[usize::from(idn)].ok_or(Errno::INVAL)?.to_string(),
            Shown::Attribute(idn) => word(known()?.attributes[usize::from(idn)].ok_or(Errno::INVAL)?),
            Shown::UnitField { unit: at, offset, bytes } => {
                field(&unit(at)?.descriptor, offset, bytes).ok_or(Errno::INVAL)?
            }
            Shown::DynCapNeeded { unit: at } => word(unit(at)?.dyn_cap_needed.ok_or(Errno::INVAL)?),
            Shown::Counter { unit, place } => {
                hpb(unit)?.counters.by_name().nth(place).map_or(0, |(_, count)| count).to_string()
            }
            Shown::Param { unit, param } => match hpb(unit)? {
                // Linux sets the others in host control mode only (`ufshpb_param_init`).
                hpb if !hpb.takes(param) => "0".to_owned(),
                hpb => hpb.params.get(param).to_string(),
            },
            Shown::Case => post.case.clone(),
            Shown::Variant => post.variant.clone(),
            Shown::State => match state {
                RunState::Waiting => "waiting".to_owned(),
                RunState::Running => "running".to_owned(),
                RunState::Over => "over".to_owned(),
            },
            Shown::Requests => view.map_or(0, |v| v.ios).to_string(),
            Shown::VirtualTime => view.map_or(0, |v| v.now.0).to_string(),
        })
    }
}

fn word(value: u32) -> String {
    format!("0x{value:08X}")
}

/// A big-endian field of a descriptor; nothing if the descriptor ends before it does.
fn field(descriptor: &[u8], offset: u8, bytes: u8) -> Option<String> {
    let (from, digits) = (usize::from(offset), 2 * usize::from(bytes));
    let value = descriptor.get(from..from + usize::from(bytes))?;
    let value = value.iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
    Some(format!("0x{value:0digits$X}"))
}

impl Nodes {
    fn get(&self, node: u64) -> Option<&Node> {
        self.list.get(usize::try_from(node.checked_sub(1)?).ok()?)
    }

    /// Adds a node at the end of a path, with the folders that are missing.
    fn add(&mut self, path: &str, what: What) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folder(folder);
        self.add_to(folder, name, what);
    }

    fn add_to(&mut self, folder: u64, name: &str, what: What) -> u64 {
        self.list.push(Node { parent: folder, what });
        let node = self.list.len() as u64;
        if let What::Folder(children) = &mut self.list[folder as usize - 1].what {
            children.push((name.to_owned(), node));
        }
        node
    }

    /// The folder at a path, made if need be.
    fn folder(&mut self, path: &str) -> u64 {
        path.split('/').filter(|part| !part.is_empty()).fold(ROOT, |at, part| {
            let children = match &self.list[at as usize - 1].what {
                What::Folder(children) => children.as_slice(),
                _ => &[],
            };
            let known = children.iter().find(|(name, _)| name == part).map(|(_, node)| *node);
            known.unwrap_or_else(|| self.add_to(at, part, What::Folder(Vec::new())))
        })
    }

    /// A host with its device, below `devices`, and the links that lead there.
    fn add_host(&mut self, run: usize, luns: Vec<u8>) {
        let device = format!("devices/platform/{run}.ufs");
        let of_run = |shown| What::OfRun { run, shown };
        for group in &DESCRIPTORS {
            for field in group.fields {
                let shown = Shown::Field { idn: group.idn, offset: field.1, bytes: field.2 };
                self.add(&format!("{device}/{}/{}", group.name, field.0), of_run(shown));
            }
        }
        for (name, offset) in power_levels() {
            let shown = Shown::Field { idn: descriptor::POWER, offset, bytes: 2 };
            self.add(&format!("{device}/power_descriptor/{name}"), of_run(shown));
        }
        for (place, name) in STRINGS.iter().enumerate() {
            self.add(&format!("{device}/string_descriptors/{name}"), of_run(Shown::Text(place)));
        }
        for (name, idn) in FLAGS {
            self.add(&format!("{device}/flags/{name}"), of_run(Shown::Flag(idn)));
        }
        for (name, idn) in ATTRIBUTES {
            self.add(&format!("{device}/attributes/{name}"), of_run(Shown::Attribute(idn)));
        }
        self.add(&format!("{device}/driver"), What::Link("../../../bus/platform/drivers/ufshcd".into()));
        self.add(&format!("bus/platform/devices/{run}.ufs"), What::Link(format!("../../../{device}")));
        self.add(&format!("bus/platform/drivers/ufshcd/{run}.ufs"), What::Link(format!("../../../../{device}")));
        for (unit, lun) in luns.into_iter().enumerate() {
            self.add_unit(run, unit, lun, &format!("{device}/host{run}/target{run}:0:0"));
        }
    }

    /// A logical unit, below its target.
    fn add_unit(&mut self, run: usize, unit: usize, lun: u8, target: &str) {
        let address = format!("{run}:0:0:{lun}");
        let path = format!("{target}/{address}");
        let of_run = |shown| What::OfRun { run, shown };
        for field in UNIT {
            let shown = Shown::UnitField { unit, offset: field.1, bytes: field.2 };
            self.add(&format!("{path}/unit_descriptor/{}", field.0), of_run(shown));
        }
        self.add(&format!("{path}/dyn_cap_needed_attribute"), of_run(Shown::DynCapNeeded { unit }));
        for (place, name) in STATS.iter().enumerate() {
            self.add(&format!("{path}/hpb_stats/{name}"), of_run(Shown::Counter { unit, place }));
        }
        for param in HpbParam::ALL {
            self.add(&format!("{path}/hpb_params/{param}"), of_run(Shown::Param { unit, param }));
        }
        self.add(&format!("{path}/scsi_device/{address}/device"), What::Link(format!("../../../{address}")));
        self.add(&format!("bus/scsi/devices/{address}"), What::Link(format!("../../../{path}")));
        self.add(&format!("class/scsi_device/{address}"), What::Link(format!("../../{path}/scsi_device/{address}")));
    }
}

#[cfg(test)]
mod tests;
