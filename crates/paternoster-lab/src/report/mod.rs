//! A run, or studies, on one page of HTML that needs nothing else.
//!
//! ```text
//!   run ──▶ observe         series.rs, device_windows.rs: windows of time, few however long it is
//!                           chronicle.rs: every event of one window, with words.rs
//!                           paternoster-trace: every event of the run, as lines of a log
//!   observed ──▶ run.rs     the data of the page, as JSON
//!   reports of studies ──▶ studies.rs
//!   data ──▶ page.rs        into the frame, beside the scripts that draw them (../../report)
//! ```
//!
//! A run that is not watched gathers nothing.

mod chronicle;
mod device_shares;
mod device_windows;
mod lines;
mod names;
mod observe;
mod page;
mod parameters;
mod run;
mod series;
mod shares;
mod studies;
mod times;
mod words;

pub use chronicle::Window;
pub use observe::{Observed, Watch, observe_jobs};
pub use run::{JobFile, ModelFile, Run};
pub(crate) use series::Series;
pub(crate) use shares::entitled;
pub use studies::{PageTable, studies_page};
