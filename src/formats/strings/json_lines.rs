//! Fields of the objects of .jsonl.

use super::lines::Lines;
use super::{Column, File, Pool, StringList};
use crate::error::Error;
use crate::formats::text::quote;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads `count` fields of each object; where none is given and one is wanted, each line is a string.
pub(super) fn read(file: &File, wanted: &[Column], count: usize) -> Result<Vec<StringList>, Error> {
    let mut columns: Vec<_> = (0..count).map(|_| Pool::new()).collect();
    let mut lines = Vec::new();
    if wanted.len() != count && count > 1 {
        return Err(Error::format(&file.path, "fields", "--columns, two fields of the objects", "none"));
    }
    // The whole line is what is found under an empty path.
    let whole = [Column::new("")];
    let wanted = if wanted.is_empty() { &whole } else { wanted };
    let mut slots: Vec<_> = wanted.iter().map(|_| Slot { found: Found::Nothing, text: String::new() }).collect();
    for (number, line) in Lines::new(&file.bytes).filter(|(_, line)| !line.trim_ascii().is_empty()) {
        slots.iter_mut().for_each(|slot| slot.found = Found::Nothing);
        let mut json = serde_json::Deserializer::from_slice(line);
        let paths = wanted.iter().enumerate().map(|(slot, column)| (slot, column.0.as_str())).collect();
        let parsed = Fields { paths, slots: &mut slots }.deserialize(&mut json).and_then(|()| json.end());
        parsed.map_err(|error| {
            let column = if error.column() > 0 { format!(", byte {}", error.column()) } else { String::new() };
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default().to_owned();
            Error::format(
                &file.path,
                format!("line {number}{column}"),
                "one JSON value",
                format!("{} ({said})", quote(line)),
            )
        })?;
        for ((slot, column), pool) in slots.iter().zip(wanted).zip(&mut columns) {
            let found = match slot.found {
                Found::Text => {
                    pool.push(slot.text.as_bytes());
                    continue;
                }
                Found::Nothing => "no such field",
                Found::Other(kind) => kind,
            };
            let expected = match column.0.as_str() {
                "" => "a string, or --column to name a field".to_owned(),
                name => format!("a string in the field {name}"),
            };
            return Err(file.error(number, expected, found));
        }
        lines.push(number);
    }
    let name =
        |column: &Column| if column.0.is_empty() { "the string".to_owned() } else { format!("field {}", column.0) };
    file.lists(columns.into_iter().zip(wanted.iter().map(name)).collect(), lines)
}

struct Slot {
    found: Found,
    text: String,
}

#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Text,
    Other(&'static str),
}

/// Reads one JSON value and keeps of it what lies at the ends of these paths, an empty one being the value itself. Of a key
/// that is there twice, the last counts.
struct Fields<'a, 's> {
    /// Where each goes, and what is left of its path.
    paths: Vec<(usize, &'a str)>,
    slots: &'s mut [Slot],
}

impl Fields<'_, '_> {
    fn put(self, kind: &'static str) {
        for (slot, rest) in self.paths {
            // A path that goes on found no object to go on in.
            self.slots[slot].found = if rest.is_empty() { Found::Other(kind) } else { Found::Nothing };
        }
    }
}

impl<'de> DeserializeSeed<'de> for Fields<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.paths.is_empty() {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.put("true or false");
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.put("a number");
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.put("a number");
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.put("a number");
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.put("null");
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        for (slot, rest) in self.paths {
            let slot = &mut self.slots[slot];
            if rest.is_empty() {
                slot.found = Found::Text;
                slot.text.clear();
                slot.text.push_str(text);
            } else {
                slot.found = Found::Nothing;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        self.put("an array");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { paths, slots } = self;
        for &(slot, _) in &paths {
            slots[slot].found = Found::Nothing;
        }
        while let Some(paths) = map.next_key_seed(Key(&paths))? {
            map.next_value_seed(Fields { paths, slots: &mut *slots })?;
        }
        for (slot, rest) in paths {
            if rest.is_empty() {
                slots[slot].found = Found::Other("an object");
            }
        }
        Ok(())
    }
}

/// Reads a key and keeps the paths that go on behind it.
struct Key<'p, 'a>(&'p [(usize, &'a str)]);

impl<'de, 'a> DeserializeSeed<'de> for Key<'_, 'a> {
    type Value = Vec<(usize, &'a str)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 'a> Visitor<'de> for Key<'_, 'a> {
    type Value = Vec<(usize, &'a str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let behind = |&(slot, path): &(usize, &'a str)| {
            // An empty path is the value itself, whatever its keys.
            if path == key && !path.is_empty() {
                return Some((slot, ""));
            }
            let rest = path.strip_prefix(key)?.strip_prefix('.')?;
            (!rest.is_empty()).then_some((slot, rest))
        };
        Ok(self.0.iter().filter_map(behind).collect())
    }
}
