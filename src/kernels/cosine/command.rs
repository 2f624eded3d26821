//! `lodestar topk`: arguments, and running on files.

pub(super) fn command() -> clap::Command {
    clap::Command::new("topk").about("The k nearest rows of a corpus for each query, exactly")
}

pub(super) fn run(_arguments: &clap::ArgMatches, _io: &mut crate::cli::Io) -> anyhow::Result<()> {
    anyhow::bail!("not there yet")
}
