//! Private clusters in which pods of charts really run, as processes: for going through docs/install.md without a cluster of one's
//! own. `scripts/test-bed` runs it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bigfleet_kube_testbed::TestBed;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, helm, folder, names @ ..] = &words[..] else {
        return Err("say PROGRAM HELM FOLDER NAME...".into());
    };
    let program = Path::new(program).canonicalize()?;
    let mut out = std::io::stdout();
    writeln!(out, "starting {} private clusters ...", names.len())?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bed = TestBed::start(&names, &program).await?;
    let mut folders: Vec<PathBuf> = vec![program.parent().unwrap_or(Path::new("/")).to_owned()];
    folders.extend(Path::new(helm).parent().map(Path::to_owned));
    folders.extend(bed.program("kubectl").and_then(|kubectl| Some(kubectl.parent()?.to_owned())));
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let mut env = format!("export PATH={}:$PATH\n", folders.join(":"));
    for (name, kubeconfig) in bed.kubeconfigs()? {
        writeln!(env, "export {}={}", name.to_uppercase(), kubeconfig.display())?;
    }
    std::fs::create_dir_all(folder)?;
    // Whoever waits for it finds it whole.
    let written = Path::new(folder).join("env.new");
    std::fs::write(&written, env)?;
    std::fs::rename(written, Path::new(folder).join("env"))?;
    writeln!(out, "ready; in another terminal: . {folder}/env\nctrl-c ends and removes everything.")?;
    out.flush()?;
    let mut told = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = told.recv() => {}
    }
    std::fs::write(Path::new(folder).join("log"), bed.last_words())?;
    std::fs::remove_file(Path::new(folder).join("env"))?;
    Ok(())
}
