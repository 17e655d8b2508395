// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts as clients hear of them: they stay, they are disconnected, or nothing answers any more.

use crate::client::{Client, FLUSH, FUA, How, INSTANT, READ, REAL, Server, WRITE};
use crate::recorded::{ask_much, replayed, worked};
use readpath_kit::Prng;

/// Leaves requests of every client unanswered: some at the device, some held back.
fn leave_unanswered(server: &Server, clients: &mut [Client]) {
    server.tell("stall 3600s");
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(READ, 0, 0, 1 << 16, &[]);
        client.send(WRITE, FUA, i as u64 * 8192 + 100, 5000, &[i as u8; 5000]);
        client.send(FLUSH, 0, 0, 0, &[]);
    }
    server.wait_for_requests(3.0 * clients.len() as f64);
}

#[test]
fn clients_are_disconnected_and_come_again() {
    let mut server = Server::new(REAL);
    let mut clients = [Client::connect(&server.socket()), Client::connect(&server.socket())];
    clients[0].write(FUA, 1 << 20, &[7; 4096]).unwrap();
    leave_unanswered(&server, &mut clients);
    let told = server.tell("cut disconnect 2ms");
    assert!(told.contains("with 6 requests in flight, which are lost; clients are disconnected; "), "{told}");
    assert!(clients.iter_mut().all(Client::is_closed));
    assert_eq!(server.counter("readpath_requests_in_flight"), 0.0);
    server.tell("stall off");
    let mut client = Client::connect(&server.socket());
    assert_eq!(client.read(1 << 20, 4096), Ok(vec![7; 4096]));
    drop(client);
    let served = server.stop();
    assert_eq!((served.connections, served.requests, served.errors), (3, 2, 0));
}

/// Clients that stay hear once that what they were answered may be lost: when they flush it.
#[test]
fn a_flush_fails_after_a_cut_that_took_what_was_answered() {
    let mut server = Server::new(INSTANT);
    let mut clients = [Client::connect(&server.socket()), Client::connect(&server.socket())];
    let flush = |client: &mut Client| client.ask(FLUSH, 0, 0, 0);
    clients.iter_mut().for_each(|client| _ = client.read(0, 512).unwrap());
    clients[0].write(FUA, 0, &[7; 4096]).unwrap();
    server.tell("cut 1ms");
    assert_eq!(clients.each_mut().map(flush), [Ok(()); 2], "what has FUA is there");
    clients[0].write(0, 0, &[8; 4096]).unwrap();
    flush(&mut clients[1]).unwrap();
    server.tell("cut 1ms");
    assert_eq!(clients.each_mut().map(flush), [Ok(()); 2], "any client's flush is for all");
    clients[0].write(0, 0, &[9; 4096]).unwrap();
    server.tell("cut 1ms");
    let mut third = Client::connect(&server.socket());
    assert_eq!(flush(&mut third), Ok(()), "it has come after the cut");
    for expected in [Err(5), Ok(())] {
        assert_eq!(clients.each_mut().map(flush), [expected; 2]);
    }
    for (order, expected) in [("lie on", Ok(())), ("lie off", Err(5))] {
        clients[0].write(0, 0, &[10; 4096]).unwrap();
        server.tell(order);
        server.tell("cut 1ms");
        assert_eq!(flush(&mut clients[0]), expected, "{order}");
    }
    drop((clients, third));
    assert_eq!(server.stop().errors, 3);
}

#[test]
fn a_crashed_machine_answers_nobody_until_its_power_is_on() {
    let mut server = Server::new(REAL);
    let mut clients = [Client::connect(&server.socket()), Client::connect(&server.socket())];
    clients[0].write(FUA, 1 << 20, &[7; 4096]).unwrap();
    assert_eq!(server.tell("power on"), "error: power on: the power is on\n");
    leave_unanswered(&server, &mut clients);
    let told = server.tell("cut crash");
    assert!(told.contains("with 6 requests in flight, which are lost; nothing is answered"), "{told}");
    for order in ["cut", "cut disconnect", "cut crash", "memory 1M", "param inflight_map_req 4", "host hpb=off"] {
        let told = server.tell(order);
        assert!(told.contains("the power is off; 'power on' switches it on"), "{order}: {told}");
    }
    // It hears orders still, and a client that connects or asks hears nothing.
    server.tell("stall off");
    let waiting = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
    waiting.set_nonblocking(true).unwrap();
    clients[0].send(READ, 0, 0, 4096, &[]);
    (0..5).for_each(|_| assert_eq!(server.counter("readpath_requests_in_flight"), 0.0));
    assert!(std::io::Read::read(&mut &waiting, &mut [0]).is_err(), "no greeting");
    assert!(clients.iter().all(Client::is_silent));
    let told = server.tell("power on");
    assert!(told.starts_with("power on at ") && told.contains("recovered in "), "{told}");
    assert!(clients.iter_mut().all(Client::is_closed));
    let mut client = Client::connect(&server.socket());
    assert_eq!(client.read(1 << 20, 4096), Ok(vec![7; 4096]));
    drop(client);
    assert_eq!(server.stop().connections, 4);
}

/// What was flushed is in the image of a server that ends without power, and nothing keeps it from ending.
#[test]
fn a_server_ends_without_power() {
    let mut server = Server::new(REAL);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[7; 4096]).unwrap();
    leave_unanswered(&server, std::slice::from_mut(&mut client));
    server.tell("cut crash");
    let served = server.stop();
    assert_eq!((served.lost, served.requests), (None, 1));
    server.start(INSTANT);
    let mut client = Client::connect(&server.socket());
    let data = client.read(0, 4096).unwrap();
    assert!(data[..100] == [7; 100] && (data[100..] == [7; 3996] || data[100..] == [0; 3996]));
    drop(client);
    server.stop();
}

/// Makes an image that has been written to, records what `asks` asks of it, and replays it; returns how many requests
/// were neither answered nor the server's own flush.
fn lost_in_replay(how: How, asks: impl FnOnce(&Server, &mut Prng)) -> u64 {
    let rng = &mut Prng::new(1);
    let (mut server, start) = worked(rng, 1000);
    server.start(how);
    asks(&server, rng);
    let served = server.stop();
    let replayed = replayed(&server, &start).unwrap();
    assert_eq!((replayed.same, replayed.first_other), (replayed.requests, None));
    assert_eq!((replayed.device, replayed.hpb), (served.device, served.hpb));
    assert_eq!(replayed.other_counters, Some(Vec::new()));
    replayed.requests - served.requests - 1
}

/// Requests that a cut takes are in the recording, and lost in its replay at the same moment.
#[test]
fn a_replay_loses_what_the_server_lost() {
    let orders = ["cut disconnect 1ms", "cut crash", "cut 2ms", "cut disconnect", "cut crash"];
    let lost = lost_in_replay(How { records: true, host: "hpb=hcm", ..REAL }, |server, rng| {
        for order in orders {
            let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server.socket())).collect();
            clients.iter_mut().for_each(|client| ask_much(client, rng, 60));
            leave_unanswered(server, &mut clients);
            assert!(server.tell(order).contains(" 9 requests in flight"), "{order}");
            server.tell("stall off");
            match order {
                "cut crash" => assert!(server.tell("power on").starts_with("power on at")),
                "cut 2ms" => clients.iter_mut().for_each(|client| (0..3).for_each(|_| client.any_reply())),
                _ => {}
            }
        }
    });
    assert_eq!(lost, 4 * 9);
}

/// The same at the times of a file, which meet requests wherever they are.
#[test]
fn a_replay_loses_what_planned_cuts_took() {
    let orders = ["cut disconnect 1ms", "slow 100us", "cut crash", "power on", "slow off", "cut 1ms"];
    let faults: String = (1..=120).map(|i| format!("{}ms {}\n", i * 2, orders[i % 6])).collect();
    let lost = lost_in_replay(How { records: true, faults: faults.leak(), ..INSTANT }, |server, _| {
        while server.counter("readpath_device_time_seconds") < 0.25 {
            let Ok(mut client) = Client::try_connect(&server.socket()) else { continue };
            let mut answered = 0;
            for i in 0..400u64 {
                if !client.may_send(WRITE, if i % 3 == 0 { FUA } else { 0 }, i % 50 * 4096 + 7, 9000, &[5; 9000]) {
                    break;
                }
                while i - answered > 20 && client.may_reply() {
                    answered += 1;
                }
            }
        }
    });
    assert!(lost > 10, "{lost} requests were lost");
}
