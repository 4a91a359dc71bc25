//! What holds for every Rust file.

use super::{CORE, File, Finding};
use crate::source::{code_of, words};

/// Lines a file may have, tests included.
const MAX_LINES: usize = 600;
/// Columns a line may have.
const MAX_COLUMNS: usize = 100;
/// Files that may hold `unsafe`, wherever they are.
const UNSAFE_FILES: [&str; 2] = ["uring.rs", "sigbus.rs"];
/// Crates that may hold `unsafe` anywhere: the bindings to other languages.
const UNSAFE_CRATES: [&str; 2] = ["crates/paternoster-capi/", "crates/paternoster-python/"];
/// Macros for what is not finished.
const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// The findings in all Rust files.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.has_extension("rs")).flat_map(check_file).collect()
}

/// The findings in one Rust file.
fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = vec![];
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        let what = format!("a file of {lines} lines, at most {MAX_LINES}");
        findings.push(Finding::at(file, MAX_LINES, what));
    }
    let code = code_of(&file.text);
    for (index, (line, code)) in file.text.lines().zip(code.lines()).enumerate() {
        let found = [
            long_line(line),
            stray_unsafe(&file.path, code),
            ignored(line, code),
            unfinished(code),
            float_in_core(&file.path, code),
        ];
        findings.extend(found.into_iter().flatten().map(|what| Finding::at(file, index, what)));
    }
    findings
}

/// A line that is too long.
fn long_line(line: &str) -> Option<String> {
    let columns = line.chars().count();
    (columns > MAX_COLUMNS).then(|| format!("a line of {columns} columns, at most {MAX_COLUMNS}"))
}

/// `unsafe` where it is not at home.
fn stray_unsafe(path: &str, code: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_home = UNSAFE_FILES.contains(&name) || UNSAFE_CRATES.iter().any(|c| path.starts_with(c));
    let is_stray = !is_home && words(code).any(|word| word == "unsafe");
    is_stray.then(|| format!("unsafe belongs in {} and the bindings", UNSAFE_FILES.join(", ")))
}

/// A test, or an example in the documentation, that is not run.
fn ignored(line: &str, code: &str) -> Option<String> {
    let is_attribute = code.trim_start().starts_with("#[");
    let is_test = is_attribute && words(code).any(|word| word == "ignore");
    let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
    let fence = comment.trim_start_matches(['/', '!', ' ']).strip_prefix("```");
    let is_example = fence.is_some_and(|info| words(info).any(|word| word == "ignore"));
    (is_test || is_example).then(|| "a test that is ignored tests nothing".to_owned())
}

/// A macro for what is not finished.
fn unfinished(code: &str) -> Option<String> {
    let found = UNFINISHED.into_iter().find(|name| {
        let before = |(at, _)| code[..at].chars().next_back();
        code.match_indices(name).any(|hit| !before(hit).is_some_and(crate::source::is_word))
    })?;
    Some(format!("{found} is left"))
}

/// Floating point in the core.
fn float_in_core(path: &str, code: &str) -> Option<String> {
    let float = words(code).find(|word| ["f32", "f64"].contains(word))?;
    path.starts_with(CORE).then(|| format!("{float} in the core, which counts in integers"))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        told(&check(&[File::new(path, text)]))
    }

    #[test]
    fn length_of_files_and_lines_is_limited() {
        assert_eq!(findings("a.rs", &"//\n".repeat(600)), [""; 0]);
        let long = findings("a.rs", &"//\n".repeat(601));
        assert_eq!(long, ["601: a file of 601 lines, at most 600"]);
        assert_eq!(findings("a.rs", &"é".repeat(100)), [""; 0]);
        let wide = findings("a.rs", &format!("//\n{}", "é".repeat(101)));
        assert_eq!(wide, ["2: a line of 101 columns, at most 100"]);
    }

    #[test]
    fn unsafe_is_confined() {
        let text = "#![deny(unsafe_code)] // unsafe\nfn f() { unsafe { g() } }\n";
        assert_eq!(findings("a/uring.rs", text), [""; 0]);
        assert_eq!(findings("crates/paternoster-capi/src/lib.rs", text), [""; 0]);
        let stray = findings("a/string.rs", text);
        assert_eq!(stray, ["2: unsafe belongs in uring.rs, sigbus.rs and the bindings"]);
    }

    #[test]
    fn nothing_is_ignored() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n#[cfg_attr(miri, ignore)]\n";
        assert_eq!(findings("a.rs", text).len(), 2);
        assert_eq!(findings("a.rs", "/// ```ignore\n//! ```rust,ignore\n/// ```no_run").len(), 2);
        assert_eq!(findings("a.rs", "// ignore\nlet ignore = \"#[ignore]\";"), [""; 0]);
    }

    #[test]
    fn nothing_is_left_to_do() {
        assert_eq!(findings("a.rs", "fn f() { todo!() }"), ["1: todo! is left"]);
        assert_eq!(findings("a.rs", "x(dbg!(y));"), ["1: dbg! is left"]);
        assert_eq!(findings("a.rs", "// todo!\nnot_todo!(); \"dbg!\""), [""; 0]);
    }

    #[test]
    fn core_has_no_floats() {
        let text = "/// not f64\nlet x: f64 = 0f32;\n";
        assert_eq!(findings("crates/paternoster-lab/src/a.rs", text), [""; 0]);
        let core = findings("crates/paternoster/src/a.rs", text);
        assert_eq!(core, ["2: f64 in the core, which counts in integers"]);
    }
}
