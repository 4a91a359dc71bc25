//! What the answers of several resources have in common.

use std::fmt;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::stat::Stat;

/// What is in force on each disk that was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnDisks<T> {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The disks, in the order of the configuration.
    pub disks: Vec<T>,
}

impl<T> OnDisks<T> {
    /// Makes the answer about these disks.
    pub fn new(disks: Vec<T>) -> Self {
        Self { version: Stat::VERSION, disks }
    }
}

/// An error that a client gets as an answer.
pub(super) trait Status: fmt::Display {
    /// The HTTP status of the answer.
    fn status(&self) -> StatusCode;

    /// The problem's type: a word that programs may go by; empty if the status says it all.
    fn problem(&self) -> &'static str {
        ""
    }
}
