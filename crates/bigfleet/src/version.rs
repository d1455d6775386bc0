//! `bigfleet version`: what this program was built from, and what answers.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bigfleet_view::v1::Version;
use serde::Serialize;

use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Story, Terminal, Tone, stdout, write_data};
use crate::reach::{Shard, block_on};
use crate::words::rfc3339;

/// Nobody who asks for a version wants to wait for a network.
const PATIENCE: Duration = Duration::from_secs(2);

/// Show the version of this program, what it was built from, and of the server if one answers.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Ask no server
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// What this program was built from.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Build {
    pub(crate) version: &'static str,
    /// Empty outside of a checkout and in development builds.
    pub(crate) commit: &'static str,
    pub(crate) rustc: &'static str,
    pub(crate) target: &'static str,
    pub(crate) profile: &'static str,
    /// Of the interface to a shard.
    pub(crate) api: &'static str,
    /// Of the interface to providers and operators.
    pub(crate) protocol: &'static str,
}

/// This one.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("BIGFLEET_BUILD_COMMIT"),
    rustc: env!("BIGFLEET_BUILD_RUSTC"),
    target: env!("BIGFLEET_BUILD_TARGET"),
    profile: env!("BIGFLEET_BUILD_PROFILE"),
    api: bigfleet_view::API_VERSION,
    protocol: bigfleet_proto::PROTOCOL_VERSION,
};

/// The commit this program was built from: what was built in, or for a development build what lies beside the program. Whoever
/// builds with `scripts/up` has it written there, since building it in would compile everything again after each commit.
static COMMIT: std::sync::LazyLock<String> = std::sync::LazyLock::new(commit);

fn commit() -> String {
    if !BUILD.commit.is_empty() {
        return BUILD.commit.to_owned();
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_extension("commit"));
    let text = beside.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let text = text.trim();
    if text.len() <= 40 && text.chars().all(|c| c.is_ascii_hexdigit()) {
        text.to_owned()
    } else {
        String::new()
    }
}

#[derive(Serialize)]
struct Versions {
    client: Build,
    server: Option<Server>,
}

#[derive(Serialize)]
struct Server {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    version: String,
    api: String,
    shard_id: String,
    epoch: i64,
    started: Option<String>,
    simulated: bool,
    role: String,
    recording: bool,
}

/// Prints it. A server that does not answer is no failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let server = if args.client { None } else { Some(block_on(server(&args.reach))?) };
    let versions = Versions { client: Build { commit: &COMMIT, ..BUILD }, server };
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => story(&versions).write(&mut out, terminal.text_width(), terminal.paint)?,
        format => write_data(&mut out, &versions, format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn server(reach: &Reach) -> Result<Server, Failure> {
    let shard = Shard::new(reach)?.patient_for(PATIENCE);
    let address = shard.target.server.clone();
    let (version, error) = match shard.version().await {
        Ok(version) => (version, None),
        Err(trouble) => (Version::default(), Some(trouble.to_string())),
    };
    Ok(Server {
        address,
        error,
        version: version.server_version,
        api: version.api_version,
        shard_id: version.shard_id,
        epoch: version.epoch,
        started: (version.started_unix_nanos > 0).then(|| rfc3339(version.started_unix_nanos)),
        simulated: version.simulated,
        role: version.role,
        recording: version.recording,
    })
}

impl Server {
    fn text(&self) -> String {
        if let Some(error) = &self.error {
            return format!("not reached: {}", error.replace("\n  ", "; "));
        }
        let simulated = if self.simulated { ", simulated" } else { "" };
        let role = if self.role.is_empty() { String::new() } else { format!("; we are {}", self.role) };
        format!(
            "bigfleet {} (view {}) at {}, shard {} epoch {}{simulated}{role}",
            self.version, self.api, self.address, self.shard_id, self.epoch
        )
    }
}

fn story(versions: &Versions) -> Story {
    let mut story = Story::default();
    let build = versions.client;
    story.heading(format!("bigfleet {}", build.version), Tone::Head);
    let commit = if build.commit.is_empty() { "unknown" } else { build.commit };
    story.say(
        "built from",
        format!("commit {commit}, {} for {} ({})", build.rustc, build.target, build.profile),
    );
    story.say("speaks", format!("view {}, wire {}", build.api, build.protocol));
    if let Some(server) = &versions.server {
        story.say("server", server.text());
    }
    story
}
