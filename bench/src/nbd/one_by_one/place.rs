//! Where server and client run: on all processors, or pinned to two or to one.
//!
//! The bench pins itself, and what it starts then inherits that.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors that server and client share.
#[derive(Clone)]
pub(super) struct Place {
    /// For people.
    pub(super) name: &'static str,
    /// What ours with `poll = "auto"` is to have there, in nbdkit's; there where that was said.
    pub(super) aim: Option<f64>,
    processors: CpuSet,
}

/// Returns the processors that the bench may use.
pub(super) fn allowed() -> Result<CpuSet> {
    sched_getaffinity(None).context("asking for the processors that may be used")
}

/// Free, and pinned to the first two and to the first of the processors that may be used.
pub(super) fn all(allowed: &CpuSet) -> Vec<Place> {
    let first = |count| {
        let mut processors = CpuSet::new();
        let numbers = (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
        for number in numbers.take(count) {
            processors.set(number);
        }
        processors
    };
    let mut places = vec![Place { name: "free", aim: None, processors: *allowed }];
    if allowed.count() >= 2 {
        places.push(Place { name: "two", aim: Some(1.25), processors: first(2) });
    }
    places.push(Place { name: "one", aim: Some(1.2), processors: first(1) });
    places
}

/// What has to be known of the places to read their rows.
pub(super) fn remark(allowed: &CpuSet) -> Option<&'static str> {
    match allowed.count() {
        0 | 1 => Some("There is one processor: free is the same as one, and two are left out."),
        2 => Some("There are two processors: free is the same as two, measured twice."),
        _ => None,
    }
}

impl Place {
    /// Pins the bench there, with what it starts from now on.
    pub(super) fn enter(&self) -> Result<()> {
        let pinned = sched_setaffinity(None, &self.processors);
        pinned.with_context(|| format!("going to these processors: {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for &number in numbers {
            set.set(number);
        }
        set
    }

    fn names(allowed: &[usize]) -> Vec<(&'static str, CpuSet)> {
        all(&set(allowed)).into_iter().map(|place| (place.name, place.processors)).collect()
    }

    #[test]
    fn places_are_among_the_processors_that_may_be_used() {
        let expected = [("free", set(&[1, 3, 70])), ("two", set(&[1, 3])), ("one", set(&[1]))];
        assert_eq!(names(&[1, 3, 70]), expected);
        assert_eq!(names(&[5]), [("free", set(&[5])), ("one", set(&[5]))]);
    }

    #[test]
    fn rows_that_are_the_same_are_said_to_be() {
        let remarks = [&[5][..], &[0, 5], &[0, 1, 2]].map(|numbers| remark(&set(numbers)));
        assert!(remarks[0].is_some_and(|text| text.contains("the same as one")));
        assert!(remarks[1].is_some_and(|text| text.contains("the same as two")));
        assert_eq!(remarks[2], None);
    }
}
