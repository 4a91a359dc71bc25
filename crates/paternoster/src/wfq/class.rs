//! Which class of a group's own requests is served: real time before best effort before idle, and
//! now and then a lower one that has waited long.
//!
//! ```text
//!   rt   ●●●●●●●●●●●●●●●  ●●●●●●●●●●●●●●●  …
//!   be                  ●                ●       once it has waited for class_age: 1/16
//! ```
//!
//! A lower class gets a sixteenth of what its group is charged, whatever the size and direction of
//! its requests: its turn comes when higher classes have been charged 15 times what its next
//! request costs.
//!
//! A class has priority inside its group alone: groups share by weight, whatever their classes.

use super::directions::Directions;
use super::node::SiblingsId;
use super::service::Units;
use super::siblings::Siblings;
use crate::arena::Arena;
use crate::io_context::IoClass;
use crate::time::{Instant, Nanos};

/// How many times the cost of a lower class's request is charged to higher classes before it.
const PARTS_OF_HIGHER: u64 = 15;

/// The classes of a group's own requests.
#[derive(Debug)]
pub(super) struct Classes {
    /// The contexts of each class.
    siblings: [SiblingsId; IoClass::COUNT],
    waiting: [Behind; IoClass::COUNT],
    /// The contexts of the class with something waiting, if it is the only one: none is behind it.
    only: Option<SiblingsId>,
}

/// When a class has waited long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    pub(super) now: Instant,
    pub(super) class_age: Nanos,
}

/// How long a class has waited behind a higher one.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    /// Since when; none while it does not.
    since: Option<Instant>,
    /// What higher classes were charged since it had waited for `class_age`, less 15 times what it
    /// was charged itself since then.
    passed: Units,
}

impl Behind {
    fn is_old(self, Age { now, class_age }: Age) -> bool {
        self.since.is_some_and(|since| since + class_age <= now)
    }

    /// Returns whether higher classes have been charged enough for a request of that cost.
    fn has_earned(self, cost: Units) -> bool {
        self.passed >= cost.times(PARTS_OF_HIGHER)
    }
}

impl Classes {
    pub(super) fn new(siblings: [SiblingsId; IoClass::COUNT]) -> Self {
        Self { siblings, waiting: Default::default(), only: None }
    }

    /// The contexts of a class.
    #[inline]
    pub(super) fn siblings(&self, class: IoClass) -> SiblingsId {
        self.siblings[class as usize]
    }

    /// In which directions something waits in any class.
    pub(super) fn directions(&self, all: &Arena<SiblingsId, Siblings>) -> Directions {
        self.siblings.iter().map(|&id| all[id].directions()).collect()
    }

    /// Notes which classes wait behind a higher one: a class got its first request, or has served
    /// its last. Returns in which directions something waits.
    pub(super) fn note_waiting(
        &mut self,
        all: &Arena<SiblingsId, Siblings>,
        now: Instant,
    ) -> Directions {
        let mut directions = Directions::empty();
        for (&id, behind) in self.siblings.iter().zip(&mut self.waiting) {
            let waiting = all[id].directions();
            let is_highest = directions.is_empty();
            if waiting.is_empty() || is_highest {
                *behind = Behind::default();
            } else if behind.since.is_none() {
                behind.since = Some(now);
            }
            if !waiting.is_empty() {
                self.only = is_highest.then_some(id);
            }
            directions |= waiting;
        }
        directions
    }

    /// The class to serve next, of those in which something waits in one of those directions.
    /// `cost_of` tells what the next request of a class costs that waits behind another one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next(
        &self,
        all: &Arena<SiblingsId, Siblings>,
        directions: Directions,
        old: Age,
        cost_of: impl Fn(SiblingsId) -> Units,
    ) -> Option<SiblingsId> {
        if self.only.is_some() {
            return self.only;
        }
        let may_be_served =
            |&class: &IoClass| !(all[self.siblings(class)].directions() & directions).is_empty();
        let mut waiting = IoClass::ALL.into_iter().filter(may_be_served);
        let is_due = |class: &IoClass| self.is_due(*class, old, &cost_of);
        let next = waiting.clone().find(is_due).or_else(|| waiting.next())?;
        Some(self.siblings(next))
    }

    /// Returns whether it is the turn of a lower class.
    fn is_due(&self, class: IoClass, old: Age, cost_of: impl Fn(SiblingsId) -> Units) -> bool {
        let behind = self.waiting[class as usize];
        behind.is_old(old) && behind.has_earned(cost_of(self.siblings(class)))
    }

    /// Returns which lower classes have waited long and have not earned their turn yet: what a
    /// higher class is charged counts for them. A class that is due, and that a cap holds, earns
    /// no more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn earning(
        &self,
        old: Age,
        cost_of: impl Fn(SiblingsId) -> Units,
    ) -> [bool; IoClass::COUNT] {
        if self.only.is_some() {
            return [false; IoClass::COUNT];
        }
        IoClass::ALL.map(|class| {
            self.waiting[class as usize].is_old(old) && !self.is_due(class, old, &cost_of)
        })
    }

    /// Counts a request of a class that was served, with what it was charged. `earning` is as it
    /// was before the request was taken out.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn served(
        &mut self,
        class: IoClass,
        charge: Units,
        earning: [bool; IoClass::COUNT],
    ) {
        if self.only.is_some() {
            return;
        }
        let own = &mut self.waiting[class as usize].passed;
        *own = own.without(charge.times(PARTS_OF_HIGHER)).unwrap_or_default();
        let lower = self.waiting.iter_mut().zip(earning).skip(class as usize + 1);
        for (behind, _) in lower.filter(|&(_, earns)| earns) {
            behind.passed += charge;
        }
    }
}
