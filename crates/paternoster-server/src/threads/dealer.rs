//! Deals a disk's credit out to threads, so that what all of them hold stays within each tenant's
//! bound.
//!
//! It is one account a tenant, as where there is one thread; those that wait in it are threads, for
//! what they deal out, and connections, for large amounts.

use super::ToThread;
use crate::clients::{Account, Amount, ConnectionId, Credit, CreditMessage, Grant, Shortage};

/// Who waits for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    thread: usize,
    /// The connection that needs a large amount; else it is for the thread to deal out.
    connection: Option<ConnectionId>,
}

/// The credit of all tenants of a disk.
#[derive(Debug)]
pub(super) struct Dealer {
    tenants: Vec<Tenant>,
    /// Tenants of which something has changed, as indices.
    changed: Vec<usize>,
}

#[derive(Debug)]
struct Tenant {
    account: Account<Claim>,
    /// What each thread was told of who waits.
    told: Vec<Shortage>,
    has_changed: bool,
}

impl Dealer {
    pub(super) fn new(memory: &[usize], threads: usize) -> Self {
        let tenant = |&bytes: &usize| Tenant {
            account: Account::new(Credit::new(bytes)),
            told: vec![Shortage::None; threads],
            has_changed: false,
        };
        Self { tenants: memory.iter().map(tenant).collect(), changed: Vec::new() }
    }

    /// Takes what a thread says of a tenant's credit; [`deal`](Self::deal) answers.
    pub(super) fn take(
        &mut self,
        thread: usize,
        tenant: usize,
        message: CreditMessage,
        mut answer: impl FnMut(usize, ToThread),
    ) {
        let Tenant { account, has_changed, .. } = &mut self.tenants[tenant];
        if !std::mem::replace(has_changed, true) {
            self.changed.push(tenant);
        }
        match message {
            CreditMessage::Ask { least, wished } => {
                if account.has_spare(Amount::Small(wished)) {
                    account.take(Amount::Small(wished));
                    return answer(thread, ToThread::Dealt { tenant, bytes: wished });
                }
                let claim = Claim { thread, connection: None };
                // Whoever asks for something to spare does not wait for it.
                if least == 0 || account.take_or_wait(claim, Amount::Small(least)) == Grant::Taken {
                    answer(thread, ToThread::Dealt { tenant, bytes: least });
                }
            }
            CreditMessage::Withdraw => account.forget(Claim { thread, connection: None }),
            CreditMessage::AskLarge(connection, bytes) => {
                let claim = Claim { thread, connection: Some(connection) };
                if account.take_or_wait(claim, Amount::Large(bytes)) == Grant::Taken {
                    answer(thread, ToThread::LargeDealt { tenant, connection, bytes });
                }
            }
            CreditMessage::Forget(connection) => {
                account.forget(Claim { thread, connection: Some(connection) });
            }
            CreditMessage::Change { small, large } => {
                change(account, small, Amount::Small);
                change(account, large, Amount::Large);
            }
        }
    }

    /// Deals to those that wait what there is now, and tells threads who waits.
    pub(super) fn deal(&mut self, mut answer: impl FnMut(usize, ToThread)) {
        for index in self.changed.drain(..) {
            let tenant = &mut self.tenants[index];
            tenant.has_changed = false;
            while let Some((Claim { thread, connection }, amount)) = tenant.account.call_next() {
                let bytes = amount.bytes();
                answer(
                    thread,
                    match connection {
                        None => ToThread::Dealt { tenant: index, bytes },
                        Some(connection) => {
                            ToThread::LargeDealt { tenant: index, connection, bytes }
                        }
                    },
                );
            }
            for thread in 0..tenant.told.len() {
                let shortage = tenant.shortage(thread);
                if std::mem::replace(&mut tenant.told[thread], shortage) != shortage {
                    answer(thread, ToThread::Shortage { tenant: index, shortage });
                }
            }
        }
    }
}

impl Tenant {
    /// Who waits, as that thread sees it.
    fn shortage(&self, thread: usize) -> Shortage {
        let waiting = || self.account.waiting();
        match () {
            () if waiting().next().is_none() => Shortage::None,
            () if waiting().all(|claim| claim.thread == thread) => Shortage::Here,
            () => Shortage::Elsewhere,
        }
    }
}

/// Counts that so much more is held, or so much less.
fn change(account: &mut Account<Claim>, bytes: isize, amount: fn(usize) -> Amount) {
    let counted = amount(bytes.unsigned_abs());
    if bytes < 0 { account.give_back(counted) } else { account.take(counted) }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fastrand::Rng;
    use slotmap::SlotMap;

    use super::*;
    use crate::clients::Lease;

    const MIB: usize = 1 << 20;
    const LIMIT: usize = 32 * MIB;
    const THREADS: usize = 3;

    /// Threads that take, wait and give back at random, and the messages between them and the
    /// dealer, which are late.
    struct Rig {
        dealer: Dealer,
        leases: Vec<Lease>,
        /// What each connection holds, or has been granted.
        held: Vec<Vec<(ConnectionId, Amount)>>,
        to_dealer: VecDeque<(usize, CreditMessage)>,
        to_threads: Vec<VecDeque<ToThread>>,
        ids: SlotMap<ConnectionId, Amount>,
    }

    impl Rig {
        fn new() -> Self {
            Self {
                dealer: Dealer::new(&[LIMIT], THREADS),
                leases: (0..THREADS).map(|_| Lease::new(LIMIT / 8 / THREADS)).collect(),
                held: vec![Vec::new(); THREADS],
                to_dealer: VecDeque::new(),
                to_threads: (0..THREADS).map(|_| VecDeque::new()).collect(),
                ids: SlotMap::with_key(),
            }
        }

        /// A new connection of the thread wants so much.
        fn want(&mut self, thread: usize, amount: Amount) {
            let id = self.ids.insert(amount);
            if self.leases[thread].take_or_wait(id, amount) == Grant::Taken {
                self.held[thread].push((id, amount));
            }
        }

        /// A connection gives back what it holds.
        fn finish(&mut self, thread: usize, nth: usize) {
            let (id, amount) = self.held[thread].swap_remove(nth);
            self.ids.remove(id);
            self.leases[thread].give_back(amount);
            self.call(thread);
        }

        fn call(&mut self, thread: usize) {
            while let Some(called) = self.leases[thread].call_next() {
                self.held[thread].push(called);
            }
        }

        fn settle(&mut self, thread: usize, has_connections: bool) {
            let said = self.leases[thread].settle(has_connections);
            self.to_dealer.extend(said.into_iter().map(|message| (thread, message)));
        }

        /// The dealer takes what is there.
        fn deal(&mut self) {
            let Self { dealer, to_dealer, to_threads, .. } = self;
            for (thread, message) in to_dealer.drain(..) {
                dealer.take(thread, 0, message, |to, answer| to_threads[to].push_back(answer));
            }
            dealer.deal(|to, answer| to_threads[to].push_back(answer));
        }

        /// The thread takes one message.
        fn receive(&mut self, thread: usize) {
            match self.to_threads[thread].pop_front() {
                None => return,
                Some(ToThread::Dealt { bytes, .. }) => self.leases[thread].dealt(bytes),
                Some(ToThread::LargeDealt { connection: id, bytes, .. }) => {
                    assert!(self.leases[thread].large_dealt(id, bytes), "nobody has gone");
                    self.held[thread].push((id, Amount::Large(bytes)));
                }
                Some(ToThread::Shortage { shortage, .. }) => {
                    self.leases[thread].set_shortage(shortage);
                }
                Some(other) => panic!("no message of the dealer: {other:?}"),
            }
            self.call(thread);
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

    /// However late messages are, all threads together hold no more than the tenant may, and a
    /// quarter where the largest request has to fit beside short ones; and whoever waits is served.
    #[test]
    fn what_all_threads_hold_stays_within_the_bound_and_nobody_waits_for_ever() {
        for seed in 0..60 {
            let mut random = Rng::with_seed(seed);
            let mut rig = Rig::new();
            let mut waited = 0;
            for _ in 0..3_000 {
                let thread = random.usize(..THREADS);
                match random.u8(..8) {
                    0..3 => rig.want(thread, some_amount(&mut random)),
                    3 if !rig.held[thread].is_empty() => {
                        let nth = random.usize(..rig.held[thread].len());
                        rig.finish(thread, nth);
                    }
                    4 => rig.deal(),
                    5..7 => rig.receive(thread),
                    _ => rig.settle(thread, true),
                }
                assert!(rig.bytes_held() <= LIMIT / 4 * 5, "seed {seed}: {}", rig.bytes_held());
                waited += usize::from(rig.ids.len() > rig.held.iter().map(Vec::len).sum());
            }
            assert!(waited > 1_000, "seed {seed}: memory is short");
            while !rig.ids.is_empty() {
                let before = rig.ids.len();
                for thread in 0..THREADS {
                    while !rig.to_threads[thread].is_empty() {
                        rig.receive(thread);
                    }
                    while !rig.held[thread].is_empty() {
                        rig.finish(thread, 0);
                    }
                    rig.settle(thread, true);
                }
                rig.deal();
                let goes_on = rig.to_threads.iter().any(|messages| !messages.is_empty());
                assert!(rig.ids.len() < before || goes_on, "seed {seed}: {before} wait for ever");
            }
            (0..THREADS).for_each(|thread| rig.settle(thread, false));
            rig.deal();
            assert!(rig.dealer.tenants[0].account.is_unused(), "seed {seed}: credit is lost");
        }
    }

    /// A thread whose commands never end does not keep what another waits for: what it gives back
    /// is not its own to take again.
    #[test]
    fn large_amount_of_one_thread_has_its_turn_though_small_ones_of_another_never_end() {
        let mut rig = Rig::new();
        let small = Amount::Small(64 << 10);
        while rig.bytes_held() < LIMIT - MIB {
            rig.want(1, small);
            exchange(&mut rig);
        }
        let commands = rig.held[1].len();
        rig.want(0, Amount::Large(16 * MIB));
        exchange(&mut rig);
        for done in 0.. {
            if !rig.held[0].is_empty() {
                break;
            }
            assert!(done <= commands, "it has waited for all of them");
            rig.finish(1, 0);
            rig.want(1, small);
            exchange(&mut rig);
        }
    }

    /// Exchanges messages until there are none.
    fn exchange(rig: &mut Rig) {
        for _ in 0..3 {
            for thread in 0..THREADS {
                rig.settle(thread, true);
            }
            rig.deal();
            for thread in 0..THREADS {
                while !rig.to_threads[thread].is_empty() {
                    rig.receive(thread);
                }
            }
        }
    }

    /// A client that streams goes on with what its last command had.
    #[test]
    fn large_command_after_another_does_not_ask_again() {
        let mut rig = Rig::new();
        rig.want(0, Amount::Large(MIB));
        assert!(rig.held[0].is_empty(), "the first one asks");
        exchange(&mut rig);
        for _ in 0..5 {
            rig.finish(0, 0);
            rig.settle(0, true);
            rig.want(0, Amount::Large(MIB));
            assert_eq!(rig.held[0].len(), 1);
        }
        rig.settle(0, true);
        assert!(rig.to_dealer.is_empty(), "{:?}", rig.to_dealer);
    }

    /// Other threads were told for ever that somebody waited, and cut off clients for it.
    #[test]
    fn who_has_waited_and_is_gone_is_not_waited_for() {
        for amount in [Amount::Small(4096), Amount::Large(MIB)] {
            let mut rig = Rig::new();
            rig.want(0, Amount::Large(24 * MIB));
            while rig.bytes_held() < LIMIT {
                rig.want(0, Amount::Small(64 << 10));
                exchange(&mut rig);
            }
            rig.want(1, amount);
            exchange(&mut rig);
            assert_eq!(rig.leases[0].shortage(), Shortage::Elsewhere);
            let id = rig.leases[1].waiting().next().expect("it waits");
            rig.leases[1].forget(id);
            exchange(&mut rig);
            assert_eq!(rig.leases[0].shortage(), Shortage::None, "{amount:?}");
        }
    }

    /// It was lost where a client's room was counted anew before it could be used.
    #[test]
    fn what_was_dealt_stays_when_something_is_given_back_and_taken_again() {
        let mut lease = Lease::new(LIMIT);
        let (room, small) = (Amount::Room(60 << 10), Amount::Small(8192));
        lease.dealt(room.bytes());
        lease.take(room);
        lease.set_shortage(Shortage::Elsewhere);
        let id = SlotMap::<ConnectionId, ()>::with_key().insert(());
        assert_eq!(lease.take_or_wait(id, small), Grant::Waits);
        lease.give_back(room);
        lease.take(room);
        lease.dealt(small.bytes());
        assert_eq!(lease.call_next(), Some((id, small)));
    }

    /// With nothing else going on a thread asks once for many commands.
    #[test]
    fn credit_is_dealt_for_many_commands_at_a_time() {
        let mut rig = Rig::new();
        rig.want(0, Amount::Small(4096));
        rig.settle(0, true);
        rig.deal();
        rig.receive(0);
        for _ in 0..50 {
            rig.want(0, Amount::Small(4096));
            rig.settle(0, true);
        }
        assert_eq!(rig.held[0].len(), 51);
        assert!(rig.to_dealer.is_empty(), "{:?}", rig.to_dealer);
    }
}
