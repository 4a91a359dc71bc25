//! What CFQ decides, a file for each mechanism.

mod admission;
mod async_queues;
mod cooperation;
mod entities;
mod extremes;
mod gate;
mod groups;
mod hierarchies;
mod hw_queueing;
mod idling;
mod iops_mode;
mod kernels;
mod membership;
mod order;
mod preemption;
mod priorities;
mod requeued;
mod slice_stats;
mod slices;
mod ticks;
mod tunables;
mod wait_busy;
mod weights;
