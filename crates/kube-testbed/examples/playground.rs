//! A private Kubernetes with nothing in it, connected to `bigfleet up`. `scripts/up-kubernetes` runs it.

use std::io::Write as _;
use std::path::Path;

use bigfleet_kube_testbed::Playground;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [bigfleet, flags @ ..] = &words[..] else {
        return Err("say where the bigfleet program is, then flags of bigfleet up".into());
    };
    let mut out = std::io::stdout();
    writeln!(out, "starting a private Kubernetes and bigfleet up ...")?;
    let mut playground = Playground::start(Path::new(bigfleet), flags).await?;
    writeln!(out, "{}", playground.invitation())?;
    out.flush()?;
    tokio::select! {
        asked = tokio::signal::ctrl_c() => asked?,
        last_words = playground.ended() => return Err(format!("a program has ended:\n{last_words}").into()),
    }
    playground.stop().await;
    Ok(())
}
