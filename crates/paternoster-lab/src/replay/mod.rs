//! Replays a trace under another scheduler, in virtual time, and says how wrong that may be.
//!
//! A trace has when requests came. Under another scheduler they would have come at other times: who
//! waits for an answer asks later where it comes later. So what is kept of a trace is not when a
//! request came but *behind what*:
//!
//! ```text
//!   recorded   reply 1 ──────── think ──▶ request 3         reply 1 ── think ──▶ request 3
//!   replayed          reply 1 ─── think ──▶ request 3
//! ```
//!
//! A request that came while its context had a reply that no request had claimed claims the oldest
//! of these, and is due as long behind the reply of that *number* in the replay, whichever request
//! it answers. Another is of a *burst*, and is due as long behind the request before it. So as many
//! requests are outstanding as were, and in their order; and under its own scheduler a recording
//! comes out again.
//!
//! | file | decides |
//! |---|---|
//! | `recording.rs` | what is replayed: the requests of each context, and whose they are |
//! | `claims.rs` | behind what each request is due |
//! | `clock.rs` | whether a context waits for replies at all, or has a timer |
//! | `streams.rs` | the workload: which request is next, and when |
//! | `run.rs` | one replay: the device, the scheduler, and what each group got |
//! | `predict.rs` | a prediction: several replays, and how far they are from what was recorded |

mod claims;
mod clock;
mod group_file;
mod predict;
mod recording;
mod run;
mod streams;

pub use clock::Nature;
pub use group_file::{GroupFile, GroupFileError};
pub use predict::{Errors, Figures, Predicted, Prediction, Predictor};
pub use recording::{Context, Recording};
pub use run::{Arrivals, Dependency, End, GotGroup, Options, Outcome, ReplayError, as_recorded};
