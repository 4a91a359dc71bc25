//! What a report calls jobs, groups and queues.

use std::borrow::Cow;
use std::collections::HashMap;

use paternoster::{GroupId, IocId, QueueName};
use paternoster_trace::Parties;

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

    /// The name of the job of an I/O context.
    fn job(&self, ioc: IocId) -> &str {
        self.by_context.get(&ioc).map_or("a job that is gone", |&job| &self.jobs[job])
    }

    /// The job of a queue.
    pub(super) fn job_of(&self, queue: QueueName) -> Option<usize> {
        self.by_context.get(&queue.ioc).copied()
    }

    /// A queue, by the job that made it.
    pub(super) fn queue(&self, queue: QueueName) -> String {
        let job = self.job(queue.ioc);
        if queue.sync { job.to_owned() } else { format!("{job} (asynchronous)") }
    }
}

impl Parties for Names {
    fn group(&self, group: GroupId) -> Cow<'_, str> {
        self.group(group).into()
    }

    fn task(&self, ioc: IocId) -> Cow<'_, str> {
        self.job(ioc).into()
    }
}
