// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings are replayed bit by bit, for any requests and any faults, in real time or not. And servers carry out
//! their orders.

use crate::client::{Client, FLUSH, FUA, How, INSTANT, LOG, NO_HOLE, READ, REAL, Server, TRIM, WRITE, ZERO};
use readpath_kit::Prng;
use readpath_serve::{Recorded, Replayed, ServeError, replay};
use readpath_store::Image;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Makes `count` random requests, up to 30 at once.
pub fn ask_much(client: &mut Client, rng: &mut Prng, count: u32) {
    let mut expected = std::collections::VecDeque::new();
    for _ in 0..count {
        let bytes = [1 + rng.below(9000), 4096, 4096, 65_536][rng.below(4) as usize];
        let mut offset = rng.below(client.bytes - bytes);
        if bytes.is_multiple_of(4096) {
            offset &= !4095;
        }
        let fua = if rng.below(5) == 0 { FUA } else { 0 };
        let hole = if rng.below(2) == 0 { NO_HOLE } else { 0 };
        let n = bytes as u32;
        match rng.below(12) {
            0..5 => client.send(READ, 0, offset, n, &[]),
            5..9 => client.send(WRITE, fua, offset, n, &vec![7; n as usize]),
            9 => client.send(TRIM, fua, offset, n, &[]),
            10 => client.send(ZERO, fua | hole, offset, n, &[]),
            _ => client.send(FLUSH, 0, 0, 0, &[]),
        }
        expected.push_back(());
        // Replies come in any order, so each is read by its own request.
        while expected.len() > rng.below(30) as usize {
            client.any_reply();
            expected.pop_front();
        }
    }
    expected.iter().for_each(|()| client.any_reply());
}

/// A server that was asked `count` random requests and has ended, and a copy of its image.
pub fn worked(rng: &mut Prng, count: u32) -> (Server, PathBuf) {
    let mut server = Server::new(INSTANT);
    ask_much(&mut Client::connect(&server.socket()), rng, count);
    server.stop();
    let start = server.image().with_extension("start");
    std::fs::copy(server.image(), &start).unwrap();
    (server, start)
}

pub fn replayed(server: &Server, start: &Path) -> Result<Replayed, ServeError> {
    let image = Image::open(start, false, false).unwrap();
    let preset = readpath_config::device::parse(&image.text, "test").unwrap();
    let recorded = Recorded::read(&*std::fs::read(server.recording()).unwrap()).unwrap();
    replay(image, &preset, recorded, |_| true)
}

#[test]
fn a_replay_does_to_the_bit_what_the_server_did() {
    let faults =
        "0s seed 3\n10ms slow read 0-4M 300us\n20ms fail program 40\n30ms fail erase 20000ppm\n40ms slow off\n";
    let hows = [
        How { records: true, ..INSTANT },
        How { records: true, host: "policy=lru memory=1M", faults, ..INSTANT },
        How { records: true, host: "hpb=hcm", faults, ..REAL },
    ];
    for (round, how) in hows.into_iter().enumerate() {
        let rng = &mut Prng::new(round as u64 + 1);
        let (mut server, start) = worked(rng, 3000);
        server.start(how);
        let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server.socket())).collect();
        let orders = [
            "stall 2ms",
            "cut 1ms",
            "lie on",
            "cut 3ms",
            "lie off",
            "fail read 5",
            "host hpb=dcm",
            "seed 9",
            "end-of-life on",
            "end-of-life off",
            "slow write 100us",
            "host hpb=off",
            "host policy=lru",
        ];
        for order in orders {
            clients.iter_mut().for_each(|client| ask_much(client, rng, 60));
            let is_host = order.starts_with("host");
            if is_host {
                server.tell("stall 100s");
                clients[0].send(READ, 0, 0, 4096, &[]);
                std::thread::sleep(Duration::from_millis(5));
            }
            let answer = server.tell(order);
            if is_host {
                clients[0].any_reply();
            }
            assert!(!answer.is_empty() && !answer.starts_with("error"), "{order}: {answer}");
        }
        clients.iter_mut().for_each(|client| ask_much(client, rng, 300));
        server.tell("stall 900s");
        clients[0].send(READ, 0, 0, 4096, &[]);
        std::thread::sleep(Duration::from_millis(20));
        let served = server.stop();
        drop(clients);
        let replayed = replayed(&server, &start).unwrap();
        // Three flushes before another host, and one at the end, are the server's own.
        assert_eq!(replayed.requests, served.requests + 4);
        assert_eq!((replayed.same, replayed.first_other), (replayed.requests, None), "round {round}");
        assert_eq!((replayed.device, replayed.hpb), (served.device, served.hpb), "round {round}");
        assert_eq!(replayed.other_counters, Some(Vec::new()));
        assert_eq!(replayed.lateness.requests() > 0, round == 2);
        let refused = self::replayed(&server, &server.image());
        assert!(matches!(refused, Err(ServeError::Recording(_))), "the image has changed since");
    }
}

/// A recording may end anywhere, as that of a server that was killed.
#[test]
fn what_there_is_of_a_recording_is_replayed() {
    let mut server = Server::new(INSTANT);
    server.stop();
    let start = server.image().with_extension("start");
    std::fs::copy(server.image(), &start).unwrap();
    server.start(How { records: true, ..INSTANT });
    ask_much(&mut Client::connect(&server.socket()), &mut Prng::new(5), 500);
    server.stop();
    let whole = std::fs::read_to_string(server.recording()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for bytes in [whole.len() / 2, whole.len() / 2 + 7, whole.len() / 2 + 23] {
        std::fs::write(server.recording(), &whole[..bytes]).unwrap();
        let part = replayed(&server, &start).unwrap();
        assert!(part.requests > 100 && part.requests < 400 && part.other_counters.is_none());
        assert_eq!(part.first_other, None);
    }
    // If a line is missing, the rest behind it is left out.
    let number = lines.iter().position(|line| line.contains(",200,")).unwrap();
    let without = [&lines[..number], &lines[number + 1..], &[""]].concat();
    std::fs::write(server.recording(), without.join("\n")).unwrap();
    let part = replayed(&server, &start).unwrap();
    assert_eq!((part.requests, part.left_out > 200, part.first_other), (199, true, None));
    std::fs::write(server.recording(), whole.replacen("ready_ns=", "ready_ns=1", 1)).unwrap();
    assert!(matches!(replayed(&server, &start), Err(ServeError::Recording(_))));
}

/// Requests of clients that take no answers, or disconnect, are recorded too.
#[test]
fn what_nobody_waited_for_is_recorded() {
    for how in [INSTANT, REAL] {
        let mut server = Server::new(INSTANT);
        ask_much(&mut Client::connect(&server.socket()), &mut Prng::new(7), 300);
        server.stop();
        let start = server.image().with_extension("start");
        std::fs::copy(server.image(), &start).unwrap();
        server.start(How { records: true, ..how });
        let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server.socket())).collect();
        for client in &mut clients {
            (0..12).for_each(|_| client.send(READ, 0, 0, 1 << 20, &[]));
            client.send(WRITE, 0, 8192, 4096, &[1; 4096]);
        }
        std::thread::sleep(Duration::from_millis(200));
        clients.pop();
        std::thread::sleep(Duration::from_millis(50));
        server.stop();
        drop(clients);
        let replayed = replayed(&server, &start).unwrap();
        assert_eq!((replayed.requests, replayed.left_out, replayed.first_other), (40, 0, None));
        assert_eq!(replayed.other_counters, Some(Vec::new()));
        let orders = std::fs::read_to_string(server.recording()).unwrap().matches("#order").count();
        assert_eq!(orders, 2, "a server begins to end once");
        let recording = std::fs::read_to_string(server.recording()).unwrap();
        for row in recording.lines().filter(|line| line.contains(",read,") || line.contains(",write,")) {
            let fields: Vec<&str> = row.split(',').collect();
            let (served, modelled) = (fields[5].parse::<u64>(), fields[8].parse::<u64>().unwrap());
            assert!(served.is_err() || served.unwrap() >= modelled, "what is served includes what is modelled: {row}");
        }
    }
}

/// Measured in device time, which only the device and the orders advance.
#[test]
fn answers_are_held_back_as_long_as_an_order_says() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    let mut took_ms = |server: &Server, offset| {
        let begun = server.counter("readpath_device_time_seconds");
        client.read(offset, 4096).unwrap();
        (server.counter("readpath_device_time_seconds") - begun) * 1e3
    };
    server.tell("slow read 1M-2M 30ms");
    assert!((30.0..31.0).contains(&took_ms(&server, 1 << 20)));
    assert!(took_ms(&server, 2 << 20) < 1.0, "it is not in the range");
    server.tell("slow off");
    assert!(took_ms(&server, 1 << 20) < 1.0);
    server.tell("stall 50ms");
    assert!((49.0..51.0).contains(&took_ms(&server, 0)));
    assert!(took_ms(&server, 0) < 1.0);
    drop(client);
    assert_eq!(server.stop().requests, 5);
}

/// A new host and the end of a server wait for no answer that an order holds back.
#[test]
fn answers_that_are_held_back_keep_nothing_waiting() {
    let mut server = Server::new(REAL);
    let mut client = Client::connect(&server.socket());
    server.tell("slow 3600s");
    client.send(READ, 0, 0, 4096, &[]);
    server.wait_for_requests(1.0);
    assert_eq!(server.tell("host hpb=off"), "host hpb=off\n");
    assert_eq!(client.reply(4096), Ok(vec![0; 4096]));
    server.tell("slow off");
    server.tell("stall 3600s");
    client.send(READ, 0, 0, 4096, &[]);
    server.wait_for_requests(1.0);
    let served = server.stop();
    assert_eq!(client.reply(4096), Ok(vec![0; 4096]));
    assert_eq!((served.requests, served.errors), (2, 0));
}

#[test]
fn operations_fail_when_they_are_told_to() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[9; 8 * 4096]).unwrap();
    server.tell("fail read 3");
    let read = |client: &mut Client| (0..8).map(|i| client.read(i * 4096, 4096).err()).collect::<Vec<_>>();
    let eio = Some(5);
    assert_eq!(read(&mut client), [None, None, eio, None, None, None, None, None]);
    server.tell("fail read 1000000ppm");
    assert_eq!(read(&mut client), [eio; 8]);
    server.tell("fail read off");
    assert_eq!(read(&mut client), [None; 8]);
    server.tell("fail program 1");
    client.write(FUA, 0, &[8; 8 * 4096]).unwrap();
    let stat = |server: &Server, name: &str| -> u64 {
        let stats = server.tell("stats");
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("readpath_device_{name}_total ")));
        line.expect("a counter").parse().unwrap()
    };
    assert_eq!(stat(&server, "program_failures"), 1);
    assert_eq!(client.read(0, 4096), Ok(vec![8; 4096]), "it was written elsewhere");
    server.tell("end-of-life on");
    assert_eq!((client.write(0, 0, &[1; 4096]), client.ask(TRIM, 0, 0, 4096)), (Err(28), Err(28)));
    assert_eq!(client.read(0, 4096), Ok(vec![8; 4096]));
    assert_eq!(client.ask(FLUSH, 0, 0, 0), Ok(()));
    server.tell("end-of-life off");
    assert_eq!(client.write(0, 0, &[1; 4096]), Ok(()));
    drop(client);
    server.stop();
}

/// What a lying flush promised is lost with the power, and nothing of what an honest one did.
#[test]
fn a_lying_flush_loses_what_it_promised() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    let mut lost = [0, 0];
    for round in 0..40u8 {
        let lies = round % 2;
        server.tell(if lies == 1 { "lie on" } else { "lie off" });
        client.write(0, 0, &[round; 4096]).unwrap();
        client.ask(FLUSH, 0, 0, 0).unwrap();
        client.write(FUA, 4096, &[round; 4096]).unwrap();
        server.tell("cut 1ms");
        let is_lost = [0, 4096].map(|at| u32::from(client.read(at, 4096) != Ok(vec![round; 4096])));
        lost[usize::from(lies)] += is_lost.iter().sum::<u32>();
    }
    assert_eq!(lost[0], 0);
    assert!(lost[1] > 30, "lies did no harm: {lost:?}");
    drop(client);
    server.stop();
}

/// Another host takes over between two requests; what was accepted is there.
#[test]
fn another_host_takes_over() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(0, 0, &[3; 1 << 16]).unwrap();
    for host in ["hpb=off", "hpb=hcm", "policy=lru memory=2M", "hpb=dcm"] {
        assert_eq!(server.tell(&format!("host {host}")), format!("host {host}\n"));
        assert_eq!(client.read(0, 1 << 16), Ok(vec![3; 1 << 16]), "{host}");
        let stats = server.tell("stats");
        assert_eq!(stats.contains("readpath_hpb_hit_cnt"), host != "hpb=off", "{host}");
    }
    assert!(server.tell("host hpb=always").starts_with("error: "));
    assert!(server.tell("host policy=lru memory=1").contains("too little"));
    assert!(server.tell("memory 1M").starts_with("error: "), "this host takes none");
    drop(client);
    assert_eq!(server.stop().errors, 0);
}

/// An order of a file may be refused when it is due: the log names its line. An order of `ctl` gets the reason.
#[test]
fn orders_that_are_refused_when_they_are_due_have_a_place() {
    let faults = "# a bad day\n0s seed 3\n0s memory 7654321\n\n1ms param inflight_map_req 7654\n2ms cut 3599s\n";
    let mut server = Server::new(How { faults, ..INSTANT });
    let mut client = Client::connect(&server.socket());
    (0..100).for_each(|i| assert!(client.write(FUA, i * 4096, &[1; 4096]).is_ok()));
    let refused = server.tell("memory 7654321");
    assert!(refused.starts_with("error: memory 7654321: "), "{refused}");
    drop(client);
    server.stop();
    for begins in [
        "faults: line 3: memory 7654321: ",
        "faults: line 5: param inflight_map_req 7654: ",
        "faults: line 6: cut 3599s: at this speed it may take 60.000 s at most",
    ] {
        let log = LOG.lock().unwrap();
        assert!(log.iter().any(|line| line.starts_with(begins)), "{begins}: {log:?}");
    }
}

#[test]
fn no_more_than_64_rules_are_in_effect() {
    let mut server = Server::new(INSTANT);
    for from in 0..64 {
        let order = format!("slow read {}-{} 1us", from * 4096, (from + 1) * 4096);
        assert!(server.tell(&order).starts_with("slow read"), "{order}");
    }
    let error = "error: slow 5ms: 64 rules are in effect, and no more can be; 'slow off' ends those that slow\n";
    assert_eq!(server.tell("slow 5ms"), error);
    assert_eq!(server.tell("slow off"), "slow off\n");
    assert_eq!(server.tell("slow 5ms"), "slow 5ms\n");
    server.stop();
}

/// A client that has as much under way as it may have, and has sent more, waits with the rest until another host is
/// there. Otherwise each answer makes room for one more request, and the host does not come before the client is
/// silent.
#[test]
fn a_client_that_is_held_back_waits_for_another_host() {
    const MOST: u32 = 1024;
    // No more than fits into a socket that is not read.
    const ALL: u32 = MOST + 128;
    let mut server = Server::new(REAL);
    let mut client = Client::connect(&server.socket());
    server.tell("stall 3600s");
    (0..ALL).for_each(|i| client.send(READ, 0, u64::from(i) * 4096, 4096, &[]));
    // All that is taken from it has been done, and nothing has been answered.
    let is_held = |stats: &str| {
        let done = [("readpath_requests_in_flight", MOST), ("readpath_device_unmapped_reads_total", MOST)];
        done.iter().all(|(name, count)| stats.contains(&format!("{name} {count}\n")))
    };
    let begun = Instant::now();
    while !is_held(&server.tell("stats")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.tell("stats"));
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::scope(|scope| {
        let told = scope.spawn(|| server.tell("host hpb=off"));
        (0..ALL).for_each(|_| client.any_reply());
        assert_eq!(told.join().unwrap(), "host hpb=off\n");
    });
    // Counters began anew with the host: all other requests came to this host.
    let stats = server.tell("stats");
    assert!(stats.contains(&format!("readpath_device_unmapped_reads_total {}\n", ALL - MOST)), "{stats}");
    drop(client);
    assert_eq!(server.stop().requests, u64::from(ALL));
}
