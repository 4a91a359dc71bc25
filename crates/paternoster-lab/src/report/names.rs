//! What a report calls jobs, groups and queues.

use std::collections::HashMap;

use paternoster::{GroupId, IocId, QueueName};

/// The names of one run.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// By job: threads of one section are numbered. Behind them, the tasks that serve all.
    pub(super) jobs: Vec<String>,
    /// The job of each I/O context.
    pub(super) by_context: HashMap<IocId, usize>,
    /// The paths of groups.
    pub(super) groups: HashMap<GroupId, String>,
}

impl Names {
    /// The path of a group.
    pub(super) fn group(&self, group: GroupId) -> &str {
        self.groups.get(&group).map_or("a group that is gone", String::as_str)
    }

    /// The job of a queue.
    pub(super) fn job_of(&self, queue: QueueName) -> Option<usize> {
        self.by_context.get(&queue.ioc).copied()
    }

    /// A queue, by the job that made it.
    pub(super) fn queue(&self, queue: QueueName) -> String {
        let job = self.job_of(queue).map_or("a job that is gone", |job| &self.jobs[job]);
        if queue.sync { job.to_owned() } else { format!("{job} (asynchronous)") }
    }
}
