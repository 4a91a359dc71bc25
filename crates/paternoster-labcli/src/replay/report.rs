//! What is printed of a replay: a table with notes, or JSON.

use std::fmt::Write as _;

use anyhow::Result;
use paternoster::Nanos;
use paternoster_cli::output;
use paternoster_lab::replay::{End, Errors, Figures, Nature, Predicted, Prediction, Recording};
use paternoster_scene::{plain_table, table_text};
use serde_json::{Value, json};

const MIB: f64 = (1 << 20) as f64;

/// What a replay under one scheduler gave.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) predicted: Predicted,
    /// How far it may be off.
    pub(super) plus_minus: Vec<Errors>,
}

pub(super) struct Report {
    /// The paths of the groups.
    groups: Vec<String>,
    /// The names of the contexts.
    contexts: Vec<String>,
    span: Nanos,
    /// The scheduler under which it was recorded.
    own: String,
    /// What `--as` has contexts do, where it is given.
    as_said: Option<&'static str>,
    prediction: Prediction,
    rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(
        recording: &Recording,
        own: String,
        as_said: Option<&'static str>,
        prediction: Prediction,
        rows: Vec<Row>,
    ) -> Self {
        let groups = recording.parties().into_iter().map(|it| recording.path(it).to_owned());
        let contexts = recording.contexts.iter().map(|context| context.name.clone());
        let span = Nanos::new(recording.end);
        let (groups, contexts) = (groups.collect(), contexts.collect());
        Self { groups, contexts, span, own, as_said, prediction, rows }
    }

    pub(super) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            let text = serde_json::to_string_pretty(&self.json())? + "\n";
            return output::print(text.as_bytes());
        }
        let text = format!("{}\n{}", output::fit(&self.table()), self.notes());
        output::print(text.as_bytes())
    }

    fn table(&self) -> String {
        let header =
            ["SCHEDULER", "GROUP", "IOPS", "MiB/s", "±", "SHARE", "±", "P50", "±", "P99", "±"];
        let mut table = plain_table(header, 2);
        let Prediction { recorded, itself, self_errors, inferred, .. } = &self.prediction;
        let mut add = |name: &str, figures: &[Figures], errors: Option<&[Errors]>| {
            for (index, (group, figures)) in self.groups.iter().zip(figures).enumerate() {
                let error = errors.map(|errors| errors[index]).unwrap_or_default();
                let percent = |part: Option<f64>| {
                    part.map_or(String::new(), |part| format!("{:.1} %", 100.0 * part))
                };
                table.add_row(vec![
                    name.to_owned(),
                    group.clone(),
                    format!("{:.0}", figures.iops),
                    format!("{:.1}", figures.bytes_per_second / MIB),
                    percent(error.throughput),
                    format!("{:.1} %", 100.0 * figures.share),
                    percent(error.share),
                    micros(figures.p50),
                    percent(error.p50),
                    micros(figures.p99),
                    percent(error.p99),
                ]);
            }
        };
        add(if *inferred { "inferred" } else { "recorded" }, recorded, None);
        add(&format!("{} (self)", self.own), &itself.figures, self_errors.as_deref());
        for Row { name, predicted, plus_minus } in &self.rows {
            add(name, &predicted.figures, Some(plus_minus));
            if let Some(by_clock) = &predicted.by_clock {
                add(&format!("{name}, by the clock"), by_clock, Some(plus_minus));
            }
        }
        table_text(&table)
    }

    /// What a reader should know of the table.
    fn notes(&self) -> String {
        let mut text = String::new();
        let mut note = |line: String| writeln!(text, "{line}").expect("a string takes all");
        let Prediction { natures, cut: (cut, all), inferred, .. } = &self.prediction;
        if self.prediction.fits() == Some(false) {
            note("the device model does not fit this recording: calibrate".to_owned());
        }
        if *inferred {
            note(format!(
                "inferred twice: the trace has no completions, or few; those of an open-loop \
                 simulation under {} stand for them, and how far the device's model is off is not \
                 known",
                self.own
            ));
        }
        let count = |nature| natures.iter().filter(|it| **it == nature).count();
        let found = format!(
            "{} contexts wait for replies, {} have a timer, {} may do either",
            count(Nature::Closed),
            count(Nature::Open),
            count(Nature::Between)
        );
        note(match self.as_said {
            Some(said) => format!("{said}; of themselves, {found}"),
            None => found,
        });
        if *cut > 0 {
            note(format!("{cut} of {all} requests have no completion in the recording"));
        }
        let own = (format!("{} (self)", self.own), &self.prediction.itself);
        let rows = self.rows.iter().map(|row| (row.name.clone(), &row.predicted));
        for (name, predicted) in std::iter::once(own).chain(rows) {
            if let Some(why) = self.why(predicted.end) {
                note(format!(
                    "{name}: counted until {} s ({} s were recorded): {why}",
                    seconds(predicted.until),
                    seconds(self.span)
                ));
            }
        }
        text
    }

    /// Why a replay ended before all was replayed.
    fn why(&self, end: End) -> Option<String> {
        match end {
            End::RanOut { context, .. } => {
                Some(format!("context {} has no request left", self.contexts[context]))
            }
            End::Backlog { waiting, .. } => {
                Some(format!("{waiting} requests wait, as the device cannot follow"))
            }
            End::All | End::Repeated { .. } => None,
        }
    }

    fn json(&self) -> Value {
        let Prediction { recorded, itself, self_errors, inferred, natures, cut } = &self.prediction;
        let contexts = self.contexts.iter().zip(natures);
        let contexts = contexts.map(|(name, nature)| {
            let nature = match nature {
                Nature::Closed => "closed",
                Nature::Open => "open",
                Nature::Between => "either",
            };
            json!({"name": name, "nature": nature})
        });
        let rows = self.rows.iter().map(|row| {
            let mut value = self.of_replay(&row.name, &row.predicted);
            value["rule"] = row.predicted.rule.iter().map(of_errors).collect();
            value["plus_minus"] = row.plus_minus.iter().map(of_errors).collect();
            value
        });
        let mut own = self.of_replay(&self.own, itself);
        let errors = self_errors.as_ref();
        own["errors"] = json!(errors.map(|it| it.iter().map(of_errors).collect::<Vec<_>>()));
        json!({
            "span_ns": self.span.as_nanos(),
            "contexts": contexts.collect::<Vec<_>>(),
            "inferred": inferred,
            "without_completion": cut.0,
            "requests": cut.1,
            "fits": self.prediction.fits(),
            "recorded": self.of_groups(recorded),
            "self": own,
            "predicted": rows.collect::<Vec<_>>(),
        })
    }

    fn of_replay(&self, name: &str, predicted: &Predicted) -> Value {
        json!({
            "scheduler": name,
            "counted_until_ns": predicted.until.as_nanos(),
            "ended": self.why(predicted.end),
            "groups": self.of_groups(&predicted.figures),
            "by_clock": predicted.by_clock.as_ref().map(|figures| self.of_groups(figures)),
        })
    }

    fn of_groups(&self, figures: &[Figures]) -> Vec<Value> {
        let groups = self.groups.iter().zip(figures);
        let group = |(group, figures): (&String, &Figures)| {
            json!({
                "group": group,
                "iops": figures.iops,
                "bytes_per_second": figures.bytes_per_second,
                "share": figures.share,
                "p50_ns": figures.p50.as_nanos(),
                "p99_ns": figures.p99.as_nanos(),
            })
        };
        groups.map(group).collect()
    }
}

fn of_errors(errors: &Errors) -> Value {
    let Errors { throughput, share, p50, p99 } = errors;
    json!({"throughput": throughput, "share": share, "p50": p50, "p99": p99})
}

fn micros(nanos: Nanos) -> String {
    format!("{} us", nanos.as_nanos() / 1000)
}

fn seconds(nanos: Nanos) -> String {
    let millis = nanos.as_nanos() / 1_000_000;
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
