//! Files <-> data; the only place that knows a byte layout.
