// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of reads equal those that a real kernel was recorded to make, read by read.

mod common;

use common::{assert_same, mount, recording, taken};
use readpath_ubifs::MountMode;

#[test]
fn mounts_read_what_the_kernel_reads() {
    for (dump, name) in common::DUMPS {
        let mut fs = mount(dump, MountMode::ReadWrite);
        assert_same(name, &taken(&mut fs), &recording(&format!("{name}_mount")));
    }
}
