//! Recomputes every number of a result from its raw samples.

use super::evaluate::evaluate;
use crate::results::schema::{ResultFile, Sample};
use crate::results::{hex, samples::to_csv};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// What was recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Rows.
    pub rows: usize,
    /// Gates.
    pub gates: usize,
    /// Numbers and words compared in them.
    pub values: usize,
    /// Samples they were computed from.
    pub samples: usize,
}

/// The first value that does not follow from the samples.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{place}: the samples give {recomputed}, the file says {recorded}")]
pub struct Difference {
    /// Which value: `gates[3].lo`.
    pub place: String,
    /// What the samples give.
    pub recomputed: String,
    /// What the file says.
    pub recorded: String,
}

/// Compares rows, gates and verdict with what the samples give, bit for bit.
///
/// # Errors
/// [`Difference`].
pub fn verify(result: &ResultFile, samples: &[Sample]) -> Result<Verified, Difference> {
    if result.samples.rows != samples.len() as u64 {
        return Err(Difference {
            place: "samples.rows".into(),
            recomputed: samples.len().to_string(),
            recorded: result.samples.rows.to_string(),
        });
    }
    kept_as_it_was(result, samples)?;
    measured_once(samples)?;
    let mut again = result.clone();
    evaluate(&mut again, samples);
    let mut values = 0;
    // As JSON, so that what is compared is what is written: floats there have all their digits.
    let pairs = [
        ("rows", serde_json::to_value(&again.rows), serde_json::to_value(&result.rows)),
        ("gates", serde_json::to_value(&again.gates), serde_json::to_value(&result.gates)),
        ("verdict", serde_json::to_value(&again.verdict), serde_json::to_value(&result.verdict)),
    ];
    for (place, recomputed, recorded) in pairs {
        let (recomputed, recorded) = (recomputed.unwrap_or_default(), recorded.unwrap_or_default());
        compare(place, &recomputed, &recorded, &mut values)?;
    }
    Ok(Verified { rows: result.rows.len(), gates: result.gates.len(), values, samples: samples.len() })
}

/// What a resumed run had before is still there, byte for byte, at the start of the samples.
fn kept_as_it_was(result: &ResultFile, samples: &[Sample]) -> Result<(), Difference> {
    for (index, resumed) in result.run.resumed.iter().enumerate() {
        let before = usize::try_from(resumed.samples).ok().and_then(|count| samples.get(..count));
        let recomputed = match before {
            // Without a sample there was a header, which says nothing.
            Some([]) => continue,
            Some(before) => {
                to_csv(before, true).map_or_else(|error| error.to_string(), |csv| hex(&Sha256::digest(csv)))
            }
            None => format!("{} samples in all", samples.len()),
        };
        if recomputed != resumed.sha256 {
            let (place, recorded) = (format!("run.resumed[{index}].sha256"), resumed.sha256.clone());
            return Err(Difference { place, recomputed, recorded });
        }
    }
    Ok(())
}

/// No slot is there twice: a size that was finished is never measured again in the same run.
fn measured_once(samples: &[Sample]) -> Result<(), Difference> {
    let mut seen = BTreeSet::new();
    for slot in samples.iter().filter(|sample| sample.phase == "slot") {
        let place = (slot.launch, slot.context, slot.size, &slot.row, &slot.arm, slot.block, slot.pos);
        if !seen.insert(place) {
            let Sample { launch, context, size, row, arm, block, pos, .. } = slot;
            let place =
                format!("launch {launch}, context {context}, size {size}, {row}, {arm}, slot {pos} of block {block}");
            let (recomputed, recorded) = ("two measurements".into(), "one".into());
            return Err(Difference { place, recomputed, recorded });
        }
    }
    Ok(())
}

fn compare(place: &str, recomputed: &Value, recorded: &Value, values: &mut usize) -> Result<(), Difference> {
    match (recomputed, recorded) {
        (Value::Object(ours), Value::Object(theirs)) if ours.len() == theirs.len() => {
            ours.iter().try_for_each(|(key, value)| {
                compare(&format!("{place}.{key}"), value, theirs.get(key).unwrap_or(&Value::Null), values)
            })
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut pairs = ours.iter().zip(theirs).enumerate();
            pairs.try_for_each(|(index, (ours, theirs))| compare(&format!("{place}[{index}]"), ours, theirs, values))
        }
        _ if recomputed == recorded => {
            *values += 1;
            Ok(())
        }
        _ => {
            Err(Difference { place: place.into(), recomputed: recomputed.to_string(), recorded: recorded.to_string() })
        }
    }
}
