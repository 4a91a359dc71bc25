//! Whom an event is about.

use paternoster::{Event, GroupId, QueueName, ShareOf, Value};

use crate::names::Names;

/// Who stands in the fields of an event; of several of a kind the first.
#[derive(Default)]
struct Mentioned {
    share: Option<ShareOf>,
    queue: Option<QueueName>,
    request: Option<u64>,
    group: Option<GroupId>,
}

/// Returns whom an event is about; none where it is about the disk, or nothing is known.
pub(crate) fn about(event: Event, names: &impl Names) -> Option<ShareOf> {
    let mut who = Mentioned::default();
    event.data().each_field(&mut |_, value| match value {
        Value::Share(share) => _ = who.share.get_or_insert(share),
        Value::Queue(queue) => _ = who.queue.get_or_insert(queue),
        Value::Request(rq) => _ = who.request.get_or_insert(rq),
        Value::Group(group) => _ = who.group.get_or_insert(group),
        _ => {}
    });
    let group = who.group.map(ShareOf::Group);
    let submitter = || who.request.and_then(|rq| names.submitter(rq)).map(ShareOf::Context);
    who.share.or_else(|| match who.queue {
        // A queue's maker may be gone; its group is there.
        Some(queue) => group.or(Some(ShareOf::Context(queue.ioc))),
        None => submitter().or(group),
    })
}
