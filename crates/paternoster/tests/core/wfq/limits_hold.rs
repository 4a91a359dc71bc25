//! What holds of caps, reservations and latency targets in a tree of groups, whatever happens when.

use std::num::NonZeroU64;

use paternoster::{
    AnyScheduler, Bio, Device, Elevator, GroupId, GroupLimits, Instant, IoPrio, IocId, NoTrace, Op,
    RequestId, SchedulerKind, Sector, SectorCount, Weight,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rig::{ms, us};

/// Groups p{a, b}, q{c}, d by their parents; p has own requests too.
const PARENTS: [Option<usize>; 6] = [None, Some(0), Some(0), None, Some(3), None];
/// The root, behind them; it takes caps alone.
const ROOT: usize = PARENTS.len();
/// Those of the nine limits that are no caps.
const NO_CAPS: [usize; 3] = [4, 5, 8];
/// The groups of the tasks.
const TASKS: [usize; 5] = [1, 2, 4, 5, 0];
/// The least burst, which is what a cap is exceeded by.
const BURST_MS: u64 = 1;

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A task submits a read or a write of so many sectors.
    Submit {
        task: usize,
        write: bool,
        sectors: u32,
    },
    /// Time passes, and timeouts are handled when they come.
    Wait {
        micros: u64,
    },
    /// The oldest in the device completes.
    Complete,
    /// The newest is handed back.
    Requeue,
    /// One of the caps and two reservations of a group, or its latency target, is set or
    /// removed.
    Limit(Limit),
    /// A depth, another burst in milliseconds, or how long a run is.
    Set(&'static str, i64),
    /// The device takes so many: for a while none at all.
    DeviceDepth(u32),
    Switch,
    Cancel,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    group: usize,
    which: usize,
    /// A second, or of a latency target the microseconds.
    value: u64,
}

fn limit() -> impl Strategy<Value = Limit> {
    let value = prop_oneof![Just(0), 1..100u64, 100..100_000_000u64];
    let is_there = |&(group, which): &_| group != ROOT || !NO_CAPS.contains(&which);
    let which = (0..=ROOT, 0..9usize).prop_filter("the root has it", is_there);
    (which, value).prop_map(|((group, which), value)| Limit { group, which, value })
}

/// None, or runs that are as long as they may be: what a device does in that time is many requests.
fn run_us() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 9_000..=10_000i64]
}

/// What happens while limits stay as they are. What takes long, takes `longest` microseconds.
fn work(longest: u64) -> impl Strategy<Value = Happening> {
    let submit = (0..TASKS.len(), any::<bool>(), 1..300u32);
    prop_oneof![
        12 => submit.prop_map(|(task, write, sectors)| Happening::Submit { task, write, sectors }),
        6 => prop_oneof![0..100u64, 0..longest].prop_map(|micros| Happening::Wait { micros }),
        8 => Just(Happening::Complete),
        1 => Just(Happening::Requeue),
        1 => (1..8i64).prop_map(|depth| Happening::Set("depth", depth)),
    ]
}

fn anything() -> impl Strategy<Value = Happening> {
    prop_oneof![
        20 => work(100_000),
        3 => limit().prop_map(Happening::Limit),
        1 => (1..200i64).prop_map(|burst| Happening::Set("burst", burst)),
        1 => run_us().prop_map(|run_us| Happening::Set("run_us", run_us)),
        1 => (0..9u32).prop_map(Happening::DeviceDepth),
        1 => Just(Happening::Switch),
        1 => Just(Happening::Cancel),
    ]
}

/// A request that was dispatched for the first time.
#[derive(Clone, Copy, Debug)]
struct Dispatch {
    at: Instant,
    group: usize,
    op: Op,
    bytes: u64,
}

struct Run {
    elevator: Elevator<AnyScheduler<NoTrace>>,
    now: Instant,
    groups: Vec<GroupId>,
    tasks: Vec<IocId>,
    in_device: Vec<RequestId>,
    /// Of each request that was submitted, whether it was dispatched.
    dispatched: Vec<bool>,
    done: Vec<u64>,
    dispatches: Vec<Dispatch>,
    /// How many the device takes.
    device_depth: u32,
}

impl Run {
    fn new() -> Self {
        let now = Instant::START;
        let scheduler = AnyScheduler::new(SchedulerKind::Wfq, NoTrace);
        let mut elevator = Elevator::new(scheduler, Device::solid_state(8), now);
        elevator.set_nr_requests(None);
        for (name, value) in [("burst", BURST_MS.cast_signed()), ("depth", 4)] {
            elevator.set_tunable(now, name, value).expect("its own");
        }
        let mut groups: Vec<GroupId> = vec![];
        for parent in PARENTS {
            let parent = parent.map_or(elevator.groups().root(), |parent| groups[parent]);
            groups.push(elevator.add_group(now, parent, Weight::default()));
        }
        groups.push(elevator.groups().root());
        let tasks = TASKS.map(|at| elevator.add_io_context(now, IoPrio::default(), groups[at]));
        Self {
            elevator,
            now,
            groups,
            tasks: tasks.to_vec(),
            in_device: vec![],
            dispatched: vec![],
            done: vec![],
            dispatches: vec![],
            device_depth: 8,
        }
    }

    fn limit(&mut self, Limit { group, which, value }: Limit) {
        let group = self.groups[group];
        let mut limits = *self.elevator.groups()[group].limits();
        let limit = match which {
            0 => &mut limits.riops,
            1 => &mut limits.wiops,
            2 => &mut limits.rbps,
            3 => &mut limits.wbps,
            4 => &mut limits.min_iops,
            5 => &mut limits.min_bps,
            6 => &mut limits.iops,
            7 => &mut limits.bps,
            _ => {
                limits.latency_target = (value > 0).then(|| us(value));
                &mut None
            }
        };
        *limit = NonZeroU64::new(value);
        self.elevator.set_group_limits(self.now, group, limits);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Submit { task, write, sectors } => {
                let name = self.dispatched.len() as u64;
                self.dispatched.push(false);
                let op = if write { Op::Write } else { Op::Read };
                let (ioc, sectors) = (self.tasks[task], SectorCount(sectors));
                // Far from each other: nothing merges.
                let bio = Bio::new(op, ioc, Sector(name * 1000), sectors).with_user_data(name);
                let _ = self.elevator.submit(self.now, bio);
            }
            Happening::Wait { micros } => self.wait(micros),
            Happening::Complete => self.complete(),
            Happening::Requeue => {
                if let Some(rq) = self.in_device.pop() {
                    self.elevator.requeue(self.now, rq);
                }
            }
            Happening::Limit(limit) => self.limit(limit),
            Happening::Set(name, value) => {
                let _ = self.elevator.set_tunable(self.now, name, value);
            }
            Happening::DeviceDepth(depth) => {
                self.device_depth = depth;
                self.elevator.set_depth(depth);
            }
            Happening::Switch => {
                let is_wfq = self.elevator.scheduler().kind() == SchedulerKind::Wfq;
                let to = if is_wfq { SchedulerKind::None } else { SchedulerKind::Wfq };
                self.elevator.switch(self.now, AnyScheduler::new(to, NoTrace));
            }
            Happening::Cancel => {
                for cancelled in self.elevator.cancel_queued(self.now) {
                    self.done.extend(cancelled.user_data);
                }
            }
        }
        self.dispatch();
    }

    fn wait(&mut self, micros: u64) {
        let end = self.now + us(micros);
        while let Some(at) = self.elevator.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.elevator.handle_timeout(self.now);
            self.dispatch();
            let next = self.elevator.poll_timeout();
            assert!(
                next.is_none_or(|next| next > self.now),
                "a timeout is over once it is handled"
            );
        }
        self.now = end;
    }

    fn complete(&mut self) {
        if !self.in_device.is_empty() {
            let rq = self.in_device.remove(0);
            self.done.extend(self.elevator.complete(self.now, rq).user_data);
        }
    }

    /// Dispatches until there is none.
    fn dispatch(&mut self) {
        while let Some(rq) = self.elevator.dispatch(self.now) {
            let request = self.elevator.request(rq);
            let name = usize::try_from(request.name()).expect("an index");
            if !std::mem::replace(&mut self.dispatched[name], true) {
                let (op, bytes) = (request.op, request.sectors.bytes());
                let group = self.groups.iter().position(|&group| group == request.group);
                let group = group.expect("one of ours");
                self.dispatches.push(Dispatch { at: self.now, group, op, bytes });
            }
            self.in_device.push(rq);
        }
        self.elevator.check();
        let waits = self.elevator.queued() > 0 && self.in_device.is_empty();
        let timeout = self.elevator.poll_timeout();
        let waits = waits && self.device_depth > 0;
        assert!(!waits || timeout.is_some_and(|at| at > self.now), "what waits, waits for a cap");
    }

    /// Removes all limits and has everything done: each request once.
    fn end(mut self) -> Vec<Dispatch> {
        for group in &self.groups {
            self.elevator.set_group_limits(self.now, *group, GroupLimits::NONE);
        }
        self.happen(Happening::DeviceDepth(8));
        while !self.in_device.is_empty() {
            self.complete();
            self.dispatch();
        }
        assert_eq!(self.elevator.queued(), 0, "nothing holds anything");
        self.done.sort_unstable();
        let all: Vec<_> = (0..self.dispatched.len() as u64).collect();
        assert_eq!(self.done, all, "each is done once");
        self.dispatches
    }
}

/// Asserts of one cap, from every dispatch to every later one: what was dispatched is at most rate
/// × (time + burst), and one request, the last.
fn assert_capped(amounts: &[(Instant, u64)], per_s: u64) {
    for (at, &(from, _)) in amounts.iter().enumerate() {
        let mut before = 0;
        for &(now, amount) in &amounts[at..] {
            let span = now.saturating_since(from) + ms(BURST_MS);
            let allowed = u128::from(span.as_nanos()) * u128::from(per_s) / 1_000_000_000;
            assert!(before <= allowed, "{before} in {span:?} at {per_s}");
            before += u128::from(amount);
        }
    }
}

fn within(mut group: usize, ancestor: usize) -> bool {
    if ancestor == ROOT {
        return true;
    }
    while group != ancestor {
        match PARENTS[group] {
            Some(parent) => group = parent,
            None => return false,
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// No request is lost, and none waits without an end in sight.
    #[test]
    fn every_request_is_served_once_whatever_limits_come_and_go(
        happenings in vec(anything(), 1..200),
    ) {
        let mut run = Run::new();
        for happening in happenings {
            run.happen(happening);
        }
        run.end();
    }

    /// Caps of the whole tree hold at once, of groups and of those above them, and in runs, which
    /// are long where nothing takes longer than 100 µs.
    #[test]
    fn no_cap_is_exceeded_by_more_than_its_burst_and_a_request(
        limits in vec(limit(), 1..8),
        run_us in run_us(),
        happenings in prop_oneof![vec(work(100), 1..600), vec(work(100_000), 1..300)],
    ) {
        let mut run = Run::new();
        run.happen(Happening::Set("run_us", run_us));
        for limit in limits {
            run.limit(limit);
        }
        let groups = run.elevator.groups();
        let limits: Vec<_> = run.groups.iter().map(|&group| *groups[group].limits()).collect();
        for happening in happenings {
            run.happen(happening);
        }
        for (group, limits) in limits.iter().enumerate() {
            let (reads, writes) = ([Op::Read].as_slice(), [Op::Write].as_slice());
            for (ops, requests, bytes) in [
                (reads, limits.riops, limits.rbps),
                (writes, limits.wiops, limits.wbps),
                (&[Op::Read, Op::Write], limits.iops, limits.bps),
            ] {
                let of_it = |rq: &&Dispatch| ops.contains(&rq.op) && within(rq.group, group);
                let of_it: Vec<_> = run.dispatches.iter().filter(of_it).collect();
                if let Some(per_s) = requests {
                    let each: Vec<_> = of_it.iter().map(|rq| (rq.at, 1)).collect();
                    assert_capped(&each, per_s.get());
                }
                if let Some(per_s) = bytes {
                    let each: Vec<_> = of_it.iter().map(|rq| (rq.at, rq.bytes)).collect();
                    assert_capped(&each, per_s.get());
                }
            }
        }
        run.end();
    }
}
