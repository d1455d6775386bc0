//! Which server a command talks to, and as whom: the one place that decides it.
//!
//! The first that is given wins: `--server` (or `BIGFLEET_SERVER`), `--context` (or `BIGFLEET_CONTEXT`), the current
//! context of the config file, a `bigfleet up` that runs here, and at last [`DEFAULT_SERVER`]. TLS flags replace the
//! files of the context one by one.

mod command;
mod config;
mod places;
mod up;

use std::fmt;
use std::path::PathBuf;

use anyhow::anyhow;
use bigfleet_net::{TlsFiles, dial};
use tonic::transport::Channel;

pub(crate) use command::{Args, run};
pub(crate) use config::Config;
pub(crate) use places::Places;
pub(crate) use up::Up;

/// Where a shard listens unless it is told otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7780";

/// The flags of every command that talks to a server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Reach {
    /// The shard to ask, as host:port or URL; by default the context's, a running `bigfleet up`, or 127.0.0.1:7780
    #[arg(long, value_name = "ADDRESS", env = "BIGFLEET_SERVER")]
    pub(crate) server: Option<String>,
    /// No server: the decision record in this folder on this disk, as it was at its end or with --at
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["server", "context"])]
    pub(crate) record: Option<PathBuf>,
    /// A context of the config file; see `bigfleet context list`
    #[arg(long, value_name = "NAME", env = "BIGFLEET_CONTEXT")]
    pub(crate) context: Option<String>,
    /// Our certificate chain, for a server that speaks TLS
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of our certificate
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The CA whose certificates we believe
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CA")]
    pub(crate) tls_ca: Option<PathBuf>,
}

/// Who is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// A URL.
    pub(crate) server: String,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) source: Source,
}

/// Who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `--server` or its variable.
    Flag,
    /// A context of this name.
    Context(String),
    /// The file a running `bigfleet up` left.
    Up(PathBuf),
    /// A record on this disk, and no server at all.
    Record,
    /// Nobody.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("from --server"),
            Self::Context(name) => write!(f, "from context {name}"),
            Self::Up(path) => write!(f, "from the `bigfleet up` that wrote {}", path.display()),
            Self::Record => f.write_str("a record on this disk"),
            Self::Default => f.write_str("the default"),
        }
    }
}

impl fmt::Display for Target {
    /// For the foot of an answer: who gave it, so that a second server is noticed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.server.trim_start_matches("http://").trim_start_matches("https://");
        match &self.source {
            Source::Context(name) => write!(f, "from {address} (context {name})"),
            Source::Up(_) => write!(f, "from {address} (bigfleet up)"),
            Source::Record => write!(f, "from the record in {address}"),
            Source::Flag | Source::Default => write!(f, "from {address}"),
        }
    }
}

impl Reach {
    /// Decides whom to ask, from the flags and this user's files.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        let places = Places::of_this_user();
        let config = Config::read(&places)?;
        self.target_in(&config, Up::read(&places).map(|up| (up, places.up())))
    }

    fn target_in(&self, config: &Config, up: Option<(Up, PathBuf)>) -> anyhow::Result<Target> {
        let named = self.context.as_deref().or_else(|| config.current());
        let context = match named {
            // An address on the command line needs no context, so a broken choice of one must not stop it.
            Some(name) if self.server.is_none() || self.context.is_some() => {
                Some((name, config.context(name)?))
            }
            _ => None,
        };
        let (server, source) = match (&self.server, &context, up) {
            (Some(server), _, _) => (server.clone(), Source::Flag),
            (None, Some((name, context)), _) => (context.server.clone(), Source::Context((*name).into())),
            (None, None, Some((up, path))) => (up.server, Source::Up(path)),
            (None, None, None) => (DEFAULT_SERVER.to_owned(), Source::Default),
        };
        let context = context.map(|(_, context)| context);
        let file = |flag: &Option<PathBuf>, kept: fn(&config::Context) -> &Option<PathBuf>| {
            flag.clone().or_else(|| kept(context?).clone())
        };
        let tls = TlsFiles::from_flags(
            file(&self.tls_cert, |context| &context.tls_cert),
            file(&self.tls_key, |context| &context.tls_key),
            file(&self.tls_ca, |context| &context.tls_ca),
        )?;
        Ok(Target { server: as_url(&server, tls.is_some()), tls, source })
    }
}

impl Target {
    /// A channel there. Nothing is connected yet.
    pub(crate) fn channel(&self) -> anyhow::Result<Channel> {
        dial(&self.server, self.tls.as_ref())
            .map_err(|error| anyhow!("{error} (the address is {})", self.source))
    }
}

/// Adds the scheme that people leave out.
fn as_url(server: &str, tls: bool) -> String {
    match (server.contains("://"), tls) {
        (true, _) => server.to_owned(),
        (false, true) => format!("https://{server}"),
        (false, false) => format!("http://{server}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
        current = "prod"
        [contexts.prod]
        server = "prod.example:7780"
        tls_cert = "/etc/c.pem"
        tls_key = "/etc/k.pem"
        tls_ca = "/etc/ca.pem"
        [contexts.lab]
        server = "lab.example:7780"
    "#;

    fn config(text: &str) -> Config {
        Config::parse(text, "/home/me/config.toml".as_ref()).unwrap()
    }

    fn up() -> (Up, PathBuf) {
        (Up { server: "http://127.0.0.1:7781".into(), ..Up::default() }, "/run/up.json".into())
    }

    fn reach(server: Option<&str>, context: Option<&str>) -> Reach {
        Reach { server: server.map(Into::into), context: context.map(Into::into), ..Reach::default() }
    }

    #[test]
    fn the_first_that_is_given_wins() {
        let config = config(CONFIG);
        let none = Config::default();
        let ask = |reach: Reach, config: &Config, up| {
            let target = reach.target_in(config, up).unwrap();
            (target.server, target.tls.is_some(), target.source)
        };
        let own = |text: &str| text.to_owned();
        assert_eq!(
            ask(reach(None, None), &none, None),
            (own("http://127.0.0.1:7780"), false, Source::Default)
        );
        assert_eq!(
            ask(reach(None, None), &none, Some(up())),
            (own("http://127.0.0.1:7781"), false, Source::Up("/run/up.json".into()))
        );
        assert_eq!(
            ask(reach(None, None), &config, Some(up())),
            (own("https://prod.example:7780"), true, Source::Context("prod".into()))
        );
        assert_eq!(
            ask(reach(None, Some("lab")), &config, Some(up())),
            (own("http://lab.example:7780"), false, Source::Context("lab".into()))
        );
        assert_eq!(
            ask(reach(Some("host:1"), None), &config, Some(up())),
            (own("http://host:1"), false, Source::Flag),
            "without the current context's certificates"
        );
        assert_eq!(
            ask(reach(Some("host:1"), Some("prod")), &config, Some(up())),
            (own("https://host:1"), true, Source::Flag),
            "the context's certificates for another address, as asked"
        );
    }

    #[test]
    fn a_flag_replaces_one_file_of_the_context() {
        let reach = Reach { tls_cert: Some("mine.pem".into()), ..reach(None, None) };
        let tls = reach.target_in(&config(CONFIG), None).unwrap().tls.unwrap();
        assert_eq!((tls.cert, tls.key), ("mine.pem".into(), "/etc/k.pem".into()));
        let half = Reach { tls_cert: Some("mine.pem".into()), ..Reach::default() };
        assert!(half.target_in(&Config::default(), None).unwrap_err().to_string().contains("--tls-key"));
    }

    #[test]
    fn an_unknown_context_is_refused_with_those_there_are() {
        let text = reach(None, Some("prdo")).target_in(&config(CONFIG), None).unwrap_err().to_string();
        assert!(text.contains("\"prdo\"") && text.contains("did you mean prod"), "{text}");
    }
}
