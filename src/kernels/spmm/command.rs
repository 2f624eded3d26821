//! `lodestar spmm`: arguments, and running on files.

use crate::cli::Io;

pub(super) fn command() -> clap::Command {
    clap::Command::new("spmm")
}

pub(super) fn run(_: &clap::ArgMatches, _: &mut Io) -> anyhow::Result<()> {
    anyhow::bail!("not built")
}
