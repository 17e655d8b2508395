// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that consists of its answers only.

use readpath_host::{BlockDone, BlockOp, BlockRequest, Driver, HostConfig, HpbOptions};
use readpath_kit::Ns;
use readpath_proto::desc::{DeviceDescriptor, GeometryDescriptor, UnitDescriptor};
use readpath_proto::hpb;
use readpath_proto::query::{attribute, descriptor, flag, opcode};
use readpath_proto::typed::{
    Cdb, Command, HpbNotification, QueryRequest, QueryResponse, Reply, ReplyBody, Request, RequestBody, Response,
    Sense, Status,
};

/// The device's properties, and its answers.
#[derive(Clone)]
pub struct Device {
    pub descriptor: DeviceDescriptor,
    pub geometry: GeometryDescriptor,
    pub units: Vec<UnitDescriptor>,
    /// bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD; `None` = refused.
    pub max_single: Option<u32>,
    /// fHPBEn; `None` = refused.
    pub enabled: Option<u32>,
    /// Entries that an extra header segment may have; `None` = refused.
    pub ehs_entries: Option<u32>,
    /// Number of attempts to set fHPBReset that are refused.
    pub refuse_reset: u32,
    /// Number of reads of fHPBReset that return 1; `None` = refused.
    pub busy: Option<u32>,
    /// Queries and commands of the probe, in words.
    pub log: Vec<String>,
}

impl Device {
    /// HPB 1.0 in device control mode; one unit of 4 regions of two sub-regions of 64 blocks.
    pub fn new() -> Device {
        let unit = UnitDescriptor {
            lu_enable: hpb::LU_ENABLED_HPB,
            logical_block_count: 512,
            hpb_max_active_regions: 2,
            ..UnitDescriptor::default()
        };
        Device {
            descriptor: DeviceDescriptor {
                number_lu: 1,
                ufs_features: hpb::FEATURE_HPB,
                hpb_version: hpb::VERSION_1_0,
                hpb_control: hpb::CONTROL_DEVICE,
                ..DeviceDescriptor::default()
            },
            geometry: GeometryDescriptor {
                hpb_region_size: 10,
                hpb_sub_region_size: 9,
                hpb_number_lu: 1,
                hpb_max_active_regions: 8,
                ..GeometryDescriptor::default()
            },
            units: vec![unit],
            max_single: Some(7),
            enabled: Some(1),
            ehs_entries: None,
            refuse_reset: 0,
            busy: Some(0),
            log: Vec::new(),
        }
    }

    pub fn version_2(mut self) -> Device {
        self.descriptor.hpb_version = hpb::VERSION_2_0;
        self
    }

    fn query(&mut self, q: &QueryRequest) -> (ReplyBody, Vec<u8>) {
        let (opcode, idn, index, selector, length) = (q.opcode, q.idn, q.index, q.selector, q.length);
        let answer = |result: u8, value: u32| {
            ReplyBody::Query(QueryResponse { result, opcode, idn, index, selector, length, value })
        };
        let or_refused = |value: Option<u32>| value.map_or_else(|| answer(0xFF, 0), |v| answer(0, v));
        let (name, body, data) = match (q.opcode, q.idn) {
            (opcode::READ_DESCRIPTOR, descriptor::GEOMETRY) => {
                ("geometry", answer(0, 0), self.geometry.to_bytes().to_vec())
            }
            (opcode::READ_DESCRIPTOR, descriptor::DEVICE) => {
                ("device", answer(0, 0), self.descriptor.to_bytes().to_vec())
            }
            (opcode::READ_DESCRIPTOR, _) => {
                ("unit", answer(0, 0), self.units[usize::from(q.index)].to_bytes().to_vec())
            }
            (opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD) => {
                ("attribute 01h", or_refused(self.max_single), Vec::new())
            }
            (opcode::READ_ATTRIBUTE, attribute::EHS_HPB_ENTRIES) => {
                ("attribute C0h", or_refused(self.ehs_entries), Vec::new())
            }
            (opcode::READ_FLAG, flag::HPB_EN) => ("flag 12h?", or_refused(self.enabled), Vec::new()),
            (opcode::SET_FLAG, flag::HPB_RESET) => {
                let refused = self.refuse_reset > 0;
                self.refuse_reset = self.refuse_reset.saturating_sub(1);
                ("flag 11h!", answer(u8::from(refused) * 0xFF, 0), Vec::new())
            }
            (opcode::READ_FLAG, flag::HPB_RESET) => {
                let body = or_refused(self.busy.map(|n| u32::from(n > 0)));
                self.busy = self.busy.map(|n| n.saturating_sub(1));
                ("flag 11h?", body, Vec::new())
            }
            (_, flag::DEVICE_INIT) => ("", answer(0, 0), Vec::new()),
            other => panic!("not asked on the way to HPB: {other:?}"),
        };
        if !name.is_empty() {
            self.log.push(name.to_owned());
        }
        (body, data)
    }

    fn answer(&mut self, request: &Request) -> (ReplyBody, Vec<u8>) {
        match &request.body {
            RequestBody::NopOut => (ReplyBody::NopIn, Vec::new()),
            RequestBody::Query(q) => self.query(q),
            RequestBody::Command(_) => {
                self.log.push("luns".into());
                let mut list = vec![0, 0, 0, 8 * self.units.len() as u8, 0, 0, 0, 0];
                (0..self.units.len() as u8).for_each(|lun| list.extend([0, lun, 0, 0, 0, 0, 0, 0]));
                (ReplyBody::Response(Response::GOOD), list)
            }
            RequestBody::Task(_) => panic!("no tasks here"),
        }
    }
}

/// A driver and the requests that it has sent.
pub struct Host {
    pub driver: Driver,
    pub now: Ns,
    cookie: u32,
}

impl Host {
    /// A host that has probed `device`, successfully or not.
    pub fn probe(device: &mut Device, hpb: HpbOptions) -> Host {
        Host::prepared(device, hpb, |_| {})
    }

    /// The same with a driver that was prepared.
    pub fn prepared(device: &mut Device, hpb: HpbOptions, prepare: impl FnOnce(&mut Driver)) -> Host {
        let mut driver = Driver::new(HostConfig { hpb: Some(hpb), ..HostConfig::LINUX });
        prepare(&mut driver);
        driver.start(Ns::ZERO);
        let mut host = Host { driver, now: Ns::ZERO, cookie: 0 };
        while !host.driver.is_ready()
            && let Some(request) = host.driver.poll_request(host.now)
        {
            let (body, data) = device.answer(&request);
            host.reply(&request, body, &data);
        }
        host
    }

    pub fn reply(&mut self, request: &Request, body: ReplyBody, data: &[u8]) {
        self.driver.on_reply(self.now, &Reply { lun: request.lun, tag: request.tag, body }, data);
    }

    /// Submits a request for one block and returns the command that it becomes.
    pub fn submit(&mut self, lun: u8, op: BlockOp, block: u32) -> Request {
        self.submit_blocks(lun, op, block, 1).expect("it is sent")
    }

    /// Submits a request and returns the first command that it becomes, if it does not wait.
    pub fn submit_blocks(&mut self, lun: u8, op: BlockOp, block: u32, blocks: u32) -> Option<Request> {
        self.cookie += 1;
        self.driver.submit(&BlockRequest { cookie: self.cookie, lun, op, block, blocks });
        self.sent()
    }

    /// The next command that the driver sends.
    pub fn sent(&mut self) -> Option<Request> {
        self.driver.poll_request(self.now)
    }

    pub fn good(&mut self, request: &Request, hpb: Option<HpbNotification>) {
        self.reply(request, ReplyBody::Response(Response { hpb, ..Response::GOOD }), &[]);
    }

    pub fn check(&mut self, request: &Request, sense: Sense) {
        self.reply(request, ReplyBody::Response(Response::check(sense, 4096)), &[]);
    }

    pub fn status(&mut self, request: &Request, status: Status) {
        self.reply(request, ReplyBody::Response(Response { status, ..Response::GOOD }), &[]);
    }

    pub fn done(&mut self) -> Option<BlockDone> {
        self.driver.poll_done()
    }

    /// Loads region 0, sub-region 0 of unit 0 on recommendation.
    pub fn load(&mut self) {
        let read = self.submit(0, BlockOp::Read, 0);
        let n = HpbNotification { operation: 1, active_count: 1, ..HpbNotification::default() };
        self.good(&read, Some(n));
        let load = self.sent().expect("a load");
        assert!(matches!(cdb(&load), Cdb::HpbReadBuffer { .. }));
        self.reply(&load, ReplyBody::Response(Response::GOOD), &[7; 512]);
        assert!(self.done().is_some_and(|d| d.error.is_none()));
    }
}

pub fn cdb(request: &Request) -> Cdb {
    match request.body {
        RequestBody::Command(Command { cdb, .. }) => cdb,
        other => panic!("a command was expected, not {other:?}"),
    }
}
