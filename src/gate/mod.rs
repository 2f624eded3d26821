//! How a gate is measured: both arms in one process, transfers included, in balanced blocks over several processes, and
//! an interval that holds what a new process would give.
//!
//! A run is a pilot and several *launches*, each a process of its own. A launch visits every *cell* (a size of a context)
//! in random order; there it times *slots* (a few calls of one arm, at least 20 ms) in *blocks* of four, ABBA or BAAB.
//! [`statistics`] turns slots into an interval of the ratio, [`verdict`] turns the interval into a verdict.

pub mod budget;
pub mod canary;
pub mod clock;
pub mod evaluate;
pub mod flags;
pub mod launch;
pub mod plan;
pub mod process;
pub mod protocol;
pub mod run;
pub mod state;
pub mod statistics;
pub mod verdict;
pub mod verify;
pub mod warmup;
