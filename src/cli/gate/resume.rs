//! `gate --resume`: finds the unfinished run of a kernel and makes sure that going on with it measures the same thing.

use super::header;
use crate::gate::verify::verify;
use crate::results::schema::{ResultFile, Resumed, Sample};
use crate::results::store::{self, Writer};
use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A run that goes on.
pub(super) struct Begun {
    pub(super) writer: Writer,
    pub(super) result: ResultFile,
    pub(super) samples: Vec<Sample>,
}

/// The unfinished run that would be the same as `now`, a run that has not begun, on this many threads. `None` where there
/// is no unfinished run; one that differs is refused, and nothing is changed.
pub(super) fn find(results: &Path, now: &ResultFile, threads: usize) -> anyhow::Result<Option<PathBuf>> {
    let found = store::unfinished(results, &now.machine.machine_id, &now.kernel)?;
    let [path] = &found[..] else {
        let names: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
        ensure!(
            names.is_empty(),
            "gate --resume: {}: expected one unfinished run, found {}",
            now.kernel,
            names.join(", ")
        );
        return Ok(None);
    };
    let begun = store::load(path)?;
    let differ = differences(&begun, now, threads)?;
    if let Some((first, others)) = differ.split_first() {
        let others: Vec<&str> = others.iter().map(|difference| difference.what.as_str()).collect();
        let also = if others.is_empty() { String::new() } else { format!("; also differs: {}", others.join(", ")) };
        bail!(
            "gate --resume: {}: {}: expected {}, as it began, found {}{also}",
            path.display(),
            first.what,
            first.then,
            first.now
        );
    }
    Ok(Some(path.clone()))
}

/// That there is nothing to resume.
pub(super) fn nothing(results: &Path, now: &ResultFile) -> anyhow::Error {
    let folder = results.join(&now.machine.machine_id).join(&now.kernel);
    anyhow::anyhow!("gate --resume: {}: expected an unfinished run, found none", folder.display())
}

/// Opens the run, notes that it is resumed, and gives it back with what it has so far.
pub(super) fn take_up(results: &Path, path: &Path) -> anyhow::Result<Begun> {
    let (writer, mut result, samples) = Writer::resume(results, path)?;
    // Numbers that do not follow from the samples were changed by somebody, and nothing should be built on them.
    verify(&result, &samples).with_context(|| path.display().to_string())?;
    result.run.resumed.push(Resumed {
        interrupted_utc: result.run.ended_utc.clone(),
        resumed_utc: header::now(),
        samples: result.samples.rows,
        sha256: result.samples.sha256.clone(),
    });
    Ok(Begun { writer, result, samples })
}

struct Difference {
    what: String,
    then: String,
    now: String,
}

/// What would not be the same, the protocol first.
fn differences(then: &ResultFile, now: &ResultFile, threads: usize) -> anyhow::Result<Vec<Difference>> {
    let mut found = Vec::new();
    fields(&mut found, "run.mode", &serde_json::to_value(then.run.mode)?, &serde_json::to_value(now.run.mode)?);
    fields(&mut found, "run.looks", &then.run.looks.into(), &now.run.looks.into());
    fields(&mut found, "protocol", &protocol(then)?, &protocol(now)?);
    let (code, code_now) = (serde_json::to_value(&then.code)?, serde_json::to_value(&now.code)?);
    fields(&mut found, "code", &code, &code_now);
    fields(&mut found, "machine", &machine(then)?, &machine(now)?);
    let planned = then.rows.iter().find(|row| row.arm == "simd").and_then(|row| row.threads);
    if let Some(planned) = planned.filter(|planned| u32::try_from(threads) != Ok(*planned)) {
        fields(&mut found, "threads", &planned.into(), &threads.into());
    }
    // Most people will have touched the protocol; its hash says so in a word.
    found.sort_by_key(|difference| difference.what != "protocol.sha256");
    fields(&mut found, "schema", &then.schema.clone().into(), &now.schema.clone().into());
    Ok(found)
}

/// Where a protocol lies and why it wins are not what it measures.
fn protocol(result: &ResultFile) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(&result.protocol)?;
    without(&mut value, &["path", "analysis"]);
    Ok(value)
}

/// What is measured of a machine is not what it is.
fn machine(result: &ResultFile) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(&result.machine)?;
    without(&mut value, &["ceilings"]);
    Ok(value)
}

fn without(value: &mut Value, keys: &[&str]) {
    if let Value::Object(fields) = value {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// Adds what differs below `what`.
fn fields(found: &mut Vec<Difference>, what: &str, then: &Value, now: &Value) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, value) in then {
                fields(found, &format!("{what}.{key}"), value, now.get(key).unwrap_or(&Value::Null));
            }
        }
        _ if then == now => {}
        _ => found.push(Difference { what: what.into(), then: then.to_string(), now: now.to_string() }),
    }
}
