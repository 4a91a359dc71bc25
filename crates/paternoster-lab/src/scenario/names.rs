//! What a log calls requests, groups, tasks and queues.

use std::collections::HashMap;

use paternoster::{GroupId, IocId, QueueName, ShareOf};

/// The names in the log of one run.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The requests', by the user data of their bios.
    pub(super) requests: Vec<String>,
    /// The paths of groups.
    pub(super) groups: HashMap<GroupId, String>,
    /// The tasks of I/O contexts.
    pub(super) tasks: HashMap<IocId, u32>,
}

impl Names {
    pub(super) fn request(&self, bio: u64) -> &str {
        &self.requests[usize::try_from(bio).expect("user data are indices")]
    }

    pub(super) fn group(&self, group: GroupId) -> &str {
        &self.groups[&group]
    }

    /// Who has a share under wfq: a group, `own` and the group whose requests it is of, or a task.
    pub(super) fn share(&self, share: ShareOf) -> String {
        match share {
            ShareOf::Group(group) => self.group(group).to_owned(),
            ShareOf::OwnRequests(group) => format!("own {}", self.group(group)),
            ShareOf::Context(ioc) => format!("task {}", self.tasks[&ioc]),
            _ => "another".to_owned(),
        }
    }

    /// A queue by the task that made it and `S` (sync) or `A` (async).
    pub(super) fn queue(&self, queue: QueueName) -> String {
        format!("{}{}", self.tasks[&queue.ioc], if queue.sync { 'S' } else { 'A' })
    }
}
