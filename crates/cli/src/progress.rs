// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error, while something takes long; nothing in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use readpath_session::lab::runs::Shared;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether escape sequences are welcome: not with NO_COLOR (no-color.org), whose users want none, and not on a terminal
/// that knows none.
pub fn escapes() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Progress on standard error, if that is a terminal; ends when dropped.
pub struct Progress {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows how far `shared` has come on the way to `expected` requests.
    pub fn start(shared: Arc<Shared>, expected: Option<u64>) -> Self {
        let template = match expected {
            Some(_) => "{bar:30} {percent:>3} %  {human_pos} of {human_len} requests  {per_sec}  {eta} left",
            None => "{spinner} {human_pos} requests  {per_sec}  {elapsed}",
        };
        Progress::of(expected, template, move || shared.ios.load(Ordering::Relaxed))
    }

    /// Shows how far `so_far` has come on the way to `expected` points.
    pub fn of_points(expected: u64, so_far: impl Fn() -> u64 + Send + 'static) -> Self {
        Progress::of(Some(expected), "{bar:30} {percent:>3} %  {pos} of {len} points  {eta} left", so_far)
    }

    /// Shows how many states were looked at on the way to `expected`, and how many of them failed.
    pub fn of_states(expected: Option<u64>, so_far: impl Fn() -> (u64, u64) + Send + 'static) -> Self {
        let template = match expected {
            Some(_) => "{bar:30} {percent:>3} %  {pos} of {len} states{msg}  {per_sec}  {eta} left",
            None => "{spinner} {pos} states{msg}  {per_sec}  {elapsed}",
        };
        Progress::with(expected, template, move |bar| {
            let (looked_at, failed) = so_far();
            if failed > 0 {
                bar.set_message(format!(", {failed} failed"));
            }
            looked_at
        })
    }

    fn of(expected: Option<u64>, template: &'static str, so_far: impl Fn() -> u64 + Send + 'static) -> Self {
        Progress::with(expected, template, move |_| so_far())
    }

    fn with(
        expected: Option<u64>,
        template: &'static str,
        so_far: impl Fn(&ProgressBar) -> u64 + Send + 'static,
    ) -> Self {
        if !io::stderr().is_terminal() {
            return Progress { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::with_draw_target(expected, target());
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            // Work done before does not count in the estimate of the remaining time.
            bar.set_position(so_far(&bar));
            bar.reset_eta();
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(200)) {
                bar.set_position(so_far(&bar));
            }
            bar.finish_and_clear();
        });
        Progress { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A bar on the way to `length` of `what`.
pub fn bar(length: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), target());
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}} of {{len}} {what}  {{eta}} left")) {
        bar.set_style(style);
    }
    bar
}

fn target() -> ProgressDrawTarget {
    match io::stderr().is_terminal() {
        false => ProgressDrawTarget::hidden(),
        true if escapes() => ProgressDrawTarget::stderr(),
        true => ProgressDrawTarget::term_like(Box::new(Plain::default())),
    }
}

/// A terminal on which one line is written again and again, with carriage returns for all control. (indicatif itself
/// moves the cursor by escape sequences.)
#[derive(Debug, Default)]
struct Plain {
    line: Mutex<String>,
}

impl Plain {
    fn change(&self, change: impl FnOnce(&mut String)) -> io::Result<()> {
        change(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

impl TermLike for Plain {
    fn width(&self) -> u16 {
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
        // Some terminals begin a new line after the last column.
        if columns > 1 { columns - 1 } else { 79 }
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.change(|line| line.push_str(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.change(String::clear)
    }

    fn flush(&self) -> io::Result<()> {
        let width = usize::from(self.width());
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: String = line.chars().filter(|c| !c.is_control()).take(width).collect();
        let end = if shown.trim().is_empty() { "\r" } else { "" };
        write!(io::stderr(), "\r{shown:<width$}{end}")
    }
}
