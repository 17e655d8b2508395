// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio job files: layout, defaults, every kind of error with its line. Knows only the public interface.

use std::io;
use std::path::Path;

use proptest::prelude::*;
use readpath_kit::Ns;
use readpath_workload::fio::{self, Context, JobError};
use readpath_workload::{Io, IoKind, Limits, Workload};

/// 4 GiB.
const CX: Context = Context { unit_blocks: &[1 << 20], zones: &[], seed: 1, options: &[], defaults: "" };

fn no_files(_: &Path) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

fn good(text: &str) -> Workload {
    fio::parse("t.fio", text, &no_files, &CX).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn bad(text: &str) -> JobError {
    fio::parse("t.fio", text, &no_files, &CX).map(|_| ()).expect_err(text)
}

fn requests(work: &Workload, phase: usize, job: usize, n: usize) -> Vec<Io> {
    let mut stream = work.phases[phase].jobs[job].stream.clone();
    let mut out = vec![Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false }; n];
    let n = stream.fill(&mut out);
    out.truncate(n);
    out
}

#[test]
fn disks_are_the_units_of_a_device() {
    let units = Context { unit_blocks: &[1 << 20, 1 << 18], zones: &[], seed: 1, options: &[], defaults: "" };
    let two = |text: &str| fio::parse("t", text, &no_files, &units);
    let work = two("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n[c]\nsize=1m\n").unwrap();
    let files: Vec<_> = work.files.iter().map(|f| (f.name.as_str(), f.lun, f.blocks)).collect();
    assert_eq!(files, [("/dev/sda", 0, 1 << 20), ("/dev/sdb", 1, 1 << 18), ("c.0.0", 0, 256)]);
    let jobs: Vec<_> = work.phases[0].jobs.iter().map(|j| j.lun).collect();
    assert_eq!(jobs, [0, 1, 0]);
    for name in ["/dev/sdc", "/dev/sdb1", "/dev/mmcblk0"] {
        let error = two(&format!("[a]\nfilename={name}\n")).unwrap_err().to_string();
        assert!(error.starts_with("t:2: ") && error.contains("name one of /dev/sda, /dev/sdb"), "{error}");
        // On a device with one unit, every name means the whole unit.
        assert_eq!(good(&format!("[a]\nfilename={name}\n")).files[0].lun, 0);
    }
    // Two names for the only unit are an error; the same name twice is not.
    let one = fio::parse("t", "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n", &no_files, &CX);
    let error = one.unwrap_err().to_string();
    assert!(error.starts_with("t:4: \"/dev/sda\" and \"/dev/sdb\": the device has one logical unit"), "{error}");
    assert_eq!(good("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sda\n").files.len(), 1);
}

#[test]
fn defaults_are_fios() {
    let work = good("[job]\nsize=1m\n");
    assert_eq!((work.name.as_str(), work.phases.len(), work.phases[0].name.as_str()), ("t.fio", 1, "job"));
    let job = &work.phases[0].jobs[0];
    assert_eq!((job.name.as_str(), job.iodepth, job.group, job.ramp), ("job", 1, 0, Ns::ZERO));
    assert_eq!(job.limits, Limits { bytes: Some(1 << 20), ios: None, runtime: None });
    assert_eq!((job.think.time, job.think.every, job.start_delay, job.rate_bytes), (Ns::ZERO, 1, Ns::ZERO, [None; 3]));
    assert_eq!(job.fio.options.as_deref(), Some(&[("size".to_owned(), "1m".to_owned())][..]));
    assert_eq!((&*job.fio.jobname, job.fio.groupid, job.fio.iodepth), ("job", 0, 1));
    assert_eq!(work.groups, ["job"]);
    assert_eq!((work.files[0].name.as_str(), work.files[0].block, work.files[0].blocks), ("job.0.0", 0, 256));
    let list = requests(&work, 0, 0, 1000);
    assert_eq!(list.len(), 256);
    assert!((0u32..).zip(&list).all(|(i, io)| *io == Io { block: i, blocks: 1, kind: IoKind::Read, fua: false }));
    assert_eq!(work.notes, ["t.fio:1: no page cache is modelled, requests reach the device as with direct=1"]);
}

#[test]
fn globals_apply_to_later_jobs_and_comments_are_cut() {
    let text = "; a comment\n[global]\nrw=randread ; \
                why\nblocksize=8k\nioengine=io_uring\niodepth=4\nbs=8k\n[one]\nsize=64k\n# more\n\
                [global]\niodepth=8\nioengine=libaio\n[two]\nsize=64k\nbs=4k\ndirect\n";
    let work = good(text);
    let jobs = &work.phases[0].jobs;
    assert_eq!((jobs[0].iodepth, jobs[1].iodepth), (4, 8));
    assert_eq!((work.files[0].block, work.files[1].block), (0, 16));
    let list = requests(&work, 0, 0, 100);
    let mut blocks: Vec<u32> = list.iter().map(|io| io.block).collect();
    blocks.sort_unstable();
    assert_eq!(blocks, [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(requests(&work, 0, 1, 100).len(), 16);
    // As in fio: in order, the first name of each option, with its last value.
    let own: Vec<&str> = jobs[1].fio.options.iter().flat_map(|o| o.iter()).map(|o| o.0.as_str()).collect();
    assert_eq!(own, ["size", "bs", "direct"]);
    let global: Vec<(&str, &str)> = work.global_options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(global, [("rw", "randread"), ("bs", "8k"), ("ioengine", "libaio"), ("iodepth", "8")]);
    assert_eq!(work.phases[0].name, "one and 1 more");
}

#[test]
fn clones_phases_and_groups() {
    let text = "[global]\nrw=randread\nsize=1m\n[a]\nnumjobs=3\ngroup_reporting\n[b]\ngroup_reporting\n\
                [c]\nstonewall\nnumjobs=2\n[c]\n[d]\nnew_group\ngroup_reporting\n";
    let work = good(text);
    let names = |p: usize| work.phases[p].jobs.iter().map(|j| j.name.as_str()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["a.0", "a.1", "a.2", "b"], vec!["c.0", "c.1", "c", "d"]));
    let groups = |p: usize| work.phases[p].jobs.iter().map(|j| j.group).collect::<Vec<_>>();
    assert_eq!((groups(0), groups(1)), (vec![0, 0, 0, 0], vec![1, 2, 3, 4]));
    assert_eq!(work.groups, ["a", "c.0", "c.1", "c", "d"]);
    let files: Vec<&str> = work.files.iter().map(|f| f.name.as_str()).collect();
    // The two sections called c share the file of clone 0, as in fio.
    assert_eq!(files, ["a.0.0", "a.1.0", "a.2.0", "b.0.0", "c.0.0", "c.1.0", "d.0.0"]);
    let order = |job: usize| requests(&work, 0, job, 256).iter().map(|io| io.block % 256).collect::<Vec<_>>();
    assert_ne!(order(0), order(1));
    assert_eq!(work.phases[0].jobs[0].fio.options, work.phases[0].jobs[2].fio.options);
    let ids = |p: usize| work.phases[p].jobs.iter().map(|j| j.fio.groupid).collect::<Vec<_>>();
    assert_eq!((ids(0), ids(1)), (vec![0, 0, 0, 0], vec![1, 1, 1, 2]));
    let called = |p: usize| work.phases[p].jobs.iter().map(|j| &*j.fio.jobname).collect::<Vec<_>>();
    assert_eq!((called(0), called(1)), (vec!["a", "a", "a", "b"], vec!["c", "c", "c", "d"]));
}

/// Names and groups that fio 3.33 printed for the same jobs.
#[test]
fn names_and_groups_are_those_of_fio() {
    let entries = |text: &str| {
        let work = good(&format!("[global]\nrw=randread\nsize=64k\n{text}"));
        let jobs: Vec<_> = work.phases.iter().flat_map(|p| &p.jobs).collect();
        let of = |g: usize| jobs.iter().filter(|j| j.group == g).collect::<Vec<_>>();
        let entry = |g: usize| format!("{} {} {}", of(g)[0].fio.jobname, of(g)[0].fio.groupid, of(g).len());
        (0..work.groups.len()).map(entry).collect::<Vec<_>>()
    };
    assert_eq!(
        entries(
            "[a]\nnumjobs=3\ngroup_reporting\n[b]\ngroup_reporting\n[c]\nstonewall\nnumjobs=2\n[c]\n[d]\nnew_group\n\
             group_reporting\n[e]\nnumjobs=2\n[f]\nnew_group\n[g]\nwait_for_previous\ngroup_reporting=1\n[h]\nnumjobs=2\n\
             group_reporting\n"
        ),
        ["a 0 4", "c 1 1", "c 1 1", "c 1 1", "d 2 1", "e 2 1", "e 2 1", "f 3 1", "g 4 3"]
    );
    // A job under group_reporting joins the entry before it, of any job.
    assert_eq!(entries("[a]\ngroup_reporting\n[b]\n[c]\ngroup_reporting\n"), ["a 0 1", "b 0 2"]);
    assert_eq!(entries("stonewall\n[a]\nnumjobs=2\n[b]\n[c]\nname=zz\n"), ["a 0 1", "a 0 1", "b 1 1", "zz 2 1"]);
    // Only the first clone has the name, and files are named after the section.
    let text = "[b]\nname=foo\nnumjobs=3\nsize=64k\n";
    assert_eq!(entries(text), ["foo 0 1", "b 0 1", "b 0 1"]);
    let work = good(text);
    assert_eq!(work.files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["b.0.0", "b.1.0", "b.2.0"]);
    // The clones behind the first are made from the last down.
    assert_eq!(work.phases[0].jobs.iter().map(|j| j.group).collect::<Vec<_>>(), [0, 2, 1]);
}

/// Requests that fio 3.33 made of 4 KiB (or `bs`) with the same options.
#[test]
fn amounts_are_those_of_fio() {
    for (options, ios) in [
        ("size=64k\nio_size=200k", 50),
        ("size=64k\nloops=3", 48),
        ("size=64k\nio_size=200k\nloops=2", 64),
        ("size=64k\nio_size=16k\nloops=3", 12),
        ("size=64k\nio_size=100k\nloops=2", 32),
        ("size=64k\nio_size=100k\nloops=3", 48),
        ("size=64k\nfilesize=128k\nloops=3", 48),
        ("size=64k\nfilesize=1m\nio_size=256k", 64),
        ("size=1m\nfilesize=64k", 16),
        ("size=50%\nfilesize=1m", 128),
        ("filesize=64k", 16),
        ("size=1m\nbs=12k", 85),
        ("size=1m\nbs=12k\nio_size=2m", 170),
        ("size=1m\nbs=12k\nio_size=1100k", 92),
        ("size=100k\nbs=12k\nio_size=100k", 8),
        ("size=64k\nrw=read:8k", 6),
        ("size=64k\nrw=read:8k\nloops=2", 12),
        ("size=64k\nrw=read:8k\nio_size=64k", 16),
        ("size=64k\nrw=read:8k\nio_size=120k\nloops=2", 30),
        ("size=64k\nrw=read:28k", 16),
        ("size=320k\nrw=read:28k\nio_size=120k\nloops=2", 60),
        ("size=10000", 2),
        ("size=64k\nfilesize=10000", 2),
    ] {
        let work = good(&format!("[a]\nrw=read\n{options}\n"));
        let list = requests(&work, 0, 0, 1000);
        assert_eq!(list.len(), ios, "{options}");
    }
    let files = |text: &str| good(text).files.iter().map(|f| f.blocks).collect::<Vec<_>>();
    assert_eq!(files("[a]\nsize=1m\noffset=512k\n"), [384]);
    assert_eq!(files("[a]\nsize=1m\nnumjobs=2\noffset_increment=512k\n"), [256, 384]);
    // With filesize random requests go anywhere in the file, unless size is a share of it.
    let region = |options: &str| good(&format!("[a]\nrw=randread\n{options}\n")).phases[0].jobs[0].stream.region();
    assert_eq!(region("size=64k\nfilesize=1m"), (0, 256));
    assert_eq!(region("size=50%\nfilesize=1m"), (0, 128));
    let work = good("[a]\nfilename=x\nfilesize=1000k\nsize=100%\nnumjobs=2\noffset_increment=10%\n");
    assert_eq!(work.phases[0].jobs[1].stream.region(), (25, 225));
    // A third of 250 blocks, up to a multiple of the shortest request.
    assert_eq!(region("filename=x\nfilesize=1000k\noffset=33%"), (83, 167));
    assert_eq!(region("filename=x\nfilesize=1000k\noffset=33%\nbs=16k"), (84, 166));
    assert_eq!(region("size=1m\noffset=10%"), (26, 256));
    let flushes = requests(&good("[a]\nrw=write\nsize=64k\nfsync=4\n"), 0, 0, 99);
    assert_eq!(flushes.iter().filter(|io| io.kind == IoKind::Flush).count(), 3);
}

#[test]
fn synchronous_engines_have_one_request_in_flight() {
    let depth = |options: &str| {
        let work = good(&format!("[a]\nsize=1m\ndirect=1\n{options}"));
        let job = &work.phases[0].jobs[0];
        assert_eq!(job.fio.iodepth, 32, "fio reports it as typed");
        (job.iodepth, work.notes.join("\n"))
    };
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"] {
        let (depth, notes) = depth(&format!("ioengine={engine}\niodepth=32\n"));
        assert_eq!(depth, 1, "{engine}");
        assert!(notes.starts_with("t.fio:5: iodepth=32 counts as 1, as in fio"), "{notes}");
        assert!(notes.contains(&format!("engine {engine}, which is synchronous; ioengine=libaio keeps 32")), "{notes}");
    }
    for engine in ["libaio", "io_uring", "posixaio", "windowsaio"] {
        assert_eq!(depth(&format!("ioengine={engine}\niodepth=32\n")), (32, String::new()), "{engine}");
    }
    let (one, notes) = depth("iodepth=32\n");
    assert_eq!(one, 1);
    assert!(notes.starts_with("t.fio:4: iodepth=32 counts as 1") && notes.contains("fio takes psync"), "{notes}");
    assert!(good("[a]\nsize=1m\ndirect=1\niodepth=1\n").notes.is_empty());
}

/// Requests as letter and unit of 64 KiB, as fio 3.33 wrote them with `write_iolog`.
fn log(options: &str) -> String {
    let work = good(&format!("[a]\nbs=64k\n{options}\n"));
    let letter = |kind| ["r", "w", "t", "f"][kind as usize];
    let one = |io: &Io| format!("{}{}", letter(io.kind), io.block / 16);
    requests(&work, 0, 0, 1000).iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_was_written_is_read_back_as_fio_does() {
    let [w, r] = ["w", "r"].map(|k| (0..16).map(|i| format!("{k}{i}")).collect::<Vec<_>>());
    assert_eq!(log("rw=write\nsize=1m\nverify=crc32c"), [&w[..], &r].concat().join(" "));
    let fours = (0..4).flat_map(|i| [&w[4 * i..4 * i + 4], &r[4 * i..4 * i + 4]].concat()).collect::<Vec<_>>();
    assert_eq!(log("rw=write\nsize=1m\nverify=crc32c\nverify_backlog=4"), fours.join(" "));
    let twice = "w0 w1 w2 r0 r1 r2 w0 w1 w2 r0 r1 r2";
    assert_eq!(log("rw=write\nsize=192k\nverify=crc32c\nloops=2"), twice);
    assert_eq!(log("rw=write\nsize=192k\nverify=crc32c\nend_fsync=1"), "w0 w1 w2 f0 r0 r1 r2");
    assert_eq!(log("rw=write\nsize=256k\nverify=md5\nverify_backlog=3"), "w0 w1 w2 r0 r1 r2 w3 r3");
    // Of a mix only writes are read back, in their order.
    let mix = log("rw=randrw\nsize=4m\nverify=crc32c\nverify_backlog=0");
    let all: Vec<&str> = mix.split(' ').collect();
    let written: Vec<String> =
        all[..64].iter().filter(|io| io.starts_with('w')).map(|io| io.replace('w', "r")).collect();
    assert!((20..44).contains(&written.len()));
    assert_eq!(all[64..], written);
}

#[test]
fn places_are_those_of_fio() {
    assert_eq!(log("rw=read:-128k\nsize=1m"), "r0 r14 r13 r12 r11 r10 r9 r8 r7 r6 r5 r4 r3 r2 r1 r0");
    assert_eq!(log("rw=read:-192k\nsize=512k"), "r0 r5 r3 r1 r5 r3 r1 r5");
    assert_eq!(log("rw=read:128k\nsize=256k"), "r0 r3");
    assert_eq!(log("rw=read:128k\nsize=320k"), "r0 r3 r0 r3 r0");
    assert_eq!(log("rw=read:-64k\nsize=256k"), "r0 r0 r0 r0");
    let zones = "filesize=2m\nsize=768k\nzonemode=strided\nzonesize=256k\nzoneskip=512k";
    assert_eq!(log(&format!("rw=read\n{zones}")), "r0 r1 r2 r3 r12 r13 r14 r15 r24 r25 r26 r27");
    assert_eq!(log(&format!("rw=read\n{zones}\nzonerange=512k")), "r0 r1 r2 r3 r16 r17 r18 r19 r0 r1 r2 r3");
    assert_eq!(log(&format!("rw=write\n{zones}\nzonesize=200k")).split(' ').nth(4), Some("w11"));
    // Zones are not cut by `size`, which says how much is moved.
    assert!(
        log(&format!("rw=read\n{}", zones.replace("filesize=2m", "filename=/dev/sda"))).ends_with("r24 r25 r26 r27")
    );
    let fill = good("[a]\nfilename=x\nrw=write\nfill_device=1\n[b]\nsize=1m\n");
    assert_eq!(fill.files.iter().map(|f| f.blocks).collect::<Vec<_>>(), [(1 << 20) - 256, 256]);
}

#[test]
fn variables_come_from_the_environment() {
    let load = |path: &Path| match path.to_str() {
        Some("${SIZE}") => Ok("64k".to_owned()),
        Some("${EMPTY}") => Ok(String::new()),
        _ => no_files(path),
    };
    let of = |text: &str| fio::parse("t.fio", text, &load, &CX);
    let work = of("[a]\nsize=${SIZE}\nfilename=x${EMPTY}${SIZE}\nbs=$pagesize\n").unwrap();
    assert_eq!((work.files[0].name.as_str(), work.files[0].blocks), ("x64k", 16));
    let own = work.phases[0].jobs[0].fio.options.as_ref().unwrap();
    assert_eq!(own[0], ("size".to_owned(), "64k".to_owned()), "reports have the value");
    let e = of("[a]\nsize=${NOWHERE}\n").unwrap_err().to_string();
    assert_eq!(e, "t.fio:2: the environment has no variable NOWHERE; give it before the command: NOWHERE=VALUE");
    for word in ["$ncpus", "$mb_memory"] {
        let e = of(&format!("[a]\nnumjobs={word}\n")).unwrap_err().to_string();
        assert!(e.starts_with(&format!("t.fio:2: {word} says what machine fio runs on")), "{e}");
    }
}

#[test]
fn typed_options_are_defaults_of_a_file() {
    let with = |defaults: &str, text: &str| fio::parse("t.fio", text, &no_files, &Context { defaults, ..CX });
    let work = with("[global]\nsize=64k\nbs=8k\n", "[a]\n[b]\nsize=1m\n[global]\nbs=4k\n[c]\n").unwrap();
    assert_eq!(work.files.iter().map(|f| f.blocks).collect::<Vec<_>>(), [16, 256, 16]);
    assert_eq!([0, 1, 2].map(|job| requests(&work, 0, job, 1000).len()), [8, 128, 16]);
    assert_eq!(work.global_options[0], ("size".to_owned(), "64k".to_owned()));
    let e = with("[global]\nbs=5000\n", "[a]\nsize=1m\n").unwrap_err().to_string();
    assert!(e.starts_with("--bs=5000: bs: a block size must be a multiple of 4096"), "{e}");
    let work = with("[global]\nnice=1\n", "[a]\nsize=1m\ndirect=1\n").unwrap();
    assert_eq!(work.notes, ["--nice=1: option nice has no meaning here and is ignored"]);
}

#[test]
fn jobs_wait_and_end_as_fio_says() {
    use readpath_workload::Ends;
    let phases = |text: &str| good(text).phases.iter().map(|phase| phase.jobs.len()).collect::<Vec<_>>();
    let text = "[global]\nsize=1m\n[a]\nnumjobs=2\n[b]\nwait_for=a\n[c]\n[d]\nwait_for=a\n[e]\nstonewall\n";
    assert_eq!(phases(text), [2, 3, 1]);
    let work = good("[global]\nsize=1m\nexitall\n[a]\n[b]\nexit_what=stonewall\n[c]\nexitall=0\n");
    assert_eq!(
        work.phases[0].jobs.iter().map(|j| j.ends).collect::<Vec<_>>(),
        [Ends::Group, Ends::Phase, Ends::Itself]
    );
    let work = good("[global]\nsize=1m\nexitall\nexit_what=all\ndirect=1\n[a]\n[b]\n[c]\nstonewall\n[d]\n");
    assert_eq!((work.phases.len(), work.phases[0].jobs.len()), (1, 2));
    assert_eq!(work.notes, ["t.fio:8: exit_what=all: this job and those after it never run"]);
}

#[test]
fn names_of_files_are_those_of_fio() {
    let names = |options: &str| {
        good(&format!("[a]\nsize=1m\n{options}\n")).files.iter().map(|f| f.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("filename=/data/a\\:b"), ["/data/a:b"]);
    assert_eq!(names("filename_format=$jobname.$filenum.$jobnum\nnumjobs=2"), ["a.0.0", "a.0.1"]);
    assert_eq!(names("filename_format=shared\nnumjobs=2"), ["shared"]);
}

#[test]
fn what_would_change_the_result_is_an_error() {
    for options in ["rw=trimwrite", "rw=write\nnumber_ios=4", "rw=rw\nrate=1m"] {
        let e = bad(&format!("[a]\nsize=1m\nverify=crc32c\n{options}\n"));
        assert_eq!((e.line, e.key.as_deref()), (3, Some("verify")));
        assert!(e.message.contains("do_verify=0"), "{e}");
    }
    for options in ["rw=randread\nverify=crc32c", "rw=write\nverify=crc32c\ndo_verify=0", "rw=write\nverify=0"] {
        let work = good(&format!("[a]\nsize=1m\ndirect=1\n{options}\n"));
        assert_eq!(work.notes.iter().any(|n| n.contains("no data is checked")), options != "rw=write\nverify=0");
        assert_eq!(requests(&work, 0, 0, 1000).len(), 256);
    }
    let neutral =
        "pre_read=0\nverify_backlog_batch=0\nunified_rw_reporting=none\nverify_only=0\nstats=1\nlockfile=none\n";
    assert!(good(&format!("[a]\nsize=1m\ndirect=1\n{neutral}")).notes.is_empty());
    for option in
        ["pre_read=1", "verify_backlog_batch=8", "unified_rw_reporting=mixed", "unified_rw_reporting=1", "create_only"]
    {
        let e = bad(&format!("[a]\nsize=1m\n{option}\n"));
        assert_eq!((e.line, e.key.as_deref()), (3, option.split('=').next()));
        assert!(e.message.contains("is not modelled; leave it out, or give"), "{e}");
    }
}

#[test]
fn files_are_shared_by_name_and_devices_are_whole() {
    let text = "[a]\nfilename=x\nsize=1m\n[b]\nfilename=x\nsize=2m\noffset=1m\n[c]\nfilename=x\nsize=50%\n[d]\nfilename=x\n\
                [e]\nfilename=/dev/sda\noffset=25%\nsize=8k\n[f]\nfilename=/dev/sda\n[g]\nsize=4k\ndirectory=mnt\n";
    let work = good(text);
    let files: Vec<(&str, u32, u32)> = work.files.iter().map(|f| (f.name.as_str(), f.block, f.blocks)).collect();
    assert_eq!(files, [("x", 0, 768), ("/dev/sda", 0, 1 << 20), ("mnt/g.0.0", 768, 1)]);
    let regions: Vec<(u32, u32)> = work.phases[0].jobs.iter().map(|j| j.stream.region()).collect();
    assert_eq!(regions, [(0, 256), (256, 512), (0, 384), (0, 768), (1 << 18, 2), (0, 1 << 20), (768, 1)]);
    let work = good("[a]\nfilename=/dev/sda\nsize=1m\noffset_increment=1m\nnumjobs=3\n");
    let starts: Vec<u32> = work.phases[0].jobs.iter().map(|j| j.stream.region().0).collect();
    assert_eq!(starts, [0, 256, 512]);
    let work = good("[a]\nfilesize=1m\nsize=64k\noffset=512k\n");
    assert_eq!(work.phases[0].jobs[0].stream.region(), (128, 128));
    assert_eq!(work.phases[0].jobs[0].limits.bytes, Some(64 << 10));
}

#[test]
fn amounts_times_and_pacing() {
    let job = |options: &str| good(&format!("[a]\nsize=1m\n{options}")).phases.remove(0).jobs.remove(0);
    assert_eq!(job("io_size=50%").limits.bytes, Some(512 << 10));
    assert_eq!(job("bs=12k\nrw=randread").limits.bytes, Some((85 * 12) << 10));
    assert_eq!(job("rw=trimwrite").limits.bytes, Some(2 << 20));
    assert_eq!(job("number_ios=9").limits.ios, Some(9));
    assert_eq!(job("kb_base=1000\nio_size=1k").limits.bytes, Some(4096));
    let j = job("time_based\nruntime=1m\nramp_time=500ms\nstartdelay=2\nthinktime=30\nthinktime_blocks=4");
    assert_eq!((j.limits.bytes, j.limits.runtime), (None, Some(Ns::from_ms(60_500))));
    assert_eq!((j.ramp, j.start_delay), (Ns::from_ms(500), Ns::from_secs(2)));
    assert_eq!((j.think.time, j.think.every), (Ns::from_us(30), 4));
    assert_eq!(job("runtime=1:00:01").limits.runtime, Some(Ns::from_secs(3601)));
    assert_eq!(job("runtime=2:03:00:01").limits.runtime, Some(Ns::from_secs(2 * 86_400 + 3 * 3600 + 1)));
    assert_eq!(job("runtime=1d").limits.runtime, Some(Ns::from_secs(86_400)));
    assert_eq!(job("rate_iops=500").rate_bytes, [Some(500 << 12); 3]);
    assert_eq!(job("rate_iops=,5k").rate_bytes, [None, Some(5 << 22), Some(5 << 22)]);
    assert_eq!(job("rate_iops=7,\nbs=8k,4k").rate_bytes, [Some(7 << 13), None, None]);
    // Each kind counts requests of its own length.
    assert_eq!(job("rate_iops=7,9\nbs=8k,4k").rate_bytes, [Some(7 << 13), Some(9 << 12), Some(9 << 12)]);
    // Of several lengths, the shortest counts.
    assert_eq!(job("rw=randread\nbsrange=8k-64k\nrate_iops=7").rate_bytes[0], Some(7 << 13));
    assert_eq!(job("rate=1m,500k").rate_bytes, [Some(1 << 20), Some(500 << 10), Some(500 << 10)]);
    assert_eq!(job("rate=1m\nrate_iops=0").rate_bytes, [Some(1 << 20); 3]);
    let flow = |options: &str| job(options).flow.map(|f| (f.id, f.weight, f.sleep));
    assert_eq!(flow("flow=3\nflow_id=2\nflow_sleep=1000"), Some((2, 3, Ns::from_ms(1))));
    assert_eq!((flow("flow=1000"), flow("flow=0\nflow_id=2")), (Some((0, 1000, Ns::ZERO)), None));
    // A job that runs by time does not count requests, and of two shares the later one counts.
    assert_eq!(job("number_ios=9\ntime_based\nruntime=1").limits.ios, None);
    assert_eq!(job("rw=rw\nrwmixread=70\nrwmixwrite=40").stream.turn(), job("rw=rw\nrwmixread=60").stream.turn());
}

#[test]
fn shares_of_a_mix_are_compared_within_a_section() {
    let notes = |text: &str| good(&format!("[global]\ndirect=1\nsize=1m\nrw=rw\n{text}")).notes.len();
    assert_eq!(notes("rwmixread=70\nrwmixwrite=40\n[a]\n"), 1);
    assert_eq!(notes("[a]\nrwmixread=70\nrwmixwrite=30\n"), 0);
    // A job overrides what the section of defaults says.
    assert_eq!(notes("rwmixread=70\n[a]\nrwmixwrite=40\n"), 0);
}

#[test]
fn requests_follow_the_options() {
    let list = |options: &str, n| requests(&good(&format!("[a]\nsize=64m\n{options}")), 0, 0, n);
    assert!(list("rw=write\nsync=dsync", 9).iter().all(|io| io.fua));
    let kinds: Vec<IoKind> = list("rw=write\nfsync=2", 3).iter().map(|io| io.kind).collect();
    assert_eq!(kinds, [IoKind::Write, IoKind::Write, IoKind::Flush]);
    let mixed = list("rw=randrw\nrwmixwrite=20\nbs=4k,8k", 10_000);
    let writes = mixed.iter().filter(|io| io.kind == IoKind::Write).count();
    assert!((1_850..2_150).contains(&writes), "{writes}");
    assert!(mixed.iter().all(|io| io.blocks == 1 + u16::from(io.kind == IoKind::Write)));
    let split = list("rw=randwrite\nnorandommap\nbssplit=4k/100,8k/25:16k", 4_000);
    let small = split.iter().filter(|io| io.blocks == 2).count();
    assert!(split.iter().all(|io| [2, 4].contains(&io.blocks)) && (900..1_100).contains(&small), "{small}");
    assert!(list("bsrange=4k-16k", 1000).iter().all(|io| (1..=4).contains(&io.blocks)));
    assert_eq!(list("rw=read:8k", 3).iter().map(|io| io.block).collect::<Vec<_>>(), [0, 3, 6]);
    let runs = list("rw=randread:4", 8);
    assert!(runs[1].block == runs[0].block + 1 && runs[3].block == runs[0].block + 3);
    let zoned = list("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/", 10_000);
    let hot = zoned.iter().filter(|io| io.block < 16_384 / 20).count();
    assert!((4_800..5_200).contains(&hot), "{hot}");
    let zipf = list("rw=randread\nrandom_distribution=zipf:1.2", 10_000);
    let mut blocks: Vec<u32> = zipf.iter().map(|io| io.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    assert!(blocks.len() < 6_000);
    assert_ne!(list("rw=randread\nrandseed=5", 9), list("rw=randread\nrandseed=6", 9));
    let end = list("rw=write\nend_fsync=1\nio_size=8k", 99);
    assert_eq!((end.len(), end[2].kind), (3, IoKind::Flush));
}

#[test]
fn ignored_options_are_noted_once() {
    let text = "[global]\nsize=1m\nioengine=libaio\ndirect=1\nverify=crc32c\ncpus_allowed=0-3\nnrfiles=1\nrate_process=linear\n\
                [a]\ncpus_allowed=1\n[b]\nrandrepeat=0\n";
    let work = good(text);
    assert_eq!(
        work.notes,
        [
            "t.fio:6: option cpus_allowed has no meaning here and is ignored",
            "t.fio:5: verify: requests are made as they are, but no data is checked",
            "t.fio:12: randrepeat=0: the same seed gives the same requests here all the same",
        ]
    );
}

#[test]
fn options_are_known_by_all_their_names() {
    let accepted = |options: &str| good(&format!("[a]\nioengine=io_uring_cmd\ndirect=1\nsize=1m\n{options}\n"));
    assert_eq!(accepted("nr_files=1\nrw=randread\nblockalign=4k").notes, [""; 0]);
    // Only random places are aligned.
    assert_eq!(accepted("rw=read\nbs=8k\nba=4k").notes, [""; 0]);
    assert_eq!(accepted("fileoffset=512k").files[0].blocks, 384);
    assert_eq!(accepted("filename=x\nfilesize=1m\nsize=50%%").phases[0].jobs[0].stream.region(), (0, 128));
    let notes = |name| vec![format!("t.fio:5: option {name} has no meaning here and is ignored")];
    assert_eq!(accepted("cmd_type=nvme").notes, notes("cmd_type"));
    // Notes and reports have fio's first name.
    let work = accepted("disable_bw=1");
    assert_eq!(work.notes, notes("disable_bw_measurement"));
    let own = work.phases[0].jobs[0].fio.options.as_ref().unwrap();
    assert_eq!(own.last().unwrap().0, "disable_bw_measurement");
}

#[test]
fn includes() {
    let load = |path: &Path| match path.to_str() {
        Some("jobs/base.inc") => Ok("rw=randread\nsize=1m\n".to_owned()),
        Some("more.fio") => Ok("[late]\nbs=oops\n".to_owned()),
        Some("jobs/self.inc") => Ok("include self.inc".to_owned()),
        _ => no_files(path),
    };
    let parse = |text: &str| fio::parse("jobs/main.fio", text, &load, &CX);
    assert_eq!(parse("[global]\ninclude base.inc\n[a]\n").unwrap().files[0].blocks, 256);
    let e = parse("[global]\ninclude base.inc\ninclude more.fio\n").unwrap_err();
    assert_eq!((e.file.as_str(), e.line, e.key.as_deref()), ("more.fio", 2, Some("bs")));
    let e = parse("[a]\ninclude gone.inc\n").unwrap_err();
    assert_eq!((e.file.as_str(), e.line), ("jobs/main.fio", 2));
    assert!(e.message.contains("cannot be read"));
    assert!(parse("[a]\ninclude self.inc\n").unwrap_err().message.contains("more than 16 files"));
    assert_eq!(fio::parse_file(Path::new("x.fio"), &no_files, &CX).unwrap_err().line, 0);
}

#[test]
fn errors_name_file_line_and_option() {
    for (line, key, text, part) in [
        (1, None, "size=1m\n", "before the first section"),
        (0, None, "[global]\nsize=1m\n", "there is no job"),
        (1, None, "[a\n", "must end with ]"),
        (1, None, "[]\n", "needs a name"),
        (2, None, "[a]\n=4\n", "the option name before"),
        (2, Some("iodpeth"), "[a]\niodpeth=4\n", "did you mean iodepth?"),
        (2, Some("colour"), "[a]\ncolour=red\n", "not an option of fio"),
        (2, Some("latency_target"), "[a]\nlatency_target=1m\n", "not modelled"),
        (4, Some("rate_iops"), "[a]\nsize=1m\nrate=1m\nrate_iops=10\n", "exclude each other"),
        (2, Some("flow"), "[a]\nflow=1001\n", "between 0 and 1000"),
        (2, Some("flow"), "[a]\nflow=-8\n", "not a whole number"),
        (2, Some("flow_id"), "[a]\nflow_id=4294967296\n", "between 0 and 4294967295"),
        (2, Some("flow_sleep"), "[a]\nflow_sleep=1ms\n", "not a whole number"),
        (3, Some("zonemode"), "[a]\nsize=1m\nzonemode=zbd\n", "has no zones of its own"),
        (2, Some("zonemode"), "[a]\nzonemode=zns\n", "must be none, strided or zbd"),
        (3, Some("zonesize"), "[a]\nsize=1m\nzonesize=1m\n", "need zonemode=strided"),
        (4, Some("zonesize"), "[a]\nsize=1m\nzonemode=strided\nzonesize=1k\n", "multiples of 4096"),
        (5, Some("zonesize"), "[a]\nsize=1m\nrw=rw\nzonemode=strided\nzonesize=1m\n", "of one kind only"),
        (4, Some("zoneskip"), "[a]\nsize=1m\nzonemode=strided\nzoneskip=1m\n", "zonesize is missing"),
        (3, Some("io_size"), "[a]\nsize=64k\nio_size=1m\nverify=md5\nrw=write\n", "use loops"),
        (3, Some("wait_for"), "[a]\nsize=1m\nwait_for=b\n[b]\nsize=1m\n", "no job before this one"),
        (6, Some("wait_for"), "[global]\nsize=1m\n[a]\n[b]\n[c]\nwait_for=a\n", "stonewall waits for both"),
        (2, Some("exit_what"), "[a]\nexit_what=none\n", "group, stonewall or all"),
        (2, Some("rate_process"), "[a]\nrate_process=even\n", "linear or poisson"),
        (2, Some("filename"), "[a]\nfilename=a:b\n", "one job per file"),
        (2, Some("size"), "[a]\nsize\n", "a value is missing"),
        (2, Some("size"), "[a]\nsize=0\n", "must not be zero"),
        (2, Some("size"), "[a]\nsize=101%\n", "between 0 and 100"),
        (2, Some("size"), "[a]\nsize=1.5g\n", "not a size"),
        (2, Some("size"), "[a]\nsize=99999999999t\n", "too large"),
        (2, Some("size"), "[a]\nsize=5g\n", "only 1048576 of the device's"),
        (3, Some("size"), "[a]\nfilename=/dev/sda\nsize=5g\n", "end beyond"),
        (3, Some("filesize"), "[a]\nsize=1m\nfilesize=9g\n", "only 1048576 of"),
        (3, Some("offset"), "[a]\nsize=1m\noffset=1k\n", "not a multiple"),
        (3, Some("offset"), "[a]\nfilesize=1m\noffset=1m\n", "beyond the end"),
        (2, Some("size"), "[a]\nsize=4k\nbs=8k\n", "less than one request"),
        (1, None, "[a]\nrw=read\n", "no job says how long"),
        (2, Some("filename"), "[a]\nfilename=x\nsize=50%\n", "no job says how long"),
        (2, Some("bs"), "[a]\nbs=0\n", "moves no data"),
        (2, Some("bs"), "[a]\nbs=512\n", "multiple of 4096"),
        (2, Some("bs"), "[a]\nbs=4ki\n", "ki is 1000"),
        (2, Some("bs"), "[a]\nbs=1g\n", "below"),
        (2, Some("bs"), "[a]\nbs=4k,4k,4k,4k\n", "up to three"),
        (2, Some("bsrange"), "[a]\nbsrange=8k-4k\n", "high to low"),
        (2, Some("bssplit"), "[a]\nbssplit=4k/50:8k/40\n", "sum to 90"),
        (2, Some("iodepth"), "[a]\niodepth=0\n", "between 1 and 65535"),
        (2, Some("iodepth"), "[a]\niodepth=65536\n", "between 1 and 65535"),
        (2, Some("numjobs"), "[a]\nnumjobs=0\n", "between 1 and 65535"),
        (2, Some("rwmixread"), "[a]\nrwmixread=101\n", "between 0 and 100"),
        (2, Some("rw"), "[a]\nrw=sideways\n", "must be read, write"),
        (2, Some("random_distribution"), "[a]\nrandom_distribution=normal:5\n", "not supported"),
        (2, Some("random_distribution"), "[a]\nrandom_distribution=zipf:0\n", "above 0"),
        (2, Some("random_distribution"), "[a]\nrandom_distribution=pareto:1\n", "between 0 and 1"),
        (2, Some("random_distribution"), "[a]\nrandom_distribution=zoned:50/10:40/90\n", "accesses sum to 90"),
        (2, Some("time_based"), "[a]\ntime_based\nsize=1m\n", "runtime is missing"),
        (2, Some("runtime"), "[a]\nruntime=5x\n", "not a time"),
        (2, Some("runtime"), "[a]\nruntime=401d\n", "longer than 400 days"),
        (2, Some("ramp_time"), "[a]\nramp_time=99999999999999\n", "longer than 400 days"),
        (2, Some("loops"), "[a]\nloops=18446744073709551615\nsize=1m\n", "64 bits"),
        (2, Some("direct"), "[a]\ndirect=2\n", "must be 0 or 1"),
        (2, Some("ioengine"), "[a]\nioengine=net\n", "not read and write a block device"),
        (2, Some("sync"), "[a]\nsync=maybe\n", "none, sync or dsync"),
        (3, None, "[a]\nnumjobs=65535\n[b]\nnumjobs=65535\n", "more than 65536 jobs"),
        (3, Some("ba"), "[a]\nrw=randread\nblockalign=512\nsize=1m\n", "not multiples of the block size"),
        (2, Some("nr_files"), "[a]\nnr_files=2\n", "or give nr_files=1"),
        (2, Some("port"), "[a]\nport=80\n", "option port would change the result and is not modelled"),
    ] {
        let e = bad(text);
        assert_eq!((e.file.as_str(), e.line, e.key.as_deref()), ("t.fio", line, key), "{text}{e}");
        assert!(e.message.contains(part), "{text}{e}");
        let place = if line == 0 { "t.fio: ".to_owned() } else { format!("t.fio:{line}: ") };
        assert!(e.to_string().starts_with(&place));
    }
    let long = "x".repeat(5000);
    assert!(bad(&format!("[a]\n{long}\n")).message.contains("longer than 4096"));
    assert!(bad(&"#\n".repeat(9 << 20)).message.contains("16 MiB"));
}

#[test]
fn large_job_files_stay_bounded() {
    let work = good("[global]\nrw=randread\nrandom_distribution=zipf:0.9\nfilename=/dev/sda\n[a]\nnumjobs=65535\n");
    assert_eq!(work.phases[0].jobs.len(), 65_535);
    let many = "[global]\nrw=randread\nfilename=/dev/sda\n".to_owned() + &"[a]\n".repeat(60_000);
    assert_eq!(good(&many).phases[0].jobs.len(), 60_000);
    let tables =
        "[global]\nrw=randread\nrandom_distribution=zipf:0.9\nfilename=/dev/sda\n".to_owned() + &"[a]\n".repeat(2000);
    assert!(bad(&tables).message.contains("1024"));
}

const WORDS: &[&str] = &[
    "[global]",
    "[a]",
    "[b",
    "rw=randread",
    "rw=randrw:3",
    "rw=trimwrite",
    "rw=read:8k",
    "bs=4k",
    "bs=8k,,64k",
    "bsrange=4k-16k",
    "bssplit=4k/50:8k",
    "bssplit=4k/:",
    "size=1m",
    "size=50%",
    "size=4096p",
    "io_size=200%",
    "offset=4k",
    "offset=99%",
    "offset_increment=1g",
    "filesize=8k",
    "filename=x",
    "filename=/dev/y",
    "directory=d",
    "numjobs=7",
    "iodepth=3",
    "runtime=3",
    "time_based",
    "ramp_time=1d",
    "loops=99999999",
    "number_ios=1",
    "rwmixread=3",
    "percentage_random=5,50",
    "random_distribution=zipf:1",
    "random_distribution=zoned:50/5:50,10/90:90/10",
    "random_distribution=pareto:.3",
    "norandommap",
    "thinktime=3s",
    "rate_iops=,1",
    "stonewall",
    "new_group=1",
    "group_reporting",
    "fsync=3",
    "end_fsync=1",
    "rw=read:-8k",
    "verify=md5",
    "verify_backlog=3",
    "zonemode=strided",
    "zonesize=12k",
    "zoneskip=1m",
    "fill_device=1",
    "exitall",
    "exit_what=all",
    "wait_for=a",
    "rate_process=poisson",
    "gtod_reduce=1",
    "kb_base=1000",
    "include x",
    "include=",
    "name=q",
    "ioengine=sync",
    "=",
    ";",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn never_panics_on_any_text(text in "(\\PC|[\\[\\]=\n;#,:/%-]){0,200}") {
        let _ = fio::parse("t", &text, &no_files, &CX);
    }

    #[test]
    fn never_panics_on_any_value(key in prop::sample::select(WORDS), value in "[0-9a-z:,/%.k-]{0,12}", blocks: u32) {
        let key = key.split('=').next().unwrap_or_default();
        let text = format!("[a]\nsize=1m\nrw=randrw\n{key}={value}\n");
        let _ = fio::parse("t", &text, &no_files, &Context { unit_blocks: &[blocks], ..CX });
    }

    #[test]
    fn what_is_accepted_stays_on_the_device(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..14),
        blocks in prop_oneof![0u32..3000, any::<u32>()],
    ) {
        let load = |_: &Path| Ok("size=64k\ninclude x\n".to_owned());
        let text = format!("[a]\nsize=1m\n{}\n", words.join("\n"));
        for reader in [&load as &dyn Fn(&Path) -> io::Result<String>, &no_files] {
            let context = Context { unit_blocks: &[blocks], zones: &[], seed: 0, options: &[], defaults: "" };
            let Ok(work) = fio::parse("t", &text, reader, &context) else { continue };
            for (p, phase) in work.phases.iter().enumerate() {
                prop_assert!(!phase.jobs.is_empty() && !phase.name.is_empty());
                for (j, job) in phase.jobs.iter().enumerate() {
                    prop_assert!(job.group < work.groups.len() && job.iodepth > 0 && job.think.every > 0);
                    prop_assert!(job.limits.runtime.is_some() || job.stream.total_blocks().is_some());
                    for io in requests(&work, p, j, 64) {
                        prop_assert!(u64::from(io.block) + u64::from(io.blocks) <= u64::from(blocks));
                    }
                }
            }
            for f in &work.files { prop_assert!(u64::from(f.block) + u64::from(f.blocks) <= u64::from(blocks)); }
        }
    }
}
