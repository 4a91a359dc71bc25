//! `ctl volume`, `ctl group`, `ctl pool` and `ctl operation`: volumes that are made, changed and
//! removed while clients are served.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use paternoster_server::ctl::{
    Changed, Data, OperationAnswer, OperationState, PoolAnswer, RemovalQuestion, ServedGroup,
    VolumeAnswer, VolumeStage, VolumesQuestion, fetch_groups, fetch_operation, fetch_pools,
    fetch_volume, fetch_volumes, patch_volume, put_group, put_volume, quiesce_volume, remove_group,
    remove_volume, reopen_volume, resume_volume, wait_for,
};
use serde_json::{Map, Value, json};

use super::columns::Columns;
use super::settings::{number_or_text, split};
use super::units::{Bytes, or_none};

#[derive(Debug, clap::Subcommand)]
pub(super) enum AskPools {
    /// List the pools: what is used of each, and free
    List {
        /// Print the JSON of GET /v1/pools
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Ask {
    /// Make a volume in a pool, with an export of its name; the same again does nothing
    ///
    /// With a `state_dir` it is there again after a restart, unless durable=false; without one it
    /// is gone when the server ends, and its image stays.
    Create {
        /// Name of the volume: letters, digits and ._-
        name: String,

        /// The pool
        #[arg(long, value_name = "NAME")]
        pool: String,

        /// Its size, such as 10G; that of its source unless named
        #[arg(long)]
        size: Option<String>,

        /// A copy of this read-only volume, or of an image below the pool's path
        #[arg(long, value_name = "NAME", conflicts_with_all = ["path", "uri", "allocated"])]
        template: Option<String>,

        /// Copy the template if the file system cannot share its blocks
        #[arg(long, requires = "template")]
        copy: bool,

        /// Take this image, relative to the pool's path, as it is
        #[arg(long, value_name = "PATH", conflicts_with_all = ["uri", "allocated"])]
        path: Option<String>,

        /// Take this export of another server, in a pool of `backend = "nbd"`
        #[arg(long, value_name = "URI", conflicts_with = "allocated")]
        uri: Option<String>,

        /// Have the file system set all blocks of the image aside
        #[arg(long)]
        allocated: bool,

        /// Further keys, such as weight=200, group=/gold, limits.riops=1000 or `read_only=true`
        #[arg(value_name = "NAME=VALUE")]
        settings: Vec<String>,

        #[command(flatten)]
        answer: Answer,
    },

    /// List volumes, those that the file declares too
    List {
        /// Those of this pool
        #[arg(long, value_name = "NAME")]
        pool: Option<String>,

        /// Those of this group and of groups below it
        #[arg(long, value_name = "PATH")]
        group: Option<String>,

        /// Print JSON, an object a page
        #[arg(long)]
        json: bool,
    },

    /// Show what is known of a volume, a line each
    Show {
        /// Name of the volume
        name: String,

        /// Print the JSON of GET /v1/volumes/NAME
        #[arg(long)]
        json: bool,
    },

    /// Change a volume
    ///
    /// size grows, and weight, limits and description change, while clients are connected; group,
    /// ioprio, `read_only`, `vhost_user` and a smaller size only while none is.
    Set {
        /// Name of the volume
        name: String,

        /// What to set, such as weight=300 or limits.wbps=10M; NAME= with nothing behind it has the
        /// default again
        #[arg(value_name = "NAME=VALUE", required = true)]
        settings: Vec<String>,

        #[command(flatten)]
        answer: Answer,
    },

    /// Give a volume another size; it becomes smaller only while no client is connected
    ///
    /// NBD clients that are connected keep the size that they were told: QEMU takes `block_resize`,
    /// the kernel's client a reconnect. Machines by shared memory are told.
    Resize {
        /// Name of the volume
        name: String,

        /// The size, such as 20G
        size: String,

        #[command(flatten)]
        answer: Answer,
    },

    /// Remove a volume: no client enters any more, and those that are connected have time to leave
    Remove {
        /// Name of the volume
        name: String,

        /// For how long clients are served yet
        #[arg(long, value_name = "TIME", default_value = "30s")]
        drain: String,

        /// Remove the image too; refused if it was there before the volume
        #[arg(long)]
        delete_data: bool,

        #[command(flatten)]
        answer: Answer,
    },

    /// Disconnect from a volume's remote server, which may then restart
    ///
    /// Requests wait, what was answered is flushed, and then the connections end. Clients stay
    /// connected and wait until `resume`, however long that takes.
    Quiesce {
        /// Name of the volume
        name: String,

        #[command(flatten)]
        answer: Answer,
    },

    /// Connect to a volume's remote server again, and go on with what waits
    Resume {
        /// Name of the volume
        name: String,

        #[command(flatten)]
        answer: Answer,
    },

    /// Open a volume's image again, while no client is connected: after a failed sync, or when an
    /// image is back
    Reopen {
        /// Name of the volume
        name: String,

        #[command(flatten)]
        answer: Answer,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum AskGroups {
    /// Make a group for volumes to be in, which stays while it has none; the same again does
    /// nothing
    Create {
        /// Path of the group, such as /gold
        path: String,

        /// What to set, such as weight=300, limits.riops=1000, capacity=1T or volumes=50
        #[arg(value_name = "NAME=VALUE")]
        settings: Vec<String>,
    },

    /// List groups: what is set of each, and how many exports it has
    List {
        /// Print the JSON of GET /v1/groups
        #[arg(long)]
        json: bool,
    },

    /// Remove a group that was made so, and has no exports
    Remove {
        /// Path of the group
        path: String,
    },
}

/// How a change is answered.
#[derive(Debug, clap::Args)]
pub(super) struct Answer {
    /// Print the JSON of the answer
    #[arg(long)]
    json: bool,

    /// Do not wait for a change that takes longer than two seconds: print its number, for `ctl
    /// operation`
    #[arg(long)]
    no_wait: bool,
}

/// Asks, and returns what is to be printed.
pub(super) fn ask(socket: &Path, ask: &Ask) -> Result<String> {
    match ask {
        Ask::Create { name, settings, answer, .. } => {
            let mut body = keys(settings)?;
            body.extend(new(ask));
            changed(socket, put_volume(socket, name, &body.into())?, answer)
        }
        Ask::List { pool, group, json } => list(socket, pool.as_deref(), group.as_deref(), *json),
        Ask::Show { name, json } => {
            let (text, volume) = fetch_volume(socket, name)?;
            Ok(if *json { text } else { show(&json!(volume)) })
        }
        Ask::Set { name, settings, answer } => {
            let patch = keys(settings)?;
            changed(socket, patch_volume(socket, name, &patch.into())?, answer)
        }
        Ask::Resize { name, size, answer } => {
            let patch = json!({"size": number_or_text(size)});
            changed(socket, patch_volume(socket, name, &patch)?, answer)
        }
        Ask::Remove { name, drain, delete_data, answer } => {
            let data = if *delete_data { Data::Delete } else { Data::Keep };
            let question = RemovalQuestion { drain: Some(drain.clone()), data, wait: None };
            changed(socket, remove_volume(socket, name, &question)?, answer)
        }
        Ask::Quiesce { name, answer } => changed(socket, quiesce_volume(socket, name)?, answer),
        Ask::Resume { name, answer } => changed(socket, resume_volume(socket, name)?, answer),
        Ask::Reopen { name, answer } => changed(socket, reopen_volume(socket, name)?, answer),
    }
}

/// The keys of a volume that is to be made, but for those of `NAME=VALUE` arguments.
fn new(ask: &Ask) -> Map<String, Value> {
    let Ask::Create { pool, size, template, copy, path, uri, allocated, .. } = ask else {
        return Map::new();
    };
    let source = match (template, path, uri) {
        (Some(template), ..) => Some(json!({ "template": template })),
        (_, Some(path), _) => Some(json!({ "path": path })),
        (.., Some(uri)) => Some(json!({ "uri": uri })),
        (None, None, None) => allocated.then(|| json!({"new": "allocated"})),
    };
    let keys = [
        ("pool", Some(pool.clone().into())),
        ("size", size.as_deref().map(number_or_text)),
        ("source", source),
        ("copy", copy.then(|| true.into())),
    ];
    let keys = keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    keys.collect()
}

/// What `NAME=VALUE` arguments say; a name with a dot is a key of an object, and nothing is null.
pub(super) fn keys(settings: &[String]) -> Result<Map<String, Value>> {
    let mut keys = Map::new();
    for setting in settings {
        let (name, text) = split(setting, "weight=200 or limits.riops=1000")?;
        let value = match text {
            "" => Value::Null,
            "true" => true.into(),
            "false" => false.into(),
            text => number_or_text(text),
        };
        match name.split_once('.') {
            None => _ = keys.insert(name.to_owned(), value),
            Some((object, key)) => {
                let inner = keys.entry(object).or_insert_with(|| json!({}));
                let Value::Object(inner) = inner else {
                    bail!("{setting:?}: {object} is set beside it; one of both is allowed");
                };
                inner.insert(key.to_owned(), value);
            }
        }
    }
    Ok(keys)
}

/// What has become of a change.
pub(super) fn changed(socket: &Path, changed: Changed, answer: &Answer) -> Result<String> {
    let operation = match changed {
        Changed::Done(json) if answer.json => return Ok(json),
        Changed::Done(json) => {
            let shown: Value = serde_json::from_str(&json)?;
            // Of one that is gone nothing is shown.
            return Ok(if shown["name"].is_null() { String::new() } else { show(&shown) });
        }
        Changed::GoesOn(operation) if answer.no_wait => operation,
        Changed::GoesOn(operation) => wait_for(socket, operation)?,
    };
    shown_operation(&operation, answer.json)
}

/// Shows how far an operation is.
pub(super) fn operation(socket: &Path, id: u64, json: bool) -> Result<String> {
    shown_operation(&fetch_operation(socket, id)?.1, json)
}

fn shown_operation(operation: &OperationAnswer, json: bool) -> Result<String> {
    if json {
        return Ok(serde_json::to_string_pretty(operation)? + "\n");
    }
    let OperationAnswer { id, kind, volume, export, state, problem, clients, until, .. } =
        operation;
    let name = if volume.is_empty() { export } else { volume };
    let problem = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    if let Some(problem) = problem {
        bail!("operation {id}, {kind} of {name:?}: {problem}");
    }
    let state = match state {
        OperationState::Running => "running",
        OperationState::Done => "done",
        OperationState::Failed => "failed",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let left = clients.zip(*until).map(|(clients, until)| {
        format!("; clients: {clients}, closed in {} s at the latest", until.saturating_sub(now))
    });
    let left = left.unwrap_or_default();
    Ok(format!("operation {id}, {kind} of {name:?}: {state}{left}\n"))
}

/// All volumes that are asked for, a line each.
fn list(socket: &Path, pool: Option<&str>, group: Option<&str>, json: bool) -> Result<String> {
    let mut question = VolumesQuestion {
        pool: pool.map(str::to_owned),
        group: group.map(str::to_owned),
        limit: Some(1000),
        after: None,
    };
    let (text, volumes) = pages(|after| {
        question.after = after;
        let (text, page) = fetch_volumes(socket, &question)?;
        Ok((text, page.volumes, page.next))
    })?;
    Ok(if json { text } else { table(&volumes) })
}

/// A page of objects: its text, the objects, and behind which name there are more.
type Page<T> = (String, Vec<T>, Option<String>);

/// Asks for one page behind the other: their texts, and all objects.
pub(super) fn pages<T>(
    mut page: impl FnMut(Option<String>) -> Result<Page<T>>,
) -> Result<(String, Vec<T>)> {
    let (mut text, mut all, mut after) = (String::new(), Vec::new(), None);
    loop {
        let (page, objects, next) = page(after)?;
        text += &page;
        all.extend(objects);
        if next.is_none() {
            return Ok((text, all));
        }
        after = next;
    }
}

fn table(volumes: &[VolumeAnswer]) -> String {
    let mut columns = Columns::of(volumes);
    columns.words("VOLUME", |volume| volume.name.clone());
    columns.words("POOL", |volume| volume.pool.clone());
    columns.numbers("SIZE", |volume| Bytes(volume.size));
    columns.words("GROUP", |volume| volume.group.clone());
    columns.numbers("WEIGHT", |volume| or_none(volume.weight));
    columns.numbers("CLIENTS", |volume| volume.clients);
    columns.words("STATE", |volume| stage(volume.state));
    columns.words("", |volume| of_file(volume.of_file));
    columns.show(|volume| volume.why.is_some())
}

pub(super) fn stage(stage: VolumeStage) -> &'static str {
    match stage {
        VolumeStage::Creating => "creating",
        VolumeStage::Ready => "ready",
        VolumeStage::Poisoned => "poisoned",
        VolumeStage::Quiesced => "quiesced",
        VolumeStage::Draining => "draining",
        VolumeStage::Missing => "missing",
    }
}

/// One volume or export, as `ctl volume set` takes what may change.
pub(super) fn show(shown: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &Value| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "{name}={value}");
    };
    for (name, value) in shown.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("version", _) => {}
            ("limits", Value::Object(limits)) => {
                limits.iter().for_each(|(key, value)| line(&format!("limits.{key}"), value));
            }
            ("uris", Value::Array(uris)) => uris.iter().for_each(|uri| line("uri", uri)),
            (name, value) => line(name, value),
        }
    }
    text
}

/// Asks about groups, and returns what is to be printed.
pub(super) fn groups(socket: &Path, ask: &AskGroups) -> Result<String> {
    match ask {
        AskGroups::Create { path, settings } => {
            put_group(socket, path, &keys(settings)?.into()).map(|_| String::new())
        }
        AskGroups::Remove { path } => remove_group(socket, path).map(|_| String::new()),
        AskGroups::List { json } => {
            let (text, answer) = fetch_groups(socket)?;
            return Ok(if *json { text } else { table_of_groups(&answer.groups) });
        }
    }
    .map_err(Into::into)
}

fn table_of_groups(groups: &[ServedGroup]) -> String {
    let mut columns = Columns::of(groups);
    columns.words("GROUP", |group| group.path.clone());
    columns.numbers("WEIGHT", |group| or_none(group.settings.get("weight")));
    columns.numbers("EXPORTS", |group| group.exports);
    columns.numbers("VOLUMES", |group| {
        let most = group.settings.get("volumes");
        let has = group.volumes_used;
        most.map_or_else(|| has.to_string(), |most| format!("{has} of {most}"))
    });
    columns.numbers("USED", |group| Bytes(group.used));
    columns.numbers("CAPACITY", |group| {
        or_none(group.settings.get("capacity").and_then(Value::as_u64).map(Bytes))
    });
    columns.words("", |group| of_file(group.of_file));
    columns.show(|_| false)
}

/// What is said of what the file declares.
pub(super) fn of_file(is_of_file: bool) -> &'static str {
    if is_of_file { "of the file" } else { "" }
}

/// All pools, a line each.
pub(super) fn pools(socket: &Path, ask: &AskPools) -> Result<String> {
    let AskPools::List { json } = ask;
    let (text, answer) = fetch_pools(socket)?;
    if *json {
        return Ok(text);
    }
    let mut columns = Columns::of(&answer.pools);
    columns.words("POOL", |pool| pool.name.clone());
    columns.words("BACKEND", |pool| pool.backend.clone());
    columns.numbers("VOLUMES", |pool| format!("{} of {}", pool.volumes, pool.volumes_max));
    columns.numbers("USED", |pool| Bytes(pool.used));
    columns.numbers("CAPACITY", |pool| or_none(pool.capacity.map(Bytes)));
    columns.numbers("FREE", |pool| or_none(pool.free.map(Bytes)));
    columns.words("DEVICES", devices);
    columns.words("PATH", |pool| or_none(pool.path.as_ref().map(|path| path.display())));
    Ok(columns.show(|_| false))
}

fn devices(pool: &PoolAnswer) -> String {
    let devices: Vec<_> = pool.devices.iter().map(String::as_str).collect();
    if devices.is_empty() { "unknown".to_owned() } else { devices.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_keys_of_a_body() {
        let settings = ["weight=200", "limits.riops=5", "limits.wbps=1M", "read_only=true", "x="];
        let settings = settings.map(str::to_owned);
        let expected = json!({
            "weight": 200, "limits": {"riops": 5, "wbps": "1M"}, "read_only": true, "x": null,
        });
        assert_eq!(Value::Object(keys(&settings).expect("right")), expected);
        assert!(keys(&["weight".to_owned()]).is_err());
        assert!(keys(&["limits=5".to_owned(), "limits.riops=5".to_owned()]).is_err());
    }
}
