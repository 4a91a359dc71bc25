//! A prediction: what groups would get under other schedulers, and how wrong that may be.
//!
//! | error | is the difference between |
//! |---|---|
//! | *self* | what was recorded, and its replay under its own scheduler: the device's model |
//! | *rule* | the replay, and others by other rules: fixed chains, and a stream a group |
//!
//! A prediction is no better than both: their sum is the half width of what is printed with `±`.

use std::ops::Range;

use paternoster::Nanos;
use paternoster_model::Described;

use super::clock::Nature;
use super::recording::Recording;
use super::run::{Arrivals, Dependency, End, GotGroup, Options, Outcome, ReplayError};

/// What a group gets, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Its part of the bytes of all groups.
    pub share: f64,
    /// The latencies that 50 % and 99 % of its requests do not exceed.
    pub p50: Nanos,
    /// Likewise.
    pub p99: Nanos,
}

/// How far the figures of a group are off, as parts of themselves: 0.1 is 10 %. None where that is
/// not known, as of a group that had nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Of its requests and bytes a second, the greater.
    pub throughput: Option<f64>,
    /// Of its share, as a part of all.
    pub share: Option<f64>,
    /// Of its median latency.
    pub p50: Option<f64>,
    /// Of its 99th percentile.
    pub p99: Option<f64>,
}

impl Errors {
    /// By how much `found` differs from `wanted`.
    pub fn of(found: &Figures, wanted: &Figures) -> Self {
        let bytes = relative(found.bytes_per_second, wanted.bytes_per_second);
        let iops = relative(found.iops, wanted.iops);
        let greater = |one: f64, other: f64| if one.abs() < other.abs() { other } else { one };
        Self {
            throughput: iops.map(|iops| bytes.map_or(iops, |bytes| greater(iops, bytes))),
            share: iops.map(|_| found.share - wanted.share),
            p50: relative(seconds(found.p50), seconds(wanted.p50)),
            p99: relative(seconds(found.p99), seconds(wanted.p99)),
        }
    }

    /// Each by `merge`, of those that are known in either.
    fn with(self, other: Self, merge: fn(f64, f64) -> f64) -> Self {
        let each = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(merge(one.abs(), other.abs())),
            (one, other) => one.or(other).map(f64::abs),
        };
        Self {
            throughput: each(self.throughput, other.throughput),
            share: each(self.share, other.share),
            p50: each(self.p50, other.p50),
            p99: each(self.p99, other.p99),
        }
    }

    /// The greater of each, without its sign.
    fn most(self, other: Self) -> Self {
        self.with(other, f64::max)
    }

    /// The sum of both, without their signs.
    pub fn and(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

fn relative(found: f64, wanted: f64) -> Option<f64> {
    (wanted > 0.0).then(|| found / wanted - 1.0)
}

/// What a replay gave.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// Why it ended.
    pub end: End,
    /// When that was, since the start.
    pub until: Nanos,
    /// What each group got, in the order of [`Recording::parties`].
    pub figures: Vec<Figures>,
    /// The share of the rule in the error, for each group; without signs.
    pub rule: Vec<Errors>,
    /// What each got if those contexts ask by the clock that may do either.
    pub by_clock: Option<Vec<Figures>>,
}

/// What is known before any scheduler is tried.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// What each group got in the recording, in the time that is compared.
    pub recorded: Vec<Figures>,
    /// What each gets in its replay under its own scheduler.
    pub itself: Predicted,
    /// The difference; none where completions were inferred, as it is not known then.
    pub self_errors: Option<Vec<Errors>>,
    /// Completions were not recorded: an open-loop simulation stands for them.
    pub inferred: bool,
    /// How contexts come to their next requests.
    pub natures: Vec<Nature>,
    /// The requests whose completion the recording lacks, and all.
    pub cut: (usize, usize),
}

impl Prediction {
    /// From this difference in throughput on, the model does not fit.
    const FITS: f64 = 0.1;

    /// Whether the model of the device fits the recording: its own replay is within 10 % of it.
    /// None where that is not known.
    pub fn fits(&self) -> Option<bool> {
        let known = self.self_errors.iter().flatten().filter_map(|errors| errors.throughput);
        let worst = known.map(f64::abs).reduce(f64::max)?;
        Some(worst <= Self::FITS)
    }

    /// How far a prediction may be off: by the errors of the model and of the rule. Where
    /// completions were inferred, by the rule's twice.
    pub fn plus_minus(&self, predicted: &Predicted) -> Vec<Errors> {
        let rule = predicted.rule.iter();
        match &self.self_errors {
            Some(own) => rule.zip(own).map(|(rule, own)| rule.and(*own)).collect(),
            None => rule.map(|rule| rule.and(*rule)).collect(),
        }
    }
}

/// Predicts from one recording.
#[derive(Debug)]
pub struct Predictor<'a> {
    recording: Recording,
    device: &'a Described,
    inferred: bool,
    cut: (usize, usize),
}

impl<'a> Predictor<'a> {
    /// From that recording on that device. Where it lacks completions, its own are those of an
    /// open-loop simulation by `own`.
    pub fn new(
        recording: Recording,
        device: &'a Described,
        own: &Options,
    ) -> Result<Self, ReplayError> {
        let all = recording.requests();
        if recording.has_completions() {
            let cut = (recording.cut(), all);
            return Ok(Self { recording, device, inferred: false, cut });
        }
        let backlog = usize::MAX;
        let open = Options { arrivals: Arrivals::Open, repeats: false, backlog, ..own.clone() };
        let Outcome { recording, .. } = recording.replay(device, &open)?;
        Ok(Self { recording, device, inferred: true, cut: (0, all) })
    }

    /// The recording; with completions, whether it had some or not.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Replays it under its own scheduler.
    pub fn itself(&self, own: &Options) -> Result<Prediction, ReplayError> {
        let itself = self.predict(own)?;
        let until = itself.until.as_nanos().min(self.recording.end);
        let recorded = figures(&self.recording, &counted(until));
        let pairs = itself.figures.iter().zip(&recorded);
        let self_errors = pairs.map(|(found, wanted)| Errors::of(found, wanted)).collect();
        let self_errors = Some(self_errors).filter(|_| !self.inferred);
        let (natures, cut, inferred) = (self.recording.natures(), self.cut, self.inferred);
        Ok(Prediction { recorded, itself, self_errors, inferred, natures, cut })
    }

    /// Replays it as `options` have it, and by other rules, beside which its error is seen.
    pub fn predict(&self, options: &Options) -> Result<Predicted, ReplayError> {
        let (end, until, found) = self.replay(options)?;
        let mut others = Vec::new();
        if options.arrivals != Arrivals::Open {
            others.push(Options { fixed_chains: !options.fixed_chains, ..options.clone() });
            if self.has_groups_of_several() {
                let dependency = match options.dependency {
                    Dependency::Connection => Dependency::Export,
                    Dependency::Export => Dependency::Connection,
                };
                others.push(Options { dependency, ..options.clone() });
            }
        }
        let mut rule = vec![Errors::default(); found.len()];
        for other in others {
            let (.., other) = self.replay(&other)?;
            for ((rule, other), found) in rule.iter_mut().zip(&other).zip(&found) {
                *rule = rule.most(Errors::of(other, found));
            }
        }
        let is_unclear = options.arrivals == Arrivals::Found
            && self.recording.natures().contains(&Nature::Between);
        let by_clock = if is_unclear {
            let open = Options { arrivals: Arrivals::FoundOrOpen, ..options.clone() };
            Some(self.replay(&open)?.2)
        } else {
            None
        };
        Ok(Predicted { end, until, figures: found, rule, by_clock })
    }

    fn has_groups_of_several(&self) -> bool {
        let recording = &self.recording;
        (0..recording.groups.len()).any(|group| {
            recording.contexts.iter().filter(|context| context.group == Some(group)).count() > 1
        })
    }

    fn replay(&self, options: &Options) -> Result<(End, Nanos, Vec<Figures>), ReplayError> {
        let outcome = self.recording.replay(self.device, options)?;
        let until = outcome.counted_ns();
        Ok((outcome.end, Nanos::new(until), figures(&outcome.recording, &counted(until))))
    }
}

/// What is counted of so many ns: not the first tenth, at most a second. A scheduler begins cold in
/// a replay, and learns; in a server it had learnt long before.
fn counted(until: u64) -> Range<u64> {
    (until / 10).min(1_000_000_000)..until + 1
}

#[allow(clippy::cast_precision_loss, reason = "a figure needs no more than 53 bits")]
fn seconds(nanos: Nanos) -> f64 {
    nanos.as_nanos() as f64 / 1e9
}

#[allow(clippy::cast_precision_loss, reason = "a figure needs no more than 53 bits")]
fn figures(recording: &Recording, counted: &Range<u64>) -> Vec<Figures> {
    let got = recording.got(counted.clone());
    let seconds = seconds(Nanos::new(counted.end - counted.start));
    let all: u64 = got.iter().map(|group| group.bytes).sum();
    let of_group = |group: &GotGroup| {
        let a_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let percentile = |percent| group.latencies.percentile(percent).unwrap_or(Nanos::ZERO);
        Figures {
            iops: a_second(group.requests),
            bytes_per_second: a_second(group.bytes),
            share: if all > 0 { group.bytes as f64 / all as f64 } else { 0.0 },
            p50: percentile(50.0),
            p99: percentile(99.0),
        }
    };
    got.iter().map(of_group).collect()
}
