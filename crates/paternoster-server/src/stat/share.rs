//! What part of a disk its groups are due by their weights, and what part they have.
//!
//! Both are of the time that a reading is of, which is best a second or more: the difference of two
//! readings ([`Stat::since`](super::Stat::since)).
//!
//! ```text
//!   /a 300        active: 3/4          entitled: 300 / (300 + 100)
//!   /b 100        active: 1/4
//!   /c 600        asked for nothing: its part is the others'
//! ```

use std::collections::BTreeMap;

use super::{DiskStat, GroupStat};

/// How many bytes cost as much as one request: what `achieved` is counted by. An assumption, and
/// between what solid-state and rotational disks have.
const REQUEST_BYTES: u64 = 16 << 10;

/// A group that had less than this part of what it is due is short of its share,
const ENOUGH: f64 = 0.9;
/// if a request of it waited for at least this part of the time.
const ALL_THE_TIME: f64 = 0.95;

/// The shares of one group, from 0 to 1: its own, without those of the groups below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// What it is due among the groups that asked for something: none if it asked for nothing, and
    /// where weights have no effect.
    pub entitled: Option<f64>,
    /// What it had of all that was done, where a request costs as much as 16 KiB; none if nothing
    /// was done.
    pub achieved: Option<f64>,
}

impl DiskStat {
    /// Returns the shares of each group, in the order of the groups.
    pub fn shares(&self) -> Vec<Share> {
        let costs: Vec<_> = self.groups.iter().map(cost).collect();
        let all: f64 = costs.iter().sum();
        let shares = costs.iter().zip(entitled(&self.groups)).map(|(cost, entitled)| Share {
            entitled: entitled.filter(|_| self.weights_apply),
            achieved: (all > 0.0).then(|| cost / all),
        });
        shares.collect()
    }

    /// Whether a group with these shares is short of them: it had less than 0.9 of what it is due,
    /// though a request of it waited for 95 % of the time, without what its own cap held.
    pub fn is_short(&self, group: &GroupStat, share: Share) -> bool {
        let waited = group.backlogged_ns.saturating_sub(group.time.cap_ns);
        let has_asked = as_float(waited) >= ALL_THE_TIME * as_float(self.elapsed_ns);
        let Share { entitled: Some(due), achieved: Some(had) } = share else { return false };
        has_asked && had < ENOUGH * due
    }
}

impl GroupStat {
    /// Whether it asked for something.
    fn is_active(&self) -> bool {
        let has_done = || self.ops.values().any(|op| op.completed > 0);
        self.backlogged_ns > 0 || self.queued > 0 || self.in_device > 0 || has_done()
    }
}

/// What was done for a group, in requests.
fn cost(group: &GroupStat) -> f64 {
    let ops = group.ops.values();
    ops.map(|op| as_float(op.completed) + as_float(op.bytes) / as_float(REQUEST_BYTES)).sum()
}

/// Returns a part of a whole, from 0 to 1; 0 of nothing.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { as_float(part) / as_float(whole) }
}

/// How many there were in a second, of so many in a span.
pub(crate) fn per_second(count: u64, span_ns: u64) -> f64 {
    ratio(count, span_ns) * 1e9
}

/// Exact below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "a share does not need more")]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}

/// What each group is due for its own requests; none of one that asked for nothing. Each stands
/// behind its parent, and one whose parent is not there is due nothing.
fn entitled(groups: &[GroupStat]) -> Vec<Option<f64>> {
    let at: BTreeMap<_, _> = groups.iter().map(|group| group.path.as_str()).zip(0..).collect();
    let above: Vec<Option<usize>> =
        groups.iter().map(|group| at.get(parent(&group.path)).copied()).collect();
    let is_top = |group: usize| parent(&groups[group].path).is_empty();
    let mut is_active: Vec<_> = groups.iter().map(GroupStat::is_active).collect();
    for group in (0..groups.len()).rev() {
        if let (true, Some(above)) = (is_active[group], above[group]) {
            is_active[above] = true;
        }
    }
    // What divides the share of each group, and that of the disk: weights of those that are active.
    let weight = |group: usize| f64::from(groups[group].weight);
    let own = |group: usize| {
        let weight = f64::from(groups[group].leaf_weight);
        if groups[group].is_active() { weight } else { 0.0 }
    };
    let (mut inside, mut of_disk): (Vec<_>, f64) = ((0..groups.len()).map(own).collect(), 0.0);
    for group in (0..groups.len()).filter(|&group| is_active[group]) {
        match above[group] {
            Some(above) => inside[above] += weight(group),
            None if is_top(group) => of_disk += weight(group),
            None => {}
        }
    }
    let mut share = vec![0.0; groups.len()];
    for group in (0..groups.len()).filter(|&group| is_active[group]) {
        share[group] = match above[group] {
            Some(above) => share[above] * weight(group) / inside[above],
            None if is_top(group) => weight(group) / of_disk,
            None => 0.0,
        };
    }
    let due = (0..groups.len()).map(|group| {
        (groups[group].is_active() && share[group] > 0.0)
            .then(|| share[group] * own(group) / inside[group])
    });
    due.collect()
}

/// The path of the group above; empty is the root.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::OpStat;

    fn group(path: &str, weight: u32, leaf_weight: u32, reads: u64) -> GroupStat {
        let read = OpStat { completed: reads, bytes: reads << 14, ..OpStat::default() };
        GroupStat {
            path: path.to_owned(),
            weight,
            leaf_weight,
            ops: [("read".to_owned(), read)].into(),
            ..GroupStat::default()
        }
    }

    fn shares(groups: Vec<GroupStat>) -> Vec<(Option<f64>, Option<f64>)> {
        let disk = DiskStat { groups, weights_apply: true, ..DiskStat::default() };
        disk.shares().iter().map(|share| (share.entitled, share.achieved)).collect()
    }

    #[test]
    fn weights_of_those_who_ask_divide_the_disk() {
        let found = shares(vec![
            group("/a", 300, 100, 10),
            group("/b", 100, 100, 30),
            group("/c", 600, 100, 0),
        ]);
        let expected = [(Some(0.75), Some(0.25)), (Some(0.25), Some(0.75)), (None, Some(0.0))];
        assert_eq!(found, expected);
    }

    #[test]
    fn group_divides_its_share_between_its_own_requests_and_those_below() {
        let found = shares(vec![
            group("/a", 100, 100, 5),
            group("/a/x", 300, 100, 5),
            group("/ab", 100, 100, 0),
            group("/ab/y", 7, 100, 10),
        ]);
        let entitled: Vec<_> = found.iter().map(|(entitled, _)| *entitled).collect();
        assert_eq!(entitled, [Some(0.125), Some(0.375), None, Some(0.5)]);
    }

    #[test]
    fn larger_requests_are_more() {
        let mut large = group("/a", 100, 100, 10);
        large.ops.get_mut("read").expect("it is there").bytes = 10 << 15;
        let found = shares(vec![large, group("/b", 100, 100, 10)]);
        assert_eq!(found[0].1, Some(0.6), "3 of 5");
    }

    /// Two of equal weight: /a is due half, and has what is left of 100.
    #[test]
    fn group_is_short_if_it_had_less_than_its_due_though_it_asked_all_the_time() {
        let is_short = |had: u64, waited_ns: u64, cap_ns: u64| {
            let mut group = group("/a", 100, 100, had);
            (group.backlogged_ns, group.time.cap_ns) = (waited_ns, cap_ns);
            let groups = vec![group, self::group("/b", 100, 100, 100 - had)];
            let (elapsed_ns, weights_apply) = (1000, true);
            let disk = DiskStat { elapsed_ns, weights_apply, groups, ..DiskStat::default() };
            disk.is_short(&disk.groups[0], disk.shares()[0])
        };
        assert!(is_short(44, 950, 0));
        assert!(!is_short(45, 950, 0), "it has 0.9 of its half");
        assert!(!is_short(44, 949, 0), "it did not ask for more");
        assert!(!is_short(44, 1000, 51), "its own cap held it");
        assert!(!is_short(100, 1000, 0));
    }

    #[test]
    fn nobody_is_due_anything_where_weights_have_no_effect() {
        let groups = vec![group("/a", 300, 100, 1)];
        let share = DiskStat { groups, ..DiskStat::default() }.shares()[0];
        assert_eq!(share, Share { entitled: None, achieved: Some(1.0) });
        assert_eq!(DiskStat::default().shares(), []);
        assert_eq!(shares(vec![group("/a", 300, 100, 0)]), [(None, None)]);
    }
}
