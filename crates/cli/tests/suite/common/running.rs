// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program in progress, for tests that look at it meanwhile.

use super::{Room, text};
use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A job that runs until it is stopped.
pub const LONG_JOB: &str = "[reader]\nrw=randread\nbs=4k\nsize=4g\nloops=1000\nioengine=libaio\ndirect=1\niodepth=8\n";

/// The program at work; it is interrupted when this is dropped.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(room: &Room, args: &[&str]) -> Self {
        let child = Command::new(cargo_bin("readpath"))
            .current_dir(room.path("."))
            .env("XDG_RUNTIME_DIR", room.path("."))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Running(Some(child))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().expect("a process").id()
    }

    pub fn interrupt(&self) {
        kill_process(Pid::from_child(self.0.as_ref().expect("a process")), Signal::INT).expect("a signal");
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.0.as_mut().expect("a process").try_wait().expect("a status").is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Output {
        self.0.take().expect("a process").wait_with_output().expect("an end")
    }

    /// Asks until there is an answer, as long as the program runs.
    pub fn until<T>(&mut self, mut answer: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(answer) = answer() {
                return answer;
            }
            if self.is_over() {
                let output = self.0.take().expect("a process").wait_with_output().expect("an end");
                panic!("the run is over: {} {} {}", output.status, text(&output.stdout), text(&output.stderr));
            }
            assert!(begun.elapsed() < PATIENCE, "nothing happens");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it hears of Ctrl-C: from then on a signal is not lost, whatever the program is about to do.
    pub fn listens(&mut self) {
        let status = format!("/proc/{}/status", self.pid());
        self.until(|| {
            let status = std::fs::read_to_string(&status).ok()?;
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_owned();
            let caught = u64::from_str_radix(&caught, 16).expect("a mask of signals");
            (caught >> (Signal::INT.as_raw() - 1) & 1 == 1).then_some(())
        });
    }

    /// Waits until the program has used this much CPU time, however busy the machine is.
    pub fn has_worked(&mut self, time: Duration) {
        let stat = format!("/proc/{}/stat", self.pid());
        self.until(|| {
            let stat = std::fs::read_to_string(&stat).ok()?;
            // Behind the name, which may hold anything: user and system time are fields 14 and 15, in ticks of 10 ms.
            let ticks = stat.rsplit(')').next()?.split(' ').skip(12).take(2);
            let ticks: u64 = ticks.map(|n| n.parse::<u64>().expect("ticks")).sum();
            (u128::from(ticks) * 10 >= time.as_millis()).then_some(())
        });
    }

    /// What `readpath stats SOCKET --json` says once every run is in this state.
    pub fn stats(&mut self, room: &Room, socket: &str, state: &str) -> Value {
        self.until(|| {
            let output = room.output(&["stats", socket, "--json"]);
            let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
            let runs = answer["runs"].as_array().expect("runs");
            runs.iter().all(|run| run["state"] == state).then_some(answer)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            kill_process(Pid::from_child(child), Signal::INT).ok();
            child.wait().ok();
        }
    }
}
