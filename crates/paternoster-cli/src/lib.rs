//! What the programs of the project have in common on the command line: their output, completions
//! and manual pages.

pub mod completions;
pub mod man;
pub mod output;
