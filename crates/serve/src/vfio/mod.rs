// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PCI function for one client at a time, over vfio-user: QEMU's `vfio-user-pci` is such a client. It handles the
//! messages that a function with registers and one interrupt line needs.
//!
//! Sources: the vfio-user specification (QEMU `docs/interop/vfio-user.rst`), Linux `include/uapi/linux/vfio.h`, PCI
//! Local Bus 3.0. The client is not trusted: whatever it sends is answered, refused, or ends its connection.

pub(crate) mod client;
mod maps;
mod pci;
mod session;

pub use maps::Maps;
pub use pci::{PciId, UfsFunction};
pub use session::{Broken, Errno, Function, Irqs, Mapping, Session};

#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod tests;
