//! The model of wfq, in Python: what was worked out by hand comes out of it, and what the program
//! decides does too.

use std::path::Path;

use crate::support::{laboratory, run};

/// Runs a program of the model, which must succeed: the last line of what it says.
fn last_line(program: &str, args: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/models/wfq");
    let said = run("python3", "python3", &[&[program], args].concat(), &folder);
    said.lines().next_back().expect("it says how many differ").to_owned()
}

#[test]
fn model_of_wfq_does_what_was_worked_out_by_hand() {
    let said = last_line("examples.py", &[]);
    assert!(said.ends_with(" examples, 0 do not come out as worked out by hand"), "{said}");
}

#[test]
fn model_of_wfq_and_the_program_decide_alike() {
    let program = &laboratory();
    let said = last_line("compare.py", &["--program", program, "--count", "20"]);
    let none = "20 scenarios, 20 logs; 0 differ in a merge or a dispatch, 0 in any line";
    assert_eq!(said, none);
}
