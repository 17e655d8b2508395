// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of a failed command (Linux `drivers/scsi/scsi_error.c`: `scsi_decide_disposition`,
//! `scsi_check_sense`): whether the failure is transient. The driver decides what follows.

use readpath_proto::typed::{ReplyBody, Sense, Status};

const NOT_READY: u8 = 2;
const ILLEGAL_REQUEST: u8 = 5;
const UNIT_ATTENTION: u8 = 6;
const ABORTED_COMMAND: u8 = 0xB;

/// Why a command failed.
pub(super) struct Failure {
    /// The device was busy.
    pub busy: bool,
    /// A retry may succeed.
    pub passing: bool,
    /// The device reports a unit attention, as after a reset.
    pub attention: bool,
    /// The device does not support the command.
    pub refused: bool,
    /// The sense data, if there was any.
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
