//! The words in the lines of the trace, and how a line can begin.
//!
//! A line of [`LINES`](super::lines::LINES) is text with holes, and each hole takes words of one
//! type: `"raised {queue}: {factor}, for {length}"`. So the rig knows that `raised a: 30` may come
//! where there is a task `a`, and that nothing will ever begin `lifted` or `raised z`.

use paternoster::{
    BudgetEnd, Domain, FairWhy, GroupId, Hierarchy, HoldReason, IoClass, IoPrio, LatencyKind,
    Nanos, PreemptReason, QueueName, SectorCount, ShareOf, SliceEnd, Ticks, Vtime, WaitReason,
    Workload,
};

use super::Rig;

/// What a hole of a line takes.
pub trait Word {
    fn word(&self, rig: &Rig) -> String;

    /// Whether `text` is such a word.
    fn is_one(rig: &Rig, text: &str) -> bool;
}

/// Nanoseconds in milliseconds: `38.5 ms`.
pub fn in_ms(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / 1_000_000, nanos.unsigned_abs() % 1_000_000);
    if rest == 0 {
        return format!("{sign}{whole} ms");
    }
    let rest = format!("{rest:06}");
    format!("{sign}{whole}.{} ms", rest.trim_end_matches('0'))
}

fn is_in_ms(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(text) = text.strip_suffix(" ms") else { return false };
    let text = text.strip_prefix('-').unwrap_or(text);
    text.split_once('.').map_or(number(text), |(whole, rest)| number(whole) && number(rest))
}

impl Word for Nanos {
    fn word(&self, _: &Rig) -> String {
        in_ms(i64::try_from(self.as_nanos()).expect("less than 292 years"))
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        is_in_ms(text)
    }
}

impl Word for Ticks {
    fn word(&self, _: &Rig) -> String {
        format!("{} ticks", self.count())
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        text.strip_suffix(" ticks").is_some_and(|count| count.parse::<i64>().is_ok())
    }
}

impl Word for QueueName {
    fn word(&self, rig: &Rig) -> String {
        let mut tasks = rig.tasks.iter();
        let task = tasks.find(|(_, ioc)| **ioc == self.ioc).map_or("?", |(name, _)| name);
        if self.sync { task.to_owned() } else { format!("async {task}") }
    }

    fn is_one(rig: &Rig, text: &str) -> bool {
        rig.tasks.contains_key(text.strip_prefix("async ").unwrap_or(text))
    }
}

impl Word for GroupId {
    fn word(&self, rig: &Rig) -> String {
        let found = rig.groups.iter().find(|(_, id)| *id == self);
        found.map_or("?", |(path, _)| path).to_owned()
    }

    fn is_one(rig: &Rig, text: &str) -> bool {
        rig.groups.contains_key(text)
    }
}

/// A request, by the bio that it was made of.
pub struct RequestName(pub u64);

impl Word for RequestName {
    fn word(&self, rig: &Rig) -> String {
        rig.names(&[self.0])[0].clone()
    }

    fn is_one(rig: &Rig, text: &str) -> bool {
        rig.bios.iter().any(|bio| bio == text)
    }
}

/// What a request of wfq is charged, in units; shown in thousandths of an op.
pub struct Ops(pub u64);

impl Word for Ops {
    fn word(&self, _: &Rig) -> String {
        ((self.0 * 1000) >> 20).to_string()
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        text.parse::<u64>().is_ok()
    }
}

/// In thousandths of an op a weight, rounded to the nearest.
impl Word for Vtime {
    fn word(&self, _: &Rig) -> String {
        (((self.raw() * 1000) + (1 << 51)) >> 52).to_string()
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        text.parse::<u64>().is_ok()
    }
}

/// A group by its path, its own requests as `own /a`, an I/O context by its task.
impl Word for ShareOf {
    fn word(&self, rig: &Rig) -> String {
        match *self {
            Self::Group(group) => group.word(rig),
            Self::OwnRequests(group) => format!("own {}", group.word(rig)),
            Self::Context(ioc) => QueueName { ioc, sync: true }.word(rig),
            _ => unreachable!("a share of another kind"),
        }
    }

    fn is_one(rig: &Rig, text: &str) -> bool {
        match text.strip_prefix("own ") {
            Some(group) => GroupId::is_one(rig, group),
            None => GroupId::is_one(rig, text) || rig.tasks.contains_key(text),
        }
    }
}

impl Word for SectorCount {
    fn word(&self, _: &Rig) -> String {
        self.0.to_string()
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        text.parse::<u32>().is_ok()
    }
}

/// Words that are written by `Display` and parsed from that again.
macro_rules! shown {
    ($($word:ty),*) => {$(
        impl Word for $word {
            fn word(&self, _: &Rig) -> String {
                self.to_string()
            }

            fn is_one(_: &Rig, text: &str) -> bool {
                text.parse::<$word>().is_ok()
            }
        }
    )*};
}

shown!(u32, u64, bool, IoPrio, Hierarchy);

/// Words of which there are a few, each with what it stands for.
macro_rules! one_of {
    ($($kind:ty: [$($variant:ident),*];)*) => {$(
        impl Word for $kind {
            fn word(&self, _: &Rig) -> String {
                format!("{self:?}")
            }

            fn is_one(_: &Rig, text: &str) -> bool {
                [$(<$kind>::$variant),*].iter().any(|one| format!("{one:?}") == text)
            }
        }
    )*};
}

one_of! {
    IoClass: [Rt, Be, Idle];
    Domain: [Read, Write, Discard, Other];
    LatencyKind: [Total, Device];
    Workload: [Async, SyncNoIdle, Sync];
    SliceEnd: [
        Empty, SliceUsed, WaitBusy, Cooperator, Preempted, IdleClass, AsyncRequests, IdleTimer,
        Exit, Gone, Drain, HierarchySwitched
    ];
    BudgetEnd: [TooIdle, Timeout, Exhausted, NoMoreRequests, Preempted];
    PreemptReason: [
        OverIdleClass, SyncOverAsync, SliceOver, RealTime, NoIdleWorkload, Priority, NotIdling,
        Close, InTime, Class, Weight
    ];
    WaitReason: [
        IdleTimer, InFlight, GroupInFlight, GateAsyncDrains, GateSyncDrains, GateDepth, OneAtATime,
        NoToken, Kept, DeviceFull, Target, Capped
    ];
    FairWhy: [Weight, Reserved];
    HoldReason: [Cap, Kept, Target];
}

/// A flag, and the words for it.
macro_rules! either {
    ($($(#[$doc:meta])* $name:ident: $yes:literal or $no:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub bool);

        impl Word for $name {
            fn word(&self, _: &Rig) -> String {
                if self.0 { $yes } else { $no }.to_owned()
            }

            fn is_one(_: &Rig, text: &str) -> bool {
                [$yes, $no].contains(&text)
            }
        }
    )*};
}

either! {
    /// Whether something is so from now on.
    Switch: "on" or "off";
    /// Whether a queue is idled for for the sake of its group.
    ForGroup: " for its group" or "";
    /// Whether a queue in service was slow.
    Slow: "slow" or "fast";
}

/// What a group of CFQ is charged: nanoseconds, or requests in IOPS mode.
pub struct Charge {
    pub charge: u64,
    pub iops_mode: bool,
}

impl Word for Charge {
    fn word(&self, rig: &Rig) -> String {
        if self.iops_mode {
            return format!("{} requests", self.charge);
        }
        Nanos::new(self.charge).word(rig)
    }

    fn is_one(rig: &Rig, text: &str) -> bool {
        text.strip_suffix(" requests").map_or(is_in_ms(text), |count| u64::is_one(rig, count))
    }
}

/// What is left of a slice of CFQ, if that is carried over.
pub struct Residue(pub Option<i64>);

impl Word for Residue {
    fn word(&self, _: &Rig) -> String {
        self.0.map_or("no residue".to_owned(), |ns| format!("residue {}", in_ms(ns)))
    }

    fn is_one(_: &Rig, text: &str) -> bool {
        text == "no residue" || text.strip_prefix("residue ").is_some_and(is_in_ms)
    }
}

/// A hole's name, and whether a text is a word that it takes.
pub type Hole = (&'static str, fn(&Rig, &str) -> bool);

/// Whether a line of this template can begin with `text`, which ends where a word ends.
pub fn can_begin(rig: &Rig, template: &str, holes: &[Hole], text: &str) -> bool {
    let (literal, rest) = template.split_once('{').unwrap_or((template, ""));
    let Some(text) = text.strip_prefix(literal) else {
        return begins(literal, text);
    };
    let Some((name, rest)) = rest.split_once('}') else { return text.is_empty() };
    let (_, is_one) = holes.iter().find(|(hole, _)| *hole == name).expect("each hole has a type");
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    text.is_empty()
        || ends.into_iter().any(|end| {
            let (word, behind) = text.split_at(end);
            is_one(rig, word) && can_begin(rig, rest, holes, behind)
        })
}

/// Whether `line` begins with `text`, and there a word ends.
pub fn begins(line: &str, text: &str) -> bool {
    let rest = line.strip_prefix(text);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}
