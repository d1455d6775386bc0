//! Getting a list, once or again and again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use bigfleet_view::v1::{AsOf, WatchRequest};
use prost::Message;
use serde::Serialize;
use tokio_stream::StreamExt;

use super::column::{Order, choose};
use super::listing::{ListArgs, Listing, Pages, moment};
use super::print::Printer;
use crate::context::Target;
use crate::exit::Failure;
use crate::output::{ListFormat, Terminal, note, stdout, write_json_line, write_yaml};
use crate::reach::Shard;
use crate::words::{clock_time, count};

/// Prints the list, and goes on if asked to.
pub(super) async fn run<L: Listing>(listing: &L, args: &ListArgs) -> Result<ExitCode, Failure> {
    let terminal = Terminal::of_stdout();
    let shard = Shard::new(&args.reach)?;
    let getter = Getter { listing, args, format: args.format(&terminal), terminal, shard };
    match args.watch {
        None => getter.once().await?,
        Some(span) => getter.watch(span).await?,
    }
    Ok(ExitCode::SUCCESS)
}

struct Getter<'a, L: Listing> {
    listing: &'a L,
    args: &'a ListArgs,
    format: ListFormat,
    terminal: Terminal,
    shard: Shard,
}

/// What is said beside a list.
#[derive(Default)]
struct Aside {
    as_of: AsOf,
    printed: u64,
    left_out: Vec<String>,
}

impl<L: Listing> Getter<'_, L> {
    async fn once(&self) -> Result<(), Failure> {
        let mut out = stdout();
        let aside = self.print(&mut out, |_| true, false).await?;
        out.flush()?;
        if let (0, Some(name)) = (aside.printed, self.listing.asks_for()) {
            return Err(Failure::Usage(anyhow!(
                "there is no {noun} {name:?}, nor one whose name begins so; `bigfleet get {noun}s` lists them ({at})",
                noun = L::NOUN,
                at = self.shard.target.server
            )));
        }
        if matches!(self.format, ListFormat::Table | ListFormat::Wide) {
            note(&aside.text(L::NOUN, &self.shard.target));
        }
        Ok(())
    }

    async fn watch(&self, span: i64) -> Result<(), Failure> {
        let millis = u32::try_from(span / 1_000_000).unwrap_or(u32::MAX).max(50);
        let request = WatchRequest { min_interval_millis: millis, decisions: 1, ..WatchRequest::default() };
        let mut ticks = self.shard.ask(|mut client| async move { client.watch(request).await }).await?;
        let mut seen = Seen::default();
        while let Some(tick) = ticks.next().await {
            tick.map_err(|status| self.shard.trouble(&status))?;
            let table = matches!(self.format, ListFormat::Table | ListFormat::Wide);
            let mut out = stdout();
            if table {
                let mut screen = Vec::new();
                let aside = self.print(&mut screen, |_| true, false).await?;
                self.draw(&mut out, &screen, &aside.text(L::NOUN, &self.shard.target))?;
            } else {
                // Into a pipe: what is new, has changed, or is gone.
                seen.look_again();
                let aside = self.print(&mut out, |item| seen.is_news::<L>(item), L::newest_first()).await?;
                // What a cycle decided stays decided, even if it is too long ago to be listed.
                let gone = seen.gone();
                if !L::newest_first() {
                    for name in &gone {
                        self.removed(&mut out, name, aside.as_of.simulated)?;
                    }
                }
            }
            out.flush()?;
        }
        note("the server ended the watch");
        Ok(())
    }

    /// Tells that something is gone. Names alone are for other commands, which could do nothing with it.
    fn removed(&self, out: &mut impl Write, name: &str, simulated: bool) -> std::io::Result<()> {
        let removed = Removed { event: "removed", kind: L::NOUN, name, simulated };
        match self.format {
            ListFormat::Json => write_json_line(out, &removed),
            ListFormat::Yaml => {
                out.write_all(b"---\n")?;
                write_yaml(out, &removed)
            }
            ListFormat::Name | ListFormat::Table | ListFormat::Wide => Ok(()),
        }
    }

    /// Over what was there, or below it if this is no terminal.
    fn draw(&self, out: &mut impl Write, screen: &[u8], aside: &str) -> std::io::Result<()> {
        let text = String::from_utf8_lossy(screen);
        if !self.terminal.interactive {
            return writeln!(out, "{text}{aside}\n");
        }
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        write!(out, "\x1b[H\x1b[J")?;
        for line in text.lines().take(height.saturating_sub(2)) {
            writeln!(out, "{line}")?;
        }
        write!(out, "{aside}")
    }

    /// Prints what passes `keep`.
    async fn print(
        &self,
        out: &mut impl Write,
        mut keep: impl FnMut(&L::Item) -> bool,
        backwards: bool,
    ) -> Result<Aside, Failure> {
        let wide = self.format == ListFormat::Wide;
        let columns = choose(&L::columns, &self.args.columns, wide, &L::column_named)?;
        let is_table = matches!(self.format, ListFormat::Table | ListFormat::Wide);
        let usual =
            L::usual_order().filter(|_| is_table && self.args.sort.is_empty() && self.args.limit.is_none());
        let sort = usual.map_or_else(|| self.args.sort.clone(), |column| vec![column.to_owned()]);
        let order = Order::read(&L::columns, &sort, &L::column_named)?;
        let mut pages = self.pages(wide).await?;
        let mut printer = Printer::<L>::new(self.format, &self.terminal, &columns);
        let mut as_of = AsOf::default();
        let mut held = Vec::new();
        let (mut listed, limit) = (0, self.args.limit.map_or(u64::MAX, u64::from));
        while let Some(page) = pages.next().await {
            let page = page.map_err(|status| self.shard.trouble(&status))?;
            as_of = page.as_of.unwrap_or(as_of);
            if order.is_some() || backwards {
                held.extend(page.items);
                continue;
            }
            for item in &page.items {
                listed += 1;
                if listed <= limit && keep(item) {
                    printer.item(out, item, &as_of)?;
                }
            }
        }
        if backwards {
            held.reverse();
        }
        if let Some(order) = &order {
            order.sort(&mut held);
        }
        for item in held.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).filter(|item| keep(item)) {
            printer.item(out, item, &as_of)?;
        }
        let left_out = printer.finish(out)?.into_iter().map(Into::into).collect();
        Ok(Aside { printed: printer.printed, as_of, left_out })
    }

    async fn pages(&self, wide: bool) -> Result<Pages<L::Item>, Failure> {
        let at = moment(&self.shard, self.listing.at()).await?;
        let named = |name: &String| {
            L::column_named(name.trim_start_matches('-')).is_some() || !self.args.columns.is_empty()
        };
        let extra = self.args.columns.iter().chain(&self.args.sort).any(named);
        let full = wide || extra || matches!(self.format, ListFormat::Json | ListFormat::Yaml);
        Ok(self.listing.list(&self.shard, at, full).await?)
    }
}

/// What a watch has seen: names, what they were like, and in which look.
#[derive(Default)]
struct Seen {
    things: BTreeMap<String, (u64, u64)>,
    look: u64,
}

impl Seen {
    fn look_again(&mut self) {
        self.look += 1;
    }

    /// Whether a thing is new or differs from what was printed of it.
    fn is_news<L: Listing>(&mut self, item: &L::Item) -> bool {
        let mut hasher = DefaultHasher::new();
        item.encode_to_vec().hash(&mut hasher);
        let hash = hasher.finish();
        self.things.insert(L::name(item), (hash, self.look)).is_none_or(|(before, _)| before != hash)
    }

    /// Forgets what was not there in this look, and tells it.
    fn gone(&mut self) -> Vec<String> {
        let look = self.look;
        self.things.extract_if(.., |_, (_, last)| *last != look).map(|(name, _)| name).collect()
    }
}

/// What a watch says of a thing that is no longer in its list.
#[derive(Serialize)]
struct Removed<'a> {
    event: &'static str,
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl Aside {
    fn text(&self, noun: &str, target: &Target) -> String {
        let AsOf { cycle, cycle_unix_nanos, now_unix_nanos, simulated, .. } = self.as_of;
        let mut text = count(self.printed, noun);
        if self.printed == 0 {
            text = format!("no {noun}s");
        }
        if cycle > 0 {
            let time = clock_time(cycle_unix_nanos, now_unix_nanos);
            let record = crate::sentence::from_record(&self.as_of);
            let _ = write!(text, ", cycle {cycle} at {time}{record}");
        }
        if simulated {
            text.push_str(", SIMULATED");
        }
        let _ = write!(text, ", {target}");
        if !self.left_out.is_empty() {
            let _ = write!(text, "; no room for {} (-o wide)", self.left_out.join(", ").to_lowercase());
        }
        text
    }
}
