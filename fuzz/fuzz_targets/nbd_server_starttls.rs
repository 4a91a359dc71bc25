//! Feeds `server_starttls`.

#![no_main]

#[path = "../../crates/paternoster-nbd/tests/common/fuzz_targets.rs"]
mod fuzz_targets;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz_targets::server_starttls(data));
