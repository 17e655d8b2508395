// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader of UBIFS volumes.
//!
//! This room knows nodes, the index, the journal and the properties tree of UBIFS; it reaches flash only through logical
//! erase blocks and never writes.
