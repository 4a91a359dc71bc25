//! Waiting for completions: what each policy does, by steps in virtual time.

mod auto;
mod legacy;
mod rig;
mod several;
