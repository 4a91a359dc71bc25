//! The atomics and locks of this crate: the standard library's, or those of the model checker.

#[cfg(not(feature = "model"))]
#[allow(clippy::disallowed_types, reason = "what `lock::Lock` counts with")]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

#[cfg(feature = "model")]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
