// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target: see `readpath_fuzz::study_toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| readpath_fuzz::study_toml(data));
