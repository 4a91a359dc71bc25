//! What holds for all that we depend on: deny.toml, held against cargo's metadata.
//!
//! Advisories are not looked at here, as they need a database: `cargo xtask audit` does.

use super::policy::{self, Policy};
use super::{File, Finding};
use crate::cargo;
use anyhow::{Context, Result, bail};
use semver::Version;
use serde::Deserialize;
use spdx::{Expression, LicenseReq, Licensee, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

/// The crate of the program that operators run.
const PROGRAM: &str = "paternoster-cli";
/// Crates that it does not link.
const NOT_IN_PROGRAM: [&str; 2] = ["paternoster-lab", "paternoster-generations"];

/// What `cargo metadata` says, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate in the tree, ours among them.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: Version,
    /// An SPDX expression.
    license: Option<String>,
    /// None for a crate of ours.
    source: Option<String>,
}

/// The findings in all dependencies of the workspace.
pub(super) fn check_all(files: &[File]) -> Result<Vec<Finding>> {
    let file = files.iter().find(|file| file.path == policy::PATH);
    let file = file.with_context(|| format!("{} is not among git's files", policy::PATH))?;
    let policy = Policy::parse(&file.text)?;
    let metadata = metadata(&policy.graph.targets)?;
    check(file, &policy, &metadata)
}

/// Asks cargo, which may have to download a crate that no build has needed yet.
fn metadata(targets: &[String]) -> Result<Metadata> {
    let mut command = cargo::command();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    for target in targets {
        command.args(["--filter-platform", target]);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("cargo's metadata")
}

/// The findings where the program that operators run links what only studies devices.
pub(super) fn check_program() -> Result<Vec<Finding>> {
    let mut command = cargo::command();
    command.args(["tree", "--locked", "-p", PROGRAM, "-e", "normal", "--prefix", "none"]);
    let output = command.stderr(Stdio::inherit()).output().context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", output.status);
    }
    Ok(linked(&String::from_utf8(output.stdout).context("cargo's tree")?))
}

/// The findings in what `cargo tree` says.
fn linked(tree: &str) -> Vec<Finding> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let found: BTreeSet<_> = names.filter(|name| NOT_IN_PROGRAM.contains(name)).collect();
    let path = format!("crates/{PROGRAM}/Cargo.toml");
    let finding = |name| Finding {
        path: path.clone(),
        line: 1,
        what: format!("the program links {name}, which operators do not run"),
    };
    found.into_iter().map(finding).collect()
}

/// The findings; each names the line of `file`, the policy, that has been broken.
fn check(file: &File, policy: &Policy, metadata: &Metadata) -> Result<Vec<Finding>> {
    let sections = [
        ("allow =", check_licences(&policy.licenses.allow, &metadata.packages)?),
        ("multiple-versions =", check_versions(policy, &metadata.packages)),
        ("deny =", check_bans(policy, &metadata.packages)),
        ("allow-registry =", check_sources(policy, &metadata.packages)),
    ];
    let line_of = |key| file.text.lines().position(|line| line.starts_with(key)).unwrap_or(0);
    let of_section = |(key, whats): (_, Vec<String>)| {
        whats.into_iter().map(move |what| Finding::at(file, line_of(key), what))
    };
    Ok(sections.into_iter().flat_map(of_section).collect())
}

/// Crates that no allowed licence covers, and licences that no crate needs.
fn check_licences(allow: &[String], packages: &[Package]) -> Result<Vec<String>> {
    let parsed = |name: &String| {
        Licensee::parse(name).with_context(|| format!("deny.toml: the licence \"{name}\""))
    };
    let allowed: Vec<_> = allow.iter().map(parsed).collect::<Result<_>>()?;
    let mut findings = vec![];
    let mut met = BTreeSet::new();
    for Package { name, version, license, .. } in packages {
        let Some(license) = license else {
            findings.push(format!("{name} {version} names no licence"));
            continue;
        };
        // Older crates write "MIT/Apache-2.0".
        let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
            findings.push(format!("{name} {version}: \"{license}\" is no SPDX expression"));
            continue;
        };
        let is_allowed = |req: &LicenseReq| allowed.iter().any(|one| one.satisfies(req));
        if !expression.evaluate(is_allowed) {
            findings.push(format!("{name} {version}: none of \"{license}\" is allowed"));
        }
        let asked = expression.requirements().map(|req| &req.req);
        met.extend(asked.flat_map(|req| (0..allowed.len()).filter(|&i| allowed[i].satisfies(req))));
    }
    let unmet = (0..allow.len()).filter(|index| !met.contains(index));
    findings.extend(unmet.map(|index| format!("no crate is under {}: take it out", allow[index])));
    Ok(findings)
}

/// Crates of which there are several versions, and exceptions for some that there are not.
fn check_versions(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&Version>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let skip = &policy.bans.skip;
    let mut findings = vec![];
    for (name, versions) in &versions {
        let is_counted = |version: &Version| !skip.iter().any(|entry| entry.is(name, version));
        if versions.iter().filter(|version| is_counted(version)).count() > 1 {
            let list: Vec<_> = versions.iter().map(ToString::to_string).collect();
            findings.push(format!(
                "{name} is there as {}: one version, or a reason in `skip` \
                 (cargo tree --workspace -i {name}@VERSION)",
                list.join(" and ")
            ));
        }
    }
    for entry in skip {
        let is_one = |(name, all): (&&str, &BTreeSet<&Version>)| {
            all.iter().any(|version| entry.is(name, version))
        };
        if !versions.iter().any(is_one) {
            findings.push(format!("`skip` has {}: it has no second version", entry.spec));
        }
    }
    findings
}

/// Crates that must not be there.
fn check_bans(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let banned = packages.iter().flat_map(|Package { name, version, .. }| {
        let entries = policy.bans.deny.iter().filter(|entry| entry.is(name, version));
        entries.map(move |entry| format!("{name} {version} is banned: {}", entry.reason))
    });
    banned.collect()
}

/// Crates that come from elsewhere than an allowed registry.
fn check_sources(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let is_allowed = |source: &str| {
        let registry = source.strip_prefix("registry+");
        registry.is_some_and(|url| policy.sources.allow_registry.iter().any(|one| one == url))
    };
    let strangers = packages.iter().filter_map(|Package { name, version, source, .. }| {
        let source = source.as_deref().filter(|source| !is_allowed(source))?;
        Some(format!("{name} {version} comes from {source}, which is not allowed"))
    });
    strangers.collect()
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;
    use serde_json::{Value, json};

    const POLICY: &str = r#"[graph]
targets = []
[licenses]
allow = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]
[bans]
multiple-versions = "deny"
multiple-versions-include-dev = true
skip = [{ crate = "syn@2", reason = "criterion" }]
deny = [{ crate = "nix@0.29", reason = "rustix does it" }]
[sources]
unknown-registry = "deny"
unknown-git = "deny"
allow-registry = ["https://registry"]
"#;

    fn package(name: &str, version: &str, license: &str) -> Value {
        json!({
            "name": name, "version": version, "license": license,
            "source": "registry+https://registry",
        })
    }

    /// A tree that the policy has nothing against, and needs all of.
    fn clean() -> Vec<Value> {
        vec![
            json!({ "name": "ours", "version": "0.1.0", "license": "MIT", "source": null }),
            package("syn", "2.0.1", "MIT/Apache-2.0"),
            package("syn", "3.0.1", "GPL-3.0-only OR (MIT AND Zlib)"),
            package("llvm", "1.0.0", "Apache-2.0 WITH LLVM-exception"),
            package("nix", "0.30.0", "MIT"),
        ]
    }

    /// The findings in a clean tree with `added`.
    fn findings(added: Value) -> Vec<String> {
        let mut packages = clean();
        packages.push(added);
        findings_in(&packages)
    }

    fn findings_in(packages: &[Value]) -> Vec<String> {
        let metadata = serde_json::from_value(json!({ "packages": packages })).expect("metadata");
        let policy = Policy::parse(POLICY).expect("a policy");
        let file = File::new(policy::PATH, POLICY);
        told(&check(&file, &policy, &metadata).expect("licences that there are"))
    }

    #[test]
    fn program_that_links_the_laboratory_is_a_finding() {
        let tree = "paternoster-cli v0.1.0 (/p)\npaternoster-load v0.1.0 (/p)\nclap v4.5.0\n";
        assert_eq!(linked(tree), []);
        let [finding] = &linked(&format!("{tree}paternoster-lab v0.1.0 (/p) (*)\n"))[..] else {
            panic!("it links the laboratory")
        };
        assert!(finding.what.contains("paternoster-lab"), "{finding}");
    }

    #[test]
    fn clean_tree_has_no_findings() {
        assert_eq!(findings_in(&clean()), [""; 0]);
    }

    #[test]
    fn licence_that_is_not_allowed_is_found() {
        let copyleft = findings(package("a", "1.0.0", "GPL-3.0-or-later"));
        assert_eq!(copyleft, ["4: a 1.0.0: none of \"GPL-3.0-or-later\" is allowed"]);
        let both = findings(package("a", "1.0.0", "MIT AND MPL-2.0"));
        assert_eq!(both, ["4: a 1.0.0: none of \"MIT AND MPL-2.0\" is allowed"]);
        let without = findings(package("a", "1.0.0", "Apache-2.0"));
        assert_eq!(without, ["4: a 1.0.0: none of \"Apache-2.0\" is allowed"]);
        let unknown = findings(package("a", "1.0.0", "as you like"));
        assert_eq!(unknown, ["4: a 1.0.0: \"as you like\" is no SPDX expression"]);
        let none = json!({ "name": "a", "version": "1.0.0", "license": null, "source": null });
        assert_eq!(findings(none), ["4: a 1.0.0 names no licence"]);
    }

    #[test]
    fn second_version_of_a_crate_is_found() {
        let third = findings(package("syn", "1.0.9", "MIT"));
        let list = "6: syn is there as 1.0.9 and 2.0.1 and 3.0.1: ";
        assert!(third.len() == 1 && third[0].starts_with(list), "{third:?}");
        let second = findings(package("llvm", "1.0.1", "MIT"));
        assert!(second.len() == 1 && second[0].starts_with("6: llvm is there as"), "{second:?}");
    }

    #[test]
    fn banned_crate_is_found() {
        // The older version stands beside the one that may be there.
        let mut packages = clean();
        packages.retain(|package| package["name"] != "nix");
        packages.push(package("nix", "0.29.0", "MIT"));
        assert_eq!(findings_in(&packages), ["9: nix 0.29.0 is banned: rustix does it"]);
    }

    #[test]
    fn crate_from_elsewhere_is_found() {
        let git = json!({
            "name": "a", "version": "1.0.0", "license": "MIT", "source": "git+https://registry",
        });
        let expected = "13: a 1.0.0 comes from git+https://registry, which is not allowed";
        assert_eq!(findings(git), [expected]);
    }

    #[test]
    fn exception_that_nothing_needs_is_found() {
        let mut packages = clean();
        packages.retain(|package| package["version"] != "3.0.1");
        let expected = [
            "4: no crate is under Zlib: take it out",
            "6: `skip` has syn@2: it has no second version",
        ];
        assert_eq!(findings_in(&packages), expected);
    }
}
