//! The same as in `served`, with connection threads between the clients and the owners of disks: no
//! client can tell the difference.

/// Connection threads.
const THREADS: usize = 2;

#[path = "../served/beside.rs"]
mod beside;
#[path = "../served/bounds.rs"]
mod bounds;
#[path = "../served/byte_ranges.rs"]
mod byte_ranges;
#[path = "../served/certificates.rs"]
mod certificates;
#[path = "../served/exports.rs"]
mod exports;
#[path = "../served/groups.rs"]
mod groups;
#[path = "../served/hostile.rs"]
mod hostile;
#[path = "../served/hostile_machines.rs"]
mod hostile_machines;
#[path = "../served/machines.rs"]
mod machines;
#[path = "../served/negotiation.rs"]
mod negotiation;
#[path = "../served/queues.rs"]
mod queues;
#[path = "../served/sessions.rs"]
mod sessions;
#[path = "../served/slow.rs"]
mod slow;
#[path = "../served/support.rs"]
mod support;
#[path = "../served/tls.rs"]
mod tls;
#[path = "../served/turnover.rs"]
mod turnover;
#[path = "../served/volumes.rs"]
mod volumes;
