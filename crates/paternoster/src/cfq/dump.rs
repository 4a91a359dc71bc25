//! Shows the state of CFQ.

use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::dump::{Dump, QueueDump, ServiceDump, SliceDump};
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        out.number("queues", number(self.queues.len()));
        out.number("busy_queues", self.busy.into());
        let busy_groups = self.groups.values().filter(|group| group.entities > 0).count();
        out.number("busy_groups", number(busy_groups));
        out.number("queued", self.queued.into());
        out.number("in_driver", self.in_driver.into());
        for (queue, state) in self.queues.iter() {
            out.queue(&self.dump_of(queue, state));
        }
    }

    fn dump_of(&self, queue: QueueId, state: &Queue) -> QueueDump {
        let slice = SliceDump {
            workload: state.workload(),
            idle_window: state.idle_window.is_open(),
            slice: (!state.slice.is_fresh()).then_some(state.slice.length()),
            dispatched: state.slice.dispatched(),
        };
        QueueDump {
            name: state.name(),
            group: state.group,
            io_prio: state.io_prio(),
            in_service: self.active == Some(queue),
            busy: state.is_busy(),
            idling: self.idle_timer.is_some() && state.slice.is_idling(),
            shared: state.shared,
            seeky: state.is_seeky(),
            queued: state.queued(),
            in_flight: state.in_flight,
            service: ServiceDump::Slice(slice),
        }
    }
}
