//! Tasks and groups that always have sync requests waiting are charged time by their weights, at
//! each place where they compete, where CFQ serves queues by vdisktime.
//!
//! The ideal is a fluid: what is charged at a place divides among its `n` competitors by weight at
//! every moment. `S` is what all were charged together since each had been charged twice, `s(i)`
//! and `w(i)` are the charge and the weight of one, `W` is the sum of weights, and `m(i)` the
//! largest single charge. A charge of `c` moves a competitor by `c / w(i)`, and only the one that
//! is least is charged. So two of them are never further apart than the largest step of each, as in
//! `shares.rs`:
//!
//! ```text
//!   |s(i) / w(i) − s(j) / w(j)| ≤ m(i) / w(i) + m(j) / w(j)
//!   |s(i) − S × w(i) / W|       ≤ m(i) + w(i) / W × Σ m(j)      the sum of that × w(j) / W
//! ```
//!
//! From the root down the error of the place above is divided too:
//!
//! ```text
//!   error(i) = error(above) × w(i) / W + m(i) + w(i) / W × Σ m(j)
//! ```
//!
//! The shares and errors are worked out here from the weights that the test has chosen.
//!
//! Where one comes in shows in the order of first slices. All come at the start, before the first
//! slice ends, and only the one that has it has moved a minimum. So queues of a place come in at
//! one vdisktime, each behind a jump that is greater the lower its level is; a group comes in
//! behind all that are there. Before all have been charged that is over.

use std::collections::BTreeMap;

use paternoster::{Cfq, CfqEvent, Event, GroupId, Hierarchy, IoPrio, Nanos, Recorder, Weight};

use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;

/// The weight of a task by its level.
const LEVELS: [u32; 8] = [1000, 868, 740, 612, 484, 356, 228, 100];
/// The weight of the root where it competes.
const ROOT: u32 = 1000;
/// So many slices a task, on average.
const SLICES: usize = 12;
/// No task has less than this of the device.
const LEAST_PART: f64 = 0.004;
/// Within so many events.
const EVENTS: u32 = 1_000_000;

/// What competes: a task, a group, or the device itself, which has no parent.
struct Node {
    parent: Option<usize>,
    weight: u32,
    /// The level of a task.
    level: Option<usize>,
    /// What it was charged since all had been charged twice.
    service: f64,
    largest: f64,
    /// Slices of any task before the first one of it or below it.
    first: Option<usize>,
}

/// What a place is to have.
#[derive(Clone, Copy)]
struct Ideal {
    /// Of all that is charged.
    part: f64,
    /// In ns.
    error: f64,
}

struct Trees {
    load: Load<Cfq<Recorder>>,
    hierarchy: Hierarchy,
    /// Parents first; the device is the first.
    nodes: Vec<Node>,
    /// Groups with their nodes and depths, the root first.
    groups: Vec<(GroupId, usize, u32)>,
    /// The nodes of tasks by their indices in the load, with the slices that they had.
    tasks: BTreeMap<usize, (usize, usize)>,
    /// Slices of any task that have begun.
    begun: usize,
}

impl Trees {
    fn new(seed: u64, hierarchy: Hierarchy) -> Self {
        let mut random = Random::new(seed);
        let device = random.device(&[1, 2]);
        let service = Nanos::from_micros(random.pick(&[1000, 2000]));
        let mut load = Load::new(Cfq::new(Recorder::default()), random, device, service);
        let values = [
            // Several requests a slice: the think time is short, and no queue loses its window.
            ("slice_idle", load.random.pick(&[8, 16])),
            ("slice_sync", load.random.pick(&[20, 30])),
            ("group_idle", load.random.pick(&[0, 8])),
            ("low_latency", load.random.below(2)),
        ];
        for (name, value) in values {
            load.tune(name, value);
        }
        load.administer(|elevator, now| elevator.set_hierarchy(now, hierarchy)).expect("it has");
        let root = load.root();
        let tasks = BTreeMap::new();
        let mut trees = Self { load, hierarchy, nodes: vec![], groups: vec![], tasks, begun: 0 };
        let device_node = trees.node(None, 0, None);
        let root_node = match hierarchy {
            Hierarchy::Entities => device_node,
            _ => trees.node(Some(device_node), ROOT, None),
        };
        trees.groups.push((root, root_node, 0));
        for _ in 0..=trees.load.random.below(6) {
            trees.add_group();
        }
        for group in 0..trees.groups.len() {
            for _ in 0..trees.load.random.below(4) {
                trees.add_task(group, device.queue_depth);
            }
        }
        trees.add_task(0, device.queue_depth);
        trees
    }

    fn node(&mut self, parent: Option<usize>, weight: u32, level: Option<usize>) -> usize {
        self.nodes.push(Node { parent, weight, level, service: 0.0, largest: 0.0, first: None });
        self.nodes.len() - 1
    }

    /// At most three below one another. Where groups are side by side, all compete in one place.
    fn add_group(&mut self) {
        let (parent, above, depth) = self.load.random.pick(&self.groups);
        if depth == 3 {
            return;
        }
        let weight = self.load.random.pick(&[50, 100, 250, 484, 500, 1000]);
        let group = self.load.add_group(parent, Weight::new(weight).expect("a weight"));
        let place = if self.hierarchy == Hierarchy::Entities { above } else { 0 };
        let node = self.node(Some(place), weight, None);
        self.groups.push((group, node, depth + 1));
    }

    fn add_task(&mut self, group: usize, queue_depth: u32) {
        let (group, above, _) = self.groups[group];
        let level = self.load.random.index(LEVELS.len());
        let task = Task {
            group,
            io_prio: IoPrio::be(u8::try_from(level).expect("a level")).expect("a level"),
            writes: self.load.random.below(2) == 0,
            // All are on one service tree.
            sequential: true,
            sectors: self.load.random.pick(&[64, 128]),
            // What is dispatched in one moment does not exhaust it.
            pace: Pace::Backlogged(queue_depth + 2),
        };
        let index = self.tasks.len();
        self.load.add(task);
        let node = self.node(Some(above), LEVELS[level], Some(level));
        self.tasks.insert(index, (node, 0));
    }

    /// The node, and those of the places above it, but for the device.
    fn path(&self, node: usize) -> Vec<usize> {
        let nodes = std::iter::successors(Some(node), |&at| self.nodes[at].parent);
        nodes.filter(|&at| self.nodes[at].parent.is_some()).collect()
    }

    fn run(&mut self) {
        let wanted = SLICES * self.tasks.len();
        for _ in 0..EVENTS {
            let slices = self.tasks.values().map(|&(_, slices)| slices);
            if slices.clone().sum::<usize>() >= wanted && slices.min() >= Some(4) {
                self.check_first_slices();
                return self.compare();
            }
            for (_, event) in self.load.step() {
                self.hear(event);
            }
        }
        panic!("there are too few slices in {EVENTS} events");
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Cfq(CfqEvent::Active { queue, .. }) => {
                let (node, _) = self.tasks[&self.load.task_of(queue.ioc)];
                for at in self.path(node) {
                    self.nodes[at].first.get_or_insert(self.begun);
                }
                self.begun += 1;
            }
            Event::Cfq(CfqEvent::SliceExpired { queue, charge, iops_mode, .. }) => {
                assert!(!iops_mode, "time is charged");
                let counts = self.tasks.values().all(|&(_, slices)| slices >= 2);
                let task = self.load.task_of(queue.ioc);
                let (node, slices) = self.tasks.get_mut(&task).expect("a task of the test");
                *slices += 1;
                let node = *node;
                let charge = exact(charge);
                for at in self.path(node) {
                    let node = &mut self.nodes[at];
                    node.largest = node.largest.max(charge);
                    node.service += if counts { charge } else { 0.0 };
                }
            }
            Event::Cfq(CfqEvent::GroupLeft { .. }) => panic!("all groups stay backlogged"),
            _ => {}
        }
    }

    /// Asserts in what order the competitors at each place had their first slices.
    fn check_first_slices(&self) {
        for place in 0..self.nodes.len() {
            let competitors = self.competitors(place);
            let came =
                |node: &usize| self.tasks.values().position(|&(at, _)| self.is_in(at, *node));
            for (one, other) in pairs(&competitors) {
                let (one, other) =
                    if came(&one) < came(&other) { (one, other) } else { (other, one) };
                self.check_pair(one, other);
            }
        }
    }

    /// The same of two at one place, of which `one` came before.
    fn check_pair(&self, one: usize, other: usize) {
        let [first, second] = [one, other].map(|node| self.nodes[node].first.expect("it is busy"));
        let is_due = match (self.nodes[one].level, self.nodes[other].level) {
            // The first of all moved the minimum to where it was.
            (Some(_), Some(_)) if first == 0 => true,
            (Some(level), Some(others)) => (first < second) == (level <= others),
            (_, None) => first < second,
            // Where the group is depends on who came before it.
            (None, Some(_)) => true,
        };
        assert!(
            is_due,
            "{}: node {one} of level {:?} has its first slice as number {first}, and node {other} \
             of level {:?}, which came later, as number {second}",
            self.hierarchy, self.nodes[one].level, self.nodes[other].level,
        );
    }

    fn is_in(&self, node: usize, place: usize) -> bool {
        self.path(node).contains(&place)
    }

    /// The busy competitors at a place.
    fn competitors(&self, place: usize) -> Vec<usize> {
        let leaves = self.tasks.values().map(|&(node, _)| node);
        let busy: Vec<Vec<usize>> = leaves.map(|leaf| self.path(leaf)).collect();
        let is_busy = |node: usize| busy.iter().any(|path| path.contains(&node));
        let nodes = 0..self.nodes.len();
        nodes.filter(|&at| self.nodes[at].parent == Some(place) && is_busy(at)).collect()
    }

    /// The ideal part of each place in all that is charged, and how far it may be off.
    fn ideals(&self) -> Vec<Ideal> {
        let mut ideals = vec![Ideal { part: 1.0, error: 0.0 }; self.nodes.len()];
        for place in 0..self.nodes.len() {
            let competitors = self.competitors(place);
            let sum = |value: fn(&Node) -> f64| -> f64 {
                competitors.iter().map(|&at| value(&self.nodes[at])).sum()
            };
            let (weights, steps) = (sum(|node| node.weight.into()), sum(|node| node.largest));
            let above = ideals[place];
            for &at in &competitors {
                let node = &self.nodes[at];
                let part = f64::from(node.weight) / weights;
                // One that is alone there has all.
                let own = if competitors.len() == 1 { 0.0 } else { node.largest + part * steps };
                ideals[at] = Ideal { part: above.part * part, error: above.error * part + own };
            }
        }
        ideals
    }

    /// The least part that a task has.
    fn least_part(&self) -> f64 {
        let ideals = self.ideals();
        self.tasks.values().map(|&(node, _)| ideals[node].part).fold(1.0, f64::min)
    }

    fn compare(&self) {
        let all: f64 = self.tasks.values().map(|&(node, _)| self.nodes[node].service).sum();
        for (index, ideal) in self.ideals().into_iter().enumerate() {
            let node = &self.nodes[index];
            if node.parent.is_none() || node.largest == 0.0 {
                continue;
            }
            // Charges are whole numbers of ns, and steps are cut off.
            let (expected, allowed) = (all * ideal.part, ideal.error + 1000.0);
            assert!(
                (node.service - expected).abs() <= allowed,
                "{}, node {index} of weight {}: {} ns, not {expected} to within {allowed}",
                self.hierarchy,
                node.weight,
                node.service
            );
        }
    }
}

fn pairs(nodes: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    nodes.iter().enumerate().flat_map(|(at, &one)| nodes[at + 1..].iter().map(move |&it| (one, it)))
}

#[allow(clippy::cast_precision_loss)] // less than 2⁵³ ns
fn exact(ns: u64) -> f64 {
    ns as f64
}

/// Runs a tree of a seed: the first in which no task has so little that nothing comes of it.
pub(crate) fn run(seed: u64, hierarchy: Hierarchy) {
    let mut drawn = (0..).map(|again| Trees::new(1000 * seed + again, hierarchy));
    let tree = drawn.find(|tree| tree.least_part() >= LEAST_PART);
    tree.expect("there is no end of trees").run();
}
