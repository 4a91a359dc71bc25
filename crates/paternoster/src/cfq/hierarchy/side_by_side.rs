//! Groups as kernels 2.6.35 to 2.6.37 have them: the root and all groups compete side by side, as
//! in `flat.rs`, and queues are placed by time, as in `leaf_weight.rs`.
//!
//! ```text
//!   group tree, by vdisktime       ──▶ service trees of the group, by time
//!   /:12  /a:17  /a/b:21  /c:40
//!
//!   vdisktime += ticks (or requests) of the slice × 2¹² × 500 / the group's weight; the root's is
//!                1000
//! ```
//!
//! A queue without an idle window may change its group as it is placed (`kernel/isolation.rs`).

use super::{Standing, flat};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::Trace;

/// Charges the group in ticks or requests, and moves it on the tree.
pub(super) fn charge<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, charge: u64) -> Standing {
    let charge = cfq.charge_in_units(charge);
    flat::charge_group(cfq, cx, group, charge)
}

/// The group's part of `span`, in whole ticks, by weight among the groups with busy queues.
pub(super) fn part_of<T: Trace>(cfq: &Cfq<T>, group: GroupId, span: Nanos) -> Nanos {
    let weight = cfq.groups[group].share.counted_weight;
    cfq.kernel.portion(span, weight.into(), cfq.group_tree.members.weight_sum().into())
}
