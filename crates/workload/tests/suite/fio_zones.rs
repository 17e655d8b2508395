// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs on units with zones: what `zonemode=zbd` makes of options, and each error with its line.

use readpath_workload::fio::{self, Context};
use readpath_workload::{Workload, Zbd, ZonedUnit};

/// 1 MiB of zones, of 128 KiB each, behind a conventional unit; then gaps: 96 of 128 KiB hold data.
const ZONES: ZonedUnit = ZonedUnit { stride: 32, capacity: 32, most_open: 6 };
const GAPS: ZonedUnit = ZonedUnit { stride: 32, capacity: 24, most_open: 3 };
const CX: Context = Context {
    unit_blocks: &[1024, 256, 256],
    zones: &[None, Some(ZONES), Some(GAPS)],
    seed: 1,
    options: &[],
    defaults: "",
};

fn parse(options: &str) -> Result<Workload, String> {
    let text = format!("[a]\nfilename=/dev/sdb\ndirect=1\n{options}");
    fio::parse("t.fio", &text, &|_| Err(std::io::ErrorKind::NotFound.into()), &CX).map_err(|e| e.to_string())
}

fn zbd(options: &str) -> Zbd {
    let work = parse(options).unwrap_or_else(|e| panic!("{e}"));
    work.phases[0].jobs[0].zbd.expect("it knows of zones")
}

#[test]
fn options_of_zones_are_read() {
    let plain = Zbd {
        zones: (0, 8),
        random: false,
        writes: true,
        most_open: 6,
        job_most_open: 0,
        resets: None,
        read_beyond_wp: false,
        again: false,
    };
    assert_eq!(zbd("zonemode=zbd\nrw=write\n"), plain);
    let limits = "zonemode=zbd\nrw=randrw\nmax_open_zones=4\njob_max_open_zones=2\nread_beyond_wp=1\nzonesize=128k\n";
    let expected = Zbd { random: true, most_open: 4, job_most_open: 2, read_beyond_wp: true, ..plain };
    assert_eq!(zbd(limits), expected);
    let resets = zbd("zonemode=zbd\nrw=write\nzone_reset_threshold=0.5\nzone_reset_frequency=.1\n");
    assert_eq!(resets.resets, Some((128, 10)));
    // Without how often, the threshold means nothing, as in fio.
    assert_eq!(zbd("zonemode=zbd\nrw=write\nzone_reset_threshold=0.5\n").resets, None);
    assert!(zbd("zonemode=zbd\nrw=read\ntime_based\nruntime=1\n").again);
    // Whole zones only, and a note.
    let part = parse("zonemode=zbd\nrw=write\noffset=4k\nsize=400k\n").expect("a zone fits");
    let job = &part.phases[0].jobs[0];
    assert_eq!((job.zbd.expect("zones").zones, job.stream.region()), ((1, 3), (32, 64)));
    assert!(part.notes.iter().any(|note| note.contains("rounded to whole zones")), "{:?}", part.notes);
    // A pass moves what zones hold, not the gaps between them.
    let gaps = parse("filename=/dev/sdc\nzonemode=zbd\nrw=write\n").expect("gaps");
    assert_eq!(gaps.phases[0].jobs[0].stream.total_blocks(), Some(8 * 24));
}

#[test]
fn what_zones_do_not_take_is_an_error_with_its_line() {
    for (options, line, says) in [
        ("rw=write\n", 1, "add zonemode=zbd, or name a unit without zones, or put a mapper in front"),
        ("rw=randtrim\n", 1, "add zonemode=zbd"),
        ("rw=rw\n", 1, "logical unit 1, whose zones take writes at their write pointers only"),
        ("filename=/dev/sda\nzonemode=zbd\nrw=write\n", 5, "logical unit 0 has no zones"),
        ("zonemode=zbd\nrw=write\nbs=24k\n", 4, "bs=24576 does not divide the 131072 bytes of a zone"),
        ("zonemode=zbd\nrw=write\nbsrange=4k-8k\n", 4, "several block sizes"),
        ("zonemode=zbd\nrw=write\nzonesize=64k\n", 6, "zonesize=65536 is not the size of the unit's zones, 131072"),
        ("zonemode=zbd\nrw=write\nzoneskip=128k\n", 6, "zoneskip must be 0"),
        ("zonemode=zbd\nrw=write\nmax_open_zones=7\n", 6, "max_open_zones=7: the unit may have 6 open"),
        ("zonemode=zbd\nrw=write\nsize=64k\n", 6, "contain no whole zone of 131072"),
        ("zonemode=zbd\nrw=write\ndirect=0\n", 4, "writes need direct=1"),
        ("zonemode=zbd\nrw=write\nverify=crc32c\n", 4, "verify is not modelled"),
        ("zonemode=zbd\nrw=trim\nbs=128k\n", 4, "trims are not modelled"),
        ("zonemode=zbd\nrw=randwrite\npercentage_random=50\n", 4, "percentage_random"),
        ("zonemode=zbd\nrw=write\nzone_reset_threshold=1.5\n", 6, "must lie between 0 and 1"),
        ("zonemode=zoned\n", 4, "must be none, strided or zbd"),
        ("max_open_zones=4\nrw=read\n", 4, "max_open_zones needs zonemode=zbd"),
        ("read_beyond_wp=1\nrw=read\n", 4, "read_beyond_wp needs zonemode=zbd"),
        (
            "zonemode=zbd\nrw=write\n[b]\nfilename=/dev/sdb\ndirect=1\nrw=write\nzonemode=zbd\nmax_open_zones=2\n",
            6,
            "max_open_zones is 2 here and 6 in another job",
        ),
    ] {
        let error = parse(options).map(|_| ()).expect_err(options);
        assert!(error.starts_with(&format!("t.fio:{line}: ")) && error.contains(says), "{options:?}: {error}");
    }
    // Reads need no zone mode.
    parse("rw=randread\n").expect("reads pass");
}
