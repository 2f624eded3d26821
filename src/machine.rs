//! What this computer is.
