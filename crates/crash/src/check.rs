// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that says whether it survives a state. While it runs, its state is served on a socket of its own; when
//! it has ended, nothing of its process group is left, nor the socket.

use crate::base::{BLOCK, Base};
use crate::disk::{Client, Served};
use crate::error::CrashError;
use crate::log::Log;
use crate::state::State;
use readpath_serve::nbd::Export;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fmt;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest READ and WRITE of clients.
const MOST_PAYLOAD: u32 = 32 << 20;
/// Bytes that are kept of what a check says.
const MOST_SAID: usize = 4 << 10;
/// Connections at a time.
const MOST_CLIENTS: usize = 64;
/// A check that is ended has so long to clean up.
const GRACE: Duration = Duration::from_secs(2);
/// The stop flag is looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// The program and how it is run.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its path and its arguments. `{uri}` in one stands for the address of the state, `{socket}` for its socket.
    pub words: Vec<String>,
    /// After this time it is ended, and has not survived.
    pub limit: Duration,
    /// What it says is shown, and not kept.
    pub shows: bool,
}

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With exit status 0.
    Survived,
    /// With another exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// By its time limit.
    TimedOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Survived => f.write_str("survived"),
            Outcome::Status(status) => write!(f, "exit status {status}"),
            Outcome::Signal(signal) => write!(f, "signal {signal}"),
            Outcome::TimedOut => f.write_str("time limit"),
        }
    }
}

/// A check that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// How.
    pub outcome: Outcome,
    /// The end of what it said, on standard output and standard error.
    pub said: String,
}

/// A path where no state was served before: a client of an earlier one must not find this one.
fn fresh(folder: &Path) -> PathBuf {
    static STATES: AtomicU64 = AtomicU64::new(0);
    folder.join(STATES.fetch_add(1, Ordering::Relaxed).to_string())
}

/// A socket in the file system, removed on drop.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn listen(path: PathBuf) -> io::Result<Socket> {
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Socket { listener, path })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}

/// A process with its group, which ends with this.
struct Group {
    child: Child,
    is_over: bool,
}

impl Group {
    fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process_group(self.id(), signal).ok();
    }
}

impl Group {
    /// Ends what is left of the group, which would use a disk that is gone. The number of the group is its own until
    /// the process was waited for.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.is_over = true;
        self.child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.end().ok();
        }
    }
}

impl Check {
    /// The name and the state of a disk, as a client finds it.
    fn export(bytes: u64, name: &str) -> Rc<[Export]> {
        Rc::new([Export {
            name: String::new(),
            description: name.chars().take(1000).collect(),
            bytes,
            read_only: false,
            min_block: 1,
            preferred_block: BLOCK as u32,
            max_payload: MOST_PAYLOAD,
        }])
    }

    fn start(
        &self,
        socket: &Path,
        (name, mark): (&str, &str),
        said: Option<io::PipeWriter>,
    ) -> Result<Group, CrashError> {
        let socket = socket.display().to_string();
        let uri = format!("nbd+unix:///?socket={socket}");
        let placed = |word: &String| word.replace("{uri}", &uri).replace("{socket}", &socket);
        let words: Vec<String> = self.words.iter().map(placed).collect();
        let Some((program, arguments)) = words.split_first() else {
            return Err(CrashError::Start { program: String::new(), error: io::ErrorKind::NotFound.into() });
        };
        let mut command = Command::new(program);
        command.args(arguments).env("URI", &uri).env("SOCKET", &socket).env("STATE", name).env("MARK", mark);
        command.stdin(Stdio::null()).process_group(0);
        if let Some(said) = said {
            command.stdout(said.try_clone()?).stderr(said);
        }
        let started = command.spawn();
        started
            .map(|child| Group { child, is_over: false })
            .map_err(|error| CrashError::Start { program: program.clone(), error })
    }

    /// Serves a state, and lets the program say whether it survives it.
    ///
    /// # Errors
    /// The program cannot be started, the image cannot be read, or `stop` was set.
    pub(crate) fn run(
        &self,
        (log, base, state): (&Log, &Base, &State),
        name: &str,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<Ran, CrashError> {
        let socket = Socket::listen(fresh(folder))?;
        let (mut says, writer) = match self.shows {
            true => (None, None),
            false => {
                let (reader, writer) = io::pipe()?;
                rustix::io::ioctl_fionbio(&reader, true).map_err(io::Error::from)?;
                (Some(reader), Some(writer))
            }
        };
        let mut group = self.start(&socket.path, (name, state.mark(log)), writer)?;
        let pidfd = pidfd_open(group.id(), PidfdFlags::empty()).map_err(io::Error::from)?;
        let export = Check::export(base.bytes(), name);
        let mut served = Served::new(log, base, state);
        let mut clients: Vec<Client> = Vec::new();
        let mut said = Vec::new();
        let began = Instant::now();
        let mut ends: Option<Instant> = None;
        let status = loop {
            let late = began.elapsed() >= self.limit || stop.load(Ordering::Relaxed);
            if late && ends.is_none() {
                group.signal(Signal::TERM);
                ends = Some(Instant::now() + GRACE);
            }
            if ends.is_some_and(|end| Instant::now() >= end) {
                break None;
            }
            let left = self.limit.saturating_sub(began.elapsed());
            let wait = if late { LOOK / 10 } else { LOOK.min(left + Duration::from_millis(1)) };
            let ready = ready(&pidfd, says.as_ref(), &socket.listener, &clients, wait)?;
            listen_to(&mut says, &mut said);
            if ready.accepts {
                while let Ok((stream, _)) = socket.listener.accept() {
                    if clients.len() < MOST_CLIENTS && stream.set_nonblocking(true).is_ok() {
                        clients.push(Client::new(stream, export.clone()));
                    }
                }
            }
            clients.retain_mut(|client| client.serve(&mut served));
            if ready.has_ended {
                break Some(group.end()?);
            }
        };
        if stop.load(Ordering::Relaxed) {
            return Err(CrashError::Interrupted);
        }
        if let Some(fault) = served.fault {
            return Err(fault);
        }
        drop(group);
        listen_to(&mut says, &mut said);
        let outcome = match status {
            _ if ends.is_some() => Outcome::TimedOut,
            None => Outcome::TimedOut,
            Some(status) => of(status),
        };
        Ok(Ran { outcome, said: String::from_utf8_lossy(&said).into_owned() })
    }
}

fn of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Survived,
        (Some(status), _) => Outcome::Status(status),
        (None, signal) => Outcome::Signal(signal.unwrap_or(0)),
    }
}

struct Ready {
    has_ended: bool,
    accepts: bool,
}

/// Waits until there is something to do.
fn ready(
    pidfd: impl AsFd,
    says: Option<&PipeReader>,
    listener: &UnixListener,
    clients: &[Client],
    wait: Duration,
) -> io::Result<Ready> {
    let mut fds = vec![PollFd::new(&pidfd, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
    fds.extend(says.map(|says| PollFd::new(says, PollFlags::IN)));
    fds.extend(clients.iter().map(|client| {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, client.reads());
        flags.set(PollFlags::OUT, client.writes());
        PollFd::new(&client.stream, flags)
    }));
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Ready { has_ended: !fds[0].revents().is_empty(), accepts: !fds[1].revents().is_empty() })
}

/// Takes what a check says; the end of it is kept.
fn listen_to(says: &mut Option<PipeReader>, said: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    while let Some(read) = says.as_mut().map(|says| says.read(&mut bytes)) {
        match read {
            Ok(0) => *says = None,
            Ok(count) => {
                said.extend(&bytes[..count]);
                let more = said.len().saturating_sub(MOST_SAID);
                said.drain(..more);
            }
            Err(_) => return,
        }
    }
}
