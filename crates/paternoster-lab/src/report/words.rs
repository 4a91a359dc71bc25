//! A scheduler's decisions, in words: what it does, for whom, and why. The sentences are those that
//! its events are declared with.

use paternoster::{BfqEvent, CfqEvent, DeadlineEvent, ElevatorEvent, Event, Nanos, Value};
use paternoster_trace::Parties as _;
use serde::Serialize;

use super::names::Names;
use crate::result::short_time as time;

/// What a decision means on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// Somebody is served from now on, and nobody else.
    Begin,
    /// Nobody is served from now on.
    End,
    /// The device idles for somebody, up to the next dispatch.
    Idle,
    /// Anything else.
    Mark,
}

impl Role {
    /// The role of an event of a scheduler.
    pub(super) fn of(event: Event) -> Self {
        match event {
            Event::Cfq(CfqEvent::Active { .. })
            | Event::Bfq(BfqEvent::InService { .. })
            | Event::Deadline(DeadlineEvent::Batch { .. }) => Self::Begin,
            Event::Cfq(CfqEvent::SliceExpired { .. })
            | Event::Bfq(BfqEvent::BudgetExpired { .. })
            | Event::Elevator(ElevatorEvent::Drained { .. }) => Self::End,
            Event::Cfq(CfqEvent::SliceIdling { .. })
            | Event::Bfq(BfqEvent::BudgetIdling { .. }) => Self::Idle,
            _ => Self::Mark,
        }
    }
}

/// A decision in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// Whom it is about; nobody in particular if absent.
    pub(super) job: Option<usize>,
    pub(super) text: String,
}

impl Decision {
    /// The decision that an event tells of; none where it tells of requests alone.
    pub(super) fn of(event: Event, names: &Names) -> Option<Self> {
        let sentence = event.data().sentence();
        if sentence.is_empty() {
            return None;
        }
        let (mut values, mut queue) = (vec![], None);
        event.data().each_field(&mut |field, value| {
            values.push((field.name, value));
            if let Value::Queue(name) = value {
                queue.get_or_insert(name);
            }
        });
        let job = queue.and_then(|queue| names.job_of(queue));
        Some(Self { job, text: filled(sentence, &values, names) })
    }
}

/// A sentence with the values in place of the names in braces.
fn filled(sentence: &str, values: &[(&str, Value)], names: &Names) -> String {
    let mut parts = sentence.split(['{', '}']);
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
        let (name, unit) = name.split_once(':').unwrap_or((name, ""));
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let value = match value.expect("a sentence names fields of its event") {
            Value::Number(number) if unit == "ns" => Value::Span(Nanos::new(number)),
            value => value,
        };
        text.push_str(&in_words(value, names));
        text.push_str(rest);
    }
    text
}

fn in_words(value: Value, names: &Names) -> String {
    match value {
        Value::Group(group) => names.group(group).to_owned(),
        Value::Queue(queue) => names.queue(queue),
        Value::Number(number) | Value::Request(number) => number.to_string(),
        Value::Span(span) | Value::Millis(span) => time(span),
        Value::Rate(rate) => format!("{} MiB/s", u64::from(rate) * 512 * 1_000_000 / (1 << 36)),
        Value::Class(class) => class.word().text.to_owned(),
        Value::Tree(class, workload) => {
            format!("{}, {}", class.word().text, workload.word().text)
        }
        Value::Word(word) => word.text.to_owned(),
        Value::Share(share) => names.share(share),
        Value::Signed(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Tag(tag) => tag.raw().to_string(),
        _ => String::new(),
    }
}
