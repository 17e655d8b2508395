// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comfort on a command line: completions, manual pages, what the program says of the machine, and tables for other
//! programs.

use crate::common::{EXPERIMENT, HEADER, JOB, Room, json, rows, text};
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

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
        // The description of a command may continue in the next line, further to the right.
        let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.map(|line| line.split_whitespace().next().expect("a name")).filter(|name| *name != "help");
        found.extend(names.map(|name| words.iter().cloned().chain([name.to_owned()]).collect::<Words>()));
    }
    found
}

#[test]
fn every_shell_has_a_script() {
    let room = Room::new();
    for shell in SHELLS {
        assert!(room.good(&["completions", shell]).contains("READPATH_COMPLETE"), "{shell}");
    }
    room.bad(&["completions", "tcsh"], &["invalid value 'tcsh'", "bash"]);
}

/// What bash offers for the last of some words, with the cursor behind it.
fn offered(room: &Room, words: &str) -> Vec<String> {
    // Bash parts words at these.
    let parted = words.replace('=', " = ").replace(':', " : ");
    let mut words: Vec<&str> = parted.split(' ').collect();
    words.retain(|word| !word.is_empty());
    let last = if parted.ends_with(' ') && !parted.ends_with("= ") { "" } else { words.pop().expect("a word") };
    let words = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "source complete.bash; COMP_WORDS=({words} '{last}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _readpath {} '{last}' x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        cargo_bin("readpath").display()
    );
    let output = Command::new("bash").current_dir(room.path(".")).args(["-c", &script]).output().expect("bash");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_names_keys_and_files() {
    let room = Room::with("job.fio", JOB);
    room.write("complete.bash", &room.good(&["completions", "bash"]));
    room.write("own.toml", "");
    room.write("trace.csv", "");
    let is = |words: &str, all: &[&str]| assert_eq!(offered(&room, words), all, "{words}");
    let has = |words: &str, some: &[&str]| {
        let offered = offered(&room, words);
        assert!(some.iter().all(|one| offered.iter().any(|other| other == one)), "{words}: {offered:?}");
    };
    is("readpath trace m", &["mrc"]);
    is("readpath fio --outp", &["--output-format", "--output"]);
    is("readpath fio --fill ", &["sequential", "random", "none"]);
    is("readpath fio --hpb off,prototype-d", &["off,prototype-device"]);
    is("readpath fio --policy lru,co", &["lru,cost-aware"]);
    is("readpath fio --device ufs31-1", &["ufs31-128g"]);
    is("readpath fio --device=ufs31-1", &["ufs31-128g"]);
    is("readpath fio --device o", &["own.toml"]);
    is("readpath fio j", &["job.fio"]);
    is("readpath fio tr", &[""]);
    is("readpath replay tr", &["trace.csv"]);
    is("readpath reproduce tio", &["tiobench"]);
    is("readpath ubi replay --cache nand-page,set", &["nand-page,set-assoc"]);
    is("readpath ubi attach x --cost slc-2", &["slc-2k"]);
    is("readpath fio --set map_cache.si", &["map_cache.size_kib="]);
    is("readpath replay --set map_cache.page_bytes=", &["4096", "16384"]);
    is("readpath compare x --vary hpb=off,dc", &["off,dcm"]);
    is("readpath compare x --vary map_cache.page_bytes=4096,1", &["4096,16384"]);
    has("readpath compare x --vary ", &["hpb=", "policy=", "memory=", "map_cache.size_kib=", "lu[0].blocks="]);
    has("readpath compare ", &["iozone", "job.fio", "trace.csv", "own.toml"]);
    is("readpath break-even x --key firmware.flash", &["firmware.flash_op_us"]);
    has("readpath ", &["fio", "power", "ubi", "dev"]);
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
    assert!(room.read("share/man1/readpath-dev-bench.1").contains("qd16\\-miss"));
    room.good(&["man", "--out", "again"]);
    for page in fs::read_dir(room.path("again")).expect("a folder") {
        let name = page.expect("an entry").file_name().into_string().expect("a name");
        assert_eq!(room.read(&format!("again/{name}")), room.read(&format!("share/man1/{name}")), "{name}");
    }
    room.write("taken", "");
    room.bad(&["man", "--out", "taken"], &["taken"]);
}

/// A script in the folder `bin` of a room.
fn program(room: &Room, name: &str, script: &str) {
    let path = room.path("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
}

#[test]
fn doctor_tells_what_is_there_and_where_to_get_the_rest() {
    let room = Room::new();
    fs::create_dir(room.path("bin")).expect("a folder");
    program(&room, "qemu-system-x86_64", "echo 'QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)'");
    program(&room, "fio", "[ \"$1\" = --version ] && echo fio-3.33");
    // It asks, and has a child that keeps its output open.
    program(&room, "nbdinfo", "/bin/sleep 300 & read answer; /bin/sleep 300");
    program(&room, "chromium-browser", "echo no version >&2; exit 1");
    let run = |args: &[&str]| room.command(args).env("PATH", room.path("bin")).output().expect("the program runs");
    let begun = Instant::now();
    let output = run(&["doctor", "--json"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "nobody is waited for");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let doctor = json(text(&output.stdout));
    assert_eq!(doctor["model"]["works"], true);
    assert!(doctor["model"]["simulated_ios"].as_u64() > Some(0));
    assert!(doctor["machine"]["processors"].as_u64() > Some(0));
    assert!(doctor["machine"]["free_disk_bytes"].is_u64());
    let part = |name: &str| {
        let parts = doctor["parts"].as_array().expect("parts");
        parts.iter().find(|part| part["name"] == name).unwrap_or_else(|| panic!("no {name} in {parts:#?}"))
    };
    for (name, state, version) in [
        ("qemu-system-x86_64", "too old", Some("7.2.22")),
        ("fio", "there", Some("3.33")),
        ("nbdinfo", "there", None),
        ("chromium-browser", "there", None),
        ("nbdcopy", "missing", None),
        ("qemu-img", "missing", None),
    ] {
        let part = part(name);
        assert_eq!((part["state"].as_str(), part["version"].as_str()), (Some(state), version), "{name}");
        let path = (state != "missing").then(|| room.path("bin").join(name));
        assert_eq!(part["path"].as_str(), path.as_ref().and_then(|p| p.to_str()), "{name}");
        assert!(part["for"].as_str().is_some_and(|what| what.len() > 10), "{name}");
    }
    for name in ["/dev/fuse", "fusermount3", "mkfs.ubifs", "ubinize"] {
        assert!(part(name)["debian_12"].as_str().is_some_and(|how| !how.is_empty()), "{name}");
    }
    let output = run(&["doctor"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let page = text(&output.stdout);
    for line in ["qemu-system-x86_64  7.2.22, too old", "fio                 3.33", "processors"] {
        assert!(page.lines().any(|l| l.starts_with(line)), "{line}: {page}");
    }
    assert!(page.contains("apt install libnbd-bin") && !page.contains("apt install fio"), "{page}");
}

/// The cells of CSV by RFC 4180, line by line.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            c => cell.push(c),
        }
    }
    assert!(!is_quoted && cell.is_empty() && line.is_empty(), "every line has an end");
    lines
}

/// Fails unless CSV has just what the rows of a document have.
#[track_caller]
fn has_rows_of(csv: &str, document: &Value) {
    const COLUMNS: [(&str, &str); 19] = [
        ("case", "/case"),
        ("variant", "/variant"),
        ("metric", "/metric"),
        ("unit", "/unit"),
        ("simulated", "/simulated"),
        ("published", "/published"),
        ("error_percent", "/error_percent"),
        ("origin", "/origin"),
        ("low", "/sample/interval/low"),
        ("high", "/sample/interval/high"),
        ("values", "/sample/values"),
        ("base", "/difference/base"),
        ("difference", "/difference/mean"),
        ("difference_low", "/difference/interval/low"),
        ("difference_high", "/difference/interval/high"),
        ("percent", "/difference/percent"),
        ("percent_low", "/difference/percent_interval/low"),
        ("percent_high", "/difference/percent_interval/high"),
        ("finding", "/difference/finding"),
    ];
    let lines = cells(csv);
    assert_eq!(lines[0], COLUMNS.map(|(name, _)| name));
    assert_eq!(lines.len() - 1, rows(document).len());
    let number = |cell: &str| cell.parse::<f64>().unwrap_or_else(|e| panic!("{cell:?}: {e}"));
    for (line, row) in lines[1..].iter().zip(rows(document)) {
        assert_eq!(line.len(), COLUMNS.len(), "{line:?}");
        for (cell, (_, place)) in line.iter().zip(COLUMNS) {
            match row.pointer(place) {
                None | Some(Value::Null) => assert_eq!(cell, "", "{place} of {row}"),
                Some(Value::String(word)) => assert_eq!(cell, word, "{place} of {row}"),
                Some(Value::Array(values)) => {
                    let found: Vec<f64> = cell.split(' ').map(number).collect();
                    let values: Vec<f64> = values.iter().map(|v| v.as_f64().expect("a number")).collect();
                    assert_eq!(found, values, "{place} of {row}");
                }
                Some(value) => assert_eq!(Some(number(cell)), value.as_f64(), "{place} of {row}"),
            }
        }
    }
}

#[test]
fn rows_as_csv_are_those_of_the_document() {
    let room = Room::with("small.toml", &EXPERIMENT.replace("\"reads\"", "'reads, \"4k\"'"));
    let table = room.good(&["reproduce", "small.toml", "--csv", "rows.csv"]);
    assert!(table.contains("A small experiment") && table.contains("random read"), "the table is printed too: {table}");
    let document = json(&room.read("out/small/result.json"));
    let csv = room.read("rows.csv");
    has_rows_of(&csv, &document);
    assert!(csv.contains("\n\"reads, \"\"4k\"\"\",HPB dcm,random_read_throughput,MiB/s,"), "{csv}");
    let output = room.output(&["reproduce", "small.toml", "--csv", "-"]);
    assert_eq!((text(&output.stdout), output.status.code()), (&*csv, Some(0)), "nothing else is on standard output");
    room.json(&["reproduce", "small.toml", "--json", "--csv", "again.csv"]);
    assert_eq!(room.read("again.csv"), csv);
    // The folder is made before the file is begun.
    room.good(&["reproduce", "small.toml", "--out", "new", "--csv", "new/rows.csv"]);
    assert_eq!(room.read("new/rows.csv"), csv);
    for args in [&["compare", "small.toml", "--seeds", "3"][..], &["compare", "small.toml", "--seeds", "1"]] {
        let document = room.document(&[args, &["--json", "--csv", "rows.csv"]].concat());
        has_rows_of(&room.read("rows.csv"), &document);
        let finding = if args[3] == "3" { "shown" } else { "one_seed" };
        assert!(room.read("rows.csv").contains(finding));
    }
}

#[test]
fn every_command_with_tables_of_results_writes_csv() {
    let room = Room::with("job.fio", JOB);
    room.write("trace.csv", &format!("{HEADER}0,R,0,4096,,\n1000,R,8192,4096,,\n"));
    let iozone = ["--", "-r", "4k", "-+n", "-i2", "-t", "2", "-s", "1m"];
    for (args, rest) in [
        (&["fio", "job.fio"][..], &[][..]),
        (&["iozone"], &iozone),
        (&["replay", "trace.csv"], &[]),
        (&["power", "job.fio", "--cuts", "1"], &[]),
        (&["reproduce", "ubi"], &[]),
        (&["compare", "trace.csv"], &[]),
    ] {
        let document = room.json(&[args, &["--json", "--csv", "rows.csv"], rest].concat());
        has_rows_of(&room.read("rows.csv"), &document);
        let output = room.output(&[args, &["--csv", "-"], rest].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), room.read("rows.csv"), "{args:?}");
    }
    // fio's own JSON has no rows; the CSV file has.
    let one = ["fio", "job.fio", "--hpb", "off", "--output-format", "json"];
    room.json(&[&one[..], &["--csv", "rows.csv"]].concat());
    let csv = room.good(&[&one[..], &["--csv", "-", "--output", "fio.json"]].concat());
    assert_eq!(csv, room.read("rows.csv"));
    assert!(json(&room.read("fio.json"))["jobs"].is_array());
    room.bad(&[&one[..], &["--csv", "-"]].concat(), &["--csv - and --output-format json"]);
    room.bad(&["fio", "job.fio", "--csv", "-", "--json"], &["--csv - and --json"]);
    room.bad(&["fio", "job.fio", "--csv", "job.fio"], &["job.fio: this is the input"]);
    room.bad(&["fio", "job.fio", "--csv", "x", "--output", "x"], &["--csv and --output both write to x"]);
    room.bad(&["compare", "job.fio", "--csv", "none/x.csv"], &["none/x.csv: cannot be written"]);
    room.bad(&["reproduce", "all", "--csv", "x.csv"], &["--csv belongs to one experiment"]);
}

/// What the program writes to a terminal of 80 columns, both of its outputs together.
fn on_terminal(room: &Room, variables: &[(&str, &str)], args: &[&str]) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let program = assert_cmd::cargo::cargo_bin("readpath");
    let words = [program.to_str().expect("UTF-8")].into_iter().chain(args.iter().copied()).map(quoted);
    let line = format!("stty cols 80 rows 24; exec {}", words.collect::<Vec<_>>().join(" "));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(room.path("."))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TERM", "xterm-256color")
        .envs(variables.iter().copied())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script(1) runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.is_empty() && !text.contains("panicked"), "{args:?}: {text} {:?}", output.stderr);
    text
}

/// An experiment whose names are far too long for a narrow table, with published values.
fn long_names() -> String {
    let case = "random reads of a small file by four threads at a time";
    let variant = "HPB dcm, in device control mode, as Linux 6.1 does";
    EXPERIMENT.replace("\"reads\"", &format!("\"{case}\"")).replace("\"HPB dcm\"", &format!("\"{variant}\""))
}

#[test]
fn no_color_means_no_escape_sequences() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("long.fio", "[r]\nrw=randread\nbs=4k\nsize=4g\nloops=6\nioengine=libaio\niodepth=8\n");
    let long = ["fio", "long.fio", "--hpb", "off"];
    let plain = [("NO_COLOR", "1")];
    let commands: [&[&str]; 7] =
        [&["--help"], &["fio", "--help"], &["nonsense"], &["fio"], &["reproduce", "small.toml"], &["doctor"], &long];
    for args in commands {
        let text = on_terminal(&room, &plain, args);
        assert!(!text.contains('\u{1b}'), "{args:?}: {text:?}");
    }
    // There is progress all the same, in one line that is replaced again and again.
    let text = on_terminal(&room, &plain, &long);
    let (progress, _) = text.split_once("Reads of 'HPB off'").expect("progress, then results");
    assert!(progress.contains("requests") && progress.contains('%') && !progress.contains('\n'), "{progress:?}");
    let widest = progress.split('\r').map(|line| line.chars().count()).max();
    assert!(widest < Some(80) && progress.ends_with('\r'), "{widest:?} {progress:?}");
    // A terminal that knows no escape sequences gets none from progress; others do, and colours.
    assert!(!on_terminal(&room, &[("TERM", "dumb")], &long).contains('\u{1b}'));
    for args in [&["--help"][..], &["nonsense"], &long] {
        assert!(on_terminal(&room, &[], args).contains('\u{1b}'), "{args:?}");
    }
    assert!(on_terminal(&room, &[("NO_COLOR", "")], &["--help"]).contains('\u{1b}'), "empty is as if not set");
}

#[test]
fn tables_fit_a_terminal_of_80_columns() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("long.toml", &long_names());
    room.write("job.fio", JOB);
    room.write("trace.csv", &format!("{HEADER}0,R,0,4096,,\n1000,R,8192,4096,,\n2000,W,8192,4096,,\n"));
    let commands: [&[&str]; 11] = [
        &["reproduce", "small.toml"],
        &["reproduce", "long.toml"],
        &["compare", "long.toml", "--seeds", "3"],
        &["compare", "job.fio", "--seeds", "2", "--vary", "map_cache.size_kib=1440,4096"],
        &["fio", "job.fio"],
        &["replay", "trace.csv", "--vary", "map_cache.size_kib=256,1024"],
        &["power", "job.fio", "--cuts", "2"],
        &["reproduce", "ubi"],
        &["trace", "mrc", "trace.csv", "--gain", "ufs21-64g"],
        &["doctor"],
        &["--help"],
    ];
    for args in commands {
        let text = on_terminal(&room, &[], args);
        // Sentences go on in the next line by themselves; a table must not.
        let is_sentence = |line: &str| {
            ["Note: ", "Results: ", "Left out: "].iter().any(|begin| line.starts_with(begin))
                || line.contains(" requests simulated in ")
                || line.contains(" touched; ")
                || line.contains('\u{1b}')
        };
        let (_, tables) = text.split_once("\r\n").expect("a title");
        for line in tables.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !is_sentence(line)) {
            assert!(line.chars().count() <= 80, "{args:?}: {} columns: {line}", line.chars().count());
        }
    }
    // Nothing of a name is lost, and no figure is broken.
    let table = on_terminal(&room, &[], &["reproduce", "long.toml"]);
    assert!(table.contains("294.8") && table.split_whitespace().any(|word| word == "threads"), "{table}");
}

#[test]
fn a_dry_run_says_what_would_be_run() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("job.fio", JOB);
    room.write("timed.fio", "[r]\nrw=randread\nsize=4m\ntime_based\nruntime=1\n");
    room.write("trace.csv", &format!("{HEADER}0,R,0,4096,,\n1000,R,8192,4096,,\n"));
    let before = room.files();
    let iozone = ["--", "-r", "4k", "-+n", "-i2", "-t", "2", "-s", "1m"];
    for (args, rest, runs) in [
        (&["reproduce", "small.toml", "--out", "x"][..], &[][..], 2),
        (&["fio", "job.fio"], &[], 2),
        (&["iozone"], &iozone, 2),
        (&["compare", "small.toml", "--seeds", "3"], &[], 6),
        (&["compare", "trace.csv", "--fill", "random", "--seeds", "4"], &[], 8),
        (&["reproduce", "iozone", "--case", "1 GB"], &[], 2),
        (&["hmb", "trace.csv"], &[], 0),
        (&["reproduce", "policies"], &[], 0),
    ] {
        let text = room.good(&[args, &["--dry-run"], rest].concat());
        let planned = room.json(&[args, &["--dry-run", "--json"], rest].concat());
        let total = planned["runs"].as_u64().expect("runs");
        assert!(if runs == 0 { total > 2 } else { total == runs }, "{args:?}: {total}");
        let how_many = if planned["requests"].is_null() { "as their time allows" } else { "about " };
        let last = text.lines().last().expect("a line");
        assert!(last.starts_with(&format!("{total} runs, ")) && last.ends_with("; none was made"), "{text}");
        assert!(last.contains(how_many), "{text}");
        assert_eq!(room.files(), before, "{args:?} leaves nothing");
    }
    let planned = room.json(&["reproduce", "small.toml", "--dry-run", "--json"]);
    let made = room.json(&["reproduce", "small.toml", "--json", "--out", "made"]);
    let (about, exact) = (planned["requests"].as_f64().expect("a number"), made["simulated_ios"].as_f64());
    assert!((about / exact.expect("a number") - 1.0).abs() < 0.01, "{about} {exact:?}");
    let names = |list: &[Value]| {
        let mut names: Vec<_> = list.iter().map(|one| (one["case"].clone(), one["variant"].clone())).collect();
        names.dedup();
        names
    };
    assert_eq!(names(planned["planned"].as_array().expect("a list")), names(rows(&made)));
    // The number of requests within a second is not known in advance.
    let timed = room.good(&["fio", "timed.fio", "--hpb", "off", "--dry-run"]);
    assert!(timed.contains("\n1 run, as many requests as their time allows; none was made\n"), "{timed}");
    // What would be refused is refused.
    room.bad(&["reproduce", "small.toml", "--dry-run", "--case", "none"], &["--case 'none' is not one of: reads"]);
    room.bad(&["reproduce", "ubi", "--dry-run"], &["--dry-run is for experiments on a UFS device"]);
}
