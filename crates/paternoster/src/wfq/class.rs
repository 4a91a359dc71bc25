//! Which class of a group's own requests is served: real time before best effort before idle, and
//! now and then a lower one that has waited long.
//!
//! ```text
//!   rt   ●●●●●●●●●●●●●●●  ●●●●●●●●●●●●●●●  …
//!   be                  ●                ●       once it has waited for class_age: one of 16
//! ```
//!
//! A class has priority inside its group alone: groups share by weight, whatever their classes.

use slotmap::SlotMap;

use super::directions::Directions;
use super::node::SiblingsId;
use super::siblings::Siblings;
use super::tournament::Tag;
use crate::io_context::IoClass;
use crate::time::{Instant, Nanos};

/// How many requests of higher classes go before one of a class that has waited long.
const TURNS_OF_HIGHER: u32 = 15;

/// The classes of a group's own requests.
#[derive(Debug)]
pub(super) struct Classes {
    /// The contexts of each class.
    siblings: [SiblingsId; IoClass::COUNT],
    waiting: [Behind; IoClass::COUNT],
    /// The contexts of the class with something waiting, if it is the only one: none is behind it.
    only: Option<SiblingsId>,
}

/// How long a class has waited behind a higher one.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    /// Since when; none while it does not.
    since: Option<Instant>,
    /// Requests of higher classes that were served since it had waited for `class_age`, and since
    /// it was last served.
    passed: u32,
}

impl Behind {
    fn is_old(self, now: Instant, class_age: Nanos) -> bool {
        self.since.is_some_and(|since| since + class_age <= now)
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
    pub(super) fn directions(&self, all: &SlotMap<SiblingsId, Siblings>) -> Directions {
        self.siblings.iter().map(|&id| all[id].directions()).collect()
    }

    /// Notes which classes wait behind a higher one: a class got its first request, or has served
    /// its last. Returns in which directions something waits.
    pub(super) fn note_waiting(
        &mut self,
        all: &SlotMap<SiblingsId, Siblings>,
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

    /// The context to serve next in one of those directions, and its tag.
    #[inline]
    pub(super) fn first<'a>(
        &self,
        all: &'a SlotMap<SiblingsId, Siblings>,
        directions: Directions,
        now: Instant,
        class_age: Nanos,
    ) -> Option<&'a Tag> {
        all[self.next(all, directions, now, class_age)?].first(directions)
    }

    /// The class to serve next, of those in which something waits in one of those directions.
    #[inline]
    pub(super) fn next(
        &self,
        all: &SlotMap<SiblingsId, Siblings>,
        directions: Directions,
        now: Instant,
        class_age: Nanos,
    ) -> Option<SiblingsId> {
        self.only.or_else(|| {
            let mut order = self.in_order(now, class_age).map(|class| self.siblings(class));
            order.find(|&class| !(all[class].directions() & directions).is_empty())
        })
    }

    /// Returns the classes in the order in which they may be served now.
    fn in_order(&self, now: Instant, class_age: Nanos) -> impl Iterator<Item = IoClass> + use<> {
        let due = IoClass::ALL.into_iter().find(|&class| {
            let behind = self.waiting[class as usize];
            behind.is_old(now, class_age) && behind.passed >= TURNS_OF_HIGHER
        });
        let others = IoClass::ALL.into_iter().filter(move |&class| Some(class) != due);
        due.into_iter().chain(others)
    }

    /// Counts a request that was served.
    #[inline]
    pub(super) fn served(&mut self, class: IoClass, now: Instant, class_age: Nanos) {
        if self.only.is_some() {
            return;
        }
        self.waiting[class as usize].passed = 0;
        for behind in &mut self.waiting[class as usize + 1..] {
            if behind.is_old(now, class_age) {
                behind.passed += 1;
            }
        }
    }
}
