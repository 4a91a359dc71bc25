//! The line of an event: what became of a request, or what the scheduler says of itself. Its name,
//! its fields and their names are those that the event is declared with.

use std::borrow::Cow;

use paternoster::{ElevatorEvent, Event, Instant, Value};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::about::about;
use crate::names::Names;

/// One line.
struct Line<'a> {
    now: Instant,
    tenant: Option<&'a str>,
    name: &'static str,
    fields: &'a [(&'static str, Field<'a>)],
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Number(u64),
    Signed(i64),
    Text(Cow<'a, str>),
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("t", &self.now.since_start().as_nanos())?;
        if let Some(tenant) = self.tenant {
            line.serialize_entry("tenant", tenant)?;
        }
        line.serialize_entry("ev", self.name)?;
        self.fields.iter().try_for_each(|(key, field)| line.serialize_entry(key, field))?;
        line.end()
    }
}

impl Line<'_> {
    fn json(&self) -> String {
        serde_json::to_string(self).expect("a line is plain numbers and texts")
    }
}

/// Returns the line of an event, if there are such lines and it is wanted; completions are told bio
/// by bio, by [`completed`].
pub fn line(now: Instant, event: Event, names: &impl Names) -> Option<String> {
    let name = event.data().info().line;
    if name.is_empty() || matches!(event, Event::Elevator(ElevatorEvent::Completed { .. })) {
        return None;
    }
    let tenant = about(event, names).and_then(|whose| names.tenant(whose));
    if !names.wants(tenant.as_deref()) {
        return None;
    }
    let mut fields = vec![];
    event.data().each_field(&mut |info, value| {
        let has_it = !info.key.is_empty();
        fields.extend(field(value, names).filter(|_| has_it).map(|field| (info.key, field)));
    });
    Some(Line { now, tenant: tenant.as_deref(), name, fields: &fields }.json())
}

/// A value as lines have it. A queue of BFQ keeps the name of its maker when it is merged with
/// others, where the recordings count the shared ones.
fn field(value: Value, names: &impl Names) -> Option<Field<'_>> {
    Some(match value {
        Value::Group(group) => Field::Text(names.group(group)),
        Value::Queue(queue) => Field::Text(names.queue(queue).into()),
        Value::Share(share) => Field::Text(names.share(share).into()),
        Value::Request(bio) => Field::Text(names.request(bio)),
        Value::Number(number) => Field::Number(number),
        Value::Signed(number) => Field::Signed(number),
        Value::Flag(flag) => Field::Number(flag.into()),
        Value::Span(span) => Field::Number(span.as_nanos()),
        Value::Millis(span) => Field::Number(span.as_nanos() / 1_000_000),
        Value::Rate(rate) => Field::Number(rate.into()),
        // A text, since numbers of JSON do not hold it.
        Value::Tag(tag) => Field::Text(tag.raw().to_string().into()),
        Value::Class(class) => Field::Number(class as u64),
        Value::Tree(class, workload) => {
            Field::Text(format!("{}/{}", class.word().name, workload.word().name).into())
        }
        Value::Word(word) => Field::Text(word.name.into()),
        _ => return None,
    })
}

/// Returns the line of a bio that has completed, of that tenant if lines name tenants.
pub fn completed(now: Instant, name: &str, tenant: Option<&str>) -> String {
    Line { now, tenant, name: "C", fields: &[("rq", Field::Text(name.into()))] }.json()
}

/// Returns the line of a task that has exited.
pub fn exited(now: Instant, task: u32) -> String {
    Line { now, tenant: None, name: "exit", fields: &[("task", Field::Number(task.into()))] }.json()
}

/// Returns the line that says that so many events before it are missing.
pub fn dropped(now: Instant, events: u64) -> String {
    Line { now, tenant: None, name: "dropped", fields: &[("events", Field::Number(events))] }.json()
}
