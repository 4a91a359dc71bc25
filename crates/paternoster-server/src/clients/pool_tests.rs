//! Threads that share a tenant's memory: step by step, and all at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use paternoster_crossing::Wake;
use slotmap::SlotMap;

use super::*;

const MIB: usize = 1 << 20;
const LIMIT: usize = 32 * MIB;
const THREADS: usize = 3;

/// Large requests may take the limit where short ones hold a quarter.
const BOUND: usize = LIMIT / 4 * 5;

/// Wakes nobody: the thread looks by itself.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}

/// Threads whose rounds a test makes.
struct Rig {
    notices: Arc<Notices>,
    leases: Vec<Lease>,
    /// What each connection holds, by thread.
    held: Vec<Vec<(ConnectionId, Amount)>>,
    /// All connections, with their threads.
    ids: SlotMap<ConnectionId, usize>,
}

impl Rig {
    fn new(threads: usize) -> Self {
        let with_notice = if threads == 1 { 0 } else { threads };
        let notices = (0..with_notice).map(|_| Notice::new(Nobody)).collect();
        let notices = Notices::new(notices);
        let pool = Pool::new(LIMIT, &notices);
        Self {
            leases: (0..threads).map(|thread| Lease::new(Arc::clone(&pool), thread)).collect(),
            notices,
            held: vec![Vec::new(); threads],
            ids: SlotMap::with_key(),
        }
    }

    /// A new connection of the thread wants the amount.
    fn want(&mut self, thread: usize, amount: Amount) -> Grant {
        let id = self.ids.insert(thread);
        let grant = self.leases[thread].take_or_wait(id, amount);
        if grant == Grant::Taken {
            self.held[thread].push((id, amount));
        }
        grant
    }

    /// A connection of the thread gives back what it holds.
    fn finish(&mut self, thread: usize, nth: usize) {
        let (id, amount) = self.held[thread].swap_remove(nth);
        self.ids.remove(id);
        self.leases[thread].give_back(amount);
    }

    /// A connection that waits, or was called, is gone.
    fn forget(&mut self, claim: Claim) {
        self.leases[claim.thread].forget(claim.connection);
        self.ids.remove(claim.connection);
    }

    /// The thread ends a round, or begins one.
    fn settle(&mut self, thread: usize) {
        let lease = &mut self.leases[thread];
        if self.notices.take(thread) {
            lease.look();
        }
        lease.settle();
        self.held[thread].extend(std::iter::from_fn(|| lease.next_called()));
        let connections = self.ids.values().filter(|&&of| of == thread).count();
        let held = &self.held[thread];
        lease.check(held.iter().map(|&(_, amount)| amount), connections - held.len());
    }

    fn bytes_held(&self) -> usize {
        self.held.iter().flatten().map(|(_, amount)| amount.bytes()).sum()
    }
}

fn some_amount(random: &mut Rng) -> Amount {
    match random.u8(..8) {
        0 => Amount::Large(random.usize(100_000..=LIMIT)),
        1 => Amount::Large(random.usize(100_000..MIB)),
        _ => Amount::Small(random.usize(4096..69_000)),
    }
}

#[test]
fn what_all_threads_hold_stays_within_the_bound_and_nobody_waits_for_ever() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let mut rig = Rig::new(THREADS);
        let mut waited = 0;
        for _ in 0..3_000 {
            let thread = random.usize(..THREADS);
            match random.u8(..8) {
                0..3 => drop(rig.want(thread, some_amount(&mut random))),
                3 if !rig.held[thread].is_empty() => {
                    let nth = random.usize(..rig.held[thread].len());
                    rig.finish(thread, nth);
                }
                _ => rig.settle(thread),
            }
            assert!(rig.bytes_held() <= BOUND, "seed {seed}: {}", rig.bytes_held());
            waited += usize::from(rig.leases.iter().any(Lease::anyone_waits));
        }
        assert!(waited > 1_000, "seed {seed}: memory is short");
        while !rig.ids.is_empty() {
            let before = rig.ids.len();
            for thread in 0..THREADS {
                while !rig.held[thread].is_empty() {
                    rig.finish(thread, 0);
                }
                rig.settle(thread);
            }
            let goes_on = rig.bytes_held() > 0;
            assert!(rig.ids.len() < before || goes_on, "seed {seed}: {before} wait for ever");
        }
        assert!(rig.leases.iter().all(Lease::is_unused), "seed {seed}: credit is lost");
        let whole = Amount::Small(LIMIT);
        assert!(rig.leases[0].has_spare(whole), "seed {seed}: the account has lost credit");
    }
}

/// Parts are not seen where one thread serves all: it decides as the account by itself does.
#[test]
fn thread_that_is_alone_decides_as_without_parts() {
    let mut random = Rng::with_seed(5);
    let mut rig = Rig::new(1);
    let mut account = Account::new(Credit::new(LIMIT));
    let mut by_account = Vec::new();
    let mut waits = 0;
    for step in 0..20_000 {
        if random.u8(..8) < 5 {
            let amount = some_amount(&mut random);
            let grant = rig.want(0, amount);
            assert_eq!(grant, account.take_or_wait(rig.ids.len(), amount), "step {step}");
            by_account.extend((grant == Grant::Taken).then_some(amount));
            waits += usize::from(grant == Grant::Waits);
        } else {
            if let Some(&(_, amount)) = rig.held[0].first() {
                rig.finish(0, 0);
                let mut held = Held::default();
                held.take(amount);
                account.replace(held, Held::default());
                by_account.swap_remove(0);
            }
            rig.settle(0);
            by_account.extend(std::iter::from_fn(|| account.call_next()).map(|(_, called)| called));
        }
        let amounts: Vec<_> = rig.held[0].iter().map(|&(_, amount)| amount).collect();
        assert_eq!(amounts, by_account, "step {step}");
    }
    assert!(waits > 1_000, "memory is short");
}

/// What a thread gives back is not its own to take again.
#[test]
fn large_amount_of_one_thread_has_its_turn_though_small_ones_of_another_never_end() {
    let mut rig = Rig::new(2);
    let small = Amount::Small(64 << 10);
    while rig.bytes_held() < LIMIT - MIB {
        assert_eq!(rig.want(1, small), Grant::Taken);
        rig.settle(1);
    }
    let commands = rig.held[1].len();
    assert_eq!(rig.want(0, Amount::Large(16 * MIB)), Grant::Waits);
    for done in 0.. {
        rig.settle(0);
        if !rig.held[0].is_empty() {
            break;
        }
        assert!(done <= commands, "it has waited for all of them");
        rig.finish(1, 0);
        rig.settle(1);
        rig.want(1, small);
        rig.settle(1);
    }
}

/// Other threads once cut off clients for somebody who was gone.
#[test]
fn who_has_waited_and_is_gone_is_not_waited_for() {
    let mut rig = Rig::new(2);
    assert_eq!(rig.want(0, Amount::Large(24 * MIB)), Grant::Taken);
    assert_eq!(rig.want(1, Amount::Large(16 * MIB)), Grant::Waits);
    let second = Amount::Large(12 * MIB);
    assert_eq!(rig.want(0, second), Grant::Waits);
    let [first, next] = rig.leases[0].claims()[..] else { panic!("two wait") };
    rig.forget(first);
    assert_eq!(rig.leases[0].claims(), [next]);
    rig.forget(next);
    assert!(!rig.leases.iter().any(Lease::anyone_waits));
    assert_eq!(rig.leases[0].claims(), []);
    // Also who was called, and went before it was told.
    assert_eq!(rig.want(1, second), Grant::Waits);
    let [called] = rig.leases[0].claims()[..] else { panic!("one waits") };
    rig.finish(0, 0);
    rig.settle(0);
    rig.forget(called);
    rig.settle(1);
    assert!(rig.leases[0].has_spare(Amount::Small(LIMIT)), "nothing is held any more");
}

#[test]
fn part_that_is_leased_serves_many_commands_and_is_given_back_with_the_round() {
    let mut rig = Rig::new(2);
    for _ in 0..50 {
        assert_eq!(rig.want(0, Amount::Small(4096)), Grant::Taken);
        assert_eq!(rig.leases[0].leased.small, PART.bytes());
    }
    rig.settle(0);
    assert_eq!(rig.leases[0].leased.small, 50 * 4096);
    let rest = Amount::Small(LIMIT - 50 * 4096);
    assert!(rig.leases[1].has_spare(rest), "an idle thread keeps nothing");
}

/// The first that waits is told to all others, so that they watch those that hold memory.
#[test]
fn other_threads_get_notice_of_the_first_that_waits() {
    let mut rig = Rig::new(THREADS);
    assert_eq!(rig.want(0, Amount::Large(24 * MIB)), Grant::Taken);
    assert!((0..THREADS).all(|thread| !rig.notices.take(thread)));
    assert_eq!(rig.want(1, Amount::Large(24 * MIB)), Grant::Waits);
    let noticed: Vec<_> = (0..THREADS).map(|thread| rig.notices.take(thread)).collect();
    assert_eq!(noticed, [true, false, true]);
}

/// Wakes a thread that is parked.
struct Parked(thread::Thread);

impl Wake for Parked {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// A connection at a time on each thread, with half of the memory: each waits for another's, and
/// sleeps until it gets notice. A wake-up that is lost is a test that does not end.
#[test]
fn threads_that_sleep_are_woken_for_what_others_give_back() {
    let (send, notices) = std::sync::mpsc::channel();
    let held = AtomicUsize::new(0);
    thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|number| {
                let (start, pool) = std::sync::mpsc::channel::<Arc<Pool>>();
                let held = &held;
                let thread = scope.spawn(move || {
                    let pool = pool.recv().expect("it is made");
                    run_alone(number, &pool, held);
                });
                send.send(Notice::new(Parked(thread.thread().clone()))).expect("it is taken");
                start
            })
            .collect();
        let pool = Pool::new(LIMIT, &Notices::new(notices.try_iter().collect()));
        for start in starts {
            start.send(pool.clone()).expect("it waits");
        }
    });
}

/// The rounds of a thread: it takes, waits where it has to, and gives back.
fn run_alone(number: usize, pool: &Arc<Pool>, held: &AtomicUsize) {
    let mut random = Rng::with_seed(number as u64);
    let mut lease = Lease::new(Arc::clone(pool), number);
    let mut ids = SlotMap::<ConnectionId, ()>::with_key();
    for _ in 0..3_000 {
        let amount = match random.u8(..4) {
            0 => Amount::Small(random.usize(4096..LIMIT / 8)),
            _ => Amount::Large(random.usize(MIB..LIMIT / 2)),
        };
        if lease.take_or_wait(ids.insert(()), amount) == Grant::Waits {
            while lease.next_called().is_none() {
                if pool.notices.take(number) {
                    lease.look();
                } else {
                    thread::park();
                }
            }
        }
        let all = held.fetch_add(amount.bytes(), Ordering::Relaxed) + amount.bytes();
        assert!(all <= BOUND, "{all} bytes are held");
        held.fetch_sub(amount.bytes(), Ordering::Relaxed);
        lease.give_back(amount);
        lease.settle();
    }
}
