// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every command that README and the book show, page by page in the order of the book, and compares what they
//! print with what the page shows: `make test-book`. Writers of the book need do nothing for that. Files that a page
//! needs, and that none of its commands makes, are in `tests/stand-ins/`.
//!
//! READPATH names the program, and PAGES the pages (parts of their paths; all, if it is not set).

use readpath_testkit::book::{Page, Shown, pages, programs, root};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

/// Commands that are not run here: how they begin, and what runs them instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("make ", "the target itself; .ci/run has most"),
    ("URI=", "for the clients below"),
    ("nbd", "needs libnbd: make test-clients"),
    ("readpath serve dev.img --run 'sh try/sqlite.sh'", "needs nbdfuse and sqlite3: make test-clients"),
    ("qemu-img ", "needs QEMU: make test-clients"),
    ("qemu-io ", "needs QEMU: make test-clients"),
    ("fio ", "needs fio: make test-clients"),
    ("sh probe/out/next/run.sh", "needs fio"),
    ("readpath device probe fit --plan probe/out/next", "needs the results of the fio above"),
    ("mkfs.f2fs ", "in a guest: make test-kernel"),
    ("mount /dev/sda ", "in a guest: make test-kernel"),
    ("readpath device fit docs/examples/review_", "minutes; a sixteenth of one: the tests of the suite, fit::"),
    ("qemu-system-x86_64 ", "needs QEMU 10.1 and a kernel: make test-kernel"),
    ("readpath dev upius guest.json", "needs a guest: make test-kernel"),
    (
        "readpath reproduce iozone --case \"8 GB\" --variant \"HPB dcm\" --sysfs",
        "mounts: the tests of the suite, sysfs::",
    ),
    ("cat /tmp/sys/", "mounts: the tests of the suite, sysfs::"),
    ("readpath dev bench --flat", "ten minutes; with fewer requests: the tests of the suite, bench_flat::"),
    ("man ", "needs man-db"),
    ("pip ", "make test-python"),
    ("hq ", "needs HyperQueue's program; its Python library with the same shards: make test-python"),
];

/// Commands whose numbers depend on the machine: how they begin.
const VARIES: &[&str] = &["readpath serve", "readpath ctl", "readpath dev bench"];

/// Commands whose output is that of this machine, of a moment, or of what a guest wrote.
const NOT_COMPARED: &[&str] = &["readpath doctor", "readpath replay day.rec", "readpath stats", "readpath image rpmb"];

/// Commands that may run while a waiting program runs; any other command ends it.
const COMPANIONS: &[&str] = &[
    "readpath ctl",
    "readpath stats",
    "readpath image info",
    "readpath image create",
    "readpath image check",
    "mkdir",
    "readpath reproduce",
];

/// What a page may leave out at the end of an output.
const SUMMARIES: &[&str] = &[" requests simulated in ", "Results: ", "Note: "];

const PATIENCE: Duration = Duration::from_secs(20);

/// The folder in which the commands of a page run; it looks like a checkout.
struct Room {
    folder: PathBuf,
    waiting: Vec<Waiting>,
    page: String,
    failures: Vec<String>,
}

/// A program that runs until it gets a signal.
struct Waiting {
    line: usize,
    command: String,
    shown: Vec<String>,
    process: Child,
    output: PathBuf,
}

impl Room {
    fn new(page: &Page) -> Room {
        let folder = env::temp_dir().join(format!("book-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        for name in ["bin", "tmp", "home", "target/release"] {
            fs::create_dir_all(folder.join(name)).expect("a folder");
        }
        let program = PathBuf::from(env::var_os("READPATH").expect("READPATH names the program"));
        let program = root().join(program).canonicalize().expect("READPATH is the program");
        for name in ["bin/readpath", "target/release/readpath"] {
            std::os::unix::fs::symlink(&program, folder.join(name)).expect("a link");
        }
        for name in ["docs", "presets", "experiments"] {
            let copied = Command::new("cp").arg("-r").arg(root().join(name)).arg(&folder).status();
            assert!(copied.expect("cp").success());
        }
        let room = Room { folder, waiting: Vec::new(), page: page.path.clone(), failures: Vec::new() };
        let own = page.path.trim_end_matches(".md").replace('/', "-") + ".sh";
        for name in ["all.sh", &own] {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-ins").join(name);
            if script.exists() {
                let output = room.shell(&format!(". {}", script.display())).output().expect("bash");
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        room
    }

    fn shell(&self, text: &str) -> Command {
        let path = format!("{}:{}", self.folder.join("bin").display(), env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", text]).current_dir(&self.folder).stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", self.folder.join("home")).env("PROFILE", self.folder.join("home/profile"));
        shell.env("XDG_RUNTIME_DIR", self.folder.join("tmp")).env("ROOT", root());
        shell.env("SLURM_ARRAY_TASK_ID", "1").env("SLURM_ARRAY_TASK_COUNT", "3").env_remove("COLUMNS");
        shell
    }

    /// Other users of this machine have a /tmp and a /scratch, too.
    fn inside(&self, text: &str) -> String {
        let tmp = format!("{}/tmp/", self.folder.display());
        text.replace("/tmp/", "\u{1}").replace("/scratch/", "\u{1}").replace('\u{1}', &tmp)
    }

    fn fail(&mut self, line: usize, what: &str) {
        println!("FAILED {}:{line}: {what}", self.page);
        self.failures.push(format!("{}:{line}: {what}", self.page));
    }

    fn run(&mut self, shown: &Shown) {
        let begun = Instant::now();
        let text = shown.text.trim_end();
        if let Some((_, reason)) = ELSEWHERE.iter().find(|(begin, _)| text.starts_with(begin)) {
            println!("{}:{}: not run ({reason}): {text}", self.page, shown.line);
            return;
        }
        let companion = COMPANIONS.iter().any(|begin| text.starts_with(begin));
        if !companion {
            self.stop();
        }
        let words = programs(text).concat();
        let watches = words.iter().any(|word| word == "watch" || word == "--watch");
        let waits = words.len() > 1 && ["serve", "attach"].contains(&words[1].as_str()) && !refuses(&shown.output);
        let behind = text.split(" #").next().unwrap_or(text).trim_end().ends_with('&');
        if waits || behind || watches {
            self.start(shown);
            return;
        }
        let command = self.inside(text);
        let mut output = self.shell(&format!("exec 2>&1\n{command}")).output().expect("bash");
        // The server that it asks may not listen yet.
        while companion && !output.status.success() && begun.elapsed() < PATIENCE && !refuses(&shown.output) {
            thread::sleep(Duration::from_millis(100));
            output = self.shell(&format!("exec 2>&1\n{command}")).output().expect("bash");
        }
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{}:{}: {:.1} s: {text}", self.page, shown.line, begun.elapsed().as_secs_f64());
        // A pipe has the status of its last program.
        if output.status.success() == (refuses(&shown.output) && !text.contains('|')) {
            self.fail(shown.line, &format!("{text}: {}\n{printed}", output.status));
        } else {
            self.compare(shown.line, text, &shown.output, &printed);
        }
    }

    fn start(&mut self, shown: &Shown) {
        let text = shown.text.split(" #").next().unwrap_or_default().trim_end().trim_end_matches('&');
        let output = self.folder.join(format!("tmp/waiting-{}", shown.line));
        let file = File::create(&output).expect("a file");
        let mut shell = self.shell(&format!("exec 2>&1\nexec {}", self.inside(text)));
        let process = shell.stdout(file).spawn().expect("bash");
        let mut new =
            Waiting { line: shown.line, command: text.to_owned(), shown: shown.output.clone(), process, output };
        let begun = Instant::now();
        while fs::metadata(&new.output).expect("a file").len() == 0
            && new.process.try_wait().expect("a status").is_none()
            && begun.elapsed() < Duration::from_secs(3)
        {
            thread::sleep(Duration::from_millis(20));
        }
        println!("{}:{}: begun: {text}", self.page, shown.line);
        self.waiting.push(new);
    }

    fn stop(&mut self) {
        for mut program in std::mem::take(&mut self.waiting) {
            if program.process.try_wait().expect("a status").is_none() {
                let pid = program.process.id().to_string();
                assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
            }
            let status = program.process.wait().expect("an end");
            let printed = fs::read_to_string(&program.output).expect("what it printed");
            // Some end by the signal itself.
            if ![Some(0), Some(130), None].contains(&status.code()) {
                self.fail(program.line, &format!("{}: {status}\n{printed}", program.command));
            } else {
                // Pages seldom show the last lines of a server's output.
                let shown: Vec<String> = program.shown.into_iter().chain(["...".to_owned()]).collect();
                self.compare(program.line, &program.command, &shown, &printed);
            }
        }
    }

    fn compare(&mut self, line: usize, command: &str, shown: &[String], printed: &str) {
        if shown.is_empty() || NOT_COMPARED.iter().any(|begin| command.starts_with(begin)) {
            return;
        }
        let printed = printed.replace(&format!("{}/tmp/", self.folder.display()), "/tmp/");
        let varies = VARIES.iter().any(|begin| command.starts_with(begin));
        let plain = |line: &str| if varies || is_measured(line) { masked(line) } else { line.trim_end().to_owned() };
        let filled = |line: &&str| !line.trim().is_empty();
        let printed: Vec<String> = printed.lines().filter(filled).map(plain).collect();
        let shown: Vec<String> = shown.iter().map(String::as_str).filter(filled).map(plain).collect();
        if let Err((missing, near)) = matches(&shown, &printed) {
            let all = printed.join("\n");
            self.fail(
                line,
                &format!("{command}\n  shown:   {missing}\n  printed: {near}\nall that is printed:\n{all}"),
            );
        }
    }
}

/// Whether an output is shown in which the program refuses.
fn refuses(shown: &[String]) -> bool {
    shown.iter().any(|line| line.starts_with("readpath: "))
}

/// Time and memory of this machine.
fn is_measured(line: &str) -> bool {
    ["CPU time", " s each", "MiB at most"].iter().any(|words| line.contains(words))
}

/// A line with `#` for every number, and for every unit of time.
fn masked(line: &str) -> String {
    let (line, more) = line.strip_suffix("...").map_or((line, ""), |begin| (begin, "..."));
    let number = |c: char| c.is_ascii_digit() || ".,".contains(c);
    let mut text = String::new();
    for c in line.chars() {
        let c = if number(c) { '#' } else { c };
        if !(text.ends_with(c) && "# ".contains(c)) {
            text.push(c);
        }
    }
    text.trim_end().replace("# ms", "# s").replace("# us", "# s") + more
}

/// Whether the lines are those, but for what `...` and `…` stand for; else the first that is not there.
fn matches<'l>(shown: &'l [String], printed: &'l [String]) -> Result<(), (&'l str, &'l str)> {
    let mut rest = printed.iter();
    let mut anywhere = false;
    for line in shown {
        if ["...", "…"].contains(&line.trim()) {
            anywhere = true;
            continue;
        }
        let begins = line.strip_suffix("...");
        let same = |found: &&String| begins.map_or(*found == line, |begin| found.starts_with(begin));
        let next = rest.clone().next();
        let found = if anywhere { rest.find(same) } else { rest.next().filter(same) };
        found.ok_or((line.as_str(), next.map_or("(nothing)", String::as_str)))?;
        anywhere = false;
    }
    let expected = |line: &&String| SUMMARIES.iter().any(|words| line.contains(words));
    rest.find(|line| !anywhere && !expected(line)).map_or(Ok(()), |more| Err(("(nothing)", more)))
}

#[test]
#[ignore = "make test-book: minutes"]
fn every_command_of_the_book_does_what_is_shown() {
    let wanted = env::var("PAGES").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let all = pages().into_iter().filter(|page| !page.blocks.is_empty());
    let mut failures = Vec::new();
    for page in all.filter(|page| wanted.is_empty() || wanted.iter().any(|name| page.path.contains(name))) {
        let mut room = Room::new(&page);
        page.blocks.iter().flatten().for_each(|shown| room.run(shown));
        room.stop();
        fs::remove_dir_all(&room.folder).expect("the folder can go");
        failures.append(&mut room.failures);
    }
    assert!(failures.is_empty(), "{} commands do something else:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn what_is_left_out_may_be_anything_and_nothing_else() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let fits = |shown, printed| matches(&lines(shown), &lines(printed)).is_ok();
    assert!(fits("a … d", "a b c d") && fits("a ...", "a b") && fits("a b...", "a bcd"));
    assert!(!fits("a d", "a b c d") && !fits("a … e", "a b c d") && !fits("a", "a b") && !fits("a b", "a"));
    assert_eq!(masked("  12,345 in 0.5 s"), " # in # s");
}
