// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images as a whole: what they say of themselves, and what becomes of them when they are damaged.
