//! The table: medians over the rounds, ours beside nbdkit round by round, and the aims.

use super::super::fio::Sample;
use super::super::load;
use super::super::servers::Poll;
use super::super::table::{medians, ratio, told};
use super::Contender;
use super::costs::{Costs, OwnCosts};
use super::place::Place;
use paternoster_scene::statistics::median;
use std::collections::BTreeMap;

/// What one server had in one round under one load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) sample: Sample,
    pub(super) costs: Costs,
    /// Of ours.
    pub(super) own: Option<OwnCosts>,
}

/// The rounds of each load, place, by its position in the list, and server.
pub(super) type Rounds = BTreeMap<(load::Kind, usize, Contender), Vec<Round>>;

/// What the columns are.
const LEGEND: &str = "\
waits, looks: of the disk's thread, by ctl stat; sleeps, CPU us: of all threads of the server;
IPIs, timers: interrupts of the machine from processor to processor, and of timers. All a request.";

/// Prints the table.
pub(super) fn print(places: &[Place], rounds: &Rounds) {
    println!(
        "\n{:<8} {:<4} {:<22} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  x nbdkit",
        "load",
        "on",
        "server",
        "IOPS",
        "p99 us",
        "waits",
        "looks",
        "sleeps",
        "IPIs",
        "timers",
        "CPU us",
    );
    for ((kind, index, contender), runs) in rounds {
        let Some(Sample { iops, p99_us }) = medians(&samples(runs)) else { continue };
        let of = |value: fn(&Round) -> Option<f64>| {
            let median = median(runs.iter().filter_map(value));
            median.map_or("-".to_owned(), |median| format!("{median:.2}"))
        };
        let theirs = rounds.get(&(*kind, *index, Contender::Nbdkit));
        let theirs = theirs.filter(|_| *contender != Contender::Nbdkit);
        let ratio = theirs.and_then(|theirs| ratio(&samples(runs), &samples(theirs)));
        let beside = told(ratio);
        let is_aimed_at = *contender == Contender::Ours(Poll::Auto);
        let aim = places[*index].aim.filter(|_| is_aimed_at).zip(ratio);
        println!(
            "{:<8} {:<4} {:<22} {iops:>7.0} {p99_us:>7.1} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  \
             {beside}{}",
            kind.name,
            places[*index].name,
            contender.name(),
            of(|round| Some(round.own?.waits)),
            of(|round| Some(round.own?.looks)),
            of(|round| Some(round.costs.sleeps)),
            of(|round| round.costs.ipis),
            of(|round| round.costs.timers),
            of(|round| Some(round.costs.on_cpu_us)),
            aim.map_or(String::new(), |(aim, ratio)| verdict(aim, ratio.median)),
        );
    }
    println!("{LEGEND}");
}

fn samples(rounds: &[Round]) -> Vec<Sample> {
    rounds.iter().map(|round| round.sample).collect()
}

/// Whether the aim is reached.
fn verdict(aim: f64, ratio: f64) -> String {
    let verdict = if ratio >= aim { "reached" } else { "missed" };
    format!(", aim {aim:.2} {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aim_is_reached_by_the_ratio_itself_and_not_by_what_is_printed() {
        assert_eq!(verdict(1.25, 1.25), ", aim 1.25 reached");
        assert_eq!(verdict(1.25, 1.249), ", aim 1.25 missed");
    }
}
