//! What of a job's I/O completes when its runtime is over: it waits for what it has outstanding,
//! and counts that, as fio does. That is drained by depth and not by weight, so that the shares of
//! a short run with deep queues are not those of a long one.

#![allow(clippy::cast_precision_loss, reason = "a part is told with 53 bits")]

use super::{JobResult, entries};
use crate::fio::Jobs;

/// A part of a job's I/O is worth a note if it is more than one of so many: 2 %.
const ONE_OF: u64 = 50;

/// A line on the job of which the greatest part was drained; none where that is 2 % or less.
///
/// # Panics
///
/// If there are not as many results as jobs.
pub fn drained_note(jobs: &Jobs, results: &[JobResult]) -> Option<String> {
    let entries = entries(&jobs.jobs, results);
    let much = entries.iter().filter(|entry| ONE_OF * entry.result.drained > entry.result.ios());
    let parts = much.map(|entry| {
        let part = entry.result.drained as f64 / entry.result.ios() as f64;
        (part, entry.name())
    });
    let (part, name) = parts.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let percent = 100.0 * part;
    Some(format!(
        "note: {percent:.1} % of the I/O of {name} completed after its runtime and counts, as in \
         fio; a longer run has less of it\n"
    ))
}
