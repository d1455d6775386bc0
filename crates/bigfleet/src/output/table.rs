//! Columns of text, without borders, that fit the terminal.
//!
//! Widths are settled once, by the first rows, so that a list of half a million lines flows through without being held.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::safe;
use super::{Paint, Tone};

/// Between two columns.
const GAP: usize = 2;
/// A column is not made narrower than this.
const NARROWEST: usize = 8;
/// Nor one that is to be kept than this: less of a reason says nothing.
const NARROWEST_KEPT: usize = 24;

/// The head of a column.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) title: String,
    /// Numbers stand at the right.
    pub(crate) right: bool,
    /// Whether its text may be cut if there is no room.
    pub(crate) shrinks: bool,
    /// Whether others are left out before it is.
    pub(crate) keeps: bool,
}

/// One field of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: safe(text), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: safe(text), tone: Tone::Plain }
    }
}

/// A table whose widths are settled.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// For each column its width; `None` if it was left out.
    widths: Vec<Option<usize>>,
    right: Vec<bool>,
    /// Whether what does not fit is cut; if not, it pushes its neighbours.
    cuts: bool,
    paint: Paint,
}

impl Grid {
    /// Settles widths for `rows`, within `width` if there is one.
    pub(crate) fn settle(heads: &[Head], rows: &[Vec<Cell>], width: Option<usize>, paint: Paint) -> Self {
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| row[column].text.width());
            cells.chain([heads[column].title.width()]).max().unwrap_or(0)
        };
        let mut widths: Vec<Option<usize>> = (0..heads.len()).map(|column| Some(widest(column))).collect();
        if let Some(width) = width {
            shrink(&mut widths, heads, width);
        }
        Self { widths, right: heads.iter().map(|head| head.right).collect(), cuts: width.is_some(), paint }
    }

    /// The titles of the columns that had no room.
    pub(crate) fn left_out<'a>(&self, heads: &'a [Head]) -> Vec<&'a str> {
        let out = self.widths.iter().zip(heads).filter(|(width, _)| width.is_none());
        out.map(|(_, head)| head.title.as_str()).collect()
    }

    /// Writes the line of titles.
    pub(crate) fn write_heads(&self, out: &mut impl Write, heads: &[Head]) -> io::Result<()> {
        let cells: Vec<Cell> = heads.iter().map(|head| Cell::toned(&head.title, Tone::Head)).collect();
        self.write_row(out, &cells)
    }

    /// Writes one row.
    pub(crate) fn write_row(&self, out: &mut impl Write, row: &[Cell]) -> io::Result<()> {
        let mut line = String::new();
        let mut blanks = 0;
        for ((cell, width), right) in row.iter().zip(&self.widths).zip(&self.right) {
            let Some(width) = *width else { continue };
            let text = if self.cuts { cut(&cell.text, width) } else { cell.text.clone() };
            let missing = width.saturating_sub(text.width());
            let (before, after) = if *right { (missing, 0) } else { (0, missing) };
            line.extend(std::iter::repeat_n(' ', blanks + before));
            line.push_str(&self.paint.apply(cell.tone, &text));
            // Written before the next cell only: lines do not end in blanks.
            blanks = after + GAP;
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// Cuts the widest columns that may be cut; if that is not enough, leaves out columns from the right.
fn shrink(widths: &mut [Option<usize>], heads: &[Head], width: usize) {
    loop {
        let kept = widths.iter().flatten();
        let total = kept.clone().sum::<usize>() + GAP * kept.count().saturating_sub(1);
        let Some(over) = total.checked_sub(width).filter(|over| *over > 0) else { return };
        let narrowest = |column: usize| if heads[column].keeps { NARROWEST_KEPT } else { NARROWEST };
        let floor = |column: usize| heads[column].title.width().max(narrowest(column));
        let cuttable = (0..heads.len()).filter(|column| heads[*column].shrinks);
        let widest = cuttable
            .filter_map(|column| Some((widths[column]?, column)))
            .filter(|(width, column)| *width > floor(*column))
            .max_by_key(|(width, column)| (*width, std::cmp::Reverse(*column)));
        if let Some((now, column)) = widest {
            widths[column] = Some(now.saturating_sub(over).max(floor(column)).max(now / 2));
            continue;
        }
        let left = |column: &usize| *column > 0 && widths[*column].is_some();
        let ordinary = (0..heads.len()).rev().filter(left).find(|column| !heads[*column].keeps);
        let Some(last) = ordinary.or_else(|| (0..heads.len()).rev().find(left)) else { return };
        widths[last] = None;
    }
}

/// The text, or its beginning and a sign that more followed.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = text.chars().take_while(|c| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    });
    let mut short: String = fits.collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(title: &str, right: bool, shrinks: bool) -> Head {
        Head { title: title.into(), right, shrinks, keeps: false }
    }

    fn shown(heads: &[Head], rows: &[&[&str]], width: Option<usize>) -> String {
        let rows: Vec<Vec<Cell>> =
            rows.iter().map(|row| row.iter().map(|text| (*text).into()).collect()).collect();
        let grid = Grid::settle(heads, &rows, width, Paint::Plain);
        let mut out = Vec::new();
        grid.write_heads(&mut out, heads).unwrap();
        for row in &rows {
            grid.write_row(&mut out, row).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_and_lines_do_not_end_in_blanks() {
        let heads = [head("NAME", false, false), head("N", true, false), head("WHY", false, true)];
        let rows: [&[&str]; 2] = [&["a", "1", ""], &["long-name", "1,000", "because"]];
        assert_eq!(
            shown(&heads, &rows, None),
            "NAME           N  WHY\na              1\nlong-name  1,000  because\n"
        );
    }

    #[test]
    fn what_may_be_cut_is_cut_before_a_column_is_left_out() {
        let heads = [head("NAME", false, false), head("WHY", false, true), head("LAST", false, false)];
        let row: [&[&str]; 1] = [&["name", "a long story told at length", "end"]];
        assert_eq!(
            shown(&heads, &row, Some(30)),
            "NAME  WHY                 LAST\nname  a long story told…  end\n"
        );
        assert_eq!(shown(&heads, &row, Some(16)), "NAME  WHY\nname  a long …\n");
        assert_eq!(shown(&heads, &row, Some(2)), "NAME\nname\n", "the first stays, whatever the width");
    }

    #[test]
    fn what_is_to_be_kept_stays_while_others_go() {
        let kept = Head { keeps: true, ..head("WHY", false, true) };
        let heads =
            [head("NAME", false, false), head("CLUSTER", false, false), head("NEED", false, false), kept];
        let row: [&[&str]; 1] = [&["a-long-name", "cluster", "77aa88bb", "a reason that nobody should miss"]];
        assert_eq!(
            shown(&heads, &row, Some(46)),
            "NAME         CLUSTER  WHY\na-long-name  cluster  a reason that nobody sh…\n"
        );
    }

    #[test]
    fn wide_letters_count_double() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
    }
}
