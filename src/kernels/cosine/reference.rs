//! The specification: score every row in f64, sort, keep k.
