//! Comparing, block by block, and writing what comes of it.

use super::super::BEYOND;
use super::answer::Sink;
use super::arguments::{Arguments, OutputFormat};
use super::engine::Engine;
use super::form::Form;
use super::inputs::Inputs;
use super::nearest;
use super::records::{Records, similarity};
use crate::cli::Io;
use crate::error::Error;
use crate::formats::Cells;
use crate::kernels::Platform;
use crate::units::Bytes;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Memory for the distances of a block, where the person does not say.
const MEMORY: u64 = 64 << 20;
/// Distances that are formatted in one part, at most.
const PART: usize = 1 << 14;
/// Bytes of a part, about: of long strings it holds fewer distances, down to a single one.
const PART_BYTES: usize = 1 << 20;
/// Distances that are looked at together.
const PIECE: usize = 64;

/// What was done.
pub(super) struct Done {
    pub(super) pairs: u64,
    pub(super) cells: f64,
    pub(super) blocks: usize,
    pub(super) place: String,
    pub(super) comparing: Duration,
    pub(super) writing: Duration,
}

/// All that is to be compared, and how.
pub(super) struct Compare<'a> {
    arguments: &'a Arguments,
    inputs: &'a Inputs<'a>,
    engine: Engine<'a>,
    threads: &'a ThreadPool,
    memory: u64,
}

/// Distances of some left strings to some right ones, row by row.
struct Block<'a> {
    rows: Range<usize>,
    columns: Range<usize>,
    distances: &'a [u32],
}

impl<'a> Compare<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        inputs: &'a Inputs<'a>,
        platform: &'a Platform,
        threads: &'a ThreadPool,
        io: &Io,
    ) -> Self {
        let memory = match arguments.memory {
            Some(Bytes(memory)) => memory,
            None => MEMORY.min(io.available_memory().unwrap_or(u64::MAX) / 2),
        };
        let engine = Engine::new(inputs, arguments.max_distance, platform, threads);
        Self { arguments, inputs, engine, threads, memory }
    }

    /// Compares and writes.
    pub(super) fn write(mut self, mut sink: Sink, io: &mut Io) -> Result<Done, Error> {
        let inputs = self.inputs;
        let records = Records::new(inputs, sink.format(), self.arguments);
        let (left, right) = (inputs.left.len(), inputs.right().len());
        self.say(&sink, &records, io);
        if sink.format() == OutputFormat::Npy {
            let shape = match inputs.form {
                Form::Pattern(..) | Form::Pairs(_) => vec![right],
                Form::Two(..) | Form::Within(_) => vec![left, right],
            };
            sink.write(&records.cells().npy_header(&shape), io)?;
        } else {
            sink.write(records.heading().as_bytes(), io)?;
        }
        let (blocks, pairs) = if matches!(inputs.form, Form::Pairs(_)) {
            self.pairs(&records, &mut sink, io)?;
            (1, left as u64)
        } else {
            let blocks = self.rows(&records, &mut sink, io)?;
            let all = left as u64 * right as u64;
            (blocks, if matches!(inputs.form, Form::Within(_)) { (all - left as u64) / 2 } else { all })
        };
        let writing = sink.finish(io)?;
        let (place, comparing) = (self.engine.place(), self.engine.comparing);
        Ok(Done { pairs, cells: inputs.cells(), blocks, place, comparing, writing })
    }

    /// What the person should know beforehand.
    fn say(&self, sink: &Sink, records: &Records, io: &Io) {
        let (left, right) = (self.inputs.left.len(), self.inputs.right().len());
        let is_matrix = matches!(self.inputs.form, Form::Two(..) | Form::Within(_));
        if is_matrix && sink.format() == OutputFormat::Npy {
            let (name, cells) = (sink.name(), records.cells());
            let size = Bytes((left as u64).saturating_mul(right as u64).saturating_mul(cells.bytes() as u64));
            io.note(format_args!("{name}: {left} x {right} numbers of type {}, {size}", cells.name()));
        }
        let others = right - usize::from(self.is_without_self() && right > 0);
        if let Some(k) = self.arguments.nearest.filter(|&k| k > others) {
            let name = &self.inputs.right_name;
            let what = match self.inputs.form {
                Form::Pattern(..) | Form::Two(..) if others == right => "strings",
                Form::Pairs(_) => "pairs",
                _ => "strings beside each",
            };
            io.note(format_args!("--nearest is {k}, and {name} has {others} {what}: all of them are returned"));
        }
    }

    fn is_without_self(&self) -> bool {
        self.arguments.exclude_self || matches!(self.inputs.form, Form::Within(_))
    }

    /// Of two columns, each string with its neighbour.
    fn pairs(&mut self, records: &Records, sink: &mut Sink, io: &mut Io) -> Result<(), Error> {
        let mut distances = room(self.inputs.left.len())?;
        if !distances.is_empty() {
            self.engine.pairs(&mut distances, io)?;
        }
        if let Some(k) = self.arguments.nearest {
            let best = self.nearest(k, None, &distances, |row| self.inputs.longer(row, row));
            let best: Vec<_> = best.into_iter().map(|row| (row, row, distances[row])).collect();
            return self.list(&best, records, sink, io);
        }
        let block = Block { rows: 0..1, columns: 0..distances.len(), distances: &distances };
        self.all(&block, |_, row| (row, row), records, sink, io)
    }

    /// Every left string with every right one, in blocks of rows.
    fn rows(&mut self, records: &Records, sink: &mut Sink, io: &mut Io) -> Result<usize, Error> {
        let (left, right) = (self.inputs.left.len(), self.inputs.right().len());
        if left == 0 || right == 0 {
            return Ok(0);
        }
        // Of one file, each pair once: where a list is written, the columns before the first row of a block are not wanted.
        let once = matches!(self.inputs.form, Form::Within(_))
            && self.arguments.nearest.is_none()
            && sink.format() != OutputFormat::Npy;
        let mut at_a_time = usize::try_from(self.memory / (right as u64 * 4)).unwrap_or(usize::MAX).clamp(1, left);
        if once {
            at_a_time = at_a_time.min((left / 16).max(64));
        }
        // Whole groups of patterns, where there is a choice.
        if at_a_time > 64 && at_a_time < left {
            at_a_time -= at_a_time % 64;
        }
        let mut distances = room(at_a_time * right)?;
        let mut progress = (at_a_time < left).then(|| io.progress("comparing", left as u64));
        for first in (0..left).step_by(at_a_time) {
            let rows = first..left.min(first + at_a_time);
            let columns = if once && !self.engine.takes_whole_rows() { first..right } else { 0..right };
            let distances = &mut distances[..rows.len() * columns.len()];
            self.engine.rows(rows.clone(), columns.clone(), distances, io)?;
            let done = rows.len() as u64;
            let block = Block { rows, columns, distances };
            match self.arguments.nearest {
                Some(k) => self.nearest_of_each(k, &block, records, sink, io)?,
                None => self.all(&block, |left, right| (left, right), records, sink, io)?,
            }
            if let Some(progress) = &mut progress {
                progress.advance(done, "");
            }
        }
        Ok(left.div_ceil(at_a_time))
    }

    /// Writes all distances of a block that are wanted; `pair` says what two strings a place in it is about.
    fn all(
        &self,
        block: &Block,
        pair: impl Fn(usize, usize) -> (usize, usize) + Sync,
        records: &Records,
        sink: &mut Sink,
        io: &mut Io,
    ) -> Result<(), Error> {
        let (format, inputs) = (sink.format(), self.inputs);
        let (once, without_self) = (matches!(inputs.form, Form::Within(_)), self.is_without_self());
        let width = block.columns.len();
        let write = |range: &Range<usize>, bytes: &mut Vec<u8>| {
            let distances = &block.distances[range.clone()];
            if format == OutputFormat::Npy && records.cells() != Cells::F32 {
                return records.cells().append(distances, bytes);
            }
            let mut at = range.start;
            while at < range.end {
                let (row, column) = (at / width, at % width);
                let end = range.end.min(at - column + width).min(at + PIECE);
                let distances = &block.distances[at..end];
                at = end;
                let pairs = distances.iter().zip(column..).map(|(&distance, column)| {
                    let (left, right) = pair(block.rows.start + row, block.columns.start + column);
                    (left, right, distance)
                });
                if format == OutputFormat::Npy {
                    let similarities =
                        pairs.map(|(left, right, distance)| as_f32(distance, inputs.longer(left, right)));
                    Cells::append_f32(similarities, bytes);
                    continue;
                }
                // All ones stand for what is not wanted: with a cutoff, that is nearly all.
                if distances.iter().fold(BEYOND, |all, distance| all & distance) == BEYOND {
                    continue;
                }
                for (left, right, distance) in pairs {
                    let wanted = distance != BEYOND && !(once && right <= left || without_self && right == left);
                    if wanted {
                        records.record(left, right, distance, bytes);
                    }
                }
            }
        };
        let of_a_record = |place: usize| match inputs.form {
            Form::Pairs(_) => records.bytes_of_any(),
            _ => records.bytes_of_row(block.rows.start + place / width),
        };
        sink.write_parts(parts(block.distances.len(), width, of_a_record), write, self.threads, io)
    }

    /// Writes some records, each part of them by its own length.
    fn list(&self, list: &[(usize, usize, u32)], records: &Records, sink: &mut Sink, io: &mut Io) -> Result<(), Error> {
        let parts = parts(list.len(), 1, |place| records.bytes(list[place].0, list[place].1));
        let write = |range: &Range<usize>, bytes: &mut Vec<u8>| {
            for &(left, right, distance) in &list[range.clone()] {
                records.record(left, right, distance, bytes);
            }
        };
        sink.write_parts(parts, write, self.threads, io)
    }

    /// Writes the nearest of each row of a block.
    fn nearest_of_each(
        &self,
        k: usize,
        block: &Block,
        records: &Records,
        sink: &mut Sink,
        io: &mut Io,
    ) -> Result<(), Error> {
        let width = block.columns.len();
        // Rows that one thread takes at a time, and that are looked through before what they have is written.
        let of_a_thread = (PART / width).max(1);
        let at_a_time = of_a_thread * self.threads.current_num_threads() * 2;
        for (chunk, distances) in block.distances.chunks(at_a_time * width).enumerate() {
            let started = Instant::now();
            let first = block.rows.start + chunk * at_a_time;
            let nearest_of = |(row, distances): (usize, &[u32])| {
                let left = first + row;
                let own = self.is_without_self().then_some(left);
                let best = self.nearest(k, own, distances, |right| self.inputs.longer(left, right));
                best.into_iter().map(|right| (left, right, distances[right])).collect::<Vec<_>>()
            };
            let best: Vec<_> = self.threads.install(|| {
                let rows = distances.par_chunks_exact(width).enumerate().with_min_len(of_a_thread);
                rows.flat_map_iter(nearest_of).collect()
            });
            sink.writing += started.elapsed();
            self.list(&best, records, sink, io)?;
        }
        Ok(())
    }

    /// The places of the nearest, nearest first, without the own one; `longer` says how long the longer string is.
    fn nearest(&self, k: usize, own: Option<usize>, distances: &[u32], longer: impl Fn(usize) -> usize) -> Vec<usize> {
        if self.arguments.similarity {
            nearest::smallest_shares(k, own, distances, longer)
        } else {
            nearest::smallest_distances(k, own, distances)
        }
    }
}

/// Cuts `places`, `width` of them a row, into parts; the records of a row are about `bytes(place)` long. So what waits to be
/// written is bounded, whatever the length of the strings.
fn parts(places: usize, width: usize, bytes: impl Fn(usize) -> usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (mut end, mut room) = (start, PART_BYTES);
        let last = places.min(start + PART);
        while end < last {
            let bytes = bytes(end).max(1);
            // One at least, however long.
            let count = (room / bytes).max(usize::from(end == start)).min(last - end).min(width - end % width);
            if count == 0 {
                break;
            }
            end += count;
            room = room.saturating_sub(count.saturating_mul(bytes));
        }
        let part = start..end;
        start = end;
        (!part.is_empty()).then_some(part)
    })
}

fn as_f32(distance: u32, longer: usize) -> f32 {
    if distance == BEYOND {
        return f32::NAN;
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded to what the file holds")]
    let similarity = similarity(distance, longer) as f32;
    similarity
}

/// Places for distances.
fn room(count: usize) -> Result<Vec<u32>, Error> {
    let mut distances = Vec::new();
    distances.try_reserve_exact(count).map_err(|_| {
        Error::argument("--memory", "a size that can be had", format!("a block of {count} distances of 4 bytes"))
    })?;
    distances.resize(count, 0);
    Ok(distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_can_be_is_refused() {
        let found = room(usize::MAX / 8).unwrap_err().to_string();
        let expected = format!(
            "--memory: expected a size that can be had, found a block of {} distances of 4 bytes",
            usize::MAX / 8
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn parts_follow_each_other_and_hold_as_many_records_as_their_bytes_allow() {
        let cut = |places, width, bytes: &dyn Fn(usize) -> usize| {
            parts(places, width, bytes).map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        assert!(cut(0, 1, &|_| 1).is_empty());
        assert_eq!(cut(PART + 1, PART + 1, &|_| 1), [(0, PART), (PART, PART + 1)]);
        assert_eq!(cut(3, 3, &|_| 0), [(0, 3)]);
        // A record that is longer than a part is one by itself.
        assert_eq!(cut(3, 3, &|_| PART_BYTES + 1), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(cut(5, 5, &|_| PART_BYTES / 2), [(0, 2), (2, 4), (4, 5)]);
        // A row of short records, one of long ones, and one of short ones again.
        let rows = |place: usize| if place / 4 == 1 { PART_BYTES / 2 } else { 10 };
        assert_eq!(cut(12, 4, &rows), [(0, 5), (5, 7), (7, 12)]);
    }
}
