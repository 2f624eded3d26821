//! A built case: what is timed, and how its results are compared.

use super::super::{BEYOND, PreparedTexts, all_pairs, cut, one_to_many, pairs, reference};
use super::Form;
#[cfg(feature = "gpu")]
use super::on_device::{OnDevice, Ran};
use crate::data::{Buffer, Symbols, Text, Texts};
use crate::error::Error;
use crate::kernels::{Agreement, Mismatch, Platform, Prepared, Row, Variant, Work};
use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use sha2::{Digest, Sha256};

/// How much of the table of Wagner and Fischer is computed for an input. Where all pairs take more, some of them are
/// compared with the reference, and all of them between variants.
const REFERENCE_CELLS: u64 = 24_000_000;
/// The most pairs in such a sample, and the fewest, however long they are.
const SAMPLED_PAIRS: (usize, usize) = (4_096, 2);

/// Built inputs of a case. The distances are memory that every call of either arm overwrites.
pub(super) struct Distances {
    form: Form,
    cutoff: Option<u32>,
    platform: Platform,
    texts: Texts,
    /// The ring of per-call inputs: one pattern, one for each text, or some.
    patterns: Vec<Texts>,
    /// The texts as the CPU keeps them for one pattern after another.
    prepared: Option<PreparedTexts>,
    #[cfg(feature = "gpu")]
    gpu: Result<OnDevice, String>,
    distances: Buffer<u32>,
    /// What the distances are of.
    last: Option<(Variant, Row, usize)>,
    seed: u64,
    /// For each input: what is known of its distances.
    known: Vec<Known>,
}

/// What is known of the distances of one input.
#[derive(Default)]
struct Known {
    /// Places, ascending, and the distances there.
    reference: Option<Vec<(usize, u32)>>,
    /// Checksum of the first distances of a CPU variant that agreed with it, and that variant's threads.
    cpu: Option<(String, usize)>,
}

impl Distances {
    pub(super) fn new(
        form: Form,
        cutoff: Option<u32>,
        texts: Texts,
        patterns: Vec<Texts>,
        seed: u64,
        platform: &Platform,
    ) -> Result<Self, Error> {
        let places = match form {
            Form::OneToMany | Form::Pairs => Some(texts.len()),
            Form::AllPairs => texts.len().checked_mul(patterns[0].len()),
        };
        let places = places.ok_or_else(|| Error::Limit {
            what: format!("distances of {} x {} strings", patterns[0].len(), texts.len()),
            requested: u64::MAX,
            max: usize::MAX as u64,
        })?;
        let prepared = match form {
            Form::OneToMany => Some(PreparedTexts::new(&texts, platform)),
            Form::Pairs | Form::AllPairs => None,
        };
        #[cfg(feature = "gpu")]
        let gpu = match &platform.device {
            Some(device) => Ok(OnDevice::new(device, form, &texts, &patterns[0], cutoff)?),
            None => Err("the platform has no device".into()),
        };
        Ok(Self {
            form,
            cutoff,
            platform: platform.clone(),
            prepared,
            #[cfg(feature = "gpu")]
            gpu,
            distances: Buffer::zeroed(places)?,
            last: None,
            seed,
            known: patterns.iter().map(|_| Known::default()).collect(),
            texts,
            patterns,
        })
    }

    fn by_cpu(&self, row: Row, threads: usize, input: usize, distances: &mut [u32]) -> Result<(), Error> {
        let platform = Platform { threads, ..self.platform.clone() };
        let (texts, patterns, cutoff) = (&self.texts, &self.patterns[input], self.cutoff);
        match (self.form, &self.prepared) {
            (Form::OneToMany, Some(prepared)) if row == Row::Resident => {
                prepared.distances(patterns.get(0), cutoff, distances, &platform)
            }
            (Form::OneToMany, _) => one_to_many(patterns.get(0), texts, cutoff, distances, &platform),
            (Form::Pairs, _) => pairs(patterns, texts, cutoff, distances, &platform),
            (Form::AllPairs, _) => {
                all_pairs(patterns, 0..patterns.len(), texts, 0..texts.len(), cutoff, distances, &platform)
            }
        }
    }

    /// Bytes to the device for the texts and for a call, and bytes from the device for a call.
    fn moved_bytes(&self) -> (u64, u64, u64) {
        #[cfg(feature = "gpu")]
        if let Ok(gpu) = &self.gpu {
            return gpu.moved_bytes();
        }
        (bytes(&self.texts), bytes(&self.patterns[0]), self.distances_len() as u64 * 4)
    }

    /// The strings whose distance is at a place.
    fn pair(&self, place: usize) -> (usize, usize) {
        match self.form {
            Form::OneToMany => (0, place),
            Form::Pairs => (place, place),
            Form::AllPairs => (place / self.texts.len(), place % self.texts.len()),
        }
    }

    fn strings(&self, input: usize, place: usize) -> (Text<'_>, Text<'_>) {
        let (pattern, text) = self.pair(place);
        (self.patterns[input].get(pattern), self.texts.get(text))
    }

    fn by_reference(&self, input: usize, place: usize) -> u32 {
        let (pattern, text) = self.strings(input, place);
        cut(reference::distance(pattern, text), self.cutoff)
    }

    /// The places that are compared with the reference, ascending: all, or the first, the last, those of the longest and of
    /// the shortest text, and a seeded sample, as far as the cells go.
    fn sampled(&self, input: usize) -> Vec<usize> {
        let places = self.distances_len();
        if self.cells(input) <= REFERENCE_CELLS as f64 {
            return (0..places).collect();
        }
        let by_length = |place: &usize| self.texts.length(*place);
        let texts = || 0..self.texts.len();
        let special = [texts().max_by_key(by_length), texts().min_by_key(by_length), Some(0), places.checked_sub(1)];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed.wrapping_add(input as u64));
        let drawn = (0..SAMPLED_PAIRS.0).map(|_| random.random_range(0..places));
        let mut left = REFERENCE_CELLS;
        let mut sampled = Vec::new();
        for place in special.into_iter().flatten().chain(drawn) {
            let (pattern, text) = self.strings(input, place);
            let cells = pattern.len() as u64 * text.len() as u64;
            if cells > left && sampled.len() >= SAMPLED_PAIRS.1 {
                break;
            }
            left = left.saturating_sub(cells);
            sampled.push(place);
        }
        sampled.sort_unstable();
        sampled.dedup();
        sampled
    }

    fn distances_len(&self) -> usize {
        match self.form {
            Form::OneToMany | Form::Pairs => self.texts.len(),
            Form::AllPairs => self.texts.len() * self.patterns[0].len(),
        }
    }

    /// Cells of the tables of all pairs.
    fn cells(&self, input: usize) -> f64 {
        let (texts, patterns) = (&self.texts, &self.patterns[input]);
        match self.form {
            Form::OneToMany | Form::AllPairs => texts.total() as f64 * patterns.total() as f64,
            Form::Pairs => (0..texts.len()).map(|pair| texts.length(pair) as f64 * patterns.length(pair) as f64).sum(),
        }
    }

    fn mismatch(&self, input: usize, place: usize, expected: String, found: String) -> Mismatch {
        let (pattern, text) = self.pair(place);
        let (m, n) = (self.patterns[input].length(pattern), self.texts.length(text));
        let position = format!("pattern {pattern} ({m} symbols), text {text} ({n} symbols)");
        Mismatch { position, expected, found }
    }

    /// How many distances were compared with the reference.
    fn against_reference(&mut self, input: usize, distances: &[u32]) -> Result<u64, Mismatch> {
        let reference = match self.known[input].reference.take() {
            Some(reference) => reference,
            None => {
                let sampled = self.sampled(input);
                sampled.into_iter().map(|place| (place, self.by_reference(input, place))).collect()
            }
        };
        let wrong = reference.iter().find(|(place, expected)| distances[*place] != *expected);
        let wrong =
            wrong.map(|&(place, expected)| self.mismatch(input, place, in_words(expected), in_words(distances[place])));
        let compared = reference.len() as u64;
        self.known[input].reference = Some(reference);
        wrong.map_or(Ok(compared), Err)
    }

    /// All variants give the same distances; where they do not, the reference says which one is wrong.
    fn against_cpu(&mut self, threads: usize, input: usize, distances: &[u32]) -> Result<String, Mismatch> {
        let checksum = checksum(distances);
        let (known, by) = self.known[input].cpu.get_or_insert_with(|| (checksum.clone(), threads)).clone();
        if known == checksum {
            return Ok(checksum);
        }
        let other = self.on_cpu(input, by)?;
        let Some(place) = (0..distances.len()).find(|&place| distances[place] != other[place]) else {
            // It has changed since.
            return Err(Mismatch {
                position: format!("checksum on {by} threads"),
                expected: format!("{known} in every call"),
                found: checksum,
            });
        };
        let expected = self.by_reference(input, place);
        let found = if distances[place] == expected {
            format!("{} by the CPU on {by} threads", in_words(other[place]))
        } else {
            in_words(distances[place])
        };
        Err(self.mismatch(input, place, in_words(expected), found))
    }

    /// The distances, computed by the CPU once more.
    fn on_cpu(&self, input: usize, threads: usize) -> Result<Buffer<u32>, Mismatch> {
        let computed = Buffer::zeroed(self.distances_len()).and_then(|mut distances| {
            self.by_cpu(Row::OneShot, threads, input, &mut distances)?;
            Ok(distances)
        });
        computed.map_err(|error| Mismatch {
            position: "comparison".into(),
            expected: "the CPU's distances".into(),
            found: error.to_string(),
        })
    }

    fn compare(&mut self, variant: Variant, input: usize, distances: &[u32]) -> Result<(u64, String), Mismatch> {
        let compared = self.against_reference(input, distances)?;
        match variant {
            Variant::Simd { threads } => Ok((compared, self.against_cpu(threads, input, distances)?)),
            Variant::Gpu => {
                let threads = self.platform.threads;
                if self.known[input].cpu.is_none() {
                    let of_cpu = self.on_cpu(input, threads)?;
                    self.against_reference(input, &of_cpu)?;
                    self.known[input].cpu = Some((checksum(&of_cpu), threads));
                }
                let checksum = self.against_cpu(threads, input, distances)?;
                Ok((distances.len() as u64, checksum))
            }
        }
    }
}

impl Prepared for Distances {
    fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant::Simd { threads: self.platform.threads }, Variant::Simd { threads: 1 }];
        variants.dedup();
        #[cfg(feature = "gpu")]
        if self.gpu.is_ok() {
            variants.push(Variant::Gpu);
        }
        variants
    }

    fn no_gpu(&self) -> Option<String> {
        #[cfg(feature = "gpu")]
        if let Err(why) = &self.gpu {
            return Some(why.clone());
        }
        None
    }

    fn has_row(&self, variant: Variant, row: Row) -> bool {
        match variant {
            Variant::Simd { .. } => matches!(row, Row::Resident | Row::OneShot),
            Variant::Gpu => self.variants().contains(&Variant::Gpu),
        }
    }

    fn run(&mut self, variant: Variant, row: Row, input: usize) -> Result<Option<u64>, Error> {
        // A call that fails, or only a part of one, may have left anything.
        self.last = None;
        match (variant, row) {
            (Variant::Simd { threads }, Row::Resident | Row::OneShot) => {
                let mut distances = std::mem::replace(&mut self.distances, Buffer::zeroed(0)?);
                let computed = self.by_cpu(row, threads, input, &mut distances);
                self.distances = distances;
                computed?;
            }
            #[cfg(feature = "gpu")]
            (Variant::Gpu, row) => {
                let gpu = match &mut self.gpu {
                    Ok(gpu) => gpu,
                    Err(why) => {
                        return Err(Error::argument("variant", "one that this platform has", format!("gpu: {why}")));
                    }
                };
                let ran = gpu.run(row, &self.texts, &self.patterns[input], self.cutoff, &mut self.distances)?;
                if let Ran::Part(time) = ran {
                    return Ok(time);
                }
            }
            _ => return Err(Error::argument("row", "one that this variant has", row.name())),
        }
        self.last = Some((variant, row, input));
        Ok(None)
    }

    fn work(&self, row: Row) -> Work {
        let (texts_up, call_up, down) = self.moved_bytes();
        let up = call_up + if row == Row::OneShot { texts_up } else { 0 };
        Work {
            bytes_up: if matches!(row, Row::KernelOnly | Row::Download | Row::Floor) { 0 } else { up },
            bytes_down: if matches!(row, Row::KernelOnly | Row::Upload | Row::Floor) { 0 } else { down },
            bytes_touched: bytes(&self.texts) + bytes(&self.patterns[0]),
            // An operation is a cell of the table that the definition fills, whatever a path does of it.
            operations: self.cells(0),
            items: self.distances_len() as u64,
        }
    }

    fn check(&mut self, variant: Variant, row: Row, input: usize) -> Result<Agreement, Mismatch> {
        let not_run = |found: String| Mismatch {
            position: format!("input {input}"),
            expected: format!("a result of {variant:?}, {}", row.name()),
            found,
        };
        if self.last != Some((variant, row, input)) {
            return Err(not_run("none: it has not been run".into()));
        }
        let empty = Buffer::zeroed(0).map_err(|error| not_run(error.to_string()))?;
        let distances = std::mem::replace(&mut self.distances, empty);
        let compared = self.compare(variant, input, &distances);
        self.distances = distances;
        let (compared, checksum) = compared?;
        Ok(Agreement { compared, exact: compared, max_error: 0.0, tolerance: 0.0, checksum })
    }
}

fn in_words(distance: u32) -> String {
    if distance == BEYOND { "beyond the cutoff".into() } else { distance.to_string() }
}

fn bytes(texts: &Texts) -> u64 {
    let symbols = match texts.symbols() {
        Symbols::Narrow(symbols) => symbols.len(),
        Symbols::Wide(symbols) => 4 * symbols.len(),
    };
    symbols as u64 + size_of_val(texts.offsets()) as u64
}

fn checksum(distances: &[u32]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytemuck::cast_slice(distances));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    fn texts(strings: &[&str]) -> Texts {
        strings.iter().map(|string| string.chars().map(u32::from).collect::<Vec<_>>()).collect()
    }

    fn built(form: Form, cutoff: Option<u32>, patterns: &[&str], strings: &[&str]) -> Distances {
        let platform = Platform::cpu(Level::detect(), 2);
        Distances::new(form, cutoff, texts(strings), vec![texts(patterns)], 1, &platform).unwrap()
    }

    const TWO: Variant = Variant::Simd { threads: 2 };
    const ONE: Variant = Variant::Simd { threads: 1 };

    #[test]
    fn a_distance_that_is_wrong_is_named_with_its_strings() {
        let mut built = built(Form::AllPairs, Some(3), &["kitten", "cat"], &["sitting", "", "kitten"]);
        built.run(TWO, Row::OneShot, 0).unwrap();
        assert_eq!(built.distances[..], [3, BEYOND, 0, BEYOND, 3, BEYOND]);
        assert_eq!(built.check(TWO, Row::OneShot, 0).unwrap().compared, 6);
        let mut message = |place: usize, wrong| {
            let right = std::mem::replace(&mut built.distances[place], wrong);
            let message = built.check(TWO, Row::OneShot, 0).unwrap_err().to_string();
            built.distances[place] = right;
            message
        };
        assert_eq!(message(0, 4), "pattern 0 (6 symbols), text 0 (7 symbols): expected 3, found 4");
        assert_eq!(
            message(4, BEYOND),
            "pattern 1 (3 symbols), text 1 (0 symbols): expected 3, found beyond the cutoff"
        );
        assert_eq!(message(5, 4), "pattern 1 (3 symbols), text 2 (6 symbols): expected beyond the cutoff, found 4");
    }

    /// More cells than the reference computes: 1,500 pairs of 150 x 150 symbols, texts 7 and 11 the shortest and longest.
    fn large() -> Distances {
        let text = |number: usize| {
            let length =
                [(7, 149), (11, 151)].iter().find(|special| special.0 == number).map_or(150, |special| special.1);
            (0..length)
                .map(|place| ['a', 'b', 'c', 'd', 'e', 'f', 'g'][(place * place + number * place) % 7])
                .collect::<String>()
        };
        let strings: Vec<_> = (0..1_500).map(text).collect();
        let strings: Vec<_> = strings.iter().map(String::as_str).collect();
        built(Form::Pairs, None, &[&strings[1..], &strings[..1]].concat(), &strings)
    }

    #[test]
    fn of_many_pairs_a_sample_with_the_ends_and_the_extremes_is_compared() {
        let mut built = large();
        let sampled = built.sampled(0);
        assert!([0, 7, 11, 1_499].iter().all(|place| sampled.contains(place)), "{sampled:?}");
        let cells: u64 = sampled.len() as u64 * 150 * 150;
        assert!(sampled.len() > 400 && cells <= REFERENCE_CELLS + 1_000, "{}", sampled.len());
        built.run(ONE, Row::Resident, 0).unwrap();
        assert_eq!(built.check(ONE, Row::Resident, 0).unwrap().compared, sampled.len() as u64);
    }

    #[test]
    fn a_pair_outside_of_the_sample_is_compared_between_variants_and_the_reference_decides() {
        let mut built = large();
        let sampled = built.sampled(0);
        let outside = (0..1_500).find(|place| !sampled.contains(place)).unwrap();
        built.run(ONE, Row::Resident, 0).unwrap();
        built.check(ONE, Row::Resident, 0).unwrap();
        built.run(TWO, Row::Resident, 0).unwrap();
        built.distances[outside] += 1;
        let message = built.check(TWO, Row::Resident, 0).unwrap_err().to_string();
        let right = built.by_reference(0, outside);
        assert!(message.starts_with(&format!("pattern {outside} ")), "{message}");
        assert!(message.ends_with(&format!("expected {right}, found {}", right + 1)), "{message}");
        // The other way round: what the first variant gave in its call was wrong, and is right when it is computed again.
        built.known[0].cpu = Some(("0".into(), 1));
        built.distances[outside] -= 1;
        let message = built.check(TWO, Row::Resident, 0).unwrap_err().to_string();
        assert!(message.starts_with("checksum on 1 threads: expected 0 in every call, found "), "{message}");
    }
}
