// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of the device: what it leaves is permitted, and what it had promised is there unless it was told to lie.

use crate::recorded::{image, small};
use crate::tried::Disk;
use readpath_crash::{Base, Device, Log, Permitted, State, States};
use readpath_device::Without;
use readpath_kit::Prng;
use readpath_serve::{Address, Change, Faults, Options, Recorded, Speed, What, serve};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tempfile::TempDir;

const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const BLOCKS: u64 = 40;

/// Records random writes of few blocks, each with a number of its own in all of its bytes, and flushes.
fn recorded(folder: &Path, faults: &str) -> (PathBuf, Recorded) {
    let start = image(folder, "start");
    let served = folder.join("served");
    std::fs::copy(&start, &served).unwrap();
    let (socket, recording) = (folder.join("socket"), folder.join("recording"));
    let (stop, stopped) = UnixStream::pair().unwrap();
    let (begun, wait) = mpsc::channel();
    let (at, record) = (socket.clone(), File::create(&recording).unwrap());
    let faults = Faults::read(faults, "faults").unwrap();
    let server = std::thread::spawn(move || {
        let options = Options {
            addresses: vec![Address::Unix(at)],
            control: None,
            metrics: None,
            faults,
            record: Some(Box::new(record) as Box<dyn std::io::Write>),
            record_data: true,
            post: None,
            speed: Speed::Instant,
            read_only: false,
            stop: stopped.as_fd(),
            log: |_| {},
        };
        let image = loop {
            match readpath_serve::open(&served, true, true) {
                Err(readpath_store::ImageError::InUse) => std::thread::yield_now(),
                image => break image.unwrap(),
            }
        };
        let host = "hpb=off".parse().unwrap();
        serve(image, &small(), &host, options, &mut |_| {}, |_| begun.send(()).unwrap())
    });
    wait.recv().unwrap();
    let mut disk = Disk::at(&socket);
    let rng = &mut Prng::new(5);
    for i in 1..=140u8 {
        let offset = rng.below(BLOCKS) * 4096;
        match rng.below(9) {
            0 => disk.ask(FLUSH, 0, 0, 0, &[]),
            fua => disk.ask(WRITE, u16::from(fua == 1), offset, 4096, &[i; 4096]),
        }
    }
    drop(disk);
    drop(stop);
    server.join().unwrap().unwrap();
    (start, Recorded::read(&*std::fs::read(&recording).unwrap()).unwrap())
}

fn content(log: &Log, base: &Base, state: &State) -> Vec<u8> {
    let mut block = [0; 4096];
    let mut of = |number: u64| {
        state.read(log, base, number as u32, &mut block).unwrap();
        assert!(block.iter().all(|&byte| byte == block[0]), "a block is of one write");
        block[0]
    };
    (0..BLOCKS).map(&mut of).collect()
}

/// For each state of the device, whose recovery may lack safeguards: whether it can be made, and the rules permit
/// what it holds.
fn judged(faults: &str, without: Without) -> Vec<(String, bool)> {
    let folder = TempDir::new().unwrap();
    let (start, recorded) = recorded(folder.path(), faults);
    let base = Base::new(readpath_store::Image::open(&start, false, true).unwrap(), &small(), Some(&recorded)).unwrap();
    let log = Log::new(&recorded, &base).unwrap();
    // As if no order to lie had been given: the rules are those of an honest disk.
    let text = std::fs::read_to_string(folder.path().join("recording")).unwrap().replace("lie on", "seed 1");
    let changes = Recorded::read(text.as_bytes()).unwrap().changes(base.bytes()).unwrap().changes;
    let mut preset = small();
    preset.device.ftl.without = without;
    let device = Device::new((&log, &recorded), &start, &preset, 1).unwrap();
    assert!(device.systematic() > 60, "{}", device.systematic());
    let of = |n| {
        let cut = device.nth(n).unwrap();
        let name = device.name(&cut);
        let Ok(state) = device.state(&cut, &base) else { return (name, false) };
        assert_eq!(device.state(&device.parse(&name).unwrap(), &base).unwrap(), state, "{name}");
        let now = state.time();
        let is_permitted = content(&log, &base, &state).iter().enumerate().all(|(block, &byte)| {
            let writes = changes.iter().filter(|c| c.sent <= now && c.bytes() > 0);
            let writes: Vec<_> = writes.filter(|c| c.offset == block as u64 * 4096).collect();
            let is_durable = |write: &Change| {
                let flushed =
                    |flush: &Change| flush.bytes() == 0 && flush.sent > write.answered && flush.answered <= now;
                (write.fua && write.answered <= now) || changes.iter().any(flushed)
            };
            let oldest = writes.iter().rposition(|write| is_durable(write));
            let data = |write: &&Change| match &write.what {
                What::Data(data) => data[0],
                _ => 0,
            };
            let allowed: BTreeSet<u8> = writes[oldest.unwrap_or(0).min(writes.len())..].iter().map(data).collect();
            allowed.contains(&byte) || (byte == 0 && oldest.is_none())
        });
        (name, is_permitted)
    };
    (0..device.systematic()).map(of).collect()
}

#[test]
fn an_honest_device_leaves_what_is_permitted() {
    assert_eq!(wrong(judged("", Without::NOTHING)), Vec::<String>::new());
}

fn wrong(judged: Vec<(String, bool)>) -> Vec<String> {
    judged.into_iter().filter(|(_, is_permitted)| !is_permitted).map(|(name, _)| name).collect()
}

/// No other states show it.
#[test]
fn torn_states_show_a_recovery_that_believes_torn_pages() {
    let wrong = wrong(judged("", Without { spare_check: true, ..Without::NOTHING }));
    assert!(wrong.len() > 5 && wrong.iter().all(|name| name.contains("torn=")), "{wrong:?}");
}

#[test]
fn a_lying_device_does_not() {
    let states = judged("0s lie on", Without::NOTHING);
    assert!(states.iter().any(|(_, is_permitted)| !is_permitted), "of {} states all are permitted", states.len());
}

/// What rules did to requests is in the states: the last one is what the server left.
#[test]
fn states_are_of_what_was_done() {
    let rules = ["drop write 20%", "torn 512 20%", "misdirect write 0-64K", "corrupt write every 5", "drop flush"];
    let faults: String = rules.iter().map(|rule| format!("0s {rule}\n")).collect();
    let folder = TempDir::new().unwrap();
    let (start, recorded) = recorded(folder.path(), &faults);
    let open =
        |path: &Path| Base::new(readpath_store::Image::open(path, false, true).unwrap(), &small(), None).unwrap();
    let (base, left) = (open(&start), open(&folder.path().join("served")));
    let log = Log::new(&recorded, &base).unwrap();
    let states = Permitted::new(&log, 1);
    let last = states.state(&states.whole().unwrap(), &base).unwrap();
    let (mut block, mut expected) = ([0; 4096], [0; 4096]);
    for number in 0..base.bytes() / 4096 {
        last.read(&log, &base, number as u32, &mut block).unwrap();
        left.read(number as u32, &mut expected).unwrap();
        assert!(block == expected, "block {number}");
    }
    let changes = recorded.changes(base.bytes()).unwrap().changes;
    let count = |of: &dyn Fn(&Change) -> bool| changes.iter().filter(|change| of(change)).count();
    assert_eq!(count(&|change| change.what == What::Flush), 1, "only the server's own flush was not dropped");
    let counts = [count(&|c| c.bytes() < 4096), count(&|c| c.offset >= BLOCKS * 4096), 140 - changes.len()];
    assert!(counts.iter().all(|&count| count > 5), "{counts:?}");
}

/// The states of the device that are reduced are made of some of its blocks.
#[test]
fn some_losses_of_a_state_can_be_taken_back() {
    let folder = TempDir::new().unwrap();
    let (start, recorded) = recorded(folder.path(), "");
    let base = Base::new(readpath_store::Image::open(&start, false, true).unwrap(), &small(), Some(&recorded)).unwrap();
    let log = Log::new(&recorded, &base).unwrap();
    let device = Device::new((&log, &recorded), &start, &small(), 1).unwrap();
    let whole = device.state(&device.whole().unwrap(), &base).unwrap();
    let permitted = Permitted::new(&log, 1);
    let last = permitted.state(&permitted.whole().unwrap(), &base).unwrap();
    assert_eq!(content(&log, &base, &whole), content(&log, &base, &last));
    let (cut, losses) = (0..device.systematic())
        .map(|n| device.nth(n).unwrap())
        .map(|cut| (cut.clone(), device.losses(&cut, &base).unwrap()))
        .find(|(_, losses)| !losses.is_empty())
        .expect("a state that loses a block");
    let digest = |losses: &[usize]| {
        let fewer = device.with_losses(&cut, losses);
        let name = device.name(&fewer);
        assert_eq!(device.parse(&name).unwrap(), fewer, "{name}");
        assert_eq!(device.described(&fewer).len(), losses.len());
        device.state(&fewer, &base).unwrap().digest(&log)
    };
    assert_eq!(digest(&losses), device.state(&cut, &base).unwrap().digest(&log));
    assert_ne!(digest(&losses[..1]), digest(&[]));
    for (name, what) in [
        ("device:cut=0", "has the number of one of"),
        ("device:cut=99999", "has the number of one of"),
        ("device:", "neither cut="),
        ("device:cut=1,torn=x", "'x' is not a number"),
        ("device:cut=1,only=99", "block 99 was not written"),
        ("permitted:cut=1", "does not begin with 'device:'"),
    ] {
        let error = device.parse(name).expect_err(name).to_string();
        assert!(error.contains(what), "{name}: {error}");
    }
}
