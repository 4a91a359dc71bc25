//! The table: medians over the rounds, and each server beside nbdkit; past the page cache beside
//! qemu-nbd, as nbdkit does no direct I/O.
//!
//! A server is compared with the other round by round, as both met the same state of the machine
//! then. The table has the median of those ratios with the least and the greatest.

use super::fio::Sample;
use super::load::Load;
use super::servers::Server;
use std::collections::BTreeMap;
use std::fmt;

/// The samples of each load and server, a round each; a server is named by its place in the list.
pub(super) type Samples = BTreeMap<(Load, usize), Vec<Sample>>;

/// How a server compares with another, round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    least: f64,
    greatest: f64,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, least, greatest } = self;
        write!(f, "{median:.2} ({least:.2} to {greatest:.2})")
    }
}

/// The IOPS of `ours` as multiples of `theirs`, of which both have one in each round.
pub(super) fn ratio(ours: &[Sample], theirs: &[Sample]) -> Option<Ratio> {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours.iops / theirs.iops);
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let (least, greatest) = (*ratios.first()?, *ratios.last()?);
    Some(Ratio { median: middle(&ratios)?, least, greatest })
}

/// The median of values in ascending order; none where there is no value.
fn middle(values: &[f64]) -> Option<f64> {
    let (last, half) = (values.len().checked_sub(1)?, values.len() / 2);
    Some(f64::midpoint(values[last / 2], values[half]))
}

/// The median of values in any order; none where there is no value.
pub(super) fn median_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    middle(&values)
}

/// The median of each measure; none where there is no sample.
pub(super) fn median(samples: &[Sample]) -> Option<Sample> {
    let of = |measure: fn(&Sample) -> f64| median_of(samples.iter().map(measure));
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
        let ratio = theirs.and_then(|theirs| ratio(runs, theirs));
        let beside = ratio.map_or("-".to_owned(), |ratio| ratio.to_string());
        let Some(Sample { iops, p99_us }) = median(runs) else { continue };
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
        assert_eq!(median(&samples), Some(Sample { iops: 2.0, p99_us: 3.0 }));
        assert_eq!(median(&samples[..2]), Some(Sample { iops: 2.0, p99_us: 2.0 }));
        assert_eq!(median(&[]), None);
    }

    /// The medians of both are 20 and 10, and yet a round had twice as much in none but one.
    #[test]
    fn servers_are_compared_round_by_round() {
        let ratio = ratio(&samples(&[10.0, 20.0, 30.0]), &samples(&[10.0, 5.0, 20.0]));
        assert_eq!(ratio, Some(Ratio { median: 1.5, least: 1.0, greatest: 4.0 }));
        let text = ratio.map(|ratio| ratio.to_string());
        assert_eq!(text.as_deref(), Some("1.50 (1.00 to 4.00)"));
        assert_eq!(super::ratio(&[], &[]), None);
    }
}
