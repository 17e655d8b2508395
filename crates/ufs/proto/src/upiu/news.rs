// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HPB part of a GOOD response, in bytes: the notification of JESD220-3, and the prototype's report of groups.

use super::error::UpiuError;
use crate::groups::{GroupEntry, GroupNotice, GroupPair, PAIR_BYTES};
use crate::scsi::FIXED_SENSE_BYTES;
use crate::typed::{HpbNotification, Residual, Response, Status, SubRegion};

/// Device information (byte 9 of a RESPONSE): an HPB notification is attached (JESD220-3 HPB_UPDATE_ALERT).
pub(super) const INFO_HPB_ALERT: u8 = 0x02;
/// Device information (byte 9 of a RESPONSE): bytes 12 to 15 are the number of a dirty group. The paper gives the place
/// of the number, not of the bit.
pub(super) const INFO_DIRTY: u8 = 0x04;
/// Device information (byte 9 of a RESPONSE): the data segment is a logical block and its entry, byte 8 the number of
/// the update. The paper specifies neither.
pub(super) const INFO_PAIR: u8 = 0x08;

/// Sense length and fixed sense: the data segment of a CHECK CONDITION; that of an HPB notification has the same
/// length.
pub(super) const SENSE_SEGMENT_BYTES: usize = 2 + FIXED_SENSE_BYTES;
/// Descriptor type of an HPB notification (Linux `DEV_DES_TYPE`).
const HPB_DESCRIPTOR_TYPE: u8 = 0x80;
/// Additional length of an HPB notification (Linux `DEV_ADDITIONAL_LEN`).
const HPB_ADDITIONAL_LENGTH: u8 = 0x10;
/// Additional length that Samsung's driver of 2018 (OpenMPDK HPBDriver) expects; the layout is the same.
const HPB_ADDITIONAL_LENGTH_2018: u8 = 0x11;

/// The notification in the data segment, bytes 32 to 51 of the UPIU (Linux `struct utp_hpb_rsp`).
pub(super) fn notification_bytes(n: &HpbNotification) -> [u8; SENSE_SEGMENT_BYTES] {
    let mut f = [0; SENSE_SEGMENT_BYTES];
    f[0..2].copy_from_slice(&(FIXED_SENSE_BYTES as u16).to_be_bytes());
    f[2..8].copy_from_slice(&[
        HPB_DESCRIPTOR_TYPE,
        HPB_ADDITIONAL_LENGTH,
        n.operation,
        n.lun,
        n.active_count,
        n.inactive_count,
    ]);
    for (i, at) in n.active.iter().enumerate() {
        f[8 + 4 * i..10 + 4 * i].copy_from_slice(&at.region.to_be_bytes());
        f[10 + 4 * i..12 + 4 * i].copy_from_slice(&at.index.to_be_bytes());
    }
    for (i, region) in n.inactive.iter().enumerate() {
        f[16 + 2 * i..18 + 2 * i].copy_from_slice(&region.to_be_bytes());
    }
    f
}

/// The inverse of [`notification_bytes`]; `None` for another format.
pub(super) fn parse_notification(f: &[u8]) -> Option<HpbNotification> {
    let f: &[u8; SENSE_SEGMENT_BYTES] = f.try_into().ok()?;
    let be = |at: usize| u16::from_be_bytes([f[at], f[at + 1]]);
    let form = usize::from(be(0)) == FIXED_SENSE_BYTES
        && f[2] == HPB_DESCRIPTOR_TYPE
        && (f[3] == HPB_ADDITIONAL_LENGTH || f[3] == HPB_ADDITIONAL_LENGTH_2018);
    form.then(|| HpbNotification {
        operation: f[4],
        lun: f[5],
        active_count: f[6],
        inactive_count: f[7],
        active: [SubRegion { region: be(8), index: be(10) }, SubRegion { region: be(12), index: be(14) }],
        inactive: [be(16), be(18)],
    })
}

/// Writes `notice` into the first 32 bytes `b` of a RESPONSE UPIU and the data segment behind them; returns the
/// length of that segment. A dirty group is left out unless bytes 12 to 15 are free (`has_room`).
pub(super) fn put_notice(notice: &GroupNotice, has_room: bool, b: &mut [u8; 32], segment: &mut [u8]) -> usize {
    debug_assert!(has_room || notice.dirty().is_none(), "a dirty group stands in the place of the residual count");
    if let Some(group) = notice.dirty().filter(|_| has_room) {
        b[9] |= INFO_DIRTY;
        b[12..16].copy_from_slice(&group.to_be_bytes());
    }
    let Some(pair) = notice.pair() else { return 0 };
    b[8] = notice.update();
    b[9] |= INFO_PAIR;
    segment[..4].copy_from_slice(&pair.lba.to_be_bytes());
    segment[4..PAIR_BYTES].copy_from_slice(&pair.entry.0);
    PAIR_BYTES
}

/// The inverse of [`put_notice`], given the rest of the response: a notice uses only bytes that are otherwise free.
pub(super) fn parse_notice(
    b: &[u8; 32],
    segment: &[u8],
    response: &Response,
) -> Result<Option<GroupNotice>, UpiuError> {
    let alone = response.status == Status::Good && b[9] & INFO_HPB_ALERT == 0;
    let is_dirty = b[9] & INFO_DIRTY != 0;
    if !alone || (is_dirty && response.residual != Residual::None) {
        let expected =
            "without bits 2 and 3, which go with GOOD and no notification; bit 2 also with no residual count";
        return Err(UpiuError::Field { offset: 9, found: b[9].into(), expected });
    }
    let pair = match (b[9] & INFO_PAIR != 0, segment) {
        (false, []) => None,
        (true, &[a, b, c, d, e, f, g, h]) => {
            Some(GroupPair { lba: u32::from_be_bytes([a, b, c, d]), entry: GroupEntry([e, f, g, h]) })
        }
        _ => {
            let expected = "8 (logical block and entry) with bit 3 of byte 9, 0 without";
            return Err(UpiuError::Field { offset: 10, found: segment.len() as u32, expected });
        }
    };
    let dirty = is_dirty.then(|| u32::from_be_bytes([b[12], b[13], b[14], b[15]]));
    Ok(GroupNotice::new(dirty, pair, b[8]))
}
