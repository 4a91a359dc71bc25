//! The difference between two readings of `stat`.

use std::collections::BTreeMap;

use super::{BlkioStat, DiskStat, GroupStat, OpStat, Stat, TargetStat};

impl Stat {
    /// The same with what happened since an `earlier` reading in place of what happened since
    /// start-up: counts, their times, `backlogged_ns`, `throttled_ns`, `device_ns`,
    /// `outstanding_ns`, the `blkio` file `time`, and `elapsed_ns`. What is a state stays as it
    /// is. A disk whose server was started since is counted from then.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let disks = self.disks.iter().map(|disk| {
            let before = earlier.disks.iter().find(|before| before.name == disk.name);
            match before.filter(|before| before.elapsed_ns <= disk.elapsed_ns) {
                Some(before) => disk.since(before),
                None => disk.clone(),
            }
        });
        Self { version: self.version, disks: disks.collect() }
    }
}

impl DiskStat {
    fn since(&self, before: &Self) -> Self {
        let groups = self.groups.iter().map(|group| {
            let before = before.groups.iter().find(|before| before.path == group.path);
            before.map_or_else(|| group.clone(), |before| group.since(before))
        });
        Self {
            elapsed_ns: self.elapsed_ns.saturating_sub(before.elapsed_ns),
            syncs: self.syncs.saturating_sub(before.syncs),
            switches: self.switches.saturating_sub(before.switches),
            moved: self.moved.saturating_sub(before.moved),
            groups: groups.collect(),
            ..self.clone()
        }
    }
}

impl GroupStat {
    fn since(&self, before: &Self) -> Self {
        let ops = self.ops.iter().map(|(name, op)| {
            let before = before.ops.get(name).copied().unwrap_or_default();
            (name.clone(), op.since(before))
        });
        let throttled = self.throttled_ns.iter().map(|(why, nanos)| {
            let before = before.throttled_ns.get(why).copied().unwrap_or_default();
            (why.clone(), nanos.saturating_sub(before))
        });
        Self {
            backlogged_ns: self.backlogged_ns.saturating_sub(before.backlogged_ns),
            device_ns: self.device_ns.map(|now| now.saturating_sub(before.device_ns.unwrap_or(0))),
            outstanding_ns: since_if_known(self.outstanding_ns, before.outstanding_ns),
            throttled_ns: throttled.collect(),
            reserved: self.reserved.saturating_sub(before.reserved),
            target: self.target.map(|target| target.since(before.target.unwrap_or_default())),
            time: self.time.since(&before.time),
            ops: ops.collect(),
            blkio: time_since(&self.blkio, &before.blkio),
            blkio_recursive: time_since(&self.blkio_recursive, &before.blkio_recursive),
            ..self.clone()
        }
    }
}

/// A sum that the scheduler keeps: another scheduler begins it anew.
fn since_if_known(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    let before = before.unwrap_or_default();
    now.map(|now| now.checked_sub(before).unwrap_or(now))
}

impl TargetStat {
    /// Where another target was set meanwhile, what has been counted since then.
    fn since(self, before: Self) -> Self {
        if self.requests < before.requests {
            return self;
        }
        Self {
            requests: self.requests - before.requests,
            late: self.late.saturating_sub(before.late),
            unmet: self.unmet.saturating_sub(before.unmet),
            ..self
        }
    }
}

impl OpStat {
    fn since(self, before: Self) -> Self {
        Self {
            bios: self.bios.saturating_sub(before.bios),
            bytes: self.bytes.saturating_sub(before.bytes),
            merged: self.merged.saturating_sub(before.merged),
            dispatched: self.dispatched.saturating_sub(before.dispatched),
            completed: self.completed.saturating_sub(before.completed),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
            service_ns: self.service_ns.saturating_sub(before.service_ns),
            wait: self.wait.since(&before.wait),
            service: self.service.since(&before.service),
            total: self.total.since(&before.total),
        }
    }
}

type Files = BTreeMap<String, BlkioStat>;

fn time_since(files: &Files, before: &Files) -> Files {
    const TIME: &str = "time";
    let mut files = files.clone();
    if let (Some(BlkioStat::Number(now)), Some(BlkioStat::Number(before))) =
        (files.get_mut(TIME), before.get(TIME))
    {
        *now = now.saturating_sub(*before);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(elapsed_ns: u64, amount: u64) -> Stat {
        let op = OpStat {
            bios: amount,
            bytes: amount * 2,
            merged: amount * 3,
            dispatched: amount * 4,
            completed: amount * 5,
            wait_ns: amount * 6,
            service_ns: amount * 7,
            wait: [(4096, amount)].into_iter().collect(),
            service: [(8192, amount)].into_iter().collect(),
            total: [(u64::MAX, amount)].into_iter().collect(),
        };
        let group = GroupStat {
            path: "/g".to_owned(),
            weight: 300,
            queued: 3,
            backlogged_ns: amount * 8,
            device_ns: Some(amount * 12),
            outstanding_ns: Some(amount * 13),
            ops: [("read".to_owned(), op)].into(),
            blkio: [("time".to_owned(), BlkioStat::Number(amount * 9))].into(),
            ..GroupStat::default()
        };
        let name = "d".to_owned();
        let groups = vec![group];
        let [switches, moved] = [amount * 10, amount * 11];
        let counts = DiskStat { syncs: amount, switches, moved, ..DiskStat::default() };
        Stat::new(vec![DiskStat { name, elapsed_ns, groups, ..counts }])
    }

    #[test]
    fn counts_are_those_between_the_readings() {
        assert_eq!(reading(5000, 110).since(&reading(2000, 100)), reading(3000, 10));
        assert_eq!(reading(5000, 110).since(&Stat::new(Vec::new())), reading(5000, 110));
    }

    #[test]
    fn scheduler_that_was_switched_to_since_has_counted_what_is_outstanding_from_then() {
        assert_eq!(since_if_known(Some(30), Some(20)), Some(10));
        assert_eq!(since_if_known(Some(30), None), Some(30));
        assert_eq!(since_if_known(Some(10), Some(20)), Some(10));
        assert_eq!(since_if_known(None, Some(20)), None);
    }

    #[test]
    fn server_that_was_started_again_is_counted_from_then() {
        assert_eq!(reading(1000, 7).since(&reading(2000, 100)), reading(1000, 7));
    }
}
