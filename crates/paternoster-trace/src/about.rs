//! Whom an event is about.

use paternoster::{Event, ShareOf};

use crate::names::Names;

/// Returns whom an event is about; none where it is about the disk, or nothing is known.
pub(crate) fn about(event: Event, names: &impl Names) -> Option<ShareOf> {
    let submitter = |rq| names.submitter(rq).map(ShareOf::Context);
    Some(match event {
        Event::Queued { ioc, .. } => ShareOf::Context(ioc),
        Event::Merged { bio: rq, .. }
        | Event::Absorbed { absorbed: rq, .. }
        | Event::FairDispatch { rq, .. } => return submitter(rq),
        Event::Dispatched { rq, group, .. }
        | Event::Requeued { rq, group, .. }
        | Event::Completed { rq, group, .. } => submitter(rq).unwrap_or(ShareOf::Group(group)),
        // A queue's maker may be gone; its group is there.
        Event::Workload { group, .. }
        | Event::Active { group, .. }
        | Event::SliceExpired { group, .. }
        | Event::InService { group, .. } => ShareOf::Group(group),
        Event::FairBusy { node, .. } => node,
        Event::Slice { queue, .. }
        | Event::Overdue { queue, .. }
        | Event::SliceUsed { queue, .. }
        | Event::Preempted { by: queue, .. }
        | Event::SliceIdling { queue, .. }
        | Event::IdleWindow { queue, .. }
        | Event::WaitBusy { queue, .. }
        | Event::QueuesMerged { queue, .. }
        | Event::QueueSplit { queue, .. }
        | Event::BudgetExpired { queue, .. }
        | Event::BudgetIdling { queue, .. }
        | Event::Injected { queue, .. }
        | Event::InjectionLimit { queue, .. }
        | Event::WakerFound { queue, .. }
        | Event::Raised { queue, .. } => ShareOf::Context(queue.ioc),
        _ => return None,
    })
}
