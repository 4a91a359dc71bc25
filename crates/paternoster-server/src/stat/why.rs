//! Why a tenant waits: its time by cause, and behind whom. What `ctl why` and `top` show.
//!
//! ```text
//!   account of the tenant          turn 480 ms      idle window 40 ms   …
//!   served meanwhile               /gold 600 ms, /vm1 120 ms of the disk's time
//!   behind                         /gold 400 ms, /vm1 80 ms: in that proportion
//! ```
//!
//! Where it is not known what was served meanwhile, the proportion is that of the whole time: of
//! the groups beyond the first 64 of a disk, and of an older server.

use std::cmp::Reverse;

use serde::Serialize;

use super::share::as_float;
use super::{DiskStat, GroupStat, OpStat, Share, Stat, TimeStat};

/// The answer of `ctl why`, of a span of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// One for each disk where the tenant is.
    pub disks: Vec<Why>,
}

/// Where the time of a tenant went on one disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The disk.
    pub disk: String,
    /// The path of the tenant's group.
    pub tenant: String,
    /// The disk's scheduler.
    pub scheduler: String,
    /// The span, in nanoseconds.
    pub elapsed_ns: u64,
    /// What part of the disk it is due, if it asked for something and weights have an effect.
    pub entitled: Option<f64>,
    /// What part it had, if anything was done.
    pub achieved: Option<f64>,
    /// Its time by cause.
    pub time: TimeStat,
    /// How many requests it had outstanding on average, if the scheduler measures that.
    pub outstanding: Option<f64>,
    /// How many it has to keep outstanding for its weight to hold, if that is known.
    pub needs_outstanding: Option<u32>,
    /// Whose requests the disk served in `turn_ns`, the most first.
    pub behind: Vec<Behind>,
    /// For whom the disk idled in `idle_window_ns`, the most first; the tenant's own
    /// connections may be among them.
    pub idled_for: Vec<Behind>,
    /// Who was served, the most first.
    pub served: Vec<Served>,
}

/// A part of a tenant's time, and whose it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Behind {
    /// The path of the group.
    pub tenant: String,
    /// How long, in nanoseconds.
    pub time_ns: u64,
}

/// What a tenant had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Served {
    /// The path of the group.
    pub tenant: String,
    /// Requests done.
    pub requests: u64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Its part of all that was done.
    pub achieved: f64,
}

impl Stat {
    /// Says why the tenant waited, on every disk where it is or on the disk of that name. The
    /// statistics are those of a span ([`Stat::since`]).
    pub fn why(&self, tenant: &str, disk: Option<&str>) -> WhyAnswer {
        let disks = self.disks.iter().filter(|found| disk.is_none_or(|name| name == found.name));
        let disks = disks.filter_map(|disk| disk.why(tenant)).collect();
        WhyAnswer { version: Self::VERSION, disks }
    }
}

impl DiskStat {
    /// Says why the tenant of that path waited; none if it is not on the disk.
    pub fn why(&self, tenant: &str) -> Option<Why> {
        let index = self.groups.iter().position(|group| group.path == tenant)?;
        let (group, shares) = (&self.groups[index], self.shares());
        let Share { entitled, achieved } = shares[index];
        let others = self.groups.iter().filter(|other| other.path != tenant);
        let behind = |path| group.behind.get(path).copied().unwrap_or_default();
        let has_row = group.behind.values().any(|served| *served > 0);
        let served = others.map(|other| {
            (other, if has_row { behind(&other.path) } else { other.time.went_first_ns })
        });
        let idled = self.groups.iter().map(|other| (other, other.time.idled_ns));
        Some(Why {
            disk: self.name.clone(),
            tenant: tenant.to_owned(),
            scheduler: self.scheduler.clone(),
            elapsed_ns: self.elapsed_ns,
            entitled,
            achieved,
            time: group.time,
            outstanding: self.outstanding(group),
            needs_outstanding: group.needs_outstanding,
            behind: divide(group.time.turn_ns, served.collect()),
            idled_for: divide(group.time.idle_window_ns, idled.collect()),
            served: self.served(&shares),
        })
    }

    /// Returns how many requests a group had outstanding on average, if that was measured.
    pub fn outstanding(&self, group: &GroupStat) -> Option<f64> {
        let sum = group.outstanding_ns.filter(|_| self.elapsed_ns > 0)?;
        Some(as_float(sum) / as_float(self.elapsed_ns))
    }

    fn served(&self, shares: &[Share]) -> Vec<Served> {
        let served = self.groups.iter().zip(shares).map(|(group, share)| {
            let OpStat { completed: requests, bytes, .. } = group.all_ops();
            let (tenant, achieved) = (group.path.clone(), share.achieved.unwrap_or_default());
            Served { tenant, requests, bytes, achieved }
        });
        let mut served: Vec<_> = served.filter(|served| served.requests > 0).collect();
        served.sort_by(|one, other| other.achieved.total_cmp(&one.achieved));
        served
    }
}

/// Divides a time in the proportion of the parts, and leaves out who has none of it.
fn divide(time_ns: u64, parts: Vec<(&GroupStat, u64)>) -> Vec<Behind> {
    let all: u128 = parts.iter().map(|(_, part)| u128::from(*part)).sum();
    let part_of = |part: u64| {
        let time = u128::from(time_ns) * u128::from(part);
        time.checked_div(all).and_then(|time| u64::try_from(time).ok()).unwrap_or_default()
    };
    let behind = parts
        .into_iter()
        .map(|(group, part)| Behind { tenant: group.path.clone(), time_ns: part_of(part) });
    let mut behind: Vec<_> = behind.filter(|behind| behind.time_ns > 0).collect();
    behind.sort_by_key(|behind| Reverse(behind.time_ns));
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, time: TimeStat) -> GroupStat {
        GroupStat { path: path.to_owned(), time, ..GroupStat::default() }
    }

    fn disk(groups: Vec<GroupStat>) -> DiskStat {
        DiskStat { name: "d".to_owned(), groups, ..DiskStat::default() }
    }

    fn parts(behind: &[Behind]) -> Vec<(&str, u64)> {
        behind.iter().map(|behind| (behind.tenant.as_str(), behind.time_ns)).collect()
    }

    #[test]
    fn time_behind_others_is_divided_as_the_disk_served_them_meanwhile() {
        let time = |turn_ns, went_first_ns, idled_ns| TimeStat {
            turn_ns,
            went_first_ns,
            idled_ns,
            idle_window_ns: turn_ns / 10,
            ..TimeStat::default()
        };
        let victim = group("/v", time(400, 1000, 10));
        let groups = vec![
            group("/a", time(9, 100, 0)),
            victim,
            group("/b", time(9, 300, 30)),
            group("/c", time(0, 0, 0)),
        ];
        let stat = Stat::new(vec![disk(groups)]);
        let answer = stat.why("/v", None);
        let [why] = &answer.disks[..] else { panic!("{answer:?}") };
        assert_eq!(parts(&why.behind), [("/b", 300), ("/a", 100)]);
        assert_eq!(parts(&why.idled_for), [("/b", 30), ("/v", 10)]);
        // What was served while this one waited says more.
        let mut met = stat.disks[0].clone();
        met.groups[1].behind = [("/a".to_owned(), 7), ("/c".to_owned(), 1)].into();
        let why = met.why("/v").expect("it is there");
        assert_eq!(parts(&why.behind), [("/a", 350), ("/c", 50)]);
        assert_eq!(stat.why("/v", Some("e")).disks, []);
        assert_eq!(stat.why("/w", None).disks, []);
    }

    #[test]
    fn nobody_is_named_where_nobody_was_served() {
        let time = TimeStat { turn_ns: 5, ..TimeStat::default() };
        let why = disk(vec![group("/v", time)]).why("/v").expect("it is there");
        assert_eq!(why.behind, []);
    }
}
