//! Properties of BFQ alone.

mod claim;
pub(crate) mod shares;
pub(crate) mod starving;
mod turn;
pub(crate) mod waits;
