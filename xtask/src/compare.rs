//! Comparing two logs as oracle/FORMAT.md says.
//!
//! The `D` (dispatch) and `M` (merge) lines must be the same, in the same order; everything else
//! in a log only explains. The score is the share of `D` lines, of the longer log, before the
//! first difference.

use serde::Deserialize;
use std::fmt::{self, Write as _};

/// A line of a log, as far as it is compared.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "ev")]
enum Line {
    /// A request is dispatched to the device.
    D {
        /// Nanoseconds since the start of the run.
        t: u64,
        /// The request's name.
        rq: String,
    },
    /// A request is merged into a queued one.
    M {
        /// Nanoseconds since the start of the run.
        t: u64,
        /// The request's name.
        rq: String,
        /// The name of the request that takes it.
        into: String,
        /// `back` or `front`.
        kind: String,
    },
    /// Anything else.
    #[serde(other)]
    Other,
}

/// One of the two logs.
pub(crate) struct Log<'a> {
    /// The lines as they are.
    raw: Vec<&'a str>,
    /// The compared lines, each with its index in `raw`. `None`: the line is bad, the log ends.
    compared: Vec<(usize, Option<Line>)>,
    /// What is wrong with the bad line.
    complaint: Option<String>,
}

/// What is shown in place of a difference where there is no candidate log.
const MISSING: &str = "    (there is no log)\n";

/// How a candidate log compares with its reference.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `D` lines before the first difference.
    pub(crate) same: u32,
    /// `D` lines of the longer log.
    pub(crate) longest: u32,
    /// The first difference with its context, as text; `None` where the logs agree.
    pub(crate) difference: Option<String>,
}

impl<'a> Log<'a> {
    /// Reads `text`, up to a line that is no object of the format.
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut log = Self { raw: text.lines().collect(), compared: vec![], complaint: None };
        for (index, line) in log.raw.iter().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(Line::Other) => {}
                Ok(compared) => log.compared.push((index, Some(compared))),
                Err(error) => {
                    log.compared.push((index, None));
                    log.complaint = Some(format!("line {} is bad: {error}", index + 1));
                    break;
                }
            }
        }
        log
    }

    /// What is wrong with the log, where something is.
    pub(crate) fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// `D` lines among the first `count` compared lines.
    fn dispatches(&self, count: usize) -> u32 {
        let lines = self.compared[..count].iter();
        let dispatches = lines.filter(|(_, line)| matches!(line, Some(Line::D { .. }))).count();
        u32::try_from(dispatches).expect("a log has fewer than 2^32 lines")
    }

    /// The lines around the compared line `at`, which is marked, or around the end of the log.
    fn show(&self, out: &mut String, label: &str, at: usize, context: usize) -> fmt::Result {
        writeln!(out, "    {label}")?;
        let here = self.compared.get(at).map_or(self.raw.len(), |(index, _)| *index);
        let end = self.raw.len().min(here + context + 1);
        for index in here.saturating_sub(context)..end {
            let mark = if index == here { '>' } else { ' ' };
            let line: String = self.raw[index].chars().take(200).collect();
            writeln!(out, "    {mark} {:6}  {line}", index + 1)?;
        }
        if here == self.raw.len() {
            writeln!(out, "    > {:6}  (end of the log)", "")?;
        }
        Ok(())
    }
}

impl Outcome {
    /// The outcome where there is no candidate log.
    pub(crate) fn missing(reference: &Log<'_>) -> Self {
        let longest = reference.dispatches(reference.compared.len());
        let difference = Some(MISSING.to_owned());
        Self { same: 0, longest, difference }
    }

    /// Compares, showing `context` lines before and after the first difference.
    pub(crate) fn of(reference: &Log<'_>, candidate: &Log<'_>, context: usize) -> Self {
        let (want, got) = (&reference.compared, &candidate.compared);
        let is_same = |(want, got): &(&(_, Option<Line>), &(_, Option<Line>))| {
            want.1.is_some() && want.1 == got.1
        };
        let at = want.iter().zip(got).take_while(is_same).count();
        let same = reference.dispatches(at);
        let longest = reference.dispatches(want.len()).max(candidate.dispatches(got.len()));
        if at == want.len() && at == got.len() {
            return Self { same, longest, difference: None };
        }
        let label = match candidate.complaint() {
            Some(complaint) => format!("ours ({complaint})"),
            None => "ours".to_owned(),
        };
        let mut text = String::new();
        reference.show(&mut text, "Linux", at, context).expect("writing to a String succeeds");
        candidate.show(&mut text, &label, at, context).expect("writing to a String succeeds");
        Self { same, longest, difference: Some(text) }
    }

    /// Whether there is no candidate log.
    pub(crate) fn is_missing(&self) -> bool {
        self.difference.as_deref() == Some(MISSING)
    }

    /// Whether the logs agree in full.
    pub(crate) fn agrees(&self) -> bool {
        self.difference.is_none()
    }

    /// From 0 to 1; 1 only where the logs agree or differ in a merge after the last dispatch.
    pub(crate) fn score(&self) -> f64 {
        match (self.agrees(), self.longest) {
            (true, _) => 1.0,
            (false, 0) => 0.0,
            (false, longest) => f64::from(self.same) / f64::from(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four requests, of which one is merged.
    const REFERENCE: &str = r#"{"t":0,"ev":"Q","rq":"1.0"}
{"t":0,"ev":"D","rq":"1.0"}
{"t":5,"ev":"Q","rq":"1.1"}
{"t":6,"ev":"M","rq":"1.2","into":"1.1","kind":"back"}
{"t":9,"ev":"slice","kind":7,"into":[]}
{"t":9,"ev":"D","rq":"1.1"}
{"t":12,"ev":"D","rq":"2.0"}
"#;

    fn compare(candidate: &str) -> Outcome {
        Outcome::of(&Log::parse(REFERENCE), &Log::parse(candidate), 1)
    }

    fn assert_score(outcome: &Outcome, same: u32, longest: u32) {
        assert!(!outcome.agrees());
        assert_eq!((outcome.same, outcome.longest), (same, longest));
        let expected = if longest == 0 { 0.0 } else { f64::from(same) / f64::from(longest) };
        assert!((outcome.score() - expected).abs() < 1e-9, "{}", outcome.score());
    }

    #[test]
    fn logs_agree_whatever_their_other_lines_say() {
        let candidate: Vec<_> = REFERENCE.lines().filter(|l| !l.contains("slice")).collect();
        let outcome = compare(&candidate.join("\n\n"));
        assert!(outcome.agrees());
        assert!((outcome.score() - 1.0).abs() < 1e-9);
        assert_eq!(outcome.same, 3);
    }

    #[test]
    fn dispatch_at_another_time_ends_the_agreement() {
        assert_score(&compare(&REFERENCE.replace("\"t\":12", "\"t\":13")), 2, 3);
    }

    #[test]
    fn merge_of_another_kind_ends_the_agreement() {
        assert_score(&compare(&REFERENCE.replace("back", "front")), 1, 3);
    }

    #[test]
    fn log_that_stops_early_is_scored_against_the_longer_one() {
        let short = REFERENCE.lines().take(2).collect::<Vec<_>>().join("\n");
        let outcome = compare(&short);
        assert_score(&outcome, 1, 3);
        let text = outcome.difference.expect("they differ");
        assert!(text.contains("(end of the log)"), "{text}");
    }

    #[test]
    fn log_that_goes_on_is_the_longer_one() {
        let long = format!("{REFERENCE}{{\"t\":20,\"ev\":\"D\",\"rq\":\"2.1\"}}\n");
        assert_score(&compare(&long), 3, 4);
    }

    #[test]
    fn bad_line_ends_the_log_there() {
        for bad in ["{\"t\":5,\"ev\":", "[]", "{\"t\":5}", "{\"t\":5,\"ev\":\"D\"}"] {
            let candidate = REFERENCE.replace("{\"t\":5,\"ev\":\"Q\",\"rq\":\"1.1\"}", bad);
            let outcome = compare(&candidate);
            assert_score(&outcome, 1, 3);
            let text = outcome.difference.expect("they differ");
            assert!(text.contains("line 3 is bad"), "{text}");
        }
    }

    #[test]
    fn missing_log_scores_nothing() {
        assert_score(&Outcome::missing(&Log::parse(REFERENCE)), 0, 3);
    }

    #[test]
    fn the_first_difference_is_shown_with_the_lines_around_it() {
        let outcome = compare(&REFERENCE.replace("\"2.0\"", "\"3.0\""));
        let expected = r#"    Linux
           6  {"t":9,"ev":"D","rq":"1.1"}
    >      7  {"t":12,"ev":"D","rq":"2.0"}
    ours
           6  {"t":9,"ev":"D","rq":"1.1"}
    >      7  {"t":12,"ev":"D","rq":"3.0"}
"#;
        assert_eq!(outcome.difference.as_deref(), Some(expected));
    }

    #[test]
    fn logs_without_dispatches_that_differ_score_nothing() {
        let merge = r#"{"t":6,"ev":"M","rq":"1.2","into":"1.1","kind":"back"}"#;
        let outcome = Outcome::of(&Log::parse(merge), &Log::parse(""), 4);
        assert_score(&outcome, 0, 0);
    }
}
