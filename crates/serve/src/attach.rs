// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device behind a host controller that a machine's own driver uses: from its image to its end, in real time, with
//! one client at a time. When a client disconnects, its requests in flight are dropped, and the next one finds a device
//! that was reset.
//!
//! The loop here is not that of the simulator: no host driver of this program's own is in it, and no source of block
//! requests. It lets the same clocks pass the time, and the device is the same.

use crate::clock::{JumpingClock, RealClock, Speed};
use crate::poller::Poller;
use crate::server::ServeError;
use crate::sockets::{Listener, Sockets, Stream};
use crate::vfio::{Broken, Maps, PciId, UfsFunction, client::Client};
use readpath_config::DevicePreset;
use readpath_device::{DeviceStats, Probe, Recovery, Wear};
use readpath_flash::AnySched;
use readpath_hci::{Attached, Misbehaviour};
use readpath_kit::Ns;
use readpath_run::{Clock, TapTo};
use readpath_store::{FileDisk, Image, Store};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Slots for commands: as many as UFSHCI has.
const SLOTS: u8 = 32;
/// Tokens of the poller.
const STOP: u64 = 0;
const LISTENER: u64 = 1;
const CLIENT: u64 = 2;
const UNMASK: u64 = 3;
const LIMIT: u64 = 4;

/// When the program is to end, a machine is told that its device is gone, and may still ask for so long after its last
/// message, and for so long in all. A driver tries to bring the device back, and gives up.
const SILENCE: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_secs(10);

/// How to attach.
pub struct AttachOptions<'a> {
    /// Path of the socket for the client.
    pub socket: &'a Path,
    /// What the function says it is.
    pub id: PciId,
    /// Misbehaviour of device and controller, if any.
    pub misbehaviour: Option<Misbehaviour>,
    /// How time passes.
    pub speed: Speed,
    /// It ends when this can be read.
    pub stop: BorrowedFd<'a>,
    /// Logs connections and what went wrong.
    pub log: fn(&str),
}

/// Counts of the work for clients.
pub struct WasAttached {
    /// Clients.
    pub clients: u64,
    /// Clients that were turned away because there was one.
    pub turned_away: u64,
    /// Clients that broke the protocol.
    pub broken: u64,
    /// How often device and controller misbehaved.
    pub misbehaved: u64,
    /// Device time at the end.
    pub end: Ns,
    /// What the device did since it was switched on.
    pub device: DeviceStats,
    /// How worn it is.
    pub wear: Wear,
    /// Why the device could not flush at last: what it held in its buffer is lost.
    pub lost: Option<String>,
}

type Ufs<P> = UfsFunction<AnySched, Store<FileDisk>, P>;

/// Offers the device of `image`, which is of `preset`, as a PCI function until `stop` can be read. `looked` is called
/// with each superblock that recovery looks at, `begun` when a client can connect. The tap sees every stage.
///
/// # Errors
/// The device cannot begin from the image, the socket cannot be listened to, or what was accepted could not be kept.
pub fn attach(
    image: Image<FileDisk>,
    preset: &DevicePreset,
    options: &AttachOptions,
    tap: Option<&mut TapTo>,
    looked: &mut dyn FnMut(u32),
    begun: &dyn Fn(&Recovery),
) -> Result<WasAttached, ServeError> {
    match tap {
        None => attach_with(image, preset, options, (), looked, begun),
        Some(tap) => attach_with(image, preset, options, tap, looked, begun),
    }
}

fn attach_with<P: Probe>(
    image: Image<FileDisk>,
    preset: &DevicePreset,
    options: &AttachOptions,
    probe: P,
    looked: &mut dyn FnMut(u32),
    begun: &dyn Fn(&Recovery),
) -> Result<WasAttached, ServeError> {
    let serial = image.array.format().serial;
    let payload = Store::new(image.array);
    let mut attached = Attached::new(&preset.device, SLOTS, payload, probe, Maps::default())
        .map_err(|error| ServeError::Stack(error.into()))?;
    attached.device.set_serial(serial);
    let recovery = attached.power_on_with(Ns::ZERO, Store::array_mut, looked)?;
    // What clients read from now on survives a crash of the machine.
    attached.data.array_mut().sync().map_err(ServeError::Image)?;
    let from = recovery.ready_at;
    if let Some(how) = options.misbehaviour {
        attached.misbehave(how);
    }

    let mut sockets = Sockets::default();
    let listen = sockets.listen_at(options.socket);
    let listener =
        listen.map_err(|error| ServeError::Listen { address: options.socket.display().to_string(), error })?;
    let poller = Rc::new(Poller::new()?);
    poller.add_once(options.stop, STOP)?;
    poller.add(&listener, LISTENER)?;
    begun(&recovery);

    let mut server = Server {
        function: UfsFunction::new(attached, options.id),
        listener: Listener::Unix(listener),
        poller: poller.clone(),
        client: None,
        waits: false,
        watched: None,
        leaving: None,
        flushed: from,
        counts: [0; 3],
        log: options.log,
    };
    let now = match options.speed {
        Speed::Real(scale) => server.run(RealClock::new(poller, scale, from)),
        Speed::Instant => server.run(JumpingClock::new(poller, from)),
    };
    let Server { mut function, flushed, counts: [clients, turned_away, broken], .. } = server;
    let now = now.max(flushed);
    let attached = &mut function.attached;
    let flushed = attached.flush(now);
    attached.data.array_mut().seal().map_err(ServeError::Image)?;
    Ok(WasAttached {
        clients,
        turned_away,
        broken,
        misbehaved: attached.misbehaved(),
        end: flushed.unwrap_or(now),
        device: *attached.device.stats(),
        wear: attached.device.wear(),
        lost: flushed.err().map(|sense| format!("{sense:?}")),
    })
}

struct Server<P: Probe> {
    function: Ufs<P>,
    listener: Listener,
    poller: Rc<Poller>,
    client: Option<Client>,
    /// Whether the client has not taken all answers, so that it is watched for that instead of for messages.
    waits: bool,
    /// The eventfd that is watched. It is our own descriptor, because the client keeps the file behind it open.
    watched: Option<OwnedFd>,
    /// The device was taken away: when at the latest the program ends, and a timer of what is left of that.
    leaving: Option<(Instant, OwnedFd)>,
    /// When the device had flushed for that.
    flushed: Ns,
    /// Clients, turned away, broken.
    counts: [u64; 3],
    log: fn(&str),
}

impl<P: Probe> Server<P> {
    fn run(&mut self, mut clock: impl Clock) -> Ns {
        loop {
            let now = clock.wait_until(self.function.attached.next_deadline());
            self.function.now = now;
            self.function.attached.advance(now);
            self.poller.look();
            let mut connects = false;
            for ready in if self.poller.is_ready() { self.poller.take() } else { Vec::new() } {
                match ready.token {
                    STOP if !self.take_away(now) => return now,
                    STOP => {}
                    LIMIT => return now,
                    LISTENER => connects = true,
                    UNMASK if !self.function.take_unmask() => self.unwatch(),
                    UNMASK => {}
                    _ => self.serve_client(),
                }
            }
            if self.leaving.is_some() && self.client.is_none() {
                return now;
            }
            // The client before may have disconnected just now.
            if connects {
                self.accept();
            }
            self.function.raise();
        }
    }

    /// Tells the machine that its device is gone. False if there is none that uses it, or no time to wait for it.
    fn take_away(&mut self, now: Ns) -> bool {
        if self.client.is_none() || !self.function.attached.is_in_use() {
            return false;
        }
        // What fails here fails again at the end.
        self.flushed = self.function.attached.take_away(now).unwrap_or(now);
        (self.log)("the machine is told that its device is gone; again Ctrl-C does not wait for it");
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let Some(timer) = timer.ok().filter(|timer| self.poller.add(timer, LIMIT).is_ok()) else { return false };
        self.leaving = Some((Instant::now() + FAREWELL, timer));
        self.wait_for_silence();
        true
    }

    /// If the program is to end, it does so when nothing comes for a while.
    fn wait_for_silence(&self) {
        let Some((until, timer)) = &self.leaving else { return };
        let left = until.saturating_duration_since(Instant::now()).min(SILENCE).max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        _ = timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never, it_value: value });
    }

    fn accept(&mut self) {
        let Ok(Stream::Unix(stream)) = self.listener.accept() else { return };
        if self.client.is_some() {
            self.counts[1] += 1;
            return (self.log)("a client was turned away: there is one already");
        }
        self.counts[0] += 1;
        match self.poller.add(&stream, CLIENT) {
            Ok(()) => {
                (self.log)("a client has connected");
                (self.client, self.waits) = (Some(Client::new(stream)), false);
            }
            Err(error) => (self.log)(&format!("a client was turned away: {error}")),
        }
    }

    fn serve_client(&mut self) {
        self.wait_for_silence();
        let Some(client) = &mut self.client else { return };
        let served = client.serve(&mut self.function);
        match served {
            Ok(()) => {
                let client = self.client.as_ref().expect("seen above");
                // Nothing more is read while answers wait.
                let waits = client.has_answers();
                if waits != self.waits {
                    self.poller.change(client, CLIENT, !waits, waits).ok();
                    self.waits = waits;
                }
                self.watch_unmask();
            }
            Err(end) => {
                match end {
                    Some(Broken(why)) => {
                        self.counts[2] += 1;
                        (self.log)(&format!("the client is disconnected: {why}"));
                    }
                    None => (self.log)("the client has disconnected"),
                }
                self.unwatch();
                if let Some(client) = self.client.take() {
                    self.poller.remove(&client);
                }
                self.function.client_gone();
            }
        }
    }

    /// Watches the eventfd by which the client unmasks the interrupt, in place of the one before.
    fn watch_unmask(&mut self) {
        let Some(unmask) = self.function.new_unmask() else { return };
        let unmask = unmask.and_then(|unmask| unmask.try_clone_to_owned().ok());
        self.unwatch();
        self.watched = unmask.filter(|unmask| self.poller.add(unmask, UNMASK).is_ok());
    }

    fn unwatch(&mut self) {
        if let Some(watched) = self.watched.take() {
            self.poller.remove(watched);
        }
    }
}
