//! Private clusters in which pods of charts really run, as processes: for going through docs/install.md without a cluster of one's
//! own. `scripts/test-bed` runs it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bigfleet_kube_testbed::TestBed;

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
    std::fs::write(Path::new(folder).join("env"), env)?;
    writeln!(out, "ready; in another terminal: . {folder}/env\nctrl-c ends and removes everything.")?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
