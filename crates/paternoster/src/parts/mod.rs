//! What several schedulers are built of. A part never calls back, knows no scheduler and emits no
//! event; it is shared because its arithmetic is the same to the bit.

pub(crate) mod fifo;
pub(crate) mod keyed_tree;
pub(crate) mod pace;
pub(crate) mod position_index;
pub(crate) mod red_black;
pub(crate) mod seek_history;
pub(crate) mod sort_list;
pub(crate) mod sweep;
pub(crate) mod think_time;
