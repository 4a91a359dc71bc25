//! What holds for the settings of cargo and clippy: every crate is linted, and as strictly; one
//! that may be published has what its readers need.

use super::{File, Finding};
use toml::{Table, Value};

/// Lines a function may have, by clippy's count.
const MAX_FUNCTION_LINES: i64 = 70;
/// Settings of clippy that must be there, the workspace's and the core's.
const CLIPPY_FILES: [&str; 2] = ["clippy.toml", CORE_CLIPPY];
/// The core's settings of clippy. Clippy reads the nearest file only.
const CORE_CLIPPY: &str = "crates/paternoster/clippy.toml";
/// What the core must not use: clocks, threads, shared ownership, order by a hasher.
const NOT_IN_CORE: [&str; 8] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread::spawn",
    "std::thread::scope",
    "std::rc::Rc",
    "std::cell::RefCell",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Files that stand beside the manifest of a crate that may be published.
const BESIDE: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Keys of such a manifest.
const KEYS: [&str; 6] =
    ["description", "license", "readme", "documentation", "keywords", "categories"];

/// The findings in all settings.
pub(super) fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let missing = CLIPPY_FILES.into_iter().filter(|path| !files.iter().any(|f| f.path == *path));
    let mut findings: Vec<_> = missing
        .map(|path| Finding { path: path.to_owned(), line: 1, what: "no such file".to_owned() })
        .collect();
    for file in files {
        let what = match file.path.rsplit('/').next() {
            Some("Cargo.toml") => {
                check_crate(file).into_iter().chain(check_published(file, exists)).collect()
            }
            Some("clippy.toml") => check_clippy(file),
            _ => continue,
        };
        findings.extend(what.into_iter().map(|what| Finding::at(file, 0, what)));
    }
    findings
}

/// A crate takes the workspace's lints. The root of a workspace of its own cannot.
fn check_crate(file: &File) -> Vec<String> {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![error.to_string()],
    };
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    let is_linted = manifest.contains_key("workspace") || lints == Some(&Value::Boolean(true));
    if is_linted { vec![] } else { vec!["lints.workspace is not true".to_owned()] }
}

/// A crate that may be published says what it is, under which licence, and has versions for crates
/// beside it.
fn check_published(file: &File, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let manifest: Table = file.text.parse().unwrap_or_default();
    let Some(package) = manifest.get("package").and_then(Value::as_table) else {
        return check_versions(&manifest);
    };
    if package.get("publish") == Some(&Value::Boolean(false)) {
        return vec![];
    }
    let missing = KEYS.into_iter().filter(|key| !package.contains_key(*key));
    let mut findings: Vec<_> =
        missing.map(|key| format!("package.{key} is missing; or publish = false")).collect();
    let dir = file.path.trim_end_matches("Cargo.toml");
    let missing = BESIDE.into_iter().filter(|name| !exists(&format!("{dir}{name}")));
    let no_text =
        |name| format!("no {name} beside it, with the text of the root's; or publish = false");
    findings.extend(missing.map(no_text));
    findings
}

/// A crate of the workspace that others depend on has a version, without which none is packaged.
fn check_versions(manifest: &Table) -> Vec<String> {
    let of_workspace = manifest.get("workspace").and_then(|own| own.get("dependencies"));
    let dependencies = of_workspace.and_then(Value::as_table).into_iter().flatten();
    let own = dependencies.filter(|(_, value)| value.get("path").is_some());
    let without = own.filter(|(_, value)| value.get("version").is_none());
    without.map(|(name, _)| format!("{name} has a path and no version")).collect()
}

/// Functions are limited, and the core is kept from what it must not use.
fn check_clippy(file: &File) -> Vec<String> {
    let settings: Table = match file.text.parse() {
        Ok(settings) => settings,
        Err(error) => return vec![error.to_string()],
    };
    let mut findings = vec![];
    let limit = settings.get("too-many-lines-threshold").and_then(Value::as_integer);
    if limit != Some(MAX_FUNCTION_LINES) {
        findings.push(format!("too-many-lines-threshold is not {MAX_FUNCTION_LINES}"));
    }
    if file.path == CORE_CLIPPY {
        let disallowed = disallowed(&settings);
        let allowed = NOT_IN_CORE.into_iter().filter(|path| !disallowed.contains(path));
        findings.extend(allowed.map(|path| format!("{path} is not disallowed")));
    }
    findings
}

/// The paths that clippy's settings disallow.
fn disallowed(settings: &Table) -> Vec<&str> {
    let lists = ["disallowed-types", "disallowed-methods"].map(|key| settings.get(key));
    let entries = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    entries.filter_map(|entry| entry.get("path").unwrap_or(entry).as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn crate_without_the_lints_of_the_workspace_is_found() {
        let findings = |text| check_crate(&File::new("crates/a/Cargo.toml", text));
        assert_eq!(findings("[lints]\nworkspace = true"), [""; 0]);
        assert_eq!(findings("[workspace]"), [""; 0]);
        assert_eq!(findings("[lints]\nworkspace = false").len(), 1);
        assert_eq!(findings("[package]\nname = 'a'").len(), 1);
    }

    #[test]
    fn crate_that_may_be_published_has_what_its_readers_need() {
        let findings = |text, there: &[&str]| {
            let file = File::new("crates/a/Cargo.toml", text);
            check_published(&file, &|path| there.contains(&path))
        };
        let all = ["crates/a/README.md", "crates/a/LICENSE-MIT", "crates/a/LICENSE-APACHE"];
        let whole = "[package]\ndescription = 'a'\nlicense.workspace = true\nreadme = 'README.md'\n\
                     documentation = 'a'\nkeywords = []\ncategories = []";
        assert_eq!(findings(whole, &all), [""; 0]);
        assert_eq!(findings("[package]\npublish = false", &[]), [""; 0]);
        let told = findings(whole, &all[1..]);
        assert!(told.len() == 1 && told[0].starts_with("no README.md beside it"), "{told:?}");
        assert_eq!(findings("[package]\nname = 'a'", &all).len(), KEYS.len());
        let workspace = "[workspace.dependencies]\na = { path = 'a' }\nb = '1'\n\
                         c = { path = 'c', version = '1' }";
        assert_eq!(findings(workspace, &[]), ["a has a path and no version"]);
    }

    #[test]
    fn settings_of_clippy_must_be_there() {
        let files = [File::new("clippy.toml", "too-many-lines-threshold = 70")];
        let findings = told(&check(&files, &|_| true));
        assert_eq!(findings, ["1: no such file"]);
    }

    #[test]
    fn settings_of_clippy_must_be_strict() {
        let list: Vec<_> =
            NOT_IN_CORE.iter().map(|path| format!("{{ path = '{path}' }}")).collect();
        let strict = format!(
            "too-many-lines-threshold = 70\ndisallowed-types = ['x', {}]\n\
             disallowed-methods = [{}]",
            list[..4].join(", "),
            list[4..].join(", ")
        );
        assert_eq!(check_clippy(&File::new(CORE_CLIPPY, &strict)), [""; 0]);
        let lax = check_clippy(&File::new(CORE_CLIPPY, "too-many-lines-threshold = 80"));
        assert_eq!(lax.len(), 1 + NOT_IN_CORE.len());
        assert_eq!(check_clippy(&File::new("clippy.toml", "")).len(), 1);
    }
}
