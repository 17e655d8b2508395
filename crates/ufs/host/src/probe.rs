// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe: the order of requests in which Linux 6.1 probes a UFS device and starts HPB
//! (`ufshcd_device_params_init`, `ufs_get_device_desc`, `ufshpb_init`, `ufshcd_slave_configure`), without the steps
//! for power and speed of a physical link.

use crate::booster;
use crate::config::{HostConfig, HpbOptions, LongReads};
use crate::hpb::{GroupLu, HpbLu, PrototypeError, UnitHpb, UnitSetup, check_groups};
use crate::params::ParamError;
use crate::quirks::Quirks;
use readpath_kit::Ns;
use readpath_proto::desc::{DescError, DeviceDescriptor, GeometryDescriptor, UnitDescriptor};
use readpath_proto::hpb::{self, Control, HpbGeometry, HpbGeometryError};
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::typed::{Cdb, Command, QueryRequest, ReplyBody, RequestBody, Status};
use thiserror::Error;

/// Why the device cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProbeError {
    /// The device answered with an error, or not what was asked for.
    #[error("{step}: the device answered {answer}")]
    Answer {
        /// The step.
        step: &'static str,
        /// The answer.
        answer: String,
    },
    /// A descriptor could not be read.
    #[error(transparent)]
    Descriptor(#[from] DescError),
    /// The HPB fields are inconsistent.
    #[error(transparent)]
    Hpb(#[from] HpbGeometryError),
    /// The device has another HPB control mode than the host is configured for.
    #[error(
        "the device is configured for HPB in {} control mode (bHPBControl = {:02X}h), not for {} control mode",
        .configured.name(), .configured.byte(), .wanted.name()
    )]
    Control {
        /// What bHPBControl says.
        configured: Control,
        /// The host's configuration.
        wanted: Control,
    },
    /// The device does not support the host's way of sending entries of long reads.
    #[error("long_reads = {wanted:?} needs {needed}")]
    LongReads {
        /// The host's configuration.
        wanted: &'static str,
        /// The required property of the device.
        needed: &'static str,
    },
    /// The device cannot be used as the prototype of HPB.
    #[error(transparent)]
    Prototype(#[from] PrototypeError),
    /// A parameter of host control mode does not fit the unit, or the memory limit is too low.
    #[error("HPB of logical unit {lun}: {error}")]
    Param {
        /// The unit.
        lun: u8,
        /// Why.
        error: ParamError,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    NopOut,
    SetDeviceInit,
    PollDeviceInit,
    Geometry,
    Device,
    MaxSingleCommand,
    HpbEnabled,
    EntriesInEhs,
    GroupEntries,
    BoosterLifeTime,
    SetBooster(u8),
    ResetHpb,
    ReportLuns,
    Unit(u8),
    PollHpbReset,
    Done,
}

impl Step {
    /// Name of the step in messages.
    const fn name(self) -> &'static str {
        match self {
            Step::NopOut => "NOP OUT",
            Step::SetDeviceInit | Step::PollDeviceInit => "fDeviceInit",
            Step::Geometry => "READ DESCRIPTOR geometry",
            Step::Device => "READ DESCRIPTOR device",
            Step::EntriesInEhs => "HPB entries in an extra header segment",
            Step::GroupEntries => "groups of the prototype of HPB",
            Step::BoosterLifeTime => "bWriteBoosterBufferLifeTimeEst",
            Step::SetBooster(_) => "WriteBooster flags",
            Step::ReportLuns => "REPORT LUNS",
            _ => "READ DESCRIPTOR unit",
        }
    }
}

/// How often the probe reads a flag that the device should clear, and requests the HPB reset (Linux
/// `HPB_RESET_REQ_RETRIES`). Linux waits for a millisecond between two reads of the flag, this host does not.
const POLLS: u32 = 10;

pub(crate) struct ProbedUnit {
    pub lun: u8,
    pub blocks: u32,
    /// bLUQueueDepth.
    pub depth: u8,
    pub hpb: UnitHpb,
}

pub(crate) struct Probe {
    step: Step,
    options: Option<HpbOptions>,
    wants_booster: bool,
    /// Commands that the controller accepts at the same time.
    queue_depth: u32,
    polls: u32,
    geometry: GeometryDescriptor,
    device: DeviceDescriptor,
    hpb: bool,
    /// Blocks of an HPB READ with the entry of the first; below, with all entries.
    single_blocks: u8,
    max_blocks: u8,
    luns: Vec<u8>,
    /// Entries of a group of the prototype, if it is to be used.
    group_entries: Option<u32>,
    /// WriteBooster is on.
    pub booster: bool,
    /// Units found.
    pub units: Vec<ProbedUnit>,
}

impl Probe {
    pub(crate) fn new(config: &HostConfig) -> Self {
        Probe {
            step: Step::NopOut,
            options: config.hpb,
            wants_booster: config.write_booster,
            booster: false,
            queue_depth: u32::from(config.slots - 1),
            polls: 0,
            geometry: GeometryDescriptor::default(),
            device: DeviceDescriptor::default(),
            hpb: false,
            single_blocks: 1,
            max_blocks: 1,
            luns: Vec::new(),
            group_entries: None,
            units: Vec::new(),
        }
    }

    pub(crate) fn device_depth(&self) -> u8 {
        self.device.queue_depth
    }

    /// The next request; `None` when the probe has ended.
    pub(crate) fn request(&self) -> Option<RequestBody> {
        let read_descriptor = |idn, index| query(opcode::READ_DESCRIPTOR, idn, index, 0xFF);
        Some(match self.step {
            Step::NopOut => RequestBody::NopOut,
            Step::SetDeviceInit => query(opcode::SET_FLAG, flag::DEVICE_INIT, 0, 0),
            Step::PollDeviceInit => query(opcode::READ_FLAG, flag::DEVICE_INIT, 0, 0),
            Step::Geometry => read_descriptor(descriptor::GEOMETRY, 0),
            Step::Device => read_descriptor(descriptor::DEVICE, 0),
            Step::MaxSingleCommand => query(opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD, 0, 0),
            Step::HpbEnabled => query(opcode::READ_FLAG, flag::HPB_EN, 0, 0),
            Step::EntriesInEhs => query(opcode::READ_ATTRIBUTE, attribute::EHS_HPB_ENTRIES, 0, 0),
            Step::GroupEntries => query(opcode::READ_ATTRIBUTE, attribute::GROUP_ENTRIES, 0, 0),
            Step::BoosterLifeTime => query(opcode::READ_ATTRIBUTE, attribute::WB_LIFE_TIME_EST, 0, 0),
            Step::SetBooster(i) => return booster::request(i),
            Step::ResetHpb => query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0),
            Step::ReportLuns => {
                let cdb = Cdb::ReportLuns { select: 0, alloc: 4096 };
                RequestBody::Command(Command { expected_bytes: 4096, cdb })
            }
            Step::Unit(i) => read_descriptor(descriptor::UNIT, self.luns[usize::from(i)]),
            Step::PollHpbReset => query(opcode::READ_FLAG, flag::HPB_RESET, 0, 0),
            Step::Done => return None,
        })
    }

    /// Handles the reply to the last request, at `now`.
    pub(crate) fn on_reply(&mut self, now: Ns, body: &ReplyBody, data: &[u8]) -> Result<(), ProbeError> {
        self.step = match (self.step, body) {
            (Step::NopOut, ReplyBody::NopIn) => Step::SetDeviceInit,
            (Step::SetDeviceInit, ReplyBody::Query(q)) if q.result == result::SUCCESS => Step::PollDeviceInit,
            (Step::PollDeviceInit, ReplyBody::Query(q)) if q.result == result::SUCCESS => {
                self.poll("fDeviceInit", q.value, Step::Geometry)?
            }
            (Step::Geometry, ReplyBody::Query(q)) if q.result == result::SUCCESS => {
                self.geometry = GeometryDescriptor::parse(data)?;
                Step::Device
            }
            (Step::Device, ReplyBody::Query(q)) if q.result == result::SUCCESS => {
                self.device = DeviceDescriptor::parse(data)?;
                self.after_device()?
            }
            // As Linux: without a valid answer one block, and no HPB 2.0.
            (Step::MaxSingleCommand, ReplyBody::Query(q)) => {
                if q.result == result::SUCCESS {
                    self.single_blocks = hpb::max_single_blocks(self.device.hpb_version, q.value as u8);
                }
                self.max_blocks = self.single_blocks;
                Step::HpbEnabled
            }
            (Step::HpbEnabled, ReplyBody::Query(q)) => {
                self.after_enabled(q.result == result::SUCCESS && q.value & 1 == 1)
            }
            (Step::EntriesInEhs, ReplyBody::Query(q)) => {
                if q.result != result::SUCCESS || q.value == 0 {
                    let needed = "a device that takes entries in extra header segments (hpb.v2.entries_in_ehs)";
                    return Err(ProbeError::LongReads { wanted: LongReads::Ehs.name(), needed });
                }
                self.max_blocks = q.value.min(u32::from(u8::MAX)) as u8;
                self.after_hpb()
            }
            (Step::GroupEntries, ReplyBody::Query(q)) => {
                if q.result != result::SUCCESS {
                    return Err(PrototypeError::NotOffered.into());
                }
                self.group_entries = Some(q.value);
                self.after_hpb()
            }
            // As Linux: without a valid answer, no WriteBooster.
            (Step::BoosterLifeTime, ReplyBody::Query(q)) => {
                self.booster = q.result == result::SUCCESS && booster::is_alive(q.value);
                if self.booster { Step::SetBooster(0) } else { self.after_booster() }
            }
            (Step::SetBooster(i), ReplyBody::Query(_)) => {
                if booster::request(i + 1).is_some() {
                    Step::SetBooster(i + 1)
                } else {
                    self.after_booster()
                }
            }
            // A device that refuses the reset will not have cleared the flag, or has nothing to clear.
            (Step::ResetHpb, ReplyBody::Query(q)) if q.result != result::SUCCESS && self.polls + 1 < POLLS => {
                self.polls += 1;
                Step::ResetHpb
            }
            (Step::ResetHpb, ReplyBody::Query(_)) => {
                self.polls = 0;
                Step::ReportLuns
            }
            (Step::ReportLuns, ReplyBody::Response(r)) if r.status == Status::Good => {
                let (luns, _) = data.get(8..).unwrap_or_default().as_chunks::<8>();
                self.luns = luns.iter().filter(|l| l[0] == 0).map(|l| l[1]).collect();
                self.next_unit(0)
            }
            (Step::Unit(i), ReplyBody::Query(q)) if q.result == result::SUCCESS => {
                self.add_unit(now, self.luns[usize::from(i)], &UnitDescriptor::parse(data)?)?;
                self.next_unit(i + 1)
            }
            (Step::PollHpbReset, ReplyBody::Query(q)) => self.after_poll(q.result == result::SUCCESS, q.value),
            (step, answer) => {
                return Err(ProbeError::Answer { step: step.name(), answer: format!("{answer:?}") });
            }
        };
        Ok(())
    }

    fn after_poll(&mut self, good: bool, value: u32) -> Step {
        if good && value & 1 == 0 {
            let ready = self.counted_luns().to_vec();
            let units = self.units.iter_mut().filter(|unit| ready.contains(&unit.lun));
            units.filter_map(|unit| unit.hpb.standard_mut()).for_each(HpbLu::present);
            return Step::Done;
        }
        if good && self.polls + 1 < POLLS {
            self.polls += 1;
            return Step::PollHpbReset;
        }
        // Linux destroys the HPB units and continues without them.
        self.units.iter_mut().filter_map(|unit| unit.hpb.standard_mut()).for_each(HpbLu::destroy);
        Step::Done
    }

    fn poll(&mut self, what: &'static str, value: u32, next: Step) -> Result<Step, ProbeError> {
        if value & 1 == 0 {
            return Ok(next);
        }
        self.polls += 1;
        if self.polls >= POLLS {
            return Err(ProbeError::Answer { step: what, answer: format!("1 in {POLLS} polls") });
        }
        Ok(self.step)
    }

    fn after_device(&mut self) -> Result<Step, ProbeError> {
        let (d, g) = (&self.device, &self.geometry);
        let described = g.hpb_region_size != 0
            && g.hpb_sub_region_size != 0
            && g.hpb_number_lu != 0
            && g.hpb_max_active_regions != 0;
        let offered = d.spec_version >= 0x0310 && d.ufs_features & hpb::FEATURE_HPB != 0;
        self.polls = 0;
        if self.options.is_some_and(|options| options.prototype.is_some()) {
            return Ok(Step::GroupEntries);
        }
        let Some(options) = self.options.filter(|_| described && offered) else { return Ok(self.after_hpb()) };
        let configured = Control::from_byte(d.hpb_control);
        if let Some(wanted) = options.mode.filter(|&wanted| wanted != configured) {
            return Err(ProbeError::Control { configured, wanted });
        }
        Ok(match d.hpb_version {
            hpb::VERSION_1_0 if options.long_reads != LongReads::First => {
                let needed = "a device with HPB 2.0 (hpb.v2)";
                return Err(ProbeError::LongReads { wanted: options.long_reads.name(), needed });
            }
            hpb::VERSION_1_0 => {
                self.hpb = true;
                self.after_hpb()
            }
            hpb::VERSION_2_0 => Step::MaxSingleCommand,
            _ => self.after_hpb(),
        })
    }

    fn after_enabled(&mut self, enabled: bool) -> Step {
        self.hpb = enabled;
        match self.options.map(|options| options.long_reads) {
            Some(LongReads::Ehs) if enabled => return Step::EntriesInEhs,
            Some(LongReads::PreRequest | LongReads::Measured) => self.max_blocks = u8::MAX,
            _ => {}
        }
        self.after_hpb()
    }

    /// The step after HPB is set up.
    fn after_hpb(&self) -> Step {
        if self.wants_booster && booster::is_offered(&self.device) {
            Step::BoosterLifeTime
        } else {
            self.after_booster()
        }
    }

    /// The step after WriteBooster is set up.
    fn after_booster(&self) -> Step {
        if self.hpb { Step::ResetHpb } else { Step::ReportLuns }
    }

    fn next_unit(&self, i: u8) -> Step {
        if usize::from(i) < self.luns.len() {
            Step::Unit(i)
        } else if self.units.iter().any(|unit| unit.hpb.standard().is_some() && self.counted_luns().contains(&unit.lun))
        {
            Step::PollHpbReset
        } else {
            Step::Done
        }
    }

    /// Units whose HPB is started.
    fn counted_luns(&self) -> &[u8] {
        let number = usize::from(self.device.number_lu);
        if Quirks::of(self.options.as_ref()).counts_units_by_b_number_lu {
            self.luns.get(..number).unwrap_or_default()
        } else {
            &self.luns
        }
    }

    fn add_unit(&mut self, now: Ns, lun: u8, unit: &UnitDescriptor) -> Result<(), ProbeError> {
        if unit.lu_enable == 0 {
            return Ok(());
        }
        let blocks = u32::try_from(unit.logical_block_count).unwrap_or(u32::MAX);
        let param = |error| ProbeError::Param { lun, error };
        let has_hpb = unit.lu_enable == hpb::LU_ENABLED_HPB;
        let hpb = match (self.options, self.group_entries) {
            (Some(options), Some(entries)) if has_hpb => {
                let blocks = check_groups(entries, unit.logical_block_count)?;
                UnitHpb::Prototype(Box::new(GroupLu::new(blocks, entries, &options).map_err(param)?))
            }
            (Some(options), _) if has_hpb && self.hpb && unit.hpb_max_active_regions > 0 => {
                UnitHpb::Standard(HpbLu::new(&self.setup_of(unit)?, options, now).map_err(param)?)
            }
            _ => UnitHpb::None,
        };
        self.units.push(ProbedUnit { lun, blocks, depth: unit.queue_depth, hpb });
        Ok(())
    }

    /// A unit's HPB according to its descriptor.
    fn setup_of(&self, unit: &UnitDescriptor) -> Result<UnitSetup, HpbGeometryError> {
        let g = &self.geometry;
        let pinned = u32::from(unit.hpb_pinned_start);
        // A depth of 0 means that the unit shares the device's queue.
        let own_depth = Some(u32::from(unit.queue_depth)).filter(|&depth| depth > 0);
        Ok(UnitSetup {
            geometry: HpbGeometry::new(g.hpb_region_size, g.hpb_sub_region_size, unit.logical_block_count)?,
            max_active: u32::from(unit.hpb_max_active_regions),
            pinned: pinned..pinned + u32::from(unit.hpb_pinned_count),
            single_blocks: self.single_blocks,
            max_blocks: self.max_blocks,
            host_control: Control::from_byte(self.device.hpb_control) == Control::Host,
            queue_depth: own_depth.map_or(self.queue_depth, |depth| depth.min(self.queue_depth)),
        })
    }
}

fn query(opcode: u8, idn: u8, index: u8, length: u16) -> RequestBody {
    RequestBody::Query(QueryRequest { opcode, idn, index, selector: 0, length, value: 0 })
}
