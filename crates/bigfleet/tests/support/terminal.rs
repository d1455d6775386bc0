//! A terminal for one command, so that it prints what it prints for people.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs a command with a terminal for its output. Returns how it ended and what it wrote.
pub(crate) fn run(mut command: Command) -> (ExitStatus, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it is open");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let name = name.to_str().expect("a path").to_owned();
    let theirs = OpenOptions::new().read(true).write(true).open(name).expect("the other end");
    let errors = theirs.try_clone().expect("a second one");
    command.stdout(Stdio::from(theirs)).stderr(Stdio::from(errors));
    let mut child = command.spawn().expect("it starts");
    // The command holds its end too; ours must go, or the end would never be seen.
    drop(command);
    let mut text = Vec::new();
    let mut screen = File::from(ours);
    let mut piece = [0; 4096];
    // A terminal whose other end is gone answers with an error, which is its way to say that this was all.
    while let Ok(count @ 1..) = screen.read(&mut piece) {
        text.extend_from_slice(&piece[..count]);
    }
    let status = child.wait().expect("it ends");
    (status, seen(&String::from_utf8_lossy(&text).replace("\r\n", "\n")))
}

/// What stays on the screen: a line that is begun, left and erased, as progress is, does not.
fn seen(text: &str) -> String {
    const ERASED: &str = "\r\x1b[K";
    let mut screen = String::with_capacity(text.len());
    for (place, part) in text.split(ERASED).enumerate() {
        if place > 0 {
            let line = screen.rfind('\n').map_or(0, |end| end + 1);
            screen.truncate(line);
        }
        screen.push_str(part);
    }
    screen
}
