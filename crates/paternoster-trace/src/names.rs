//! What lines call requests, groups, tasks and queues.

use std::borrow::Cow;

use paternoster::{GroupId, IocId, QueueName, ShareOf};

/// Who is called what.
pub trait Names {
    /// A request, or a bio, by the user data of the bio that it was made of.
    fn request(&self, bio: u64) -> Cow<'_, str>;

    /// A group: its path.
    fn group(&self, group: GroupId) -> Cow<'_, str>;

    /// The task of an I/O context.
    fn task(&self, ioc: IocId) -> Cow<'_, str>;

    /// A queue by the task that made it and `S` (sync) or `A` (async).
    fn queue(&self, queue: QueueName) -> String {
        format!("{}{}", self.task(queue.ioc), if queue.sync { 'S' } else { 'A' })
    }

    /// Who has a share under wfq: a group, `own` and the group whose requests it is of, or a task.
    fn share(&self, share: ShareOf) -> String {
        match share {
            ShareOf::Group(group) => self.group(group).into_owned(),
            ShareOf::OwnRequests(group) => format!("own {}", self.group(group)),
            ShareOf::Context(ioc) => format!("task {}", self.task(ioc)),
            _ => "another".to_owned(),
        }
    }
}
