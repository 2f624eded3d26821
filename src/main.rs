//! The program: everything is in the library; see [`lodestar::cli`].

fn main() -> std::process::ExitCode {
    lodestar::cli::run(std::env::args_os())
}
