// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far each run is followed, so that the given lines serve most. Both methods are exact.
//!
//! If each run serves just one request, that is Belady's rule: whenever there are too many, the run that ends last is
//! dropped. With peeks it is not enough: a run may serve many of them, and dropping it loses more than the next one.
//! Then lines are flow from the first moment to the last (Carlisle and Lloyd's form of weighted intervals on k
//! machines), and a run is a path beside the main one which may be left early:
//!
//! ```text
//!  main  0 ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 4 ──▶ 5     touched at 1 and at 5; peeks before 3 and 4
//!              │           ▲     ▲     ▲
//!              └──── +1 ──▶p─+1─▶p─+1──┘
//! ```
//!
//! The most profitable flow of as many units as there are lines is integral. It is found by adding the best path once
//! for each line: time is in proportion to lines and to what runs may serve. Both are bounded, see [`TooLarge`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs: the requests that a line would serve from a touch on: when, in order, and how often.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// Begin and last end of each run.
    begins: Vec<(u32, u32)>,
    ends: Vec<End>,
    /// Ends that are not noted, because they exceed the limit.
    left_out: u64,
}

/// The most ends and moments of a flow, each of about 200 bytes.
const MOST_PARTS: usize = 1 << 23;
/// The most ends and moments times lines, because each line searches all: about five minutes.
const MOST_STEPS: u64 = 1 << 31;

/// An optimum that takes too long to find, or too much memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the optimum is planned for {parts} pages of reads and {lines} lines, but pages may be {MOST_PARTS} at most, and \
     pages times lines {MOST_STEPS}: take fewer lines, a shorter stream, or opt without +split"
)]
pub struct TooLarge {
    parts: u64,
    lines: u32,
}

/// The requests served if the page is kept until `at`.
#[derive(Clone, Copy, Debug)]
struct End {
    run: u32,
    at: u32,
    served: u32,
}

/// No end.
const NONE: u32 = u32::MAX;

impl Runs {
    /// Begins a run; returns its number.
    pub(super) fn begin(&mut self, now: u32) -> u32 {
        self.begins.push((now, NONE));
        self.begins.len() as u32 - 1
    }

    /// A run would serve a request now.
    pub(super) fn serves(&mut self, run: u32, now: u32) {
        let full = self.ends.len() > self.begins.len() + MOST_PARTS;
        let last = &mut self.begins[run as usize].1;
        match self.ends.get_mut(*last as usize) {
            Some(end) if end.at == now => end.served += 1,
            _ if full => self.left_out += 1,
            _ => {
                *last = u32::try_from(self.ends.len()).expect("fewer records than 2^32");
                self.ends.push(End { run, at: now, served: 1 });
            }
        }
    }
}

/// Number of lines from a moment on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: u32,
    pub(super) lines: u32,
}

/// For each run until when its page is kept: its begin, if it is not.
///
/// # Errors
/// Runs have several ends, and there are too many for the limits of time and memory.
pub(super) fn plan(runs: Runs, spans: &[Span], moments: u32) -> Result<Vec<u32>, TooLarge> {
    let Runs { begins, mut ends, left_out } = runs;
    let begins: Vec<u32> = begins.into_iter().map(|(begin, _)| begin).collect();
    ends.sort_by_key(|end| end.run);
    let most = most_at_once(&begins, &ends, moments);
    if left_out == 0 && spans.iter().all(|span| span.lines >= most) {
        let mut until = begins;
        ends.iter().for_each(|end| until[end.run as usize] = end.at);
        return Ok(until);
    }
    let simple = ends.iter().all(|end| end.served == 1) && ends.windows(2).all(|pair| pair[0].run != pair[1].run);
    if simple {
        return Ok(belady(begins, &ends, spans));
    }
    let lines = spans.iter().map(|span| span.lines).max().unwrap_or(0).min(most);
    let parts = ends.len() as u64 + u64::from(moments) + left_out;
    if parts > MOST_PARTS as u64 || parts * u64::from(lines) > MOST_STEPS {
        return Err(TooLarge { parts, lines });
    }
    Ok(Flow::new(&begins, &ends, spans, moments, lines).best(begins, &ends))
}

/// Number of lines with which all runs could be kept to their ends.
fn most_at_once(begins: &[u32], ends: &[End], moments: u32) -> u32 {
    let mut change = vec![0i32; moments as usize + 1];
    for (i, end) in ends.iter().enumerate() {
        if ends.get(i + 1).is_none_or(|next| next.run != end.run) {
            change[begins[end.run as usize] as usize] += 1;
            change[end.at as usize] -= 1;
        }
    }
    let mut now = 0;
    change.into_iter().fold(0, |most, step| {
        now += step;
        most.max(now)
    }) as u32
}

/// The plan for runs that serve one request each.
fn belady(begins: Vec<u32>, ends: &[End], spans: &[Span]) -> Vec<u32> {
    let mut until = begins.clone();
    // Kept runs by end. Ended runs stay in it, but never above one that has not ended.
    let mut kept: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let mut open: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let (mut count, mut lines) = (0, 0);
    let mut spans = spans.iter().peekable();
    let mut ends = ends.iter().map(|end| (begins[end.run as usize], end.run, end.at)).peekable();
    loop {
        let next = [spans.peek().map(|span| span.begin), ends.peek().map(|&(begin, ..)| begin)];
        let Some(now) = next.into_iter().flatten().min() else { return until };
        while let Some(&Reverse((end, run))) = open.peek()
            && end <= now
        {
            open.pop();
            count -= u32::from(until[run as usize] == end);
        }
        while let Some(span) = spans.next_if(|span| span.begin == now) {
            lines = span.lines;
        }
        while let Some((_, run, end)) = ends.next_if(|&(begin, ..)| begin == now) {
            until[run as usize] = end;
            kept.push((end, run));
            open.push(Reverse((end, run)));
            count += 1;
        }
        while count > lines {
            let (_, run) = kept.pop().expect("as many as are counted");
            until[run as usize] = begins[run as usize];
            count -= 1;
        }
    }
}

/// Lines as flow. Edges come in pairs; the second reverses flow of the first.
struct Flow {
    /// First edge of each node. Nodes are in order of time; of equals a run's node precedes that of the main path.
    first: Vec<u32>,
    edges: Vec<Edge>,
    /// The edge of each end.
    of_end: Vec<u32>,
    units: u32,
    /// Reduced costs are relative to these potentials, so that none is negative.
    potential: Vec<i64>,
}

#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    room: u32,
    cost: i64,
    /// Next edge of the same node.
    next: u32,
}

impl Flow {
    fn new(begins: &[u32], ends: &[End], spans: &[Span], moments: u32, units: u32) -> Flow {
        let is_last = |i: usize| ends.get(i + 1).is_none_or(|next| next.run != ends[i].run);
        // Number of nodes up to and including each moment.
        let mut main = vec![1u32; moments as usize + 1];
        for (i, end) in ends.iter().enumerate() {
            main[end.at as usize] += u32::from(!is_last(i));
        }
        for at in 1..main.len() {
            main[at] += main[at - 1];
        }
        let nodes = main[moments as usize] as usize;
        main.iter_mut().for_each(|node| *node -= 1);
        let mut flow = Flow {
            first: vec![NONE; nodes],
            edges: Vec::with_capacity(2 * (nodes + 2 * ends.len())),
            of_end: Vec::with_capacity(ends.len()),
            units,
            potential: vec![i64::MAX; nodes],
        };
        for pair in main.windows(2) {
            flow.connect(pair[0], pair[1], units, 0);
        }
        // Nodes of runs are numbered backwards from the main one.
        let mut given = main.clone();
        let mut from = 0;
        for (i, end) in ends.iter().enumerate() {
            if i == 0 || is_last(i - 1) {
                from = main[begins[end.run as usize] as usize];
            }
            let to = match is_last(i) {
                true => main[end.at as usize],
                false => {
                    given[end.at as usize] -= 1;
                    given[end.at as usize]
                }
            };
            flow.of_end.push(flow.edges.len() as u32);
            flow.connect(from, to, 1, -i64::from(end.served));
            if !is_last(i) {
                flow.connect(to, main[end.at as usize], 1, 0);
            }
            from = to;
        }
        // Lines that do not exist for a time cost more than all that could be served.
        let all = 1 + ends.iter().map(|end| i64::from(end.served)).sum::<i64>();
        for (i, span) in spans.iter().enumerate() {
            let end = spans.get(i + 1).map_or(moments, |next| next.begin);
            if span.lines < units && span.begin < end {
                flow.connect(main[span.begin as usize], main[end as usize], units - span.lines, -all);
            }
        }
        flow
    }

    fn connect(&mut self, from: u32, to: u32, room: u32, cost: i64) {
        let at = self.edges.len() as u32;
        self.edges.push(Edge { to, room, cost, next: self.first[from as usize] });
        self.edges.push(Edge { to: from, room: 0, cost: -cost, next: self.first[to as usize] });
        (self.first[from as usize], self.first[to as usize]) = (at, at + 1);
    }

    /// Edges of a node with remaining capacity.
    fn open(&self, node: u32) -> impl Iterator<Item = (u32, Edge)> + '_ {
        let at = |edge: u32| (edge != NONE).then(|| (edge, self.edges[edge as usize]));
        std::iter::successors(at(self.first[node as usize]), move |&(_, edge)| at(edge.next))
            .filter(|(_, edge)| edge.room > 0)
    }

    /// For each run until when its page is kept.
    fn best(mut self, begins: Vec<u32>, ends: &[End]) -> Vec<u32> {
        if self.units == 0 {
            return begins;
        }
        self.begin();
        let mut search = Search::new(self.first.len());
        let mut left = self.units;
        while left > 0 {
            search.run(&mut self);
            // Further lines would serve no request.
            if self.potential[self.first.len() - 1] == self.potential[0] {
                break;
            }
            left -= self.add(&search.by, left);
        }
        let mut until = begins;
        for (end, &edge) in ends.iter().zip(&self.of_end) {
            if self.edges[edge as usize].room == 0 {
                until[end.run as usize] = end.at;
            }
        }
        until
    }

    /// Initial potentials: costs of the best paths in order of time.
    fn begin(&mut self) {
        self.potential[0] = 0;
        for node in 0..self.first.len() {
            let here = self.potential[node];
            let mut at = self.first[node];
            while at != NONE {
                let edge = self.edges[at as usize];
                if edge.room > 0 {
                    let there = &mut self.potential[edge.to as usize];
                    *there = (*there).min(here + edge.cost);
                }
                at = edge.next;
            }
        }
    }

    /// Adds as much flow as fits along the path found; returns how much.
    fn add(&mut self, by: &[u32], most: u32) -> u32 {
        let path = || {
            let end = by[self.first.len() - 1];
            std::iter::successors(Some(end), |&edge| {
                let from = self.edges[edge as usize ^ 1].to;
                (from != 0).then(|| by[from as usize])
            })
        };
        let n = path().map(|edge| self.edges[edge as usize].room).fold(most, u32::min);
        for edge in path().collect::<Vec<u32>>() {
            self.edges[edge as usize].room -= n;
            self.edges[edge as usize ^ 1].room += n;
        }
        n
    }
}

/// Dijkstra's search for the best path to the last node.
struct Search {
    distance: Vec<i64>,
    /// The edge by which each node is reached.
    by: Vec<u32>,
    queue: BinaryHeap<Reverse<(i64, u32)>>,
}

impl Search {
    fn new(nodes: usize) -> Search {
        Search { distance: vec![0; nodes], by: vec![NONE; nodes], queue: BinaryHeap::new() }
    }

    /// Finds the path, and adds its costs to the potentials.
    fn run(&mut self, flow: &mut Flow) {
        let last = self.distance.len() as u32 - 1;
        self.distance.fill(i64::MAX);
        self.queue.clear();
        self.distance[0] = 0;
        self.queue.push(Reverse((0, 0)));
        while let Some(Reverse((distance, node))) = self.queue.pop() {
            if node == last {
                break;
            }
            if distance > self.distance[node as usize] {
                continue;
            }
            let here = distance + flow.potential[node as usize];
            for (number, edge) in flow.open(node) {
                let there = here + edge.cost - flow.potential[edge.to as usize];
                if there < self.distance[edge.to as usize] {
                    self.distance[edge.to as usize] = there;
                    self.by[edge.to as usize] = number;
                    self.queue.push(Reverse((there, edge.to)));
                }
            }
        }
        // Nodes farther than the last one are not on the path, and may count as equally far.
        let most = self.distance[last as usize];
        for (potential, &distance) in flow.potential.iter_mut().zip(&self.distance) {
            *potential += distance.min(most);
        }
    }
}
