//! The lines of `ctl stat`: a group by itself, and before one that has others below it a line for
//! all of it.

use paternoster_server::stat::{BlkioStat, GroupStat, OpStat};

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The group's path; with a `/` behind it, it is all of the group, with those below it.
    pub(super) name: String,
    /// The group, or the sum of those in it. Of a sum there are no leaf weight and no need, and
    /// times with a request waiting overlap: it has none of them.
    pub(super) group: GroupStat,
    /// Whether it is a sum.
    pub(super) is_sum: bool,
}

/// The lines of these groups, in their order.
pub(super) fn of(groups: &[GroupStat]) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups {
        let name = format!("{}/", group.path);
        let mut below = groups.iter().filter(|other| other.path.starts_with(&name)).peekable();
        if below.peek().is_some() {
            let sum = below.fold(group.clone(), |sum, other| sum.plus(other));
            let sum = GroupStat { weight: group.weight, ..sum };
            lines.push(Line { name, group: sum, is_sum: true });
        }
        lines.push(Line { name: group.path.clone(), group: group.clone(), is_sum: false });
    }
    lines
}

impl Line {
    /// A figure that a sum does not have.
    pub(super) fn own<T>(&self, figure: T) -> Option<T> {
        Some(figure).filter(|_| !self.is_sum)
    }

    /// The counts of one operation.
    pub(super) fn op(&self, name: &str) -> OpStat {
        self.group.ops.get(name).copied().unwrap_or_default()
    }
}

/// The time for which the group was charged, without the groups below it; none under a scheduler
/// that charges no time.
pub(super) fn time_ns(group: &GroupStat) -> Option<u64> {
    match group.blkio.get("time")? {
        BlkioStat::Number(nanos) => Some(*nanos),
        BlkioStat::Split(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, amount: u32) -> GroupStat {
        let wide = u64::from(amount);
        let op = OpStat {
            bios: wide,
            bytes: wide * 10,
            merged: wide,
            dispatched: wide,
            completed: wide * 100,
            wait_ns: wide * 1000,
            service_ns: wide * 10_000,
            ..OpStat::default()
        };
        GroupStat {
            path: path.to_owned(),
            weight: amount,
            leaf_weight: amount,
            connections: amount,
            queued: amount,
            in_device: amount,
            backlogged_ns: wide,
            outstanding_ns: Some(wide),
            needs_outstanding: Some(amount),
            ops: [("read".to_owned(), op), ("flush".to_owned(), op)].into(),
            blkio: [("time".to_owned(), BlkioStat::Number(wide))].into(),
            ..GroupStat::default()
        }
    }

    #[test]
    fn group_above_others_has_a_line_with_all_below_it() {
        let paths = ["/org", "/org/db", "/org/db/x", "/org-2"];
        let groups: Vec<_> = paths
            .into_iter()
            .zip([1, 20, 300, 4000])
            .map(|(path, amount)| group(path, amount))
            .collect();
        let lines = of(&groups);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| {
                let GroupStat { weight, connections, .. } = line.group;
                (line.name.as_str(), weight, connections, line.op("read").bytes)
            })
            .collect();
        let expected = [
            ("/org/", 1, 321, 3210),
            ("/org", 1, 1, 10),
            ("/org/db/", 20, 320, 3200),
            ("/org/db", 20, 20, 200),
            ("/org/db/x", 300, 300, 3000),
            ("/org-2", 4000, 4000, 40_000),
        ];
        assert_eq!(shown, expected);
        let whole = &lines[0];
        let GroupStat { queued, in_device, outstanding_ns, .. } = whole.group;
        assert_eq!((queued, in_device, time_ns(&whole.group)), (321, 321, Some(321)));
        assert_eq!((whole.own(1), outstanding_ns), (None, Some(321)));
        let OpStat { completed, wait_ns, service_ns, .. } = whole.group.all_ops();
        assert_eq!((completed, wait_ns, service_ns), (64_200, 642_000, 6_420_000));
    }
}
