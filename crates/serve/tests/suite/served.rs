// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients see a disk: reads return the written bytes at any offset and length, also from the next server, and flushed
//! bytes also from the file's content at any moment.

use crate::client::{Client, FLUSH, FUA, How, INSTANT, NO_HOLE, READ, REAL, Server, TRIM, WRITE, ZERO};
use readpath_kit::{Ns, Prng};
use readpath_serve::Speed;
use readpath_store::Image;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Makes `count` random requests to a disk and to a copy of it in memory.
pub fn meddle(client: &mut Client, disk: &mut [u8], rng: &mut Prng, count: u32) {
    for _ in 0..count {
        let longest = [700, 4096, 9000, 200_000][rng.below(4) as usize];
        let bytes = 1 + rng.below(longest) as usize;
        let mut offset = rng.below((disk.len() - bytes) as u64 + 1) as usize;
        let mut bytes = bytes;
        if rng.below(2) == 0 {
            (offset, bytes) = (offset & !4095, bytes.next_multiple_of(4096));
            bytes = bytes.min(disk.len() - offset);
        }
        let flags = if rng.below(4) == 0 { FUA } else { 0 };
        let (at, n) = (offset as u64, bytes as u32);
        match rng.below(10) {
            0..4 => {
                let seed = rng.below(255) as u8 + 1;
                let data: Vec<u8> = (0..bytes).map(|i| seed.wrapping_add((i / 64) as u8)).collect();
                client.write(flags, at, &data).unwrap();
                disk[offset..offset + bytes].copy_from_slice(&data);
            }
            4 => {
                let hole = if rng.below(2) == 0 { NO_HOLE } else { 0 };
                client.ask(ZERO, flags | hole, at, n).unwrap();
                disk[offset..offset + bytes].fill(0);
            }
            5 => {
                client.ask(TRIM, flags, at, n).unwrap();
                // Whole blocks read as zeros then; the rest stays.
                let (from, to) = (offset.next_multiple_of(4096), (offset + bytes) & !4095);
                if from < to {
                    disk[from..to].fill(0);
                }
            }
            6 => client.ask(FLUSH, 0, 0, 0).unwrap(),
            _ => {
                let data = client.read(at, n).unwrap();
                assert!(data == disk[offset..offset + bytes], "{bytes} bytes at {offset}");
            }
        }
    }
}

pub fn compare(client: &mut Client, disk: &[u8]) {
    for (i, expected) in disk.chunks(1 << 20).enumerate() {
        let data = client.read((i << 20) as u64, expected.len() as u32).unwrap();
        assert!(data == expected, "MiB {i}");
    }
}

#[test]
fn bytes_come_back_from_this_server_and_the_next() {
    let mut server = Server::new(INSTANT);
    let rng = &mut Prng::new(1);
    let mut disk = Vec::new();
    for round in 0..3 {
        let mut client = Client::connect(&server.socket());
        disk.resize(client.bytes as usize, 0);
        compare(&mut client, &disk);
        meddle(&mut client, &mut disk, rng, 1500);
        drop(client);
        let served = server.stop();
        assert!(served.requests > 1000 && served.errors == 0, "round {round}");
        assert!(served.device.slices_moved > 0 || round == 0, "no garbage was collected");
        server.start(INSTANT);
    }
    let mut client = Client::connect(&server.socket());
    compare(&mut client, &disk);
    drop(client);
    server.stop();
    let found = Image::open(&server.image(), false, false).unwrap().examine(|_| {});
    assert!(found.faults.is_empty(), "{found:?}");
}

/// A copy of the file at any moment is what a server leaves that is killed then.
#[test]
fn what_was_flushed_is_in_the_file() {
    let mut server = Server::new(INSTANT);
    let rng = &mut Prng::new(2);
    let mut client = Client::connect(&server.socket());
    let mut disk = vec![0; client.bytes as usize];
    for _ in 0..4 {
        meddle(&mut client, &mut disk, rng, 300);
        client.ask(FLUSH, 0, 0, 0).unwrap();
        let mut killed = Server::new(INSTANT);
        killed.stop();
        std::fs::copy(server.image(), killed.image()).unwrap();
        killed.start(INSTANT);
        compare(&mut Client::connect(&killed.socket()), &disk);
        killed.stop();
    }
    drop(client);
    server.stop();
}

#[test]
fn clients_that_break_the_protocol_harm_nobody() {
    let mut server = Server::new(INSTANT);
    let mut good = Client::connect(&server.socket());
    let rng = &mut Prng::new(3);
    let mut disk = vec![0; good.bytes as usize];
    let mut others = Vec::new();
    for i in 0..400 {
        let mut socket = UnixStream::connect(server.socket()).unwrap();
        if i % 5 == 0 {
            let noise: Vec<u8> = (0..rng.below(300)).map(|_| rng.below(256) as u8).collect();
            // It may have been closed already.
            socket.write_all(&noise).ok();
        }
        others.push(socket);
        if i % 50 == 0 {
            meddle(&mut good, &mut disk, rng, 20);
        }
    }
    meddle(&mut good, &mut disk, rng, 100);
    // A client disconnects with requests in flight.
    drop(others);
    let mut leaving = Client::connect(&server.socket());
    for _ in 0..50 {
        leaving.send(READ, 0, 0, 1 << 20, &[]);
    }
    drop(leaving);
    compare(&mut good, &disk);
    drop(good);
    let served = server.stop();
    assert!(served.turned_away > 0 && served.connections > 100, "{} turned away", served.turned_away);
}

#[test]
fn requests_that_cannot_be_are_refused_and_the_connection_lives() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    let end = client.bytes;
    let (inval, nospace) = (Err(22), Err(28));
    assert_eq!(client.read(end - 100, 200).map(drop), inval);
    assert_eq!(client.write(0, end - 100, &[1; 200]), nospace);
    assert_eq!(client.read(0, 0).map(drop), inval);
    assert_eq!(client.ask(99, 0, 0, 1), inval);
    assert_eq!(client.ask(TRIM, 0, u64::MAX, 4096), inval);
    client.send(READ, 0, 0, (32 << 20) + 1, &[]);
    assert_eq!(client.reply(0).map(drop), inval);
    client.write(0, end - 200, &[7; 200]).unwrap();
    assert_eq!(client.read(end - 200, 200), Ok(vec![7; 200]));
    drop(client);
    server.stop();
    server.start(How { read_only: true, ..INSTANT });
    let mut client = Client::connect(&server.socket());
    assert_eq!(client.write(0, 0, &[1; 4096]), Err(1), "the export is read-only");
    assert_eq!(client.read(end - 200, 200), Ok(vec![7; 200]));
    drop(client);
    server.stop();
}

/// An image is served once at a time.
#[test]
fn an_image_is_opened_by_one_process_only() {
    let mut server = Server::new(INSTANT);
    let second = Image::open(&server.image(), true, true);
    assert!(second.is_err_and(|error| error.to_string().contains("in use")));
    server.stop();
    assert!(Image::open(&server.image(), true, true).is_ok());
}

/// In real time each request takes as long as the device does, and the server says how late its answers were.
#[test]
fn real_time_is_kept_and_judged() {
    let mut server = Server::new(REAL);
    let mut client = Client::connect(&server.socket());
    let begun = std::time::Instant::now();
    client.write(FUA, 0, &[3; 1 << 16]).unwrap();
    for i in 0..50 {
        assert_eq!(client.read(i % 16 * 4096, 4096), Ok(vec![3; 4096]));
    }
    // Each read of flash takes more than 90 us of modelled time; so it cannot have taken less.
    let measured = begun.elapsed().as_nanos() as u64;
    assert!(measured > 50 * 90_000);
    // The server tells this after it has seen that its last reply has left.
    server.counter("readpath_requests_in_flight");
    let until = begun.elapsed().as_nanos() as u64;
    drop(client);
    let served = server.stop();
    let lateness = served.lateness.expect("time was real");
    assert_eq!(lateness.requests(), 51);
    let [mean, median, ..] = lateness.verdicts();
    assert!(median.modelled.0 > 90_000, "{median:?}");
    // A client that waits for each answer measures all of what was served, and more.
    assert!(mean.served.0 * 51 <= until, "{mean:?} and {until} ns");
}

/// A client that asks for more than a server keeps for it, and reads nothing meanwhile, gets all of it in the end.
#[test]
fn a_client_that_reads_late_is_served_to_the_end() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(0, 0, &[5; 1 << 20]).unwrap();
    (0..200).for_each(|_| client.send(READ, 0, 0, 1 << 20, &[]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    (0..200).for_each(|i| assert!(client.reply(1 << 20) == Ok(vec![5; 1 << 20]), "request {i}"));
    drop(client);
    assert_eq!(server.stop().requests, 201);
}

/// The counters and the summary count reads of blocks that were never written, or were trimmed, separately.
#[test]
fn reads_of_unmapped_blocks_are_counted() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[1; 4 * 4096]).unwrap();
    client.ask(TRIM, 0, 4096, 4096).unwrap();
    client.read(0, 6 * 4096).unwrap();
    let stats = server.tell("stats");
    assert!(stats.contains("readpath_device_unmapped_reads_total 3\n"), "{stats}");
    drop(client);
    let served = server.stop();
    assert_eq!((served.zeros_read, served.slices_read), (3, 3));
}

/// Device time goes on while the device is idle, and never goes back.
#[test]
fn device_time_never_goes_back() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[1; 4096]).unwrap();
    let time = |server: &Server| server.counter("readpath_device_time_seconds");
    let mut last = time(&server);
    for _ in 0..5 {
        (0..20).for_each(|_| assert!(client.read(0, 4096).is_ok()));
        let now = time(&server);
        // Twenty reads of flash, one after another.
        assert!(now > last + 20.0 * 90e-6, "{now} after {last}");
        last = now;
    }
    drop(client);
    assert!(server.stop().end.0 as f64 / 1e9 >= last);
}

/// Several requests of one client at once, each answered once.
#[test]
fn many_requests_at_once_are_all_answered() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    for round in 0..20u8 {
        for i in 0..100 {
            client.send(WRITE, 0, i * 4096, 4096, &[round; 4096]);
        }
        (0..100).for_each(|_| client.reply(0).map(drop).unwrap());
        for i in 0..100 {
            client.send(READ, 0, i * 4096, 4096, &[]);
        }
        (0..100).for_each(|_| assert_eq!(client.reply(4096), Ok(vec![round; 4096])));
    }
    drop(client);
    assert_eq!(server.stop().requests, 4000);
}

/// The power goes and comes back beneath clients that stay connected: flushed data is there, other data is old or new,
/// and stays so for this server and the next.
#[test]
fn a_power_cut_takes_only_what_was_not_flushed() {
    for how in [INSTANT, How { speed: Speed::Real(0.1), ..INSTANT }] {
        let mut server = Server::new(how);
        let mut client = Client::connect(&server.socket());
        let rng = &mut Prng::new(4);
        let blocks = (client.bytes / 4096) as usize;
        let mut values = vec![0u8; blocks];
        let mut lost = 0;
        for round in 1..=20u8 {
            let mut may_be = vec![Vec::new(); blocks];
            let mut write = |client: &mut Client, values: &mut [u8], flushed: bool| {
                for _ in 0..55 + rng.below(9) {
                    let block = rng.below(blocks as u64) as usize;
                    let old = std::mem::replace(&mut values[block], round.wrapping_mul(2) | u8::from(flushed));
                    client.write(0, block as u64 * 4096, &[values[block]; 4096]).unwrap();
                    if !flushed {
                        may_be[block].push(old);
                    }
                }
            };
            write(&mut client, &mut values, true);
            client.ask(FLUSH, 0, 0, 0).unwrap();
            write(&mut client, &mut values, false);
            let answer = server.tell("cut 3ms");
            assert!(answer.starts_with("cut at ") && answer.contains("for 3"), "{answer}");
            assert_eq!(client.ask(FLUSH, 0, 0, 0), Err(5), "what was answered may be lost");
            for (block, value) in values.iter_mut().enumerate() {
                let data = client.read(block as u64 * 4096, 4096).unwrap();
                assert!(data.iter().all(|&byte| byte == data[0]), "block {block} is torn");
                let is_right = data[0] == *value || may_be[block].contains(&data[0]);
                assert!(is_right, "round {round}: block {block} is {} and was {value}", data[0]);
                lost += u32::from(data[0] != *value);
                *value = data[0];
            }
        }
        assert!(lost > 5, "the cuts are too tame: {lost} blocks were lost");
        let stats = server.tell("stats");
        assert!(stats.contains("readpath_device_recoveries_total 21\n"), "{stats}");
        assert!(server.tell("stall").starts_with("error: "));
        drop(client);
        server.stop();
        server.start(how);
        let mut client = Client::connect(&server.socket());
        for (block, value) in values.iter().enumerate() {
            assert_eq!(client.read(block as u64 * 4096, 4096), Ok(vec![*value; 4096]));
        }
        drop(client);
        server.stop();
    }
}

/// Every kind of request answered with FUA is durable after a power cut.
#[test]
fn fua_is_durable_for_every_kind_of_request() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    // Many blocks, so that none is programmed by chance because the buffer is full.
    let offsets = (0..30).map(|i| i * 8192);
    for (command, flags, bytes, after) in [
        (WRITE, FUA, 4096, 2),
        (WRITE, FUA, 512, 2),
        (TRIM, FUA, 4096, 0),
        (ZERO, FUA, 4096, 0),
        (ZERO, FUA, 512, 0),
        (ZERO, FUA | NO_HOLE, 4096, 0),
    ] {
        for offset in offsets.clone() {
            client.write(0, offset, &[1; 4096]).unwrap();
            client.ask(FLUSH, 0, 0, 0).unwrap();
            let data = vec![2; if command == WRITE { bytes as usize } else { 0 }];
            client.send(command, flags, offset, bytes, &data);
            client.reply(0).unwrap();
            server.tell("cut 1ms");
            let read = client.read(offset, bytes).unwrap();
            assert!(read.iter().all(|&byte| byte == after), "{command} of {bytes} bytes, {flags}: {}", read[0]);
        }
    }
    drop(client);
    assert_eq!(server.stop().errors, 0);
}

/// Requests that fail are counted, and reported to the client that made them.
#[test]
fn errors_are_counted() {
    let mut server = Server::new(INSTANT);
    let mut client = Client::connect(&server.socket());
    client.write(FUA, 0, &[1; 4096]).unwrap();
    server.tell("fail read 1");
    assert_eq!(client.read(0, 4096).map(drop), Err(5));
    assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]));
    server.tell("end-of-life on");
    assert_eq!(client.write(0, 0, &[2; 4096]), Err(28));
    assert_eq!(server.counter("readpath_request_errors_total"), 2.0);
    drop(client);
    assert_eq!(server.stop().errors, 2);
}

/// The memory for a client's reads is counted as soon as they are under way.
#[test]
fn a_client_has_no_more_under_way_than_its_share_of_memory() {
    let mut server = Server::new(REAL);
    let mut client = Client::connect(&server.socket());
    server.tell("stall 3600s");
    (0..12).for_each(|_| client.send(READ, 0, 0, 16 << 20, &[]));
    server.wait_for_requests(4.0);
    // The server has received all that it sent by now, since other clients were served in between.
    for _ in 0..5 {
        let mut other = Client::connect(&server.socket());
        assert_eq!(other.ask(99, 0, 0, 1), Err(22));
        assert_eq!(server.counter("readpath_requests_in_flight"), 4.0, "64 MiB are the limit");
    }
    drop(client);
    server.stop();
}

#[test]
fn nothing_is_held_back_when_the_server_ends() {
    for order in ["slow 60s", "stall 60s"] {
        let mut server = Server::new(REAL);
        let mut client = Client::connect(&server.socket());
        server.tell(order);
        client.send(READ, 0, 0, 512, &[]);
        server.wait_for_requests(1.0);
        assert!(server.stop().end < Ns::from_secs(60), "{order}");
        assert_eq!(client.reply(512), Ok(vec![0; 512]), "{order}");
    }
}

/// A cut may keep clients waiting for a minute of the clock, whatever the scale.
#[test]
fn the_longest_cut_is_a_minute_of_the_clock() {
    for (scale, longer) in [(1.0, "61s"), (1000.0, "61ms")] {
        let mut server = Server::new(How { speed: Speed::Real(scale), ..INSTANT });
        let answer = server.tell(&format!("cut {longer}"));
        assert!(answer.starts_with("error: ") && answer.contains("60"), "{scale}: {answer}");
        server.stop();
    }
}

/// A server does not end well if its file is gone.
#[test]
fn a_file_that_was_deleted_or_truncated_is_noticed() {
    for (what, harm) in [
        ("deleted or replaced", (|path| std::fs::remove_file(path)) as fn(&std::path::Path) -> std::io::Result<()>),
        ("truncated", |path| std::fs::OpenOptions::new().write(true).open(path)?.set_len(1 << 20)),
    ] {
        let mut server = Server::new(INSTANT);
        harm(&server.image()).unwrap();
        let error = server.end().err().expect("an error").to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// Every metric that the dashboard shows is one of the server's.
#[test]
fn a_dashboard_shows_what_there_is() {
    let text = include_str!("../../../../docs/grafana.json");
    let mut server = Server::new(INSTANT);
    server.tell("slow read 1ms");
    let stats = server.tell("stats");
    let there: Vec<&str> = stats.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let shown: Vec<&str> = text.split(|c| !is_name(c)).filter(|word| word.starts_with("readpath_")).collect();
    assert!(shown.len() > 15, "{}", shown.len());
    shown.iter().for_each(|name| assert!(there.contains(name), "{name}"));
    server.stop();
}
