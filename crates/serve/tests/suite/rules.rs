// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules: requests of clients fail, are late, dropped, torn, misdirected or corrupted, and a replay does the same.

use crate::client::{Client, FLUSH, FUA, How, INSTANT, READ, Server, TRIM, ZERO};
use crate::recorded::{ask_much, replayed, worked};
use readpath_kit::Prng;

const BLOCK: u64 = 4096;

/// The bits in which two blocks differ.
fn other_bits(one: &[u8], two: &[u8]) -> u32 {
    one.iter().zip(two).map(|(one, two)| (one ^ two).count_ones()).sum()
}

#[test]
fn requests_fail_as_rules_say() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    let mut second = Client::connect(&server.socket());
    client.write(FUA, 0, &[1; 8192]).unwrap();
    assert_eq!(server.tell("error write 4K-8K first 2 ENOSPC"), "error write 4096-8192 first 2 ENOSPC\n");
    server.tell("error read client 2 every 2 ESHUTDOWN");
    server.tell("error flush");
    server.tell("error zero EPERM");
    let write = |client: &mut Client, at| client.write(0, at, &[2; 4096]).err();
    assert_eq!([4096, 0, 4096, 4096].map(|at| write(&mut client, at)), [Some(28), None, Some(28), None]);
    let read = |client: &mut Client| [(); 4].map(|()| client.read(0, 512).err());
    assert_eq!((read(&mut client), read(&mut second)), ([None; 4], [None, Some(108), None, Some(108)]));
    assert_eq!(client.ask(FLUSH, 0, 0, 0), Err(5));
    assert_eq!((client.ask(ZERO, 0, 0, 4096), client.ask(TRIM, 0, 0, 4096)), (Err(1), Ok(())));
    assert_eq!(
        server.counter("readpath_rule_met_total{rule=\"2\",order=\"error read client 2 every 2 ESHUTDOWN\"}"),
        4.0
    );
    server.tell("error off");
    assert_eq!((client.ask(FLUSH, 0, 0, 0), client.ask(ZERO, 0, 0, 4096)), (Ok(()), Ok(())));
    for (order, what) in [
        (
            "slow read 0-999G 1ms",
            "slow read 0-1072668082176 1ms: the largest unit has 19660800 bytes: nothing lies behind 0-1",
        ),
        ("error read\ncut", "one order"),
        ("drop read", "it goes with write, flush, trim, zero"),
    ] {
        let told = server.tell(order);
        assert!(told.starts_with("error: ") && told.contains(what), "{order}: {told}");
    }
    drop((client, second));
    server.tell("error flush");
    let served = server.stop();
    assert_eq!(served.lost, None, "the server's own flush meets no rule");
    let counts: Vec<_> = served.rules.iter().map(|rule| (rule.number, rule.met, rule.done)).collect();
    assert_eq!(counts, [(1, 3, 2), (2, 4, 2), (3, 1, 1), (4, 1, 1), (5, 0, 0)]);
    assert_eq!(served.rules[1].rule, "error read client 2 every 2 ESHUTDOWN");
    assert_eq!(served.errors, 6);
}

#[test]
fn writes_are_not_what_they_should_be() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    let blocks = client.bytes / BLOCK;
    let mut seen = [0; 9];
    for round in 1..40u8 {
        client.write(FUA, 0, &[0; 8192]).unwrap();
        server.tell("torn write nth 1 512");
        client.write(FUA, 700, &[round; 4000]).unwrap();
        server.tell("torn off");
        let data = client.read(0, 8192).unwrap();
        let kept = data.iter().filter(|&&byte| byte == round).count();
        assert!(data[700..700 + kept].iter().all(|&byte| byte == round), "what is kept is the beginning");
        assert!(kept < 4000 && (kept == 0 || (700 + kept).is_multiple_of(512)), "{kept}");
        seen[(700 + kept) / 512 - 1] += 1;

        server.tell("drop write nth 1");
        assert_eq!(client.write(FUA, 8192, &[round; 4096]), Ok(()));
        server.tell("drop off");
        assert_eq!(client.read(8192, 4096), Ok(vec![0; 4096]), "it was answered and not done");

        server.tell("corrupt write");
        client.write(FUA, 16384, &[round; 4096]).unwrap();
        server.tell("corrupt off");
        assert_eq!(other_bits(&client.read(16384, 4096).unwrap(), &[round; 4096]), 1);
    }
    assert!(seen[0] > 0 && seen[8] > 0, "from nothing to all but the last sector: {seen:?}");
    server.tell("misdirect write nth 2");
    client.write(FUA, 5 * BLOCK, &[100; 4096]).unwrap();
    client.write(FUA, 5 * BLOCK, &[101; 4096]).unwrap();
    assert_eq!(client.read(5 * BLOCK, 4096), Ok(vec![100; 4096]));
    let elsewhere = (0..blocks).filter(|block| client.read(block * BLOCK, 4096) == Ok(vec![101; 4096])).count();
    assert_eq!(elsewhere, 1, "it is in one other place");
    drop(client);
    server.stop();
}

#[test]
fn reads_are_not_what_they_should_be() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[7; 8192]).unwrap();
    server.tell("corrupt read every 2");
    let others: Vec<u32> = (0..6).map(|_| other_bits(&client.read(1000, 5000).unwrap(), &[7; 5000])).collect();
    assert_eq!(others, [0, 1, 0, 1, 0, 1]);
    server.tell("corrupt off");
    server.tell("misdirect read 0-8K");
    assert_eq!(client.read(0, 8192), Ok(vec![0; 8192]), "nothing else was written");
    server.tell("misdirect off");
    assert_eq!(client.read(0, 8192), Ok(vec![7; 8192]), "the data is unharmed");
    drop(client);
    server.stop();
}

/// A flush that a rule drops makes nothing durable.
#[test]
fn flushes_are_dropped() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    server.tell("drop flush every 2");
    let mut lost = [0, 0];
    for round in 1..=60u8 {
        client.write(0, 0, &[round; 4096]).unwrap();
        client.ask(FLUSH, 0, 0, 0).unwrap();
        server.tell("cut 1ms");
        lost[usize::from(round % 2)] += u32::from(client.read(0, 4096) != Ok(vec![round; 4096]));
    }
    assert!(lost[0] > 20 && lost[1] == 0, "{lost:?}");
    drop(client);
    server.stop();
}

#[test]
fn a_replay_breaks_requests_as_the_server_did() {
    let rng = &mut Prng::new(1);
    let (mut server, start) = worked(rng, 1000);
    let faults = "0s seed 5\n0s slow read 2% 3ms\n0s error write every 9 ENOSPC\n0s torn write 10% 4K\n\
                  5ms drop trim client 2\n6ms misdirect 5%\n9ms corrupt read 0-8M up 1ms down 1ms\n40ms misdirect off\n";
    server.start(How { records: true, faults, ..INSTANT });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server.socket())).collect();
    for order in ["drop zero first 3", "slow 200us", "seed 7", "cut 1ms", "slow off", "error read 20%", "torn 512"] {
        clients.iter_mut().for_each(|client| ask_much(client, rng, 200));
        assert!(!server.tell(order).starts_with("error: "), "{order}");
    }
    clients[0].send(READ, 0, 0, 4096, &[]);
    clients[0].any_reply();
    drop(clients);
    let served = server.stop();
    let replayed = replayed(&server, &start).unwrap();
    assert_eq!((replayed.same, replayed.first_other), (replayed.requests, None));
    assert_eq!((replayed.device, replayed.hpb), (served.device, served.hpb));
    assert_eq!(replayed.rules, served.rules);
    assert!(served.rules.iter().all(|rule| rule.done > 0 || rule.rule.starts_with("torn 512")), "{:?}", served.rules);
    assert_eq!(served.rules.len(), 10);
}
