// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this room against its public surface, in one program: linking is what costs.

mod attached;
mod both;
mod cuts;
mod flips;
mod images;
mod rpmb;
mod settings;
