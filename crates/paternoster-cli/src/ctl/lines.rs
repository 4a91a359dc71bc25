//! The lines of `ctl stat`: a group by itself, and before one that has others below it a line for
//! all of it.

use paternoster_server::stat::{BlkioStat, GroupStat, OpStat};

/// What a line of the table shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The group's path; with a `/` behind it, it is all of the group, with those below it.
    pub(super) name: String,
    pub(super) weight: u32,
    /// None of all of a group.
    pub(super) leaf_weight: Option<u32>,
    /// The time for which it was charged; none under a scheduler that charges no time.
    pub(super) time_ns: Option<u64>,
    /// The time in which it had a request waiting. None of all of a group, where the times of
    /// several overlap.
    pub(super) backlogged_ns: Option<u64>,
    /// The time for which its requests were outstanding, summed over them; none if that is not
    /// measured.
    pub(super) outstanding_ns: Option<u64>,
    /// How many its weight needs. None of all of a group, and if it is not known.
    pub(super) needs_outstanding: Option<u32>,
    pub(super) connections: u32,
    pub(super) reads: OpStat,
    pub(super) writes: OpStat,
    /// All operations together.
    pub(super) all: OpStat,
    pub(super) queued: u32,
    pub(super) in_device: u32,
}

/// The lines of these groups, in their order.
pub(super) fn of(groups: &[GroupStat]) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups {
        let prefix = format!("{}/", group.path);
        let below: Vec<_> = groups.iter().filter(|other| other.path.starts_with(&prefix)).collect();
        let own = Line::of(group);
        if !below.is_empty() {
            let whole = Line {
                name: prefix,
                leaf_weight: None,
                backlogged_ns: None,
                needs_outstanding: None,
                ..own.clone()
            };
            let all = below.into_iter().fold(whole, |sum, group| sum.and(&Line::of(group)));
            lines.push(all);
        }
        lines.push(own);
    }
    lines
}

impl Line {
    fn of(group: &GroupStat) -> Self {
        let op = |name: &str| group.ops.get(name).copied().unwrap_or_default();
        Self {
            name: group.path.clone(),
            weight: group.weight,
            leaf_weight: Some(group.leaf_weight),
            time_ns: time_ns(group),
            backlogged_ns: Some(group.backlogged_ns),
            outstanding_ns: group.outstanding_ns,
            needs_outstanding: group.needs_outstanding,
            connections: group.connections,
            reads: op("read"),
            writes: op("write"),
            all: group.ops.values().fold(OpStat::default(), |all, op| sum(&all, op)),
            queued: group.queued,
            in_device: group.in_device,
        }
    }

    /// The same with what another did.
    fn and(self, other: &Self) -> Self {
        Self {
            time_ns: self.time_ns.map(|own| own.saturating_add(other.time_ns.unwrap_or(0))),
            outstanding_ns: added(self.outstanding_ns, other.outstanding_ns),
            connections: self.connections.saturating_add(other.connections),
            reads: sum(&self.reads, &other.reads),
            writes: sum(&self.writes, &other.writes),
            all: sum(&self.all, &other.all),
            queued: self.queued.saturating_add(other.queued),
            in_device: self.in_device.saturating_add(other.in_device),
            ..self
        }
    }
}

/// The sum of those that are known; none if neither is.
fn added(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn sum(one: &OpStat, other: &OpStat) -> OpStat {
    OpStat {
        bios: one.bios.saturating_add(other.bios),
        bytes: one.bytes.saturating_add(other.bytes),
        merged: one.merged.saturating_add(other.merged),
        dispatched: one.dispatched.saturating_add(other.dispatched),
        completed: one.completed.saturating_add(other.completed),
        wait_ns: one.wait_ns.saturating_add(other.wait_ns),
        service_ns: one.service_ns.saturating_add(other.service_ns),
        wait: one.wait.plus(&other.wait),
        service: one.service.plus(&other.service),
        total: one.total.plus(&other.total),
    }
}

/// The time for which the group was charged, without the groups below it.
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
            .map(|line| (line.name.as_str(), line.weight, line.connections, line.reads.bytes))
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
        assert_eq!((whole.queued, whole.in_device, whole.time_ns), (321, 321, Some(321)));
        assert_eq!((whole.leaf_weight, whole.backlogged_ns), (None, None));
        assert_eq!((whole.outstanding_ns, whole.needs_outstanding), (Some(321), None));
        let OpStat { completed, wait_ns, service_ns, .. } = whole.all;
        assert_eq!((completed, wait_ns, service_ns), (64_200, 642_000, 6_420_000));
    }
}
