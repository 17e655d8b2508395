// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UFS host controller (UFSHCI 3.1) as a state machine: registers, UIC commands, transfer and task management lists,
//! the line of its interrupt. It owns no clock, thread or file, and reaches a host's memory only through [`GuestMem`].
//!
//! - [`Controller`] is the controller alone: a register access goes in, and its effect on the device comes out as an
//!   [`Effect`].
//! - [`Attached`] is controller, device and data in one, for a host that writes registers: Linux, for example.
//! - [`Port`] is the other side, the lower half of a host driver: it writes registers and descriptors. [`Registers`]
//!   puts it and a controller between the host driver and the device of a stack, in virtual time.
//!
//! This crate knows JESD223 and no host. It knows neither the meaning of commands nor how registers are reached from
//! outside (PCI, vfio-user).

#![warn(unreachable_pub)]

mod attached;
mod controller;
mod lists;
mod memory;
mod misbehaviour;
mod port;
mod prdt;
pub mod register;
mod registers;
mod unipro;

pub use attached::{Attached, OWN_TAG};
pub use controller::{Controller, Effect};
pub use memory::{GuestMem, Ram, Unreachable};
pub use misbehaviour::Misbehaviour;
pub use port::{Bus, Completed, Port, PortError};
pub use registers::Registers;
