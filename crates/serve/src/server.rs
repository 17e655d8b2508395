// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server from its image to its end: the device recovers, the host finds it, clients are served, and what the device
//! had accepted is flushed.

use crate::address::Address;
use crate::clients::{Clients, Counts, STOP, Setup};
use crate::clock::{JumpingClock, RealClock, Speed};
use crate::control::Control;
use crate::lateness::Lateness;
use crate::nbd::Export;
use crate::poller::Poller;
use crate::sockets::Sockets;
use crate::timed::TimedDisk;
use readpath_config::DevicePreset;
use readpath_device::{DeviceStats, LoadError, Recovery, Wear};
use readpath_flash::DieSched;
use readpath_host::{HostConfig, HpbCounters};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_run::{LUN, Parts, RunError, Work, drive};
use readpath_stack::{Stack, StackError, Typed};
use readpath_store::{FileDisk, Image, Store, Transfers};
use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// Longest READ and WRITE: what clients take for granted that do not ask.
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
    /// What was accepted could not be written.
    #[error("the image could not be written to the end: {0}")]
    Image(String),
}

/// How to serve.
pub struct Options<'a> {
    /// Where clients connect.
    pub addresses: Vec<Address>,
    /// Where the control socket is to be, if there is to be one.
    pub control: Option<PathBuf>,
    /// How time passes.
    pub speed: Speed,
    /// Writes are refused.
    pub read_only: bool,
    /// The server ends when this can be read.
    pub stop: BorrowedFd<'a>,
    /// Hears what went wrong with a client or a request.
    pub log: Box<dyn FnMut(&str)>,
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
    /// Connections; clients turned away; clients that broke the protocol.
    pub connections: u64,
    /// See there.
    pub turned_away: u64,
    /// See there.
    pub broken: u64,
    /// Bytes that clients read and wrote, and requests that failed.
    pub read_bytes: u64,
    /// See there.
    pub written_bytes: u64,
    /// See there.
    pub errors: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Device time at the end.
    pub end: Ns,
    /// How late answers were; none if time jumped.
    pub lateness: Option<Lateness>,
    /// What the device did.
    pub device: DeviceStats,
    /// How worn it is.
    pub wear: Wear,
    /// What the host's HPB did.
    pub hpb: Option<HpbCounters>,
    /// Blocks read though nothing was ever written there, and all others.
    pub zeros_read: u64,
    /// See there.
    pub slices_read: u64,
}

/// Serves `image`, which is of a device of `preset`, until it is told to stop. `begun` hears when clients can connect.
///
/// # Errors
/// The device cannot begin from the image, an address cannot be listened to, or what was accepted could not be kept.
pub fn serve(
    image: Image<FileDisk>,
    preset: &DevicePreset,
    host: HostConfig,
    options: Options,
    begun: impl FnOnce(&Begun),
) -> Result<Served, ServeError> {
    let transfers = Transfers::default();
    let disk = Rc::new(Cell::default());
    let payload = Store::new(image.array.map_disk(|file| TimedDisk::new(file, disk.clone())), transfers.clone());
    let server = Server { preset, options, transfers, disk, begun };
    Parts { preset, host, payload, probe: (), wire: Typed }.stack_for(server)?
}

struct Server<'a, F> {
    preset: &'a DevicePreset,
    options: Options<'a>,
    transfers: Transfers,
    disk: Rc<Cell<Duration>>,
    begun: F,
}

impl<F: FnOnce(&Begun)> Work<Store<TimedDisk>, (), Typed> for Server<'_, F> {
    type Output = Result<Served, ServeError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, Store<TimedDisk>, (), Typed>) -> Self::Output {
        let Options { addresses, control, speed, read_only, stop, log } = self.options;
        let recovery = stack.power_on_with(Ns::ZERO, Store::array_mut)?;
        if !read_only {
            // What clients are shown from now on stays, whatever becomes of the machine.
            stack.payload.array_mut().sync().map_err(ServeError::Image)?;
        }
        let from = stack.start(recovery.ready_at)?;
        let mut sockets = Sockets::default();
        for address in &addresses {
            let listening = sockets.listen(address);
            listening.map_err(|error| ServeError::Listen { address: address.to_string(), error })?;
        }
        let control = control.map(|path| sockets.listen_at(&path).map_err(|error| (path, error))).transpose();
        let control =
            control.map_err(|(path, error)| ServeError::Listen { address: path.display().to_string(), error })?;
        // Nobody hears of a signal meanwhile.
        let longest = match speed {
            Speed::Real(scale) => Ns((LONGEST_CUT.0 as f64 / scale.max(1.0)) as u64),
            Speed::Instant => LONGEST_CUT,
        };
        let poller = Rc::new(Poller::new()?);
        let mut control = Control::new(control, &poller, longest)?;
        poller.add(stop, STOP)?;
        let blocks = self.preset.device.lus[usize::from(LUN)].blocks;
        let export = Rc::new(Export {
            name: self.preset.name.clone(),
            description: self.preset.description.trim().chars().take(500).collect(),
            bytes: u64::from(blocks) * u64::from(BLOCK_BYTES),
            read_only,
            min_block: 1,
            preferred_block: BLOCK_BYTES,
            max_payload: MOST_PAYLOAD,
        });
        let scale = match speed {
            Speed::Real(scale) => Some((scale, from)),
            Speed::Instant => None,
        };
        let (listeners, transfers) = (std::mem::take(&mut sockets.listeners), self.transfers);
        let disk = self.disk;
        let mut clients = Clients::new(Setup {
            poller: poller.clone(),
            listeners,
            control: control.clone(),
            export,
            transfers,
            scale,
            disk,
            log,
        })?;
        (self.begun)(&Begun { recovery, ready_at: from });
        let driven = match speed {
            Speed::Real(scale) => {
                let mut clock = RealClock::new(poller, scale, from);
                drive(&mut stack, &mut clients, &mut control, &mut clock, from)
            }
            Speed::Instant => {
                let mut clock = JumpingClock::new(poller, from);
                drive(&mut stack, &mut clients, &mut control, &mut clock, from)
            }
        };
        drop(sockets);
        let synced = stack.payload.array_mut().sync().map_err(ServeError::Image);
        let driven = driven?;
        synced?;
        let Counts { connections, turned_away, broken, read_bytes, written_bytes, errors } = clients.counts;
        Ok(Served {
            connections,
            turned_away,
            broken,
            read_bytes,
            written_bytes,
            errors,
            requests: driven.ios,
            end: driven.end,
            lateness: scale.map(|_| clients.lateness),
            device: *stack.device.stats(),
            wear: stack.device.wear(),
            hpb: stack.host.counters(LUN).copied(),
            zeros_read: stack.payload.zeros_read(),
            slices_read: stack.payload.slices_read(),
        })
    }
}
