//! How live tests judge: whether nobody is starved, or every figure to a few percent.
//!
//! A machine that also does something else cannot show a share to 3 %, and a test that it can fail
//! says nothing about the server. So `cargo xtask test` asks for safety alone: everybody gets at
//! least a third of what is due. `cargo xtask bench live` runs the same tests, on a quiet machine,
//! and judges their figures as they are written down in each test.

use std::fs::OpenOptions;
use std::io::{Write as _, stderr};

/// Where `cargo xtask test` looks for what it repeats in its summary: a file.
const NOT_RUN: &str = "PATERNOSTER_NOT_RUN";

/// The variable that has live tests judge figures.
const JUDGE: &str = "PATERNOSTER_JUDGE";

/// The part of what is due below which somebody is starved.
pub const STARVED: f64 = 1.0 / 3.0;

/// Whether live tests judge figures, as the variable `PATERNOSTER_JUDGE` says.
///
/// # Panics
///
/// Where that variable has a value other than `figures`.
pub fn judges_figures() -> bool {
    match std::env::var_os(JUDGE) {
        None => false,
        Some(value) if value == "figures" => true,
        Some(value) => panic!("{JUDGE} = {}: figures is allowed, or nothing", value.display()),
    }
}

/// The least part of what is due that a live test asks for: `figures`, where figures are judged.
pub fn least_part(figures: f64) -> f64 {
    if judges_figures() { figures } else { STARVED }
}

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
