// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logical units, each an export of its own: what is in one is in no other, and what happens to the device happens to
//! all.

use crate::client::{Client, FLUSH, FUA, How, INSTANT, READ, Server, device_file};
use crate::recorded::{ask_much, replayed};
use crate::served::{compare, meddle};
use readpath_kit::Prng;
use readpath_serve::{Recorded, exports};

/// Blocks of the units.
const UNITS: [u64; 3] = [3000, 1200, 600];
const NAMES: [&str; 3] = ["ufs21-64g", "ufs21-64g.1", "ufs21-64g.2"];

fn server(how: How) -> Server {
    let other =
        |blocks, hpb| format!("[[lu]]\nblocks = {blocks}\nhpb = {hpb}\nmax_active_regions = {}\n", u8::from(hpb));
    let first = device_file().replace("blocks = 4800", "blocks = 3000");
    let text = first + &other(UNITS[1], true) + &other(UNITS[2], false);
    assert_eq!(exports(&readpath_config::device::parse(&text, "test").unwrap()), NAMES);
    Server::of(&text, how)
}

fn connect(server: &Server) -> [Client; 3] {
    NAMES.map(|name| Client::connect_to(&server.socket(), name).unwrap())
}

#[test]
fn a_unit_shows_nothing_of_another() {
    let mut server = server(INSTANT);
    let rng = &mut Prng::new(1);
    let mut disks = UNITS.map(|blocks| vec![0; blocks as usize * 4096]);
    for _ in 0..2 {
        let mut clients = connect(&server);
        assert_eq!(clients.each_ref().map(|client| client.bytes), UNITS.map(|blocks| blocks * 4096));
        assert_eq!(Client::connect(&server.socket()).bytes, UNITS[0] * 4096, "the first needs no name");
        assert!(Client::connect_to(&server.socket(), "ufs21-64g.3").is_err());
        for _ in 0..60 {
            for (client, disk) in clients.iter_mut().zip(&mut disks) {
                meddle(client, disk, rng, 10);
            }
        }
        clients.iter_mut().zip(&disks).for_each(|(client, disk)| compare(client, disk));
        assert!(server.counter("readpath_unit_requests_total{unit=\"2\"}") >= 600.0);
        drop(clients);
        let served = server.stop();
        let names: Vec<&str> = served.by_unit.iter().map(|unit| &*unit.name).collect();
        assert_eq!(names, NAMES);
        assert_eq!(served.by_unit.iter().map(|unit| unit.requests).sum::<u64>(), served.requests);
        assert_eq!(served.by_unit.iter().map(|unit| unit.read_bytes).sum::<u64>(), served.read_bytes);
        assert_eq!(served.by_unit.iter().map(|unit| unit.written_bytes).sum::<u64>(), served.written_bytes);
        server.start(INSTANT);
    }
    server.stop();
}

#[test]
fn a_cut_takes_the_power_of_all_units() {
    let mut server = server(INSTANT);
    let mut clients = connect(&server);
    let mut lost = [0; 3];
    for round in 1..=40u8 {
        // FUA on a part of a block flushes the device.
        clients.iter_mut().for_each(|client| client.write(FUA, 8192, &[round; 100]).unwrap());
        clients.iter_mut().for_each(|client| client.write(0, 0, &[round; 4096]).unwrap());
        server.tell("cut 1ms");
        for (client, lost) in clients.iter_mut().zip(&mut lost) {
            assert_eq!(client.read(8192, 100), Ok(vec![round; 100]));
            *lost += u32::from(client.read(0, 4096) != Ok(vec![round; 4096]));
        }
    }
    assert!(lost.iter().all(|&lost| lost > 20), "{lost:?}");
    assert_eq!(
        clients.each_mut().map(|client| client.ask(FLUSH, 0, 0, 0)),
        [Err(5); 3],
        "of all units something is lost"
    );
    // A flush of one unit is one of the device.
    clients.iter_mut().for_each(|client| client.write(0, 4096, &[7; 4096]).unwrap());
    clients[2].ask(FLUSH, 0, 0, 0).unwrap();
    server.tell("cut disconnect 1ms");
    assert!(clients.iter_mut().all(Client::is_closed));
    assert!(connect(&server).iter_mut().all(|client| client.read(4096, 4096) == Ok(vec![7; 4096])));
    server.stop();
}

#[test]
fn a_replay_asks_each_unit_what_it_was_asked() {
    let mut server = server(INSTANT);
    server.stop();
    let start = server.image().with_extension("start");
    std::fs::copy(server.image(), &start).unwrap();
    let faults = "0s misdirect 3%\n0s slow 5ms 1%\n5ms error write 2% 8M-12000K\n";
    server.start(How { records: true, host: "policy=lru memory=1M", faults, ..INSTANT });
    let rng = &mut Prng::new(1);
    for order in ["cut 1ms", "memory 1500K", "host hpb=dcm", "cut 1ms"] {
        connect(&server).iter_mut().for_each(|client| ask_much(client, rng, 300));
        let told = server.tell(order);
        assert!(!told.starts_with("error: "), "{order}: {told}");
    }
    let mut client = Client::connect_to(&server.socket(), NAMES[1]).unwrap();
    client.send(READ, 0, 0, 4096, &[]);
    client.any_reply();
    drop(client);
    let served = server.stop();
    let replayed = replayed(&server, &start).unwrap();
    assert_eq!((replayed.same, replayed.first_other), (replayed.requests, None));
    assert_eq!((replayed.device, replayed.hpb), (served.device, served.hpb));
    assert_eq!((replayed.rules, replayed.other_counters), (served.rules, Some(Vec::new())));

    let text = std::fs::read_to_string(server.recording()).unwrap();
    let read = |text: &str| Recorded::read(text.as_bytes()).unwrap();
    let refused = read(&text).changes(UNITS[0] * 4096).unwrap_err();
    assert!(refused.ends_with("states are made of the first unit alone"), "{refused}");
    let (_, line) = text.split_once("\n#unit ").unwrap();
    let (number, _) = line.split_once(' ').unwrap();
    let other = text.replacen(&format!("#unit {number} 1\n"), &format!("#unit {number} 3\n"), 1);
    std::fs::write(server.recording(), other).unwrap();
    let refused = crate::recorded::replayed(&server, &start).err().expect("there are three units").to_string();
    assert_eq!(refused, format!("request {number} is of logical unit 3, and there are 3"));
}
