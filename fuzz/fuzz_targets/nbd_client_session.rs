//! Feeds `paternoster_nbd::fuzz_targets::client_session`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paternoster_nbd::fuzz_targets::client_session;

fuzz_target!(|data: &[u8]| client_session(data));
