//! Feeds `paternoster_nbd::fuzz_targets::server_session`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paternoster_nbd::fuzz_targets::server_session;

fuzz_target!(|data: &[u8]| server_session(data));
