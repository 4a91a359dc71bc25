//! The table: medians over the rounds, and each server beside nbdkit; past the page cache beside
//! qemu-nbd, as nbdkit does no direct I/O.
//!
//! A server is compared with the other round by round, as both met the same state of the machine
//! then. The table has the median of those ratios with the least and the greatest.

use super::fio::Sample;
use super::load::Load;
use super::servers::Server;
use paternoster_scene::statistics::{Spread, median};
use std::collections::BTreeMap;

/// The samples of each load and server, a round each; a server is named by its place in the list.
pub(super) type Samples = BTreeMap<(Load, usize), Vec<Sample>>;

/// The IOPS of `ours` as multiples of `theirs`, round by round, of which both have one in each.
pub(super) fn ratio(ours: &[Sample], theirs: &[Sample]) -> Option<Spread> {
    Spread::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours.iops / theirs.iops))
}

/// Says how a server compares with another.
pub(super) fn told(ratio: Option<Spread>) -> String {
    ratio.map_or("-".to_owned(), |Spread { median, least, most }| {
        format!("{median:.2} ({least:.2} to {most:.2})")
    })
}

/// The median of each measure; none where there is no sample.
pub(super) fn medians(samples: &[Sample]) -> Option<Sample> {
    let of = |measure: fn(&Sample) -> f64| median(samples.iter().map(measure));
    Some(Sample { iops: of(|sample| sample.iops)?, p99_us: of(|sample| sample.p99_us)? })
}

/// Prints the table.
pub(super) fn print(servers: &[Server], samples: &Samples) {
    println!(
        "\n{:<10} {:>5} {:>3}  {:<20} {:<7} {:>9} {:>8} {:>9}  x peer",
        "load", "conns", "qd", "server", "backing", "IOPS", "MiB/s", "p99 us"
    );
    for ((load, index), runs) in samples {
        let Server { kind, .. } = &servers[*index];
        let peer = servers.iter().position(|other| {
            other.kind.program == kind.backing.peer() && other.kind.backing == kind.backing
        });
        let others = peer.filter(|peer| peer != index);
        let theirs = others.and_then(|peer| samples.get(&(*load, peer)));
        let beside = told(theirs.and_then(|theirs| ratio(runs, theirs)));
        let Some(Sample { iops, p99_us }) = medians(runs) else { continue };
        println!(
            "{:<10} {:>5} {:>3}  {:<20} {:<7} {iops:>9.0} {:>8.0} {p99_us:>9.1}  {beside}",
            load.kind.name,
            load.connections,
            load.depth,
            servers[*index].title(),
            kind.backing.name(),
            load.mib_per_s(iops),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(iops: &[f64]) -> Vec<Sample> {
        iops.iter().map(|&iops| Sample { iops, p99_us: 1.0 }).collect()
    }

    #[test]
    fn median_is_taken_of_each_measure_on_its_own() {
        let samples = [(3.0, 1.0), (1.0, 3.0), (2.0, 9.0)];
        let samples = samples.map(|(iops, p99_us)| Sample { iops, p99_us });
        assert_eq!(medians(&samples), Some(Sample { iops: 2.0, p99_us: 3.0 }));
        assert_eq!(medians(&samples[..2]), Some(Sample { iops: 2.0, p99_us: 2.0 }));
        assert_eq!(medians(&[]), None);
    }

    /// The medians of both are 20 and 10, and yet a round had twice as much in none but one.
    #[test]
    fn servers_are_compared_round_by_round() {
        let ratio = ratio(&samples(&[10.0, 20.0, 30.0]), &samples(&[10.0, 5.0, 20.0]));
        assert_eq!(ratio, Some(Spread { median: 1.5, least: 1.0, most: 4.0 }));
        assert_eq!(told(ratio), "1.50 (1.00 to 4.00)");
        assert_eq!(super::ratio(&[], &[]), None);
    }
}
