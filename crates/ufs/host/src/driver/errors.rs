// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a failed command means (Linux `drivers/scsi/scsi_error.c`: `scsi_decide_disposition`, `scsi_check_sense`):
//! whether it passes by itself. The driver decides what follows.

use readpath_proto::typed::{ReplyBody, Sense, Status};

const NOT_READY: u8 = 2;
const ILLEGAL_REQUEST: u8 = 5;
const UNIT_ATTENTION: u8 = 6;
const ABORTED_COMMAND: u8 = 0xB;

/// Why a command failed.
pub(super) struct Failure {
    /// The device could not take it now.
    pub busy: bool,
    /// It may go well if it is sent again.
    pub passing: bool,
    /// The device reports that it was reset, or something like it.
    pub attention: bool,
    /// The device takes no such command.
    pub refused: bool,
    /// Why, as far as the device said.
    pub sense: Option<Sense>,
}

impl Failure {
    pub(super) fn of(reply: &ReplyBody) -> Failure {
        let (status, sense) = match reply {
            ReplyBody::Response(r) => (r.status, r.sense),
            _ => (Status::TaskAborted, None),
        };
        let key = sense.map_or(0, |s| s.key);
        let becoming_ready = sense.is_some_and(|s| (s.key, s.asc, s.ascq) == (NOT_READY, 4, 1));
        Failure {
            busy: matches!(status, Status::Busy | Status::TaskSetFull),
            passing: status == Status::TaskAborted || matches!(key, UNIT_ATTENTION | ABORTED_COMMAND) || becoming_ready,
            attention: key == UNIT_ATTENTION,
            refused: key == ILLEGAL_REQUEST,
            sense,
        }
    }
}
