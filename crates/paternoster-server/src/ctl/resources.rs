//! The resources of the control plane: one table, from which come the answers to a path or a method
//! that there is not, and the document of `OpenAPI` at `/v1/openapi.json`.
//!
//! Bodies and answers are described in `schemas.rs`.

use serde_json::{Map, Value, json};

use super::schemas::{reference, schemas};

pub(super) const STAT: &str = "/v1/stat";
pub(super) const GROUPS: &str = "/v1/groups/settings";
pub(super) const ALL_GROUPS: &str = "/v1/groups";
pub(super) const GROUP: &str = "/v1/groups/{path}";
pub(super) const SETTINGS: &str = "/v1/disks/settings";
pub(super) const RELOAD: &str = "/v1/reload";
pub(super) const HANDOVER: &str = "/v1/handover";
pub(super) const TRACE: &str = "/v1/trace";
pub(super) const RECORDINGS: &str = "/v1/recordings";
pub(super) const METRICS: &str = "/metrics";
pub(super) const POOLS: &str = "/v1/pools";
pub(super) const POOL: &str = "/v1/pools/{name}";
pub(super) const VOLUMES: &str = "/v1/volumes";
pub(super) const VOLUME: &str = "/v1/volumes/{name}";
pub(super) const REOPEN: &str = "/v1/volumes/{name}/reopen";
pub(super) const QUIESCE: &str = "/v1/volumes/{name}/quiesce";
pub(super) const RESUME: &str = "/v1/volumes/{name}/resume";
pub(super) const EXPORTS: &str = "/v1/exports";
pub(super) const EXPORT: &str = "/v1/exports/{name}";
pub(super) const OPERATION: &str = "/v1/operations/{id}";
pub(super) const EXPORT_CONFIG: &str = "/v1/export-config";
pub(super) const OPENAPI: &str = "/v1/openapi.json";
/// The header of every answer, with the UUID of the directory of records.
pub(super) const INSTANCE: &str = "paternoster-instance";

/// What can be asked of a resource.
struct Operation {
    method: &'static str,
    summary: &'static str,
    /// Parameters of the query, and what they do.
    query: &'static [(&'static str, &'static str)],
    /// The schema of the body, if it takes one.
    body: Option<&'static str>,
    /// The schemas of answers that are no problem, by status.
    answers: &'static [(u16, &'static str)],
}

const fn get(
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    answer: &'static [(u16, &'static str)],
) -> Operation {
    Operation { method: "GET", summary, query, body: None, answers: answer }
}

const fn change(
    method: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
    answers: &'static [(u16, &'static str)],
) -> Operation {
    Operation { method, summary, query, body, answers }
}

const LIMIT: (&str, &str) = ("limit", "How many at most, 1 to 1000; 100 if missing.");
const AFTER: (&str, &str) = ("after", "Those behind this name: the `next` of the page before.");
const DRAIN: (&str, &str) =
    ("drain", "How long clients have to leave, such as `30s`, which it is if missing.");
const WAIT: (&str, &str) =
    ("wait", "How long to wait for it, such as `2s`, which it is if missing; at most `5s`.");

/// All resources.
const RESOURCES: &[(&str, &[Operation])] = &[
    (
        STAT,
        &[get(
            "The state of every disk and group; with `pool`, `group`, `limit`, `after` or \
             `volumes=true`, a page of it.",
            &[
                ("verbose", "`true` reports queues too, beside the whole state alone."),
                ("pool", "This disk or pool alone."),
                ("group", "This group alone, and groups below it."),
                LIMIT,
                ("after", "Groups behind this path: the `next` of the page before."),
                ("volumes", "`true` reports the volumes of these groups too."),
            ],
            &[(200, "Any")],
        )],
    ),
    (
        GROUPS,
        &[
            get(
                "What is set of a group.",
                &[("group", "Its path; required."), ("disk", "One disk alone.")],
                &[(200, "Any")],
            ),
            change("PUT", "Changes what is set of a group.", &[], Some("Any"), &[(200, "Any")]),
        ],
    ),
    (
        SETTINGS,
        &[
            get("What is set of every disk.", &[], &[(200, "Any")]),
            change("PUT", "Changes what is set of a disk.", &[], Some("Any"), &[(200, "Any")]),
        ],
    ),
    (
        RELOAD,
        &[change(
            "POST",
            "Reads the file again.",
            &[("dry_run", "`true` changes nothing.")],
            None,
            &[(200, "Any")],
        )],
    ),
    (
        HANDOVER,
        &[
            get("How another server can take over.", &[], &[(200, "Any")]),
            change(
                "POST",
                "Has SIGTERM, within a minute, leave all to the service manager.",
                &[],
                None,
                &[(200, "Any")],
            ),
        ],
    ),
    (
        TRACE,
        &[get(
            "What a disk's scheduler decides, a JSON object a line, for as long as it is read.",
            &[
                ("disk", "The disk; required."),
                ("group", "A group's lines alone, and those of groups below it."),
                ("seconds", "For how long."),
            ],
            &[(200, "Text")],
        )],
    ),
    (
        RECORDINGS,
        &[
            get(
                "The newest recording of each disk, and how far it is.",
                &[("disk", "One disk alone.")],
                &[(200, "Recordings")],
            ),
            change(
                "POST",
                "Writes a disk's requests to files of the server's machine from now on, or those \
                 that it still has.",
                &[],
                Some("NewRecording"),
                &[(200, "Recordings")],
            ),
            change(
                "DELETE",
                "Ends a recording, when all is written.",
                &[("disk", "The disk; required.")],
                None,
                &[(200, "Recordings")],
            ),
        ],
    ),
    (METRICS, &[get("The state, as Prometheus reads it.", &[], &[(200, "Text")])]),
    (POOLS, &[get("The pools.", &[], &[(200, "Pools")])]),
    (POOL, &[get("A pool.", &[], &[(200, "Pool")])]),
    (
        VOLUMES,
        &[get(
            "Volumes of pools, by name.",
            &[
                ("pool", "Those of a pool alone."),
                ("group", "Those of a group alone, and of groups below it."),
                LIMIT,
                AFTER,
            ],
            &[(200, "Volumes")],
        )],
    ),
    (
        VOLUME,
        &[
            get("A volume.", &[], &[(200, "Volume")]),
            change(
                "PUT",
                "Makes a volume, or has the one of that name be as the body says. With \
                 `If-None-Match: *` one that is there is an error.",
                &[WAIT],
                Some("NewVolume"),
                &[(201, "Volume"), (200, "Volume"), (202, "Operation")],
            ),
            change(
                "PATCH",
                "Changes a volume by a JSON merge patch (RFC 7396).",
                &[WAIT],
                Some("VolumePatch"),
                &[(200, "Volume"), (202, "Operation")],
            ),
            change(
                "DELETE",
                "Removes a volume, when its clients have left or their time is over.",
                &[
                    DRAIN,
                    (
                        "data",
                        "`keep`, or `delete`: refused if the image was there before the volume.",
                    ),
                    WAIT,
                ],
                None,
                &[(200, "Removed"), (202, "Operation")],
            ),
        ],
    ),
    (
        REOPEN,
        &[change(
            "POST",
            "Opens a volume's image again, while it has no clients.",
            &[WAIT],
            None,
            &[(200, "Volume"), (202, "Operation")],
        )],
    ),
    (
        QUIESCE,
        &[change(
            "POST",
            "Has requests wait, and disconnects from a volume's remote server once everything is \
             durable: it may then restart.",
            &[WAIT],
            None,
            &[(200, "Volume"), (202, "Operation")],
        )],
    ),
    (
        RESUME,
        &[change(
            "POST",
            "Connects to a volume's remote server again, and goes on with what waits.",
            &[WAIT],
            None,
            &[(200, "Volume"), (202, "Operation")],
        )],
    ),
    (
        EXPORTS,
        &[get(
            "Exports beside those that volumes have of their own, by name.",
            &[("volume", "Those of a volume alone."), LIMIT, AFTER],
            &[(200, "Exports")],
        )],
    ),
    (
        EXPORT,
        &[
            get("An export that is not a volume's own.", &[], &[(200, "Export")]),
            change(
                "PUT",
                "Makes a read-only export of a volume, or has the one of that name be as the body \
                 says. With `If-None-Match: *` one that is there is an error.",
                &[WAIT],
                Some("NewExport"),
                &[(201, "Export"), (200, "Export"), (202, "Operation")],
            ),
            change(
                "PATCH",
                "Changes weight, limits and description of an export by a JSON merge patch.",
                &[WAIT],
                Some("ExportPatch"),
                &[(200, "Export"), (202, "Operation")],
            ),
            change(
                "DELETE",
                "Removes an export, when its clients have left or their time is over.",
                &[DRAIN, WAIT],
                None,
                &[(200, "Removed"), (202, "Operation")],
            ),
        ],
    ),
    (
        ALL_GROUPS,
        &[get(
            "All groups, by path, with what the file or a request sets.",
            &[],
            &[(200, "Groups")],
        )],
    ),
    (
        GROUP,
        &[
            get("A group; its path is percent-encoded: `%2Fgold`.", &[], &[(200, "Group")]),
            change(
                "PUT",
                "Makes a group, or has the one of that path be as the body says.",
                &[],
                Some("NewGroup"),
                &[(201, "Group"), (200, "Group")],
            ),
            change(
                "PATCH",
                "Changes a group by a JSON merge patch; one of the file until that is read again.",
                &[],
                Some("GroupPatch"),
                &[(200, "Group")],
            ),
            change(
                "DELETE",
                "Removes a group that was made by request, and has no exports.",
                &[],
                None,
                &[(200, "Removed")],
            ),
        ],
    ),
    (
        OPERATION,
        &[get("A change that took longer than somebody waited.", &[], &[(200, "Operation")])],
    ),
    (
        EXPORT_CONFIG,
        &[get(
            "What requests have made (volumes, exports, groups), as a file declares it (TOML).",
            &[],
            &[(200, "Text")],
        )],
    ),
    (OPENAPI, &[get("This document.", &[], &[(200, "Any")])]),
];

/// The paths of all.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    RESOURCES.iter().map(|(path, _)| *path)
}

/// The methods that a path takes; none if there is no such path.
pub(super) fn methods(path: &str) -> Option<Vec<&'static str>> {
    let is_that = |template: &str| {
        let (parts, asked) = (template.split('/'), path.split('/'));
        parts.clone().count() == asked.clone().count()
            && parts.zip(asked).all(|(part, asked)| part == asked || part.starts_with('{'))
    };
    let (_, operations) = RESOURCES.iter().find(|(template, _)| is_that(template))?;
    Some(operations.iter().map(|operation| operation.method).collect())
}

/// The document of `OpenAPI`.
pub(super) fn document() -> Value {
    let paths = RESOURCES.iter().map(|(path, operations)| {
        let mut item: Map<_, _> = operations
            .iter()
            .map(|operation| (operation.method.to_lowercase(), operation.described()))
            .collect();
        let names = path.split(['{', '}']).skip(1).step_by(2);
        let parameters: Vec<_> = names
            .map(|name| {
                let schema = json!({"type": if name == "id" { "integer" } else { "string" }});
                json!({"name": name, "in": "path", "required": true, "schema": schema})
            })
            .collect();
        if !parameters.is_empty() {
            item.insert("parameters".to_owned(), parameters.into());
        }
        ((*path).to_owned(), Value::Object(item))
    });
    json!({
        "openapi": "3.1.0",
        "info": {"title": "The control socket of a server", "version": env!("CARGO_PKG_VERSION")},
        "servers": [{"url": "/"}],
        "paths": Value::Object(paths.collect()),
        "components": {"schemas": schemas()},
    })
}

impl Operation {
    fn described(&self) -> Value {
        let content = |kind: &str, schema: &str| json!({kind: {"schema": reference(schema)}});
        let header = |what: &str| json!({"description": what, "schema": {"type": "string"}});
        let headers = json!({INSTANCE: header("The UUID of the `state_dir`, if there is one.")});
        let answers = self.answers.iter().map(|(status, schema)| {
            let kind = if *schema == "Text" { "text/plain" } else { "application/json" };
            let (content, mut headers) = (content(kind, schema), headers.clone());
            if *status == 202 {
                headers["Location"] = header("The operation.");
            }
            let answer = json!({"description": schema, "content": content, "headers": headers});
            (status.to_string(), answer)
        });
        let problem = content("application/problem+json", "Problem");
        let problem =
            json!({"description": "What is wrong.", "content": problem, "headers": headers});
        let answers = answers.chain([("default".to_owned(), problem)]);
        let parameters = self.query.iter().map(|(name, what)| {
            let kind = match *name {
                "limit" => "integer",
                "verbose" | "volumes" | "dry_run" => "boolean",
                _ => "string",
            };
            let schema = json!({"type": kind});
            json!({"name": name, "in": "query", "description": what, "schema": schema})
        });
        let makes = self.method == "PUT" && self.answers.contains(&(202, "Operation"));
        let only_new = makes.then(|| {
            let what = "What is there is an error (412).";
            let schema = json!({"const": "*"});
            json!({"name": "If-None-Match", "in": "header", "description": what, "schema": schema})
        });
        let parameters = parameters.chain(only_new);
        let mut described = json!({
            "summary": self.summary,
            "parameters": parameters.collect::<Vec<_>>(),
            "responses": Value::Object(answers.collect()),
        });
        if let Some(body) = self.body {
            let content = content("application/json", body);
            described["requestBody"] = json!({"required": true, "content": content});
        }
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_takes_the_methods_of_its_resource() {
        assert_eq!(methods("/v1/volumes"), Some(vec!["GET"]));
        assert_eq!(methods("/v1/volumes/a"), Some(vec!["GET", "PUT", "PATCH", "DELETE"]));
        assert_eq!(methods("/v1/volumes/a/reopen"), Some(vec!["POST"]));
        assert_eq!(methods("/v1/volumes/a/b"), None);
    }
}
