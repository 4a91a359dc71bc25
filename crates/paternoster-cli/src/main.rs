//! The binary `paternoster`.
fn main() {}
