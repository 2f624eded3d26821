//! Result files: their schema, how they are stored, and how every number in them is recomputed from the raw samples.

pub mod schema;
