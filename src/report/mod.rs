//! Results -> pages.
