//! The model checker runs every interleaving of small scenes with a few preemptions, and with every
//! value that a thread may still see without our fences:
//! `cargo test -p paternoster-crossing --features model --test model`.
//!
//! What is checked is the shipped code, but for the ring: in its place stands one that keeps what
//! `rtrb` promises and no more (`src/ring.rs`). Whether `rtrb` keeps it is not checked here. Nor is
//! the waiter: a wake-up before it waits is assumed not to be lost, as with eventfd and futex.

use loom::model::Builder;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use paternoster_crossing::{Door, Inbox, Notice, Sent, SubmitterId, Wake};

/// What an owner waits on, as on an eventfd.
#[derive(Default)]
struct Event {
    signalled: Mutex<bool>,
    changed: Condvar,
    wake_ups: Mutex<u32>,
}

impl Event {
    /// Waits for a wake-up. Without one to come, the checker reports a deadlock.
    fn wait(&self) {
        let mut signalled = self.signalled.lock().expect("nobody panics");
        while !*signalled {
            signalled = self.changed.wait(signalled).expect("nobody panics");
        }
        *signalled = false;
    }
}

struct Waker(Arc<Event>);

impl Wake for Waker {
    fn wake(&self) {
        *self.0.wake_ups.lock().expect("nobody panics") += 1;
        *self.0.signalled.lock().expect("nobody panics") = true;
        self.0.changed.notify_one();
    }
}

type Taken = Vec<(SubmitterId, u32)>;

fn inbox() -> (Inbox<u32>, Arc<Event>) {
    let event = Arc::new(Event::default());
    (Inbox::new(Waker(event.clone())), event)
}

/// Takes until so many have come; sleeps where it may.
fn take(inbox: &mut Inbox<u32>, event: &Event, count: usize) -> Taken {
    let mut taken = vec![];
    loop {
        inbox.take(|submitter, batch| taken.push((submitter, batch)));
        if taken.len() == count {
            return taken;
        }
        if inbox.fall_asleep() {
            event.wait();
        }
        inbox.awake();
    }
}

fn send(door: &Door<u32>, batches: &[u32]) {
    let mut outbox = door.enter(batches.len());
    for &batch in batches {
        assert!(!matches!(outbox.send(batch), Sent::Full(_)));
    }
}

/// So often a thread is interrupted where it could go on: without a bound the checker goes on for
/// hours. Mistakes that were tried are found with this one, each in a second: no fence on the
/// submitter's side, none on the owner's, a look at the rings before the owner says that it sleeps,
/// no look at who is new, a ring that is dropped though its submitter sent something as it went.
const PREEMPTIONS: usize = 2;

fn check(scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(scene);
}

#[test]
fn nothing_is_lost_and_a_submitter_keeps_its_order() {
    check(|| {
        let (mut inbox, event) = inbox();
        let door = inbox.door();
        let submitter = thread::spawn(move || send(&door, &[1, 2]));
        let taken = take(&mut inbox, &event, 2);
        assert_eq!(taken, [(SubmitterId(0), 1), (SubmitterId(0), 2)]);
        submitter.join().expect("it ends");
    });
}

#[test]
fn of_several_submitters_one_wakes_the_owner_each_time_that_it_sleeps() {
    check(|| {
        let (mut inbox, event) = inbox();
        let submitters: Vec<_> = (1..=2)
            .map(|number| {
                let door = inbox.door();
                thread::spawn(move || send(&door, &[number]))
            })
            .collect();
        let mut taken = take(&mut inbox, &event, 2);
        taken.sort_by_key(|(_, batch)| *batch);
        assert_eq!(taken.iter().map(|(_, batch)| *batch).collect::<Vec<_>>(), [1, 2]);
        for submitter in submitters {
            submitter.join().expect("it ends");
        }
        let wake_ups = *event.wake_ups.lock().expect("nobody panics");
        assert_eq!(u64::from(wake_ups), inbox.woken());
        // One more where the owner said that it slept, and then found that it may not.
        assert!(u64::from(wake_ups) <= inbox.slept() + inbox.stayed_awake());
    });
}

#[test]
fn what_a_submitter_sent_before_it_went_is_taken() {
    check(|| {
        let (mut inbox, event) = inbox();
        let door = inbox.door();
        let submitter = thread::spawn(move || send(&door, &[7]));
        assert_eq!(take(&mut inbox, &event, 1), [(SubmitterId(0), 7)]);
        submitter.join().expect("it ends");
        inbox.take(|_, batch| panic!("{batch} came twice"));
        assert_eq!(inbox.submitters(), 0, "its ring is dropped");
    });
}

#[test]
fn full_ring_gives_the_batch_back() {
    check(|| {
        let (mut inbox, _) = inbox();
        let door = inbox.door();
        let submitter = thread::spawn(move || {
            let mut outbox = door.enter(1);
            let first = outbox.send(1);
            assert!(!matches!(first, Sent::Full(_)));
            matches!(outbox.send(2), Sent::Full(2))
        });
        let mut taken = vec![];
        inbox.take(|_, batch| taken.push(batch));
        let was_full = submitter.join().expect("it ends");
        inbox.take(|_, batch| taken.push(batch));
        assert_eq!(taken.len(), if was_full { 1 } else { 2 });
    });
}

#[test]
fn what_changed_before_a_notice_is_seen_by_whoever_takes_it() {
    check(|| {
        let event = Arc::new(Event::default());
        let notice = Arc::new(Notice::new(Waker(event.clone())));
        let changes = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (notice, changes) = (notice.clone(), changes.clone());
                thread::spawn(move || {
                    changes.fetch_add(1, Ordering::Relaxed);
                    notice.give();
                })
            })
            .collect();
        let mut seen = 0;
        while seen < 2 {
            event.wait();
            if notice.take() {
                seen = changes.load(Ordering::Relaxed);
            }
        }
        for thread in threads {
            thread.join().expect("it ends");
        }
    });
}
