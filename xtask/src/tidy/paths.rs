//! What documents call by its path exists.
//!
//! Inline code in prose is a path where it has a `/` or ends as our files do (`.rs`, `.md`, …). It
//! is looked for
//!
//! - from the root of the repository and from the document's own folder;
//! - from each folder that the document names in a sentence that begins with "Paths are";
//! - where it has no `/`, anywhere among the tracked files.
//!
//! A `*` stands for any one folder or file. What has a placeholder in it (`src/NAME.rs`), what is
//! absolute, and what [`FOREIGN`] lists is of another tree, and not looked at.

use super::{File, Finding};
use std::path::Path;

/// Endings of files that are called by name.
const ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".zst", ".service"];
/// Words that stand for something that a reader puts in their place.
const PLACEHOLDERS: [&str; 9] =
    ["NAME", "PATH", "FILE", "DIR", "CRATE", "HASH", "SCHEDULER", "CLASS", "KIND"];
/// What begins so is not of this tree, and of which one it is.
const FOREIGN: [(&str, &str); 8] = [
    ("queue/", "sysfs, below a block device"),
    ("device/", "sysfs, below a block device"),
    ("block/", "the kernel's sources"),
    ("be/", "an I/O priority"),
    ("rt/", "an I/O priority"),
    ("profiles/seccomp/", "the repository of Docker's profile"),
    ("target/", "made by cargo"),
    ("paternoster.toml", "a configuration of the reader's"),
];

/// The paths in all documents that lead nowhere; `exists` answers for a path from the root.
pub(super) fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = vec![];
    for file in files.iter().filter(|file| file.has_extension("md")) {
        let bases = bases(file);
        for (index, token) in inline_code(&file.text) {
            if !is_path(&token) || is_foreign(&token) {
                continue;
            }
            let mut places = bases.iter().map(|base| join(base, &token));
            let is_there = places.any(|path| exists(&path) || matches_any(&path, files));
            let is_name = !token.contains('/') && files.iter().any(|file| ends_in(file, &token));
            if !is_there && !is_name {
                let what = format!("`{token}`: no such file, from {}", told(&bases));
                findings.push(Finding::at(file, index, what));
            }
        }
    }
    findings
}

/// Where paths of the document start: the root, its own folder, and what its sentence names.
fn bases(file: &File) -> Vec<String> {
    let own = Path::new(&file.path).parent().unwrap_or(Path::new("")).to_string_lossy();
    let mut bases = vec![String::new(), own.into_owned()];
    for after in file.text.split("Paths are ").skip(1) {
        let end = after.find(". ").into_iter().chain(after.find(".\n")).min();
        let sentence = &after[..end.unwrap_or(after.len())];
        let named = sentence.split('`').skip(1).step_by(2);
        bases.extend(named.map(|path| path.trim_end_matches('/').to_owned()));
    }
    bases.dedup();
    bases
}

/// The inline code outside code blocks, with the index of the line in which it starts.
fn inline_code(text: &str) -> Vec<(usize, String)> {
    let mut found = vec![];
    let mut is_block = false;
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        // Code goes on in the next line of its paragraph, but not in another row or paragraph.
        if is_fence || is_block || line.trim().is_empty() || line.starts_with('|') {
            open = None;
        }
        if is_fence || is_block {
            continue;
        }
        for (nth, piece) in line.split('`').enumerate() {
            if nth > 0 {
                match open.take() {
                    Some(code) => found.push(code),
                    None => open = Some((index, String::new())),
                }
            }
            if let Some((_, code)) = &mut open {
                code.push_str(piece);
            }
        }
        if let Some((_, code)) = &mut open {
            code.push(' ');
        }
    }
    found
}

/// Whether inline code looks like a path of a tree.
fn is_path(token: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-*".contains(c);
    let is_file = ENDINGS.iter().any(|ending| token.ends_with(ending));
    let mut words = token.split(|c: char| !c.is_alphanumeric());
    (token.contains('/') || is_file)
        && token.chars().all(is_plain)
        && !token.starts_with(['/', '-', '.'])
        && token != "I/O"
        && !words.any(|word| PLACEHOLDERS.contains(&word))
}

/// Whether a path is one of another tree.
fn is_foreign(token: &str) -> bool {
    FOREIGN.iter().any(|(start, _)| token.starts_with(start))
}

fn join(base: &str, path: &str) -> String {
    if base.is_empty() { path.to_owned() } else { format!("{base}/{path}") }
}

/// Whether a tracked file, or a folder of one, is what `pattern` with its `*` says.
fn matches_any(pattern: &str, files: &[File]) -> bool {
    let parts = || pattern.trim_end_matches('/').split('/');
    let is_match = |file: &File| {
        let mut own = file.path.split('/');
        parts().all(|part| own.next().is_some_and(|own| part == "*" || part == own))
    };
    pattern.contains('*') && files.iter().any(is_match)
}

/// Whether the file has that name.
fn ends_in(file: &File, name: &str) -> bool {
    file.path.rsplit('/').next() == Some(name)
}

fn told(bases: &[String]) -> String {
    let named = bases.iter().map(|base| if base.is_empty() { "the root" } else { base.as_str() });
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let files = [File::new(path, text), File::new("crates/x/src/trace/mod.rs", "")];
        let there = ["README.md", "oracle/b.tar.zst", "crates/x/src/", "crates/x/src/trace/mod.rs"];
        told(&check(&files, &|path| there.contains(&path)))
    }

    /// A page for contributors named `src/trace.rs` long after that had become a folder.
    #[test]
    fn path_in_prose_that_is_gone_is_found() {
        let text = "# A\n\nPaths are in `crates/x/` or here. See (`src/trace.rs`), and\n\
                    - `src/trace/mod.rs`\n| `src/gone.rs` |\n";
        let expected = [
            "3: `crates/x/`: no such file, from the root, crates/x",
            "3: `src/trace.rs`: no such file, from the root, crates/x",
            "5: `src/gone.rs`: no such file, from the root, crates/x",
        ];
        assert_eq!(findings("CONTRIBUTING.md", text), expected);
    }

    #[test]
    fn path_is_looked_for_from_the_root_the_own_folder_and_by_its_name() {
        let text = "`README.md` `crates/x/src/` `b.tar.zst` `mod.rs` `crates/*/src`";
        assert_eq!(findings("oracle/README.md", text), [""; 0]);
        let elsewhere = findings("docs/a.md", text);
        assert_eq!(elsewhere, ["1: `b.tar.zst`: no such file, from the root, docs"]);
        assert_eq!(findings("a.md", "`crates/*/tests` `lib.rs`").len(), 2);
    }

    #[test]
    fn what_is_of_another_tree_is_not_looked_at() {
        let text = "`/sys/block` `queue/scheduler` `be/4` `rt/0..7` `I/O` `src/NAME.rs` `a b/c`\n\
                    `--log/x` `https://a.b/c` `target/oracle` `disk0.img` `io.max`\n";
        assert_eq!(findings("a.md", text), [""; 0]);
    }

    #[test]
    fn code_blocks_are_not_looked_at_and_inline_code_may_be_broken() {
        let text = "```sh\n`a/b.rs`\n```\na `cargo\ntest` b `c/d.rs`\n\na ` b\n\n`e/f.rs`\n";
        let found = findings("a.md", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("5: `c/d.rs`") && found[1].starts_with("9: `e/f.rs`"));
    }
}
