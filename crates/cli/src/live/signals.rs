// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C, a request to terminate and a terminal that goes away, while there is something that must not be left behind: a
//! mounted folder, a socket. The first such signal stops the runs in order; a second one cleans up and ends the program.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

type Cleanup = Box<dyn Fn() + Send>;

#[derive(Default)]
struct State {
    seen: u32,
    cleanups: Vec<Cleanup>,
}

/// Signals caught from now on.
pub struct Signals {
    caught: Vec<i32>,
    state: Mutex<State>,
    came: Condvar,
}

impl Signals {
    /// Catches them until the program ends.
    pub fn catch() -> io::Result<Arc<Self>> {
        let mut caught = vec![SIGINT, SIGTERM];
        // Whoever started the program so that it outlives its terminal (nohup) means that.
        if !is_ignored(SIGHUP) {
            caught.push(SIGHUP);
        }
        let (mut bytes, end) = UnixStream::pair()?;
        for &signal in &caught {
            low_level::pipe::register(signal, end.try_clone()?)?;
        }
        let signals = Arc::new(Signals { caught, state: Mutex::default(), came: Condvar::new() });
        let watching = signals.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut byte = [0];
            while matches!(bytes.read(&mut byte), Ok(1)) {
                let mut state = watching.lock();
                state.seen += 1;
                watching.came.notify_all();
                if state.seen > 1 {
                    drop(state);
                    watching.clean_up();
                    std::process::exit(crate::INTERRUPTED.into());
                }
            }
        })?;
        // Programs that are built to abort at a panic drop nothing.
        let (panicking, hook) = (signals.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            panicking.clean_up();
            hook(info);
        }));
        Ok(signals)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a flag at the first signal.
    pub fn stop(&self, stop: Arc<AtomicBool>) -> io::Result<()> {
        for &signal in &self.caught {
            flag::register(signal, stop.clone())?;
        }
        if self.lock().seen > 0 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    fn clean_up(&self) {
        self.lock().cleanups.iter().for_each(|cleanup| cleanup());
    }

    /// Does this when the program has to end at once. It may have been done already.
    pub fn at_once(&self, cleanup: impl Fn() + Send + 'static) {
        self.lock().cleanups.push(Box::new(cleanup));
    }

    /// Waits for the first signal.
    pub fn wait(&self) {
        let state = self.lock();
        drop(self.came.wait_while(state, |state| state.seen == 0));
    }
}

/// Whether a signal was ignored when the program was started, as far as proc(5) tells.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}
