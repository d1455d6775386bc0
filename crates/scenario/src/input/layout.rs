//! JSON laid out for people: one field a line, one row a line, and a space after every comma.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// What stands before a field, before a row, and before a closing bracket.
pub(super) struct Layout {
    field: &'static str,
    row: &'static str,
    end_rows: &'static str,
    end: &'static str,
}

impl Layout {
    /// Everything on one line.
    pub(super) const LINE: Self = Self { field: "", row: "", end_rows: "", end: "" };
    /// An object that is the whole file.
    pub(super) const PAGE: Self = Self { field: "\n  ", row: "\n    ", end_rows: "\n  ", end: "\n" };
    /// An object inside one that is the whole file.
    pub(super) const NESTED: Self =
        Self { field: "\n    ", row: "\n      ", end_rows: "\n    ", end: "\n  " };
}

/// An object being written, field by field.
pub(super) struct Object<'a, W> {
    out: &'a mut W,
    layout: &'a Layout,
    separator: &'static str,
}

impl<'a, W: Write> Object<'a, W> {
    /// Opens an object.
    pub(super) fn begin(out: &'a mut W, layout: &'a Layout) -> io::Result<Self> {
        out.write_all(b"{")?;
        Ok(Self { out, layout, separator: "" })
    }

    /// Writes the name of a field; its value goes to what is returned.
    pub(super) fn place(&mut self, name: &str) -> io::Result<&mut W> {
        write!(self.out, "{}{}\"{name}\": ", self.separator, self.layout.field)?;
        self.separator = ",";
        Ok(self.out)
    }

    /// Writes a field on one line.
    pub(super) fn field(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        json(self.place(name)?, value)
    }

    /// Writes a list with each item on its own line.
    pub(super) fn rows<T: Serialize>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let Layout { row: before_row, end_rows, .. } = *self.layout;
        let out = self.place(name)?;
        out.write_all(b"[")?;
        let mut separator = "";
        for row in rows {
            write!(out, "{separator}{before_row}")?;
            json(out, &row)?;
            separator = ",";
        }
        write!(out, "{}]", if separator.is_empty() { "" } else { end_rows })
    }

    /// Closes the object.
    pub(super) fn end(self) -> io::Result<()> {
        write!(self.out, "{}}}", self.layout.end)
    }
}

fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Spaced)).map_err(io::Error::from)
}

/// One line with a space after every comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
