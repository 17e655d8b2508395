// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and replies as values: the messages between a UFS host and a UFS device, without bytes.
//!
//! Everything a UPIU can carry is representable here, also values out of range, because the receiver has to answer
//! them. Bulk data (descriptors, parameter lists, HPB entries) is passed separately, as byte slices.

use crate::groups::{GroupHint, GroupNotice};
pub use crate::names::{HpbEntry, SubRegion};
pub use crate::zones::ZoneAction;

/// A UPIU from host to device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Logical unit as in UPIU byte 2; bit 7 marks a well-known logical unit.
    pub lun: u8,
    /// Task tag, UPIU byte 3.
    pub tag: u8,
    /// The request.
    pub body: RequestBody,
}

/// The kinds of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestBody {
    /// NOP OUT (00h).
    NopOut,
    /// COMMAND (01h).
    Command(Command),
    /// QUERY REQUEST (16h); the data segment of WRITE DESCRIPTOR is passed separately.
    Query(QueryRequest),
    /// TASK MANAGEMENT REQUEST (04h).
    Task(TaskRequest),
}

/// A SCSI command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Expected data transfer length in bytes (EDTL).
    pub expected_bytes: u32,
    /// The command descriptor block.
    pub cdb: Cdb,
}

/// CDB length of a command with several forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// 6-byte CDB.
    Six,
    /// 10-byte CDB.
    Ten,
    /// 16-byte CDB.
    Sixteen,
}

/// Command descriptor blocks. Lengths are in logical blocks or bytes as SPC, SBC and JESD220 define them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cdb {
    /// TEST UNIT READY (00h).
    TestUnitReady,
    /// REQUEST SENSE (03h).
    RequestSense {
        /// Allocation length in bytes.
        alloc: u8,
    },
    /// INQUIRY (12h).
    Inquiry {
        /// The requested vital product data page, if EVPD is set.
        vpd: Option<u8>,
        /// Allocation length in bytes.
        alloc: u16,
    },
    /// MODE SENSE (10) (5Ah).
    ModeSense10 {
        /// Disable block descriptors.
        dbd: bool,
        /// Page control (2 bits) and page code (6 bits), CDB byte 2.
        page: u8,
        /// Subpage code.
        subpage: u8,
        /// Allocation length in bytes.
        alloc: u16,
    },
    /// START STOP UNIT (1Bh).
    StartStopUnit {
        /// Return status at once.
        immed: bool,
        /// CDB byte 4: power condition (7:4), NO_FLUSH (2), LOEJ (1), START (0).
        control: u8,
    },
    /// READ CAPACITY (10) (25h).
    ReadCapacity10,
    /// READ CAPACITY (16) (9Eh, service action 10h).
    ReadCapacity16 {
        /// Allocation length in bytes.
        alloc: u32,
    },
    /// REPORT LUNS (A0h).
    ReportLuns {
        /// SELECT REPORT.
        select: u8,
        /// Allocation length in bytes.
        alloc: u32,
    },
    /// READ (6), (10) or (16).
    Read {
        /// Which form.
        form: Form,
        /// First logical block.
        lba: u64,
        /// Logical blocks to read.
        blocks: u32,
        /// CDB byte 1 (RDPROTECT, DPO, FUA); zero for READ (6). Bit 0 of READ (16) is clear.
        flags: u8,
    },
    /// WRITE (6), (10) or (16).
    Write {
        /// Which form.
        form: Form,
        /// First logical block.
        lba: u64,
        /// Logical blocks to write.
        blocks: u32,
        /// CDB byte 1 (WRPROTECT, DPO, FUA); zero for WRITE (6).
        flags: u8,
    },
    /// VERIFY (10) (2Fh).
    Verify10 {
        /// First logical block.
        lba: u32,
        /// Logical blocks to verify.
        blocks: u16,
        /// CDB byte 1 (VRPROTECT, DPO, BYTCHK).
        flags: u8,
    },
    /// PRE-FETCH (10) (34h) or (16) (90h).
    PreFetch {
        /// Which form (ten or sixteen).
        form: Form,
        /// First logical block.
        lba: u64,
        /// Logical blocks to prefetch.
        blocks: u32,
    },
    /// SYNCHRONIZE CACHE (10) (35h) or (16) (91h).
    SynchronizeCache {
        /// Which form (ten or sixteen).
        form: Form,
        /// First logical block.
        lba: u64,
        /// Logical blocks to make durable; 0 means up to the last.
        blocks: u32,
        /// Return status at once.
        immed: bool,
    },
    /// UNMAP (42h); the list of ranges is data-out.
    Unmap {
        /// Bytes of the parameter list.
        list_bytes: u16,
    },
    /// REPORT ZONES (95h, service action 00h).
    ReportZones {
        /// Logical block whose zone is the first of the report.
        start: u64,
        /// Allocation length in bytes.
        alloc: u32,
        /// Reporting options, 6 bits.
        options: u8,
        /// PARTIAL: the list's length counts only zones that fit.
        partial: bool,
    },
    /// ZONE MANAGEMENT OUT (94h): CLOSE, FINISH, OPEN ZONE or RESET WRITE POINTER.
    ManageZones {
        /// What is done.
        action: ZoneAction,
        /// First logical block of the zone.
        lba: u64,
        /// ZONE COUNT: zones from there on; 0 means one.
        count: u16,
        /// ALL: every zone, whatever `lba` says.
        all: bool,
    },
    /// HPB READ (F8h).
    HpbRead {
        /// First logical block.
        lba: u32,
        /// Logical blocks to read.
        blocks: u8,
        /// Entry of the first block.
        entry: HpbEntry,
        /// CDB byte 1 as in READ (10).
        flags: u8,
        /// HPB READ ID (HPB 2.0); 0 = no pre-request.
        read_id: u8,
    },
    /// READ (16) with the HPB flag of the prototype (HotStorage 2017) in CDB byte 1 bit 0: bytes 2-5 are an entry.
    HintedRead {
        /// First logical block.
        lba: u32,
        /// Logical blocks to read.
        blocks: u32,
        /// The hinted address.
        hint: GroupHint,
        /// CDB byte 1 as in READ (16), without bit 0.
        flags: u8,
    },
    /// HPB READ BUFFER (F9h).
    HpbReadBuffer {
        /// Buffer id; 01h = HPB entries.
        buffer_id: u8,
        /// The requested sub-region.
        at: SubRegion,
        /// Allocation length in bytes (24 bits on the wire).
        alloc: u32,
    },
    /// HPB WRITE BUFFER (FAh) with id 01h: inactivate one region.
    HpbInactivate {
        /// The region.
        region: u16,
    },
    /// HPB WRITE BUFFER (FAh) with id 02h: entries for a coming HPB READ (HPB 2.0).
    HpbPreRequest {
        /// First logical block.
        lba: u32,
        /// HPB READ ID.
        read_id: u8,
        /// Bytes of entries in data-out.
        list_bytes: u16,
    },
    /// HPB WRITE BUFFER (FAh) with id 03h: inactivate all regions that are not pinned.
    HpbInactivateAll,
    /// Any other command, as its bytes.
    Other([u8; 16]),
}

/// FUA in CDB byte 1 of READ, WRITE and HPB READ.
pub const FLAG_FUA: u8 = 0x08;
/// RDPROTECT, WRPROTECT or VRPROTECT in CDB byte 1. A device without protection information takes only 0 (SBC-3).
pub const FLAGS_PROTECT: u8 = 0xE0;
/// BYTCHK in CDB byte 1 of VERIFY: compare with data that the host sends.
pub const FLAGS_BYTCHK: u8 = 0x06;

/// A query request (JESD220 §10.7.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueryRequest {
    /// Opcode as on the wire: 1 READ DESCRIPTOR ... 8 TOGGLE FLAG.
    pub opcode: u8,
    /// Identification number.
    pub idn: u8,
    /// Index.
    pub index: u8,
    /// Selector.
    pub selector: u8,
    /// Length of the descriptor in bytes, for READ and WRITE DESCRIPTOR.
    pub length: u16,
    /// Value, for attributes and flags.
    pub value: u32,
}

/// A task management request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskRequest {
    /// Function: 01h ABORT TASK, 02h ABORT TASK SET, 04h CLEAR TASK SET, 08h LU RESET, 80h/81h QUERY TASK (SET).
    pub function: u8,
    /// Logical unit (input parameter 1).
    pub lun: u8,
    /// Tag to act on (input parameter 2).
    pub task_tag: u8,
}

/// A UPIU from device to host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Logical unit of the request.
    pub lun: u8,
    /// Task tag of the request.
    pub tag: u8,
    /// The answer.
    pub body: ReplyBody,
}

/// The kinds of reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyBody {
    /// NOP IN (20h).
    NopIn,
    /// RESPONSE (21h) to a SCSI command.
    Response(Response),
    /// QUERY RESPONSE (36h); a descriptor is passed separately.
    Query(QueryResponse),
    /// TASK MANAGEMENT RESPONSE (24h).
    Task(TaskResponse),
    /// REJECT (3Fh): the request could not be understood.
    Reject,
}

/// SCSI status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// 00h.
    Good,
    /// 02h; sense data says why.
    CheckCondition,
    /// 08h.
    Busy,
    /// 18h.
    ReservationConflict,
    /// 28h.
    TaskSetFull,
    /// 40h.
    TaskAborted,
}

/// Difference between the bytes moved and EDTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residual {
    /// None.
    None,
    /// Fewer bytes than EDTL, by this number (flag U).
    Under(u32),
    /// More bytes available than EDTL, by this number (flag O).
    Over(u32),
}

/// Sense data in the fixed format, limited to the fields that UFS devices report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

impl Sense {
    /// PARAMETER LIST LENGTH ERROR.
    pub const LIST_LENGTH: Sense = Sense { key: 5, asc: 0x1A, ascq: 0 };
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: Sense = Sense { key: 5, asc: 0x20, ascq: 0 };
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const LBA_OUT_OF_RANGE: Sense = Sense { key: 5, asc: 0x21, ascq: 0 };
    /// INVALID FIELD IN CDB.
    pub const INVALID_FIELD: Sense = Sense { key: 5, asc: 0x24, ascq: 0 };
    /// LOGICAL UNIT NOT SUPPORTED.
    pub const LUN_NOT_SUPPORTED: Sense = Sense { key: 5, asc: 0x25, ascq: 0 };
    /// COMMAND SEQUENCE ERROR.
    pub const COMMAND_SEQUENCE: Sense = Sense { key: 5, asc: 0x2C, ascq: 0 };
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED (unit attention).
    pub const RESET_OCCURRED: Sense = Sense { key: 6, asc: 0x29, ascq: 0 };
    /// LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED: asleep or powered down.
    pub const NOT_READY: Sense = Sense { key: 2, asc: 0x04, ascq: 0x02 };
    /// UNALIGNED WRITE COMMAND: not at the write pointer of its zone.
    pub const UNALIGNED_WRITE: Sense = Sense { key: 5, asc: 0x21, ascq: 0x04 };
    /// WRITE BOUNDARY VIOLATION: beyond the end of its zone.
    pub const WRITE_BOUNDARY: Sense = Sense { key: 5, asc: 0x21, ascq: 0x05 };
    /// ATTEMPT TO ACCESS GAP ZONE.
    pub const GAP_ZONE: Sense = Sense { key: 5, asc: 0x21, ascq: 0x09 };
    /// INSUFFICIENT ZONE RESOURCES: as many zones are open as can be.
    pub const ZONE_RESOURCES: Sense = Sense { key: 7, asc: 0x55, ascq: 0x0E };
    /// SPACE ALLOCATION FAILED WRITE PROTECT: no erased flash is left.
    pub const NO_SPACE: Sense = Sense { key: 7, asc: 0x27, ascq: 0x07 };
}

/// The HPB part of a response (JESD220-3; Linux `struct utp_hpb_rsp`). Counts and indices are as received: the
/// receiver checks their ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HpbNotification {
    /// HPB operation: [`HpbNotification::REGION_UPDATE`], [`HpbNotification::RESET`], or an unknown one.
    pub operation: u8,
    /// Its logical unit.
    pub lun: u8,
    /// Number of valid entries of `active`.
    pub active_count: u8,
    /// Number of valid entries of `inactive`.
    pub inactive_count: u8,
    /// Sub-regions recommended for activation.
    pub active: [SubRegion; 2],
    /// Regions recommended for inactivation.
    pub inactive: [u16; 2],
}

impl HpbNotification {
    /// Operation 01h: the lists name sub-regions to activate and regions to inactivate.
    pub const REGION_UPDATE: u8 = 1;
    /// Operation 02h: the device lost its HPB information.
    pub const RESET: u8 = 2;
}

/// The answer to a SCSI command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// SCSI status.
    pub status: Status,
    /// Sense data, with CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Difference between EDTL and the bytes moved.
    pub residual: Residual,
    /// HPB notification; only with [`Status::Good`].
    pub hpb: Option<HpbNotification>,
    /// Group part of the prototype; only with [`Status::Good`] and without `hpb`. A dirty group replaces a residual
    /// count.
    pub groups: Option<GroupNotice>,
    /// Event alert: device information bit 0.
    pub event_alert: bool,
}

impl Response {
    /// GOOD, all bytes moved, nothing to report.
    pub const GOOD: Response = Response {
        status: Status::Good,
        sense: None,
        residual: Residual::None,
        hpb: None,
        groups: None,
        event_alert: false,
    };

    /// CHECK CONDITION with `sense`, no data moved of `expected_bytes`.
    pub const fn check(sense: Sense, expected_bytes: u32) -> Response {
        let residual = if expected_bytes == 0 { Residual::None } else { Residual::Under(expected_bytes) };
        Response { status: Status::CheckCondition, sense: Some(sense), residual, ..Response::GOOD }
    }
}

/// The answer to a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueryResponse {
    /// 00h success, F6h not readable, F7h not writable, F8h already written, F9h length, FAh value, FBh selector,
    /// FCh index, FDh IDN, FEh opcode, FFh general failure.
    pub result: u8,
    /// Opcode of the request.
    pub opcode: u8,
    /// IDN of the request.
    pub idn: u8,
    /// Index of the request.
    pub index: u8,
    /// Selector of the request.
    pub selector: u8,
    /// Bytes of the descriptor, which is passed separately.
    pub length: u16,
    /// Value of the attribute or flag.
    pub value: u32,
}

/// The answer to a task management request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskResponse {
    /// 00h complete, 04h not supported, 05h failed, 08h succeeded, 09h wrong logical unit.
    pub service_response: u8,
}
