//! What each group of a disk waited for, in a few words: as `top` and the page show it.
//!
//! `ctl why` says the same of one tenant in sentences ([`DiskStat::why`]).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{DiskStat, GroupStat, TimeStat};

/// What is less than this part of the time is not told.
const LEAST: u64 = 100;

impl DiskStat {
    /// Returns for each group, in their order, what it waited for and for how many nanoseconds, the
    /// most first: a cause, or the path of a group whose requests the disk served meanwhile.
    pub fn waits(&self) -> Vec<Vec<(&str, u64)>> {
        let least = (self.elapsed_ns / LEAST).max(1);
        let paths: BTreeSet<_> = self.groups.iter().map(|group| group.path.as_str()).collect();
        let mut first: Vec<_> = self.groups.iter().map(went_first).collect();
        first.sort_by_key(|&(_, nanos)| Reverse(nanos));
        let all_first = first.iter().map(|&(_, nanos)| u128::from(nanos)).sum();
        let waits = self.groups.iter().map(|group| {
            let mut waits = causes(&group.time);
            if group.behind.values().any(|&served| served > 0) {
                let behind = group.behind.iter().map(|(path, &served)| (path.as_str(), served));
                let behind: Vec<_> = behind.filter(|(path, _)| paths.contains(path)).collect();
                let all = behind.iter().map(|&(_, served)| u128::from(served)).sum();
                waits.extend(divided(group.time.turn_ns, behind, all));
            } else {
                let others = first.iter().copied().filter(|&(path, _)| path != group.path);
                let all: u128 = all_first;
                let all = all.saturating_sub(group.time.went_first_ns.into());
                // They come in their order: the rest has less.
                let behind = divided(group.time.turn_ns, others, all);
                waits.extend(behind.take_while(|&(_, nanos)| nanos >= least));
            }
            waits.retain(|&(_, nanos)| nanos >= least);
            waits.sort_by_key(|&(_, nanos)| Reverse(nanos));
            waits
        });
        waits.collect()
    }
}

fn went_first(group: &GroupStat) -> (&str, u64) {
    (&group.path, group.time.went_first_ns)
}

/// The causes that are no other group's.
fn causes(time: &TimeStat) -> Vec<(&'static str, u64)> {
    vec![
        ("disk", time.busy_ns),
        ("idle", time.idle_window_ns),
        ("cap", time.cap_ns),
        ("target", time.target_ns),
        ("server", time.server_ns),
        ("memory", time.memory_ns),
        ("reading", time.unread_ns),
        ("more", time.too_few_ns),
    ]
}

/// A time, divided as these parts are of all.
fn divided<'p>(
    time_ns: u64,
    parts: impl IntoIterator<Item = (&'p str, u64)>,
    all: u128,
) -> impl Iterator<Item = (&'p str, u64)> {
    parts.into_iter().map(move |(path, part)| {
        let time = (u128::from(time_ns) * u128::from(part)).checked_div(all);
        (path, time.and_then(|time| u64::try_from(time).ok()).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, time: TimeStat) -> GroupStat {
        GroupStat { path: path.to_owned(), time, ..GroupStat::default() }
    }

    /// The same numbers as of `why`, which divides by itself.
    #[test]
    fn what_is_less_than_a_hundredth_is_not_told_and_the_rest_is_as_why_has_it() {
        let time = |turn_ns, went_first_ns| TimeStat {
            turn_ns,
            went_first_ns,
            busy_ns: 1000,
            too_few_ns: 99,
            ..TimeStat::default()
        };
        let mut met = group("/met", time(6000, 10));
        met.behind = [("/a".to_owned(), 7), ("/b".to_owned(), 1), ("/gone".to_owned(), 9)].into();
        let groups = vec![group("/a", time(400, 100)), group("/b", time(8000, 3000)), met];
        let disk = DiskStat { groups, elapsed_ns: 10_000, ..DiskStat::default() };
        let waits = disk.waits();
        assert_eq!(waits[0], [("disk", 1000), ("/b", 398)]);
        assert_eq!(waits[1], [("/a", 7272), ("disk", 1000), ("/met", 727)]);
        assert_eq!(waits[2], [("/a", 5250), ("disk", 1000), ("/b", 750)]);
        for (group, waits) in disk.groups.iter().zip(&waits) {
            let why = disk.why(&group.path).expect("it is there");
            for behind in why.behind.iter().filter(|behind| behind.time_ns >= 100) {
                assert!(waits.contains(&(behind.tenant.as_str(), behind.time_ns)), "{behind:?}");
            }
        }
    }
}
