//! What jobs are called where each is told of.

use std::collections::HashMap;

use crate::fio::Job;

/// The names of jobs; of those that share one, each with a number.
pub(crate) fn job_names(jobs: &[Job]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for job in jobs {
        *counts.entry(&job.name).or_default() += 1;
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let name = |job: &'_ Job| job.name.clone();
    jobs.iter()
        .map(|job| {
            if counts[job.name.as_str()] == 1 {
                return name(job);
            }
            let number = seen.entry(&job.name).or_default();
            *number += 1;
            format!("{} #{number}", job.name)
        })
        .collect()
}
