//! The hierarchies of CFQ by name: in what way groups, and the queues in them, share the device.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::any::SchedulerKind;
use crate::kernel::Kernel;

/// In what way CFQ has groups, and the queues in them, share the device.
///
/// A task in the root beside a group of weight 500 with two tasks, all of level 4: how much of the
/// device the root's task gets, against the group.
///
/// | hierarchy | task : group | because |
/// |---|---|---|
/// | [`LeafWeight`](Self::LeafWeight) | 1000 : 500 | the root's own tasks have its leaf weight |
/// | [`Flat`](Self::Flat) | 1000 : 500 | the root has its weight |
/// | [`Entities`](Self::Entities) | 484 : 500 | the task has the weight of its level |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hierarchy {
    /// As in Linux v4.20: a group competes with its siblings by its weight, and its own tasks with
    /// its child groups by its leaf weight.
    #[default]
    LeafWeight,
    /// The root and all groups compete side by side, each by its weight, whatever their depth:
    /// `use_hierarchy` 0 of a patch set of 2010, which Linux never took.
    Flat,
    /// A group's tasks and its child groups compete side by side, each by its own weight; that of a
    /// task follows from its level: `use_hierarchy` 1 of the same patch set.
    Entities,
}

impl Hierarchy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LeafWeight, Self::Flat, Self::Entities];

    /// Its name in configurations and scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeafWeight => "leaf-weight",
            Self::Flat => "flat",
            Self::Entities => "entities",
        }
    }
}

impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hierarchy {
    type Err = UnknownHierarchy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|hierarchy| hierarchy.name() == name);
        found.ok_or_else(|| UnknownHierarchy { name: name.to_owned() })
    }
}

/// The error for a name that no hierarchy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no hierarchy {name:?}; there are: {}", known())]
pub struct UnknownHierarchy {
    name: String,
}

/// The error for a scheduler, or a kernel of CFQ, whose hierarchy cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct NoHierarchy {
    of: Fixed,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum Fixed {
    #[error("{scheduler} has no hierarchy to choose; {} has: {}", SchedulerKind::Cfq, known())]
    Scheduler { scheduler: &'static str },
    #[error(
        "kernel {kernel} has no hierarchy to choose; {} of kernel {} has: {}",
        SchedulerKind::Cfq,
        Kernel::default(),
        known()
    )]
    Kernel { kernel: Kernel },
}

impl NoHierarchy {
    /// Makes the error of the scheduler of that name.
    pub fn new(scheduler: &'static str) -> Self {
        Self { of: Fixed::Scheduler { scheduler } }
    }

    /// Makes the error of CFQ as that kernel.
    pub(crate) fn of_kernel(kernel: Kernel) -> Self {
        Self { of: Fixed::Kernel { kernel } }
    }
}

fn known() -> String {
    Hierarchy::ALL.map(Hierarchy::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_errors_name_what_is_allowed() {
        for hierarchy in Hierarchy::ALL {
            assert_eq!(hierarchy.name().parse(), Ok(hierarchy));
        }
        let unknown = "deep".parse::<Hierarchy>().expect_err("there is none").to_string();
        let allowed = "leaf-weight, flat, entities";
        assert_eq!(unknown, format!("there is no hierarchy \"deep\"; there are: {allowed}"));
        let none = NoHierarchy::new("bfq").to_string();
        assert_eq!(none, format!("bfq has no hierarchy to choose; cfq has: {allowed}"));
        let fixed = NoHierarchy::of_kernel(Kernel::V2_6_37).to_string();
        let told = "kernel 2.6.37 has no hierarchy to choose; cfq of kernel 4.20 has";
        assert_eq!(fixed, format!("{told}: {allowed}"));
    }
}
