// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop itself: the payload checks the data of every source while hooks act; a clock that does not jump makes no
//! difference; hooks act in order; a run ends when its source says so.

use readpath_config::{Event, EventKind};
use readpath_device::{Layout, MediaOp, Probe, WithMedia};
use readpath_flash::{DieSched, Lean, Ppn};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_run::{
    Clock, Cycle, Driven, Hooks, Jobs, Mode, Pace, ReadBack, Rest, RunError, Schedule, Source, Trace, Virtual, drive,
};
use readpath_stack::{Payload, Stack, Tags, Typed, Wire};
use readpath_testkit::{DELAYS, device, everything, filled, host, job};
use readpath_workload::launch::{LaunchSpec, Launches};
use readpath_workload::trace::{Loaded, Options, Prepare, Reader};
use readpath_workload::{IoKind, Kinds, Offsets, Phase, Stream, StreamSpec, Think};
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

const BLOCKS: u32 = 8192;

type Checked = Stack<Lean, Tags, (), Typed>;

fn started() -> (Checked, Ns) {
    filled(&device(BLOCKS), Some(Default::default()), BLOCKS, Layout::Random, 1)
}

/// A job with a rate, and one that thinks.
fn phase() -> Phase {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, BLOCKS, 2, Offsets::Uniform);
    spec.kinds = Kinds::Mix(60);
    let stream = |seed| Stream::new(&spec, seed).expect("a possible stream");
    let (mut rated, mut thinks) = (job(stream(1), 4, 1500), job(stream(2), 8, 1500));
    rated.rate_bytes = [Some(20_000 << 12), Some(10_000 << 12), None];
    thinks.think = Think { time: Ns::from_us(700), every: 12 };
    thinks.start_delay = Ns::from_ms(2);
    Phase { name: "paced".into(), jobs: vec![rated, thinks] }
}

pub(crate) fn trace(blocks: u32) -> Loaded {
    let mut text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    let mut rng = Prng::stream(1, "trace", 0);
    for i in 0..1500 {
        let (op, sectors) = if rng.below(3) == 0 { ("W", 1 + rng.below(40)) } else { ("R", 8) };
        let offset = rng.below(u64::from(blocks) * 8 - sectors) * 512;
        writeln!(text, "{},{op},{offset},{},,", i * 80_000, sectors * 512).expect("a string");
    }
    let reader = Reader::new("t", Box::new(std::io::Cursor::new(text.into_bytes())), &Options::default());
    let mut requests = Prepare::new(blocks).requests("t", reader.expect("a trace")).expect("prepared");
    Loaded::load(&mut requests, 1 << 20).expect("loaded")
}

fn launches() -> Launches {
    Launches::new(LaunchSpec {
        apps: 5,
        games: 1,
        requests: 300,
        game_percent: 200,
        blocks: BLOCKS,
        shared_blocks: 1024,
        span_blocks: 4096,
        shared_percent: 30,
        repeat_percent: 85,
        burst_percent: 12,
        write_percent: 20,
        busy: vec![Ns::from_ms(60)],
        seed: 3,
    })
    .expect("possible")
}

/// Everything that can submit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Jobs,
    Launches,
    Timed,
    Closed,
    ReadBack,
}

const ALL: [What; 5] = [What::Jobs, What::Launches, What::Timed, What::Closed, What::ReadBack];

/// Runs the source on a new stack. Returns the stack, how the run ended, and its measurements as text.
fn run<H: Hooks, C: Clock>(
    what: What,
    hooks: impl FnOnce(&Checked, Ns) -> H,
    clock: &mut C,
) -> (Result<Driven, RunError>, String, Checked, H) {
    let (mut stack, now) = started();
    let mut hooks = hooks(&stack, now);
    let mut phase = phase();
    let (driven, text) = match what {
        What::Jobs => {
            let mut jobs = Jobs::new(&mut phase, now, Rest::Replies);
            let driven = drive(&mut stack, &mut jobs, &mut hooks, clock, now);
            let text = driven.clone().and_then(|driven| jobs.stats(driven)).map(|stats| everything(&stats));
            (driven, text.unwrap_or_default())
        }
        What::Launches => {
            let launches = launches();
            let mut cycle = Cycle::new(&launches, 0, 0, now);
            let driven = drive(&mut stack, &mut cycle, &mut hooks, clock, now);
            let text = driven.clone().map(|driven| everything(&cycle.stats(driven)));
            (driven, text.unwrap_or_default())
        }
        What::Timed | What::Closed => {
            let (loaded, mode) =
                (trace(BLOCKS), if what == What::Timed { Mode::Timed } else { Mode::Closed { iodepth: 12 } });
            let mut trace = Trace::new(&loaded.ios, mode, readpath_run::Units::first(), now);
            let driven = drive(&mut stack, &mut trace, &mut hooks, clock, now);
            let text = driven.clone().map(|driven| everything(&trace.stats("trace".into(), driven).0));
            (driven, text.unwrap_or_default())
        }
        What::ReadBack => {
            let driven = drive(&mut stack, &mut ReadBack::new(0, 0, BLOCKS), &mut hooks, clock, now);
            (driven, String::new())
        }
    };
    (driven, text, stack, hooks)
}

/// Blocks that were checked, and that were wrong.
fn checks(stack: &Checked) -> (u64, u64) {
    (stack.payload.checked, stack.payload.wrong)
}

/// Loses the content of flash without telling the host.
struct Loss {
    at: Ns,
    slices: u32,
}

impl Hooks for Loss {
    fn next_at(&self) -> Ns {
        self.at
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        _: u32,
    ) -> Result<Ns, RunError> {
        self.at = Ns::NEVER;
        stack.payload.execute(MediaOp::Erase { first: Ppn(0), slices: self.slices });
        Ok(now)
    }
}

#[test]
fn wrong_data_is_found_whatever_submits() {
    for what in ALL {
        let (driven, _, stack, ()) = run(what, |_, _| (), &mut Virtual);
        driven.unwrap_or_else(|e| panic!("{what:?}: {e}"));
        let (checked, wrong) = checks(&stack);
        assert!(checked > 1000 && wrong == 0, "{what:?}: {wrong} of {checked}");
        let loss = |stack: &Checked, now| Loss { at: now + Ns::from_ms(3), slices: stack.device.array_slices() };
        let (driven, _, stack, _) = run(what, loss, &mut Virtual);
        driven.unwrap_or_else(|e| panic!("{what:?}: {e}"));
        let (checked, wrong) = checks(&stack);
        assert!(wrong > 100, "{what:?}: {wrong} of {checked}");
    }
}

/// A clock that stops at every event, as one of real time does.
#[derive(Default)]
struct Stopping {
    now: Ns,
    stops: u64,
}

impl Clock for Stopping {
    const JUMPS: bool = false;
    const WAKES: bool = false;

    fn wait_until(&mut self, at: Ns) -> Ns {
        assert!(at >= self.now, "time goes on");
        if at != Ns::NEVER {
            self.now = at;
        }
        self.stops += 1;
        at
    }
}

#[test]
fn a_clock_that_does_not_jump_makes_no_difference() {
    for what in ALL {
        let (jumped, text, stack, ()) = run(what, |_, _| (), &mut Virtual);
        let mut clock = Stopping::default();
        let (stopped, slowly, stopped_stack, ()) = run(what, |_, _| (), &mut clock);
        let (jumped, stopped) = (jumped.expect("it runs"), stopped.expect("it runs"));
        assert_eq!((text, checks(&stack)), (slowly, checks(&stopped_stack)), "{what:?}");
        // A clock that stops at events also stops at those that the device has after its job.
        assert!(stopped.end == jumped.end || what == What::Jobs && stopped.end > jumped.end, "{what:?}");
        assert!(clock.stops > 2 * jumped.ios, "{what:?}: {} stops", clock.stops);
    }
}

/// Records its calls and their times.
#[derive(Default)]
struct Diary {
    ends: u64,
    looks: u64,
    pace: Option<Pace>,
}

impl Hooks for Diary {
    fn pace(&mut self) -> Pace {
        self.pace.unwrap_or(Pace::ToReply)
    }

    fn ended(&mut self, _: IoKind, _: Ns) {
        self.ends += 1;
    }

    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        _: &mut Stack<S, X, P, W>,
        ios: u64,
        _: Ns,
    ) -> bool {
        assert_eq!(ios, self.ends, "both count the same");
        self.looks += 1;
        self.looks < 1000
    }
}

/// Events work with every source, and an observer sees every end.
#[test]
fn events_come_whatever_submits() {
    let event = |ms, kind| Event { at: Ns::from_ms(ms), kind };
    let events = [
        event(1, EventKind::HardwareReset),
        event(3, EventKind::PowerCycle { off: Ns::from_ms(4) }),
        // Due while the power is off: it happens when the power is back.
        event(5, EventKind::Suspend),
        event(9, EventKind::Resume),
    ];
    for what in ALL {
        for pace in [None, Some(Pace::ToEvent)] {
            let hooks = |stack: &Checked, now| {
                (Schedule::new(&events, stack, now).expect("possible"), Diary { pace, ..Diary::default() })
            };
            let (driven, _, stack, (schedule, diary)) = run(what, hooks, &mut Virtual);
            let driven = driven.unwrap_or_else(|e| panic!("{what:?}: {e}"));
            assert_eq!((checks(&stack).1, diary.ends), (0, driven.ios), "{what:?}");
            assert!(diary.looks >= 2 + 4, "{what:?}: {} looks", diary.looks);
            let spans = schedule.end(&stack, driven.end);
            let came: Vec<Event> = spans.iter().filter_map(|span| Some(span.event?.1)).collect();
            assert_eq!(came, events, "{what:?}");
            assert_eq!(spans[3].from - spans[2].from, Ns::from_ms(4), "{what:?}: not before the power was back");
            assert_eq!(spans.iter().flat_map(|span| &span.latency).map(|l| l.count()).sum::<u64>(), driven.ios);
        }
    }
}

/// Cuts the power of host and device at intervals of `every`.
struct Cut {
    every: Ns,
    next: Ns,
    lost: u64,
}

impl Hooks for Cut {
    fn next_at(&self) -> Ns {
        self.next
    }

    fn takes_host(&self) -> bool {
        true
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        self.lost += u64::from(in_flight);
        let recovery = stack.power_cycle(now, now + Ns::from_us(100));
        let until = stack.start(recovery.ready_at).expect("it finds its device");
        self.next = until + self.every;
        Ok(until)
    }
}

/// A host that loses its power loses the requests in flight and nothing else: every source goes on.
#[test]
fn a_host_that_lost_its_power_goes_on() {
    for what in ALL {
        // What is read back begins again with each cut, and needs time to get on.
        let every = Ns::from_ms(if what == What::ReadBack { 60 } else { 2 });
        let (driven, _, stack, cut) = run(what, |_, now| Cut { every, next: now + every, lost: 0 }, &mut Virtual);
        let ios = driven.unwrap_or_else(|e| panic!("{what:?}: {e}")).ios;
        let all = match what {
            What::Jobs => 3000,
            What::Launches => launches().total_requests(),
            What::Timed | What::Closed => 1500,
            // No block may be left out.
            What::ReadBack => u64::from(BLOCKS / 64) + cut.lost,
        };
        assert_eq!((checks(&stack).1, ios + cut.lost), (0, all), "{what:?}");
        assert!(cut.lost > 0, "{what:?}");
    }
}

/// Does nothing and is never over.
struct Stubborn;

impl Source for Stubborn {
    fn next_at(&self) -> Ns {
        Ns::NEVER
    }

    fn act(&mut self, _: &mut impl readpath_run::Port, _: Ns, _: Ns) {}

    fn ended(&mut self, _: &mut impl readpath_run::Port, _: u32, _: Ns) -> Option<(IoKind, Ns)> {
        None
    }

    fn io(&self, _: u32) -> readpath_workload::Io {
        unreachable!("nothing is in flight")
    }

    fn in_flight(&self) -> u32 {
        0
    }

    fn is_over(&self) -> bool {
        false
    }

    fn lost(&mut self, _: &mut impl readpath_run::Port, _: Ns) {}
}

#[test]
fn a_run_that_stands_still_is_an_error_and_one_that_is_stopped_too() {
    let (mut stack, now) = started();
    let stuck = drive(&mut stack, &mut Stubborn, &mut (), &mut Virtual, now);
    assert!(matches!(stuck, Err(RunError::Stuck(_))), "{stuck:?}");
    let mut diary = Diary { looks: 1000, ..Diary::default() };
    let stopped = drive(&mut stack, &mut ReadBack::new(0, 0, 100), &mut diary, &mut Virtual, now);
    assert!(matches!(stopped, Err(RunError::Interrupted)), "{stopped:?}");
}

/// Whether everything that was programmed is settled, and how much was programmed.
#[derive(Clone, Default)]
struct Settled {
    is_settled: Rc<Cell<bool>>,
    programs: Rc<Cell<u32>>,
}

impl Payload for Settled {
    type Mode = WithMedia;

    fn execute(&mut self, op: MediaOp) {
        if let MediaOp::Program { .. } = op {
            self.is_settled.set(false);
            self.programs.set(self.programs.get() + 1);
        }
    }

    fn settle(&mut self) {
        self.is_settled.set(true);
    }
}

impl Clock for Settled {
    const JUMPS: bool = false;
    const WAKES: bool = true;

    fn wait_until(&mut self, at: Ns) -> Ns {
        assert!(at != Ns::NEVER || self.is_settled.get(), "what was programmed waits for nothing");
        at
    }
}

#[test]
fn the_payload_is_settled_before_nothing_happens() {
    let mut settled = Settled::default();
    let stack = Stack::<Lean, _, (), _>::new(&device(BLOCKS), host(None), DELAYS, settled.clone(), (), Typed);
    let mut stack = stack.unwrap();
    let now = stack.start(Ns::ZERO).unwrap();
    stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Write, block: 0, blocks: 64 });
    let stuck = drive(&mut stack, &mut Stubborn, &mut (), &mut settled, now);
    assert!(matches!(stuck, Err(RunError::Stuck(_))), "{stuck:?}");
    assert!(settled.programs.get() > 1, "{}", settled.programs.get());
}
