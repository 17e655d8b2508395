// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes the program at home on a command line: completions, manual pages.

use crate::common::Room;
use std::fs;
use std::process::Command;

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

/// The words of a command behind the program's name.
type Words = Vec<String>;

/// Every command that `--help` names, with those below it; the program itself comes first.
fn commands(room: &Room) -> Vec<Words> {
    let mut found: Vec<Words> = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        let words = found[at].clone();
        at += 1;
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = room.good(&args);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // What is said of a command may go on below it, further to the right.
        let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.map(|line| line.split_whitespace().next().expect("a name")).filter(|name| *name != "help");
        found.extend(names.map(|name| words.iter().cloned().chain([name.to_owned()]).collect::<Words>()));
    }
    found
}

#[test]
fn completions_know_every_command_and_option() {
    let room = Room::new();
    let commands = commands(&room);
    assert!(commands.len() > 40 && commands.contains(&vec!["device".into(), "probe".into(), "plan".into()]));
    for shell in SHELLS {
        let text = room.good(&["completions", shell]);
        for name in commands.iter().filter_map(|words| words.last()) {
            assert!(text.contains(name.as_str()), "{shell}: {name}");
        }
        assert!(text.contains("trace-io-limit") && text.contains("prototype-device"), "{shell}");
        assert_eq!(text, room.good(&["completions", shell]), "{shell} is always told the same");
    }
    room.bad(&["completions", "tcsh"], &["invalid value 'tcsh'", "bash"]);
}

#[test]
fn bash_takes_its_completions() {
    let room = Room::new();
    room.write("complete.bash", &room.good(&["completions", "bash"]));
    let bash = |script: &str| {
        let output = Command::new("bash").current_dir(room.path(".")).args(["-c", script]).output().expect("bash");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    bash("bash -n complete.bash");
    let complete = |words: &str, last: &str, before: &str| {
        bash(&format!(
            "source complete.bash; COMP_WORDS=({words} '{last}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _readpath readpath '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\""
        ))
    };
    assert_eq!(complete("readpath trace", "m", "trace"), "mrc\n");
    assert_eq!(complete("readpath fio --precondition", "", "--precondition"), "sequential random none\n");
    // The other name of --out, which main gives it.
    assert_eq!(complete("readpath replay", "--outp", "replay"), "--output\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let room = Room::new();
    let commands = commands(&room);
    let said = room.good(&["man", "--out", "share/man1"]);
    assert_eq!(said, format!("share/man1: {} pages; man -l share/man1/readpath.1 shows one\n", commands.len()));
    for words in &commands {
        let name = [vec!["readpath".to_owned()], words.clone()].concat().join("-");
        let page = room.read(&format!("share/man1/{name}.1"));
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
            assert_eq!(page.matches(&format!(".SH {section}\n")).count(), 1, "{name}: {section}");
        }
        assert!(page.contains(&format!(".TH {name} 1 ")), "{name}: {page}");
    }
    assert_eq!(fs::read_dir(room.path("share/man1")).expect("a folder").count(), commands.len());
    // What only main adds is there too.
    assert!(room.read("share/man1/readpath-replay.1").contains("[other names: \\-\\-output]"));
    assert!(room.read("share/man1/readpath-bench.1").contains("qd16\\-miss"));
    room.good(&["man", "--out", "again"]);
    for page in fs::read_dir(room.path("again")).expect("a folder") {
        let name = page.expect("an entry").file_name().into_string().expect("a name");
        assert_eq!(room.read(&format!("again/{name}")), room.read(&format!("share/man1/{name}")), "{name}");
    }
    room.write("taken", "");
    room.bad(&["man", "--out", "taken"], &["taken"]);
}
