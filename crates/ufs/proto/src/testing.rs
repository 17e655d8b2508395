// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strategies that generate every value of [`crate::typed`] with distinct bytes. Only for tests.

use proptest::prelude::*;

use crate::groups::{GroupEntry, GroupHint, GroupNotice, GroupPair};
use crate::typed::*;
use crate::{cdb, hpb};

/// Every [`Cdb`] whose fields fit its form.
pub(crate) fn any_cdb() -> impl Strategy<Value = Cdb> {
    let form = prop_oneof![Just(Form::Ten), Just(Form::Sixteen)];
    prop_oneof![
        Just(Cdb::TestUnitReady),
        any::<u8>().prop_map(|alloc| Cdb::RequestSense { alloc }),
        any::<(Option<u8>, u16)>().prop_map(|(vpd, alloc)| Cdb::Inquiry { vpd, alloc }),
        any::<(bool, u8, u8, u16)>().prop_map(|(dbd, page, subpage, alloc)| Cdb::ModeSense10 {
            dbd,
            page,
            subpage,
            alloc
        }),
        any::<(bool, u8)>().prop_map(|(immed, control)| Cdb::StartStopUnit { immed, control }),
        Just(Cdb::ReadCapacity10),
        any::<u32>().prop_map(|alloc| Cdb::ReadCapacity16 { alloc }),
        any::<(u8, u32)>().prop_map(|(select, alloc)| Cdb::ReportLuns { select, alloc }),
        // READ (16) with bit 0 is another command, which follows.
        any_transfer().prop_map(|(form, lba, blocks, flags)| {
            let flags = if form == Form::Sixteen { flags & !cdb::FLAG_HINT } else { flags };
            Cdb::Read { form, lba, blocks, flags }
        }),
        any::<(u32, u32, [u8; 4], u8, u8)>().prop_map(|(lba, blocks, entry, seen, flags)| Cdb::HintedRead {
            lba,
            blocks,
            hint: GroupHint { entry: GroupEntry(entry), seen },
            flags: flags & !cdb::FLAG_HINT,
        }),
        any_transfer().prop_map(|(form, lba, blocks, flags)| Cdb::Write { form, lba, blocks, flags }),
        any::<(u32, u16, u8)>().prop_map(|(lba, blocks, flags)| Cdb::Verify10 { lba, blocks, flags }),
        (form.clone(), any::<(u64, u32)>()).prop_map(|(form, (lba, blocks))| match form {
            Form::Sixteen => Cdb::PreFetch { form, lba, blocks },
            _ => Cdb::PreFetch { form, lba: lba & 0xFFFF_FFFF, blocks: blocks & 0xFFFF },
        }),
        (form, any::<(u64, u32, bool)>()).prop_map(|(form, (lba, blocks, immed))| match form {
            Form::Sixteen => Cdb::SynchronizeCache { form, lba, blocks, immed },
            _ => Cdb::SynchronizeCache { form, lba: lba & 0xFFFF_FFFF, blocks: blocks & 0xFFFF, immed },
        }),
        any::<u16>().prop_map(|list_bytes| Cdb::Unmap { list_bytes }),
        any::<(u64, u32, u8, bool)>().prop_map(|(start, alloc, options, partial)| Cdb::ReportZones {
            start,
            alloc,
            options: options & 0x3F,
            partial
        }),
        (0usize..4, any::<(u64, u16, bool)>()).prop_map(|(action, (lba, count, all))| Cdb::ManageZones {
            action: ZoneAction::ALL[action],
            lba,
            count,
            all
        }),
        any::<(u32, u8, [u8; 8], u8, u8)>().prop_map(|(lba, blocks, entry, flags, read_id)| Cdb::HpbRead {
            lba,
            blocks,
            entry: HpbEntry(entry),
            flags,
            read_id
        }),
        (any::<u8>(), any_sub_region(), 0u32..1 << 24).prop_map(|(buffer_id, at, alloc)| Cdb::HpbReadBuffer {
            buffer_id,
            at,
            alloc
        }),
        any::<u16>().prop_map(|region| Cdb::HpbInactivate { region }),
        any::<(u32, u8, u16)>().prop_map(|(lba, read_id, list_bytes)| Cdb::HpbPreRequest { lba, read_id, list_bytes }),
        Just(Cdb::HpbInactivateAll),
        any::<[u8; 16]>().prop_filter("has a variant of its own", |b| !cdb::is_named_opcode(b[0])).prop_map(Cdb::Other),
    ]
}

fn any_transfer() -> impl Strategy<Value = (Form, u64, u32, u8)> {
    prop_oneof![
        (0u64..1 << 21, 1u32..=256).prop_map(|(lba, blocks)| (Form::Six, lba, blocks, 0)),
        any::<(u32, u16, u8)>().prop_map(|(lba, blocks, flags)| (Form::Ten, lba.into(), blocks.into(), flags)),
        any::<(u64, u32, u8)>().prop_map(|(lba, blocks, flags)| (Form::Sixteen, lba, blocks, flags)),
    ]
}

fn any_sub_region() -> impl Strategy<Value = SubRegion> {
    any::<(u16, u16)>().prop_map(|(region, index)| SubRegion { region, index })
}

/// Every [`Request`].
pub(crate) fn any_request() -> impl Strategy<Value = Request> {
    let body = prop_oneof![
        Just(RequestBody::NopOut),
        (any::<u32>(), any_cdb())
            .prop_map(|(expected_bytes, cdb)| RequestBody::Command(Command { expected_bytes, cdb })),
        any::<(u8, u8, u8, u8, u16, u32)>().prop_map(|(opcode, idn, index, selector, length, value)| {
            RequestBody::Query(QueryRequest { opcode, idn, index, selector, length, value })
        }),
        any::<(u8, u8, u8)>().prop_map(|(function, lun, task_tag)| RequestBody::Task(TaskRequest {
            function,
            lun,
            task_tag
        })),
    ];
    (any::<(u8, u8)>(), body).prop_map(|((lun, tag), body)| Request { lun, tag, body })
}

/// Every notification that a host accepts.
pub(crate) fn any_notification() -> impl Strategy<Value = HpbNotification> {
    let lists = (any_sub_region(), any_sub_region(), any::<[u16; 2]>());
    (any::<u8>(), 0u8..0x7F, any::<(u8, u8)>(), lists)
        .prop_map(|(operation, lun, (active_count, inactive_count), (a, b, inactive))| HpbNotification {
            operation,
            lun,
            active_count,
            inactive_count,
            active: [a, b],
            inactive,
        })
        .prop_filter("not accepted", hpb::is_acceptable)
}

fn any_groups() -> impl Strategy<Value = Option<GroupNotice>> {
    let pair = any::<(u32, [u8; 4])>().prop_map(|(lba, entry)| GroupPair { lba, entry: GroupEntry(entry) });
    (any::<Option<u32>>(), proptest::option::of(pair), any::<u8>())
        .prop_map(|(dirty, pair, update)| GroupNotice::new(dirty, pair, update))
}

fn any_response() -> impl Strategy<Value = Response> {
    let status = prop_oneof![
        Just(Status::Good),
        Just(Status::CheckCondition),
        Just(Status::Busy),
        Just(Status::ReservationConflict),
        Just(Status::TaskSetFull),
        Just(Status::TaskAborted),
    ];
    let sense =
        proptest::option::of((0u8..16, any::<(u8, u8)>()).prop_map(|(key, (asc, ascq))| Sense { key, asc, ascq }));
    let residual = prop_oneof![
        Just(Residual::None),
        any::<u32>().prop_map(Residual::Under),
        any::<u32>().prop_map(Residual::Over)
    ];
    (status, sense, residual, proptest::option::of(any_notification()), any_groups(), any::<bool>()).prop_map(
        |(status, sense, residual, hpb, groups, event_alert)| Response {
            status,
            sense: sense.filter(|_| status == Status::CheckCondition),
            residual,
            hpb: hpb.filter(|_| status == Status::Good),
            // One of both, and a dirty group only where there is no residual count.
            groups: groups
                .filter(|_| status == Status::Good && hpb.is_none())
                .filter(|n| residual == Residual::None || n.dirty().is_none()),
            event_alert,
        },
    )
}

/// Every [`Reply`] that a device may send.
pub(crate) fn any_reply() -> impl Strategy<Value = Reply> {
    let body = prop_oneof![
        1 => Just(ReplyBody::NopIn),
        4 => any_response().prop_map(ReplyBody::Response),
        1 => any::<((u8, u8, u8, u8, u8), u16, u32)>().prop_map(
            |((result, opcode, idn, index, selector), length, value)| {
                ReplyBody::Query(QueryResponse { result, opcode, idn, index, selector, length, value })
            }
        ),
        1 => any::<u8>().prop_map(|service_response| ReplyBody::Task(TaskResponse { service_response })),
        1 => Just(ReplyBody::Reject),
    ];
    (any::<(u8, u8)>(), body).prop_map(|((lun, tag), body)| Reply { lun, tag, body })
}
