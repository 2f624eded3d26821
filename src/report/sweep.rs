//! Looking things up in a result: rows by context, size and arm, and rates as shares of the machine's ceilings.

use super::judge::Judgement;
use crate::results::schema::{Gate, ResultFile, TimingRow, Verdict};
use crate::units::{AxisValue, Context, in_words};
use std::collections::BTreeSet;

/// A result, seen as sweeps over sizes. Without a GPU, or when a result was wrong, it gives no row of the GPU arm and no
/// ratio, whatever the file holds.
#[derive(Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) result: &'a ResultFile,
    pub(super) has_gpu: bool,
}

impl<'a> Sweep<'a> {
    pub(super) fn of(judgement: &Judgement<'a>) -> Self {
        let has_gpu = judgement.has_gpu() && judgement.verdict != Verdict::Invalid;
        Self { result: &judgement.shown.result, has_gpu }
    }

    /// Contexts that have at least one row, in the protocol's order.
    pub(super) fn contexts(self) -> Vec<&'a Context> {
        let measured = |context: &Context| self.result.rows.iter().any(|row| row.context == *context);
        self.result.protocol.contexts.iter().filter(|context| measured(context)).collect()
    }

    /// Sizes of a context that have at least one row, ascending.
    pub(super) fn sizes(self, context: &Context) -> BTreeSet<u64> {
        self.result.rows.iter().filter(|row| row.context == *context).map(|row| row.size).collect()
    }

    /// The row that decides: `resident` or `one_shot`.
    pub(super) fn gate_row(self) -> &'a str {
        &self.result.protocol.gate_row
    }

    /// The other of the two rows that have a verdict.
    pub(super) fn other_row(self) -> &'static str {
        if self.gate_row() == "resident" { "one_shot" } else { "resident" }
    }

    fn row(self, context: &Context, size: u64, arm: &str, row: &str) -> Option<&'a TimingRow> {
        let found = |timing: &&TimingRow| {
            timing.size == size && timing.arm == arm && timing.row == row && timing.context == *context
        };
        self.result.rows.iter().find(found)
    }

    /// The baseline: the variant that the pilot chose, else the faster one.
    pub(super) fn cpu(self, context: &Context, size: u64, row: &str) -> Option<&'a TimingRow> {
        if let Some(gate) = self.gate(context, size, row)
            && let Some(timing) = self.row(context, size, &gate.baseline, row)
        {
            return Some(timing);
        }
        let variants = ["simd", "simd_1t"].into_iter().filter_map(|arm| self.row(context, size, arm, row));
        variants.filter(|timing| timing.median_ns.is_some()).min_by_key(|timing| timing.median_ns)
    }

    /// The SIMD path on one thread.
    pub(super) fn one_thread(self, context: &Context, size: u64, row: &str) -> Option<&'a TimingRow> {
        self.row(context, size, "simd_1t", row)
    }

    /// A row of the GPU arm; never without a GPU.
    pub(super) fn gpu(self, context: &Context, size: u64, row: &str) -> Option<&'a TimingRow> {
        if self.has_gpu { self.row(context, size, "gpu", row) } else { None }
    }

    /// The gate of a row; its ratio is given away only with a GPU.
    pub(super) fn gate(self, context: &Context, size: u64, row: &str) -> Option<&'a Gate> {
        self.result.gates.iter().find(|gate| gate.size == size && gate.row == row && gate.context == *context)
    }

    /// Point and interval of a gate; never without a GPU.
    pub(super) fn ratio(self, context: &Context, size: u64, row: &str) -> Option<Ratio> {
        self.gate(context, size, row).and_then(|gate| self.ratio_of(gate))
    }

    /// Point and interval of a gate; never without a GPU.
    pub(super) fn ratio_of(self, gate: &Gate) -> Option<Ratio> {
        let ratio = Ratio { point: gate.point?, lo: gate.lo?, hi: gate.hi? };
        self.has_gpu.then_some(ratio)
    }

    /// The deciding gates, smallest ratio first; those without one before all.
    pub(super) fn deciding(self) -> Vec<&'a Gate> {
        let mut gates: Vec<_> = self.result.gates.iter().filter(|gate| gate.decides).collect();
        gates.sort_by(|a, b| a.point.unwrap_or(0.0).total_cmp(&b.point.unwrap_or(0.0)));
        gates
    }

    /// Time at the machine's ceilings over the time taken, and the ceiling that binds. `None` where it was not measured.
    ///
    /// Operands that fit the last-level cache are not held against the memory's rate.
    pub(super) fn share_of_ceiling(self, timing: &TimingRow) -> Option<(f64, &'static str)> {
        let ceilings = &self.result.machine.ceilings;
        let one = timing.threads == Some(1);
        let (multiply_add, read) = if one {
            (ceilings.fma_1t_flops, ceilings.read_1t_bytes_per_s)
        } else {
            (ceilings.fma_flops, ceilings.read_bytes_per_s)
        };
        let seconds = timing.median_ns? as f64 / 1e9;
        let cached = self.result.machine.cpu.l3_bytes.is_some_and(|bytes| timing.touched_bytes <= bytes);
        let compute = multiply_add.map(|rate| (timing.operations / rate / seconds, "multiply-add"));
        let memory = read.filter(|_| !cached).map(|rate| (timing.touched_bytes as f64 / rate / seconds, "memory read"));
        [compute, memory].into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) point: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
}

/// The part of a context's label that differs between contexts, and the part that does not.
pub(super) fn split_labels(contexts: &[&Context]) -> (Vec<String>, String) {
    let Some(first) = contexts.first() else { return (Vec::new(), String::new()) };
    let constant = |name: &str, value: &AxisValue| contexts.iter().all(|other| other.get(name) == Some(value));
    let common = in_words(first.iter().filter(|(name, value)| constant(name, value)));
    let own = contexts
        .iter()
        .map(|context| in_words(context.iter().filter(|(name, value)| contexts.len() == 1 || !constant(name, value))));
    (own.collect(), if contexts.len() == 1 { String::new() } else { common })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{self, Fixture};
    use super::super::judge::judge;
    use super::*;

    #[test]
    fn without_a_gpu_no_row_and_no_ratio_of_the_gpu_arm_is_given_away() {
        let records = [Fixture::new("cosine", fixtures::CPU_MACHINE).verdict(Verdict::NoGpu, None).record()];
        let judgements = judge(&records, &fixtures::kernels());
        let sweep = Sweep::of(&judgements[0]);
        assert!(sweep.result.rows.iter().any(|row| row.arm == "gpu" && row.median_ns.is_some()), "the trap is set");
        for context in sweep.contexts() {
            for size in sweep.sizes(context) {
                assert_eq!(sweep.gpu(context, size, "resident"), None);
                assert_eq!(sweep.ratio(context, size, "resident"), None);
                assert!(sweep.cpu(context, size, "resident").is_some());
            }
        }
    }

    #[test]
    fn the_binding_ceiling_is_the_one_that_would_take_longer() {
        let records = [Fixture::new("cosine", fixtures::GPU_MACHINE).record()];
        let judgements = judge(&records, &fixtures::kernels());
        let sweep = Sweep::of(&judgements[0]);
        let mut row = sweep.result.rows[0].clone();
        // 300 GFLOP/s and 30 GB/s on all threads; 32 MiB of cache.
        row.threads = Some(2);
        row.median_ns = Some(1_000_000);
        row.touched_bytes = 60_000_000;
        row.operations = 30e6;
        // Bound by memory: 2 ms at the ceiling, in 1 ms. A share above 100% is shown as it is.
        let (share, ceiling) = sweep.share_of_ceiling(&row).unwrap();
        assert!((share - 2.0).abs() < 1e-9 && ceiling == "memory read", "{share} {ceiling}");
        row.touched_bytes = 1_000_000;
        let (share, ceiling) = sweep.share_of_ceiling(&row).unwrap();
        assert!((share - 0.1).abs() < 1e-9 && ceiling == "multiply-add", "{share} {ceiling}");
        row.median_ns = None;
        assert_eq!(sweep.share_of_ceiling(&row), None);
    }

    #[test]
    fn labels_keep_apart_what_differs() {
        let context = |k: u64, queries: u64| {
            let axes = [("dim", 384), ("k", k), ("queries", queries)];
            Context::from(axes.map(|(name, value)| (name.to_owned(), value.into())))
        };
        let (a, b) = (context(10, 1), context(10, 256));
        let (own, common) = split_labels(&[&a, &b]);
        assert_eq!((own, common.as_str()), (vec!["queries 1".to_owned(), "queries 256".to_owned()], "dim 384, k 10"));
        assert_eq!(split_labels(&[&a]), (vec!["dim 384, k 10, queries 1".to_owned()], String::new()));
        assert_eq!(split_labels(&[]), (vec![], String::new()));
        let named = |matrix: &str, width: u64| {
            let axes = [("matrix", matrix.into()), ("values", "f64".into()), ("width", width.into())];
            Context::from(axes.map(|(name, value)| (name.to_owned(), value)))
        };
        let (a, b) = (named("tf-idf", 64), named("banded", 64));
        let own = vec!["tf-idf".to_owned(), "banded".to_owned()];
        assert_eq!(split_labels(&[&a, &b]), (own, "f64, width 64".to_owned()));
    }
}
