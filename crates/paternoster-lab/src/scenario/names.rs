//! What a log calls requests, groups and tasks.

use std::borrow::Cow;
use std::collections::HashMap;

use paternoster::{GroupId, IocId};
use paternoster_trace::Parties;

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

impl paternoster_trace::Names for Names {
    fn request(&self, bio: u64) -> Cow<'_, str> {
        self.requests[usize::try_from(bio).expect("user data are indices")].as_str().into()
    }
}

impl Parties for Names {
    fn group(&self, group: GroupId) -> Cow<'_, str> {
        self.groups[&group].as_str().into()
    }

    fn task(&self, ioc: IocId) -> Cow<'_, str> {
        self.tasks[&ioc].to_string().into()
    }
}
