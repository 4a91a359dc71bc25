//! What part of the device each group's weight entitles its own jobs to, while all ask for it.
//!
//! ```text
//!   /        its own jobs, by its leaf weight, beside its child groups, by their weights
//!   ├─ /a    2/3 of what / has
//!   └─ /b    1/3, which its own jobs and its child groups divide in the same way
//! ```

use std::collections::HashMap;

use paternoster::Hierarchy;

use crate::group_path::parent_path;
use crate::sim::GroupSetup;

/// The parts of the groups that have jobs of their own; `groups` are all, the root first, parents
/// before children. A part is absent where it depends on more than weights of groups: where jobs
/// and child groups of one group compete, and that has no leaf weight.
pub(crate) fn entitled(
    groups: &[GroupSetup],
    has_jobs: impl Fn(&str) -> bool,
    hierarchy: Option<Hierarchy>,
) -> HashMap<String, Option<f64>> {
    let with_jobs: Vec<_> = groups.iter().filter(|group| has_jobs(&group.path)).collect();
    if hierarchy == Some(Hierarchy::Flat) {
        let sum: f64 = with_jobs.iter().map(|group| weight(group)).sum();
        let part = |group: &&GroupSetup| Some(weight(group) / sum);
        return with_jobs.iter().map(|group| (group.path.clone(), part(group))).collect();
    }
    let has_leaf_weight = hierarchy == Some(Hierarchy::LeafWeight);
    let is_active = |path: &str| {
        let below = format!("{}/", path.trim_end_matches('/'));
        with_jobs.iter().any(|group| group.path == path || group.path.starts_with(&below))
    };
    // What all of a group has, its child groups included.
    let mut whole: HashMap<&str, Option<f64>> = HashMap::from([("/", Some(1.0))]);
    let mut own = HashMap::new();
    for parent in groups.iter().filter(|group| is_active(&group.path)) {
        let children: Vec<_> = groups
            .iter()
            .filter(|group| group.path != "/" && parent_path(&group.path) == parent.path)
            .filter(|group| is_active(&group.path))
            .collect();
        let competes = has_jobs(&parent.path);
        let leaf = if competes { f64::from(parent.weights.leaf.value()) } else { 0.0 };
        let sum: f64 = leaf + children.iter().map(|child| weight(child)).sum::<f64>();
        let is_told = has_leaf_weight || !competes || children.is_empty();
        let part = whole.get(parent.path.as_str()).copied().flatten().filter(|_| is_told);
        for child in children {
            whole.insert(&child.path, part.map(|part| part * weight(child) / sum));
        }
        if competes {
            own.insert(parent.path.clone(), part.map(|part| part * leaf / sum));
        }
    }
    own
}

fn weight(group: &GroupSetup) -> f64 {
    f64::from(group.weights.weight.value())
}

#[cfg(test)]
mod tests {
    use paternoster::{Weight, Weights};

    use super::*;

    fn group(path: &str, weight: u32, leaf: u32) -> GroupSetup {
        let [weight, leaf] = [weight, leaf].map(|its| Weight::new(its).expect("a weight"));
        GroupSetup { path: path.to_owned(), weights: Weights { weight, leaf } }
    }

    fn tree() -> [GroupSetup; 5] {
        [
            group("/", 1000, 1000),
            group("/a", 500, 300),
            group("/a/x", 100, 500),
            group("/b", 500, 500),
            group("/idle", 1000, 500),
        ]
    }

    fn parts(jobs: &[&str], hierarchy: Option<Hierarchy>) -> Vec<Option<f64>> {
        let parts = entitled(&tree(), |path| jobs.contains(&path), hierarchy);
        assert_eq!(parts.len(), jobs.len(), "{parts:?}");
        jobs.iter().map(|job| parts[*job]).collect()
    }

    fn assert_near(found: &[Option<f64>], wanted: &[f64]) {
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found.expect("a part") - wanted).abs() < 1e-12, "{found:?}, not {wanted}");
        }
    }

    /// /a and /b have half each, as /idle asks for nothing; in /a its own 300 are against 100.
    #[test]
    fn part_is_divided_among_those_that_ask_level_by_level() {
        let found = parts(&["/a", "/a/x", "/b"], Some(Hierarchy::LeafWeight));
        assert_near(&found, &[0.375, 0.125, 0.5]);
        let found = parts(&["/a/x", "/b"], None);
        assert_near(&found, &[0.5, 0.5]);
    }

    #[test]
    fn flat_groups_compete_side_by_side() {
        let found = parts(&["/", "/a/x", "/b"], Some(Hierarchy::Flat));
        assert_near(&found, &[1000.0 / 1600.0, 100.0 / 1600.0, 500.0 / 1600.0]);
    }

    #[test]
    fn part_is_not_told_where_jobs_compete_with_groups_without_a_leaf_weight() {
        let found = parts(&["/a", "/a/x", "/b"], None);
        assert_eq!((found[0], found[1]), (None, None));
        assert_near(&found[2..], &[0.5]);
    }
}
