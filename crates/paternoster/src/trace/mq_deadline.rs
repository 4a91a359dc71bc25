//! What mq-deadline decides.

use super::declare::{events, reasons};
use crate::io_context::IoClass;
use crate::request::Direction;

events! {
    /// An event of mq-deadline.
    pub enum DeadlineEvent;

    /// A batch began: its first request is dispatched next.
    Batch => "batch" {
        /// Its direction.
        direction: Direction => "dir",
        /// Its class: 0 real time, 1 best effort, 2 idle.
        class: IoClass => "prio",
        /// How often reads were preferred over waiting writes since the last batch of writes.
        starved: u32 => "starved",
        /// Why it began with this request.
        reason: BatchReason,
    } says "{direction} ({class}): {reason}; writes were passed over {starved} times";
    /// A request of a lower class was dispatched, as it had waited too long.
    Aged {
        /// The class.
        class: IoClass,
    } says "a request of class {class} has waited too long and goes first";
}

reasons! {
    /// Why mq-deadline began a batch where it did.
    #[non_exhaustive]
    pub enum BatchReason;
    Start, "nothing to continue from";
    Expired, "the oldest is overdue";
    Onward, "it goes on where they stopped";
}
