//! Lines of the output: numbers, and what stands for the strings.

use super::arguments::{Arguments, OutputFormat};
use super::form::Form;
use super::inputs::{Inputs, Shown, is_quoted};
use crate::formats::Cells;
use std::io::Write;

/// Bytes of the numbers of a record, about.
const NUMBERS: usize = 32;

/// How a pair and its distance are written.
pub(super) struct Records<'a> {
    inputs: &'a Inputs<'a>,
    format: OutputFormat,
    similarity: bool,
    /// Of .npy.
    cells: Cells,
    /// Of what is shown of one string, on either side.
    means: [usize; 2],
}

impl<'a> Records<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>, format: OutputFormat, arguments: &Arguments) -> Self {
        let largest = match arguments.max_distance {
            // One more number, for all that is farther.
            Some(cutoff) => inputs.largest().min(cutoff).saturating_add(1),
            None => inputs.largest(),
        };
        let cells = if arguments.similarity { Cells::F32 } else { Cells::up_to(largest) };
        let mut records = Self { inputs, format, similarity: arguments.similarity, cells, means: [0; 2] };
        records.means = records.shown().map(|shown| {
            shown.map_or(0, |(_, shown)| {
                let total: usize = shown.strings.iter().map(<[u8]>::len).sum();
                total.div_ceil(shown.strings.len().max(1))
            })
        });
        records
    }

    /// Bytes of a record, about.
    pub(super) fn bytes(&self, left: usize, right: usize) -> usize {
        let of = |(shown, at): (Option<(_, &Shown)>, usize)| shown.map_or(0, |(_, shown)| shown.strings.get(at).len());
        NUMBERS + self.shown().into_iter().zip([left, right]).map(of).sum::<usize>()
    }

    /// Bytes of a record of this left string, about: exact in the mean of all right ones.
    pub(super) fn bytes_of_row(&self, left: usize) -> usize {
        let [shown, _] = self.shown();
        NUMBERS + shown.map_or(0, |(_, shown)| shown.strings.get(left).len()) + self.means[1]
    }

    /// Bytes of a record, in the mean of all.
    pub(super) fn bytes_of_any(&self) -> usize {
        NUMBERS + self.means[0] + self.means[1]
    }

    pub(super) fn cells(&self) -> Cells {
        self.cells
    }

    fn value_name(&self) -> &'static str {
        if self.similarity { "similarity" } else { "distance" }
    }

    /// Whether both rows are numbered: they are the same number of pairs, and always 0 of one text.
    fn has_both_rows(&self) -> bool {
        matches!(self.inputs.form, Form::Two(..) | Form::Within(_))
    }

    /// What is shown of the strings, under these names.
    fn shown(&self) -> [Option<(&'static str, &'a Shown)>; 2] {
        let name = |shown: &'a Shown, names: [&'static str; 2]| (names[usize::from(shown.are_names)], shown);
        let right = self.inputs.right_shown();
        if matches!(self.inputs.form, Form::Pattern(..)) {
            return [None, right.map(|shown| name(shown, ["text", "id"]))];
        }
        let left = self.inputs.left_shown();
        [
            left.map(|shown| name(shown, ["left_text", "left_id"])),
            right.map(|shown| name(shown, ["right_text", "right_id"])),
        ]
    }

    /// What stands before the records.
    pub(super) fn heading(&self) -> String {
        let separator = match self.format {
            OutputFormat::Csv => ",",
            OutputFormat::Tsv => "\t",
            OutputFormat::Jsonl | OutputFormat::Txt | OutputFormat::Npy => return String::new(),
        };
        let mut names = if self.has_both_rows() { vec!["left", "right"] } else { vec!["row"] };
        names.push(self.value_name());
        names.extend(self.shown().into_iter().flatten().map(|(name, _)| name));
        names.join(separator) + "\n"
    }

    /// Appends one record.
    pub(super) fn record(&self, left: usize, right: usize, distance: u32, bytes: &mut Vec<u8>) {
        let both = self.has_both_rows();
        match self.format {
            OutputFormat::Txt | OutputFormat::Npy => self.value(left, right, distance, bytes),
            OutputFormat::Csv | OutputFormat::Tsv => {
                let separator = if self.format == OutputFormat::Csv { b',' } else { b'\t' };
                if both {
                    number(left, bytes);
                    bytes.push(separator);
                }
                number(right, bytes);
                bytes.push(separator);
                self.value(left, right, distance, bytes);
                for ((_, shown), at) in
                    self.shown().into_iter().zip([left, right]).filter_map(|(shown, at)| Some((shown?, at)))
                {
                    bytes.push(separator);
                    let field = shown.strings.get(at);
                    if shown.quoted && is_quoted(field) { quote(field, bytes) } else { bytes.extend_from_slice(field) }
                }
            }
            OutputFormat::Jsonl => {
                bytes.extend_from_slice(if both { b"{\"left\":" } else { b"{\"row\":" });
                if both {
                    number(left, bytes);
                    bytes.extend_from_slice(b",\"right\":");
                }
                number(right, bytes);
                bytes.extend_from_slice(b",\"");
                bytes.extend_from_slice(self.value_name().as_bytes());
                bytes.extend_from_slice(b"\":");
                self.value(left, right, distance, bytes);
                for ((name, shown), at) in
                    self.shown().into_iter().zip([left, right]).filter_map(|(shown, at)| Some((shown?, at)))
                {
                    bytes.extend_from_slice(b",\"");
                    bytes.extend_from_slice(name.as_bytes());
                    bytes.extend_from_slice(b"\":");
                    json(shown.strings.get(at), bytes);
                }
                bytes.push(b'}');
            }
        }
        bytes.push(b'\n');
    }

    fn value(&self, left: usize, right: usize, distance: u32, bytes: &mut Vec<u8>) {
        if self.similarity {
            let similarity = similarity(distance, self.inputs.longer(left, right));
            // Writing to memory cannot fail.
            let _ = write!(bytes, "{similarity}");
        } else {
            number(distance, bytes);
        }
    }
}

/// 1 - distance / length of the longer string; 1 where both are empty.
pub(super) fn similarity(distance: u32, longer: usize) -> f64 {
    if longer == 0 { 1.0 } else { (longer as f64 - f64::from(distance)) / longer as f64 }
}

fn number(number: impl itoa::Integer, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn quote(field: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(b'"');
    for &byte in field {
        if byte == b'"' {
            bytes.push(b'"');
        }
        bytes.push(byte);
    }
    bytes.push(b'"');
}

/// Strings for JSON were checked to be UTF-8.
fn json(text: &[u8], bytes: &mut Vec<u8>) {
    let _ = serde_json::to_writer(bytes, &String::from_utf8_lossy(text));
}
