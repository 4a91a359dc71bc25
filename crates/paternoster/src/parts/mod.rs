//! Parts that several schedulers share. A part never calls back, knows no scheduler and emits no
//! event. It is shared because its arithmetic is the same to the bit.

pub(crate) mod fifo;
pub(crate) mod keyed_tree;
pub(crate) mod order_tunables;
pub(crate) mod position_index;
pub(crate) mod red_black;
pub(crate) mod seek_history;
pub(crate) mod seek_order;
pub(crate) mod service_speed;
pub(crate) mod sort_list;
pub(crate) mod think_time;
pub(crate) mod tree_nodes;
pub(crate) mod waiting;
