//! Several I/Os submitted with one call, and completions waited for together, against commands and
//! times worked out by hand.

use std::collections::VecDeque;

use crate::common::recorder::recorder;
use paternoster::{
    BioFlags, Instant, IoPrio, Nanos, NoTrace, Op, PlugLimits, SchedulerKind, Sector, SectorCount,
};
use paternoster_lab::sim::{
    Action, Costs, CpuTime, Ended, Io, Moment, Setup, Simulation, TaskId, TaskSetup, Workload,
};

/// A task that does one thing after the other.
struct Script {
    actions: VecDeque<Action>,
    /// When it was asked.
    asked: Vec<Nanos>,
    ended: Vec<Ended>,
}

impl Workload for Script {
    fn tasks(&self) -> Vec<TaskSetup> {
        vec![TaskSetup { group: None, io_prio: IoPrio::default(), start: Instant::START }]
    }

    fn next(&mut self, moment: &mut Moment<'_>, _task: TaskId) -> Action {
        self.asked.push(moment.now.since_start());
        self.actions.pop_front().unwrap_or(Action::Exit)
    }

    fn completed(&mut self, _moment: &mut Moment<'_>, ended: &Ended) {
        self.ended.push(*ended);
    }
}

/// A read of 8 sectors.
fn read(sector: u64) -> Io {
    Io {
        name: sector,
        op: Op::Read,
        flags: BioFlags::empty(),
        sector: Sector(sector),
        sectors: SectorCount(8),
        io_prio: None,
    }
}

fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// What came of a script on so many servers of 100 µs.
struct Outcome {
    /// The commands of the device: when, from which sector on, how many sectors.
    commands: Vec<(Nanos, u64, u32)>,
    asked: Vec<Nanos>,
    ended: Vec<Ended>,
    cpu: CpuTime,
}

fn run(setup: &Setup, servers: u32, actions: impl Into<VecDeque<Action>>) -> Outcome {
    let (device, log) = recorder(servers, us(100), Nanos::ZERO);
    let script = Script { actions: actions.into(), asked: vec![], ended: vec![] };
    let mut sim = Simulation::new(setup, script, device, NoTrace).expect("a setup");
    sim.run().expect("the run ends");
    let commands = log.borrow().iter().map(|(at, c)| (*at, c.sector.0, c.sectors.0)).collect();
    let Script { asked, ended, .. } = sim.workload();
    Outcome { commands, asked: asked.clone(), ended: ended.clone(), cpu: sim.cpu_time() }
}

fn setup() -> Setup {
    Setup::new(SchedulerKind::None)
}

/// An idle device takes the first read of two neighbours before the second comes; with one call
/// they are one command. Each read completes for itself.
#[test]
fn neighbours_of_one_call_are_one_command_though_the_device_is_idle() {
    let reads = [read(0), read(8), read(16), read(1000)];
    let one_by_one = reads.map(Action::Submit);
    let commands = run(&setup(), 8, one_by_one).commands;
    let sectors: Vec<_> = commands.iter().map(|(_, sector, sectors)| (*sector, *sectors)).collect();
    assert_eq!(sectors, [(0, 8), (8, 8), (16, 8), (1000, 8)]);

    let outcome = run(&setup(), 8, [Action::SubmitAll(reads.to_vec())]);
    assert_eq!(outcome.commands, [(Nanos::ZERO, 0, 24), (Nanos::ZERO, 1000, 8)]);
    let names: Vec<_> = outcome.ended.iter().map(|ended| ended.io.name).collect();
    assert_eq!(names, [0, 8, 16, 1000]);

    let off = Setup { plug: PlugLimits::OFF, ..setup() };
    let commands = run(&off, 8, [Action::SubmitAll(reads.to_vec())]).commands;
    assert_eq!(commands.len(), 4, "nothing is held back");
}

/// As with `io_uring_enter`: a plug is worth it from three on.
#[test]
fn two_reads_of_one_call_do_not_wait_for_each_other() {
    let outcome = run(&setup(), 8, [Action::SubmitAll(vec![read(0), read(8)])]);
    assert_eq!(outcome.commands.len(), 2);
    let outcome = run(&setup(), 8, [Action::SubmitAll(vec![])]);
    assert_eq!((outcome.commands.len(), outcome.asked.len()), (0, 2));
}

/// mq-deadline begins with the oldest read and goes on with the next sector. It sees all of a call
/// before it dispatches the first.
#[test]
fn reads_of_one_call_enter_the_scheduler_before_it_chooses() {
    let reads = vec![read(1000), read(3000), read(2000)];
    let setup = Setup::new(SchedulerKind::MqDeadline);
    let starts = |actions| -> Vec<u64> {
        run(&setup, 1, actions).commands.iter().map(|(_, sector, _)| *sector).collect()
    };
    assert_eq!(starts(vec![Action::SubmitAll(reads.clone())]), [1000, 2000, 3000]);
    assert_eq!(starts(reads.into_iter().map(Action::Submit).collect()), [1000, 3000, 2000]);
}

/// A request has one priority, so what merges has one.
#[test]
fn reads_of_other_priorities_do_not_merge_in_a_call() {
    let mut reads: Vec<_> = (0..8).map(|n| read(8 * n)).collect();
    for urgent in &mut reads[4..] {
        urgent.io_prio = IoPrio::rt(0);
    }
    let commands = run(&setup(), 8, [Action::SubmitAll(reads)]).commands;
    assert_eq!(commands, [(Nanos::ZERO, 0, 32), (Nanos::ZERO, 32, 32)]);
}

/// A read of 6000 sectors is split by the device's limit, and completes once.
#[test]
fn long_read_of_a_call_is_split() {
    let long = Io { sectors: SectorCount(6000), ..read(0) };
    let outcome = run(&setup(), 8, [Action::SubmitAll(vec![long, read(10_000), read(20_000)])]);
    assert!(outcome.commands.len() > 3, "{:?}", outcome.commands);
    let sum: u32 = outcome.commands.iter().map(|(_, _, sectors)| sectors).sum();
    assert_eq!(sum, 6016);
    assert_eq!(outcome.ended.len(), 3);
}

/// On two servers of 100 µs, four reads complete at 100, 100, 200 and 200 µs. The third completes
/// first at 200 µs.
#[test]
fn task_that_waits_for_three_is_asked_once() {
    let reads = (0..4).map(|n| Action::Submit(read(1000 * n)));
    let outcome = run(&setup(), 2, reads.chain([Action::WaitFor(3)]).collect::<Vec<_>>());
    assert_eq!(outcome.asked[4..], [Nanos::ZERO, us(200)]);
}

fn costs() -> Costs {
    Costs {
        submit: Nanos::new(1000),
        complete: Nanos::new(500),
        wake: Nanos::new(300),
        varies_percent: 0,
        hold: Nanos::new(400),
        hold_after_wait: Nanos::new(400),
    }
}

/// Of four reads two merge into the first. A core needs 4 × 1 µs to submit them and holds the lock
/// for 2 × 0.2 µs; the two commands cost 0.5 µs and 0.2 µs each when they complete. Then the task
/// is woken once, in 0.3 µs.
#[test]
fn core_submits_reads_one_by_one_and_takes_the_lock_for_requests() {
    let setup = Setup { costs: costs(), ..setup() };
    let call = Action::SubmitAll(vec![read(0), read(8), read(16), read(1000)]);
    let outcome = run(&setup, 8, [call, Action::WaitFor(4)]);
    let entered = Nanos::new(4 * 1000 + 2 * 200);
    assert_eq!(outcome.commands, [(entered, 0, 24), (entered, 1000, 8)]);
    assert_eq!(outcome.cpu.held, Nanos::new(2 * 200 + 2 * 200));
    assert_eq!(outcome.cpu.busy, Nanos::new(4 * 1000 + 2 * 200 + 2 * 700 + 300));
    // Of the first command only its first read counts its completion.
    let cpu: Vec<_> = outcome.ended.iter().map(|ended| ended.cpu.as_nanos()).collect();
    assert_eq!(cpu, [1100 + 700, 1100, 1100, 1100 + 700 + 300]);
    assert!(outcome.ended.iter().all(|ended| ended.submitted == Instant::START));
    assert!(outcome.ended.iter().all(|ended| ended.entered.since_start() == entered));
}

/// A read enters at 1.2 µs, its command is done at 101.2 µs and complete at 101.9 µs. Who polls
/// sees it then, and who sleeps 0.3 µs later.
#[test]
fn task_that_polls_is_not_woken() {
    let setup = Setup { costs: costs(), ..setup() };
    for (wait, asked) in [(Action::Poll, 101_900), (Action::Wait, 102_200)] {
        let outcome = run(&setup, 8, [Action::Submit(read(0)), wait.clone()]);
        assert_eq!(outcome.asked[2], Nanos::new(asked), "{wait:?}");
    }
}

/// A client that is 7 µs away.
#[test]
fn call_is_on_its_way_as_one() {
    let setup = Setup { way: us(7), ..setup() };
    let call = Action::SubmitAll(vec![read(0), read(8), read(16)]);
    let outcome = run(&setup, 8, [call, Action::WaitFor(3)]);
    assert_eq!(outcome.commands, [(us(7), 0, 24)]);
    assert_eq!(outcome.asked, [Nanos::ZERO, Nanos::ZERO, us(107)]);
}
