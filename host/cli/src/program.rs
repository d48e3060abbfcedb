//! One run of the program: parses the command line, runs one command, returns an exit code.

use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use toolcell_server::shell;

use crate::args::{self, Args, Command};
use crate::exit::Exit;
use crate::{commands, sandbox_process};

pub fn run() -> std::process::ExitCode {
    if let Some(done) = sandbox_process::run_if_asked() {
        return done;
    }
    let mut command = args::wrapped(Args::command());
    let matches = command.get_matches_mut();
    if let Some(manifest) = manifest_of(&matches) {
        shell::name_manifest(manifest);
    }
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
    let done = match args.command {
        Command::Serve(args) => commands::serve::run(&args),
        Command::Dev(args) => commands::dev::run(args),
        Command::Check(args) => commands::check::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Console(args) => commands::console::run(&args),
        Command::Reload(args) => commands::reload::run(&args),
        Command::LogLevel(args) => commands::log_level::run(&args),
        Command::Lock(args) => commands::lock::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Approve(args) => commands::approve::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Call(args) => commands::call::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Calibrate(args) => commands::calibrate::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Annotate(args) => commands::annotate::run(&args),
        Command::Compile(args) => commands::compile::run(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Usage(args) => commands::audit::usage::run(&args),
        Command::Token(args) => commands::token::run(&args),
        Command::Logins(args) => commands::logins::run(&args),
        Command::ClientConfig(args) => commands::client_config::run(&args),
        Command::Add(args) => commands::add::run(&args),
        Command::Pull(args) => commands::pull::run(&args),
        Command::Outdated(args) => commands::outdated::run(&args),
        Command::Update(args) => commands::update::run(&args),
        Command::Push(args) => commands::push::run(&args),
        Command::Search(args) => commands::search::run(&args),
        Command::Store(args) => commands::store::run(&args),
        Command::Remove(args) => commands::remove::run(&args),
        Command::Rename(args) => commands::rename::run(&args),
        Command::Grant(args) => commands::grant::run(&args),
        Command::Revoke(args) => commands::grant::revoke(&args),
        Command::Secret(args) => commands::secret::run(&args),
        Command::Policy(args) => commands::policy::run(&args),
        Command::New(args) => commands::new::run(&args),
        Command::Bundle(args) => commands::bundle::run(&args),
        Command::Walls(args) => commands::walls::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    };
    // Otherwise new tokens of a running refresh would be lost.
    toolcell_server::login::finish(toolcell_server::login::FINISHED_WITHIN);
    toolcell_server::secret_program::end_all();
    Exit::of(done).into()
}

/// The manifest that the command is about, if it takes one.
fn manifest_of(matches: &ArgMatches) -> Option<&PathBuf> {
    match matches.subcommand() {
        Some((_, below)) => manifest_of(below),
        None => matches.try_get_one("manifest").ok().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds each command that takes a manifest, by its words.
    fn of_manifest(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        let takes_manifest = command.get_arguments().any(|argument| argument.get_long() == Some("manifest"));
        if takes_manifest {
            found.push(words.to_owned());
        }
        for below in command.get_subcommands() {
            of_manifest(below, format!("{words} {}", below.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn hints_know_which_commands_take_a_manifest() {
        let mut found = Vec::new();
        of_manifest(&Args::command(), "", &mut found);
        found.sort();
        assert_eq!(found, shell::COMMANDS_OF_MANIFEST);
    }

    #[test]
    fn the_manifest_of_a_command_is_found_below_it() {
        let of = |line: &[&str]| manifest_of(&Args::command().try_get_matches_from(line).unwrap()).cloned();
        let named = Some(PathBuf::from("../a b/c.toml"));
        assert_eq!(of(&["toolcell", "token", "list", "-m", "../a b/c.toml"]), named);
        assert_eq!(of(&["toolcell", "check", "--manifest", "../a b/c.toml"]), named);
        assert_eq!(of(&["toolcell", "walls"]), None);
    }
}
