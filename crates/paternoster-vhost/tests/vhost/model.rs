//! The ring beside a model of it: a driver and a device that take turns at random, with kicks held
//! and allowed, calls wanted and not.

use std::collections::VecDeque;

use paternoster_vhost::SplitRing;
use paternoster_vhost::proto::Features;
use proptest::prelude::*;

use crate::driver::{DATA, Driver, WRITE};

const SIZE: u16 = 4;

/// What one side does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The driver makes a chain available, if it has one left.
    Offer,
    /// It takes what it was told of, and wants to be called for the entry so many behind.
    Reap(u16),
    /// The device takes a chain.
    Pop,
    /// It gives back the one that it has had so long.
    Push(usize),
    Publish,
    Hold,
    Allow,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Offer),
        1 => (0..3u16).prop_map(Step::Reap),
        3 => Just(Step::Pop),
        3 => (0..4usize).prop_map(Step::Push),
        2 => Just(Step::Publish),
        1 => Just(Step::Hold),
        1 => Just(Step::Allow),
    ]
}

/// Both sides of a ring, and where each chain is.
struct Pair {
    driver: Driver,
    ring: SplitRing,
    has_event: bool,
    /// Where the indices began.
    start: u16,
    free: VecDeque<u16>,
    offered: VecDeque<u16>,
    taken: Vec<u16>,
    given_back: Vec<u16>,
    published: VecDeque<u16>,
    /// Available entries that the device has taken so far.
    popped: u16,
    /// Used entries that were published so far, and the one that the driver wants to be called for.
    used: usize,
    wanted: usize,
}

impl Pair {
    fn new(features: Features, start: u16) -> Self {
        let mut driver = Driver::new(SIZE);
        for head in 0..SIZE {
            driver.descriptor(head, (DATA + u64::from(head), 1, WRITE, 0));
        }
        driver.seen = start;
        driver.set_used_index(start);
        driver.set_available(start);
        driver.set_used_event(start);
        let ring = driver.ring_at(start, features);
        Self {
            driver,
            ring,
            has_event: features.contains(Features::EVENT_IDX),
            start,
            free: (0..SIZE).collect(),
            offered: VecDeque::new(),
            taken: Vec::new(),
            given_back: Vec::new(),
            published: VecDeque::new(),
            popped: 0,
            used: 0,
            wanted: 0,
        }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Offer => {
                let Some(head) = self.free.pop_front() else { return Ok(()) };
                self.driver.offer(head);
                self.offered.push_back(head);
            }
            Step::Reap(behind) => self.reap(behind)?,
            Step::Pop => self.pop()?,
            Step::Push(place) => {
                if !self.taken.is_empty() {
                    let head = self.taken.remove(place % self.taken.len());
                    self.ring.push_used(head, 1);
                    self.given_back.push(head);
                }
            }
            Step::Publish => {
                let count = self.given_back.len();
                let is_wanted = (self.used..self.used + count).contains(&self.wanted);
                let calls = if self.has_event { is_wanted } else { count > 0 };
                prop_assert_eq!(self.ring.publish(), calls);
                self.used += count;
                self.published.extend(self.given_back.drain(..));
            }
            Step::Hold => {
                self.ring.hold_kicks();
                prop_assert!(self.has_event || self.driver.no_notify());
            }
            Step::Allow => {
                prop_assert_eq!(self.ring.allow_kicks(), Ok(!self.offered.is_empty()));
                if self.has_event {
                    let next = self.start.wrapping_add(self.popped);
                    prop_assert_eq!(self.driver.avail_event(), next);
                }
                prop_assert!(self.has_event || !self.driver.no_notify());
            }
        }
        prop_assert_eq!(self.ring.peek(), Ok(!self.offered.is_empty()));
        prop_assert_eq!(self.ring.in_flight(), self.taken.len());
        Ok(())
    }

    /// The driver sees each chain once, in the order in which it was given back.
    fn reap(&mut self, behind: u16) -> Result<(), TestCaseError> {
        let heads: Vec<_> = self.published.iter().map(|&head| (head.into(), 1)).collect();
        prop_assert_eq!(self.driver.take_used(), heads);
        self.free.extend(self.published.drain(..));
        self.wanted = self.used + usize::from(behind);
        self.driver.set_used_event(self.driver.seen.wrapping_add(behind));
        Ok(())
    }

    /// The device has each chain once, in the order in which it was offered.
    fn pop(&mut self) -> Result<(), TestCaseError> {
        let taken = self.ring.pop(&self.driver.memory).expect("the driver keeps to the rules");
        let head = self.offered.pop_front();
        prop_assert_eq!(taken.as_ref().map(|one| one.head), head);
        if let Some(taken) = taken {
            let addr = taken.chain.expect("it is one").writable[0].addr;
            prop_assert_eq!(addr, DATA + u64::from(taken.head));
            self.taken.push(taken.head);
            self.popped += 1;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn ring_does_as_its_model(
        has_event in any::<bool>(),
        // Indices wrap where they begin near the end.
        start in prop_oneof![Just(0u16), Just(u16::MAX - 5)],
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut features = Features::VERSION_1;
        features.set(Features::EVENT_IDX, has_event);
        let mut pair = Pair::new(features, start);
        for step in steps {
            pair.step(step)?;
        }
    }
}
