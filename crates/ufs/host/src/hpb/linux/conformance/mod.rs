// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state machine of Linux 6.1 `ufshpb` as tables of events and results (see `lists`, `states`, `timers`), run on
//! a unit as the driver would: after every reply and timer the worker runs. A row names its control modes, and
//! whether it holds for a host that behaves as Linux (`strict_linux`), for one that does not, or for both; where they
//! differ there is a row for each.

mod lists;
mod states;
mod timers;

use crate::config::HpbOptions;
use crate::hpb::{HpbLu, HpbRequest, LuState, Port, RegionState, SubRegionState, UnitSetup};
use crate::ids::{Id, SubRegionId};
use crate::params::{HpbParam, HpbParams};
use readpath_kit::Ns;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::{HpbEntry, HpbNotification, SubRegion};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Modes {
    Dcm,
    Hcm,
    Both,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Hosts {
    /// `strict_linux = true`.
    Linux,
    /// `strict_linux = false`.
    Own,
    Any,
}

/// The unit of a row: 8 regions of two sub-regions each.
#[derive(Clone)]
struct Unit {
    /// bHPBSubRegionSize.
    sub_region_size: u8,
    max_active: u32,
    pinned: std::ops::Range<u32>,
    max_blocks: u8,
    params: HpbParams,
}

/// Sub-regions of 16 blocks. Two regions may be active, none is pinned; HPB READs of up to 4 blocks.
const UNIT: Unit = Unit { sub_region_size: 7, max_active: 2, pinned: 0..0, max_blocks: 4, params: PARAMS };

/// Eviction thresholds within reach of the tests.
const PARAMS: HpbParams = HpbParams { eviction_thld_enter: 14, eviction_thld_exit: 10, ..HpbParams::LINUX };

/// [`UNIT`] with many loads at a time.
const WIDE: Unit = Unit { params: HpbParams { inflight_map_req: 9, ..PARAMS }, ..UNIT };

struct Row {
    what: &'static str,
    modes: Modes,
    hosts: Hosts,
    unit: Unit,
    steps: &'static [Step],
}

/// An event, or a check of the state after it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The device's HPB reset is done.
    Present,
    /// Brings a sub-region to VALID.
    Hold(u16, u16),
    /// The host itself queues a sub-region; the worker is not started.
    Queue(u16, u16),
    /// The device recommends a sub-region.
    Activate(u16, u16),
    /// The device recommends to drop a region.
    Inactivate(u16),
    /// Both for the same region, in one notification.
    ActivateAndInactivate(u16, u16),
    /// HPB operation 02h.
    Lost,
    /// HPB operation 03h, which does not exist.
    Unknown,
    /// A notification with an index out of range.
    OutOfRange,
    /// A read is sent with an entry.
    Hit(u32, u32),
    Miss(u32, u32),
    /// A number of reads of a block are sent, in any form.
    Reads(u32, u32),
    Write(u32, u32),
    /// A reply without notification arrives.
    Reply,
    Loaded(u16, u16),
    Failed(u16, u16),
    Tags(u32),
    Wait(u64),
    Suspend,
    Resume,
    Reset,
    Restored,
    Destroy,
    Store(HpbParam, u32),

    /// Exactly these commands were sent since the last check.
    Sent(&'static [Command]),
    Lu(LuState),
    Region(u16, RegionState),
    Sub(u16, u16, SubRegionState),
    /// A counter by its name in `hpb_stats`.
    Counter(&'static str, u64),
    ReadsOf(u16, u32),
    Maps(u64),
    Timer(bool),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Command {
    /// HPB READ BUFFER.
    Load(u16, u16),
    /// HPB WRITE BUFFER 01h.
    Drop(u16),
}

/// Tags and the commands sent under them.
struct Tags {
    free: u32,
    sent: Vec<Command>,
}

impl Port for Tags {
    fn has_tag(&self) -> bool {
        self.free > 0
    }

    fn in_flight(&self) -> u32 {
        0
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        if self.free == 0 {
            return false;
        }
        self.free -= 1;
        self.sent.push(match request {
            HpbRequest::Load { at, .. } => Command::Load(at.region, at.index),
            HpbRequest::Drop { region } => Command::Drop(region),
        });
        true
    }

    fn writes_in_flight(&self, _: impl FnMut(u32, u32)) {}
}

struct Bench {
    lu: HpbLu,
    tags: Tags,
    now: Ns,
}

const LAST_RECOMMENDED: u16 = 7;

impl Bench {
    fn new(unit: &Unit, host_control: bool, strict_linux: bool) -> Bench {
        let ss = unit.sub_region_size;
        let geometry = HpbGeometry::new(ss + 1, ss, 16 << (ss - 3)).unwrap();
        let Unit { max_active, ref pinned, max_blocks, params, .. } = *unit;
        let single_blocks = max_blocks;
        let setup = UnitSetup {
            geometry,
            max_active,
            pinned: pinned.clone(),
            single_blocks,
            max_blocks,
            host_control,
            queue_depth: 31,
        };
        let params = if host_control { params } else { HpbParams::LINUX };
        let options = HpbOptions { strict_linux, params, ..HpbOptions::default() };
        Bench {
            lu: HpbLu::new(&setup, options, Ns::ZERO).unwrap(),
            tags: Tags { free: 30, sent: Vec::new() },
            now: Ns::ZERO,
        }
    }

    fn run(&mut self) {
        self.lu.run_worker(self.now, &mut self.tags);
    }

    fn notify(&mut self, active: Option<(u16, u16)>, inactive: Option<u16>) {
        let mut n = HpbNotification { operation: HpbNotification::REGION_UPDATE, ..Default::default() };
        if let Some((region, index)) = active {
            n.active_count = 1;
            n.active[0] = SubRegion { region, index };
        }
        if let Some(region) = inactive {
            n.inactive_count = 1;
            n.inactive[0] = region;
        }
        self.lu.notified(&n);
        self.run();
    }

    fn operation(&mut self, operation: u8) {
        let heard = self.lu.notified(&HpbNotification { operation, ..Default::default() });
        if heard && operation == HpbNotification::RESET {
            self.lu.device_reset();
        }
        self.run();
    }

    fn queue(&mut self, srgn: SubRegionId) {
        let (linux, common) = self.lu.linux();
        linux.queue_activation(common, srgn);
    }

    fn read(&mut self, block: u32, blocks: u32) -> Option<HpbEntry> {
        self.lu.entry_for(self.now, block, blocks)
    }

    fn play(&mut self, step: Step) {
        let index = |region: u16, index: u16| SubRegionId::new(u32::from(region) * 2 + u32::from(index));
        match step {
            Step::Present => {
                self.lu.present();
                self.run();
            }
            Step::Hold(region, sub) => {
                self.queue(index(region, sub));
                let (linux, common) = self.lu.linux();
                linux.kick(common);
                self.run();
                assert_eq!(self.tags.sent.pop(), Some(Command::Load(region, sub)), "it is loaded");
                self.lu.loaded(SubRegion { region, index: sub }, Some(&[7; 128]));
                self.tags.free = 30;
            }
            Step::Queue(region, sub) => self.queue(index(region, sub)),
            Step::Activate(region, sub) => self.notify(Some((region, sub)), None),
            Step::Inactivate(region) => self.notify(None, Some(region)),
            Step::ActivateAndInactivate(region, sub) => self.notify(Some((region, sub)), Some(region)),
            Step::Lost => self.operation(HpbNotification::RESET),
            Step::Unknown => self.operation(3),
            Step::OutOfRange => self.notify(Some((LAST_RECOMMENDED + 1, 0)), None),
            Step::Hit(block, n) => assert!(self.read(block, n).is_some(), "an entry is sent"),
            Step::Miss(block, n) => assert_eq!(self.read(block, n), None, "no entry is sent"),
            Step::Reads(block, count) => (0..count).for_each(|_| {
                self.read(block, 1);
            }),
            Step::Write(block, n) => self.lu.write(block, n),
            Step::Reply => self.run(),
            Step::Loaded(region, sub) => {
                self.lu.loaded(SubRegion { region, index: sub }, Some(&[7; 128]));
                self.run();
            }
            Step::Failed(region, sub) => {
                self.lu.loaded(SubRegion { region, index: sub }, None);
                self.run();
            }
            Step::Tags(free) => self.tags.free = free,
            Step::Wait(ms) => {
                let end = self.now + Ns::from_ms(ms);
                while self.lu.next_timer() <= end {
                    self.now = self.lu.next_timer();
                    self.lu.advance(self.now);
                    self.run();
                }
                self.now = end;
            }
            Step::Suspend => self.lu.suspend(),
            Step::Resume => {
                self.lu.resume(self.now);
                self.run();
            }
            Step::Reset => self.lu.reset(),
            Step::Restored => {
                self.lu.restored(self.now);
                self.run();
            }
            Step::Destroy => self.lu.destroy(),
            Step::Store(param, value) => self.lu.store_param(param, value).unwrap(),
            Step::Sent(commands) => assert_eq!(std::mem::take(&mut self.tags.sent), commands),
            Step::Lu(state) => assert_eq!(self.lu.state(), state),
            Step::Region(region, state) => assert_eq!(self.lu.region_state(region), state),
            Step::Sub(region, index, state) => {
                assert_eq!(self.lu.sub_region_state(SubRegion { region, index }), state);
            }
            Step::Counter(name, value) => {
                let found = self.lu.counters().by_name().find(|(n, _)| *n == name).expect("a counter of Linux");
                assert_eq!(found.1, value, "{name}");
            }
            Step::ReadsOf(region, reads) => assert_eq!(self.lu.linux().0.region_reads(region), reads),
            Step::Maps(maps) => assert_eq!(self.lu.memory().map_bytes, maps * 128),
            Step::Timer(armed) => assert_eq!(self.lu.next_timer() != Ns::NEVER, armed),
        }
    }
}

/// The failing row and step.
struct At(String);

impl Drop for At {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

/// Runs each row for every mode and host that it names.
fn play(rows: &[Row]) {
    for row in rows {
        for host_control in [false, true] {
            for strict in [false, true] {
                let mode = if host_control { Modes::Hcm } else { Modes::Dcm };
                let host = if strict { Hosts::Linux } else { Hosts::Own };
                if ![Modes::Both, mode].contains(&row.modes) || ![Hosts::Any, host].contains(&row.hosts) {
                    continue;
                }
                let mut bench = Bench::new(&row.unit, host_control, strict);
                if !matches!(row.steps.first(), Some(Step::Lu(LuState::Init))) {
                    bench.lu.present();
                    bench.run();
                }
                for (i, &step) in row.steps.iter().enumerate() {
                    let _at = At(format!("{:?}, {mode:?}, {host:?}, step {i}: {step:?}", row.what));
                    bench.play(step);
                }
            }
        }
    }
}
