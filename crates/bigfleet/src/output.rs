//! How answers leave: for people on a terminal, as data through a pipe, or as asked for.

mod table;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use bigfleet_model::text::{is_hidden, shown_lines};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::ser::Formatter;

pub(crate) use bigfleet_tell::{Paint, Shown, Story, Tone, safe};
pub(crate) use table::{Cell, Grid, Head};

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Columns, cut to the width of the terminal
    Table,
    /// More columns, nothing cut
    Wide,
    /// One JSON object a line
    Json,
    /// One YAML document each
    Yaml,
    /// Names only
    Name,
}

/// How a single answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerFormat {
    /// Sentences
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// The flags of every command that prints one answer.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    /// How to print; text on a terminal and JSON into a pipe if nothing is said
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<AnswerFormat>,
    /// The same as -o json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl AnswerArgs {
    /// What is asked for, or what fits where the answer goes.
    pub(crate) fn format(self, terminal: &Terminal) -> AnswerFormat {
        match self.output {
            Some(format) => format,
            None if self.json || !terminal.interactive => AnswerFormat::Json,
            None => AnswerFormat::Text,
        }
    }
}

/// Where standard output goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Whether somebody looks at it.
    pub(crate) interactive: bool,
    /// In columns; unlimited if there is no terminal and nobody says otherwise.
    pub(crate) width: Option<usize>,
    pub(crate) paint: Paint,
}

impl Terminal {
    /// As this process finds it: `COLUMNS` overrides the width, `NO_COLOR` and `CLICOLOR_FORCE` the colour.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let measured =
            || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        let coloured = !set("NO_COLOR") && (set("CLICOLOR_FORCE") || (is_terminal && !dumb));
        Self {
            interactive: is_terminal,
            width: columns.or_else(measured).filter(|width| *width > 0),
            paint: if coloured { Paint::Ansi } else { Paint::Plain },
        }
    }

    /// The width for running text: that of the terminal, but no wider than reads well.
    pub(crate) fn text_width(&self) -> usize {
        self.width.unwrap_or(80).clamp(40, 100)
    }
}

/// Standard output, buffered.
pub(crate) type Out = BufWriter<StdoutLock<'static>>;

/// Opens standard output.
pub(crate) fn stdout() -> Out {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// One answer as data: JSON over several lines for a terminal, in one for a pipe.
pub(crate) fn write_data(
    out: &mut impl Write,
    data: &impl Serialize,
    format: AnswerFormat,
    terminal: &Terminal,
) -> io::Result<()> {
    match format {
        AnswerFormat::Yaml => write_yaml(out, data),
        _ if terminal.interactive => {
            let pretty = serde_json::ser::PrettyFormatter::new();
            data.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Harmless(pretty)))?;
            out.write_all(b"\n")
        }
        _ => write_json_line(out, data),
    }
}

/// JSON in one line.
pub(crate) fn write_json_line(out: &mut impl Write, data: &impl Serialize) -> io::Result<()> {
    let compact = serde_json::ser::CompactFormatter;
    data.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Harmless(compact)))?;
    out.write_all(b"\n")
}

/// A YAML document.
pub(crate) fn write_yaml(out: &mut impl Write, data: &impl Serialize) -> io::Result<()> {
    let mut text = String::new();
    serde_saphyr::to_fmt_writer(&mut text, data).map_err(io::Error::other)?;
    out.write_all(shown_lines(&text).as_bytes())
}

/// JSON whose texts do nothing to a terminal. It says the same: what JSON alone would leave as it is, beyond ASCII, is
/// written as an escape.
struct Harmless<F>(F);

impl<F: Formatter> Formatter for Harmless<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_hidden) {
            out.write_all(&rest.as_bytes()[..at])?;
            let letter = rest[at..].chars().next().unwrap_or_default();
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + letter.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// A message beside the answer: standard error.
pub(crate) fn note(text: &str) {
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(io::stderr(), "{}", shown_lines(text));
}

/// Says on a terminal that something takes its time, and takes it back when it is done. Nothing for those who read through
/// a pipe.
pub(crate) struct Progress(bool);

impl Progress {
    /// Begins to say it.
    pub(crate) fn begin(what: &str) -> Self {
        let shown = io::stderr().is_terminal();
        if shown {
            let _ = write!(io::stderr(), "{} ...\r", bigfleet_model::text::shown(what));
        }
        Self(shown)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(io::stderr(), "\x1b[K");
        }
    }
}
