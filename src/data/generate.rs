//! Seeded inputs; every distribution has a name.
