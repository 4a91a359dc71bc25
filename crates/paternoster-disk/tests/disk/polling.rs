//! An owner waits for its device as it was told to. That it sleeps is tested with each policy that
//! does: in Linux it did not for months, and nobody saw it.
//!
//! Which read is slept for is decided in virtual time, in the core's tests of `poll`. Here a thread
//! that loses its core finds a read done before it can sleep: a third is what is asked for.

use std::ops::ControlFlow;
use std::thread::available_parallelism;

use paternoster::poll::{AutoTunables, PollPolicy};
use paternoster::{AnyScheduler, Device, Instant, IocId, Nanos, NoTrace, SchedulerKind};
use paternoster_disk::{
    Command, CommandOp, Completion, Front, FrontToken, ModelledBackend, Outcome, ServersTime,
    VolumeId, WaitStats, Waker,
};

use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, within_a_minute};

const AUTO: PollPolicy = PollPolicy::Auto(AutoTunables::DEFAULT);

/// How long each read takes the device: much longer than a sleep takes the thread.
const READ: Nanos = Nanos::from_micros(400);

/// Reads one block after the other.
struct OneAtATime {
    volume: VolumeId,
    ioc: IocId,
    reads: u64,
    /// Another policy, from that read on.
    then: Option<(u64, PollPolicy)>,
    /// Whether it has read enough.
    is_enough: fn(u64, &WaitStats) -> bool,
    /// When it began and how much the thread had been on a processor by then.
    began: (Instant, Nanos),
    seen: Option<Seen>,
}

/// What became of it.
struct Seen {
    reads: u64,
    took: Nanos,
    cpu: Nanos,
    stats: WaitStats,
}

impl OneAtATime {
    fn read(&mut self, owner: &mut TestOwner) {
        self.reads += 1;
        if let Some((_, policy)) = self.then.filter(|(read, _)| *read == self.reads) {
            owner.set_polling(policy);
        }
        let op = CommandOp::Read { offset: 0, len: 4096 };
        owner.submit(Command { tag: self.reads.into(), volume: self.volume, ioc: self.ioc, op });
    }
}

impl Front<AnyScheduler<NoTrace>> for OneAtATime {
    fn started(&mut self, owner: &mut TestOwner) {
        self.began = (owner.now(), owner.cpu_time());
        self.read(owner);
    }

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring");
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, owner: &mut TestOwner, outcome: Outcome) {
        assert_eq!(outcome.result.map(|payload| payload.concat().len()), Ok(4096));
        let stats = owner.wait_stats();
        if !(self.is_enough)(self.reads, &stats) {
            return self.read(owner);
        }
        let (took, cpu) = (owner.now().saturating_since(self.began.0), owner.cpu_time());
        let cpu = cpu.saturating_sub(self.began.1);
        self.seen = Some(Seen { reads: self.reads, took, cpu, stats });
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, _: &mut TestOwner) -> ControlFlow<()> {
        if self.seen.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Reads so until it is enough.
fn run(
    policy: PollPolicy,
    then: Option<(u64, PollPolicy)>,
    is_enough: fn(u64, &WaitStats) -> bool,
) -> Seen {
    let (elevator, connections) = elevator_with(SchedulerKind::None, Device::solid_state(4), 1);
    let model = ServersTime { servers: 1, fixed: READ, per_kib: Nanos::ZERO, sync: Nanos::ZERO };
    let backend = Box::new(ModelledBackend::of_servers(1 << 20, model));
    let (owner, volume) = owner_of(elevator, backend, Waker::new().expect("an event"));
    let ioc = connections[0];
    let began = (Instant::START, Nanos::ZERO);
    let mut front = OneAtATime { volume, ioc, reads: 0, then, is_enough, began, seen: None };
    owner.with_polling(policy, 0).run(&mut front).expect("the ring works");
    front.seen.expect("it was enough")
}

const HUNDRED: fn(u64, &WaitStats) -> bool = |reads, _| reads == 100;

#[test]
fn interrupts_neither_poll_nor_learn() {
    within_a_minute(|| {
        let Seen { stats, took, .. } = run(PollPolicy::Interrupt, None, HUNDRED);
        assert_eq!((stats.polls, stats.device.sleeps, stats.device.classes.len()), (0, 0, 0));
        assert!(took >= Nanos::from_micros(40_000), "{took:?}");
    });
}

#[test]
fn classic_polling_never_sleeps() {
    within_a_minute(|| {
        let Seen { stats, .. } = run(PollPolicy::Classic, None, HUNDRED);
        assert_eq!(stats.device.sleeps, 0);
        // After others had the processor it does not poll for a while.
        assert!(stats.polls > 0 && stats.polled > Nanos::ZERO, "{stats:?}");
    });
}

/// 200 µs of the 400, and half of the mean. To go to sleep and to be woken has taken up to 46 µs of
/// the processor on a virtual machine; at least half of what is slept is not used.
#[test]
fn hybrid_polling_sleeps_for_each_io_and_uses_less_cpu_time_by_that() {
    within_a_minute(|| {
        let fixed = PollPolicy::hybrid(200, false, Nanos::ZERO).expect("a delay");
        let of_mean = PollPolicy::hybrid(0, false, Nanos::ZERO).expect("a delay");
        for (policy, unslept) in [(fixed, 0), (of_mean, 300)] {
            // Half of the mean is slept from the second window on: the first takes 100 ms.
            let enough = |reads, _: &WaitStats| reads == 600;
            let Seen { stats, took, cpu, reads } = run(policy, None, enough);
            let (sleeps, slept) = (stats.device.sleeps, stats.device.slept.as_nanos());
            assert!(((reads - unslept) / 3..=reads).contains(&sleeps), "{policy:?}: {stats:?}");
            assert!(slept >= sleeps * 190_000, "{policy:?}: {stats:?}");
            let used = took.as_nanos() - slept / 2;
            assert!(cpu.as_nanos() <= used, "{policy:?}: {cpu:?} of {took:?}, {stats:?}");
        }
    });
}

#[test]
fn auto_finds_out_what_sleeping_costs_and_then_sleeps() {
    within_a_minute(|| {
        if available_parallelism().map_or(1, usize::from) == 1 {
            return;
        }
        // How soon depends on what else runs here.
        let Seen { stats, .. } = run(AUTO, None, |_, stats| stats.device.sleeps >= 100);
        let class = &stats.device.classes[0];
        assert!(stats.device.sleep_cost.is_some_and(|cost| cost > Nanos::ZERO), "{stats:?}");
        assert!(class.slept_for >= 50, "{class:?}");
    });
}

#[test]
fn policy_that_is_set_meanwhile_holds_from_the_next_read_on() {
    within_a_minute(|| {
        let fixed = PollPolicy::hybrid(200, false, Nanos::ZERO).expect("a delay");
        let Seen { stats, .. } = run(PollPolicy::Interrupt, Some((51, fixed)), HUNDRED);
        assert!((16..=51).contains(&stats.device.sleeps), "{stats:?}");
        let Seen { stats, .. } = run(fixed, Some((51, PollPolicy::Classic)), HUNDRED);
        assert!((16..=51).contains(&stats.device.sleeps), "{stats:?}");
    });
}
