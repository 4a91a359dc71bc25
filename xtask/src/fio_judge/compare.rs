//! What two runs of a job did, compared: fio's and the laboratory's.

use super::log::{Action, Entry};
use super::random::{Judged, What};
use std::collections::{BTreeMap, BTreeSet};

/// How many standard deviations drawn numbers may be apart: 1 in 500,000 is beyond, and a run of
/// the judge compares some thousand.
const DEVIATIONS: f64 = 5.0;
/// How far means of sizes may be apart besides: which blocks are left free for large I/Os depends
/// on all positions before, so that sizes are no independent draws.
const OF_MEAN: f64 = 0.06;
/// The most passes that a random job has: four loops, and what `io_size` may ask for.
const MOST_PASSES: u64 = 5;
/// I/Os of fio that may be late or missing because the machine was busy: a twentieth, and three.
const LATE: f64 = 0.05;
const LATE_IOS: f64 = 3.0;

/// The sentences that say what differs; none where nothing does.
pub(super) fn differences(judged: &Judged, fio: &[Entry], ours: &[Entry]) -> Vec<String> {
    let mut found = vec![];
    match judged.what {
        What::Sequence => sequence(fio, ours, &mut found),
        What::Whole { same_count, covers, same_bytes } => {
            if same_count && fio.len() != ours.len() {
                found.push(format!("{} I/Os by fio, {} here", fio.len(), ours.len()));
            }
            if same_bytes {
                bytes(fio, ours, &mut found);
            }
            directions(fio, ours, &mut found);
            sizes(fio, ours, true, &mut found);
            positions(fio, ours, covers, &mut found);
        }
        What::Sizes => sizes(fio, ours, false, &mut found),
        What::Pace { each_direction } => pace(fio, ours, each_direction, &mut found),
    }
    found
}

/// All is the same but the time.
fn sequence(fio: &[Entry], ours: &[Entry], found: &mut Vec<String>) {
    let words = |entry: Option<&Entry>| match entry {
        Some(Entry { file, action, offset, bytes, .. }) => {
            format!("{action:?} of {file} at {offset}, {bytes} bytes")
        }
        None => "nothing".to_owned(),
    };
    for index in 0..fio.len().max(ours.len()) {
        let (fio, ours) = (words(fio.get(index)), words(ours.get(index)));
        if fio != ours {
            found.push(format!("I/O {index}: {fio} by fio, {ours} here"));
            return;
        }
    }
}

fn of(entries: &[Entry], action: Action) -> impl Iterator<Item = &Entry> + Clone {
    entries.iter().filter(move |entry| entry.action == action)
}

/// As many bytes are done: a pass may end before its end by one I/O, and so may the job behind it.
fn bytes(fio: &[Entry], ours: &[Entry], found: &mut Vec<String>) {
    let all = |entries: &[Entry]| entries.iter().map(|entry| entry.bytes).sum::<u64>();
    let largest = fio.iter().chain(ours).map(|entry| entry.bytes).max().unwrap_or(0);
    let (by_fio, here) = (all(fio), all(ours));
    if by_fio.abs_diff(here) > MOST_PASSES * largest {
        found.push(format!("{by_fio} bytes by fio, {here} here"));
    }
}

/// Each direction has its part of the I/Os.
#[allow(clippy::cast_precision_loss, reason = "I/Os of a small file")]
fn directions(fio: &[Entry], ours: &[Entry], found: &mut Vec<String>) {
    let (all_of_fio, all_of_ours) = (fio.len() as f64, ours.len() as f64);
    for action in [Action::Read, Action::Write, Action::Trim] {
        let [fio, ours] = [fio, ours].map(|entries| of(entries, action).count() as f64);
        let of_both = (fio + ours) / (all_of_fio + all_of_ours);
        let variance = of_both * (1.0 - of_both) * (1.0 / all_of_fio + 1.0 / all_of_ours);
        let (fio, ours) = (fio / all_of_fio, ours / all_of_ours);
        if (fio - ours).abs() > DEVIATIONS * variance.sqrt() {
            found.push(format!("{action:?}s: {fio:.3} of the I/Os by fio, {ours:.3} here"));
        }
    }
}

/// Each direction has the sizes that fio has, and their mean.
fn sizes(fio: &[Entry], ours: &[Entry], with_mean: bool, found: &mut Vec<String>) {
    for action in [Action::Read, Action::Write, Action::Trim] {
        let [fio, ours] = [fio, ours].map(|entries| Sizes::of(&of(entries, action)));
        if fio.count == 0.0 || ours.count == 0.0 {
            continue;
        }
        for (sizes, others, whose) in [(&fio, &ours, "fio"), (&ours, &fio, "here")] {
            if let Some(bytes) = sizes.missing_in(others) {
                found.push(format!("{action:?}s of {bytes} bytes: only {whose}"));
            }
        }
        let allowed = DEVIATIONS * (fio.variance_of_mean() + ours.variance_of_mean()).sqrt();
        if with_mean && (fio.mean - ours.mean).abs() > allowed + OF_MEAN * fio.mean {
            found.push(format!(
                "{action:?}s have {:.0} bytes on average by fio, {:.0} here",
                fio.mean, ours.mean
            ));
        }
    }
}

/// The sizes of the I/Os of a direction.
struct Sizes {
    count: f64,
    mean: f64,
    variance: f64,
    each: BTreeMap<u64, f64>,
}

impl Sizes {
    #[allow(clippy::cast_precision_loss, reason = "blocks of a small file")]
    fn of<'a>(entries: &(impl Iterator<Item = &'a Entry> + Clone)) -> Self {
        let count = entries.clone().count() as f64;
        let bytes = || entries.clone().map(|entry| entry.bytes as f64);
        let mean = bytes().sum::<f64>() / count;
        let variance = bytes().map(|bytes| (bytes - mean).powi(2)).sum::<f64>() / count;
        let mut each = BTreeMap::new();
        entries.clone().for_each(|entry| *each.entry(entry.bytes).or_insert(0.0) += 1.0);
        Self { count, mean, variance, each }
    }

    fn variance_of_mean(&self) -> f64 {
        self.variance / self.count
    }

    /// A size that the others lack, although it is frequent here: 25 of them are expected there, so
    /// that none is a chance of e^-25.
    fn missing_in(&self, others: &Self) -> Option<u64> {
        let expected = |seen: f64| seen / self.count * others.count;
        let mut frequent =
            self.each.iter().filter(|&(_, &seen)| seen > 25.0 && expected(seen) > 25.0);
        frequent.find(|(bytes, _)| !others.each.contains_key(*bytes)).map(|(&bytes, _)| bytes)
    }
}

/// Positions are on the same grid and end at the same place, and as many of them are visited.
fn positions(fio: &[Entry], ours: &[Entry], covers: bool, found: &mut Vec<String>) {
    let distinct = |entries: &[Entry]| {
        let visited = entries.iter().map(|entry| (entry.file.clone(), entry.offset));
        visited.collect::<BTreeSet<_>>()
    };
    let (by_fio, here) = (distinct(fio), distinct(ours));
    if covers && by_fio.len() != here.len() {
        found.push(format!("{} positions by fio, {} here", by_fio.len(), here.len()));
    }
    let grid = |visited: &BTreeSet<(String, u64)>| {
        visited.iter().fold(0, |grid, (_, offset)| greatest_common_divisor(*offset, grid))
    };
    // Few positions share a divisor by chance.
    if by_fio.len().min(here.len()) > 100 && grid(&by_fio) != grid(&here) {
        let (fio, ours) = (grid(&by_fio), grid(&here));
        found.push(format!("positions are multiples of {fio} by fio, of {ours} here"));
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// There are as many I/Os in the same time. fio's clock is the machine's.
#[allow(clippy::cast_precision_loss, reason = "I/Os of a second")]
fn pace(fio: &[Entry], ours: &[Entry], each_direction: bool, found: &mut Vec<String>) {
    let mut compare = |what: &str, fio: usize, ours: usize| {
        let allowed = LATE * ours as f64 + LATE_IOS;
        if fio.abs_diff(ours) as f64 > allowed {
            found.push(format!("{fio} {what} in a second by fio, {ours} here"));
        }
    };
    compare("I/Os", fio.len(), ours.len());
    if each_direction {
        for (action, what) in [(Action::Read, "reads"), (Action::Write, "writes")] {
            compare(what, of(fio, action).count(), of(ours, action).count());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(sizes: &[(Action, u64)]) -> Vec<Entry> {
        let mut offset = 0;
        let entry = |&(action, bytes): &(Action, u64)| {
            offset += bytes;
            Entry { file: "j.0.0".to_owned(), action, offset: offset - bytes, bytes }
        };
        sizes.iter().map(entry).collect()
    }

    fn told(what: What, fio: &[Entry], ours: &[Entry]) -> Vec<String> {
        differences(&Judged { text: String::new(), what }, fio, ours)
    }

    #[test]
    fn first_io_that_differs_is_told() {
        let fio = entries(&[(Action::Read, 4096), (Action::Read, 4096)]);
        assert_eq!(told(What::Sequence, &fio, &fio), [""; 0]);
        let told = told(What::Sequence, &fio, &fio[..1]);
        assert_eq!(told, ["I/O 1: Read of j.0.0 at 4096, 4096 bytes by fio, nothing here"]);
    }

    #[test]
    fn sizes_that_one_side_lacks_and_means_that_are_apart_are_told() {
        let mixed: Vec<_> = [(Action::Write, 4096), (Action::Write, 65_536)].repeat(100);
        let whole = What::Whole { same_count: false, covers: false, same_bytes: false };
        let (mixed, small) = (entries(&mixed), entries(&[(Action::Write, 4096)].repeat(200)));
        assert_eq!(told(whole, &mixed, &mixed), [""; 0]);
        let told = told(whole, &mixed, &small);
        assert_eq!(told[0], "Writes of 65536 bytes: only fio");
        assert!(told[1].starts_with("Writes have 34816 bytes on average by fio, 4096"), "{told:?}");
    }

    #[test]
    fn missing_direction_is_told() {
        let mix = entries(&[(Action::Read, 4096), (Action::Write, 4096)].repeat(50));
        let reads = entries(&[(Action::Read, 4096)].repeat(100));
        let whole = What::Whole { same_count: true, covers: false, same_bytes: true };
        assert_eq!(told(whole, &mix, &reads).len(), 2, "reads and writes");
        let pace = |each_direction| told(What::Pace { each_direction }, &mix, &reads).len();
        assert_eq!((pace(true), pace(false)), (2, 0));
    }
}
