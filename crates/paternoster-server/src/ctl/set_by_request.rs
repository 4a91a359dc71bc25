//! What requests have set since the server has read its file: a server that takes over sets it
//! again. What is set anew takes the place of what was set of the same before.

use serde::{Deserialize, Serialize};

use super::group::GroupChange;
use super::settings::DiskChange;

/// Changes in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetByRequest {
    pub(crate) disks: Vec<DiskChange>,
    pub(crate) groups: Vec<GroupChange>,
}

impl SetByRequest {
    /// A group was changed.
    pub(crate) fn group(&mut self, new: &GroupChange) {
        self.groups.retain(|old| {
            let is_same = (&old.group, &old.disk) == (&new.group, &new.disk);
            !(is_same && old.set.keys().all(|key| new.set.contains_key(key)))
        });
        self.groups.push(new.clone());
    }

    /// A disk was changed.
    pub(crate) fn disk(&mut self, new: &DiskChange) {
        self.disks.retain(|old| {
            let is_replaced = old.set.0.iter().all(|(name, _)| new.set.get(name).is_some());
            !(old.disk == new.disk && is_replaced)
        });
        self.disks.push(new.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_again_is_kept_once_and_in_order() {
        let mut set = SetByRequest::default();
        for (group, key, value) in
            [("/a", "weight", 1), ("/b", "weight", 2), ("/a", "riops", 3), ("/a", "weight", 4)]
        {
            set.group(&GroupChange::one(group, key, value));
        }
        let kept = set.groups.iter().map(|one| (&*one.group, one.set.values().next().cloned()));
        let expected = [("/b", 2), ("/a", 3), ("/a", 4)];
        assert!(kept.eq(expected.map(|(group, value)| (group, Some(value.into())))));
        let disk = |value: u32| DiskChange {
            disk: "d".to_owned(),
            set: [("depth", value.into())].into_iter().collect(),
        };
        set.disk(&disk(1));
        set.disk(&disk(2));
        assert_eq!(set.disks, [disk(2)]);
    }
}
