//! The table: medians over the rounds, and each server beside nbdkit; past the page cache beside
//! qemu-nbd, as nbdkit does no direct I/O.
//!
//! Beside requests a second it says what a request took of processors, from the server and from the
//! client: where both share them, their sum bounds the requests.
//!
//! A server is compared with the other round by round, as both met the same state of the machine
//! then. The table has the median of those ratios with the least and the greatest.

use super::fio::Sample;
use super::load::Load;
use super::servers::Server;
use super::watched::Watched;
use paternoster_scene::statistics::{Spread, median};
use std::collections::BTreeMap;

/// The samples of each load and server, a round each; a server is named by its place in the list.
pub(super) type Samples = BTreeMap<(Load, usize), Vec<Watched>>;

/// The IOPS of `ours` as multiples of `theirs`, round by round, of which both have one in each.
pub(super) fn ratio(ours: &[Sample], theirs: &[Sample]) -> Option<Spread> {
    Spread::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours.iops / theirs.iops))
}

/// What a request cost our server of processors as multiples of what it cost theirs, likewise.
fn cpu_ratio(ours: &[Watched], theirs: &[Watched]) -> Option<Spread> {
    let each = ours.iter().zip(theirs);
    Spread::of(each.map(|(ours, theirs)| ours.server_us() / theirs.server_us()))
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
        "\n{:<10} {:>5} {:>3}  {:<20} {:<7} {:>9} {:>8} {:>9} {:>7} {:>7}  {:<20}  x peer, CPU",
        "load",
        "conns",
        "qd",
        "server",
        "backing",
        "IOPS",
        "MiB/s",
        "p99 us",
        "CPU us",
        "client",
        "x peer, IOPS"
    );
    for ((load, index), runs) in samples {
        let Server { kind, .. } = &servers[*index];
        let peer = servers.iter().position(|other| {
            other.kind.program == kind.backing.peer() && other.kind.backing == kind.backing
        });
        let others = peer.filter(|peer| peer != index);
        let theirs = others.and_then(|peer| samples.get(&(*load, peer)));
        let beside = told(theirs.and_then(|theirs| ratio(&fio(runs), &fio(theirs))));
        let cpu_beside = told(theirs.and_then(|theirs| cpu_ratio(runs, theirs)));
        let Some(Sample { iops, p99_us }) = medians(&fio(runs)) else { continue };
        let cpu = |of: fn(&Watched) -> f64| median(runs.iter().map(of)).unwrap_or(f64::NAN);
        println!(
            "{:<10} {:>5} {:>3}  {:<20} {:<7} {iops:>9.0} {:>8.0} {p99_us:>9.1} {:>7.1} {:>7.1}  \
             {beside:<20}  {cpu_beside}",
            load.kind.name,
            load.connections,
            load.depth,
            servers[*index].title(),
            kind.backing.name(),
            load.mib_per_s(iops),
            cpu(Watched::server_us),
            cpu(Watched::client_us),
        );
    }
}

/// What fio says of them.
fn fio(runs: &[Watched]) -> Vec<Sample> {
    runs.iter().map(|run| run.sample).collect()
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
