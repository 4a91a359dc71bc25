//! What deny.toml says of our dependencies, as far as tidy checks it.
//!
//! The file is cargo-deny's own, so that the policy stands in one place. Of the sections that are
//! read here every key has to be known: one that only cargo-deny would follow must not look as if
//! tidy did too.

use anyhow::{Context, Result, bail};
use semver::{Version, VersionReq};
use serde::Deserialize;

/// The file.
pub(super) const PATH: &str = "deny.toml";

/// The policy. `[advisories]` and `[output]` are cargo-deny's alone.
#[derive(Debug, Deserialize)]
pub(super) struct Policy {
    pub(super) graph: Graph,
    pub(super) licenses: Licenses,
    pub(super) bans: Bans,
    pub(super) sources: Sources,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    /// Triples whose dependencies count.
    pub(super) targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Licenses {
    /// SPDX names, with an exception after WITH where there is one.
    pub(super) allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bans {
    multiple_versions: String,
    multiple_versions_include_dev: bool,
    /// Versions that may stand beside others.
    pub(super) skip: Vec<Entry>,
    /// What must not be depended on.
    pub(super) deny: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Sources {
    unknown_registry: String,
    unknown_git: String,
    /// Registries that crates may come from.
    pub(super) allow_registry: Vec<String>,
}

/// A crate, and why it is listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// `name` or `name@requirement`.
    #[serde(rename = "crate")]
    pub(super) spec: String,
    pub(super) reason: String,
}

impl Policy {
    /// Reads the policy. What would make it laxer than tidy is, is refused.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let policy: Self = toml::from_str(text).context("reading deny.toml")?;
        let levels = [
            ("bans.multiple-versions", &policy.bans.multiple_versions),
            ("sources.unknown-registry", &policy.sources.unknown_registry),
            ("sources.unknown-git", &policy.sources.unknown_git),
        ];
        for (key, level) in levels {
            if level != "deny" {
                bail!("deny.toml: {key} is \"{level}\", and must be \"deny\"");
            }
        }
        if !policy.bans.multiple_versions_include_dev {
            bail!("deny.toml: bans.multiple-versions-include-dev is false, and must be true");
        }
        for entry in policy.bans.skip.iter().chain(&policy.bans.deny) {
            entry.requirement()?;
            if entry.reason.trim().is_empty() {
                bail!("deny.toml: {} is listed without a reason", entry.spec);
            }
        }
        Ok(policy)
    }
}

impl Entry {
    /// Whether the entry means this version of this crate.
    pub(super) fn is(&self, name: &str, version: &Version) -> bool {
        let own = self.spec.split('@').next();
        own == Some(name) && self.requirement().is_ok_and(|all| all.matches(version))
    }

    fn requirement(&self) -> Result<VersionReq> {
        let Some((_, requirement)) = self.spec.split_once('@') else { return Ok(VersionReq::STAR) };
        VersionReq::parse(requirement)
            .with_context(|| format!("deny.toml: the version in \"{}\"", self.spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that is as strict as it must be.
    const STRICT: &str = r#"
        [graph]
        targets = []
        [advisories]
        ignore = []
        [licenses]
        allow = ["MIT"]
        [bans]
        multiple-versions = "deny"
        multiple-versions-include-dev = true
        skip = [{ crate = "a@2", reason = "b needs it" }]
        deny = []
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        allow-registry = []
    "#;

    #[test]
    fn policy_that_is_laxer_than_tidy_is_refused() {
        Policy::parse(STRICT).expect("the policy is strict");
        for (strict, lax) in [
            ("multiple-versions = \"deny\"", "multiple-versions = \"warn\""),
            ("include-dev = true", "include-dev = false"),
            ("unknown-git = \"deny\"", "unknown-git = \"allow\""),
            ("unknown-registry = \"deny\"", "unknown-registry = \"warn\""),
            ("\"b needs it\"", "\" \""),
            (", reason = \"b needs it\"", ""),
            ("\"a@2\"", "\"a@two\""),
            ("deny = []", "deny = []\nskip-tree = []"),
        ] {
            let text = STRICT.replacen(strict, lax, 1);
            assert_ne!(text, STRICT, "{strict} is not in the policy");
            assert!(Policy::parse(&text).is_err(), "{lax} is accepted");
        }
    }

    #[test]
    fn entry_means_the_versions_that_it_requires() {
        let entry = |spec: &str| Entry { spec: spec.to_owned(), reason: "so".to_owned() };
        let version = Version::new(2, 0, 119);
        assert!(entry("syn").is("syn", &version));
        assert!(entry("syn@2").is("syn", &version));
        assert!(!entry("syn@3").is("syn", &version));
        assert!(!entry("synstructure").is("syn", &version));
    }
}
