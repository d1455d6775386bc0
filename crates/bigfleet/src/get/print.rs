//! A list on its way out: rows of a table, lines of JSON, documents, names.

use std::io::{self, Write};

use bigfleet_model::text::shown;
use bigfleet_view::v1::AsOf;

use super::column::Column;
use super::listing::Listing;
use crate::output::{Cell, Grid, Head, ListFormat, Shown, Terminal, write_json_line, write_yaml};
use crate::sentence::seen_at;

/// So many rows settle the widths of a table.
const FIRST_ROWS: usize = 1000;

/// Prints things one by one.
pub(super) struct Printer<'a, L: Listing> {
    format: ListFormat,
    terminal: &'a Terminal,
    columns: &'a [Column<L::Item>],
    heads: Vec<Head>,
    /// Rows that wait for the widths to be settled.
    waiting: Vec<Vec<Cell>>,
    grid: Option<Grid>,
    pub(super) printed: u64,
}

impl<'a, L: Listing> Printer<'a, L> {
    pub(super) fn new(format: ListFormat, terminal: &'a Terminal, columns: &'a [Column<L::Item>]) -> Self {
        let heads = columns.iter().map(Column::head).collect();
        Self { format, terminal, columns, heads, waiting: Vec::new(), grid: None, printed: 0 }
    }

    /// Prints one thing, or keeps it until the widths are known.
    pub(super) fn item(&mut self, out: &mut impl Write, item: &L::Item, as_of: &AsOf) -> io::Result<()> {
        self.printed += 1;
        match self.format {
            ListFormat::Json => {
                write_json_line(out, &Shown::new(L::MESSAGE, item).simulated(as_of.simulated))
            }
            ListFormat::Yaml => {
                out.write_all(b"---\n")?;
                write_yaml(out, &Shown::new(L::MESSAGE, item).simulated(as_of.simulated))
            }
            ListFormat::Name => writeln!(out, "{}", shown(&L::name(item))),
            ListFormat::Table | ListFormat::Wide => {
                let now = seen_at(as_of);
                let row: Vec<Cell> = self.columns.iter().map(|column| column.cell(item, now)).collect();
                if let Some(grid) = &self.grid {
                    return grid.write_row(out, &row);
                }
                self.waiting.push(row);
                if self.waiting.len() < FIRST_ROWS { Ok(()) } else { self.settle(out) }
            }
        }
    }

    /// Prints what still waits. Tells which columns had no room.
    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<Vec<&str>> {
        if self.grid.is_none() && !self.waiting.is_empty() {
            self.settle(out)?;
        }
        Ok(self.grid.as_ref().map(|grid| grid.left_out(&self.heads)).unwrap_or_default())
    }

    fn settle(&mut self, out: &mut impl Write) -> io::Result<()> {
        let width = if self.format == ListFormat::Wide { None } else { self.terminal.width };
        let grid = Grid::settle(&self.heads, &self.waiting, width, self.terminal.paint);
        grid.write_heads(out, &self.heads)?;
        for row in self.waiting.drain(..) {
            grid.write_row(out, &row)?;
        }
        self.grid = Some(grid);
        Ok(())
    }
}
