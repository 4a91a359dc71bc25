//! What lines call requests, groups, tasks and queues.

use std::borrow::Cow;

use paternoster::{GroupId, IocId, QueueName, ShareOf};

/// Which group and which task is called what.
pub trait Parties {
    /// A group: its path.
    fn group(&self, group: GroupId) -> Cow<'_, str>;

    /// The task of an I/O context.
    fn task(&self, ioc: IocId) -> Cow<'_, str>;

    /// The path of the group that this is or is in, where each line is to say whose it is.
    fn tenant(&self, _of: ShareOf) -> Option<Cow<'_, str>> {
        None
    }

    /// Whether lines of that tenant are wanted; none is of what is no tenant's.
    fn wants(&self, _tenant: Option<&str>) -> bool {
        true
    }

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

/// Which request is called what, beside groups and tasks.
pub trait Names: Parties {
    /// A request, or a bio, by the user data of the bio that it was made of.
    fn request(&self, bio: u64) -> Cow<'_, str>;

    /// The I/O context whose request that is, where it is known.
    fn submitter(&self, _bio: u64) -> Option<IocId> {
        None
    }
}
