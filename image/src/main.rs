//! Writes the image of the executor, for `docker load`, `ctr images import` and the like.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Write the container image of `tiphys executor`, without a container engine
#[derive(Debug, Parser)]
struct Args {
    /// The program, linked statically
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Where the image goes
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Name and tag of the image
    #[arg(long, value_name = "NAME:TAG", default_value = concat!("tiphys:", env!("CARGO_PKG_VERSION")))]
    name: String,
    /// Certificates of the authorities that it trusts
    #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt")]
    authorities: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let image = tiphys_image::executor(&args.name, &args.program, &args.authorities);
    match image.write(&args.output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let text = format!("error: {error}: {}\n", cause.unwrap_or_default());
            std::io::stderr().write_all(text.as_bytes()).unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}
