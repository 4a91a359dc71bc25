//! The control plane: HTTP and JSON on a unix socket.
//!
//! ```text
//!   paternoster ctl, curl --unix-socket PATH
//!        │ client.rs
//!        ▼
//!   GET  /v1/stat                server.rs ──▶ Control, which asks the owners of the disks
//!   GET, PUT  /v1/groups/settings
//!   GET, PUT  /v1/disks/settings
//!   GET  /v1/pools
//!   GET, PUT, PATCH, DELETE  /v1/volumes/NAME, /v1/exports/NAME, /v1/groups/PATH
//!                                  volumes_http.rs
//!   GET  /v1/openapi.json          all of these, as a document: resources.rs
//!   GET  /v1/operations/ID         what takes longer than a client waits: operations.rs
//!   POST /v1/reload
//!   GET, POST  /v1/handover       hand_over.rs
//!   GET  /v1/trace                 trace.rs: an answer that goes on while somebody reads
//!   GET, POST, DELETE  /v1/recordings     record.rs
//!   GET  /metrics                  ../metrics, also on a TCP address of its own
//! ```
//!
//! It has a thread of its own and shares nothing with the path of a request. Every answer, an
//! error too, is a JSON object with a `version`; that of `/metrics` is Prometheus' text.

mod answer;
mod catalogue_error;
mod client;
mod control;
mod export;
mod group;
mod hand_over;
mod operations;
mod place;
mod problem;
mod record;
mod reload;
mod resources;
mod schemas;
mod server;
mod set_by_request;
mod settings;
mod slots;
mod stat_page;
mod trace;
mod volume;
mod volume_client;
mod volumes_http;

pub use answer::OnDisks;
pub use catalogue_error::CatalogueError;
pub use client::{
    CtlError, StatAnswer, arm_hand_over, change_settings, fetch_group, fetch_hand_over,
    fetch_recordings, fetch_settings, fetch_stat, follow_trace, reload, set_group, start_recording,
    stop_recording,
};
pub use control::{Control, StatError};
pub use export::{ExportAnswer, ExportsAnswer, ExportsQuestion};
pub(crate) use group::NewGroup;
pub use group::{GroupAnswer, GroupChange, GroupError, GroupInForce, GroupQuestion};
pub use hand_over::{HandOverAnswer, HandOverError};
pub use operations::{OperationAnswer, OperationState};
pub(crate) use place::{MODE, is_directory_to_be_made, make_directory, makes_directory};
pub use place::{VARIABLE, default_path};
pub use record::{RecordError, RecordQuestion, RecordingStatus, RecordingsAnswer};
pub use reload::{Change, ReloadAnswer, ReloadError, ReloadMode, ReloadNote};
pub use server::{CtlServer, serve};
pub(crate) use server::{metrics_router, serve_metrics};
pub(crate) use set_by_request::SetByRequest;
pub use settings::{DiskChange, SettingError, Settings, SettingsAnswer, SettingsInForce};
pub use stat_page::{StatPage, StatQuestion};
pub use trace::{DecisionLines, TraceError, TraceQuestion, UnknownDisk};
pub(crate) use volume::page_limit;
pub use volume::{
    Data, GroupsAnswer, PoolAnswer, PoolsAnswer, Put, RemovalQuestion, ServedGroup, VolumeAnswer,
    VolumeStage, VolumesAnswer, VolumesQuestion,
};
pub use volume_client::{
    Changed, fetch_export, fetch_export_config, fetch_exports, fetch_groups, fetch_operation,
    fetch_pools, fetch_volume, fetch_volumes, patch_export, patch_volume, put_export, put_group,
    put_volume, quiesce_volume, remove_export, remove_group, remove_volume, reopen_volume,
    resume_volume, wait_for,
};
