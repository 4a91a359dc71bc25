//! What crosses on real threads, with `rtrb`'s rings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};

use paternoster_crossing::{Inbox, Sent, Wake};

struct Unpark {
    owner: Thread,
    calls: AtomicU64,
}

impl Wake for Unpark {
    fn wake(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.owner.unpark();
    }
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark { owner: thread::current(), calls: AtomicU64::new(0) })
}

const EACH: u64 = 100_000;

/// Sends `EACH` numbers, each where the ring has room.
fn send_all(mut outbox: paternoster_crossing::Outbox<u64>) {
    for number in 0..EACH {
        let mut batch = number;
        while let Sent::Full(again) = outbox.send(batch) {
            batch = again;
            thread::yield_now();
        }
    }
}

#[test]
fn four_submitters_lose_nothing_and_each_keeps_its_order() {
    let wake = unpark();
    let mut inbox = Inbox::new(wake.clone());
    let submitters: Vec<_> = (0..4)
        .map(|_| {
            let door = inbox.door();
            thread::spawn(move || send_all(door.enter(8)))
        })
        .collect();
    let (mut next, mut taken) = ([0; 4], 0);
    loop {
        inbox.take(|submitter, number| {
            let expected = &mut next[usize::try_from(submitter.0).expect("a few")];
            assert_eq!(number, *expected);
            *expected += 1;
            taken += 1;
        });
        if taken == 4 * EACH {
            break;
        }
        if inbox.fall_asleep() {
            thread::park();
        }
        inbox.awake();
    }
    for submitter in submitters {
        submitter.join().expect("it ends");
    }
    inbox.take(|_, _| panic!("nothing is left"));
    assert_eq!(inbox.submitters(), 0);
    assert_eq!(inbox.woken(), wake.calls.load(Ordering::Relaxed));
    assert!(inbox.woken() <= inbox.slept() + inbox.stayed_awake(), "{inbox:?}");
    // One for each submitter, one for each time that the owner had somebody new.
    assert!(inbox.lock_stats().taken <= 8, "{:?}", inbox.lock_stats());
}

#[test]
fn owner_that_is_awake_is_never_woken() {
    let wake = unpark();
    let mut inbox = Inbox::new(wake.clone());
    let door = inbox.door();
    let submitter = thread::spawn(move || send_all(door.enter(64)));
    let mut taken = 0;
    while taken < EACH {
        inbox.take(|_, _| taken += 1);
    }
    submitter.join().expect("it ends");
    assert_eq!((inbox.woken(), wake.calls.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn owner_that_sleeps_is_woken_once_however_much_is_sent() {
    let mut inbox = Inbox::new(unpark());
    let mut outbox = inbox.door().enter(8);
    inbox.take(|_, ()| {});
    assert!(inbox.fall_asleep());
    assert_eq!(outbox.send(()), Sent::Woke);
    assert_eq!(outbox.send(()), Sent::Quietly);
    let mut other = inbox.door().enter(8);
    assert_eq!(other.send(()), Sent::Quietly);
    inbox.awake();
    assert_eq!((inbox.slept(), inbox.woken()), (1, 1));
}

#[test]
fn owner_may_not_sleep_where_something_has_come_or_somebody_new() {
    let mut inbox = Inbox::new(unpark());
    let mut outbox = inbox.door().enter(8);
    assert!(!inbox.fall_asleep(), "somebody new may have sent something");
    inbox.take(|_, ()| {});
    assert_eq!(outbox.send(()), Sent::Woke, "it had not said that it is awake");
    assert!(!inbox.fall_asleep());
    inbox.awake();
    assert_eq!((inbox.slept(), inbox.stayed_awake()), (0, 2));
}

#[test]
fn submitter_is_told_that_the_inbox_is_gone() {
    let mut inbox = Inbox::new(unpark());
    let door = inbox.door();
    let mut known = door.enter(8);
    inbox.take(|_, _: i32| {});
    let mut new = door.enter(8);
    assert_eq!((known.send(1), new.send(1)), (Sent::Quietly, Sent::Quietly));
    drop(inbox);
    assert_eq!((known.send(2), new.send(2)), (Sent::Gone(2), Sent::Gone(2)));
    assert_eq!(door.enter(8).send(3), Sent::Gone(3), "who comes in later too");
}

#[test]
fn take_ends_though_submitters_go_on() {
    let mut inbox = Inbox::new(unpark());
    let mut outbox = inbox.door().enter(1);
    let mut sent = 0;
    let _ = outbox.send(());
    inbox.take(|_, ()| {
        // As if another thread sent without end.
        let _ = outbox.send(());
        sent += 1;
    });
    assert_eq!(sent, 1);
}

#[test]
fn outbox_moves_from_thread_to_thread() {
    let mut inbox = Inbox::new(unpark());
    let door = inbox.door();
    let mut outbox = door.enter(8);
    for number in 0..3 {
        outbox = thread::spawn(move || {
            assert_eq!(outbox.send(number), Sent::Quietly);
            outbox
        })
        .join()
        .expect("it ends");
    }
    let mut taken = vec![];
    inbox.take(|_, number| taken.push(number));
    assert_eq!(taken, [0, 1, 2]);
}

#[test]
#[should_panic(expected = "a batch at least")]
fn ring_of_nothing_is_refused() {
    let _ = Inbox::<()>::new(unpark()).door().enter(0);
}
