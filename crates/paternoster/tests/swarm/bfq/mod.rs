//! Properties of BFQ alone.

pub(crate) mod shares;
pub(crate) mod starving;
mod turn;
