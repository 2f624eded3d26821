//! How a gate is measured.
