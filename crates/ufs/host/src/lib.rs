// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host driver: block requests in, UFS commands out, and the host's side of HPB as Linux 6.1 `ufshpb` does it.
//!
//! [`Driver`] is a state machine without clock, thread or device. Its methods are of three kinds:
//! - inputs: [`Driver::start`], [`Driver::submit`], [`Driver::on_reply`], [`Driver::reset`], [`Driver::suspend`];
//! - time: [`Driver::next_deadline`], [`Driver::advance`];
//! - outputs, polled until `None` after every input: [`Driver::poll_request`] (or [`Driver::poll_read`]
//!   first), [`Driver::poll_done`];
//! - getters.
//!
//! This crate knows the UFS protocol. It does not know the device behind the link, the workload or the clock that
//! drives it; it decides only from what a host can observe.

#![warn(unreachable_pub)]

mod block;
mod booster;
mod config;
mod driver;
mod host_memory;
mod hpb;
mod ids;
mod params;
mod policy;
mod probe;
mod quirks;

pub use block::{BlockDone, BlockOp, BlockRequest, ReadRequest};
pub use config::{ExclusiveOptions, HostConfig, HostCores, HpbOptions, ListOrder, LongReads, ZoneMapper, ZoneMapping};
pub use driver::Driver;
pub use host_memory::{HostMemoryAsk, HostMemoryGrant, HostMemoryLimit, NoHostMemory, grant};
pub use hpb::{HostMemory, HpbCounters, HpbLu, LuState, PrototypeError, RegionState, SubRegionState};
pub use params::{HpbParam, HpbParams, ParamError, ParamLimits};
pub use policy::{ManagedPolicy, PolicyChoice};
pub use probe::ProbeError;
pub use readpath_proto::groups::GroupUpdate;
pub use readpath_proto::hpb::Control;
pub use readpath_proto::typed::Sense as SenseData;
