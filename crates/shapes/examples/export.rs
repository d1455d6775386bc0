//! Writes a fleet as JSON, the input of a decision vector:
//! `cargo run --release -p bigfleet-shapes --example export -- 5k [--variant cold|scarce] [--seed 1] > file.json`.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use bigfleet_scenario::input;
use bigfleet_shapes::{Shape, generate, scarce};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let shape: Shape = arguments.next().ok_or("name a shape, for example 5k or 500k")?.parse()?;
    let (mut variant, mut seed) = ("cold".to_owned(), 1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--variant" => variant = value,
            "--seed" => seed = value.parse()?,
            _ => return Err(format!("unknown option {option}; there are --variant and --seed").into()),
        }
    }
    let scenario = match variant.as_str() {
        "cold" => generate(shape, seed),
        "scarce" => scarce(shape, seed),
        _ => return Err(format!("there is no variant {variant}; there are cold and scarce").into()),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    input::write(&mut out, &scenario)?;
    out.flush()?;
    Ok(())
}
