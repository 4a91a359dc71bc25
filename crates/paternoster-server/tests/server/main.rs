//! What a server is told, by its file, options and control socket, and what it says.

mod config;
mod containers;
mod ctl;
mod listen;
mod machine;
mod mistakes;
mod pages;
mod paths;
mod pools;
mod reference;
mod schedulers;
mod sockets;
