// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that outlive a run: images, and servers of them.

use super::live::LiveOptions;
use clap::{Args, Subcommand};
use readpath_session::args::{Fill, policies};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Commands about images.
#[derive(Subcommand, Debug)]
pub enum ImageCommand {
    /// Make an image: a device's flash in a sparse file
    Create(ImageCreate),
    /// Say what an image holds
    Info {
        /// The image
        image: PathBuf,
    },
    /// Read all that an image holds, let the device recover from it, and say what is wrong
    Check {
        /// The image
        image: PathBuf,
    },
    /// Copy an image, holes and all
    Clone {
        /// The image
        image: PathBuf,
        /// The copy, which must not exist
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make an image empty again, with the same device and without a key of RPMB
    Reset {
        /// The image
        image: PathBuf,
    },
    /// What an image holds of RPMB, the replay protected memory block: key, write counter, and how much is written
    Rpmb {
        /// The image
        image: PathBuf,
        /// Print the key as well, in hexadecimal: it allows writing
        #[arg(long, conflicts_with = "reset")]
        key: bool,
        /// Forget key, write counter and blocks, as no device would
        #[arg(long)]
        reset: bool,
    },
}

/// Arguments of `image create`.
#[derive(Args, Debug)]
pub struct ImageCreate {
    /// The image, which must not exist
    pub image: PathBuf,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Change a key of the device file; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write every block once before anything else; the data is zeros
    #[arg(long, value_enum, default_value = "none")]
    pub fill: Fill,
    /// Then run a fio job in virtual time; the data that it writes is zeros
    #[arg(long, value_name = "JOB.fio")]
    pub age: Option<PathBuf>,
    /// Seed of the order of --fill random and of the job
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// The image
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Where NBD clients connect: unix:PATH or tcp:IP:PORT; repeatable [default: tcp:127.0.0.1:10809]
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: Vec<String>,
    /// Listen to an address that other machines reach. There is no TLS: every client reads and writes everything
    #[arg(long)]
    pub public: bool,
    /// Answer without waiting for modelled time
    #[arg(long, conflicts_with = "scale")]
    pub instant: bool,
    /// Stretch time: at 10 the device is ten times slower
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Whether and how the host uses HPB [default: off, or what --policy needs]
    #[arg(long, value_name = "MODE", value_parser = ["off", "dcm", "hcm"])]
    pub hpb: Option<String>,
    #[arg(long, value_name = "NAME", help = policies("Host memory policy"))]
    pub policy: Option<String>,
    /// Limit of all host memory for HPB (maps, dirty bitmaps, tables): bytes, or with K, M or G
    #[arg(long, value_name = "BYTES")]
    pub host_memory: Option<String>,
    /// Listen to a socket at PATH for `readpath ctl`
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Run CMD by the shell, and serve until it ends; its environment has $uri and $control, the sockets of --nbd and
    /// --control (of a temporary folder where these are not given), and $readpath, this program
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// Give counters to Prometheus at http://IP:PORT/metrics
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// What goes wrong, one a line: time since clients can connect, then an order as `readpath ctl` takes it
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Write every request to FILE, which must not exist, for `readpath replay`
    #[arg(long, value_name = "FILE", conflicts_with = "sysfs")]
    pub record: Option<PathBuf>,
    /// Record the data of writes too, for `readpath crash`
    #[arg(long, requires = "record")]
    pub data: bool,
    #[command(flatten)]
    pub live: LiveOptions,
    /// Refuse writes
    #[arg(long)]
    pub read_only: bool,
    /// Do not sync the file when a client flushes: data then survives the end of the server, but not a crash of the
    /// machine
    #[arg(long)]
    pub no_sync: bool,
}

/// Arguments of `ctl`.
#[derive(Args, Debug)]
pub struct Ctl {
    /// The socket that the server listens to with --control
    pub socket: PathBuf,
    /// stats: counters, as Prometheus reads them; watch: figures of every second; or an order: cut TIME, cut disconnect
    /// TIME, cut crash, power on, stall TIME, stall off, error RULE ERRNO, slow RULE TIME, drop RULE, torn RULE 512|4K,
    /// misdirect RULE, corrupt RULE (RULE is any of: read|write|flush|trim|zero, FROM-TO, client N, nth N|every
    /// N|first N|P%, up TIME down TIME; `error off` ends those of a kind), fail read|program|erase N|Nppm|off, lie
    /// on|off, end-of-life on|off, memory SIZE, param NAME VALUE, host KEY=VALUE..., seed N,
    /// mark WORDS
    #[arg(required = true, value_name = "ORDER")]
    pub order: Vec<String>,
}

/// Arguments of `attach`.
#[derive(Args, Debug)]
pub struct Attach {
    /// The image
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Listen to a socket at PATH for the machine, which speaks vfio-user
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Answer without waiting for modelled time
    #[arg(long, conflicts_with = "scale")]
    pub instant: bool,
    /// Stretch time: at 10 the device is ten times slower
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Write every UPIU and every stage of work in the device to FILE, in device time and in real time, until the end:
    /// `readpath dev upius` lists it, `readpath replay` takes it for a block trace, Perfetto draws it
    #[arg(long, value_name = "FILE")]
    pub trace_io: Option<PathBuf>,
    /// Vendor and device of the PCI function: Intel's controller, which Linux binds and suspends; 1b36:0013, which is
    /// QEMU's, for U-Boot
    #[arg(long, value_name = "VVVV:DDDD", default_value = "8086:4b41")]
    pub pci_id: String,
    /// Let device and controller misbehave in one way: slow-init, lost-hibernate, hung-tag, lost-completion, uic-errors
    /// or fatal-error
    #[arg(long, value_name = "HOW")]
    pub misbehave: Option<String>,
    /// At the end, write every counter of the device to FILE: a line each, its name and its value
    #[arg(long, value_name = "FILE")]
    pub counters: Option<PathBuf>,
    /// Do not sync the file when the machine flushes: data then survives the end of the program, but not a crash of
    /// this machine
    #[arg(long)]
    pub no_sync: bool,
}
