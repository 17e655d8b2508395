// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target: see `readpath_fuzz::vfio_session`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| readpath_fuzz::vfio_session(data));
