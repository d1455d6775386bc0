//! Prints what is in a fleet: `cargo run --release -p bigfleet-shapes --example census -- 500k [scarce] [SEED]`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;

use bigfleet_shapes::{Shape, census, digest, generate, scarce};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (shape, rest) = arguments.split_first().ok_or("name a shape, for example 5k or 500k")?;
    let shape: Shape = shape.parse()?;
    let is_scarce = rest.iter().any(|argument| argument == "scarce");
    let seed = rest.iter().find(|argument| *argument != "scarce").map_or(Ok(1), |seed| seed.parse())?;
    let scenario = if is_scarce { scarce(shape, seed) } else { generate(shape, seed) };
    println!(
        "{shape}, {}, seed {seed}, digest {:016x}",
        if is_scarce { "scarce" } else { "cold" },
        digest(&scenario)
    );
    println!("{}", census(&scenario));
    Ok(())
}
