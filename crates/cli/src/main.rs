//! The `packds` command. The code is in the library, so that other programs can run it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    packds_cli::run(std::env::args_os()).into()
}
