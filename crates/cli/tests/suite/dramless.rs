// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preset of a smaller DRAM-less SSD: what the host gives it, and what that is worth.

use crate::common::{Room, figure};

/// Reads of single blocks all over the device.
const JOB: &str = "[all]\nrw=randread\nnorandommap\nbs=4k\nsize=476g\nioengine=libaio\ndirect=1\niodepth=32\ntime_based\n\
                   ramp_time=300ms\nruntime=200ms\n";

/// Host memory and rate of reads, with these keys changed.
fn run(room: &Room, set: &[&str]) -> (f64, f64) {
    let mut args = vec!["fio", "all.fio", "--device", "nvme-dramless-512g", "--hpb", "off", "--json"];
    set.iter().for_each(|key| args.extend(["--set", *key]));
    let doc = room.json(&args);
    let of = |metric: &str| figure(&doc, &[("metric", metric)]).unwrap_or_else(|| panic!("{set:?}: {metric}"));
    (of("host_memory") / f64::from(1 << 20), of("read_iops"))
}

#[test]
fn the_smaller_ssd_gets_what_linux_gives_and_reads_faster_with_it() {
    let room = Room::with("all.fio", JOB);
    let given = |set: &[&str]| run(&room, set);
    let (none, half, all) = (
        given(&["host.max_host_mem_mib=0"]),
        given(&["host.max_host_mem_mib=50"]),
        // Linux would give 128 MiB; the device would like 100.
        given(&[]),
    );
    assert_eq!((none.0, half.0, all.0), (0.0, 50.0, 100.0));
    assert!(none.1 * 1.02 < half.1 && half.1 * 1.02 < all.1, "{none:?}, {half:?}, {all:?}");
    // Eight pieces of 4 MiB.
    let pieces = given(&["map_memory.max_chunks=8"]);
    assert_eq!(pieces.0, 32.0);
    assert!(none.1 < pieces.1 && pieces.1 < half.1, "{pieces:?}");
    let less = ["fio", "all.fio", "--device", "nvme-dramless-512g", "--set", "host.max_host_mem_mib=3"];
    room.bad(&less, &["host.max_host_mem_mib: is 3, and the device needs 4096 KiB (map_memory.min_kib)"]);
}

/// A fetch of entries waits for a packet of the data on the link, not for all of it: the read that it is for takes no
/// longer than the fetch alone, also if others are under way.
#[test]
fn long_reads_on_the_link_hold_up_no_fetch() {
    let job = "[global]\nrw=randread\nnorandommap\nioengine=libaio\ndirect=1\nfilename=/dev/sda\ntime_based\nramp_time=100ms\n\
               runtime=100ms\n[warm]\nbs=4k\niodepth=4\nsize=10g\n[a]\nstonewall\nbs=16k\niodepth=4\nsize=64m\n";
    let room = Room::with("two.fio", job);
    let mean = |memory: &str| {
        let memory = format!("host.max_host_mem_mib={memory}");
        let args = ["fio", "two.fio", "--device", "nvme-2230-256g", "--hpb", "off", "--json", "--set", &memory];
        let doc = room.json(&args);
        let all = doc["rows"].as_array().expect("rows").iter();
        let mut means =
            all.filter(|row| row["metric"] == "read_latency_mean").filter_map(|row| row["simulated"].as_f64());
        means.next_back().expect("the second job")
    };
    let (without, with) = (mean("0"), mean("32"));
    assert!(with < without + 3.0, "{without} and {with} us");
}
