// SPDX-License-Identifier: MIT OR Apache-2.0
pub use super::lru::Lru as Adaptive;
