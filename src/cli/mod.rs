//! The command line: global flags, one subcommand per kernel from [`KERNELS`], then gate, report and the rest.
//!
//! Data goes to stdout or `--output`, messages and progress to stderr. Only this module prints or exits.

#[cfg(feature = "gpu")]
mod adapters;
mod check;
mod corpus;
mod current;
mod gate;
mod interrupt;
mod kernels;
mod machine;
mod output;
mod platform;
mod report;
mod verify;

pub use output::{Io, Progress};
pub use platform::{DEVICE_HELP, platform, platform_for_checks};

use crate::kernels::KERNELS;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Does this kernel deserve a GPU, on this machine, at my sizes?
#[derive(Parser)]
#[command(name = "lodestar", version, max_term_width = 100, propagate_version = true)]
struct Cli {
    /// Print results as JSON on stdout
    #[arg(long, global = true)]
    json: bool,
    /// No progress and no notes on stderr; errors only
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The adapters that wgpu sees, and why each one is or is not a GPU
    #[cfg(feature = "gpu")]
    Adapters,
    Check(check::Arguments),
    /// Completions for a shell, on stdout
    #[command(
        after_help = "Example:\n  lodestar completions bash > ~/.local/share/bash-completion/completions/lodestar"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    Corpus(corpus::Arguments),
    Gate(gate::Arguments),
    Kernels(kernels::Arguments),
    Machine(machine::Arguments),
    /// The manual page, on stdout
    #[command(after_help = "Example:\n  lodestar man | man -l -")]
    Man,
    Report(report::Arguments),
    Verify(verify::Arguments),
}

/// Where results lie in a checkout.
const RESULTS: &str = "results";

/// How a command ended, as an exit code: 0 done or PASS, 1 FAIL, 2 usage, protocol or I/O, 3 INCONCLUSIVE, 4 INVALID, 5 NO-GPU.
pub type Exit = u8;

/// The whole definition, kernels included: what `--help`, completions and the manual are made from.
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    for kernel in KERNELS {
        command = command.subcommand(kernel.command());
    }
    command
}

/// Runs the program with these arguments (the first one is the program's name).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => error.exit(),
    };
    let mut io = Io::new(matches.get_flag("json"), matches.get_flag("quiet"));
    interrupt::install();
    match run_matches(&matches, &mut io).and_then(|exit| io.finish().map(|()| exit)) {
        Ok(exit) => ExitCode::from(exit),
        // The reader of a pipe went away: nobody is left to be told.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}

fn run_matches(matches: &clap::ArgMatches, io: &mut Io) -> anyhow::Result<Exit> {
    if let Some((name, arguments)) = matches.subcommand()
        && let Some(kernel) = KERNELS.iter().find(|kernel| kernel.command().get_name() == name)
    {
        kernel.run_command(arguments, io)?;
        return Ok(0);
    }
    match Cli::from_arg_matches(matches)?.command {
        #[cfg(feature = "gpu")]
        Command::Adapters => adapters::run(io),
        Command::Check(arguments) => check::run(&arguments, io),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut command(), "lodestar", &mut io.out);
            Ok(0)
        }
        Command::Man => {
            clap_mangen::Man::new(command()).render(&mut io.out)?;
            Ok(0)
        }
        Command::Corpus(arguments) => corpus::run(&arguments, io),
        Command::Gate(arguments) => gate::run(&arguments, io),
        Command::Verify(arguments) => verify::run(&arguments, io),
        Command::Kernels(arguments) => kernels::run(&arguments, io),
        Command::Report(arguments) => report::run(&arguments, io),
        Command::Machine(arguments) => machine::run(&arguments, io),
    }
}
