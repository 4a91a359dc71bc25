//! How a scheduler declares its events: once, with all that logs and reports say of them.
//!
//! [`events!`] makes an enum of declarations like this one:
//!
//! ```text
//!   /// The slice of the active queue begins.      the event's documentation, in FORMAT.md too
//!   Slice => "slice" {                             its name in logs, if they have such lines
//!       /// The queue.
//!       queue: QueueName => "q",                   a field, and its name in logs
//!       /// Its length.
//!       length: Nanos => "ns",
//!   } says "the slice of {queue} begins: {length}";    the sentence of a report
//! ```
//!
//! A field without a name in logs is for sentences and for programs. Behind its name may stand the
//! [`Value`] that logs and sentences have of it. A sentence may depend on the fields: of several
//! the first is said whose condition holds.
//!
//! [`reasons!`] makes the enums that fields hold: `Variant = "name in logs", "text";`.

use crate::arena::{GroupId, IocId, RequestId};
use crate::hierarchy::Hierarchy;
use crate::io_context::{IoClass, IoPrio};
use crate::request::{Direction, Op, Sector, SectorCount};
use crate::time::{Instant, Nanos, Ticks};
use crate::trace::{QueueName, ShareOf, Workload};
use crate::wfq::Vtime;

/// What there is to know of an event of a scheduler, whatever its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventInfo {
    /// Its name in logs; empty if they have no such lines.
    pub line: &'static str,
    /// When it happens.
    pub doc: &'static str,
    /// Its fields, in the order of its line.
    pub fields: &'static [FieldInfo],
    /// The sentences of a report, of which one is said.
    pub sentences: &'static [&'static str],
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldInfo {
    /// Its name in Rust, and in braces in sentences.
    pub name: &'static str,
    /// Its name in logs; empty if lines do not have it.
    pub key: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What it may be, if that is one of a few words.
    pub words: &'static [Word],
}

/// One of a few values that a field may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// Its name in logs; empty if they do not have it.
    pub name: &'static str,
    /// What it means.
    pub text: &'static str,
}

/// The value of a field, as logs and sentences have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing, or what neither lines nor sentences have.
    None,
    /// A group.
    Group(GroupId),
    /// A queue.
    Queue(QueueName),
    /// Who has a share.
    Share(ShareOf),
    /// A request, by the user data of the bio that it was made of.
    Request(u64),
    /// A number.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// Whether something is so.
    Flag(bool),
    /// A time; lines have nanoseconds.
    Span(Nanos),
    /// A time of which lines have milliseconds.
    Millis(Nanos),
    /// A rate in sectors a microsecond × 2¹⁶.
    Rate(u32),
    /// A virtual time of wfq.
    Tag(Vtime),
    /// A class; lines have its number.
    Class(IoClass),
    /// A class and a workload of CFQ.
    Tree(IoClass, Workload),
    /// One of a few words.
    Word(&'static Word),
}

/// An event of a scheduler as data.
pub trait EventData {
    /// Returns what there is to know of it, whatever its values.
    fn info(&self) -> &'static EventInfo;

    /// Returns the sentence that a report says of it, with names of fields in braces; empty if it
    /// says nothing. Behind the name of a number that is a time in nanoseconds stands `:ns`.
    fn sentence(&self) -> &'static str;

    /// Hands out its fields with their values, in the order of its line.
    fn each_field(&self, take: &mut dyn FnMut(&'static FieldInfo, Value));
}

/// What a field may hold.
pub(crate) trait FieldValue: Copy {
    /// What it may be, if that is one of a few words.
    const WORDS: &'static [Word] = &[];

    fn value(self) -> Value;
}

macro_rules! field_values {
    ($($Type:ty: $held:ident => $value:expr;)+) => {
        $(impl FieldValue for $Type {
            fn value(self) -> Value {
                let $held = self;
                $value
            }
        })+
    };
}

field_values! {
    GroupId: group => Value::Group(group);
    QueueName: queue => Value::Queue(queue);
    IocId: ioc => Value::Share(ShareOf::Context(ioc));
    ShareOf: share => Value::Share(share);
    u32: number => Value::Number(number.into());
    u64: number => Value::Number(number);
    i64: number => Value::Signed(number);
    Option<i64>: number => number.map_or(Value::None, Value::Signed);
    Option<u32>: number => number.map_or(Value::None, |number| Value::Number(number.into()));
    SectorCount: sectors => Value::Number(sectors.0.into());
    Ticks: ticks => Value::Signed(ticks.count());
    bool: flag => Value::Flag(flag);
    Option<bool>: flag => Value::Signed(flag.map_or(-1, i64::from));
    Nanos: span => Value::Span(span);
    Vtime: tag => Value::Tag(tag);
    IoClass: class => Value::Class(class);
    // Neither lines nor sentences have these.
    Option<Instant>: _at => Value::None;
    Op: _op => Value::None;
    Sector: _sector => Value::None;
    RequestId: _key => Value::None;
    IoPrio: _io_prio => Value::None;
    Hierarchy: _hierarchy => Value::None;
}

impl FieldValue for Direction {
    const WORDS: &'static [Word] =
        &[Word { name: "R", text: "reads" }, Word { name: "W", text: "writes" }];

    fn value(self) -> Value {
        Value::Word(match self {
            Self::Read => &Self::WORDS[0],
            Self::Write => &Self::WORDS[1],
        })
    }
}

impl IoClass {
    /// Returns its name in logs, and its text.
    pub const fn word(self) -> &'static Word {
        match self {
            Self::Rt => &Word { name: "rt", text: "real-time" },
            Self::Be => &Word { name: "be", text: "best effort" },
            Self::Idle => &Word { name: "idle", text: "idle class" },
        }
    }
}

/// Returns the sentence whose condition is the first that holds.
pub(crate) fn first_that_holds<const N: usize>(all: [(bool, &'static str); N]) -> &'static str {
    all.iter().find(|(holds, _)| *holds).map_or("", |(_, sentence)| sentence)
}

/// Declares the events of a scheduler, as the head of this file says.
macro_rules! events {
    (
        $(#[$outer:meta])*
        pub enum $Event:ident;
        $(
            $(#[doc = $doc:literal])+
            $Variant:ident $(=> $line:literal)? $({ $(
                $(#[doc = $field_doc:literal])+
                $field:ident: $Type:ty $(=> $key:literal $(= $value:expr)?)?,
            )+ })?
            $(says $sentence:literal)?
            $(says { $($when:expr => $either:literal,)+ })?
            ;
        )+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $Event {
            $(
                $(#[doc = $doc])+
                $Variant $({ $( $(#[doc = $field_doc])+ $field: $Type, )+ })?,
            )+
        }

        impl $Event {
            /// What there is to know of each event.
            pub const TABLE: &'static [$crate::EventInfo] = &[
                $($crate::EventInfo {
                    line: concat!("" $(, $line)?),
                    doc: concat!($($doc),+).trim_ascii_start(),
                    fields: &[$($($crate::FieldInfo {
                        name: stringify!($field),
                        key: concat!("" $(, $key)?),
                        doc: concat!($($field_doc),+).trim_ascii_start(),
                        words: <$Type as $crate::trace::declare::FieldValue>::WORDS,
                    },)+)?],
                    sentences: &[$($sentence)? $($($either),+)?],
                },)+
            ];
        }

        impl $crate::EventData for $Event {
            fn info(&self) -> &'static $crate::EventInfo {
                enum Row { $($Variant,)+ }
                let row = match self { $(Self::$Variant { .. } => Row::$Variant,)+ };
                &Self::TABLE[row as usize]
            }

            fn sentence(&self) -> &'static str {
                match *self {
                    $(Self::$Variant $({ $($field),+ })? => {
                        $($(let _ = $field;)+)?
                        $crate::trace::declare::first_that_holds([
                            $((true, $sentence),)?
                            $($(($when, $either),)+)?
                            (true, ""),
                        ])
                    })+
                }
            }

            fn each_field(
                &self,
                take: &mut dyn FnMut(&'static $crate::FieldInfo, $crate::Value),
            ) {
                let mut fields = self.info().fields.iter();
                let mut next = |value| {
                    if let Some(field) = fields.next() {
                        take(field, value);
                    }
                };
                match *self {
                    $(Self::$Variant $({ $($field),+ })? => {
                        $($(let _ = $field;)+)?
                        $($(next(events!(@value $field $($($value)?)?));)+)?
                    })+
                }
            }
        }
    };
    (@value $field:ident) => { $crate::trace::declare::FieldValue::value($field) };
    (@value $field:ident $value:expr) => { $value };
}
pub(crate) use events;

/// Declares what a field of an event may be: words with their names in logs, if they are in logs,
/// and their texts.
macro_rules! reasons {
    (
        $(#[$outer:meta])*
        pub enum $Reason:ident;
        $( $(#[$more:meta])* $Variant:ident $(= $name:literal)?, $text:literal; )+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::doc_markdown, reason = "reports show the texts, too")]
        pub enum $Reason {
            $( #[doc = $text] #[doc = ""] $(#[$more])* $Variant, )+
        }

        impl $Reason {
            /// All of them, in their order.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$Variant),+];
            /// How many there are.
            pub const COUNT: usize = <Self as $crate::trace::declare::FieldValue>::WORDS.len();

            /// Returns its name in logs, and its text.
            pub const fn word(self) -> &'static $crate::Word {
                &<Self as $crate::trace::declare::FieldValue>::WORDS[self as usize]
            }
        }

        impl $crate::trace::declare::FieldValue for $Reason {
            const WORDS: &'static [$crate::Word] =
                &[$($crate::Word { name: concat!("" $(, $name)?), text: $text }),+];

            fn value(self) -> $crate::Value {
                $crate::Value::Word(self.word())
            }
        }
    };
}
pub(crate) use reasons;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::SchedulerKind;
    use crate::trace::{CfqEvent, ElevatorEvent, SliceEnd};

    #[test]
    fn sentence_names_fields_of_its_event_alone() {
        let events = SchedulerKind::ALL.into_iter().flat_map(|kind| kind.events().concat());
        let mut checked = 0;
        for event in events.chain(ElevatorEvent::TABLE.iter().copied()) {
            for name in
                event.sentences.iter().flat_map(|text| text.split(['{', '}']).skip(1).step_by(2))
            {
                let name = name.strip_suffix(":ns").unwrap_or(name);
                assert!(event.fields.iter().any(|field| field.name == name), "{event:?}: {name}");
                checked += 1;
            }
        }
        assert!(checked > 60, "{checked} names");
    }

    #[test]
    fn event_is_told_by_its_declaration() {
        let queue = QueueName { ioc: IocId::default(), sync: true };
        let span = Nanos::from_millis(8);
        let idling = |for_group| CfqEvent::SliceIdling { queue, length: span, for_group };
        assert_eq!(idling(true).info().line, "arm_idle");
        assert!(idling(true).sentence().contains("the group of {queue}"));
        assert!(!idling(false).sentence().contains("group"));
        let mut told = vec![];
        idling(true).each_field(&mut |field, value| told.push((field.key, value)));
        let length = Value::Span(span);
        assert_eq!(
            told,
            [("q", Value::Queue(queue)), ("ns", length), ("group", Value::Flag(true))]
        );
        assert_eq!(SliceEnd::AsyncRequests.word().name, "async_rq");
    }
}
