// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host, its memory, a controller and a device with real data, in virtual time.

use readpath_device::{DeviceConfig, UfsDevice};
use readpath_flash::Lean;
use readpath_hci::{Attached, Bus, Completed, GuestMem, Port, PortError, Ram, Unreachable};
use readpath_kit::Ns;
use readpath_proto::typed::{
    Cdb, Command, QueryRequest, QueryResponse, Reply, ReplyBody, Request, RequestBody, TaskRequest,
};
use readpath_store::{Image, MemoryDisk, Store};
use readpath_testkit::{DELAYS, device};
use std::cell::RefCell;
use std::rc::Rc;

pub const BLOCK: usize = 4096;
pub const BASE: u64 = 0x1_0000_0000;

/// Memory that host and controller share.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<Ram>>);

impl GuestMem for Shared {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        self.0.borrow().read(address, bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        self.0.borrow_mut().write(address, bytes)
    }
}

pub type Device = Attached<Lean, Store<MemoryDisk>, (), Shared>;

/// The registers of a device at one time.
pub struct At<'a>(pub &'a mut Device, pub Ns);

impl Bus for At<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.write(self.1, offset, value);
    }
}

/// See the module.
pub struct Machine {
    pub device: Device,
    pub port: Port,
    pub memory: Shared,
    pub now: Ns,
}

/// A small device of two units.
pub fn config() -> DeviceConfig {
    let mut config = device(3_000);
    config.lus = vec![config.lus[0]; 2];
    config.lus[1].blocks = 1_000;
    config.lus[0].blocks = 2_000;
    config.lus[1].hpb = false;
    config
}

impl Machine {
    /// A machine that has been switched on, with a device of `config` fresh from the factory.
    pub fn new(config: &DeviceConfig) -> Machine {
        let mut fresh = UfsDevice::<Lean, readpath_device::WithMedia, ()>::new(config, DELAYS, ()).unwrap();
        let image = Image::create_on("", 7, &mut fresh, |bytes| Ok(MemoryDisk::new(bytes))).unwrap();
        Machine::with(config, image)
    }

    /// A machine with the contents of an image.
    pub fn with(config: &DeviceConfig, image: Image<MemoryDisk>) -> Machine {
        let memory = Shared(Rc::new(RefCell::new(Ram::new(BASE, Port::MEMORY as usize))));
        let store = Store::new(image.array);
        let mut device = Device::new(config, 32, store, (), memory.clone()).unwrap();
        let recovery = device.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).unwrap();
        Machine { device, port: Port::new(BASE, 32, true), memory, now: recovery.ready_at }
    }

    /// Kills the program that serves the device, and starts it again.
    pub fn killed(self, config: &DeviceConfig) -> Machine {
        let mut disk = self.device.data.array().disk().clone();
        let bytes = disk.bytes_mut().len() as u64;
        let mut machine = Machine::with(config, Image::on(disk, bytes, true, [0; 16]).unwrap());
        machine.start();
        machine
    }

    /// A machine with the controller enabled, after every unit has reported its reset.
    pub fn started(config: &DeviceConfig) -> Machine {
        let mut machine = Machine::new(config);
        machine.start();
        machine
    }

    pub fn start(&mut self) {
        self.port.start(&mut At(&mut self.device, self.now)).unwrap();
        for lun in 0..2 {
            let _ = self.command(0, lun, Cdb::TestUnitReady, 0, &[]);
        }
    }

    pub fn send(&mut self, tag: u8, lun: u8, body: RequestBody, data: &[u8]) {
        let mut bus = At(&mut self.device, self.now);
        self.port.send(&mut bus, &mut self.memory, &Request { lun, tag, body }, data).unwrap();
    }

    /// Lets time pass until the interrupt is raised, and handles it.
    pub fn wait(&mut self) -> Completed {
        while !self.device.line() {
            assert_ne!(self.device.next_deadline(), Ns::NEVER, "nothing will happen any more");
            self.now = self.device.next_deadline();
            self.device.advance(self.now);
        }
        self.port.interrupt(&mut At(&mut self.device, self.now)).unwrap()
    }

    /// The response to a request sent while no other is in flight.
    pub fn ask(&mut self, tag: u8, lun: u8, body: RequestBody, data: &[u8]) -> Result<(Reply, Vec<u8>), PortError> {
        self.send(tag, lun, body, data);
        while self.wait().transfers & 1 << tag == 0 {}
        self.port.reply(&self.memory, tag).map(|(reply, data)| (reply, data.to_vec()))
    }

    pub fn command(&mut self, tag: u8, lun: u8, cdb: Cdb, bytes: u32, data: &[u8]) -> (Reply, Vec<u8>) {
        self.ask(tag, lun, RequestBody::Command(Command { expected_bytes: bytes, cdb }), data).unwrap()
    }

    /// The result and the value of a query.
    pub fn query(&mut self, opcode: u8, idn: u8, value: u32) -> (u8, u32) {
        let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 0, value };
        let (reply, _) = self.ask(31, 0, RequestBody::Query(query), &[]).unwrap();
        let ReplyBody::Query(QueryResponse { result, value, .. }) = reply.body else { panic!("{reply:?}") };
        (result, value)
    }

    /// The service response of a task management function.
    pub fn manage(&mut self, function: u8, lun: u8, task_tag: u8) -> u8 {
        let mut bus = At(&mut self.device, self.now);
        self.port.manage(&mut bus, &mut self.memory, 3, TaskRequest { function, lun, task_tag }).unwrap();
        while self.wait().tasks != 1 << 3 {}
        self.port.task_reply(&self.memory, 3).unwrap().service_response
    }
}
