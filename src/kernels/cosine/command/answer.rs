//! What `lodestar topk` writes: files, text, or tables for people.

use super::super::{Metric, Neighbors};
use super::Inputs;
use crate::cli::Io;
use crate::formats::{ListFormat, RankedLists};
use comfy_table::{CellAlignment, Table};
use std::io::Write;
use std::path::PathBuf;

/// Where an answer goes.
pub(super) enum View {
    /// Into files, whole or not at all.
    Files(ListFormat, PathBuf),
    /// To stdout.
    Text(ListFormat),
    /// To stdout, for people.
    Table,
}

impl View {
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::Files(..))
    }
}

pub(super) struct Answer<'a> {
    pub(super) neighbors: &'a Neighbors,
    pub(super) inputs: &'a Inputs,
    pub(super) metric: Metric,
    pub(super) width: usize,
}

impl Answer<'_> {
    pub(super) fn write(&self, view: &View, io: &mut Io) -> anyhow::Result<()> {
        let lists = RankedLists {
            offsets: &self.neighbors.offsets,
            rows: &self.neighbors.rows,
            scores: &self.neighbors.scores,
            width: self.width,
            score: self.metric.name(),
            numbers: self.inputs.numbers.as_deref(),
            ids: self.inputs.ids.as_ref(),
            query_ids: self.inputs.query_ids.as_ref(),
        };
        match view {
            View::Files(format, path) => {
                let paths = lists.write_files(*format, path)?;
                if paths.len() > 1 {
                    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                    io.note(format_args!("wrote {}", paths.join(" and ")));
                }
            }
            View::Text(format) => lists.write_text(*format, &mut io.out)??,
            View::Table => tables(&lists, io)?,
        }
        Ok(())
    }
}

/// One table a query, under the query's name or number.
fn tables(lists: &RankedLists, io: &mut Io) -> anyhow::Result<()> {
    for query in 0..lists.queries() {
        let number = lists.number(query);
        let gap = if query == 0 { "" } else { "\n" };
        match lists.query_ids {
            Some(names) => writeln!(io.out, "{gap}query {number}: {}", names.get(number))?,
            None => writeln!(io.out, "{gap}query {number}")?,
        }
        let (rows, scores) = lists.query(query);
        if rows.is_empty() {
            writeln!(io.out, "  nothing found")?;
            continue;
        }
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut heading = vec!["rank", lists.score, "row"];
        heading.extend(lists.ids.map(|_| "id"));
        table.set_header(heading);
        for (rank, (&row, &score)) in rows.iter().zip(scores).enumerate() {
            let mut cells = vec![(rank + 1).to_string(), format!("{score:.4}"), row.to_string()];
            cells.extend(lists.ids.map(|names| names.get(row as usize).to_owned()));
            table.add_row(cells);
        }
        for column in table.column_iter_mut().take(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for line in table.lines() {
            writeln!(io.out, " {}", line.trim_end())?;
        }
    }
    Ok(())
}
