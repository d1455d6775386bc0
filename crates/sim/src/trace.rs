//! The trace of a run: every line of what happened, as a digest and, if wanted, as text.

use std::fmt::{self, Write};

/// What happened, line by line.
#[derive(Clone, Debug)]
pub struct Trace {
    digest: u64,
    lines: u64,
    line: String,
    text: Option<String>,
}

impl Trace {
    /// An empty trace; with its text kept if asked for.
    pub fn new(keep: bool) -> Self {
        Self { digest: 0xcbf2_9ce4_8422_2325, lines: 0, line: String::new(), text: keep.then(String::new) }
    }

    /// Writes a line.
    pub fn note(&mut self, now_unix_nanos: i64, what: fmt::Arguments<'_>) {
        self.line.clear();
        let at = now_unix_nanos - crate::world::START_UNIX_NANOS;
        writeln!(self.line, "{}.{:09} {what}", at / 1_000_000_000, at % 1_000_000_000)
            .expect("writing to memory does not fail");
        self.lines += 1;
        for byte in self.line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(text) = &mut self.text {
            text.push_str(&self.line);
        }
    }

    /// A number that stands for the whole trace.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The text, if it was kept.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}
