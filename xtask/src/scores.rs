//! The pins of the oracle: how far each scenario agreed with Linux when last pinned.
//!
//! `oracle/scores.toml` has a table a scheduler and a line a scenario whose score is above 0.
//! Scores are kept to four decimals; 1.0000 says that the logs agree in full, and nothing less.

use crate::compare::Outcome;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the pins are.
pub(crate) const FILE: &str = "oracle/scores.toml";

/// What the file says of itself.
const HEADER: &str = "# How far each scenario agrees with Linux: the share of dispatches before \
the first\n# difference. Written by `cargo xtask oracle --pin`; `cargo xtask test` lets no score \
fall.\n";

/// A score by the scenario's name, rounded as pins are.
pub(crate) type ByScenario = BTreeMap<String, f64>;

/// The scores of all schedulers, by the scheduler's name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Scores(BTreeMap<String, ByScenario>);

/// A pinned scenario that does worse than its pin.
#[derive(Debug, PartialEq)]
pub(crate) struct Fall {
    /// The scenario.
    pub(crate) scenario: String,
    /// What it scored when pinned.
    pub(crate) pin: f64,
    /// What it scores now; `None` where the archive has it no more.
    pub(crate) now: Option<f64>,
}

/// The score of `outcome` as it is pinned: to four decimals, and 1 only for full agreement.
pub(crate) fn rounded(outcome: &Outcome) -> f64 {
    let score: f64 = format!("{:.4}", outcome.score()).parse().expect("a printed number parses");
    if outcome.agrees() { score } else { score.min(0.9999) }
}

impl Scores {
    /// The pins in the file; none where there is no file yet.
    pub(crate) fn load() -> Result<Self> {
        if !Path::new(FILE).exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(FILE).with_context(|| format!("reading {FILE}"))?;
        Self::parse(&text).with_context(|| FILE.to_owned())
    }

    /// Puts the pins into the file.
    pub(crate) fn store(&self) -> Result<()> {
        std::fs::write(FILE, self.print()).with_context(|| format!("writing {FILE}"))
    }

    /// Reads the file's text.
    fn parse(text: &str) -> Result<Self> {
        Ok(Self(toml::from_str(text)?))
    }

    /// The file's text.
    fn print(&self) -> String {
        let mut text = HEADER.to_owned();
        for (scheduler, scores) in &self.0 {
            writeln!(text, "\n[{scheduler}]").expect("writing to a String succeeds");
            for (scenario, score) in scores {
                writeln!(text, "{scenario:?} = {score:.4}").expect("writing to a String succeeds");
            }
        }
        text
    }

    /// The schedulers that have pins.
    pub(crate) fn schedulers(&self) -> impl Iterator<Item = String> {
        self.0.keys().cloned()
    }

    /// The pin of a scenario; 0 where it has none.
    pub(crate) fn pin(&self, scheduler: &str, scenario: &str) -> f64 {
        self.0.get(scheduler).and_then(|pins| pins.get(scenario)).copied().unwrap_or(0.0)
    }

    /// The pinned scenarios of `scheduler` that `now` has lower or not at all.
    pub(crate) fn falls(&self, scheduler: &str, now: &ByScenario) -> Vec<Fall> {
        let pins = self.0.get(scheduler).into_iter().flatten();
        pins.map(|(name, &pin)| Fall { scenario: name.clone(), pin, now: now.get(name).copied() })
            .filter(|fall| fall.now.is_none_or(|now| now < fall.pin))
            .collect()
    }

    /// The scenarios in `now` that do better than their pin.
    pub(crate) fn rises(&self, scheduler: &str, now: &ByScenario) -> usize {
        now.iter().filter(|&(name, &score)| score > self.pin(scheduler, name)).count()
    }

    /// Moves the pins of `scheduler` up to `now`; none down.
    pub(crate) fn raise(&mut self, scheduler: &str, now: &ByScenario) {
        let pins = self.0.entry(scheduler.to_owned()).or_default();
        for (name, &score) in now {
            if score > pins.get(name).copied().unwrap_or(0.0) {
                pins.insert(name.clone(), score);
            }
        }
        self.0.retain(|_, pins| !pins.is_empty());
    }

    /// Makes `now` the pins of `scheduler`, higher or lower.
    pub(crate) fn replace(&mut self, scheduler: &str, now: &ByScenario) {
        self.0.remove(scheduler);
        self.raise(scheduler, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(list: &[(&str, f64)]) -> ByScenario {
        list.iter().map(|&(name, score)| (name.to_owned(), score)).collect()
    }

    fn pins() -> Scores {
        let mut pins = Scores::default();
        pins.raise("cfq", &scores(&[("a-b", 0.5), ("c", 1.0), ("none", 0.0)]));
        pins
    }

    #[test]
    fn file_is_read_as_it_was_written() {
        let text = pins().print();
        assert!(text.ends_with("\n[cfq]\n\"a-b\" = 0.5000\n\"c\" = 1.0000\n"), "{text}");
        assert_eq!(Scores::parse(&text).expect("it is TOML"), pins());
    }

    #[test]
    fn lower_score_and_a_missing_scenario_are_falls() {
        let falls = pins().falls("cfq", &scores(&[("a-b", 0.4999), ("new", 0.1)]));
        let expected = [
            Fall { scenario: "a-b".into(), pin: 0.5, now: Some(0.4999) },
            Fall { scenario: "c".into(), pin: 1.0, now: None },
        ];
        assert_eq!(falls, expected);
        assert_eq!(pins().falls("bfq", &scores(&[])), []);
        assert_eq!(pins().falls("cfq", &scores(&[("a-b", 0.6), ("c", 1.0)])), []);
    }

    #[test]
    fn raising_never_lowers_and_replacing_may() {
        let now = scores(&[("a-b", 0.7), ("c", 0.9)]);
        let mut raised = pins();
        assert_eq!(raised.rises("cfq", &now), 1);
        raised.raise("cfq", &now);
        assert_eq!(raised.0["cfq"], scores(&[("a-b", 0.7), ("c", 1.0)]));
        raised.replace("cfq", &now);
        assert_eq!(raised.0["cfq"], now);
        raised.replace("cfq", &scores(&[("c", 0.0)]));
        assert_eq!(raised, Scores::default());
    }

    #[test]
    fn only_full_agreement_is_pinned_as_one() {
        let outcome = |difference| Outcome { same: 99999, longest: 100000, difference };
        assert!((rounded(&outcome(Some(String::new()))) - 0.9999).abs() < 1e-9);
        assert!((rounded(&outcome(None)) - 1.0).abs() < 1e-9);
    }
}
