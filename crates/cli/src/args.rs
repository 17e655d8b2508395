// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line, as data: what can be typed and what `--help` says of it. Each file below has the options of some
//! commands.

mod common;
mod crash;
mod dev;
mod device;
mod image;
mod live;
mod other;
mod serve;
mod simulate;
mod sweep;
mod trace;
mod ubi;

pub use common::{Basics, Common, Recorded};
pub use crash::{Crash, CrashStates};
pub use dev::{Bench, DevCommand};
pub use device::{DeviceCommand, Fit, ProbeCommand, ProbeFit, ProbePlan};
pub use image::{UbiAttach, UbiCat, UbiCheck, UbiExtract, UbiFind, UbiLook, UbiStream};
pub use live::{LiveOptions, Stats};
pub use other::{Completions, Doctor, Examples, Man, Report};
pub use readpath_session::args::{ImageInput, TraceInput, UbiWork};
pub use serve::{Attach, Ctl, ImageCommand, ImageCreate, Serve};
pub use simulate::{BreakEven, Compare, Fio, FioFormat, Hmb, Iozone, Power, Replay, Reproduce};
pub use sweep::{Merge, Sweep, SweepCommand};
pub use trace::{Mrc, TraceCommand, TraceExperts, TraceFormat};
pub use ubi::{UbiCommand, UbiReplay};

use clap::{Parser, Subcommand};

/// How much faster are reads with part of the flash read path cached in host memory? UFS with HPB, and UBI on raw NAND
#[derive(Parser, Debug)]
#[command(name = "readpath", version, about, long_about = None)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a fio job file on a modelled device
    Fio(Fio),
    /// Replay recorded block traces on a modelled device
    Replay(Replay),
    /// Say how much host memory a DRAM-less SSD should get for block traces and fio jobs
    Hmb(Hmb),
    /// Compare variants under the same workload and seeds, with confidence intervals
    Compare(Compare),
    /// Find the least value of a key, such as SRAM, that is as good as HPB or another variant
    BreakEven(BreakEven),
    /// Make a study: many runs that differ in any keys of device, host, policy and workload
    Sweep(Sweep),
    /// Cut the power at random moments of a job or a trace, and check all data after recovery
    Power(Power),
    /// Run an experiment: a published one, beside its published values, or that of a file
    Reproduce(Reproduce),
    /// Run an iozone command line on a modelled device
    Iozone(Iozone),
    /// Raw NAND with UBI and UBIFS: inspect images, make and replay read streams
    #[command(subcommand)]
    Ubi(UbiCommand),
    /// Device images: make, describe, check, copy and empty them
    #[command(subcommand)]
    Image(ImageCommand),
    /// Serve a device image in real time as a block device, to NBD clients
    Serve(Serve),
    /// Attach a device image to a virtual machine, whose own driver uses it as a UFS device
    Attach(Attach),
    /// Give a program every state that a crash can leave of what a server recorded, and say which it does not survive
    Crash(Crash),
    /// Tell a server that was started with --control what to do
    Ctl(Ctl),
    /// Describe block traces and convert them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List, show, check and fit device presets
    #[command(subcommand)]
    Device(DeviceCommand),
    /// Show the counters of a running simulation that was started with --stats
    Stats(Stats),
    /// Make an HTML report from a result document
    Report(Report),
    /// List small inputs to try the program with, or write them into a folder
    Examples(Examples),
    /// Say which optional parts are here, what each is for and how to get it
    Doctor(Doctor),
    /// Print a script that completes commands, options and file names in a shell
    Completions(Completions),
    /// Write a manual page for each command
    Man(Man),
    /// Tools for work on Readpath itself
    #[command(subcommand)]
    Dev(DevCommand),
}
