//! [`Protocol`]: what is to be measured, read from TOML and checked. An unknown key is an error with its line.

use crate::error::Error;
use crate::kernels::{Kernel, Row};
use crate::results::schema;
use crate::units::{self, AxisValue};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The key of a context that ends its sweep before the largest size.
const SIZES_TO: &str = "sizes_to";

/// How many processes, blocks and milliseconds; the section `[plan]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Processes per run.
    pub launches: u32,
    /// Blocks per size and launch; even.
    pub blocks: u32,
    /// Error rate of the interval.
    pub alpha: f64,
    /// Shortest slot.
    pub slot_ms: u64,
    /// Re-warming before each slot.
    pub rewarm_ms: u64,
    /// Time limit of a size of a context, over all launches.
    pub max_seconds_per_size: u64,
    /// The same where there is no GPU: the CPU rows are recorded, no verdict depends on them.
    pub cpu_only_seconds_per_size: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            launches: 8,
            blocks: 6,
            alpha: 0.01,
            slot_ms: 20,
            rewarm_ms: 50,
            max_seconds_per_size: 120,
            cpu_only_seconds_per_size: 120,
        }
    }
}

/// How inputs are made.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Name of the distribution.
    pub distribution: String,
    /// Seed.
    pub seed: u64,
    /// How many per-call inputs the calls rotate through.
    pub ring: u32,
}

/// The section of a kernel, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    gate: f64,
    gate_row: String,
    residency: String,
    gate_sizes: Vec<u64>,
    sizes: Sizes,
    contexts: Vec<units::Context>,
    inputs: Inputs,
    tolerance: f64,
    sources: Vec<String>,
    analysis: Option<String>,
}

/// Sizes, listed or as a geometric series with extra points.
struct Sizes(Vec<u64>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    from: u64,
    to: u64,
    ratio: u64,
    #[serde(default)]
    extra: Vec<u64>,
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Sizes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of sizes, or { from, to, ratio, extra }")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sizes, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = list.next_element()? {
                    sizes.push(size);
                }
                Ok(Sizes(sizes))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                let series = Series::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                if series.ratio < 2 || series.from == 0 || series.from > series.to {
                    return Err(serde::de::Error::custom("a series with 0 < from <= to and ratio >= 2 was expected"));
                }
                let steps = std::iter::successors(Some(series.from), |size| size.checked_mul(series.ratio));
                let mut sizes: Vec<u64> = steps.take_while(|size| *size < series.to).collect();
                sizes.push(series.to);
                sizes.extend(series.extra);
                Ok(Sizes(sizes))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The whole file: `version`, `plan`, and one section per kernel. Written by hand because a flattened map would hide
/// the position of a mistake.
struct File {
    plan: Plan,
    sections: BTreeMap<String, Section>,
}

/// Reads a [`File`] whose sections are named after these kernels.
struct FileOf<'a>(&'a [&'a dyn Kernel]);

impl<'de> DeserializeSeed<'de> for FileOf<'_> {
    type Value = File;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<File, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileOf<'_> {
    type Value = File;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("version, [plan] and one section per kernel")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        use serde::de::Error;
        let mut file = File { plan: Plan::default(), sections: BTreeMap::new() };
        let mut version = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => version = Some(map.next_value::<u32>()?),
                "plan" => file.plan = map.next_value()?,
                id if self.0.iter().any(|kernel| kernel.id() == id) => {
                    file.sections.insert(key, map.next_value()?);
                }
                id => {
                    let ids: Vec<_> = self.0.iter().map(|kernel| kernel.id()).collect();
                    let kernels = ids.join(", ");
                    return Err(A::Error::custom(format!("`{id}`, which is none of version, plan, {kernels}")));
                }
            }
        }
        match version {
            Some(1) => Ok(file),
            Some(other) => Err(A::Error::custom(format!("version {other}; this build reads version 1"))),
            None => Err(A::Error::missing_field("version")),
        }
    }
}

/// A context: the pinned axes, and where its sweep ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Axis values by name.
    pub axes: units::Context,
    /// Largest size of the sweep in this context, where it ends before the largest of all.
    pub sizes_to: Option<u64>,
}

/// What is to be measured, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// The kernel's id.
    pub kernel: String,
    /// As given, or the name of the built-in one.
    pub path: String,
    /// SHA-256 over the canonical text without `analysis`.
    pub sha256: String,
    /// The ratio to reach.
    pub gate: f64,
    /// The row that decides.
    pub gate_row: Row,
    /// What is resident, and why.
    pub residency: String,
    /// Name of the size axis.
    pub size_axis: String,
    /// Sizes at which the gate is judged, ascending.
    pub gate_sizes: Vec<u64>,
    /// All sizes, ascending.
    pub sizes: Vec<u64>,
    /// All contexts.
    pub contexts: Vec<Context>,
    /// How much of it.
    pub plan: Plan,
    /// Inputs.
    pub inputs: Inputs,
    /// Largest difference from the reference that counts as agreement; 0 = equal.
    pub tolerance: f64,
    /// Globs of the sources that concern the kernel.
    pub sources: Vec<String>,
    /// Why it wins or loses.
    pub analysis: Option<String>,
}

impl Protocol {
    /// Every size of every context, by index of the context, smallest first.
    pub fn cells(&self) -> Vec<(usize, u64)> {
        let cells = self.contexts.iter().enumerate().flat_map(|(index, context)| {
            let end = context.sizes_to.unwrap_or(u64::MAX);
            self.sizes.iter().filter(move |size| **size <= end).map(move |size| (index, *size))
        });
        cells.collect()
    }

    /// The null control: the CPU arm against itself at the gate sizes, where a ratio of 1.02 must not be found.
    #[must_use]
    pub fn null_control(mut self) -> Self {
        self.gate = 1.02;
        self.sizes = self.gate_sizes.clone();
        self
    }

    /// The shorter plan for trying out: 5 launches of 4 blocks.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.plan.launches = self.plan.launches.min(5);
        self.plan.blocks = self.plan.blocks.min(4);
        self
    }

    /// What the result file says of it. Launches, blocks and seconds are those of the run, which `--quick` shortens.
    pub fn record(&self, generator_hash: &str, max_seconds_per_size: u64) -> schema::Protocol {
        schema::Protocol {
            path: self.path.clone(),
            sha256: self.sha256.clone(),
            gate_row: self.gate_row.name().into(),
            residency: self.residency.clone(),
            gate: self.gate,
            size_axis: self.size_axis.clone(),
            gate_sizes: self.gate_sizes.clone(),
            sizes: self.sizes.clone(),
            contexts: self.contexts.iter().map(|context| context.axes.clone()).collect(),
            alpha: self.plan.alpha,
            launches: self.plan.launches,
            blocks: self.plan.blocks,
            slot_ms: self.plan.slot_ms,
            rewarm_ms: self.plan.rewarm_ms,
            max_seconds_per_size,
            tolerance: self.tolerance,
            inputs: schema::Inputs {
                distribution: self.inputs.distribution.clone(),
                seed: self.inputs.seed,
                ring: self.inputs.ring,
                generator_hash: generator_hash.into(),
            },
            analysis: self.analysis.clone(),
        }
    }

    /// Whether a changed file, by its path from the root of the repository, concerns the kernel.
    pub fn concerns(&self, changed: &str) -> bool {
        self.sources.iter().any(|glob| matches(glob.as_bytes(), changed.as_bytes()))
    }
}

/// Reads every section of a protocol; `kernels` are those that may have one.
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] with the line or the key, what was expected there and what was found.
pub fn read(path: &Path, kernels: &[&dyn Kernel]) -> Result<Vec<Protocol>, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
    parse(&path.to_string_lossy(), &text, kernels)
}

/// As [`read`], from text.
///
/// # Errors
/// [`Error::Format`].
pub fn parse(path: &str, text: &str, kernels: &[&dyn Kernel]) -> Result<Vec<Protocol>, Error> {
    let malformed = |error: toml::de::Error| {
        let position = error.span().map_or_else(
            || "end".to_owned(),
            |span| format!("line {}", 1 + text[..span.start.min(text.len())].matches('\n').count()),
        );
        Error::format(path, position, "a protocol", error.message().replace('\n', " "))
    };
    let file =
        toml::Deserializer::parse(text).and_then(|parsed| FileOf(kernels).deserialize(parsed)).map_err(malformed)?;
    check_plan(path, &file.plan)?;
    let document: toml::Table = text.parse().map_err(malformed)?;
    let mut protocols = Vec::new();
    for kernel in kernels {
        if let Some(section) = file.sections.get(kernel.id()) {
            let sha256 = canonical_sha256(&document, kernel.id());
            protocols.push(check(path, sha256, *kernel, section, &file.plan)?);
        }
    }
    if protocols.is_empty() {
        return Err(Error::format(path, "sections", "one per kernel to be measured", "none"));
    }
    Ok(protocols)
}

/// Over the sorted keys of `version`, `plan` and this kernel's section: layout, comments and `analysis` do not count.
fn canonical_sha256(document: &toml::Table, kernel: &str) -> String {
    let mut canonical = BTreeMap::new();
    for key in ["version", "plan", kernel] {
        if let Some(value) = document.get(key) {
            let mut value = value.clone();
            if let Some(section) = value.as_table_mut().filter(|_| key == kernel) {
                section.remove("analysis");
            }
            canonical.insert(key, canonical_text(&value));
        }
    }
    let mut hash = Sha256::new();
    for (key, value) in canonical {
        hash.update(format!("{key}={value}\n"));
    }
    crate::results::hex(&hash.finalize())
}

fn canonical_text(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(table) => {
            let entries: BTreeMap<_, _> = table.iter().map(|(key, value)| (key, canonical_text(value))).collect();
            let entries: Vec<_> = entries.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", entries.join(","))
        }
        toml::Value::Array(values) => {
            format!("[{}]", values.iter().map(canonical_text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn check_plan(path: &str, plan: &Plan) -> Result<(), Error> {
    let wrong =
        |key: &str, expected: &str, found: String| Err(Error::format(path, format!("[plan] {key}"), expected, found));
    if !(1..=64).contains(&plan.launches) {
        return wrong("launches", "1 to 64", plan.launches.to_string());
    }
    if !(2..=64).contains(&plan.blocks) || !plan.blocks.is_multiple_of(2) {
        return wrong("blocks", "an even number from 2 to 64", plan.blocks.to_string());
    }
    if !(plan.alpha > 0.0 && plan.alpha < 0.5) {
        return wrong("alpha", "a number between 0 and 0.5", plan.alpha.to_string());
    }
    if !(1..=10_000).contains(&plan.slot_ms) {
        return wrong("slot_ms", "1 to 10000", plan.slot_ms.to_string());
    }
    if plan.rewarm_ms > 10_000 {
        return wrong("rewarm_ms", "0 to 10000", plan.rewarm_ms.to_string());
    }
    for (key, seconds) in [
        ("max_seconds_per_size", plan.max_seconds_per_size),
        ("cpu_only_seconds_per_size", plan.cpu_only_seconds_per_size),
    ] {
        if !(1..=86_400).contains(&seconds) {
            return wrong(key, "1 to 86400", seconds.to_string());
        }
    }
    Ok(())
}

fn check(path: &str, sha256: String, kernel: &dyn Kernel, section: &Section, plan: &Plan) -> Result<Protocol, Error> {
    let id = kernel.id();
    let axes = kernel.axes();
    let wrong =
        |key: &str, expected: String, found: String| Error::format(path, format!("[{id}] {key}"), expected, found);
    if !(section.gate.is_finite() && section.gate > 1.0) {
        return Err(wrong("gate", "a ratio above 1".into(), section.gate.to_string()));
    }
    let gate_row = super::plan::row_named(&section.gate_row)
        .filter(|row| matches!(row, Row::Resident | Row::OneShot))
        .ok_or_else(|| wrong("gate_row", "resident or one_shot".into(), section.gate_row.clone()))?;
    let sizes: Vec<u64> = section.sizes.0.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    if sizes.first().is_none_or(|size| *size == 0) {
        return Err(wrong("sizes", "at least one, all above 0".into(), format!("{sizes:?}")));
    }
    if let Some(pair) = sizes.windows(2).find(|pair| pair[1] > pair[0].saturating_mul(4)) {
        // A crossover between two sizes further apart could not be bracketed from this sweep.
        return Err(wrong(
            "sizes",
            "neighbours at most a factor of 4 apart".into(),
            format!("{} and {}", pair[0], pair[1]),
        ));
    }
    let gate_sizes: Vec<u64> = section.gate_sizes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    if gate_sizes.is_empty() {
        return Err(wrong("gate_sizes", "at least one".into(), "none".into()));
    }
    if let Some(stranger) = gate_sizes.iter().find(|size| !sizes.contains(size)) {
        return Err(wrong("gate_sizes", format!("sizes of the sweep, which are {sizes:?}"), stranger.to_string()));
    }
    if section.contexts.is_empty() {
        return Err(wrong("contexts", "at least one".into(), "none".into()));
    }
    let mut contexts: Vec<Context> = Vec::new();
    for (index, written) in section.contexts.iter().enumerate() {
        let key = format!("contexts, entry {}", index + 1);
        let mut pinned = written.clone();
        let sizes_to = match pinned.remove(SIZES_TO) {
            Some(AxisValue::Number(end)) => Some(end),
            None => None,
            Some(AxisValue::Name(name)) => {
                return Err(wrong(&format!("{key}, {SIZES_TO}"), "a number".into(), format!("{name:?}")));
            }
        };
        let expected: BTreeSet<&str> = axes.context.iter().map(|axis| axis.name).collect();
        let found: BTreeSet<&str> = pinned.keys().map(String::as_str).collect();
        if expected != found {
            let list = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(wrong(&key, format!("the axes {}", list(expected)), list(found)));
        }
        for axis in axes.context {
            if let Some(value) = pinned.get(axis.name) {
                axis.check(value).map_err(|error| match error {
                    Error::Argument { what, expected, found } => wrong(&format!("{key}, {what}"), expected, found),
                    other => other,
                })?;
            }
        }
        if sizes_to.is_some_and(|end| !gate_sizes.iter().any(|size| *size <= end)) {
            return Err(wrong(
                &key,
                "a sweep that reaches a gate size".into(),
                format!("{SIZES_TO} = {}", sizes_to.unwrap_or(0)),
            ));
        }
        if contexts.iter().any(|context| context.axes == pinned) {
            return Err(wrong(&key, "each context once".into(), "the same again".into()));
        }
        contexts.push(Context { axes: pinned, sizes_to });
    }
    let inputs = &section.inputs;
    if !kernel.distributions().contains(&inputs.distribution.as_str()) {
        let expected = format!("one of {}", kernel.distributions().join(", "));
        return Err(wrong("inputs.distribution", expected, inputs.distribution.clone()));
    }
    if !(1..=64).contains(&inputs.ring) {
        return Err(wrong("inputs.ring", "1 to 64".into(), inputs.ring.to_string()));
    }
    if !(section.tolerance.is_finite() && section.tolerance >= 0.0) {
        return Err(wrong("tolerance", "0 or more".into(), section.tolerance.to_string()));
    }
    if section.residency.trim().is_empty() {
        return Err(wrong("residency", "what is resident and why".into(), "nothing".into()));
    }
    Ok(Protocol {
        kernel: id.into(),
        path: path.into(),
        sha256,
        gate: section.gate,
        gate_row,
        residency: section.residency.clone(),
        size_axis: axes.size.into(),
        gate_sizes,
        sizes,
        contexts,
        plan: plan.clone(),
        inputs: inputs.clone(),
        tolerance: section.tolerance,
        sources: section.sources.clone(),
        analysis: section.analysis.clone(),
    })
}

/// `*` stands for anything within a folder, `**` for anything at all.
fn matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|skip| matches(rest, &path[skip..])),
        [b'*', rest @ ..] => {
            let folder = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=folder).any(|skip| matches(rest, &path[skip..]))
        }
        [byte, rest @ ..] => path.first() == Some(byte) && matches(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# a comment
version = 1
[plan]
launches = 8
blocks = 6
[cosine]
gate = 5.0
gate_row = "resident"
residency = "the corpus stays, queries come per call"
gate_sizes = [1_000]
sizes = { from = 250, to = 3_000, ratio = 4, extra = [2_000] }
contexts = [{ dim = 8, k = 3, queries = 2 }, { dim = 8, k = 3, queries = 9, sizes_to = 1_000 }]
inputs = { distribution = "gaussian", seed = 42, ring = 4 }
tolerance = 0
sources = ["src/kernels/cosine/**", "src/simd/*.rs"]
analysis = "why"
"#;

    fn parse_text(text: &str) -> Result<Protocol, String> {
        let parsed = parse("p.toml", text, crate::kernels::KERNELS).map_err(|error| error.to_string())?;
        Ok(parsed.into_iter().next().unwrap())
    }

    fn error(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from), "{from}");
        parse_text(&TEXT.replace(from, to)).unwrap_err()
    }

    #[test]
    fn a_protocol_expands_its_series_and_ends_each_context_where_it_says() {
        let protocol = parse_text(TEXT).unwrap();
        assert_eq!(protocol.sizes, [250, 1_000, 2_000, 3_000]);
        let cells: Vec<_> = protocol.cells();
        assert_eq!(cells, [(0, 250), (0, 1_000), (0, 2_000), (0, 3_000), (1, 250), (1, 1_000)]);
        assert_eq!(protocol.plan.slot_ms, 20);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        assert_eq!(
            error("gate = 5.0", "gait = 5.0"),
            "p.toml: line 7: expected a protocol, found unknown field `gait`, expected one of `gate`, `gate_row`, \
             `residency`, `gate_sizes`, `sizes`, `contexts`, `inputs`, `tolerance`, `sources`, `analysis`"
        );
        assert!(error("launches = 8", "lunches = 8").starts_with("p.toml: line 4: expected a protocol, found unknown"));
        assert!(error("ring = 4", "ring = 4, rung = 1").starts_with("p.toml: line 13: "));
        assert!(error("ratio = 4", "ration = 4").starts_with("p.toml: line 11: "));
        for value in ["-3", "3.5", "true"] {
            let message = error("k = 3, queries = 2", &format!("k = {value}, queries = 2"));
            assert!(message.starts_with("p.toml: line 12: "), "{message}");
            assert!(message.contains("expected a whole number from 0 or a name"), "{message}");
        }
        assert!(error("[cosine]", "[cosinus]").contains("`cosinus`, which is none of version, plan, cosine"));
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        assert!(error("blocks = 6", "blocks = = 6").starts_with("p.toml: line 5: "));
        assert!(error("version = 1", "version = 2").contains("this build reads version 1"));
        assert!(parse_text("version = 1").unwrap_err().contains("sections: expected one per kernel"));
    }

    #[test]
    fn each_impossible_value_is_named() {
        for (from, to, expected) in [
            ("blocks = 6", "blocks = 5", "[plan] blocks: expected an even number from 2 to 64, found 5"),
            ("gate = 5.0", "gate = 0.5", "[cosine] gate: expected a ratio above 1, found 0.5"),
            ("gate = 5.0", "gate = inf", "[cosine] gate: expected a ratio above 1, found inf"),
            ("\"resident\"", "\"upload\"", "[cosine] gate_row: expected resident or one_shot, found upload"),
            (
                "[1_000]",
                "[999]",
                "[cosine] gate_sizes: expected sizes of the sweep, which are [250, 1000, 2000, 3000], found 999",
            ),
            (
                "dim = 8, k = 3, queries = 2",
                "dim = 8, k = 3",
                "entry 1: expected the axes dim, k, queries, found dim, k",
            ),
            (
                "sizes_to = 1_000",
                "sizes_to = 500",
                "entry 2: expected a sweep that reaches a gate size, found sizes_to = 500",
            ),
            ("queries = 9", "queries = 2", "entry 2: expected each context once, found the same again"),
            (
                "k = 3, queries = 2",
                "k = \"ten\", queries = 2",
                "[cosine] contexts, entry 1, k: expected a number, found \"ten\"",
            ),
            (
                "sizes_to = 1_000",
                "sizes_to = \"1_000\"",
                "[cosine] contexts, entry 2, sizes_to: expected a number, found \"1_000\"",
            ),
            ("ring = 4", "ring = 0", "[cosine] inputs.ring: expected 1 to 64, found 0"),
            ("tolerance = 0", "tolerance = -1", "[cosine] tolerance: expected 0 or more, found -1"),
            ("\"gaussian\"", "\"gaussean\"", "[cosine] inputs.distribution: expected one of "),
            (
                "to = 3_000, ratio = 4",
                "to = 30_000, ratio = 100",
                "neighbours at most a factor of 4 apart, found 250 and 2000",
            ),
        ] {
            let found = error(from, to);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn the_hash_ignores_layout_and_analysis_and_nothing_else() {
        let hash = |text: &str| parse_text(text).unwrap().sha256;
        let original = hash(TEXT);
        assert_eq!(hash(&TEXT.replace("# a comment", "").replace("1_000", "1000")), original);
        assert_eq!(hash(&TEXT.replace("\"why\"", "\"because\"")), original);
        assert_eq!(hash(&TEXT.replace("launches = 8\nblocks = 6", "blocks = 6\nlaunches = 8")), original);
        for (from, to) in [("gate = 5.0", "gate = 4.0"), ("blocks = 6", "blocks = 4"), ("seed = 42", "seed = 43")] {
            assert_ne!(hash(&TEXT.replace(from, to)), original, "{to}");
        }
    }

    #[test]
    fn changed_files_are_mapped_by_globs() {
        let protocol = parse_text(TEXT).unwrap();
        assert!(protocol.concerns("src/kernels/cosine/simd.rs"));
        assert!(protocol.concerns("src/kernels/cosine/a/b.wgsl"));
        assert!(protocol.concerns("src/simd/ops.rs"));
        assert!(!protocol.concerns("src/simd/deep/ops.rs"));
        assert!(!protocol.concerns("src/kernels/spmm/simd.rs"));
        assert!(!protocol.concerns("README.md"));
    }
}
