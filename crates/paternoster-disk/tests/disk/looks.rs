//! An owner looks for what comes before it sleeps, where it was told to and has room for that.

use std::hint;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{available_parallelism, spawn};

use paternoster::poll::{AutoTunables, PollPolicy};
use paternoster::{AnyScheduler, Device, NoTrace, SchedulerKind};
use paternoster_disk::{
    Completion, Front, FrontToken, LookStats, MemoryBackend, Outcome, WaitStats, Waker,
};

use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, within_a_minute};

const AUTO: PollPolicy = PollPolicy::Auto(AutoTunables::DEFAULT);

/// How often an owner is woken that is not to look.
const TIMES: u32 = 2000;

/// Asks another thread for a wake-up, and for the next when it has come.
struct Pinged {
    asks: Sender<()>,
    woken: u32,
    stats: LookStats,
    /// Sleeps that something has ended.
    interrupts: u64,
    /// Whether it goes on until a look has found something.
    until_found: bool,
}

impl Front<AnyScheduler<NoTrace>> for Pinged {
    fn started(&mut self, _: &mut TestOwner) {
        self.asks.send(()).expect("the other thread listens");
    }

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring");
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, _: &mut TestOwner, _: Outcome) {
        unreachable!("it has no commands");
    }

    fn woken(&mut self, _: &mut TestOwner) {
        self.woken += 1;
        self.asks.send(()).expect("the other thread listens");
    }

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        let WaitStats { looks, interrupts, .. } = owner.wait_stats();
        (self.stats, self.interrupts) = (looks, interrupts);
        let is_over = if self.until_found { self.stats.found > 0 } else { self.woken >= TIMES };
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Wakes the owner as soon as it is asked to.
fn answer(asks: &Receiver<()>, waker: &Waker) {
    loop {
        match asks.try_recv() {
            Ok(()) => waker.wake(),
            Err(TryRecvError::Empty) => hint::spin_loop(),
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

/// What an owner has looked for that is woken again and again, and its interrupts.
fn looked(policy: PollPolicy, beside: usize, until_found: bool) -> (LookStats, u64) {
    let (elevator, _) = elevator_with(SchedulerKind::Cfq, Device::solid_state(4), 1);
    let backend = Box::new(MemoryBackend::new(1 << 20));
    let waker = Waker::new().expect("an event");
    let (asks, asked) = mpsc::channel();
    let other = spawn({
        let waker = waker.clone();
        move || answer(&asked, &waker)
    });
    let (owner, _) = owner_of(elevator, backend, waker);
    let stats = LookStats::default();
    let mut front = Pinged { asks, woken: 0, stats, interrupts: 0, until_found };
    owner.with_polling(policy, beside).run(&mut front).expect("the ring works");
    let seen = (front.stats, front.interrupts);
    drop(front);
    other.join().expect("it has not panicked");
    seen
}

#[test]
fn owner_that_is_woken_soon_looks_for_it_and_finds_it() {
    within_a_minute(|| {
        // How soon a look finds something depends on what else runs; that one does, does not.
        if available_parallelism().map_or(1, usize::from) > 1 {
            assert!(looked(AUTO, 0, true).0.looks > 0);
        }
    });
}

#[test]
fn owner_sleeps_at_once_where_it_was_told_to_or_others_need_the_processors() {
    within_a_minute(|| {
        let processors = available_parallelism().map_or(1, usize::from);
        let other_cases = [(PollPolicy::Interrupt, 0), (AUTO, processors - 1)];
        for (policy, beside) in other_cases {
            let (looks, interrupts) = looked(policy, beside, false);
            assert_eq!(looks, LookStats::default());
            assert!(interrupts >= TIMES.into(), "each wake-up ends a sleep: {interrupts}");
        }
    });
}
