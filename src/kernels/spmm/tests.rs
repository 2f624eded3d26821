//! Properties and edges of this kernel.
