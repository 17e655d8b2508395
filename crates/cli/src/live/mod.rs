// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in progress for other programs: a socket for `readpath stats`, and a file tree as in Linux's sysfs. Both show
//! the same [`Tree`], which reads the counters that each run posts; no run waits for them.

mod mount;
mod report;
mod server;
pub mod socket;

pub use report::{HOST, SCHEMA};

use crate::args::LiveOptions;
use crate::{stop, usage};
use anyhow::{Result, anyhow};
use mount::Mounted;
use readpath_session::lab::runs::Shared;
use readpath_session::running::{Board, Post};
use readpath_sysfs::Tree;
use server::Server;
use std::io::{self, Write};
use std::sync::Arc;

/// What is shown until this is dropped; nothing without `--stats` and `--sysfs`.
#[derive(Default)]
pub struct Live(Option<Shows>);

struct Shows {
    board: Arc<Board>,
    // Both are removed on drop.
    mounted: Option<Mounted>,
    server: Option<Server>,
    hold: bool,
}

impl Live {
    /// Begins to show runs with these cases and variants, in the order in which they are planned.
    pub fn start(options: &LiveOptions, runs: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        if options.stats.is_none() && options.sysfs.is_none() {
            return match options.hold {
                true => Err(usage(anyhow!("--hold keeps what --stats or --sysfs shows; give one of them"))),
                false => Ok(Live(None)),
            };
        }
        let board = Arc::new(Board::new(runs));
        let tree = Arc::new(Tree::new(board.clone()));
        // Signals remove what is made from now on.
        stop::catch()?;
        let server = match &options.stats {
            Some(path) => Some(Server::start(path.as_deref(), tree.clone())?),
            None => None,
        };
        let mounted = match &options.sysfs {
            Some(folder) => Some(Mounted::new(folder, tree)?),
            None => None,
        };
        Ok(Live(Some(Shows { board, mounted, server, hold: options.hold })))
    }

    /// What runs share, with the board if it is shown.
    pub fn shared(&self) -> Shared {
        Shared { board: self.0.as_ref().map(|shows| shows.board.clone()), ..Shared::default() }
    }

    /// Notes on parameters that were changed during runs: results depend on when.
    pub fn notes(&self) -> Vec<String> {
        let posts = self.0.iter().flat_map(|shows| shows.board.posts()).enumerate();
        posts.filter_map(|(run, post)| changes(run, post)).collect()
    }

    /// Ends the command: with `--hold` after Ctrl-C.
    pub fn finish(self) -> Result<()> {
        let Some(shows) = self.0 else { return Ok(()) };
        if shows.hold {
            io::stdout().flush()?;
            let socket = shows.server.as_ref().map(|s| s.path().display().to_string());
            let folder = shows.mounted.as_ref().map(|m| m.folder().display().to_string());
            let places: Vec<String> = socket.into_iter().chain(folder).collect();
            writeln!(io::stderr(), "Holding {} until Ctrl-C", places.join(" and ")).ok();
            stop::wait();
        }
        Ok(())
    }
}

/// What was changed in one run, in a sentence.
fn changes(run: usize, post: &Post) -> Option<String> {
    let (first, count) = post.changes();
    if count == 0 {
        return None;
    }
    let mut list: Vec<String> =
        first.iter().map(|c| format!("{} = {} of logical unit {} at {}", c.param, c.value, c.lun, c.at)).collect();
    if count > first.len() as u64 {
        list.push(format!("{} more", count - first.len() as u64));
    }
    Some(format!(
        "{HOST}{run} ({}, {}): HPB parameters were written while it ran ({}). Its figures depend on when that was, so \
         they cannot be reproduced from the configuration alone.",
        post.case,
        post.variant,
        list.join("; ")
    ))
}
