//! A turn: how it begins, how long it is, and what its group is charged at its end.
//!
//! ```text
//!   activate      first completion                          expire
//!      │ fresh          │◀──────────── slice ─────────▶│       │
//!      ├────────────────┼──────────────────────────────┼───────┤
//!      dispatch_start   start                          end
//!                       └──────── used, at most the slice ──────┘
//!      └─────────────────── charged if `charge_whole_turn` is set ───────────────────┘
//! ```

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::group::{FRACTION_SHIFT, SavedWorkload};
use crate::cfq::queue::{Queue, QueueId};
use crate::cfq::select::Serving;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, ExpireReason, Trace};

/// A level is worth this part of the slice of level 4: 1/5.
const SLICE_STEP: u64 = 5;
/// The level whose slice is the tunable itself.
const NORMAL_LEVEL: u64 = 4;
const HAS_TURN: &str = "a queue whose turn ends has one";

/// A queue's turn: from its activation to its expiry.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub(super) struct Turn {
    /// When it was activated.
    pub(super) dispatch_start: Instant,
    /// Since when its group has had the device: before that, if it took it from a turn that it
    /// ended, and the device was full.
    since: Instant,
    /// When its slice began: at the first completion.
    pub(super) start: Option<Instant>,
    /// When its slice ends; meaningful once it has begun.
    pub(super) end: Instant,
    /// The length of its slice, once it has begun.
    pub(super) length: Nanos,
    /// Requests sent.
    pub(super) sent: u32,
    /// Sectors sent.
    pub(super) sectors: u64,
    /// It kept the device while it was empty and others had requests.
    pub(super) waited: bool,
    /// The idle timer was armed for it.
    pub(super) awaiting: bool,
    /// Its next request passes the gate.
    pub(super) forced: bool,
    /// A request beyond the bound on requests was allowed.
    pub(super) allowance_used: bool,
    /// The fifo was looked at.
    pub(super) fifo_done: bool,
    /// Its slice was stretched for the sake of its group: it is not to send.
    pub(super) busy_wait: bool,
}

impl Turn {
    /// The turn of a queue that becomes active.
    #[inline]
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            dispatch_start: now,
            since: now,
            start: None,
            end: Instant::from_nanos(0),
            length: Nanos::ZERO,
            sent: 0,
            sectors: 0,
            waited: false,
            awaiting: false,
            forced: false,
            allowance_used: false,
            fifo_done: false,
            busy_wait: false,
        }
    }

    /// Whether its slice has not begun.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.start.is_none()
    }

    /// Whether the slice is used up.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.is_fresh() && now >= self.end
    }

    /// Whether more of the slice is left than was used, in unsigned arithmetic: what is over has
    /// everything left.
    pub(super) fn has_half_left(&self, now: Instant) -> bool {
        let left = self.left(now).cast_unsigned();
        self.start.is_none_or(|start| left > now.saturating_since(start).as_nanos())
    }

    /// What is left of the slice, negative once it is over.
    #[inline]
    pub(super) fn left(&self, now: Instant) -> i64 {
        self.end.as_nanos().wrapping_sub(now.as_nanos()).cast_signed()
    }
}

/// What a turn took.
struct Usage {
    used: Nanos,
    unaccounted: Nanos,
}

impl<T: Trace> Cfq<T> {
    /// The slice of a level, whatever the class:
    ///
    /// `slice + slice / 5 × (4 − level)`
    #[inline]
    pub(super) fn nominal_slice(&self, sync: bool, level: u8) -> Nanos {
        let base = self.tunables.slice(sync).as_nanos();
        Nanos::new(base + base / SLICE_STEP * NORMAL_LEVEL - base / SLICE_STEP * u64::from(level))
    }

    /// The slice that `queue` gets now, and with `low_latency` brings the average number of busy
    /// queues up to date on the way, as Linux does.
    fn take_slice(&mut self, queue: QueueId) -> Nanos {
        let Queue { group, io_prio, .. } = self.queues[queue];
        if !self.tunables.low_latency() {
            return self.nominal_slice(self.queues[queue].sync, io_prio.level());
        }
        let class = if io_prio.class() == IoClass::Rt { IoClass::Rt } else { IoClass::Be };
        let busy = self.refresh_average_busy(group, class);
        self.scaled_slice(queue, busy)
    }

    /// With `low_latency` a slice shrinks so that all busy queues of the group have their turn in
    /// the group's part of `target_latency`, but not below twice the idle time, in proportion:
    ///
    /// `max(slice × have / want, min(slice, 2 × slice_idle × slice / slice_sync))`
    fn scaled_slice(&self, queue: QueueId, busy: u32) -> Nanos {
        let Queue { group, io_prio, sync, .. } = self.queues[queue];
        let nominal = self.nominal_slice(sync, io_prio.level());
        let slice_sync = self.tunables.slice(true).as_nanos();
        let want = slice_sync.wrapping_mul(busy.into());
        let have = self.group_span(group).as_nanos();
        if want <= have {
            return nominal;
        }
        let slice = nominal.as_nanos();
        let idles = self.tunables.slice_idle().as_nanos() * 2;
        let low = slice.min(idles.wrapping_mul(slice) / slice_sync);
        Nanos::new((slice.wrapping_mul(have) / want).max(low))
    }

    /// The group's part of `target_latency`, by its fraction as of its last place on the tree.
    pub(super) fn group_span(&self, group: GroupId) -> Nanos {
        let fraction = u64::from(self.groups[group].fraction);
        Nanos::new((self.tunables.target_latency().as_nanos() * fraction) >> FRACTION_SHIFT)
    }

    /// A mean of busy queues that follows up quickly and down slowly: `(3 × high + low + 2) / 4`
    fn refresh_average_busy(&mut self, group: GroupId, class: IoClass) -> u32 {
        let state = &mut self.groups[group];
        let busy = state.trees.busy_of(class);
        let average = &mut state.average_busy[class as usize];
        let (high, low) = (busy.max(*average), busy.min(*average));
        *average = (3 * high + low + 2) / 4;
        *average
    }

    /// The queue's turn begins.
    pub(super) fn activate(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let since = self.preempted_at.take().unwrap_or(cx.now);
        let state = &mut self.queues[queue];
        let (name, group) = (state.name(), state.group);
        state.turn = Turn { since, ..Turn::begin(cx.now) };
        self.stop_idle_timer(cx);
        self.active = Some(queue);
        let state = &mut self.groups[group];
        state.stats.activated(cx.now, state.queued);
        let Serving { class, workload, .. } = self.serving;
        self.trace.event(cx.now, Event::Active { queue: name, group, class, workload });
    }

    /// The first request of a turn has completed.
    pub(super) fn begin_slice(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let length = self.take_slice(queue);
        let state = &mut self.queues[queue];
        state.turn.start = Some(cx.now);
        state.turn.length = length;
        state.turn.end = cx.now + length;
        self.trace.event(cx.now, Event::Slice { queue: state.name(), length });
    }

    /// Ends the turn of the active queue; what is left of its slice, or was used beyond it, is
    /// carried over to its next placing.
    pub(super) fn expire_with_residue(&mut self, cx: &Cx<'_>, why: ExpireReason) {
        let active = self.active.expect(HAS_TURN);
        let turn = &self.queues[active].turn;
        let residue = if turn.is_fresh() {
            self.take_slice(active).as_nanos().cast_signed()
        } else {
            turn.left(cx.now)
        };
        self.queues[active].residue = residue;
        self.end_turn(cx, active, why, Some(residue));
    }

    /// Ends the turn of the active queue: its group is charged, and it goes where its next turn is
    /// due, or off the trees if it is empty.
    pub(super) fn expire(&mut self, cx: &Cx<'_>, why: ExpireReason) {
        let active = self.active.expect(HAS_TURN);
        self.end_turn(cx, active, why, None);
    }

    fn end_turn(&mut self, cx: &Cx<'_>, queue: QueueId, why: ExpireReason, residue: Option<i64>) {
        if self.queues[queue].turn.awaiting {
            self.stop_idle_timer(cx);
        }
        let state = &mut self.queues[queue];
        state.turn.awaiting = false;
        state.turn.busy_wait = false;
        if state.shared && state.is_seeky() && !std::mem::replace(&mut state.to_split, true) {
            self.trace.event(cx.now, Event::SplitPlanned { queue: state.name() });
        }
        self.charge(cx, queue, why, residue);
        if self.queues[queue].is_empty() {
            self.unlist(cx, queue);
        } else {
            self.place(cx, queue);
            self.index_position(queue);
        }
        self.active = None;
        if let Some(ioc) = self.active_context.take() {
            self.free_context_if_unused(ioc);
        }
    }

    /// Charges the queue's group for the turn and puts it where it belongs then.
    fn charge(&mut self, cx: &Cx<'_>, queue: QueueId, why: ExpireReason, residue: Option<i64>) {
        let state = &self.queues[queue];
        let (group, name, turn) = (state.group, state.name(), state.turn);
        let whole = self.tunables.charge_whole_turn();
        let Usage { used, unaccounted } =
            if whole { whole_usage(cx, &turn) } else { usage(cx, &turn) };
        let iops_mode = self.iops_mode();
        let charge = if iops_mode {
            if whole { self.requests_due(cx, queue, used) } else { turn.sent.into() }
        } else if whole {
            used.as_nanos()
        } else if !name.sync && self.sync_queues_of(group) == 0 {
            // A group that only writes back is charged for the whole slice, which it gives up
            // early to nobody of its own.
            turn.length.as_nanos()
        } else {
            used.as_nanos()
        };
        let vdisktime = self.charge_group(cx, group, charge);
        self.save_workload(cx, group);
        let state = &mut self.groups[group];
        state.stats.charged(cx.now, used, unaccounted, state.queued);
        self.trace.event(
            cx.now,
            Event::Expired {
                queue: name,
                group,
                why,
                residue,
                used,
                unaccounted,
                sent: turn.sent,
                charge,
                iops_mode,
                sectors: turn.sectors,
                vdisktime: vdisktime.0,
                min_vdisktime: self.group_tree.min_vdisktime().0,
            },
        );
    }

    /// The requests that a turn sent, or that others would have sent in its time, if it was waited
    /// for while they had some. A turn that could have gone on shows how many that are.
    fn requests_due(&mut self, cx: &Cx<'_>, queue: QueueId, time: Nanos) -> u64 {
        let state = &self.queues[queue];
        let (turn, sent) = (&state.turn, u64::from(state.turn.sent));
        if turn.waited {
            return sent.max(self.pace.served_in(time));
        }
        if !state.is_empty() && turn.is_over(cx.now) {
            self.pace.learn(sent, time);
        }
        sent
    }

    /// Listed queues of the group that are neither async nor of the idle class, by their trees.
    fn sync_queues_of(&self, group: GroupId) -> u32 {
        let state = &self.groups[group];
        state.listed - state.trees.busy_async() - state.trees.busy_idle()
    }

    /// The group goes on with the same workload later, if time of it is left.
    fn save_workload(&mut self, cx: &Cx<'_>, group: GroupId) {
        let serving = &self.serving;
        let span = serving.end.saturating_since(cx.now);
        let saved = SavedWorkload { span, class: serving.class, workload: serving.workload };
        self.groups[group].saved = (span > Nanos::ZERO).then_some(saved);
    }

    /// Whether groups are charged for requests instead of time: where no queue is waited for and
    /// the device, for all that is known, queues requests itself.
    pub(super) fn iops_mode(&self) -> bool {
        self.tunables.slice_idle() == Nanos::ZERO && self.may_queue_in_hardware()
    }
}

/// All the time in which a turn kept others from sending. Linux does not count that until the first
/// completion, which is the better part of a short turn.
fn whole_usage(cx: &Cx<'_>, turn: &Turn) -> Usage {
    Usage { used: cx.now.saturating_since(turn.since), unaccounted: Nanos::ZERO }
}

/// The time of a turn: from the beginning of its slice, at most the slice. Where no request has
/// completed, or the first only now, it is that since the activation, at least a tick.
fn usage(cx: &Cx<'_>, turn: &Turn) -> Usage {
    let Some(start) = turn.start.filter(|&start| start != cx.now) else {
        let used = cx.now.saturating_since(turn.dispatch_start).max(cx.device.hz.tick());
        return Usage { used, unaccounted: Nanos::ZERO };
    };
    let taken = cx.now.saturating_since(start);
    let used = taken.min(turn.length);
    let beyond = taken.saturating_sub(used);
    Usage { used, unaccounted: beyond + start.saturating_since(turn.dispatch_start) }
}
