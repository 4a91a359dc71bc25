//! Groups that always have sync requests waiting are charged by their weights, to within a slice.
//!
//! A charge `c` moves a group's vdisktime on by `c × 2²⁴ / f`, where `f` is its fraction, in
//! 1/4096, of all weights: with the same groups active and the weights unchanged, that of its last
//! charge, and so the same each time. Let `m(g)` be that of the group's largest charge.
//!
//! The group whose vdisktime `v` is least is chosen, and only the chosen one is charged. So a
//! charge of `g` begins at `v(g) ≤ v(h)`, for every other `h`, and ends at `v(g) ≤ v(h) + m(g)`;
//! charges of `h` only lessen the difference. Once each has been charged,
//!
//! ```text
//!   −m(h) ≤ v(g) − v(h) ≤ m(g)          at any time
//!   |Δv(g) − Δv(h)| ≤ m(g) + m(h)       between any two times
//! ```
//!
//! and `Δv(g)` is the service that was charged to `g` between them, over its fraction. A group
//! that joins goes a little behind the last one, which widens the band by that little for each.
//!
//! Weights are the test's own, and what a slice is charged is worked out from its course
//! (`slice.rs`). The trace says which queue is active, and when slices begin and end.

use paternoster::{
    Cfq, CfqEvent, Event, GroupId, Hz, Instant, IoPrio, Nanos, Recorder, Weight, Weights,
};

use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;
use crate::swarm::slice::ActiveSlice;

/// By how much a group that joins is behind the last.
const DELAY: u128 = 200_000_000;
/// The same in IOPS mode, at most.
const DELAY_IOPS: u128 = 200;
/// So many slices a group, on average; where its fraction is least it may be one.
const SLICES: u32 = 40;
/// Within so many events.
const EVENTS: u32 = 2_000_000;

/// A group as the test made it.
struct Node {
    group: GroupId,
    parent: Option<usize>,
    depth: u32,
    weight: u32,
    leaf: u32,
    tasks: u32,
    /// What it was charged since all had been charged.
    service: u128,
    /// Its largest charge.
    largest: u128,
    slices: u32,
}

impl Node {
    fn new(group: GroupId, weight: u32, leaf: u32) -> Self {
        Self {
            group,
            parent: None,
            depth: 0,
            weight,
            leaf,
            tasks: 0,
            service: 0,
            largest: 0,
            slices: 0,
        }
    }
}

struct Shares {
    load: Load<Cfq<Recorder>>,
    /// The root first.
    nodes: Vec<Node>,
    active_slice: ActiveSlice,
    iops: bool,
}

impl Shares {
    fn new(seed: u64, iops: bool) -> Self {
        let mut random = Random::new(seed);
        let depths: &[u32] = if iops { &[8, 32] } else { &[1, 2, 8] };
        let device =
            random.device(depths).with_hz(Hz::new(random.pick(&[1000, 250])).expect("a clock"));
        let service = Nanos::from_micros(random.pick(&[500, 1000, 3000]));
        let mut load = Load::new(Cfq::new(Recorder::default()), random, device, service);
        let slice_idle = if iops { 0 } else { load.random.pick(&[2, 8, 16]) };
        let slice_sync = load.random.pick(&[10, 20, 50]);
        let (group_idle, low_latency) = (load.random.pick(&[0, 8]), load.random.below(2));
        load.tune("slice_idle", slice_idle);
        load.tune("slice_sync", slice_sync);
        load.tune("group_idle", group_idle);
        load.tune("low_latency", low_latency);
        let root = Node::new(load.root(), 1000, 1000);
        let active_slice = ActiveSlice::new(device.hz.tick());
        let mut shares = Self { load, nodes: vec![root], active_slice, iops };
        for _ in 0..2 + shares.load.random.below(5) {
            shares.add_group();
        }
        shares.add_tasks(device.queue_depth);
        shares
    }

    fn weight(&mut self) -> u32 {
        self.load.random.pick(&[50, 100, 100, 250, 500, 1000])
    }

    /// At most three below one another.
    fn add_group(&mut self) {
        let possible = (0..self.nodes.len()).filter(|&node| self.nodes[node].depth < 3);
        let possible: Vec<usize> = possible.collect();
        let parent = self.load.random.pick(&possible);
        let (weight, leaf) = (self.weight(), self.weight());
        let [own, of_leaf] = [weight, leaf].map(|weight| Weight::new(weight).expect("a weight"));
        let group = self.load.add_group(self.nodes[parent].group, own);
        let weights = Weights { weight: own, leaf: of_leaf };
        self.load.administer(|elevator, now| elevator.set_weight(now, group, weights));
        let depth = self.nodes[parent].depth + 1;
        self.nodes.push(Node { parent: Some(parent), depth, ..Node::new(group, weight, leaf) });
    }

    /// To the first two groups below the root, and to any of the others.
    fn add_tasks(&mut self, queue_depth: u32) {
        for node in 0..self.nodes.len() {
            let random = &mut self.load.random;
            let tasks = if node == 1 || node == 2 { 1 } else { random.pick(&[0, 1, 1, 2]) };
            self.nodes[node].tasks = tasks;
            for _ in 0..tasks {
                let random = &mut self.load.random;
                let level = u8::try_from(random.below(8)).expect("a level");
                let classes = [IoPrio::be(level), IoPrio::be(level), IoPrio::rt(level)];
                let task = Task {
                    group: self.nodes[node].group,
                    io_prio: random.pick(&classes).expect("a level"),
                    writes: random.below(2) == 0,
                    sequential: random.below(2) == 0,
                    sectors: random.pick(&[8, 16, 128]),
                    // What is dispatched in one moment does not exhaust it.
                    pace: Pace::Backlogged(queue_depth + 2),
                };
                self.load.add(task);
            }
        }
    }

    /// Whether there are requests of the group or below it.
    fn is_active(&self, node: usize) -> bool {
        let mut children = (0..self.nodes.len()).filter(|&at| self.nodes[at].parent == Some(node));
        self.nodes[node].tasks > 0 || children.any(|child| self.is_active(child))
    }

    /// The sum of the weights that compete in the group: those of its own requests and of the
    /// groups directly below it.
    fn competing(&self, node: usize) -> u32 {
        let own = if self.nodes[node].tasks > 0 { self.nodes[node].leaf } else { 0 };
        let children = (0..self.nodes.len())
            .filter(|&child| self.nodes[child].parent == Some(node) && self.is_active(child));
        own + children.map(|child| self.nodes[child].weight).sum::<u32>()
    }

    /// The part of the device that is the group's own requests', in 1/4096, cut off at each level.
    fn fraction(&self, node: usize) -> u32 {
        let mut fraction = 4096 * self.nodes[node].leaf / self.competing(node);
        let mut at = node;
        while let Some(parent) = self.nodes[at].parent {
            fraction = fraction * self.nodes[at].weight / self.competing(parent);
            at = parent;
        }
        fraction.max(1)
    }

    fn served(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].tasks > 0).collect()
    }

    fn run(&mut self) {
        let served = self.served();
        let fractions: Vec<u128> =
            (0..self.nodes.len()).map(|node| self.fraction_or_none(node).into()).collect();
        let all = SLICES * u32::try_from(served.len()).expect("a few groups");
        for _ in 0..EVENTS {
            let slices = served.iter().map(|&node| self.nodes[node].slices);
            if slices.clone().sum::<u32>() >= all && slices.min() >= Some(1) {
                return;
            }
            for (at, event) in self.load.step() {
                self.hear(at, event, &served);
                if matches!(event, Event::Cfq(CfqEvent::SliceExpired { .. })) {
                    self.compare(&served, &fractions);
                }
            }
        }
        panic!("there are too few slices in {EVENTS} events");
    }

    fn fraction_or_none(&self, node: usize) -> u32 {
        if self.nodes[node].tasks > 0 { self.fraction(node) } else { 0 }
    }

    fn hear(&mut self, at: Instant, event: Event, served: &[usize]) {
        self.active_slice.hear(at, event);
        match event {
            Event::Cfq(CfqEvent::SliceExpired { group, charge, iops_mode, .. }) => {
                assert_eq!(iops_mode, self.iops, "what groups are charged for");
                let all_charged = served.iter().all(|&node| self.nodes[node].slices > 0);
                let node = self.nodes.iter_mut().find(|node| node.group == group);
                let node = node.expect("a group of the test");
                node.slices += 1;
                node.largest = node.largest.max(charge.into());
                if all_charged {
                    node.service += u128::from(charge);
                }
            }
            Event::Cfq(CfqEvent::GroupLeft { .. }) => panic!("all groups stay backlogged"),
            _ => {}
        }
    }

    fn compare(&self, served: &[usize], fractions: &[u128]) {
        let scaled = |node: usize, amount: u128| (amount << 24) / fractions[node];
        let slices: u32 = self.nodes.iter().map(|node| node.slices).sum();
        // Each charge is cut off to a whole number.
        let delay = if self.iops { DELAY_IOPS } else { DELAY };
        let slack = 2 * delay * served.len() as u128 + u128::from(slices);
        for (position, &g) in served.iter().enumerate() {
            for &h in &served[position + 1..] {
                let [of_g, of_h] = [g, h].map(|node| scaled(node, self.nodes[node].service));
                let one = [g, h].map(|node| scaled(node, self.nodes[node].largest));
                let (apart, allowed) = (of_g.abs_diff(of_h), one[0] + one[1] + slack);
                assert!(
                    apart <= allowed,
                    "groups {g} and {h} of {} and {} in 4096 are {apart} apart, not {allowed}",
                    fractions[g],
                    fractions[h]
                );
            }
        }
    }
}

/// Runs groups of a seed.
pub(crate) fn run(seed: u64, iops: bool) {
    Shares::new(seed, iops).run();
}
