//! Properties of BFQ alone.

mod claim;
mod raising;
mod service;
pub(crate) mod shares;
pub(crate) mod starving;
pub(crate) mod waits;
