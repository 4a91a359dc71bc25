//! What the laboratory simulates: scenarios, job files and devices, against what was recorded,
//! published, or worked out by hand.
//!
//! They are one program, as each program of tests compiles the simulation and its schedulers anew.
//! `cargo test --test lab replay` runs those of one module.

mod batches;
mod calls;
mod closed_loop;
mod common;
mod compare;
mod copies_on_cores;
mod dbench;
mod decide;
mod deep_groups;
mod device;
mod device_end;
mod drives;
mod fio;
mod fio_cases;
mod format;
mod idle_class;
mod job_ends;
mod kyber_lines;
mod latency_target;
mod logs;
mod neighbours;
mod no_time;
mod nvme;
mod pace;
mod page_cache;
mod page_groups;
mod page_writes;
mod queue_merging;
mod replay;
mod report;
mod scenario_changes;
mod scenario_errors;
mod scenario_plugs;
mod schedulers_on_cores;
mod simulation;
mod steady_state;
mod study;
mod table;
mod thinkers;
mod threads;
mod trace_replay;
