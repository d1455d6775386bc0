//! A list on its way out: rows of a table, lines of JSON, documents, names.

use std::io::{self, Write};

use bigfleet_model::text::shown;
use bigfleet_view::v1::AsOf;

use super::column::Column;
use super::listing::Listing;
use crate::output::{Cell, Grid, Head, ListFormat, Shown, Terminal, Tone, write_json_line, write_yaml};
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
    total: L::Item,
}

impl<'a, L: Listing> Printer<'a, L> {
    pub(super) fn new(format: ListFormat, terminal: &'a Terminal, columns: &'a [Column<L::Item>]) -> Self {
        let heads = columns.iter().map(Column::head).collect();
        Self {
            format,
            terminal,
            columns,
            heads,
            waiting: Vec::new(),
            grid: None,
            printed: 0,
            total: L::Item::default(),
        }
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
                L::add(&mut self.total, item);
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
        let is_table = matches!(self.format, ListFormat::Table | ListFormat::Wide);
        if is_table && self.printed > 1 && !L::SUMS.is_empty() {
            let sum = |(place, column): (usize, &Column<L::Item>)| {
                if L::SUMS.contains(&&*column.name) {
                    return column.cell(&self.total, 0);
                }
                Cell::toned(if place == 0 { "total" } else { "" }, Tone::Dim)
            };
            let row: Vec<Cell> = self.columns.iter().enumerate().map(sum).collect();
            match &self.grid {
                Some(grid) => grid.write_row(out, &row)?,
                None => self.waiting.push(row),
            }
        }
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
