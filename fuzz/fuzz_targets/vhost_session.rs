//! Feeds `vhost_session`.

#![no_main]

#[path = "../../crates/paternoster-vhost/tests/vhost/fuzz_targets.rs"]
mod fuzz_targets;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_targets::vhost_session(data));
