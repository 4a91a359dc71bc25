//! The file of a study: how something was measured that a post tells of.

use std::path::Path;

use crate::model::parameter_file::{Keys, ParameterError};

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
            hz: small(keys.whole("hz", 1..=1000)?),
            nr_requests: small(keys.whole("nr_requests", 1..=100_000)?),
            runs: small(keys.whole("runs", 1..=100)?),
            calibrated: keys.texts("calibrated")?,
            weights_from: keys.texts("weights_from")?,
            varied: keys.texts("varied")?,
            weights: Vec::new(),
            tunables: keys.table("tunables", |keys| {
                let group_idle = signed(keys.whole("group_idle", 0..=1000)?);
                let group_isolation = signed(keys.whole("group_isolation", 0..=1)?);
                let quantum = signed(keys.whole("quantum", 1..=1000)?);
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
            Ok(Self {
                weights: keys.wholes("weights", 10..=1000)?.into_iter().map(small).collect(),
                ..study
            })
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

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("keys are held against a range")
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("keys are held against a range")
}
