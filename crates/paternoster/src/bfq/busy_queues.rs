//! How many queues are busy, of which classes, and how many of them are raised. CFQ needs two
//! numbers alone, and keeps them in `Cfq`.

use crate::bfq::raising::Raising;
use crate::io_context::IoClass;

/// The numbers of busy queues.
#[derive(Debug, Default)]
pub(super) struct BusyQueues {
    /// Those of each class. A queue that changes class while it is busy is subtracted from its new
    /// class, as in Linux: the numbers may wrap, but their sum stays right.
    by_class: [u32; IoClass::COUNT],
    /// Those whose weight is raised. Less than 0 for good once low latency was turned off while
    /// queues were busy that were not raised, as in Linux.
    raised: i32,
}

impl BusyQueues {
    /// A queue becomes busy.
    pub(super) fn add(&mut self, class: IoClass, raising: &Raising) {
        let of_class = &mut self.by_class[class as usize];
        *of_class = of_class.wrapping_add(1);
        self.raised += i32::from(raising.is_raised());
    }

    /// A queue stops being busy.
    pub(super) fn remove(&mut self, class: IoClass, raising: &Raising) {
        let of_class = &mut self.by_class[class as usize];
        *of_class = of_class.wrapping_sub(1);
        self.raised -= i32::from(raising.is_raised());
    }

    /// The raising of a busy queue changes.
    #[inline]
    pub(super) fn change(&mut self, before: &Raising, after: &Raising) {
        self.raised += i32::from(after.is_raised()) - i32::from(before.is_raised());
    }

    /// Subtracts a busy queue that is not raised from those raised, as Linux does when low latency
    /// is turned off.
    pub(super) fn remove_unraised(&mut self) {
        self.raised -= 1;
    }

    /// Counts a busy queue that is raised a second time, as Linux does where its users part while
    /// low latency is off.
    pub(super) fn add_raised_again(&mut self) {
        self.raised += 1;
    }

    /// Busy queues.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.by_class.iter().fold(0, |sum, &of_class| sum.wrapping_add(of_class))
    }

    /// Those that are raised; less than 0 as said above.
    #[inline]
    pub(super) fn raised(&self) -> i32 {
        self.raised
    }

    /// Returns whether any is raised, as far as the number shows.
    #[inline]
    pub(super) fn any_raised(&self) -> bool {
        self.raised != 0
    }

    /// Returns whether fewer queues are raised than busy.
    #[inline]
    pub(super) fn some_not_raised(&self) -> bool {
        i64::from(self.raised) < i64::from(self.count())
    }

    /// Returns whether queues of several classes are busy.
    #[inline]
    pub(super) fn classes_differ(&self) -> bool {
        self.by_class.iter().filter(|&&of_class| of_class > 0).count() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfq::raising::{EligibleAs, RaisingLengths};
    use crate::time::{Jiffies, Ticks};

    fn not_raised() -> Raising {
        Raising::none(Jiffies::LONG_AGO)
    }

    fn raised() -> Raising {
        let lengths = RaisingLengths { interactive: Ticks::new(7000), soft_rt: Ticks::new(300) };
        not_raised().begun(EligibleAs::Interactive, lengths)
    }

    #[test]
    fn queues_count_while_they_are_busy() {
        let mut busy = BusyQueues::default();
        busy.add(IoClass::Be, &not_raised());
        assert!(!busy.classes_differ() && !busy.any_raised());
        busy.add(IoClass::Rt, &raised());
        assert_eq!((busy.count(), busy.raised()), (2, 1));
        assert!(busy.classes_differ() && busy.some_not_raised());
        busy.remove(IoClass::Be, &not_raised());
        assert!(!busy.classes_differ() && !busy.some_not_raised());
        busy.remove(IoClass::Rt, &raised());
        assert_eq!((busy.count(), busy.raised()), (0, 0));
    }

    #[test]
    fn raising_changes_in_the_middle_of_being_busy() {
        let mut busy = BusyQueues::default();
        busy.add(IoClass::Be, &not_raised());
        busy.change(&not_raised(), &raised());
        busy.change(&raised(), &raised());
        assert_eq!(busy.raised(), 1);
        busy.change(&raised(), &not_raised());
        assert_eq!(busy.raised(), 0);
    }

    /// It leaves another class than it came in.
    #[test]
    fn sum_is_right_though_a_queue_changes_class() {
        let mut busy = BusyQueues::default();
        busy.add(IoClass::Be, &not_raised());
        busy.remove(IoClass::Rt, &not_raised());
        assert_eq!(busy.count(), 0);
    }

    /// Any number but 0 counts as some, for good.
    #[test]
    fn number_of_raised_ones_stays_below_0_as_in_linux() {
        let mut busy = BusyQueues::default();
        busy.add(IoClass::Be, &not_raised());
        busy.remove_unraised();
        busy.remove(IoClass::Be, &not_raised());
        assert_eq!(busy.raised(), -1);
        assert!(busy.any_raised() && busy.some_not_raised());
    }
}
