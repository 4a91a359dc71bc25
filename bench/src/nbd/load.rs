//! What the client asks of a server: whether it reads or writes, how much at a time, on how many
//! connections, with how much outstanding on all of them together.

use std::fmt;
use std::ops::RangeInclusive;

/// Requests that the client keeps in flight, on all connections together.
pub(super) const DEPTH: u32 = 32;
/// How many connections there may be: each has at least one request in flight.
pub(super) const CONNECTIONS: RangeInclusive<u32> = 1..=DEPTH;

/// A kind of request. Reads come before writes, and small ones before large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// fio's name of the order: random reads or writes.
    pub(super) rw: &'static str,
    /// How much a request reads or writes, in KiB.
    pub(super) kib: u32,
    /// For people, and for the command line.
    pub(super) name: &'static str,
}

/// All kinds.
pub(super) const KINDS: [Kind; 4] = [
    Kind { rw: "randread", kib: 4, name: "read-4k" },
    Kind { rw: "randwrite", kib: 4, name: "write-4k" },
    Kind { rw: "randread", kib: 64, name: "read-64k" },
    Kind { rw: "randread", kib: 1024, name: "read-1m" },
];

/// What the client asks for at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load {
    pub(super) kind: Kind,
    pub(super) connections: u32,
    /// Requests in flight on all connections together; no fewer than there are connections.
    pub(super) depth: u32,
}

impl Load {
    /// A connection with one 4 KiB read at a time: how long it takes there and back.
    pub(super) const ONE_BY_ONE: Self = Self { kind: KINDS[0], connections: 1, depth: 1 };

    /// 4 KiB reads: what all servers are asked, whatever their backing.
    pub(super) fn is_for_all(self) -> bool {
        self.kind == KINDS[0]
    }

    /// fio's options for it.
    pub(super) fn options(self) -> Vec<String> {
        let Self { kind: Kind { rw, kib, .. }, connections, depth } = self;
        vec![
            format!("--rw={rw}"),
            format!("--bs={kib}k"),
            format!("--numjobs={connections}"),
            format!("--iodepth={}", depth / connections),
            "--group_reporting".to_owned(),
            "--thread".to_owned(),
        ]
    }

    /// So many requests a second, in MiB a second.
    pub(super) fn mib_per_s(self, iops: f64) -> f64 {
        iops * f64::from(self.kind.kib) / 1024.0
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, connections, depth } = self;
        let s = if *connections == 1 { "" } else { "s" };
        write!(f, "{} on {connections} connection{s} at depth {depth}", kind.name)
    }
}

/// Each kind on each number of connections, and one read at a time if reads of 4 KiB on one
/// connection are among them.
pub(super) fn loads(kinds: &[Kind], connections: &[u32]) -> Vec<Load> {
    let each = kinds.iter().flat_map(|&kind| {
        connections.iter().map(move |&connections| {
            // As much for each connection.
            let depth = DEPTH / connections * connections;
            Load { kind, connections, depth }
        })
    });
    let mut loads: Vec<_> = each.collect();
    if loads.iter().any(|load| load.is_for_all() && load.connections == 1) {
        loads.insert(0, Load::ONE_BY_ONE);
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_depth_evenly() {
        for load in loads(&KINDS, &[1, 4, 5, 16, 32]) {
            let options = load.options();
            let number = |name: &str| -> u32 {
                let value = options.iter().find_map(|option| option.strip_prefix(name));
                value.expect("it is there").parse().expect("a number")
            };
            let (jobs, each) = (number("--numjobs="), number("--iodepth="));
            assert_eq!((jobs, jobs * each), (load.connections, load.depth), "{load}");
            assert!(load.depth == 1 || load.depth > DEPTH - load.connections, "{load}");
        }
    }

    #[test]
    fn reads_one_by_one_are_measured_beside_those_of_one_connection() {
        assert_eq!(loads(&KINDS[..1], &[1, 4])[0], Load::ONE_BY_ONE);
        assert_eq!(loads(&KINDS[1..], &[1, 4]).len(), 6);
        assert_eq!(loads(&KINDS[..1], &[16]).len(), 1);
    }
}
