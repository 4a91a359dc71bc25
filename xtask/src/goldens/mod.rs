//! `cargo xtask goldens --since REV`: everything that a rewrite has to leave as it is, compared
//! with what another commit of ours makes.
//!
//! ```text
//!   REV ──▶ checkout, build ──▶ ┌─────────┐ ──▶ target/goldens/COMMIT/NAME/… ──┐
//!                               │ recipes │                                    ├──▶ same bytes?
//!   now ──────────── build ──▶  └─────────┘ ──▶ target/goldens/now/NAME/…    ──┘
//! ```
//!
//! Recipes call the programs and `cargo xtask bench` alone, so a commit that has no such command
//! can be asked too, if it has all schedulers and tunables of this tree. What a commit made of the
//! same inputs is kept, as it cannot change.

mod mistakes;
mod random;
mod recipes;
mod shape;

use crate::commit::{Build, checked_out};
use crate::oracle::make_empty;
use crate::{bench_sched, cargo};
use anyhow::{Context, Result, bail};
use recipes::{Inputs, RECIPES, Recipe};
pub(crate) use recipes::{SCENARIOS, Scenarios};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that says that a golden of a commit is whole.
const COMPLETE: &str = ".complete";

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The commit that is the measure
    #[arg(long, value_name = "REV")]
    since: String,
    /// Compare these alone: logs, decisions, depth, prices, busy, study, sim, mistakes, shapes or
    /// pins
    names: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    compare(&args.since, &args.names, SCENARIOS)
}

/// Compares the goldens of these names with those of a commit, with so many random scenarios.
pub(crate) fn compare(since: &str, names: &[String], scenarios: Scenarios) -> Result<()> {
    let recipes = chosen(names)?;
    let dir = cargo::target_dir().join("goldens");
    let inputs = Inputs::collect(&dir.join("inputs"), scenarios)?;
    let commit = crate::commit::hash_of(since)?;
    let [before, now] = [&commit, "now"].map(|side| dir.join(side).join(&inputs.fingerprint));
    let missing: Vec<_> =
        recipes.iter().filter(|recipe| !before.join(recipe.name).join(COMPLETE).exists()).collect();
    if !missing.is_empty() {
        checked_out(&commit, &dir.join("build"), |build| {
            missing.iter().try_for_each(|recipe| make(recipe, build, &inputs, &before))
        })?;
    }
    let build = Build::of_this_tree()?;
    let mut differ = 0;
    for recipe in &recipes {
        make(recipe, &build, &inputs, &now)?;
        let [before, now] = [&before, &now].map(|side| side.join(recipe.name));
        differ += report(recipe.name, &before, &now)?;
    }
    if names.is_empty() || names.iter().any(|name| name == "pins") {
        bench_sched::check()?;
    }
    if differ > 0 {
        bail!("{differ} files differ from those of {since}");
    }
    Ok(())
}

/// The recipes of these names; all where there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Recipe>> {
    let known = |name: &&String| *name == "pins" || RECIPES.iter().any(|made| made.name == **name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<_> = RECIPES.iter().map(|recipe| recipe.name).collect();
        bail!("there is no golden {unknown:?}; there are: {}, pins", all.join(", "));
    }
    let is_chosen = |recipe: &&Recipe| names.is_empty() || names.iter().any(|n| n == recipe.name);
    Ok(RECIPES.iter().filter(is_chosen).collect())
}

/// Makes a golden in the directory of its name in `dir`.
fn make(recipe: &Recipe, build: &Build, inputs: &Inputs, dir: &Path) -> Result<()> {
    let out = dir.join(recipe.name);
    make_empty(&out)?;
    (recipe.make)(build, inputs, &out).with_context(|| format!("making {}", out.display()))?;
    let files = files(&out)?;
    if files.is_empty() {
        bail!("{} has no file", out.display());
    }
    fs::write(out.join(COMPLETE), "").with_context(|| format!("writing in {}", out.display()))
}

/// Prints how two goldens differ. Returns how many files do.
fn report(name: &str, before: &Path, now: &Path) -> Result<usize> {
    let all: BTreeSet<_> = files(before)?.union(&files(now)?).cloned().collect();
    let mut differences = vec![];
    for file in &all {
        let read = |dir: &Path| fs::read_to_string(dir.join(file)).unwrap_or_default();
        if let Some(difference) = first_difference(&read(before), &read(now)) {
            differences.push(format!("  {}: {difference}", file.display()));
        }
    }
    println!("{name}: {} of {} files differ", differences.len(), all.len());
    for difference in differences.iter().take(5) {
        println!("{difference}");
    }
    Ok(differences.len())
}

/// The number of the first line that differs, and both lines; none where the texts are the same.
fn first_difference(before: &str, now: &str) -> Option<String> {
    if before == now {
        return None;
    }
    let same = before.lines().zip(now.lines()).take_while(|(before, now)| before == now).count();
    let line = |text: &str| {
        let line: String =
            text.lines().nth(same).unwrap_or("(nothing)").chars().take(160).collect();
        format!("    {line}")
    };
    Some(format!("line {}\n{}\n{}", same + 1, line(before), line(now)))
}

/// The files in a directory, by their names.
fn files(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))?;
    let names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name())));
    let names: Result<BTreeSet<_>> = names.collect();
    Ok(names?.into_iter().filter(|name| name != Path::new(COMPLETE)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_its_line_and_a_missing_end_is_one() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let changed = first_difference("a\nb\n", "a\nc\n");
        assert_eq!(changed.as_deref(), Some("line 2\n    b\n    c"));
        let shorter = first_difference("a\nb\n", "a\n");
        assert_eq!(shorter.as_deref(), Some("line 2\n    b\n    (nothing)"));
    }

    /// A golden that nobody makes any more would be equal for ever.
    #[test]
    fn file_that_only_one_side_has_differs() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [before, now] = ["before", "now"].map(|side| dir.path().join(side));
        for side in [&before, &now] {
            make_empty(side).expect("it can be made");
            fs::write(side.join("both"), "x").expect("a file");
        }
        assert_eq!(report("a", &before, &now).expect("both can be read"), 0);
        fs::write(before.join("old"), "x").expect("a file");
        fs::write(now.join("new"), "x").expect("a file");
        assert_eq!(report("a", &before, &now).expect("both can be read"), 2);
    }

    #[test]
    fn name_of_no_golden_is_refused_with_those_that_there_are() {
        let refused = chosen(&["log".to_owned()]).err().expect("there is none").to_string();
        assert!(refused.starts_with("there is no golden \"log\"; there are: logs, "), "{refused}");
        assert_eq!(chosen(&[]).expect("all").len(), RECIPES.len());
        assert_eq!(chosen(&["pins".to_owned()]).expect("no recipe").len(), 0);
    }
}
