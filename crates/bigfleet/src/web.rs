//! `bigfleet web`: the page in front of one shard or several, and the flags that every server of the page shares.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use bigfleet_net::{TlsFiles, dial, until};
use bigfleet_web::{Access, Served, Settings, Shard, Site, Tokens};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::context::Reach;
use crate::exit::Failure;

/// Serve the page in front of shards: see the fleet, ask it why.
///
/// On loopback whoever reaches the port may do what the command line may do. Beyond loopback the page is served over TLS,
/// and people sign in with a token. The page can do to the shards what this program's own certificate may do, and never
/// more than the token says.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet web
  bigfleet web --shard http://127.0.0.1:7780 --shard http://127.0.0.1:7781
  bigfleet web --listen 0.0.0.0:7700 --web-cert page.pem --web-key page.key --tokens tokens \\
      --shard https://shard-0:7780 --tls-cert web.pem --tls-key web.key --tls-ca ca.pem")]
pub(crate) struct Args {
    /// A shard to show; may be repeated [default: the one other commands ask]
    #[arg(long = "shard", value_name = "URL")]
    shards: Vec<String>,
    /// Where the page is served
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7700")]
    listen: String,
    /// Certificate of the page, for browsers (PEM)
    #[arg(long, value_name = "FILE", requires = "web_key", help_heading = "Page")]
    web_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "web_cert", help_heading = "Page")]
    web_key: Option<PathBuf>,
    /// Who may open the page, one line each: a role (admin or readonly), a secret and a name
    #[arg(long, value_name = "FILE", help_heading = "Page", env = "BIGFLEET_WEB_TOKENS")]
    tokens: Option<PathBuf>,
    /// Show everything and take no commands
    #[arg(long, conflicts_with = "tokens", help_heading = "Page")]
    look_only: bool,
    #[command(flatten)]
    reach: Reach,
}

/// A page that is to be served.
pub(crate) struct Plan {
    listen: SocketAddr,
    tls: Option<TlsFiles>,
    access: Access,
}

/// A page that is served.
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) serving: JoinHandle<Result<(), Served>>,
    halt: watch::Sender<bool>,
}

impl Plan {
    /// What the flags mean together; none if there is to be no page. `flag` is the name of the one with the address.
    pub(crate) fn of_flags(
        listen: &str,
        tls: Option<TlsFiles>,
        tokens: Option<&Path>,
        flag: &str,
    ) -> anyhow::Result<Option<Self>> {
        if listen == "none" {
            return Ok(None);
        }
        let listen: SocketAddr = listen.parse().with_context(|| {
            format!("{flag} {listen:?} is neither an address such as 127.0.0.1:7700 nor none")
        })?;
        let access = match tokens {
            Some(path) => Access::Tokens(Tokens::read(path)?),
            None => Access::Local,
        };
        let is_open = !listen.ip().is_loopback();
        ensure!(
            !is_open || tls.is_some(),
            "{flag} {listen} shows the page to other machines, and without TLS anybody on the way could read and change \
             it; give a certificate, or serve it on loopback behind something that guards it"
        );
        ensure!(
            !is_open || matches!(access, Access::Tokens(_)),
            "{flag} {listen} shows the page to other machines; say with a token file who may open it"
        );
        // On loopback without tokens a certificate would only bring warnings.
        let tls = tls.filter(|_| is_open || matches!(access, Access::Tokens(_)));
        Ok(Some(Self { listen, tls, access }))
    }

    /// Serves it until the answer is dropped.
    pub(crate) async fn serve(self, shards: Vec<Shard>) -> anyhow::Result<Page> {
        let Self { listen, tls, access } = self;
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
        let address = listener.local_addr().context("a socket without an address")?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let site = Arc::new(Site::new(Settings { shards, access, tls: tls.is_some() }));
        let (halt, halted) = watch::channel(false);
        let serving =
            tokio::spawn(
                async move { bigfleet_web::serve(listener, site, tls.as_ref(), until(halted)).await },
            );
        Ok(Page { url: format!("{scheme}://{address}"), serving, halt })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Whoever has ended already needs no telling.
        let _ = self.halt.send(true);
        self.serving.abort();
    }
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let tls = TlsFiles::from_flags(args.web_cert.clone(), args.web_key.clone(), None);
    let tls = tls.map_err(anyhow::Error::from)?;
    let plan = Plan::of_flags(&args.listen, tls, args.tokens.as_deref(), "--listen")?;
    let mut plan = plan.context("--listen none leaves nothing to do")?;
    if args.look_only {
        plan.access = Access::LookOnly;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(args, plan));
    runtime.shutdown_background();
    done
}

async fn serve(args: &Args, plan: Plan) -> Result<ExitCode, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let target = args.reach.target()?;
    let shards = if args.shards.is_empty() {
        vec![Shard::remote(&target.server, target.channel()?)]
    } else {
        let one = |url: &String| -> Result<Shard, Failure> {
            Ok(Shard::remote(url, dial(url, target.tls.as_ref()).map_err(anyhow::Error::from)?))
        };
        args.shards.iter().map(one).collect::<Result<_, _>>()?
    };
    let mut page = plan.serve(shards).await?;
    let mut out = std::io::stdout();
    writeln!(out, "page on {}", page.url)?;
    out.flush()?;
    tokio::select! {
        ended = &mut page.serving => {
            ended.map_err(anyhow::Error::from)?.map_err(anyhow::Error::from)?;
        }
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str, tls: Option<TlsFiles>, tokens: Option<&Path>) -> String {
        Plan::of_flags(listen, tls, tokens, "--web").map(drop).unwrap_err().to_string()
    }

    #[test]
    fn beyond_loopback_the_page_needs_tls_and_tokens() {
        let tls = || Some(TlsFiles { cert: "c".into(), key: "k".into(), ca: None });
        assert!(refused("0.0.0.0:7700", None, None).contains("without TLS"));
        assert!(refused("0.0.0.0:7700", tls(), None).contains("token file"));
        assert!(refused("somewhere", None, None).contains("nor none"));
        assert!(refused("127.0.0.1:0", None, Some(Path::new("/nowhere"))).contains("/nowhere"));
        assert!(Plan::of_flags("none", None, None, "--web").unwrap().is_none());
        let local = Plan::of_flags("127.0.0.1:0", tls(), None, "--web").unwrap().unwrap();
        assert!(local.tls.is_none() && matches!(local.access, Access::Local));
    }
}
