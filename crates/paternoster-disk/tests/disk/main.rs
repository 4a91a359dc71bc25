//! The engine, the owner's loop, the rings and the back ends, in virtual time and on real files.
//!
//! They are one program, as each program of tests compiles the engine and its schedulers anew.
//! `TEST_ENGINE` says by what rings carry operations out: io_uring, or threads.

mod backends;
mod blocks;
mod byte_ranges;
mod charges;
mod coming;
mod direct;
mod durability;
mod failure;
mod faults;
mod flush;
mod held;
mod injected;
mod looks;
mod modelled;
mod moments;
mod nbd;
mod nbd_broken;
mod nbd_killed;
mod nbd_quiesced;
mod owner;
mod paused;
mod pieces;
mod plugged;
mod polling;
mod read_into;
mod ring;
mod support;
mod swarm;
mod volumes;
