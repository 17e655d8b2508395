// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket: a client gets one line of JSON with the current state, and nothing is read from it.

use super::report::report;
use super::socket::{self, PathKind};
use crate::{stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_sysfs::Tree;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A client that does not read for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that is served; it vanishes when this is dropped.
pub struct Server {
    path: PathBuf,
    /// The thread ends when this does.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a socket at `path`, or at one of this process's own.
    pub fn start(path: Option<&Path>, tree: Arc<Tree>) -> Result<Self> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => socket::of_this_process()?,
        };
        let listener = listen(&path)?;
        let mine = path.clone();
        stop::clean_up(move || _ = fs::remove_file(&mine))?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread =
            std::thread::Builder::new().name("stats".into()).spawn(move || serve(&listener, &stopped, &tree))?;
        Ok(Server { path, stop: Some(stop), thread: Some(thread) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A socket at a path where there is nothing, or one that was left behind.
fn listen(path: &Path) -> Result<UnixListener> {
    let name = path.display();
    let wrong = |what: String| usage(anyhow!("--stats: {name}: {what}"));
    match socket::look(path).map_err(|e| wrong(format!("cannot look at it: {e}")))? {
        PathKind::Nothing => {}
        PathKind::Other => return Err(wrong("already exists and is no socket".into())),
        PathKind::Socket => match UnixStream::connect(path) {
            Ok(_) => return Err(wrong("another program serves this socket; name another".into())),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(|e| wrong(format!("was left behind, and cannot be removed: {e}")))?;
            }
            Err(e) => return Err(wrong(format!("cannot be used: {e}"))),
        },
    }
    let listener = UnixListener::bind(path).map_err(|e| wrong(format!("cannot make the socket: {e}")))?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).with_context(|| format!("{name}: cannot protect it"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn serve(listener: &UnixListener, stopped: &UnixStream, tree: &Tree) {
    loop {
        let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut wait, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !wait[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        if let Ok((mut client, _)) = listener.accept() {
            // An error here means that the client has gone away, which does not concern the run.
            client.set_nonblocking(false).and_then(|()| client.set_write_timeout(Some(PATIENCE))).ok();
            client.write_all(format!("{}\n", report(tree)).as_bytes()).ok();
        }
    }
}
