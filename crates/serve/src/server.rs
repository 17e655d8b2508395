// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server from its image to its end: the device recovers, the host finds it, clients are served, and what the device
//! had accepted is flushed. For another host the device is switched off and on in between.

use crate::address::Address;
use crate::clients::{Clients, STOP};
use crate::clock::{JumpingClock, RealClock, Speed};
use crate::connections::{Connections, Counts, Setup, UnitCount};
use crate::control::{Control, Sources};
use crate::host::Host;
use crate::lateness::Lateness;
use crate::nbd::Export;
use crate::orders::Faults;
use crate::poller::Poller;
use crate::record::{Recording, Start};
use crate::shown::Shown;
use crate::sockets::Sockets;
use crate::timed::TimedDisk;
use readpath_config::DevicePreset;
use readpath_device::{DeviceStats, LoadError, LuConfig, Recovery, Wear};
use readpath_flash::DieSched;
use readpath_host::HpbCounters;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_run::rules::{Due, RuleCount};
use readpath_run::{Clock, Driven, Parts, Post, RunError, Work, drive};
use readpath_stack::{Stack, StackError, Typed};
use readpath_store::{Image, Store};
use std::cell::Cell;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// Longest READ and WRITE: what clients assume that do not ask.
const MOST_PAYLOAD: u32 = 32 << 20;

/// Longest real time for which a power cut may keep clients waiting.
const LONGEST_CUT: Ns = Ns::from_secs(60);

/// Why a server did not begin, or did not end well.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The image does not hold what the device needs.
    #[error("the device cannot begin from the image: {0}")]
    Load(#[from] LoadError),
    /// The host does not find the device.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The host does not go with the device.
    #[error("{0}")]
    Host(String),
    /// A unit has zones.
    #[error(
        "logical unit {lun} has zones, and NBD has no commands for them; `readpath attach` shows it to a virtual \
         machine"
    )]
    Zones {
        /// The unit.
        lun: usize,
    },
    /// The run ended.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An address cannot be listened to.
    #[error("{address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The system refuses what every server needs.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Accepted data could not be written to the image.
    #[error("the image could not be written to the end: {0}")]
    Image(String),
    /// The recording is of another device or image.
    #[error("{0}")]
    Recording(String),
}

/// How to serve.
pub struct Options<'a> {
    /// Addresses for clients.
    pub addresses: Vec<Address>,
    /// Path of the control socket, if any.
    pub control: Option<PathBuf>,
    /// Address for Prometheus, if any.
    pub metrics: Option<SocketAddr>,
    /// Planned faults.
    pub faults: Faults,
    /// Output of the recording, if any.
    pub record: Option<Box<dyn Write>>,
    /// The recording has the data of writes.
    pub record_data: bool,
    /// The post that shows host and device, if any.
    pub post: Option<&'a Post>,
    /// How time passes.
    pub speed: Speed,
    /// Writes are refused.
    pub read_only: bool,
    /// The server ends when this can be read.
    pub stop: BorrowedFd<'a>,
    /// Logs what went wrong with a client or a request, and what came of orders of a file.
    pub log: fn(&str),
}

/// What a server knows when it has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// What recovery did, from time 0 on.
    pub recovery: Recovery,
    /// When the host had found the device.
    pub ready_at: Ns,
}

/// What a server has done.
pub struct Served {
    /// Connections.
    pub connections: u64,
    /// Clients that were turned away, because there were too many.
    pub turned_away: u64,
    /// Clients that broke the protocol.
    pub broken: u64,
    /// Bytes that clients read.
    pub read_bytes: u64,
    /// Bytes that clients wrote.
    pub written_bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// What clients did with each logical unit.
    pub by_unit: Vec<UnitCount>,
    /// Device time at the end.
    pub end: Ns,
    /// How late answers were; none if time jumped.
    pub lateness: Option<Lateness>,
    /// What the device did since it was switched on.
    pub device: DeviceStats,
    /// How worn it is.
    pub wear: Wear,
    /// What the host's HPB did since then.
    pub hpb: Option<HpbCounters>,
    /// What rules have done.
    pub rules: Vec<RuleCount>,
    /// Blocks read that were never written, or were trimmed.
    pub zeros_read: u64,
    /// All other blocks read.
    pub slices_read: u64,
    /// Why the recording is not whole.
    pub recording: Option<String>,
    /// Why the device could not flush at last: what it held in its buffer is lost.
    pub lost: Option<String>,
}

/// The names of the exports of a device, one for each logical unit: the first is called as the device.
pub fn exports(base: &DevicePreset) -> Vec<String> {
    let name = &base.name;
    (0..base.device.lus.len()).map(|lun| if lun == 0 { name.clone() } else { format!("{name}.{lun}") }).collect()
}

/// Serves `image`, which is of a device of `base`, until `stop` can be read. `looked` is called with each superblock
/// that recovery looks at, `begun` when clients can connect.
///
/// # Errors
/// The device cannot begin from the image, an address cannot be listened to, or what was accepted could not be kept.
pub fn serve(
    image: Image<TimedDisk>,
    base: &DevicePreset,
    host: &Host,
    options: Options,
    looked: &mut dyn FnMut(u32),
    begun: impl FnOnce(&Begun),
) -> Result<Served, ServeError> {
    if let Some(lun) = base.device.lus.iter().position(|lu| lu.zones.is_some()) {
        return Err(ServeError::Zones { lun });
    }
    let disk = image.array.disk().spent();
    let mut payload = Store::new(image.array);
    if options.speed == Speed::Instant {
        // In real time every answer leaves alone, and nothing would be gathered.
        payload.array_mut().gather();
    }
    let mut server = Server {
        base,
        host: host.clone(),
        on: Ns::ZERO,
        read_only: options.read_only,
        disk,
        looked,
        opening: Some((options, begun)),
        outside: None,
    };
    loop {
        let (preset, config) = server.host.of(base).map_err(ServeError::Host)?;
        let parts = Parts { preset: &preset, host: config, payload, probe: (), wire: Typed };
        match parts.stack_for(&mut server)?? {
            Lived::Ended(served) => return Ok(*served),
            Lived::Left(kept) => payload = *kept,
        }
    }
}

struct Server<'a, F> {
    base: &'a DevicePreset,
    host: Host,
    /// When the device is switched on.
    on: Ns,
    read_only: bool,
    disk: Rc<Cell<Duration>>,
    looked: &'a mut dyn FnMut(u32),
    opening: Option<(Options<'a>, F)>,
    outside: Option<Outside<'a>>,
}

/// What stays though the device is switched off and on.
struct Outside<'a> {
    clients: Clients,
    shown: Shown<'a>,
    poller: Rc<Poller>,
    speed: Speed,
    /// Device time when real time began.
    from: Ns,
    // Their files are removed when the server has ended.
    _sockets: Sockets,
}

impl<'a, F: FnOnce(&Begun)> Server<'a, F> {
    /// Opens all sockets.
    fn open(&mut self, options: Options<'a>, from: Ns, start: &Start) -> Result<Outside<'a>, ServeError> {
        let Options { addresses, control, metrics, faults, record, record_data, post, speed, read_only, stop, log } =
            options;
        let refused = |address: String| move |error| ServeError::Listen { address, error };
        let mut sockets = Sockets::default();
        for address in &addresses {
            sockets.listen(address).map_err(refused(address.to_string()))?;
        }
        let listener = control.map(|path| sockets.listen_at(&path).map_err(refused(path.display().to_string())));
        let metrics = metrics.map(|at| {
            let listener = TcpListener::bind(at).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            listener.map_err(refused(at.to_string()))
        });
        let host = self.host.to_string();
        let recording = record.map(|out| Recording::new(out, record_data, &self.base.name, &host, start));
        // A cut is not interrupted by a signal.
        let longest = match speed {
            Speed::Real(scale) => Ns((LONGEST_CUT.0 as f64 / scale.max(1.0)) as u64),
            Speed::Instant => LONGEST_CUT,
        };
        let poller = Rc::new(Poller::new()?);
        let sources = Sources {
            listener: listener.transpose()?,
            metrics: metrics.transpose()?,
            due: faults.0.into_iter().map(|due| Due { at: Ns(from.0.saturating_add(due.at.0)), ..due }).collect(),
            time_jumps: speed == Speed::Instant,
            longest,
            preset: self.base.clone(),
            log,
        };
        let control = Control::new(sources, &poller)?;
        poller.add_once(stop, STOP)?;
        let units = exports(self.base).into_iter().zip(&self.base.device.lus);
        let export = |(name, unit): (String, &LuConfig)| Export {
            name,
            description: self.base.description.trim().chars().take(500).collect(),
            bytes: u64::from(unit.blocks) * u64::from(BLOCK_BYTES),
            read_only,
            min_block: 1,
            preferred_block: BLOCK_BYTES,
            max_payload: MOST_PAYLOAD,
        };
        let scale = match speed {
            Speed::Real(scale) => Some((scale, from)),
            Speed::Instant => None,
        };
        let connections = Connections::new(Setup {
            poller: poller.clone(),
            listeners: std::mem::take(&mut sockets.listeners),
            exports: units.map(export).collect(),
            scale,
            disk: self.disk.clone(),
            log,
        })?;
        let how = (scale.is_none(), log);
        let clients = Clients::new(connections, control, recording.unwrap_or_default(), poller.clone(), how);
        let shown = Shown::new(post, scale.map(|(scale, _)| scale));
        Ok(Outside { clients, shown, poller, speed, from, _sockets: sockets })
    }
}

impl Outside<'_> {
    /// Serves from `from` on until everything is over, or another host is to come.
    fn drive<S: DieSched>(
        &mut self,
        stack: &mut Stack<S, Store<TimedDisk>, (), Typed>,
        from: Ns,
    ) -> Result<Driven, RunError> {
        let Outside { clients, shown, poller, speed, from: begun, .. } = self;
        match *speed {
            Speed::Real(scale) => {
                let mut clock = RealClock::new(poller.clone(), scale, *begun);
                clock.sleep_until(from);
                drive(stack, clients, shown, &mut clock, from)
            }
            Speed::Instant => drive(stack, clients, shown, &mut JumpingClock::new(poller.clone(), from), from),
        }
    }
}

/// How a server ended.
enum Lived {
    /// Its data, for another host.
    Left(Box<Store<TimedDisk>>),
    Ended(Box<Served>),
}

impl<'a, F: FnOnce(&Begun)> Work<Store<TimedDisk>, (), Typed> for &mut Server<'a, F> {
    type Output = Result<Lived, ServeError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, Store<TimedDisk>, (), Typed>) -> Self::Output {
        let recovery = stack.power_on_with(self.on, Store::array_mut, self.looked)?;
        if !self.read_only {
            // What clients read from now on survives a crash of the machine.
            stack.payload.array_mut().sync().map_err(ServeError::Image)?;
        }
        let from = stack.start(recovery.ready_at)?;
        if let Some((options, begun)) = self.opening.take() {
            let start = Start::new(&recovery, stack.device.valid_slices(), &stack.device.wear());
            self.outside = Some(self.open(options, from, &start)?);
            begun(&Begun { recovery, ready_at: from });
        } else if let Some(outside) = &mut self.outside {
            outside.shown.begin_again();
            outside.clients.begin_again(from);
        }
        let Some(outside) = &mut self.outside else { unreachable!("it was opened above") };
        let driven = outside.drive(&mut stack, from);
        let sealed = stack.payload.array_mut().seal().map_err(ServeError::Image);
        let driven = driven?;
        sealed?;
        if !self.read_only {
            stack.payload.array().disk().is_whole().map_err(ServeError::Image)?;
        }
        if let Some(host) = outside.clients.new_host() {
            (self.host, self.on) = (host, driven.end);
            return Ok(Lived::Left(Box::new(stack.payload)));
        }
        let (device, hpb) = (*stack.device.stats(), stack.host.all_counters());
        outside.clients.close();
        let recording = outside.clients.recording.end(driven.end, &device, hpb.as_ref());
        let Connections { counts, by_unit, lateness, .. } = &outside.clients.connections;
        let Counts { connections, turned_away, broken, read_bytes, written_bytes, errors, requests } = *counts;
        let served = Served {
            connections,
            turned_away,
            broken,
            read_bytes,
            written_bytes,
            errors,
            requests,
            by_unit: by_unit.clone(),
            end: driven.end,
            lateness: matches!(outside.speed, Speed::Real(_)).then(|| lateness.clone()),
            device,
            wear: stack.device.wear(),
            hpb,
            rules: outside.clients.requests.troubles.rules.counts(),
            zeros_read: stack.payload.zeros_read(),
            slices_read: stack.payload.slices_read(),
            recording,
            lost: outside.clients.lost.take(),
        };
        // The sockets are closed before the image is free.
        self.outside = None;
        Ok(Lived::Ended(Box::new(served)))
    }
}
