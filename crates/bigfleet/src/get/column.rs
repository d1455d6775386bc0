//! Columns: what can be shown of a thing, and by what it can be sorted.

use std::cmp::Ordering;

use anyhow::bail;

use crate::output::{Cell, Head};
use crate::suggest::did_you_mean;

/// What a column shows of a thing at a time.
type CellOf<T> = Box<dyn Fn(&T, i64) -> Cell>;
/// What a column of numbers is sorted by.
type KeyOf<T> = Box<dyn Fn(&T) -> f64>;

/// One column of a list of `T`.
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about how it is shown")]
pub(super) struct Column<T> {
    /// What people type; the title is the same in capitals.
    pub(super) name: String,
    wide: bool,
    right: bool,
    shrinks: bool,
    keeps: bool,
    cell: CellOf<T>,
    key: Option<KeyOf<T>>,
}

impl<T> Column<T> {
    /// A column of text; `cell` gets the thing and the server's time.
    pub(super) fn new<C: Into<Cell>>(name: impl Into<String>, cell: impl Fn(&T, i64) -> C + 'static) -> Self {
        Self {
            name: name.into(),
            wide: false,
            right: false,
            shrinks: false,
            keeps: false,
            cell: Box::new(move |item, now| cell(item, now).into()),
            key: None,
        }
    }

    /// A column of numbers: at the right, sorted by `key`.
    pub(super) fn number<C: Into<Cell>>(
        name: impl Into<String>,
        key: impl Fn(&T) -> f64 + 'static,
        cell: impl Fn(&T, i64) -> C + 'static,
    ) -> Self {
        Self { right: true, key: Some(Box::new(key)), ..Self::new(name, cell) }
    }

    /// Shown with `-o wide` and when asked for by name.
    pub(super) fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    /// May be cut where there is no room.
    pub(super) fn shrinks(self) -> Self {
        Self { shrinks: true, ..self }
    }

    /// Others are left out before it is, where there is no room.
    pub(super) fn keeps(self) -> Self {
        Self { keeps: true, ..self }
    }

    pub(super) fn head(&self) -> Head {
        let Self { right, shrinks, keeps, .. } = *self;
        Head { title: self.name.to_uppercase(), right, shrinks, keeps }
    }

    pub(super) fn cell(&self, item: &T, now_unix_nanos: i64) -> Cell {
        (self.cell)(item, now_unix_nanos)
    }

    /// Numbers by value, text by letters.
    fn compare(&self, a: &T, b: &T) -> Ordering {
        match &self.key {
            Some(key) => key(a).total_cmp(&key(b)),
            None => self.cell(a, 0).text.cmp(&self.cell(b, 0).text),
        }
    }
}

/// Finds a column, or makes it: some things have one for each label.
type Make<'a, T> = &'a dyn Fn(&str) -> Option<Column<T>>;

fn find<T>(columns: Vec<Column<T>>, name: &str, make: Make<'_, T>) -> anyhow::Result<Column<T>> {
    if let Some(made) = make(name) {
        return Ok(made);
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    match columns.into_iter().find(|column| column.name.eq_ignore_ascii_case(name)) {
        Some(column) => Ok(column),
        None => bail!(
            "there is no column {name:?}{}; there are {}",
            did_you_mean(name, names.iter().map(String::as_str)),
            names.join(", ")
        ),
    }
}

/// The columns to show: those asked for, or the usual ones.
pub(super) fn choose<T>(
    columns: &dyn Fn() -> Vec<Column<T>>,
    asked: &[String],
    wide: bool,
    make: Make<'_, T>,
) -> anyhow::Result<Vec<Column<T>>> {
    if asked.is_empty() {
        return Ok(columns().into_iter().filter(|column| wide || !column.wide).collect());
    }
    asked.iter().map(|name| find(columns(), name, make)).collect()
}

/// An order made of columns; a minus in front turns one round.
pub(super) struct Order<T>(Vec<(Column<T>, bool)>);

impl<T> Order<T> {
    pub(super) fn read(
        columns: &dyn Fn() -> Vec<Column<T>>,
        asked: &[String],
        make: Make<'_, T>,
    ) -> anyhow::Result<Option<Self>> {
        let one = |text: &String| {
            let name = text.strip_prefix('-').unwrap_or(text);
            Ok((find(columns(), name, make)?, text.starts_with('-')))
        };
        let order = asked.iter().map(one).collect::<anyhow::Result<Vec<_>>>()?;
        Ok((!order.is_empty()).then_some(Self(order)))
    }

    /// Sorts; equal things stay in the order they came.
    pub(super) fn sort(&self, items: &mut [T]) {
        items.sort_by(|a, b| {
            let compare = |(column, reverse): &(Column<T>, bool)| {
                let order = column.compare(a, b);
                if *reverse { order.reverse() } else { order }
            };
            self.0.iter().map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column<(u32, &'static str)>> {
        vec![
            Column::new("name", |item: &(u32, &'static str), _| item.1),
            Column::number(
                "size",
                |item: &(u32, &'static str)| f64::from(item.0),
                |item, _| item.0.to_string(),
            ),
            Column::new("note", |_, _| "").wide(),
        ]
    }

    #[test]
    fn columns_are_found_by_name_and_unknown_ones_get_a_hint() {
        let none = |_: &str| None;
        let names = |asked: &[&str], wide| {
            let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
            let chosen = choose(&columns, &asked, wide, &none)?;
            anyhow::Ok(chosen.iter().map(|column| column.head().title).collect::<Vec<_>>())
        };
        assert_eq!(names(&[], false).unwrap(), ["NAME", "SIZE"]);
        assert_eq!(names(&[], true).unwrap(), ["NAME", "SIZE", "NOTE"]);
        assert_eq!(names(&["Note", "name"], false).unwrap(), ["NOTE", "NAME"]);
        let text = names(&["sise"], false).unwrap_err().to_string(); // typos: ignore
        assert_eq!(text, "there is no column \"sise\" (did you mean size?); there are name, size, note"); // typos: ignore
    }

    #[test]
    fn numbers_sort_by_value_and_ties_by_the_next_column() {
        let order = Order::read(&columns, &["-size".into(), "name".into()], &|_| None).unwrap().unwrap();
        let mut items = [(9, "b"), (10, "c"), (9, "a")];
        order.sort(&mut items);
        assert_eq!(items, [(10, "c"), (9, "a"), (9, "b")]);
    }
}
