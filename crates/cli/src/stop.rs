// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals: SIGINT, SIGTERM and SIGHUP. The first one stops runs in order, and a second one ends the program; commands
//! without runs end at once. Files are renamed while the end is held off, so none is left in part, and sockets and
//! mounts are cleaned up.

use crate::failure::{INTERRUPTED, Interrupted};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};

/// What a command that ends at once has written, for the message at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Neither file nor result.
    Nothing,
    /// It prints as it goes.
    Printed,
    /// What other experiments made, before this one.
    Others,
    Files,
}

struct State {
    seen: u32,
    /// The first signal ends the program.
    at_once: bool,
    /// Flags that runs look at.
    flags: Vec<Arc<AtomicBool>>,
    /// Closed at the first signal.
    ends: Vec<UnixStream>,
    /// Called before the program ends within a run.
    cleanups: Vec<Box<dyn Fn() + Send>>,
}

static STATE: Mutex<State> =
    Mutex::new(State { seen: 0, at_once: false, flags: Vec::new(), ends: Vec::new(), cleanups: Vec::new() });
static CAME: Condvar = Condvar::new();
/// Locked while files are written.
static WRITTEN: Mutex<Written> = Mutex::new(Written::Nothing);

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the first signal sets a flag that runs look at, and the second ends the program.
pub fn in_order(flag: Arc<AtomicBool>) -> io::Result<()> {
    catch()?;
    let mut state = lock(&STATE);
    flag.fetch_or(state.seen > 0, Ordering::Relaxed);
    state.flags.push(flag);
    Ok(())
}

/// From now on the first signal makes the returned socket readable, for poll(2), and the second ends the program.
pub fn readable() -> io::Result<UnixStream> {
    catch()?;
    let (stop, end) = UnixStream::pair()?;
    let mut state = lock(&STATE);
    if state.seen == 0 {
        state.ends.push(end);
    }
    Ok(stop)
}

/// Ends what waits for [`readable`], as a signal does.
pub fn end() {
    lock(&STATE).ends.clear();
}

/// From now on a signal ends the program.
pub fn at_once(so_far: Written) -> io::Result<()> {
    *lock(&WRITTEN) = so_far;
    lock(&STATE).at_once = true;
    catch()
}

/// Calls `cleanup` if a signal ends the program within a run, or it panics. Its work may have been done already.
pub fn clean_up(cleanup: impl Fn() + Send + 'static) -> io::Result<()> {
    lock(&STATE).cleanups.push(Box::new(cleanup));
    catch()
}

/// Waits for the first signal.
pub fn wait() {
    drop(CAME.wait_while(lock(&STATE), |state| state.seen == 0));
}

/// Holds off the end while files are made or named.
pub struct Held(MutexGuard<'static, Written>);

impl Held {
    /// The files are written.
    pub fn done(mut self) {
        *self.0 = Written::Files;
    }
}

/// Holds off the end of what ends at once, until it is dropped.
pub fn hold() -> Held {
    Held(lock(&WRITTEN))
}

/// Counts signals from now on, until the program ends.
pub fn catch() -> io::Result<()> {
    static BEGUN: Once = Once::new();
    let mut result = Ok(());
    BEGUN.call_once(|| result = watch());
    result
}

fn watch() -> io::Result<()> {
    let (mut bytes, end) = UnixStream::pair()?;
    let wait = move || {
        while matches!(bytes.read(&mut [0]), Ok(1)) {
            signalled();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait)?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, end.try_clone()?)?;
    }
    // Started with nohup(1), the program outlives its terminal.
    if !is_ignored(SIGHUP) {
        pipe::register(SIGHUP, end)?;
    }
    // With panic = "abort" nothing is dropped.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // The panicking thread may hold the lock.
        if let Ok(state) = STATE.try_lock() {
            state.cleanups.iter().for_each(|cleanup| cleanup());
        }
        hook(info);
    }));
    Ok(())
}

fn signalled() {
    let mut state = lock(&STATE);
    state.seen += 1;
    state.flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
    state.ends.clear();
    CAME.notify_all();
    if state.seen == 1 && !state.at_once {
        return;
    }
    state.cleanups.iter().for_each(|cleanup| cleanup());
    // Locked until the end, so that no file is begun.
    let written = state.at_once.then(|| lock(&WRITTEN));
    if let Some(written) = &written {
        let what = match **written {
            Written::Nothing => Interrupted.to_string(),
            Written::Others => "interrupted; of this experiment nothing was written".to_owned(),
            Written::Printed => "interrupted".to_owned(),
            Written::Files => "interrupted; the files had been written".to_owned(),
        };
        writeln!(io::stderr(), "readpath: {what}").ok();
    }
    std::process::exit(INTERRUPTED.into());
}

/// Whether a signal was ignored when the program was started, by proc(5).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}
