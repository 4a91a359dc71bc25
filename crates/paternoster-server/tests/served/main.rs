//! A server in this process, and clients that say to it what no well-behaved client would; or what
//! well-behaved clients rely on.

/// Connection threads: none; the owner of a disk serves its clients itself.
const THREADS: usize = 1;

mod beside;
mod bounds;
mod byte_ranges;
mod certificates;
mod drawn_files;
mod drawn_requests;
mod durable;
mod exports;
mod groups;
mod hostile;
mod hostile_machines;
mod machines;
mod machines_at_random;
mod machines_of_volumes;
mod negotiation;
mod other_pools;
mod pools;
mod queues;
mod quiesced;
mod sessions;
mod slow;
mod stat_pages;
mod support;
mod tls;
mod turnover;
mod volumes;
