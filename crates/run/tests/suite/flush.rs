// SPDX-License-Identifier: MIT OR Apache-2.0
//! SYNCHRONIZE CACHE at a device without a host: when it answers, and what a power cut afterwards leaves.

use readpath_device::{Layout, MediaOp};
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{Cdb, Form, ReplyBody, Response, Status};
use readpath_testkit::{Bare, command, device, read_10, write_10};

const WRITTEN: u32 = 500;
const TRIMMED: u32 = 3;

/// The place from which a block is read.
fn read(b: &mut Bare, lba: u32) -> MediaOp {
    b.command(read_10(lba, 1), 4096);
    assert_eq!(b.media.len(), 1, "{:?}", b.media);
    b.media[0]
}

/// With IMMED the answer comes before the work, which is still done.
#[test]
fn what_was_flushed_outlives_a_power_cut_also_if_nobody_waited() {
    for immed in [false, true] {
        let mut b = Bare::filled(&device(1000), 10, Layout::Sequential, 1);
        b.command(write_10(WRITTEN, 3, 0), 3 * 4096);
        let mut list = Vec::new();
        encode_unmap(&[(u64::from(TRIMMED), 1)], &mut list);
        let (bytes, list_bytes) = (list.len() as u32, list.len() as u16);
        b.ask(0, command(Cdb::Unmap { list_bytes }, bytes), &list);
        let s = *b.device.stats();
        assert_eq!((s.slices_programmed, s.journal_writes), (0, 0), "so little waits for more");
        let (reply, _) = b.command(Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed }, 0);
        assert!(matches!(reply.body, ReplyBody::Response(Response { status: Status::Good, .. })), "{reply:?}");
        assert_eq!(b.device.stats().slices_programmed, if immed { 0 } else { 3 });
        b.settle();
        b.power_cycle();
        for lba in WRITTEN..WRITTEN + 3 {
            assert!(matches!(read(&mut b, lba), MediaOp::ReadFlash { .. }), "IMMED {immed}, block {lba}");
        }
        assert!(matches!(read(&mut b, TRIMMED), MediaOp::ReadZeros { .. }), "IMMED {immed}");
        assert!(matches!(read(&mut b, TRIMMED + 1), MediaOp::ReadFlash { .. }));
    }
}
