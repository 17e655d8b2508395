// SPDX-License-Identifier: MIT OR Apache-2.0
//! Apps of a telephone that are started one after another, cycle after cycle. It says what a launch reads, and how long
//! it computes in between; it knows nothing of devices.
//!
//! The shape follows public measurements: most requests are of 4 KiB and one at a time (Zhou et al., IISWC
//! 2015; Kim, Lee and Won on Android), a fifth of the data takes four fifths of the accesses (Lim and Bahn, IEEE Access
//! 2021), each launch of an app reads nearly what the one before read, files lie in many fragments (Ji et al.,
//! HotStorage 2016; Hahn et al., ATC 2017), and small synchronous writes come in between.

use readpath_kit::{Ns, Prng};

use crate::{FileExtent, Io, IoKind, Workload};

/// What a cycle of launches is like.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchSpec {
    /// Apps, each launched once a cycle, always in the same order.
    pub apps: u32,
    /// Number of games among the apps; they are spread evenly.
    pub games: u32,
    /// Requests of a launch of an app that is not a game, at least 1.
    pub requests: u32,
    /// Requests of a game, in percent of that.
    pub game_percent: u32,
    /// Size of the address range, in blocks of 4 KiB.
    pub blocks: u32,
    /// Blocks that all apps share, at the start of the range.
    pub shared_blocks: u32,
    /// Blocks that the fragments of one app are spread over.
    pub span_blocks: u32,
    /// Share of reads that go to shared blocks, in percent; places by Zipf's law with exponent 1, in pieces of 64
    /// blocks.
    pub shared_percent: u8,
    /// Share of a launch's reads that repeat those of the launch before, in percent.
    pub repeat_percent: u8,
    /// Share of steps in which 4 to 8 requests begin at once, in percent. Every other step has one request; if it is
    /// longer than 4 KiB, it is read-ahead: the app does not wait for it.
    pub burst_percent: u8,
    /// Requests that are writes of 4 KiB into a small area of the app, in percent.
    pub write_percent: u8,
    /// Computing time of all launches of a cycle, for each cycle; a game's share is that of its requests.
    pub busy: Vec<Ns>,
    /// Seed of all random draws.
    pub seed: u64,
}

/// Why a [`LaunchSpec`] is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaunchError {
    /// No app, more games than apps, or no cycle.
    #[error("there must be at least one app and one cycle, and no more games than apps")]
    NoApps,
    /// A percentage above 100.
    #[error("a percentage is above 100")]
    BadPercent,
    /// Too few requests, or more than are kept in memory.
    #[error("a launch must make at least one request, and those of a cycle together at most 20 million")]
    BadRequests,
    /// The areas do not fit.
    #[error(
        "what is shared (at least 64 blocks) and the span of an app (at least 4096 blocks) must fit into the range"
    )]
    NoRoom,
}

/// Lengths in blocks and their weights in percent. The published shares of 4 KiB are 45 to 57 %.
const LENGTHS: [(u16, u32); 6] = [(1, 54), (2, 16), (4, 12), (8, 10), (16, 5), (32, 3)];
/// A fragment has 2 to 256 blocks.
const FRAGMENT: std::ops::RangeInclusive<u64> = 2..=256;
const FRAGMENTS: usize = 4096;
/// Requests of all apps, which are kept in memory.
const MOST_REQUESTS: u64 = 20_000_000;
const SHARED_PIECE: u32 = 64;
const WRITTEN_BLOCKS: u32 = 256;

/// A pause, and the requests that begin at once after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Computing time of the app before the requests.
    pub think: Ns,
    /// How many of the launch's requests follow at once; at least 1.
    pub requests: u8,
    /// Whether the app waits for the requests before it goes on. It waits for read-ahead at the end of the launch.
    pub waits: bool,
}

/// Everything that one launch does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Launch {
    /// Its steps.
    pub steps: Vec<Step>,
    /// Its requests, in the order of the steps.
    pub requests: Vec<Io>,
}

#[derive(Clone, Debug)]
struct App {
    /// First block and length of each fragment; the first fifth is the hot one.
    fragments: Vec<(u32, u32)>,
    written: u32,
    requests: u32,
    /// The reads that every launch repeats.
    script: Vec<Io>,
}

/// The apps, and their requests.
#[derive(Clone, Debug)]
pub struct Launches {
    spec: LaunchSpec,
    apps: Vec<App>,
    /// Running sum of 1, 1/2, 1/3 and so on over the pieces of the shared blocks.
    zipf: Vec<f64>,
}

impl Launches {
    /// Draws the apps of `spec`.
    ///
    /// # Errors
    /// When `spec` is impossible.
    pub fn new(spec: LaunchSpec) -> Result<Self, LaunchError> {
        if spec.apps == 0 || spec.games > spec.apps || spec.busy.is_empty() {
            return Err(LaunchError::NoApps);
        }
        let percents = [spec.shared_percent, spec.repeat_percent, spec.burst_percent, spec.write_percent];
        if percents.iter().any(|p| *p > 100) {
            return Err(LaunchError::BadPercent);
        }
        let of_game = u64::from(spec.requests) * u64::from(spec.game_percent) / 100;
        let most = of_game.max(u64::from(spec.requests)).saturating_mul(u64::from(spec.apps));
        if spec.requests == 0 || of_game == 0 || most > MOST_REQUESTS {
            return Err(LaunchError::BadRequests);
        }
        let fits = u64::from(spec.shared_blocks) + u64::from(spec.span_blocks) <= u64::from(spec.blocks);
        if spec.shared_blocks < SHARED_PIECE || spec.span_blocks < 4096 || !fits {
            return Err(LaunchError::NoRoom);
        }
        let mut sum = 0.0;
        let zipf = (1..=spec.shared_blocks / SHARED_PIECE).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        let mut launches = Launches { zipf: zipf.collect(), apps: Vec::new(), spec };
        for app in 0..launches.spec.apps {
            let app = launches.draw_app(app, of_game as u32);
            launches.apps.push(app);
        }
        Ok(launches)
    }

    /// The workload of these launches: it has no phases, only [`Workload::launches`].
    pub fn workload(self, name: &str) -> Workload {
        let everything = FileExtent { name: "apps".into(), lun: 0, block: 0, blocks: self.spec.blocks };
        Workload {
            name: name.to_owned(),
            groups: vec!["launches".to_owned()],
            files: vec![everything],
            launches: Some(self),
            ..Workload::default()
        }
    }

    /// Cycles.
    pub fn cycles(&self) -> usize {
        self.spec.busy.len()
    }

    /// Apps.
    pub fn apps(&self) -> u32 {
        self.spec.apps
    }

    /// Requests in all.
    pub fn total_requests(&self) -> u64 {
        self.apps.iter().map(|a| u64::from(a.requests)).sum::<u64>() * self.cycles() as u64
    }

    /// Launch of `app` in `cycle`, both from 0.
    pub fn launch(&self, cycle: usize, app: u32) -> Launch {
        let spec = &self.spec;
        let it = &self.apps[app as usize];
        let mut rng = Prng::stream(spec.seed, "launch", (cycle as u64) << 32 | u64::from(app));
        let mut launch = Launch::default();
        for known in &it.script {
            let io = match rng.below(100) < u64::from(spec.repeat_percent) || known.kind == IoKind::Write {
                true => *known,
                false => self.draw_read(it, &mut rng),
            };
            launch.requests.push(io);
        }
        // All launches of the app have the same steps.
        let mut rng = Prng::stream(spec.seed, "steps", u64::from(app));
        let mut left = launch.requests.len();
        while left > 0 {
            let burst = rng.below(100) < u64::from(spec.burst_percent);
            let requests = if burst { 4 + rng.below(5) as usize } else { 1 }.min(left);
            let first = launch.requests[launch.requests.len() - left];
            let ahead = requests == 1 && first.kind == IoKind::Read && first.blocks > 1;
            launch.steps.push(Step { think: Ns::ZERO, requests: requests as u8, waits: !ahead });
            left -= requests;
        }
        let share = u128::from(it.requests) * u128::from(spec.busy[cycle].0)
            / self.apps.iter().map(|a| u128::from(a.requests)).sum::<u128>();
        let steps = launch.steps.len() as u128;
        for (i, step) in (0u128..).zip(&mut launch.steps) {
            step.think = Ns((share * (i + 1) / steps - share * i / steps) as u64);
        }
        launch
    }

    fn draw_app(&self, app: u32, of_game: u32) -> App {
        let spec = &self.spec;
        let mut rng = Prng::stream(spec.seed, "app", u64::from(app));
        let room = u64::from(spec.blocks - spec.shared_blocks - spec.span_blocks);
        let start = spec.shared_blocks + rng.below(room + 1) as u32;
        let fragments = (0..FRAGMENTS).map(|_| {
            let length = FRAGMENT.start() + rng.below(FRAGMENT.end() - FRAGMENT.start() + 1);
            (start + rng.below(u64::from(spec.span_blocks) - length) as u32, length as u32)
        });
        let fragments = fragments.collect();
        let written = start + rng.below(u64::from(spec.span_blocks - WRITTEN_BLOCKS)) as u32;
        // Games are spread evenly over the cycle.
        let is_game = (app + 1) * spec.games / spec.apps > app * spec.games / spec.apps;
        let requests = if is_game { of_game } else { spec.requests };
        let mut app = App { fragments, written, requests, script: Vec::new() };
        app.script = (0..requests)
            .map(|_| match rng.below(100) < u64::from(spec.write_percent) {
                true => {
                    let block = app.written + rng.below(u64::from(WRITTEN_BLOCKS)) as u32;
                    Io { block, blocks: 1, kind: IoKind::Write, fua: false }
                }
                false => self.draw_read(&app, &mut rng),
            })
            .collect();
        app
    }

    fn draw_read(&self, app: &App, rng: &mut Prng) -> Io {
        let mut weight = rng.below(100) as u32;
        let blocks = LENGTHS.iter().find(|(_, share)| {
            let found = weight < *share;
            weight = weight.saturating_sub(*share);
            found
        });
        let blocks = blocks.map_or(1, |(blocks, _)| *blocks);
        let (first, length) = if rng.below(100) < u64::from(self.spec.shared_percent) {
            let at = rng.unit_f64() * self.zipf[self.zipf.len() - 1];
            let rank = self.zipf.partition_point(|sum| *sum <= at).min(self.zipf.len() - 1);
            // Neighbouring ranks lie far apart: a multiplier without a common factor strews them.
            let pieces = self.zipf.len() as u64;
            (((rank as u64 * 2_654_435_761 % pieces) as u32) * SHARED_PIECE, SHARED_PIECE)
        } else {
            let hot = app.fragments.len() / 5;
            let (from, among) = if rng.below(100) < 80 { (0, hot) } else { (hot, app.fragments.len() - hot) };
            app.fragments[from + rng.below(among as u64) as usize]
        };
        let blocks = blocks.min(length as u16);
        let block = first + rng.below(u64::from(length - u32::from(blocks) + 1)) as u32;
        Io { block, blocks, kind: IoKind::Read, fua: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LaunchSpec {
        LaunchSpec {
            apps: 9,
            games: 3,
            requests: 2000,
            game_percent: 250,
            blocks: 1 << 20,
            shared_blocks: 1 << 17,
            span_blocks: 1 << 18,
            shared_percent: 35,
            repeat_percent: 85,
            burst_percent: 12,
            write_percent: 5,
            busy: vec![Ns(9_000_000_000), Ns(6_000_000_001)],
            seed: 3,
        }
    }

    #[test]
    fn launches_are_what_was_asked_for() {
        let launches = Launches::new(spec()).unwrap();
        let of_cycle = |cycle| (0..9).map(|app| launches.launch(cycle, app)).collect::<Vec<_>>();
        let (first, second) = (of_cycle(0), of_cycle(1));
        assert_eq!(first, of_cycle(0), "drawn again, they are the same");
        let games = first.iter().filter(|l| l.requests.len() == 5000).count();
        assert_eq!((games, launches.total_requests()), (3, 2 * (3 * 5000 + 6 * 2000)));
        let think = |cycle: &[Launch]| cycle.iter().flat_map(|l| &l.steps).map(|s| s.think.0).sum::<u64>();
        assert!((9_000_000_000 - think(&first)) < 9 && (6_000_000_001 - think(&second)) < 9);
        let (mut all, mut again, mut small, mut shared, mut writes, mut singles) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.steps.iter().map(|s| usize::from(s.requests)).sum::<usize>(), a.requests.len());
            singles += a.steps.iter().filter(|s| s.requests == 1).count() as f64 / a.steps.len() as f64 / 9.0;
            for (x, y) in a.requests.iter().zip(&b.requests) {
                assert!(x.blocks > 0 && x.block + u32::from(x.blocks) <= 1 << 20);
                all += 1.0;
                writes += f64::from(u8::from(x.kind == IoKind::Write));
                small += f64::from(u8::from(x.blocks == 1));
                shared += f64::from(u8::from(x.block < 1 << 17));
                again += f64::from(u8::from(x == y));
            }
        }
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 0.03, "{value} {expected}");
        near(writes / all, 0.05);
        near(small / all, 0.05 + 0.95 * 0.54);
        near(shared / all, 0.95 * 0.35);
        // Both launches replace 15 % of their reads.
        near(again / all, 0.05 + 0.95 * 0.85 * 0.85);
        near(singles, 0.88);
    }

    #[test]
    fn impossible_launches_are_errors() {
        let with = |change: fn(&mut LaunchSpec)| {
            let mut spec = spec();
            change(&mut spec);
            Launches::new(spec).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(|s| s.games = 10), LaunchError::NoApps);
        assert_eq!(with(|s| s.busy.clear()), LaunchError::NoApps);
        assert_eq!(with(|s| s.write_percent = 101), LaunchError::BadPercent);
        assert_eq!(with(|s| s.requests = 0), LaunchError::BadRequests);
        assert_eq!(with(|s| s.game_percent = u32::MAX), LaunchError::BadRequests);
        assert_eq!(with(|s| s.span_blocks = 1 << 20), LaunchError::NoRoom);
        assert_eq!(with(|s| s.shared_blocks = 10), LaunchError::NoRoom);
    }
}
