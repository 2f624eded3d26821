//! The GPU arm on whatever adapter there is, against the reference.
