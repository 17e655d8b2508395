// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs to try: they are written, they are the same everywhere, and commands take them.

use crate::common::Room;
use std::fs;

/// Name, bytes and checksum of what is made. A change here changes what the book shows.
const MADE: [(&str, usize, u32); 3] = [
    ("phone.csv", 1_753_492, 3_332_868_793),
    ("server.csv", 3_485_774, 3_726_793_575),
    ("rootfs.ubi", 14_024_704, 3_769_324_506),
];

#[test]
fn they_are_the_same_everywhere() {
    let room = Room::new();
    room.good(&["examples", "try"]);
    let made = MADE.map(|(name, ..)| {
        let bytes = fs::read(room.path("try").join(name)).expect("it was written");
        (name, bytes.len(), crc32fast::hash(&bytes))
    });
    assert_eq!(made, MADE);
}

#[test]
fn every_command_of_the_list_takes_its_example() {
    let room = Room::new();
    let list = room.good(&["examples", "try"]);
    assert_eq!(
        list.replace("try/", "DIR/"),
        room.good(&["examples"]).split("\n\n").next().expect("a list").to_owned() + "\n"
    );
    let commands: Vec<&str> = list.lines().filter_map(|line| line.split_once(": readpath ")).map(|(_, c)| c).collect();
    assert_eq!(commands.len(), list.lines().count(), "a command in each line of {list}");
    assert_eq!(commands.len() + 1, room.files().len(), "and the folder");
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        match words[0] {
            "replay" | "hmb" => {
                let file = words.iter().find(|word| word.starts_with("try/")).expect("a file");
                room.good(&["trace", "info", file]);
            }
            "ubi" => {
                room.good(&words);
                assert!(room.good(&["ubi", "check", "try/rootfs.ubi"]).contains("clean: "));
            }
            "serve" => assert!(room.read("try/sqlite.sh").contains("readpath serve dev.img --run 'sh sqlite.sh'")),
            _ => _ = room.good(&[&words[..], &["--dry-run"]].concat()),
        }
    }
}

#[test]
fn a_file_of_the_user_stays() {
    let room = Room::new();
    room.good(&["examples", "try"]);
    room.good(&["examples", "try"]);
    fs::write(room.path("try/phone.csv"), "mine").expect("it can be written");
    room.bad(&["examples", "try"], &["try/phone.csv", "other contents", "another folder"]);
    assert_eq!(room.read("try/phone.csv"), "mine");
}
