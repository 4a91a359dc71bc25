//! `ctl export`: exports beside those that volumes have of their own, made and removed while
//! clients are served.

use std::path::Path;

use anyhow::Result;
use paternoster_server::ctl::{
    Data, ExportAnswer, ExportsQuestion, RemovalQuestion, fetch_export, fetch_exports,
    patch_export, put_export, remove_export,
};
use serde_json::{Value, json};

use super::columns::Columns;
use super::settings::number_or_text;
use super::units::{Bytes, or_none};
use super::volume::{Answer, changed, keys, of_file, pages, show, stage};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Ask {
    /// Make a read-only export of a volume, as for a backup; the same again does nothing
    Create {
        /// Name of the export: letters, digits and ._-
        name: String,

        /// The volume
        #[arg(long, value_name = "NAME")]
        volume: String,

        /// Where on the volume it starts
        #[arg(long)]
        offset: Option<String>,

        /// Its size, such as 10G; up to the end of the volume unless named
        #[arg(long)]
        size: Option<String>,

        /// Further keys, such as weight=20, group=/backups, limits.rbps=50M or durable=false
        #[arg(value_name = "NAME=VALUE")]
        settings: Vec<String>,

        #[command(flatten)]
        answer: Answer,
    },

    /// List exports that are no volume's own, those that the file declares too
    List {
        /// Those of this volume
        #[arg(long, value_name = "NAME")]
        volume: Option<String>,

        /// Print JSON, an object a page
        #[arg(long)]
        json: bool,
    },

    /// Show what is known of an export, a line each
    Show {
        /// Name of the export
        name: String,

        /// Print the JSON of GET /v1/exports/NAME
        #[arg(long)]
        json: bool,
    },

    /// Change weight, limits or description of an export
    Set {
        /// Name of the export
        name: String,

        /// What to set, such as weight=10 or limits.rbps=20M; NAME= with nothing behind it has the
        /// default again
        #[arg(value_name = "NAME=VALUE", required = true)]
        settings: Vec<String>,

        #[command(flatten)]
        answer: Answer,
    },

    /// Remove an export: no client enters any more, and those that are connected have time to leave
    Remove {
        /// Name of the export
        name: String,

        /// For how long clients are served yet
        #[arg(long, value_name = "TIME", default_value = "30s")]
        drain: String,

        #[command(flatten)]
        answer: Answer,
    },
}

/// Asks, and returns what is to be printed.
pub(super) fn ask(socket: &Path, ask: &Ask) -> Result<String> {
    match ask {
        Ask::Create { name, volume, offset, size, settings, answer } => {
            let mut body = keys(settings)?;
            // Others would overlap with the volume's own.
            body.entry("read_only").or_insert(true.into());
            body.insert("volume".to_owned(), volume.clone().into());
            for (key, value) in [("offset", offset), ("size", size)] {
                let value = value.as_deref().map(number_or_text);
                body.extend(value.map(|value| (key.to_owned(), value)));
            }
            changed(socket, put_export(socket, name, &body.into())?, answer)
        }
        Ask::List { volume, json } => list(socket, volume.as_deref(), *json),
        Ask::Show { name, json } => {
            let (text, export) = fetch_export(socket, name)?;
            Ok(if *json { text } else { show(&json!(export)) })
        }
        Ask::Set { name, settings, answer } => {
            let patch: Value = keys(settings)?.into();
            changed(socket, patch_export(socket, name, &patch)?, answer)
        }
        Ask::Remove { name, drain, answer } => {
            let (drain, data) = (Some(drain.clone()), Data::Keep);
            let question = RemovalQuestion { drain, data, wait: None };
            changed(socket, remove_export(socket, name, &question)?, answer)
        }
    }
}

/// All exports that are asked for, a line each.
fn list(socket: &Path, volume: Option<&str>, json: bool) -> Result<String> {
    let (limit, after, volume) = (Some(1000), None, volume.map(str::to_owned));
    let mut question = ExportsQuestion { volume, limit, after };
    let (text, exports) = pages(|after| {
        question.after = after;
        let (text, page) = fetch_exports(socket, &question)?;
        Ok((text, page.exports, page.next))
    })?;
    Ok(if json { text } else { table(&exports) })
}

fn table(exports: &[ExportAnswer]) -> String {
    let mut columns = Columns::of(exports);
    columns.words("EXPORT", |export| export.name.clone());
    columns.words("ON", |export| export.volume.clone().unwrap_or_else(|| export.disk.clone()));
    columns.numbers("OFFSET", |export| Bytes(export.offset));
    columns.numbers("SIZE", |export| Bytes(export.size));
    columns.words("GROUP", |export| export.group.clone());
    columns.numbers("WEIGHT", |export| or_none(export.weight));
    columns.numbers("CLIENTS", |export| export.clients);
    columns.words("STATE", |export| stage(export.state));
    columns.words("", |export| of_file(export.of_file));
    columns.show(|export| export.why.is_some())
}
