//! The group tree: which groups share the device, and by what weights.
//!
//! A group is a node with two weights: its weight against its siblings, and the leaf weight of its
//! own requests against its child groups. It may have limits (`group_limits.rs`). Each elevator has
//! groups of its own: a tenant on two disks has two.

use thiserror::Error;

use crate::arena::{Arena, GroupId};
use crate::group_limits::GroupLimits;
use crate::hierarchy::Hierarchy;
use crate::time::Nanos;

/// The weight of a group, 1 to 1000. BFQ has this range in Linux. The files of CFQ take 10 to 1000
/// there, but its arithmetic works with all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u16);

impl Weight {
    /// The least weight.
    pub const MIN: u32 = 1;
    /// The greatest weight.
    pub const MAX: u32 = 1000;
    /// The weight of the root, by which CFQ compares its own requests with its child groups.
    pub const ROOT: Self = Self(1000);

    /// Returns that weight, or an error if it is out of range.
    pub fn new(weight: u32) -> Result<Self, WeightError> {
        match u16::try_from(weight) {
            Ok(small) if (Self::MIN..=Self::MAX).contains(&weight) => Ok(Self(small)),
            _ => Err(WeightError(weight)),
        }
    }

    /// Returns it as a plain number.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0 as u32
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(100)
    }
}

/// The error for a number out of the range of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("weight {0}: {min} to {max} is allowed", min = Weight::MIN, max = Weight::MAX)]
pub struct WeightError(u32);

/// Work of the device, or of the thread that serves it, that was no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// What was written was made durable, for several submitters together. One of them is charged
    /// its part.
    Sync {
        /// How long that took.
        took: Nanos,
        /// How many waited for it; at least one.
        waiters: u32,
    },
    /// As much as that many reads of no bytes.
    Ops(u32),
}

/// What the scheduler is notified of about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupEvent {
    /// Its weight or leaf weight.
    Weight,
    /// Its caps or its reservation.
    Limits,
    /// It will be removed; none of its requests exists. Its counts are read after this.
    Closing,
    /// It is removed; `Closing` came just before.
    Removed,
    /// Work was done for it that was no request.
    Worked(Work),
    /// Of the root: groups share the device in that way from now on. It comes only to a scheduler
    /// that [has one to choose](crate::scheduler::Scheduler::hierarchy).
    Hierarchy(Hierarchy),
}

/// One group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its parent; none for the root.
    pub parent: Option<GroupId>,
    /// Its weights where it has none for this device.
    pub(crate) configured: Weights,
    /// Its weights for this device alone.
    pub(crate) device: DeviceWeights,
    /// What it may have at most, and has at least.
    pub(crate) limits: GroupLimits,
    /// The number of its child groups.
    children: u32,
    /// How many of its requests exist.
    pub(crate) requests: u32,
}

/// A group's two weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Against its siblings (`blkio.weight`).
    pub weight: Weight,
    /// Of its own requests against its child groups (`blkio.leaf_weight`).
    pub leaf: Weight,
}

impl From<Weight> for Weights {
    /// Both are that weight.
    fn from(weight: Weight) -> Self {
        Self { weight, leaf: weight }
    }
}

/// Weights that hold on one device instead of the group's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceWeights {
    /// Against its siblings (`blkio.weight_device`).
    pub weight: Option<Weight>,
    /// Of its own requests against its child groups (`blkio.leaf_weight_device`).
    pub leaf: Option<Weight>,
}

impl Group {
    /// Its weights where it has none for this device.
    pub fn configured(&self) -> Weights {
        self.configured
    }

    /// Its weights for this device alone.
    pub fn on_device(&self) -> DeviceWeights {
        self.device
    }

    /// What it may have at most, and has at least.
    pub fn limits(&self) -> &GroupLimits {
        &self.limits
    }

    /// Its weight against its siblings, on this device.
    #[inline]
    pub fn weight(&self) -> Weight {
        self.device.weight.unwrap_or(self.configured.weight)
    }

    /// The weight of its own requests against its child groups, on this device.
    #[inline]
    pub fn leaf_weight(&self) -> Weight {
        self.device.leaf.unwrap_or(self.configured.leaf)
    }
}

/// The group tree of one elevator.
#[derive(Debug)]
pub struct Groups {
    slots: Arena<GroupId, Group>,
    root: GroupId,
}

impl Groups {
    pub(crate) fn new() -> Self {
        let mut slots = Arena::default();
        let root = slots.insert(Group {
            parent: None,
            configured: Weight::ROOT.into(),
            device: DeviceWeights::default(),
            limits: GroupLimits::NONE,
            children: 0,
            requests: 0,
        });
        Self { slots, root }
    }

    /// The root of the tree.
    #[inline]
    pub fn root(&self) -> GroupId {
        self.root
    }

    /// Asserts that the group exists.
    #[inline]
    pub(crate) fn assert_exists(&self, group: GroupId) {
        assert!(self.slots.contains_key(group), "the group is gone");
    }

    pub(crate) fn add(&mut self, parent: GroupId, weight: Weight) -> GroupId {
        self.assert_exists(parent);
        self.slots[parent].children += 1;
        self.slots.insert(Group {
            parent: Some(parent),
            configured: weight.into(),
            device: DeviceWeights::default(),
            limits: GroupLimits::NONE,
            children: 0,
            requests: 0,
        })
    }

    /// Removes a group and returns its parent.
    pub(crate) fn remove(&mut self, group: GroupId) -> GroupId {
        assert!(self.is_unused(group), "a group is removed when nothing is in it");
        let parent = self.slots[group].parent.expect("the root is never removed");
        self.slots.remove(group);
        self.slots[parent].children -= 1;
        parent
    }

    /// Returns whether the group has neither child groups nor requests.
    pub(crate) fn is_unused(&self, group: GroupId) -> bool {
        let group = &self[group];
        group.children == 0 && group.requests == 0
    }

    /// Returns whether `group` is `ancestor` or somewhere below it.
    pub(crate) fn is_within(&self, group: GroupId, ancestor: GroupId) -> bool {
        let mut node = Some(group);
        while let Some(here) = node {
            if here == ancestor {
                return true;
            }
            node = self[here].parent;
        }
        false
    }

    /// The group; panics where it is gone.
    #[inline]
    pub(crate) fn get_mut(&mut self, group: GroupId) -> &mut Group {
        self.assert_exists(group);
        &mut self.slots[group]
    }

    /// A request is made in the group.
    #[inline]
    pub(crate) fn request_made(&mut self, group: GroupId) {
        self.slots[group].requests += 1;
    }

    /// A request of the group is freed.
    #[inline]
    pub(crate) fn request_freed(&mut self, group: GroupId) {
        self.slots[group].requests -= 1;
    }

    /// All groups, the root first.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        self.slots.iter()
    }
}

impl std::ops::Index<GroupId> for Groups {
    type Output = Group;
    /// The group; panics where it is gone.
    #[inline]
    fn index(&self, group: GroupId) -> &Group {
        self.assert_exists(group);
        &self.slots[group]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_outside_1_to_1000_is_refused_with_what_is_allowed() {
        assert_eq!(Weight::new(1).map(Weight::value), Ok(1));
        assert_eq!(Weight::new(1000).map(Weight::value), Ok(1000));
        for bad in [0, 1001, 70_000] {
            let error = Weight::new(bad).expect_err("out of range");
            assert_eq!(error.to_string(), format!("weight {bad}: 1 to 1000 is allowed"));
        }
    }
}
