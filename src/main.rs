//! The command line.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use toolhook::cli::{self, Failure, logging::Watched, shutdown::Signals};
use toolhook::config::Problems;
use toolhook::config::{Command, Toolhook};

/// The records that the servers log.
const SERVER_LOG: &str = "info";
/// The records that the other commands log.
const COMMAND_LOG: &str = "warn";
/// How long work that cannot be cut off (a start of Postgres, a look-up of a name) may delay the end.
const LAST_WORK: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let toolhook = Toolhook::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("toolhook: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(Box::pin(run(toolhook)));
    if matches!(done, Err(Failure::Interrupted)) {
        runtime.shutdown_background();
    } else {
        runtime.shutdown_timeout(LAST_WORK);
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("toolhook: {failure}");
            failure.exit_code()
        }
    }
}

/// Checks what was asked for as a whole, and does it.
async fn run(Toolhook { command, logging }: Toolhook) -> Result<(), Failure> {
    let mut problems = Problems::default();
    let default_log = if matches!(command, Command::Serve(_) | Command::Dev(_)) { SERVER_LOG } else { COMMAND_LOG };
    let logging = logging.check(default_log, &mut problems);
    match command {
        Command::Serve(serve) => {
            let settings = serve.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            let watched = cli::logging::start_server(logging, &settings.serving.telemetry)?;
            let done = cli::serve::run(settings, watched.metrics.clone(), &mut signals()?).await;
            finish(watched, done).await
        }
        Command::Dev(dev) => {
            let settings = dev.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            let watched = cli::logging::start_server(logging, &settings.serving.telemetry)?;
            let done = cli::dev::run(settings, watched.metrics.clone(), &mut signals()?).await;
            finish(watched, done).await
        }
        Command::Doctor(doctor) => {
            let settings = doctor.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::doctor::run(settings).await
        }
        Command::Migrate(migrate) => {
            let settings = migrate.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::migrate::run(settings).await
        }
        Command::RotateMasterKey(rotate) => {
            let settings = rotate.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::rotate::run(settings).await
        }
        Command::Keys(keys) => {
            let settings = keys.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::keys::run(settings, keys.action).await
        }
        Command::Tenants(tenants) => {
            let settings = tenants.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::tenants::run(settings, tenants.action).await
        }
        Command::Audit(audit) => {
            let settings = audit.check(&mut problems);
            let (logging, settings) = problems.finish(logging.zip(settings))?;
            cli::logging::start(logging);
            cli::audit::run(settings, audit.action).await
        }
    }
}

/// Sends the traces that are left, unless nothing is to be waited for.
async fn finish(watched: Watched, done: Result<(), Failure>) -> Result<(), Failure> {
    if !matches!(done, Err(Failure::Interrupted)) {
        watched.finish().await;
    }
    done
}

fn signals() -> Result<Signals, Failure> {
    Signals::listen().map_err(Failure::because("cannot listen for signals"))
}
