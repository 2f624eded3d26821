//! The tables of `lodestar gate`.

use crate::kernels::{Case, Footprint};
use crate::results::schema::{Gate, ResultFile, Verdict};
use crate::units::{Bytes, Nanos, in_words};
use comfy_table::{Table, presets};
use std::collections::BTreeSet;

fn table(header: Vec<&str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

pub(super) fn plan(rows: &[(Case, Footprint, bool)], size_axis: &str) -> String {
    let mut table = table(vec!["context", size_axis, "host memory", "device memory", "decides"]);
    for (case, footprint, decides) in rows {
        table.add_row(vec![
            in_words(&case.context),
            case.size.to_string(),
            Bytes(footprint.host_bytes).to_string(),
            Bytes(footprint.device_bytes).to_string(),
            if *decides { "yes" } else { "" }.to_owned(),
        ]);
    }
    table.trim_fmt()
}

/// Three significant digits, towards zero or away from it, so that a printed interval never claims more than was found.
fn ratio(value: f64, up: bool) -> String {
    if !(value.is_finite() && value > 0.0) {
        return "-".into();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a ratio")]
    let decimals = (2 - value.log10().floor() as i32).max(0);
    let scale = 10_f64.powi(decimals);
    let rounded = if up { (value * scale).ceil() } else { (value * scale).floor() } / scale;
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
}

pub(super) fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::Invalid => "INVALID",
        Verdict::NoGpu => "NO-GPU",
    }
}

fn median(result: &ResultFile, gate: &Gate, arm: &str) -> String {
    let rows = result.rows.iter().filter(|row| row.arm == arm && row.row == gate.row && row.size == gate.size);
    let ns = rows.filter(|row| row.context == gate.context).find_map(|row| row.median_ns);
    ns.map_or("-".into(), |ns| Nanos(ns).to_string())
}

/// One line per gate; an asterisk marks those that decide.
pub(super) fn gates(result: &ResultFile) -> String {
    let null = result.rows.iter().any(|row| row.arm == "simd_again");
    let second = if null { "simd_again" } else { "gpu" };
    let header = vec![
        "kernel",
        "context",
        &result.protocol.size_axis,
        "row",
        "CPU best",
        "GPU",
        "ratio [lo, hi]",
        "verdict",
        "flags",
    ];
    let header = header.into_iter().map(|name| if null && name == "GPU" { "CPU again" } else { name }).collect();
    let mut table = table(header);
    for gate in &result.gates {
        let interval = gate.lo.zip(gate.hi).map(|(lo, hi)| format!(" [{}, {}]", ratio(lo, false), ratio(hi, true)));
        let point = gate.point.map_or("-".into(), |point| format!("{point:.2}"));
        let flags: BTreeSet<&str> = gate.flags.iter().map(|flag| flag.name.as_str()).collect();
        let reason = gate.reason.as_ref().filter(|_| matches!(gate.verdict, Verdict::Fail | Verdict::Inconclusive));
        table.add_row(vec![
            result.kernel.clone(),
            in_words(&gate.context),
            gate.size.to_string(),
            format!("{}{}", gate.row, if gate.decides { " *" } else { "" }),
            median(result, gate, &gate.baseline),
            median(result, gate, second),
            format!("{point}{}", interval.unwrap_or_default()),
            format!("{}{}", name(gate.verdict), reason.map_or(String::new(), |reason| format!(" ({reason})"))),
            flags.into_iter().collect::<Vec<_>>().join(", "),
        ]);
    }
    table.trim_fmt()
}

pub(super) fn conclusion(result: &ResultFile) -> String {
    let reason = result.verdict.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    format!("{}: {}{reason}, gate {}x", result.kernel, name(result.verdict.verdict), result.protocol.gate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_interval_never_claims_more_than_was_found() {
        assert_eq!((ratio(4.999, false), ratio(4.991, true)), ("4.99".into(), "5.00".into()));
        assert_eq!((ratio(12.39, false), ratio(123.1, true)), ("12.3".into(), "124".into()));
        assert_eq!((ratio(0.01239, false), ratio(5.0, false)), ("0.0123".into(), "5.00".into()));
        assert_eq!(ratio(f64::NAN, true), "-");
    }
}
