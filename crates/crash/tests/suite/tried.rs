// SPDX-License-Identifier: MIT OR Apache-2.0
//! States that programs try: how they end, what they are told and what is left behind.

use crate::recorded::{Empty, Recorder};
use readpath_crash::{Budget, Check, CrashError, Found, Hunt, Kept, Log, Outcome, Permitted, Progress, Ran, States};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

/// The disk of a state, for a check that is a test of this program.
pub struct Disk(UnixStream);

impl Disk {
    /// The state that is to be checked, if one is.
    pub fn of_check() -> Option<Disk> {
        Some(Disk::at(Path::new(&std::env::var_os("SOCKET")?)))
    }

    /// The disk at a socket.
    pub fn at(socket: &Path) -> Disk {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        // Fixed newstyle without zeroes, then EXPORT_NAME of the default export.
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Disk(stream)
    }

    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, bytes: u32, data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(7u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.extend(data);
        self.0.write_all(&request).unwrap();
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
    }

    pub fn read(&mut self, offset: u64, bytes: usize) -> Vec<u8> {
        self.ask(0, 0, offset, bytes as u32, &[]);
        let mut data = vec![0; bytes];
        self.0.read_exact(&mut data).unwrap();
        data
    }
}

/// Searches with two threads.
pub fn found(
    empty: &Empty,
    log: &Log,
    states: &impl States,
    words: &[&str],
    budget: Budget,
) -> Result<Found, CrashError> {
    kept(empty, (log, states), words, budget, None)
}

fn kept(
    empty: &Empty,
    (log, states): (&Log, &impl States),
    words: &[&str],
    budget: Budget,
    kept: Option<Kept>,
) -> Result<Found, CrashError> {
    let words = words.iter().map(|&word| word.to_owned()).collect();
    let check = Check { words, limit: Duration::from_secs(60), shows: false };
    let folder = TempDir::new().unwrap();
    let hunt = Hunt {
        base: &empty.base,
        log,
        states,
        check: &check,
        folder: folder.path(),
        threads: 2,
        budget,
        kept,
        stop: &AtomicBool::new(false),
        progress: &Progress::default(),
    };
    let found = hunt.search();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no socket is left");
    found
}

fn some_writes(count: u64) -> Recorder {
    let mut recorder = Recorder::new();
    (0..count).for_each(|i| _ = recorder.write(i * 4096, &[i as u8 + 1; 4096]));
    recorder.order("mark of the end");
    recorder.write(count * 4096, &[9; 4096]);
    recorder
}

/// A shell as check of one state.
fn shell(script: &str, limit: Duration) -> Ran {
    let empty = Empty::new();
    let log = empty.log(&some_writes(3));
    let states = Permitted::new(&log, 1);
    let words = ["sh", "-c", script, "{uri}", "{socket}"].map(str::to_owned).to_vec();
    let folder = TempDir::new().unwrap();
    let hunt = Hunt {
        base: &empty.base,
        log: &log,
        states: &states,
        check: &Check { words, limit, shows: false },
        folder: folder.path(),
        threads: 1,
        budget: Budget::States(1),
        kept: None,
        stop: &AtomicBool::new(false),
        progress: &Progress::default(),
    };
    hunt.one(&states.parse("permitted:sent=5,lost=1").unwrap()).unwrap()
}

#[test]
fn a_check_ends_in_many_ways() {
    let long = Duration::from_secs(60);
    for (script, outcome) in [
        ("exit 0", Outcome::Survived),
        ("exit 7", Outcome::Status(7)),
        ("kill -9 $$", Outcome::Signal(9)),
        ("exec 1>&- 2>&-; exit 3", Outcome::Status(3)),
        // What it leaves in the background does not keep its output, nor anything else, alive.
        ("sleep 1000 & exit 0", Outcome::Survived),
    ] {
        assert_eq!(shell(script, long).outcome, outcome, "{script}");
    }
    let short = Duration::from_millis(300);
    assert_eq!(shell("sleep 1000", short).outcome, Outcome::TimedOut);
    assert_eq!(shell("trap 'echo cleaned; exit 0' TERM; sleep 1000 & wait", short).outcome, Outcome::TimedOut);
}

#[test]
fn a_check_is_told_its_state_and_the_end_of_what_it_says_is_kept() {
    let ran = shell("yes | head -n 100000; echo $STATE, $MARK, $0 $1, $URI $SOCKET", Duration::from_secs(60));
    assert_eq!(ran.outcome, Outcome::Survived);
    assert!(ran.said.len() <= 4096, "{}", ran.said.len());
    let last = ran.said.lines().last().unwrap();
    let socket = last.rsplit(' ').next().unwrap();
    let uri = format!("nbd+unix:///?socket={socket}");
    assert_eq!(last, format!("permitted:sent=5,lost=1, of the end, {uri} {socket}, {uri} {socket}"));
    assert!(!Path::new(socket).exists());
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let empty = Empty::new();
    let log = empty.log(&some_writes(3));
    let states = Permitted::new(&log, 1);
    let search = |words: &[&str]| found(&empty, &log, &states, words, Budget::States(10)).unwrap_err();
    let error = search(&["/no/such/program"]);
    assert!(matches!(&error, CrashError::Start { program, .. } if program == "/no/such/program"), "{error}");
    let error = search(&["sh", "-c", "echo never; exit 5"]);
    assert!(
        matches!(&error, CrashError::Whole { how, said } if how == "exit status 5" && said == "never\n"),
        "{error}"
    );
    let nothing = empty.log(&Recorder::new());
    let found = found(&empty, &nothing, &Permitted::new(&nothing, 1), &["false"], Budget::States(10)).unwrap();
    assert_eq!(found, Found::default(), "nothing was written, so there is nothing to try");
    let mut recorder = Recorder::new();
    recorder.request("write", (0, 4096), &[], (1, 2));
    let error = Log::new(&recorder.recorded(), &empty.base).err().unwrap().to_string();
    assert_eq!(error, "write 1 has no data: record with 'readpath serve --record --data'");
    let mut recorder = Recorder::new();
    recorder.write(4800 * 4096, &[1; 512]);
    let error = Log::new(&recorder.recorded(), &empty.base).err().unwrap().to_string();
    assert!(error.contains("ends beyond the unit"), "{error}");
}

/// A search for an hour of a few states ends at once.
#[test]
fn a_search_for_some_time_ends_when_nothing_new_comes() {
    let empty = Empty::new();
    let log = empty.log(&some_writes(2));
    let hour = Budget::Time(Duration::from_secs(3600));
    let found = found(&empty, &log, &Permitted::new(&log, 1), &["true"], hour).unwrap();
    let (looked_at, all) = found.systematic;
    assert!(looked_at == all && found.looked_at >= all + 10_000 && found.different > 20, "{found:?}");
}

/// Outcomes that are known are not found out again, and all is as if they had not been; what was cut off is.
#[test]
fn a_search_goes_on_where_it_was() {
    let empty = Empty::new();
    let log = empty.log(&some_writes(6));
    let states = Permitted::new(&log, 1);
    let folder = TempDir::new().unwrap();
    let (lines, path) = (folder.path().join("lines"), folder.path().join("kept"));
    // Request 2 must not be lost.
    let script = format!("echo x >>{}; case $STATE in *lost=2*) exit 1;; esac", lines.display());
    let words = ["sh", "-c", &script];
    // As for images, the lock is free when no check is about to start.
    let open_for = |of| loop {
        match Kept::open(&path, of) {
            Err(error) if error.to_string().contains("another search uses it") => std::thread::yield_now(),
            kept => break kept,
        }
    };
    let open = || open_for("this search");
    let search = |budget, from| kept(&empty, (&log, &states), &words, Budget::States(budget), from).unwrap();
    let count = || std::fs::read_to_string(&lines).unwrap().lines().count();
    let all = search(90, None);
    let tries = count();
    assert!(all.different < all.looked_at && !all.failed.is_empty(), "{all:?}");
    std::fs::remove_file(&lines).unwrap();
    search(20, Some(open().unwrap()));
    assert!(open().unwrap().known() > 5);
    let text = std::fs::read_to_string(&path).unwrap();
    let cut = text.len() - 3;
    std::fs::write(&path, &text[..cut]).unwrap();
    let again = search(90, Some(open().unwrap()));
    assert_eq!(Found { known: 0, ..again }, all);
    assert!(again_is_more(count(), tries), "{} tries and {tries}", count());
    assert!(open_for("another").is_err_and(|error| error.to_string().contains("another recording")));
    let held = open().unwrap();
    let error = Kept::open(&path, "this search").err().unwrap().to_string();
    assert!(error.contains("another search uses it"), "{error}");
    drop(held);
    std::fs::write(&path, "x\n").unwrap();
    assert!(open().is_err_and(|error| error.to_string().contains("keeps no outcomes")));
}

/// Rows of the stores below, a block each.
const ROWS: u8 = 12;

/// Not a test unless a state is to be checked: of the rows that were promised each must be there.
#[test]
fn rows_as_check() {
    let Some(mut disk) = Disk::of_check() else { return };
    let promised: u8 = std::env::var("MARK").unwrap().parse().unwrap_or(0);
    assert!((1..=promised).all(|row| disk.read(u64::from(row) * 4096, 1) == [row]), "{promised} were promised");
}

/// Where rows are promised that are not durable, a failing state is reduced to one of them: the first that was promised
/// before it was sent, or one that is lost just after its promise.
#[test]
fn a_failing_state_is_reduced_to_one_promise() {
    let empty = Empty::new();
    let row = |recorder: &mut Recorder, row: u8| recorder.write(u64::from(row) * 4096, &[row; 4096]);
    let mark = |recorder: &mut Recorder, row: u8| recorder.order(&format!("mark {row}"));
    let (mut late, mut lost) = (Recorder::new(), Recorder::new());
    row(&mut late, 13);
    let promises: Vec<u64> = (1..=ROWS).map(|n| mark(&mut late, n)).collect();
    (1..=ROWS).for_each(|n| _ = row(&mut late, n));
    let rows: Vec<(u64, u64)> = (1..=ROWS).map(|n| (row(&mut lost, n), mark(&mut lost, n))).collect();
    let exe = std::env::current_exe().unwrap().display().to_string();
    let smallest = |recorder: &Recorder| {
        let log = empty.log(recorder);
        let words = [&exe, "--exact", "tried::rows_as_check", "--nocapture"];
        let found = found(&empty, &log, &Permitted::new(&log, 1), &words, Budget::States(100)).unwrap();
        found.reduced.into_iter().next().expect("a state that fails")
    };
    let first = smallest(&late);
    assert_eq!((first.name, first.losses), (format!("permitted:marked={}", promises[0]), Vec::new()));
    assert_eq!(first.moment, format!("power goes behind mark {} '1'", promises[0]));
    let one = smallest(&lost);
    let names = rows.iter().map(|(row, mark)| format!("permitted:marked={mark},lost={row}"));
    assert!(names.clone().any(|name| name == one.name) || one.name == "permitted:marked=2,lost=all", "{one:?}");
    assert!(one.losses.len() == 1, "{one:?}");
}

/// Reducing looks at a few states more when less is known; one line was cut off.
fn again_is_more(tries: usize, at_once: usize) -> bool {
    (at_once..=at_once + 20).contains(&tries)
}
