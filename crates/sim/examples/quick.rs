use readpath_device::*;
use readpath_flash::*;
use readpath_host::*;
use readpath_kit::Ns;
use readpath_sim::*;
use readpath_stack::*;
use readpath_workload::*;

fn cfg() -> DeviceConfig {
    DeviceConfig {
        product_name: "T".into(),
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 4,
            planes: 1,
            blocks_per_plane: 2200,
            pages_per_block: 256,
            page_bytes: 16384,
        },
        flash: FlashTiming {
            read: Ns(50_000),
            map_read: Ns(50_000),
            program: Ns(500_000),
            erase: Ns(3_500_000),
            transfer_block: Ns(8_000),
            map_transfer: Ns(8_000),
        },
        suspend: SuspendTiming::OFF,
        firmware: FirmwareTiming {
            flash_op: Ns(13_000),
            hpb_read_extra: Ns(300),
            write_command: Ns(5_000),
            buffer_read: Ns(13_000),
            control: Ns(5_000),
        },
        link: LinkTiming { request: Ns(500), response: Ns(100), block: Ns(3_900) },
        map_cache_bytes: std::env::var("MC").map_or(81u32, |s| s.parse().unwrap()) * 16384,
        map_page_bytes: 16384,
        write_buffer_blocks: 192,
        queue_depth: 32,
        lus: vec![LuConfig {
            blocks: 16 << 20,
            hpb: true,
            max_active_regions: 1920,
            pinned_start: 0,
            pinned_regions: 0,
        }],
        hpb: Some(HpbConfig {
            region_size: 15,
            sub_region_size: 15,
            max_active_regions: 1920,
            activate_after: std::env::var("AA").map_or(2, |s| s.parse().unwrap()),
            refresh_after: 32,
            replace_after: std::env::var("RP").map_or(9, |s| s.parse().unwrap()),
            repeat_after: Ns::from_ms(10),
            freshness_chunk_entries: 16,
            verification: Verification::On,
        }),
        entry_key: [1, 2],
    }
}

fn cpu() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn run(name: &str, c: &DeviceConfig, hpb: bool, gb: u64, jobs: u32, n: u64) {
    let mut best = f64::MAX;
    let mut mib = 0.0;
    for _ in 0..3 {
        let host = HostConfig { hpb: hpb.then(HpbOptions::default), ..HostConfig::LINUX };
        let delays = Delays { to_link: Ns(10_000), from_link: Ns(15_000) };
        let mut stack: Stack<Lean, NoData, (), Typed> = Stack::new(c, host, delays, NoData, (), Typed).unwrap();
        let mut w = iozone::random(gb << 30, jobs, 4096, 1).unwrap();
        stack.precondition(0, 0, (gb << 18) as u32, Layout::Sequential, 1).unwrap();
        let now = stack.start(Ns::ZERO).unwrap();
        let mut r = Runner::new(0, now);
        let p = &mut w.phases[0];
        for j in &mut p.jobs {
            j.limits.ios = Some(n / jobs as u64);
            j.limits.bytes = None;
            let (s, b) = j.stream.region();
            j.stream = Stream::uniform_reads(s, b, 1, 7 + s as u64).unwrap();
        }
        // warm: activate everything
        let warm = r.phase(&mut stack, &mut p.clone(), &mut ()).unwrap();
        let _ = warm;
        let t = cpu();
        let s = r.phase(&mut stack, p, &mut ()).unwrap();
        best = best.min((cpu() - t) / s.ios as f64);
        let g = &s.groups()[0];
        mib = g.rates[0] / 1048576.0;
    }
    println!("{name:30} {:7.1} ns/io {:6.2} M/s  ({mib:.1} MiB/s)", best * 1e9, 1e-6 / best);
}

fn main() {
    let c = cfg();
    let what = std::env::args().nth(1);
    let go = |n: &str| what.as_deref().is_none_or(|w| n.contains(w));
    let n = std::env::args().nth(2).map_or(2_000_000, |s| s.parse().unwrap());
    if go("qd1-hit") {
        run("qd1-hit on 16GB", &c, true, 16, 1, n);
    }
    if go("qd1-sram") {
        run("qd1-sram off 1GB", &c, false, 1, 1, n);
    }
    if go("qd16-hit") {
        run("qd16-hit on 16GB", &c, true, 16, 16, n);
    }
    if go("qd31-hit") {
        run("qd32-hit on 16GB", &c, true, 16, 32, n);
    }
    if go("qd16-miss") {
        run("qd16-miss off 29GB", &c, false, 29, 16, n);
    }
    if go("qd1-miss") {
        run("qd1-miss off 29GB", &c, false, 29, 1, n);
    }
    if go("qd16-32on") {
        run("qd16-32on 32GB", &c, true, 32, 16, n);
    }
}
