// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this crate against its public interface, in one program: linking is expensive.

mod attached;
mod both;
mod cuts;
mod flips;
mod images;
mod rpmb;
mod settings;
mod zones;
