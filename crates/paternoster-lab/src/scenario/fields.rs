//! A scenario as its file has it. What a request is made of is judged here and not by the parser of
//! JSON, which knows neither the request's number nor what is allowed.

use std::fmt::Display;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::change::ChangeFields;
use super::{DeviceModel, Group, LONGEST_NS, Op, Request, Scenario, ScenarioError, Task};

/// What a request is, for somebody who wrote another thing.
const REQUEST: &str = "[think_ns, op, sector, sectors], or with the name of a request as the fifth";

/// Characters of a wrong value that are shown.
const SHOWN: usize = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFields {
    name: String,
    about: String,
    scheduler: String,
    hierarchy: Option<String>,
    kernel: Option<String>,
    tunables: IndexMap<String, i64>,
    hz: u32,
    merges: bool,
    device: DeviceModel,
    groups: Vec<Group>,
    tasks: Vec<TaskFields>,
    #[serde(default)]
    changes: Vec<ChangeFields>,
    #[serde(default)]
    requeued: IndexMap<String, u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFields {
    id: u32,
    group: String,
    ioprio: String,
    start_ns: u64,
    depth: usize,
    #[serde(default)]
    plug: bool,
    requests: Vec<Value>,
}

impl TryFrom<ScenarioFields> for Scenario {
    type Error = ScenarioError;

    fn try_from(fields: ScenarioFields) -> Result<Self, ScenarioError> {
        let tasks = fields.tasks.into_iter().map(Task::try_from).collect::<Result<_, _>>()?;
        let changes = fields.changes.into_iter().enumerate().map(|(index, change)| {
            let of_change = |problem| ScenarioError::Change { index, problem };
            change.judge(&fields.scheduler).map_err(of_change)
        });
        let changes = changes.collect::<Result<_, _>>()?;
        Ok(Self {
            name: fields.name,
            about: fields.about,
            scheduler: fields.scheduler,
            hierarchy: fields.hierarchy.as_deref().map(str::parse).transpose()?,
            kernel: fields.kernel.as_deref().map(str::parse).transpose()?,
            tunables: fields.tunables,
            hz: fields.hz,
            merges: fields.merges,
            device: fields.device,
            groups: fields.groups,
            tasks,
            changes,
            requeued: fields.requeued,
        })
    }
}

impl TryFrom<TaskFields> for Task {
    type Error = ScenarioError;

    fn try_from(fields: TaskFields) -> Result<Self, ScenarioError> {
        let TaskFields { id, group, ioprio, start_ns, depth, plug, requests } = fields;
        let numbered = requests.iter().enumerate().map(|(index, fields)| {
            let of_task = |problem| ScenarioError::Task {
                id,
                problem: format!("request {index}: {problem}"),
            };
            request(fields).map_err(of_task)
        });
        let requests = numbered.collect::<Result<_, _>>()?;
        Ok(Self { id, group, ioprio, start_ns, depth, plug, requests })
    }
}

/// A request, or what is wrong with it.
fn request(fields: &Value) -> Result<Request, String> {
    let list = fields.as_array().ok_or_else(|| wrong("it", fields, REQUEST))?;
    let (think_ns, op, sector, sectors, after) = match list.as_slice() {
        [think_ns, op, sector, sectors] => (think_ns, op, sector, sectors, None),
        [think_ns, op, sector, sectors, after] => (think_ns, op, sector, sectors, Some(after)),
        _ => return Err(wrong(&format!("a list of {}", list.len()), fields, REQUEST)),
    };
    Ok(Request {
        think_ns: number("think_ns", think_ns, &LONGEST_NS)?,
        op: operation(op)?,
        sector: number("sector", sector, &u64::MAX)?,
        sectors: number("sectors", sectors, &u32::MAX)?,
        after: after.map(name).transpose()?,
    })
}

/// A whole number up to `max`.
fn number<N: TryFrom<u64> + Display + PartialOrd>(
    field: &str,
    value: &Value,
    max: &N,
) -> Result<N, String> {
    let number = value.as_u64().and_then(|number| N::try_from(number).ok());
    let number = number.filter(|number| number <= max);
    number.ok_or_else(|| wrong(field, value, &format!("a whole number, 0 to {max},")))
}

fn operation(value: &Value) -> Result<Op, String> {
    let op = value.as_str().and_then(|name| Op::ALL.into_iter().find(|op| op.name() == name));
    op.ok_or_else(|| {
        let names = Op::ALL.map(|op| format!("{:?}", op.name()));
        wrong("op", value, &format!("one of {}", names.join(", ")))
    })
}

/// The name of a request that another waits for; whether there is one is found out as it is run.
fn name(value: &Value) -> Result<String, String> {
    let name = value.as_str().map(str::to_owned);
    name.ok_or_else(|| wrong("the request to wait for", value, "a name such as \"2.7\""))
}

fn wrong(field: &str, value: &Value, allowed: &str) -> String {
    let found = value.to_string();
    let shown = match found.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &found[..end]),
        None => found,
    };
    format!("{field} is {shown}: {allowed} is allowed")
}
