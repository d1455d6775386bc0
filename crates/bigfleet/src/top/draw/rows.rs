//! Rows under columns: how wide each is, which are left out, and how texts are cut.

use bigfleet_model::text::shown;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::Tone;

use super::super::page::{Column, Row, Table};
use super::palette::{Palette, SELECTED};

/// Columns between two columns.
const GAP: usize = 2;

/// A text cut to a width, with `…` in place of what is missing. What cannot be seen is escaped.
pub(super) fn fit(text: &str, width: usize) -> String {
    let clean = shown(text).into_owned();
    if clean.width() <= width {
        return clean;
    }
    let (mut cut, mut used) = (String::new(), 0);
    for letter in clean.chars() {
        let wide = letter.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        cut.push(letter);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// The same, filled up to the width at the left or at the right.
pub(super) fn pad(text: &str, width: usize, right: bool) -> String {
    let text = fit(text, width);
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// The widths of the columns that are shown, by their index.
pub(super) type Widths = Vec<(usize, usize)>;

/// Gives every column what its longest text wants. Where that is too much, the widest text column is cut, and if that
/// left too little of it, the column of least worth goes. Columns without any text are left out from the start.
pub(super) fn widths(table: &Table, room: usize) -> Widths {
    let longest = |index: usize| {
        table.rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| cell.text.width()).max()
    };
    let wants = |(index, column): (usize, &Column)| match longest(index) {
        None => Some((index, column.title.width())),
        Some(0) => None,
        Some(width) => Some((index, width.max(column.title.width()))),
    };
    let mut shown: Widths = table.columns.iter().enumerate().filter_map(wants).collect();
    loop {
        let total: usize = shown.iter().map(|(_, width)| width + GAP).sum();
        let over = total.saturating_sub(GAP).saturating_sub(room);
        if over == 0 {
            return shown;
        }
        let spare =
            |(index, width): &(usize, usize)| width.saturating_sub(over) >= table.columns[*index].least;
        if let Some((_, width)) =
            shown.iter_mut().filter(|column| spare(column)).max_by_key(|(_, width)| *width)
        {
            *width -= over;
            return shown;
        }
        if shown.len() <= 1 {
            return shown.into_iter().map(|(index, width)| (index, width.min(room))).collect();
        }
        let least = shown.iter().enumerate().min_by_key(|(_, (index, _))| table.columns[*index].worth);
        let at = least.map_or(0, |(at, _)| at);
        shown.remove(at);
    }
}

/// The titles of the columns.
pub(super) fn titles(columns: &[Column], widths: &Widths, palette: Palette) -> Line<'static> {
    let titles: Vec<String> = widths
        .iter()
        .map(|(index, width)| pad(columns[*index].title, *width, columns[*index].right))
        .collect();
    Line::from(Span::styled(titles.join("  "), palette.style(Tone::Dim)))
}

/// One row. The chosen one is reversed over the whole width.
pub(super) fn row(
    table: &Table,
    row: &Row,
    widths: &Widths,
    room: usize,
    chosen: bool,
    palette: Palette,
) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (index, width) in widths {
        if !spans.is_empty() {
            spans.push(Span::raw("  "));
            used += GAP;
        }
        let Some(cell) = row.cells.get(*index) else { continue };
        spans.push(Span::styled(
            pad(&cell.text, *width, table.columns[*index].right),
            palette.style(cell.tone),
        ));
        used += width;
    }
    if !chosen {
        return Line::from(spans);
    }
    spans.push(Span::raw(" ".repeat(room.saturating_sub(used))));
    let text: String = spans.into_iter().map(|span| span.content.into_owned()).collect();
    Line::from(Span::styled(text, SELECTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_what_they_take_on_screen() {
        assert_eq!((fit("abcdef", 6), fit("abcdef", 4)), ("abcdef".into(), "abc…".into()));
        assert_eq!(
            (fit("日本語", 6), fit("日本語", 5), fit("日本語", 4)),
            ("日本語".into(), "日本…".into(), "日…".into())
        );
        assert_eq!((fit("x", 0), fit("xy", 1)), (String::new(), "…".into()));
        assert_eq!(fit("a\u{1b}[31mb\n", 20), r"a\u{1b}[31mb\n");
        assert_eq!((pad("7", 3, true), pad("7", 3, false)), ("  7".into(), "7  ".into()));
    }

    #[test]
    fn the_widest_text_is_cut_before_a_column_goes() {
        const COLUMNS: &[Column] =
            &[Column::left("A", 9), Column::right("B", 1), Column::left("C", 5), Column::left("D", 7)];
        let cells = ["name", "123456", "a text of twenty-one.", ""];
        let row = Row { key: String::new(), opens: None, cells: cells.map(Into::into).into() };
        let table = Table { columns: COLUMNS, rows: vec![row], empty: "" };
        assert_eq!(widths(&table, 80), [(0, 4), (1, 6), (2, 21)]);
        assert_eq!(widths(&table, 30), [(0, 4), (1, 6), (2, 16)]);
        assert_eq!(widths(&table, 20), [(0, 4), (2, 14)]);
        assert_eq!(widths(&table, 6), [(0, 4)]);
        assert_eq!(widths(&table, 2), [(0, 2)]);
        assert_eq!(widths(&table, 0), [(0, 0)]);
    }
}
