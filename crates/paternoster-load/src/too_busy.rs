//! The third verdict of a test of times: the machine was too busy to say anything.

use std::fs::OpenOptions;
use std::io::{Write as _, stderr};

/// Where `cargo xtask test` looks for what it repeats in its summary: a file.
const NOT_RUN: &str = "PATERNOSTER_NOT_RUN";

/// Reports a judgement that was not made as the machine is too busy, past the runner's capture of
/// output, and in the file that the variable `PATERNOSTER_NOT_RUN` names.
///
/// # Panics
///
/// Where standard error or the file does not take the line.
pub fn report_too_busy(what: &str) {
    let line = format!("not run: {what}: this machine is too busy\n");
    stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    if let Some(path) = std::env::var_os(NOT_RUN) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file takes a line");
    }
}
