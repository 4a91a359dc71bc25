//! Places that are kept for a tenant that has nothing waiting for a moment.
//!
//! ```text
//!   depth 20   │ ●●●●●●●●● of h  ●●●●●● of g │ 2.4 kept for h │ 2.6 free
//! ```
//!
//! h has 400 of 700, which is 11.4 of 20. It has 9 in the device, and nothing waiting.

use std::collections::VecDeque;

use paternoster::RequestId;
use paternoster::scheduler::Work;

use crate::rig::*;
use crate::wfq::groups;

/// A device, and what it has: the oldest first, each with the task that it is of.
struct Busy {
    rig: Rig,
    in_device: VecDeque<(&'static str, RequestId)>,
    submitted: u64,
}

impl Busy {
    /// h keeps 32 reads outstanding and g 64, on a device that does one each 5 µs, for 50 ms: their
    /// demand is measured each 8 windows of 2 ms.
    fn trained() -> Self {
        let rig = groups(20, &[("h", 400), ("g", 300)]);
        let mut busy = Self { rig, in_device: VecDeque::new(), submitted: 0 };
        (0..32).for_each(|_| busy.submit("h"));
        (0..64).for_each(|_| busy.submit("g"));
        busy.dispatch_all();
        while busy.rig.now.since_start() < ms(50) {
            busy.rig.run(&[Advance(us(5))]);
            let task = busy.complete_oldest();
            busy.submit(task);
            busy.dispatch_all();
        }
        busy
    }

    /// Scenario 36: time stands still, and h has 9 in the device, g 6. The others of h are on the
    /// way to its client, and g has many waiting. h is behind by two requests of g at least.
    fn with_h_away() -> Self {
        let mut busy = Self::trained();
        while busy.waiting("h") > 0 {
            busy.complete_oldest();
            busy.dispatch_all();
        }
        for _ in 0..4 {
            busy.complete("g");
            assert_eq!(busy.dispatch(), Some("g"), "one for one");
        }
        for (task, left) in [("h", 9), ("g", 6)] {
            assert!(busy.has(task) > left, "{} of {task} are in the device", busy.has(task));
            while busy.has(task) > left {
                busy.complete(task);
            }
        }
        assert!(busy.waiting("g") > 10, "{}", busy.waiting("g"));
        busy.rig.events();
        busy
    }

    fn submit(&mut self, task: &'static str) {
        let at = 1000 * self.submitted;
        self.submitted += 1;
        self.rig.enter(task, read(at..at + 8).by(task));
    }

    fn dispatch(&mut self) -> Option<&'static str> {
        let rq = self.rig.elevator.dispatch(self.rig.now)?;
        let is_of_h = self.rig.elevator.request(rq).group == self.rig.group_id("/h");
        let task = if is_of_h { "h" } else { "g" };
        self.in_device.push_back((task, rq));
        self.rig.elevator.check();
        Some(task)
    }

    /// Dispatches until nothing is given: the tasks in order, by their letters.
    fn dispatch_all(&mut self) -> String {
        std::iter::from_fn(|| self.dispatch()).collect()
    }

    fn complete_oldest(&mut self) -> &'static str {
        let (task, rq) = self.in_device.pop_front().expect("the device is busy");
        self.complete_request(rq);
        task
    }

    fn complete(&mut self, task: &str) {
        let at = self.in_device.iter().position(|&(of, _)| of == task);
        let rq = at.and_then(|at| self.in_device.remove(at));
        let (_, rq) = rq.expect("the device has one of it");
        self.complete_request(rq);
    }

    fn complete_request(&mut self, rq: RequestId) {
        let completed = self.rig.elevator.complete(self.rig.now, rq);
        assert!(!completed.wake_waiters, "none was turned away");
    }

    /// How many of the task are in the device.
    fn has(&self, task: &str) -> usize {
        self.in_device.iter().filter(|&&(of, _)| of == task).count()
    }

    fn waiting(&self, task: &str) -> usize {
        let counters = self.rig.stats(&format!("/{task}"));
        usize::try_from(counters.queued).expect("few")
    }
}

/// At 17 in the device 17 + 2.4 is less than 20, at 18 it is more.
#[test]
fn places_of_one_that_is_behind_are_not_given_to_others() {
    let mut busy = Busy::with_h_away();
    assert_eq!(busy.dispatch_all(), "ggg", "at 15, 16 and 17 in the device");
    busy.rig.run(&[Expect(Emitted("fair held /g: Kept")), Expect(Emitted("waiting: Kept"))]);
}

/// What is kept is there when it comes back: h is behind g and so goes first.
#[test]
fn one_that_comes_back_finds_its_places() {
    let mut busy = Busy::with_h_away();
    busy.dispatch_all();
    (0..5).for_each(|_| busy.submit("h"));
    assert_eq!(busy.dispatch_all(), "hh", "at 18 and 19 in the device");
    busy.rig.run(&[Expect(Emitted("waiting: DeviceFull"))]);
}

/// Who has had more than its part is owed nothing: 400 ops of weight 400 are 300 of g.
#[test]
fn nothing_is_kept_for_one_that_is_ahead() {
    let mut busy = Busy::with_h_away();
    busy.rig.charge("/h", Work::Ops(400));
    assert_eq!(busy.dispatch_all(), "ggggg", "all that the device has room for");
    busy.rig.run(&[Expect(Emitted("waiting: DeviceFull"))]);
}

/// 2.4 are kept of 20 × 10 %, or none of 0 %.
#[test]
fn no_more_is_kept_than_keep_slots_of_the_depth() {
    for (percent, expected) in [(10, "ggg"), (5, "gggg"), (0, "ggggg")] {
        let mut busy = Busy::with_h_away();
        busy.rig.run(&[Set("keep_slots", percent)]);
        assert_eq!(busy.dispatch_all(), expected, "keep_slots = {percent} %");
    }
}
