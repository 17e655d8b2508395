// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a hostile host does to a controller: writes of any register, descriptors of anything anywhere, and messages of
//! vfio-user.

use crate::Bytes;
use readpath_device::{DeviceConfig, WithMedia};
use readpath_flash::Lean;
use readpath_hci::{Attached, Bus, GuestMem, Port, Ram, register as reg};
use readpath_kit::Ns;
use readpath_proto::typed::{ReplyBody, Request, RequestBody};
use readpath_serve::vfio::{Function, Maps, PciId, Session, UfsFunction};
use readpath_stack::{Fault, Payload};
use readpath_testkit::device;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::mem::take;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// Data that commands carry; it is not kept.
struct Carried(Vec<Vec<u8>>);

impl Payload for Carried {
    type Mode = WithMedia;

    fn bring(&mut self, cookie: u32, _: u32, data: Vec<u8>) {
        assert!(self.0[cookie as usize].is_empty(), "a command is under way");
        self.0[cookie as usize] = data;
    }

    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        (take(&mut self.0[cookie as usize]), None)
    }
}

fn config() -> &'static DeviceConfig {
    static CONFIG: OnceLock<DeviceConfig> = OnceLock::new();
    CONFIG.get_or_init(|| device(300))
}

fn attached<M: GuestMem>(memory: M) -> Attached<Lean, Carried, (), M> {
    let data = Carried(vec![Vec::new(); 64]);
    Attached::new(config(), 32, data, (), memory).expect("a device that is known to be possible")
}

struct At<'a, M: GuestMem>(&'a mut Attached<Lean, Carried, (), M>, Ns);

impl<M: GuestMem> Bus for At<'_, M> {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.write(self.1, offset, value);
    }
}

const BASE: u64 = 0x1000;
/// Lists and descriptors of a port, and a little of the data behind.
const MEMORY: usize = 0x11_0000;

/// Register accesses, memory that changes, and time that passes, one byte for which; then the host begins anew, and has
/// to be served.
pub fn host_controller(data: &[u8]) {
    let mut input = Bytes(data);
    let mut host = attached(Ram::new(BASE, MEMORY));
    let mut port = Port::new(BASE, 32, true);
    let mut now = Ns::ZERO;
    port.start(&mut At(&mut host, now)).expect("a controller that is new");
    while !input.is_empty() {
        match input.u8() % 8 {
            0 | 1 => host.write(now, u32::from(input.u8()) * 4, u32::from_le_bytes(input.array())),
            2 => drop(host.read(u32::from(input.u8()) * 4)),
            // Most of what follows is in the lists and the first descriptors.
            3 => {
                let at = BASE + u64::from(u16::from_le_bytes(input.array()));
                let bytes = usize::from(input.u8());
                host.memory.write(at, input.take(bytes)).expect("memory");
            }
            4 => {
                // The UPIU of a slot, with its present descriptor.
                let slot = input.u8() % 32;
                host.memory.write(BASE + 0x1000 + u64::from(slot) * 0x6000, input.take(32)).expect("memory");
                host.write(now, reg::UTRLDBR, 1 << slot);
            }
            5 => host.write(now, reg::UTMRLDBR, input.u8().into()),
            6 => {
                // A command as a host would send it, of any kind.
                let (bytes, slot) = (input.array::<32>(), input.u8() % 32);
                let Ok((Request { lun, body, .. }, _)) = readpath_proto::upiu::parse_request(&bytes) else { continue };
                if !matches!(body, RequestBody::Task(_)) {
                    send(&mut host, &mut port, now, &Request { lun, tag: slot, body });
                }
            }
            _ => {
                now += Ns(u64::from(u16::from_le_bytes(input.array())) * 100);
                host.advance(now);
            }
        }
        _ = host.line();
    }
    host.reset(now);
    host.device.check_consistency().expect("a device that is as it should be");
    port.start(&mut At(&mut host, now)).expect("a controller that was reset");
    send(&mut host, &mut port, now, &Request { lun: 0, tag: 31, body: RequestBody::NopOut });
    while !host.line() {
        now = host.next_deadline();
        assert_ne!(now, Ns::NEVER, "the host is answered");
        host.advance(now);
    }
    assert_eq!(port.interrupt(&mut At(&mut host, now)).expect("no failure").transfers, 1 << 31);
    assert_eq!(port.reply(&host.memory, 31).expect("an answer").0.body, ReplyBody::NopIn);
}

/// Sends a request, if it has room.
fn send(host: &mut Attached<Lean, Carried, (), Ram>, port: &mut Port, now: Ns, request: &Request) {
    let mut memory = std::mem::replace(&mut host.memory, Ram::new(0, 0));
    let mut bus = Held(Vec::new());
    _ = port.send(&mut bus, &mut memory, request, &[]);
    host.memory = memory;
    bus.0.iter().for_each(|&(offset, value)| host.write(now, offset, value));
}

/// Writes that are done later.
struct Held(Vec<(u32, u32)>);

impl Bus for Held {
    fn read(&mut self, _: u32) -> u32 {
        0
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.push((offset, value));
    }
}

/// Messages of a client: command, flags, files and length, one byte each, then the payload. Then another client comes.
pub fn vfio_session(data: &[u8]) {
    let mut input = Bytes(data);
    let mut function = UfsFunction::new(attached(Maps::default()), PciId::INTEL);
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, 1 << 16).expect("a file of that size");
    let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
    let (mut session, mut out) = (Session::default(), Vec::new());
    message(&mut session, 1, 0, &[0; 4], Vec::new(), &mut function, &mut out).expect("a good version");
    let mut is_over = false;
    while !input.is_empty() && !is_over {
        let [command, flags, files, length] = input.array();
        let payload = input.take(length.into());
        let one = |fd: &OwnedFd| fd.try_clone().expect("another descriptor");
        let files = match files % 4 {
            0 | 1 => Vec::new(),
            2 => vec![one(&file)],
            _ => vec![one(&event), one(&file)],
        };
        function.now += Ns(10_000);
        is_over = message(&mut session, command.into(), flags.into(), payload, files, &mut function, &mut out).is_err();
        function.raise();
        function.take_unmask();
    }
    function.client_gone();
    function.raise();
    assert_eq!(function.region_bytes(0), 4096);
    let mut id = [0; 2];
    function.read(7, 0, &mut id).expect("configuration space");
    assert_eq!(id, [0x86, 0x80]);
}

fn message(
    session: &mut Session,
    command: u16,
    flags: u32,
    payload: &[u8],
    files: Vec<OwnedFd>,
    function: &mut impl Function,
    out: &mut Vec<u8>,
) -> Result<(), readpath_serve::vfio::Broken> {
    let mut bytes = [&7u16.to_le_bytes()[..], &command.to_le_bytes()].concat();
    bytes.extend([16 + payload.len() as u32, flags, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend_from_slice(payload);
    out.clear();
    session.handle(&bytes, files, function, out)?;
    if !out.is_empty() {
        let word = |at: usize| u32::from_le_bytes(*out[at..].first_chunk().expect("a word"));
        assert_eq!((&out[..4], word(4) as usize), (&bytes[..4], out.len()));
        assert_eq!(word(8) >> 5 & 1 == 1, word(12) != 0, "an error has a number");
    }
    Ok(())
}
