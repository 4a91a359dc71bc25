//! Linux's block-layer I/O scheduling as state machines.
