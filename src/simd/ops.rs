//! Operations that the portable set lacks: one intrinsic each, with its portable twin.
