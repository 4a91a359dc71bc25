//! The difference between two readings of `stat`.

use std::collections::BTreeMap;

use super::{BlkioStat, DiskStat, GroupStat, LearnedDepth, OpStat, Stat, TargetStat, ThreadsStat};

impl Stat {
    /// The same with what happened since an `earlier` reading in place of what happened since
    /// start-up: counts, their times, `time`, `behind`, `backlogged_ns`, `throttled_ns`,
    /// `reserved`, `device_ns`, `outstanding_ns`, the requests of `target`, the windows of
    /// `learned_depth`, the
    /// `blkio` file `time`, and `elapsed_ns`. What is a state stays as it is. A disk whose server
    /// was started since is counted from then, and what a scheduler counts from when it was
    /// switched to.
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
            waits: self.waits.saturating_sub(before.waits),
            poll: self.poll.since(&before.poll),
            threads: self.threads.map(|now| now.since(before.threads.unwrap_or_default())),
            learned_depth: self
                .learned_depth
                .as_ref()
                .map(|learned| learned.since(before.learned_depth.as_ref())),
            root: self.root.since(&before.root),
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
            (why.clone(), since_switch(*nanos, before))
        });
        Self {
            backlogged_ns: self.backlogged_ns.saturating_sub(before.backlogged_ns),
            device_ns: self.device_ns.map(|now| now.saturating_sub(before.device_ns.unwrap_or(0))),
            outstanding_ns: self
                .outstanding_ns
                .map(|now| since_switch(now, before.outstanding_ns.unwrap_or_default())),
            throttled_ns: throttled.collect(),
            reserved: since_switch(self.reserved, before.reserved),
            target: self.target.map(|target| target.since(before.target.unwrap_or_default())),
            time: self.time.since(&before.time),
            behind: behind_since(&self.behind, &before.behind),
            ops: ops.collect(),
            blkio: time_since(&self.blkio, &before.blkio),
            blkio_recursive: time_since(&self.blkio_recursive, &before.blkio_recursive),
            ..self.clone()
        }
    }
}

fn behind_since(
    now: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let since = now.iter().map(|(path, served)| {
        (path.clone(), served.saturating_sub(before.get(path).copied().unwrap_or_default()))
    });
    since.filter(|(_, served)| *served > 0).collect()
}

/// A sum that the scheduler keeps: another scheduler begins it anew.
fn since_switch(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl LearnedDepth {
    fn since(&self, before: Option<&Self>) -> Self {
        let [windows, starved] =
            before.map_or([0; 2], |before| [before.windows, before.windows_starved]);
        // Together, as one of them may be beyond what it was before the switch.
        if self.windows < windows || self.windows_starved < starved {
            return self.clone();
        }
        Self {
            windows: self.windows - windows,
            windows_starved: self.windows_starved - starved,
            ..self.clone()
        }
    }
}

impl ThreadsStat {
    fn since(self, before: Self) -> Self {
        Self {
            threads: self.threads,
            commands: self.commands.saturating_sub(before.commands),
            batches: self.batches.saturating_sub(before.batches),
            owner_woken: self.owner_woken.saturating_sub(before.owner_woken),
            threads_woken: self.threads_woken.saturating_sub(before.threads_woken),
        }
    }
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
    use super::super::{OvershootStat, PollClassStat, PollStat};
    use super::*;

    fn waiting(amount: u64) -> PollStat {
        let class = PollClassStat {
            class: "read (4096 Bytes)".to_owned(),
            choice: "sleep".to_owned(),
            sleep_ns: Some(9),
            ios: amount * 31,
            slept_for: amount * 32,
            misses: amount * 33,
            ..PollClassStat::default()
        };
        PollStat {
            mode: "auto".to_owned(),
            looks: amount * 19,
            found: amount * 20,
            looked_ns: amount * 21,
            crowded: amount * 22,
            next_ns: 7,
            commands: amount * 23,
            cpu_ns: amount * 24,
            interrupts: amount * 34,
            sleeps: amount * 25,
            slept_ns: amount * 26,
            woken_early: amount * 27,
            missed: amount * 28,
            polls: amount * 29,
            polled_ns: amount * 30,
            sleep_cost_ns: Some(8),
            overshoots: vec![OvershootStat { from_ns: 1, p50_ns: 2, p99_ns: 3 }],
            classes: vec![class],
        }
    }

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
            behind: [("/h".to_owned(), amount * 35)].into(),
            ops: [("read".to_owned(), op)].into(),
            blkio: [("time".to_owned(), BlkioStat::Number(amount * 9))].into(),
            ..GroupStat::default()
        };
        let name = "d".to_owned();
        let groups = vec![group.clone()];
        let [switches, moved] = [amount * 10, amount * 11];
        let threads = ThreadsStat {
            threads: 2,
            commands: amount * 15,
            batches: amount * 16,
            owner_woken: amount * 17,
            threads_woken: amount * 18,
        };
        let (waits, threads) = (amount * 14, Some(threads));
        let counts = DiskStat {
            syncs: amount,
            switches,
            moved,
            waits,
            poll: waiting(amount),
            threads,
            root: GroupStat { path: "/".to_owned(), ..group.clone() },
            ..DiskStat::default()
        };
        Stat::new(vec![DiskStat { name, elapsed_ns, groups, ..counts }])
    }

    #[test]
    fn counts_are_those_between_the_readings() {
        assert_eq!(reading(5000, 110).since(&reading(2000, 100)), reading(3000, 10));
        assert_eq!(reading(5000, 110).since(&Stat::new(Vec::new())), reading(5000, 110));
    }

    #[test]
    fn scheduler_that_was_switched_to_since_has_counted_from_then() {
        let of = |amount: u64| GroupStat {
            outstanding_ns: Some(amount),
            throttled_ns: [("cap".to_owned(), amount)].into(),
            reserved: amount,
            ..GroupStat::default()
        };
        assert_eq!(of(30).since(&of(20)), of(10));
        assert_eq!(of(10).since(&of(20)), of(10), "it began anew");
        assert_eq!(of(30).since(&GroupStat::default()), of(30), "another one has no such counts");
        assert_eq!(GroupStat::default().since(&of(20)), GroupStat::default());
    }

    #[test]
    fn windows_of_a_learned_depth_are_those_between_the_readings() {
        let of = |windows, windows_starved| {
            let learned = LearnedDepth { windows, windows_starved, ..LearnedDepth::default() };
            DiskStat { learned_depth: Some(learned), ..DiskStat::default() }
        };
        assert_eq!(of(50, 7).since(&of(40, 4)), of(10, 3));
        assert_eq!(of(41, 3).since(&of(40, 4)), of(41, 3), "of another scheduler");
        assert_eq!(of(5, 1).since(&DiskStat::default()), of(5, 1));
    }

    #[test]
    fn server_that_was_started_again_is_counted_from_then() {
        assert_eq!(reading(1000, 7).since(&reading(2000, 100)), reading(1000, 7));
    }
}
