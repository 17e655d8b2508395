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
        map_cache_bytes: 81 * 16384,
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
            activate_after: 2,
            refresh_after: 32,
            repeat_after: Ns::from_ms(10),
            freshness_chunk_entries: 16,
            verification: Verification::On,
        }),
        entry_key: [1, 2],
    }
}

#[test]
#[ignore]
fn quick() {
    for gb in [1u64, 4, 8, 16, 32] {
        for hpb in [false, true] {
            let t = std::time::Instant::now();
            let host = HostConfig { hpb: hpb.then(HpbOptions::default), ..HostConfig::LINUX };
            let delays = Delays { to_link: Ns(10_000), from_link: Ns(15_000) };
            let mut stack: Stack<Lean, NoData, (), Typed> =
                Stack::new(&cfg(), host, delays, NoData, (), Typed).unwrap();
            let mut w = iozone::random(gb << 30, 16, 4096, 1).unwrap();
            stack.precondition(0, 0, (gb << 18) as u32, Layout::Sequential, 1).unwrap();
            let setup = t.elapsed();
            let now = stack.start(Ns::ZERO).unwrap();
            let mut r = Runner::new(0, now);
            for p in &mut w.phases {
                let t = std::time::Instant::now();
                let s = r.phase(&mut stack, p, &mut ()).unwrap();
                let g = &s.groups()[0];
                let k = if p.name.contains("read") { IoKind::Read } else { IoKind::Write };
                println!(
                    "{gb} GB hpb {hpb} {}: {:.2} MiB/s p50 {:.1} p99 {:.1} setup {:?} run {:?} {:.1} ns/io",
                    p.name,
                    g.rates[k as usize] / 1048576.0,
                    g.of(k).latency.quantile(0.5) as f64 / 1e3,
                    g.of(k).latency.quantile(0.99) as f64 / 1e3,
                    setup,
                    t.elapsed(),
                    t.elapsed().as_nanos() as f64 / s.ios as f64
                );
            }
            println!("{:?}\n{:?} {:?}", stack.device.stats(), stack.host.counters(0), stack.host.memory(0));
        }
    }
}
