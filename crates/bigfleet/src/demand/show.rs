//! How simulated work is shown.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use bigfleet_model::text::shown;
use bigfleet_provider_sim::admin::v1::Work;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{
    Cell, Grid, Head, ListFormat, Paint, Terminal, Tone, stdout, write_json_line, write_yaml,
};
use crate::words;

/// What is wanted now, in words.
pub(super) fn sentence(work: &Work) -> String {
    let thing = if work.gang > 0 { format!("gang of {}", work.gang) } else { "pod".into() };
    let things = match (work.wanted, work.gang) {
        (1, _) => thing,
        (_, 0) => "pods".into(),
        (_, gang) => format!("gangs of {gang}"),
    };
    let how =
        if work.fixed { "fixed by hand".to_owned() } else { format!("by its own curve: {}", work.curve) };
    format!(
        "{} in {} wants {} {things} (simulated): {} running, {} waiting; {how}",
        work.name, work.cluster, work.wanted, work.running_pods, work.waiting_pods
    )
}

/// One kind of work as data.
#[derive(Serialize)]
struct Row<'a> {
    cluster: &'a str,
    work: &'a str,
    wanted: u64,
    running_pods: u64,
    waiting_pods: u64,
    gang: u64,
    priority: i32,
    unit: &'a BTreeMap<String, String>,
    fixed: bool,
    curve: &'a str,
    simulated: bool,
}

impl<'a> From<&'a Work> for Row<'a> {
    fn from(work: &'a Work) -> Self {
        Self {
            cluster: &work.cluster,
            work: &work.name,
            wanted: work.wanted,
            running_pods: work.running_pods,
            waiting_pods: work.waiting_pods,
            gang: work.gang,
            priority: work.priority,
            unit: &work.unit,
            fixed: work.fixed,
            curve: &work.curve,
            simulated: true,
        }
    }
}

/// Prints a list.
pub(super) fn list(work: &[Work], output: Option<ListFormat>) -> Result<ExitCode, Failure> {
    let terminal = Terminal::of_stdout();
    let usual = if terminal.interactive { ListFormat::Table } else { ListFormat::Json };
    let mut out = stdout();
    match output.unwrap_or(usual) {
        ListFormat::Table => table(&mut out, work, terminal.width, terminal.paint)?,
        ListFormat::Wide => table(&mut out, work, None, terminal.paint)?,
        ListFormat::Json => work.iter().try_for_each(|work| write_json_line(&mut out, &Row::from(work)))?,
        ListFormat::Yaml => work.iter().try_for_each(|work| write_yaml(&mut out, &Row::from(work)))?,
        ListFormat::Name => {
            work.iter()
                .try_for_each(|work| writeln!(out, "{}/{}", shown(&work.cluster), shown(&work.name)))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(out: &mut impl Write, work: &[Work], width: Option<usize>, paint: Paint) -> std::io::Result<()> {
    let head = |title: &str, right| Head { title: title.into(), right, shrinks: !right, keeps: false };
    let heads = [
        head("CLUSTER", false),
        head("WORK", false),
        head("WANTED", true),
        head("RUNNING", true),
        head("WAITING", true),
        head("PRIORITY", true),
        head("ONE POD", false),
        head("CURVE", false),
    ];
    let rows: Vec<Vec<Cell>> = work.iter().map(cells).collect();
    let grid = Grid::settle(&heads, &rows, width, paint);
    grid.write_heads(out, &heads)?;
    rows.iter().try_for_each(|row| grid.write_row(out, row))
}

fn cells(work: &Work) -> Vec<Cell> {
    let wanted =
        if work.gang > 0 { format!("{} x {}", work.wanted, work.gang) } else { work.wanted.to_string() };
    let tone = if work.waiting_pods > 0 { Tone::Warn } else { Tone::Plain };
    let curve = if work.fixed { "fixed by hand" } else { &work.curve };
    vec![
        Cell::from(&work.cluster),
        Cell::from(&work.name),
        Cell::from(wanted),
        Cell::from(work.running_pods.to_string()),
        Cell::toned(work.waiting_pods.to_string(), tone),
        Cell::from(words::signed(work.priority.into())),
        Cell::from(words::amounts(&work.unit)),
        Cell::from(curve),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        Work {
            cluster: "ml".into(),
            name: "train".into(),
            wanted: 2,
            running_pods: 12,
            waiting_pods: 12,
            gang: 12,
            priority: 500_000,
            unit: [("cpu".to_owned(), "6".to_owned()), ("memory".to_owned(), "24Gi".to_owned())].into(),
            fixed: true,
            curve: "always 1".into(),
        }
    }

    #[test]
    fn a_change_is_said_in_words() {
        let (fixed, free) = (work(), Work { fixed: false, wanted: 1, gang: 0, ..work() });
        assert_eq!(
            sentence(&fixed),
            "train in ml wants 2 gangs of 12 (simulated): 12 running, 12 waiting; fixed by hand"
        );
        assert_eq!(
            sentence(&free),
            "train in ml wants 1 pod (simulated): 12 running, 12 waiting; by its own curve: always 1"
        );
    }

    #[test]
    fn work_is_listed_in_columns() {
        let mut out = Vec::new();
        table(&mut out, &[work()], None, Paint::Plain).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "CLUSTER  WORK   WANTED  RUNNING  WAITING  PRIORITY  ONE POD             CURVE\n\
             ml       train  2 x 12       12       12   500,000  6 cpu, 24Gi memory  fixed by hand\n"
        );
    }
}
