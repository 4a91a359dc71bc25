//! What a disk's scheduler is: one that is named, or the one that `auto` takes.
//!
//! ```text
//!   scheduler = "bfq"     bfq
//!   scheduler = "auto"    wfq where nothing rotates: weights, and the disk stays busy
//!                         cfq on a rotational disk: weights, and idling that spares it seeks
//! ```
//!
//! `auto` is a way to choose, and no scheduler: what is in force always has a name of its own. Both
//! that it takes have weights and leaf weights; caps and reservations of groups are `wfq`'s alone,
//! hierarchies `cfq`'s, and each has its own tunables. What the one that is taken does not have is
//! refused with the reason why it was taken.

use paternoster::SchedulerKind;

use super::error::{Mistake, Problem};
use super::keys::At;
use super::mistakes::Mistakes;
use crate::depth;

/// What is written to have the server choose.
pub(crate) const AUTO: &str = "auto";

/// What orders a disk's requests, and who has chosen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerChoice {
    /// It was named.
    Named(SchedulerKind),
    /// `auto`, also where nothing was written.
    Auto {
        /// Whether the disk is rotational.
        rotational: bool,
    },
}

impl SchedulerChoice {
    /// Returns the scheduler.
    pub const fn kind(self) -> SchedulerKind {
        match self {
            Self::Named(kind) => kind,
            Self::Auto { rotational: false } => SchedulerKind::Wfq,
            Self::Auto { rotational: true } => SchedulerKind::Cfq,
        }
    }

    /// Returns whether `auto` has chosen it.
    pub const fn is_auto(self) -> bool {
        matches!(self, Self::Auto { .. })
    }

    /// Says why it is this one, if `auto` has chosen it.
    pub fn because(self) -> Option<String> {
        match self {
            Self::Named(_) => None,
            Self::Auto { rotational } => {
                let does = if rotational { "rotates" } else { "does not rotate" };
                Some(format!("{AUTO}: {}, as the disk {does}", self.kind()))
            }
        }
    }

    /// Adds to what is wrong under this scheduler why it is this one.
    pub(super) fn explain(self, problem: Problem) -> Problem {
        match self.because() {
            Some(because) => Problem::UnderAuto { problem: Box::new(problem), because },
            None => problem,
        }
    }
}

impl SchedulerChoice {
    /// Notes what is wrong with tunables under this scheduler.
    pub(super) fn check_tunables(self, written: &[(At<String>, At<i64>)], mistakes: &mut Mistakes) {
        for (index, (name, value)) in written.iter().enumerate() {
            let is_twice = written[..index].iter().any(|(other, _)| other == name);
            let checked = self.check_tunable(name, value);
            if is_twice && checked.is_ok() {
                mistakes.add(&name.place, Problem::SetTwice { name: name.value.clone() });
            }
            mistakes.note(checked);
        }
    }

    fn check_tunable(self, name: &At<String>, value: &At<i64>) -> Result<(), Mistake> {
        if depth::is_tunable(self.kind(), &name.value) {
            return name.refuse(Problem::DepthAsTunable);
        }
        let info = depth::other_tunable(self.kind(), &name.value)
            .or_else(|error| name.refuse(self.explain(Problem::UnknownTunable(error))))?;
        if info.accepts(value.value).is_err() {
            let paternoster::TunableInfo { name: key, unit, min, max, .. } = *info;
            return value.refuse(Problem::OutOfRange { key, value: value.value, min, max, unit });
        }
        Ok(())
    }
}

impl From<SchedulerKind> for SchedulerChoice {
    fn from(kind: SchedulerKind) -> Self {
        Self::Named(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_a_scheduler_with_weights_and_says_why() {
        let auto = [false, true].map(|rotational| SchedulerChoice::Auto { rotational });
        assert!(auto.iter().all(|choice| choice.is_auto() && choice.kind().has_leaf_weights()));
        let because = auto.map(|choice| choice.because().expect("a reason"));
        assert_eq!(
            because,
            ["auto: wfq, as the disk does not rotate", "auto: cfq, as the disk rotates"]
        );
        let named = SchedulerChoice::from(SchedulerKind::Wfq);
        assert_eq!((named.is_auto(), named.because()), (false, None));
    }
}
