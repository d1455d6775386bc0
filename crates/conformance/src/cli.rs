//! The command line of the suite, for whichever binary carries it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::behaviour::{Behaviour, Level};
use crate::catalogue::catalogue;
use crate::config::{Config, Selection, Tls};
use crate::report::{CheckResult, Outcome, Skips, human, json, junit, list};
use crate::restart::Restart;
use crate::runner::{Observer, run};
use crate::target::CannotRun;

/// Flags of `bigfleet conform`.
///
/// Ends with 0 if all behaviours passed, 1 if some failed (or were skipped, with `--no-skips`), 2 if the flags make
/// no sense and 3 if no provider could be reached.
#[derive(Args, Clone, Debug)]
pub struct Conform {
    /// Where the provider listens, as HOST:PORT. It must hold nothing you need: machines are created and deleted.
    #[arg(required_unless_present = "list")]
    pub address: Option<String>,
    /// Show the behaviours and try none.
    #[arg(long)]
    pub list: bool,
    /// Try only these ids or groups.
    #[arg(long, value_delimiter = ',', value_name = "ID|GROUP")]
    pub only: Vec<String>,
    /// Leave these ids or groups out.
    #[arg(long, value_delimiter = ',', value_name = "ID|GROUP")]
    pub except: Vec<String>,
    /// Try only behaviours of this level.
    #[arg(long)]
    pub level: Option<LevelFlag>,
    /// Take skipped checks for failures.
    #[arg(long)]
    pub no_skips: bool,
    /// The seed of random choices; taken from the clock if absent, and printed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// A shell command that kills the provider and starts it again with the same state, in the background.
    #[arg(long, value_name = "COMMAND")]
    pub restart_command: Option<String>,
    /// Whom to trust: the provider is spoken to by TLS (PEM).
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Our certificate (PEM); needs --tls-key.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of our certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The name in the provider's certificate, if it is not the host's.
    #[arg(long, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// How long one answer may take, in seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    pub call_timeout: f64,
    /// How long a move may take to its end, in seconds.
    #[arg(long, default_value_t = 180.0, value_name = "SECONDS")]
    pub transition_timeout: f64,
    /// How long a restart may take, in seconds.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    pub restart_timeout: f64,
    /// How long each soak check goes on, in seconds.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    pub soak_time: f64,
    /// How long each model check goes on at most, in seconds.
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS")]
    pub model_time: f64,
    /// How many random calls each model check makes at most.
    #[arg(long, default_value_t = 400)]
    pub model_steps: usize,
    /// How many machines the scale checks move at most.
    #[arg(long, default_value_t = 100)]
    pub max_scale: usize,
    /// How many checks run beside each other.
    #[arg(long, default_value_t = 4)]
    pub parallel: usize,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as `JUnit` XML to this file.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Show each check as it ends.
    #[arg(long, short)]
    pub verbose: bool,
}

/// A level on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LevelFlag {
    /// What every provider must show.
    Core,
    /// What providers show that offer the feature.
    Optional,
}

impl Conform {
    /// Does what the flags say, writes to `out`, and gives the exit code.
    pub async fn execute(&self, out: &mut (dyn Write + Send)) -> io::Result<u8> {
        let config = self.config();
        let unknown = config.selection.unknown();
        if !unknown.is_empty() {
            writeln!(out, "no behaviour or group is called {}; see --list", unknown.join(", "))?;
            return Ok(2);
        }
        if self.list {
            let chosen: Vec<Behaviour> =
                catalogue().iter().copied().filter(|b| config.selection.holds(b)).collect();
            list(&chosen, out)?;
            return Ok(0);
        }
        let report = match run(config, &Progress { verbose: self.verbose }).await {
            Ok(report) => report,
            Err(error) => return explain(&error, out),
        };
        human(&report, out)?;
        if let Some(path) = &self.json {
            std::fs::write(path, format!("{:#}\n", json(&report)))?;
        }
        if let Some(path) = &self.junit {
            std::fs::write(path, junit(&report))?;
        }
        Ok(report.exit_code(if self.no_skips { Skips::Refused } else { Skips::Allowed }))
    }

    fn config(&self) -> Config {
        let mut config = Config::new(self.address.clone().unwrap_or_default());
        let level = self.level.map(|level| match level {
            LevelFlag::Core => Level::Core,
            LevelFlag::Optional => Level::Optional,
        });
        config.selection = Selection { only: self.only.clone(), except: self.except.clone(), level };
        config.seed = self.seed.unwrap_or(config.seed);
        if let Some(command) = &self.restart_command {
            config.restart = Restart::Command(command.clone());
        }
        let tls = Tls {
            ca: self.tls_ca.clone(),
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            server_name: self.tls_server_name.clone(),
        };
        config.tls = (tls.ca.is_some() || tls.cert.is_some()).then_some(tls);
        let limits = &mut config.limits;
        limits.call = seconds(self.call_timeout);
        limits.transition = seconds(self.transition_timeout);
        limits.restart = seconds(self.restart_timeout);
        limits.soak = seconds(self.soak_time);
        limits.model = seconds(self.model_time);
        limits.model_steps = self.model_steps;
        limits.max_scale = self.max_scale;
        limits.parallel = self.parallel;
        config
    }
}

/// A span of seconds; nonsense is no time at all.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

fn explain(error: &CannotRun, out: &mut dyn Write) -> io::Result<u8> {
    writeln!(out, "{error}")?;
    Ok(error.exit_code())
}

/// Tells the error stream how it goes, so that the report alone is on the output.
struct Progress {
    verbose: bool,
}

impl Observer for Progress {
    fn waiting(&self, address: &str, seconds: u64) {
        // Somebody who has mistyped the address should not look at nothing for half a minute.
        let _ = writeln!(io::stderr(), "asking {address}; given up after {seconds} s without an answer");
    }

    fn finished(&self, result: &CheckResult) {
        let seconds = result.took.as_secs_f64();
        let (id, title) = (result.behaviour.id, result.behaviour.title);
        match &result.outcome {
            Outcome::Passed if !self.verbose => {}
            outcome => {
                // A closed error stream must not end the run.
                let _ = writeln!(io::stderr(), "{:<8} {id:<11} {seconds:>7.2} s  {title}", outcome.name());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Tool {
        #[command(flatten)]
        conform: Conform,
    }

    async fn run_tool(flags: &[&str]) -> (u8, String) {
        let tool = Tool::try_parse_from([&["conform"], flags].concat()).expect("flags that parse");
        let mut out = Vec::new();
        let code = tool.conform.execute(&mut out).await.expect("a vector takes everything");
        (code, String::from_utf8(out).expect("text"))
    }

    #[tokio::test]
    async fn the_list_obeys_the_selection() {
        let (code, text) = run_tool(&["--list", "--only", "cost,FENCE-006", "--except", "COST-001"]).await;
        assert_eq!(code, 0);
        assert!(text.contains("FENCE-006") && text.contains("COST-006"), "{text}");
        assert!(!text.contains("COST-001") && !text.contains("FENCE-001"), "{text}");
    }

    #[tokio::test]
    async fn mistakes_and_silence_have_codes_of_their_own() {
        assert_eq!(run_tool(&["127.0.0.1:1", "--only", "NOPE-1"]).await.0, 2);
        assert_eq!(run_tool(&["nonsense"]).await.0, 2);
        let (code, text) = run_tool(&["127.0.0.1:1", "--call-timeout", "0.2"]).await;
        assert_eq!(code, 3, "{text}");
        assert!(text.contains("cannot reach a provider at 127.0.0.1:1"), "{text}");
        assert!(Tool::try_parse_from(["conform"]).is_err());
    }
}
