//! How far service may be from what weights say: of any two siblings, and of all from a fluid.
//!
//! While i and j both have something waiting, the least tag is served, and a dispatch moves a tag
//! by its charge over its weight. So tags differ by at most one step of each, and service with
//! them:
//!
//! ```text
//!   |W(i) / w(i) − W(j) / w(j)| ≤ c(i) / w(i) + c(j) / w(j)      over any such time, at each place
//! ```
//!
//! W is the service of one, w its weight, c its dearest request. While all of a place have
//! something waiting, a *fluid* divides each charge among them by weight at every moment. With the
//! sums S and Ω of their service and weights, the mean of the above over j, by weight, bounds the
//! distance:
//!
//! ```text
//!   |W(i) − S × w(i) / Ω| ≤ c(i) + w(i) / Ω × Σ c(j)
//!   error(i)              = error(above) × w(i) / Ω + that       from the root down
//! ```
//!
//! Weights, prices and who has something waiting are counted here, apart from the scheduler.

use std::collections::BTreeMap;

use paternoster::{
    AnyScheduler, Bio, Device, Elevator, Instant, IoPrio, IocId, NoTrace, Op, RequestId,
    SchedulerKind, Sector, SectorCount, Weight, Weights,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rig::us;

/// A group below one that comes before it, or below the root.
#[derive(Clone, Copy, Debug)]
struct Group {
    parent: Option<usize>,
    weight: u32,
    leaf_weight: u32,
}

#[derive(Clone, Debug)]
struct Plan {
    groups: Vec<Group>,
    /// The group and the level of each task.
    tasks: Vec<(usize, u8)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let weight = || prop_oneof![1..10u32, 10..1001u32];
    let group = (any::<prop::sample::Index>(), weight(), weight());
    let task = (any::<prop::sample::Index>(), 0..8u8);
    (vec(group, 1..7), vec(task, 2..9)).prop_map(|(groups, tasks)| {
        let below = |at: usize, (index, weight, leaf_weight): (prop::sample::Index, u32, u32)| {
            let parent = index.index(at + 1).checked_sub(1);
            Group { parent, weight, leaf_weight }
        };
        let groups: Vec<_> = groups.into_iter().enumerate().map(|(at, of)| below(at, of)).collect();
        let place = |(index, level): (prop::sample::Index, u8)| (index.index(groups.len()), level);
        let tasks = tasks.into_iter().map(place).collect();
        Plan { groups, tasks }
    })
}

/// Who competes: a group, its own requests, or a task.
#[derive(Debug)]
struct Node {
    /// The node of the group, or the own requests, that it is below; none below the root.
    above: Option<usize>,
    weight: f64,
    /// Requests below it that wait.
    waiting: u32,
    /// What was charged, in ops.
    service: f64,
    dearest: f64,
}

/// What two siblings may differ by, for as long as both have something waiting: the least and the
/// greatest of their difference since then.
type Together = BTreeMap<(usize, usize), (f64, f64)>;

struct Run {
    elevator: Elevator<AnyScheduler<NoTrace>>,
    now: Instant,
    nodes: Vec<Node>,
    tasks: Vec<IocId>,
    /// The node of each task.
    places: Vec<usize>,
    /// The task and the charge of each request.
    requests: Vec<(usize, f64)>,
    in_device: Vec<RequestId>,
    together: Together,
}

/// 1 op and 1 for each 16 KiB, of which a request has 4 at least.
fn charge(sectors: u32) -> f64 {
    1.0 + f64::from(sectors.max(8)) * 512.0 / 16384.0
}

impl Run {
    fn new(plan: &Plan, depth: i64) -> Self {
        let now = Instant::START;
        let scheduler = AnyScheduler::new(SchedulerKind::Wfq, NoTrace);
        let mut elevator = Elevator::new(scheduler, Device::solid_state(32), now);
        elevator.set_nr_requests(None);
        for (name, value) in [("depth", depth), ("keep_slots", 0), ("cost", 3)] {
            elevator.set_tunable(now, name, value).expect("its own");
        }
        let (mut nodes, mut groups, mut own) = (vec![], vec![], vec![]);
        let node = |above, weight: u32| {
            let (waiting, service, dearest) = (0, 0.0, 0.0);
            Node { above, weight: f64::from(weight), waiting, service, dearest }
        };
        // The node of a group is followed by that of its own requests.
        for &Group { parent, weight, leaf_weight } in &plan.groups {
            let weight_of = |weight| Weight::new(weight).expect("1 to 1000");
            let parent_id = parent.map_or(elevator.groups().root(), |parent| groups[parent]);
            let id = elevator.add_group(now, parent_id, weight_of(weight));
            let weights = Weights { weight: weight_of(weight), leaf: weight_of(leaf_weight) };
            elevator.set_weight(now, id, weights);
            groups.push(id);
            nodes.push(node(parent.map(|parent| 2 * parent), weight));
            nodes.push(node(Some(nodes.len() - 1), leaf_weight));
            own.push(nodes.len() - 1);
        }
        let (mut tasks, mut places) = (vec![], vec![]);
        for &(group, level) in &plan.tasks {
            let io_prio = IoPrio::be(level).expect("0 to 7");
            tasks.push(elevator.add_io_context(now, io_prio, groups[group]));
            nodes.push(node(Some(own[group]), 8 - u32::from(level)));
            places.push(nodes.len() - 1);
        }
        let (requests, in_device, together) = (vec![], vec![], Together::new());
        Self { elevator, now, nodes, tasks, places, requests, in_device, together }
    }

    /// A node and all above it.
    fn path(&self, node: usize) -> Vec<usize> {
        std::iter::successors(Some(node), |&at| self.nodes[at].above).collect()
    }

    fn siblings(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let above = self.nodes[of].above;
        (0..self.nodes.len()).filter(move |&at| at != of && self.nodes[at].above == above)
    }

    fn submit(&mut self, task: usize, sectors: u32) {
        let name = self.requests.len() as u64;
        let place = Sector(name * 100_000);
        let bio = Bio::new(Op::Read, self.tasks[task], place, SectorCount(sectors));
        let _ = self.elevator.submit(self.now, bio.with_user_data(name));
        let charge = charge(sectors);
        self.requests.push((task, charge));
        for at in self.path(self.places[task]) {
            self.nodes[at].waiting += 1;
            self.nodes[at].dearest = self.nodes[at].dearest.max(charge);
            if self.nodes[at].waiting == 1 {
                let active: Vec<_> =
                    self.siblings(at).filter(|&other| self.nodes[other].waiting > 0).collect();
                for other in active {
                    let pair = (at.min(other), at.max(other));
                    let apart = self.apart(pair);
                    self.together.insert(pair, (apart, apart));
                }
            }
        }
    }

    /// The task and the charge of a request.
    fn of(&self, rq: RequestId) -> (usize, f64) {
        let name = self.elevator.request(rq).name();
        self.requests[usize::try_from(name).expect("an index")]
    }

    /// W(i) / w(i) − W(j) / w(j)
    fn apart(&self, (i, j): (usize, usize)) -> f64 {
        let [i, j] = [i, j].map(|at| self.nodes[at].service / self.nodes[at].weight);
        i - j
    }

    fn dispatch(&mut self) {
        while let Some(rq) = self.elevator.dispatch(self.now) {
            let (task, charge) = self.of(rq);
            self.in_device.push(rq);
            for at in self.path(self.places[task]) {
                self.nodes[at].service += charge;
                self.nodes[at].waiting -= 1;
                self.judge(at);
            }
        }
    }

    /// Asserts the bound of the node and each that has had something waiting as long as it.
    fn judge(&mut self, at: usize) {
        let others: Vec<_> = self.siblings(at).collect();
        for other in others {
            let pair = (at.min(other), at.max(other));
            let Some(&(least, greatest)) = self.together.get(&pair) else { continue };
            let apart = self.apart(pair);
            let (least, greatest) = (least.min(apart), greatest.max(apart));
            let [i, j] = [at, other].map(|at| self.nodes[at].dearest / self.nodes[at].weight);
            assert!(greatest - least <= (i + j) * 1.000_001, "{pair:?}: {least} to {greatest}");
            if self.nodes[at].waiting == 0 {
                self.together.remove(&pair);
            } else {
                self.together.insert(pair, (least, greatest));
            }
        }
    }

    fn complete(&mut self) {
        if !self.in_device.is_empty() {
            let rq = self.in_device.remove(0);
            let _ = self.elevator.complete(self.now, rq);
        }
    }

    /// By how much a fluid may differ from the service of a node, and what it gives, with `all` as
    /// the service of the root's place. All have had something waiting throughout.
    fn fluid(&self, node: usize, all: f64) -> (f64, f64) {
        let (above, error) = self.nodes[node].above.map_or((all, 0.0), |at| self.fluid(at, all));
        let present = |&at: &usize| self.nodes[at].dearest > 0.0;
        let place: Vec<_> = self.siblings(node).chain([node]).filter(present).collect();
        let weights: f64 = place.iter().map(|&at| self.nodes[at].weight).sum();
        let dearest: f64 = place.iter().map(|&at| self.nodes[at].dearest).sum();
        let part = self.nodes[node].weight / weights;
        (above * part, error * part + self.nodes[node].dearest + part * dearest)
    }
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Submit { task: prop::sample::Index, sectors: u32 },
    Complete,
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let sectors = prop_oneof![3 => Just(8u32), 1 => 1..2049u32];
    let submit = (any::<prop::sample::Index>(), sectors);
    prop_oneof![
        5 => submit.prop_map(|(task, sectors)| Happening::Submit { task, sectors }),
        5 => Just(Happening::Complete),
        1 => (0..10_000u64).prop_map(Happening::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Those come and go as they like.
    #[test]
    fn two_siblings_differ_by_at_most_a_request_of_each(
        plan in plan(),
        depth in 1..9i64,
        happenings in vec(happening(), 1..500),
    ) {
        let mut run = Run::new(&plan, depth);
        for happening in happenings {
            match happening {
                Happening::Submit { task, sectors } => {
                    run.submit(task.index(run.tasks.len()), sectors);
                }
                Happening::Complete => run.complete(),
                Happening::Wait(micros) => run.now = run.now + us(micros),
            }
            run.dispatch();
        }
    }

    /// Each task has 40 requests waiting whenever one is chosen.
    #[test]
    fn service_is_that_of_a_fluid_but_for_a_request_at_each_level(
        plan in plan(),
        depth in 1..9i64,
        sectors in vec(prop_oneof![Just(8u32), 1..2049u32], 8),
    ) {
        let mut run = Run::new(&plan, depth);
        for (task, &sectors) in sectors.iter().enumerate().take(run.tasks.len()) {
            for _ in 0..40 {
                run.submit(task, sectors);
            }
        }
        run.dispatch();
        for _ in 0..1500 {
            let task = run.of(run.in_device[0]).0;
            run.submit(task, sectors[task]);
            run.complete();
            run.now = run.now + us(10);
            run.dispatch();
        }
        let top = (0..run.nodes.len()).filter(|&at| run.nodes[at].above.is_none());
        let all = top.map(|at| run.nodes[at].service).sum();
        for at in (0..run.nodes.len()).filter(|&at| run.nodes[at].dearest > 0.0) {
            let (fluid, error) = run.fluid(at, all);
            let service = run.nodes[at].service;
            let is_near = (service - fluid).abs() <= error * 1.000_001;
            prop_assert!(is_near, "{at}: {service} for {fluid}");
        }
    }
}
