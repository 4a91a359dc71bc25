//! Feeds `paternoster_nbd::fuzz_targets::server_transmission`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paternoster_nbd::fuzz_targets::server_transmission;

fuzz_target!(|data: &[u8]| server_transmission(data));
