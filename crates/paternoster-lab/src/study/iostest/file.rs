//! The file of a study: how something was measured that a post tells of.

use std::path::Path;

use paternoster_model::parameter_file::{Keys, ParameterError};

/// What the file says.
#[derive(Clone, Debug)]
pub(super) struct StudyFile {
    pub(super) about: String,
    /// The device, by its name in the laboratory.
    pub(super) device: String,
    pub(super) kernel: String,
    pub(super) hz: u32,
    pub(super) nr_requests: u32,
    /// How many runs are made, each with other draws. Their mean counts.
    pub(super) runs: u32,
    /// The rows whose totals parameters were fitted to.
    pub(super) calibrated: Vec<String>,
    /// The rows whose shares the weights were read from.
    pub(super) weights_from: Vec<String>,
    /// The rows that are run with parameters changed; none is all.
    pub(super) varied: Vec<String>,
    pub(super) tunables: Vec<(String, i64)>,
    /// The weights of the groups.
    pub(super) weights: Vec<u32>,
    pub(super) file_mib: u64,
    /// How far each file begins behind the one before.
    pub(super) apart_mib: u64,
    /// Before this nothing is counted.
    pub(super) ramp_ms: u64,
    /// How long it is counted.
    pub(super) window_ms: u64,
    pub(super) read_ahead_pages: u64,
    /// Whether fio tells the kernel how it will read.
    pub(super) advises: bool,
    pub(super) copy_page_ns: u64,
}

impl StudyFile {
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, ParameterError> {
        let mut keys = Keys::open(path, text)?;
        let [about, device, kernel] = ["about", "device", "kernel"].map(|key| keys.text(key));
        let study = Self {
            about: about?,
            device: device?,
            kernel: kernel?,
            hz: keys.small("hz", 1..=1000)?,
            nr_requests: keys.small("nr_requests", 1..=100_000)?,
            runs: keys.small("runs", 1..=100)?,
            calibrated: keys.texts("calibrated")?,
            weights_from: keys.texts("weights_from")?,
            varied: keys.texts("varied")?,
            weights: Vec::new(),
            tunables: keys.table("tunables", |keys| {
                let group_idle = keys.small("group_idle", 0..=1000)?.into();
                let group_isolation = keys.small("group_isolation", 0..=1)?.into();
                let quantum = keys.small("quantum", 1..=1000)?.into();
                Ok(vec![
                    ("group_idle".to_owned(), group_idle),
                    ("group_isolation".to_owned(), group_isolation),
                    ("quantum".to_owned(), quantum),
                ])
            })?,
            file_mib: 0,
            apart_mib: 0,
            ramp_ms: 0,
            window_ms: 0,
            read_ahead_pages: 0,
            advises: false,
            copy_page_ns: 0,
        };
        let study = keys.table("groups", |keys| {
            Ok(Self { weights: keys.smalls("weights", 10..=1000)?, ..study })
        })?;
        let study = keys.table("files", |keys| {
            let file_mib = keys.whole("mib", 1..=1 << 20)?;
            let apart_mib = keys.whole("apart_mib", file_mib..=1 << 30)?;
            Ok(Self { file_mib, apart_mib, ..study })
        })?;
        let study = keys.table("run", |keys| {
            let ramp_ms = keys.whole("ramp_ms", 0..=1_000_000)?;
            let window_ms = keys.whole("window_ms", 1..=1_000_000)?;
            Ok(Self { ramp_ms, window_ms, ..study })
        })?;
        let study = keys.table("host", |keys| {
            let read_ahead_pages = keys.whole("read_ahead_kb", 0..=1 << 20)? / 4;
            let advises = keys.flag("fadvise_hint")?;
            let copy_page_ns = keys.whole("copy_page_ns", 0..=1_000_000)?;
            Ok(Self { read_ahead_pages, advises, copy_page_ns, ..study })
        })?;
        keys.end()?;
        Ok(study)
    }
}
