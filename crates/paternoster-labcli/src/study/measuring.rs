//! What studies measure on this machine: `plugging`, where it is named, beside what is simulated of
//! it, and `hybrid-polling` with `--live`, in the place of that.

use anyhow::{Result, bail, ensure};
use paternoster_lab::report::PageTable;
use serde::Serialize;

use super::{measure, measured_text, polling_live};

const PLUGGING: &str = "plugging";
const POLLING: &str = "hybrid-polling";

/// The options of all that is measured.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct MeasuringOptions {
    #[command(flatten)]
    plugging: measure::Options,
    #[command(flatten)]
    polling: polling_live::LiveOptions,
}

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    plugging: Option<&'a measure::Options>,
    polling: Option<&'a polling_live::LiveOptions>,
}

/// What was measured, as `--json` prints it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Measurements {
    /// Of `plugging`.
    #[serde(skip_serializing_if = "Option::is_none", rename = "measured")]
    plugging: Option<measure::Measurement>,
    /// Of `hybrid-polling`.
    #[serde(skip_serializing_if = "Option::is_none", rename = "live")]
    polling: Option<polling_live::Measurement>,
}

impl MeasuringOptions {
    /// What is measured where these studies are named. `left_out_by` is the option that leaves
    /// measurements out, if there is one.
    pub(super) fn wanted(&self, names: &[String], left_out_by: Option<&str>) -> Result<Wanted<'_>> {
        let is_named = |study| names.iter().any(|name| name == study);
        let plugging = Some(&self.plugging).filter(|_| left_out_by.is_none() && is_named(PLUGGING));
        if let (None, Some(option)) = (plugging, self.plugging.given().first()) {
            ensure!(
                is_named(PLUGGING),
                "{option} is an option of what `study {PLUGGING}` measures: name that study, or \
                 leave {option} out"
            );
            let left_out_by = left_out_by.expect("a study that is named is measured otherwise");
            bail!(
                "{left_out_by} leaves out what `study {PLUGGING}` measures, and {option} is an \
                 option of that: leave out one of the two"
            );
        }
        if let Some(problem) = self.plugging.problem() {
            bail!("{problem}");
        }
        let polling = Some(&self.polling).filter(|polling| polling.is_given());
        ensure!(
            polling.is_none() || is_named(POLLING),
            "--live, and nothing that is measured live is named: `study {POLLING} --live` is \
             allowed"
        );
        Ok(Wanted { plugging, polling })
    }
}

impl Wanted<'_> {
    /// Whether that study is measured and not simulated.
    pub(super) fn replaces(&self, study: &str) -> bool {
        self.polling.is_some() && study == POLLING
    }

    /// Measures, one after the other.
    pub(super) fn measure(&self) -> Result<Measurements> {
        Ok(Measurements {
            plugging: self.plugging.map(measure::Options::measure).transpose()?,
            polling: self.polling.map(polling_live::LiveOptions::measure).transpose()?,
        })
    }
}

impl Measurements {
    pub(super) fn page_tables(&self) -> Vec<PageTable> {
        let plugging = self.plugging.iter().flat_map(measured_text::page_tables);
        plugging.chain(self.polling.iter().flat_map(polling_live::page_tables)).collect()
    }

    pub(super) fn text(&self) -> String {
        self.page_tables().iter().map(measured_text::table_text).collect()
    }
}
