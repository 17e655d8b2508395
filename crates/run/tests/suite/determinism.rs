// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same seed gives the same bits, alone or in parallel with other simulations; another seed gives other bits.

use readpath_device::Layout;
use readpath_flash::{DieSched, Exact, Lean, Queued};
use readpath_host::HpbOptions;
use readpath_run::Runner;
use readpath_stack::{Tags, Typed};
use readpath_testkit::{device, everything, filled, job, run};
use readpath_workload::{IoKind, Kinds, Offsets, Stream, StreamSpec};

fn results<S: DieSched>(seed: u64) -> String {
    let config = device(4_000);
    let hpb = Some(HpbOptions::default());
    let (mut stack, now) = filled::<S, Tags, Typed>(&config, hpb, 4_000, Layout::Random, seed);
    let mut runner = Runner::new(now);
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 4_000, 1, Offsets::Uniform);
    spec.kinds = Kinds::Mix(75);
    let mut text = String::new();
    for phase in 0..2 {
        let stream = Stream::new(&spec, seed + phase).expect("a possible stream");
        let jobs = vec![job(stream.clone(), 8, 10_000), job(stream, 1, 2_000)];
        text += &everything(&run(&mut stack, &mut runner, jobs));
    }
    text + &format!("{:?} {:?}", stack.device.stats(), stack.host.counters(0))
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let first = results::<Lean>(1);
    assert_eq!(first, results::<Lean>(1));
    assert_ne!(first, results::<Lean>(2));
    assert_eq!(results::<Exact>(1), results::<Exact>(1));
    assert_eq!(results::<Queued>(1), results::<Queued>(1));
}

#[test]
fn threads_do_not_disturb_each_other() {
    let alone: Vec<String> = (1..=2).map(results::<Lean>).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || results::<Lean>(1 + i % 2))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    for (i, text) in together.iter().enumerate() {
        assert_eq!(text, &alone[i % 2]);
    }
}
