# shellcheck shell=bash
# What this machine needs before cargo can build and run Toolhook. Sourced by the scripts beside it.

# The oldest major version that the service accepts; src/cli/postgres/find.rs holds the same number.
oldest_postgres=14

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# Prints what to put before a command that needs root: nothing, or sudo where it asks for no password. Fails where neither works.
root_prefix() {
  if [ "$(id -u)" -eq 0 ]; then
    return 0
  fi
  sudo -n true 2>/dev/null || return 1
  echo "sudo -n"
}

# The folders that may hold Postgres, in the order that the service looks at them.
postgres_folders() {
  if [ -n "${PG_BINDIR:-}" ]; then
    echo "$PG_BINDIR"
    return
  fi
  local binary dir
  if binary=$(command -v postgres); then dirname "$(readlink -f "$binary")"; fi
  if command -v pg_config >/dev/null; then pg_config --bindir; fi
  for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
    /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
    /Applications/Postgres.app/Contents/Versions/*/bin /opt/local/lib/postgresql*/bin /usr/local/pgsql*/bin; do
    echo "$dir"
  done
}

have_postgres() {
  local dir major
  while IFS= read -r dir; do
    [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] || continue
    major=$("$dir/postgres" -V 2>/dev/null | sed -E 's/^[^0-9]*([0-9]+).*/\1/') || continue
    [ "${major:-0}" -ge "$oldest_postgres" ] 2>/dev/null && return 0
  done < <(postgres_folders)
  return 1
}

# Crates with C in them (ring) need a compiler, and Rust itself links with it.
have_compiler() { command -v cc >/dev/null && printf '#include <stdlib.h>\n' | cc -E - >/dev/null 2>&1; }

# The pooler that some tests put in front of Postgres.
have_pgbouncer() { command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; }

# ensure [postgres] [compiler] [pgbouncer]: installs what is missing of them, where this is Debian or its kin and we may; else says what to
# install and ends.
ensure() {
  local need packages=() prefix
  for need in "$@"; do
    case $need in
      postgres) have_postgres || packages+=(postgresql) ;;
      pgbouncer) have_pgbouncer || packages+=(pgbouncer) ;;
      compiler) have_compiler || packages+=(gcc libc6-dev) ;;
      *) die "ensure: what is $need?" ;;
    esac
  done
  [ "${#packages[@]}" -gt 0 ] || return 0

  if ! command -v apt-get >/dev/null || [ -n "${PG_BINDIR:-}" ]; then
    say "this machine lacks: ${packages[*]} (as Debian calls them)."
    [ -z "${PG_BINDIR:-}" ] || say "PG_BINDIR=$PG_BINDIR is the only place looked at for Postgres."
    die "Install PostgreSQL $oldest_postgres or newer (the server) and a C compiler with the system's package manager," \
      "for example: dnf install postgresql-server gcc, apk add postgresql gcc musl-dev, brew install postgresql@17."
  fi
  prefix=$(root_prefix) || die "please run: sudo apt-get install -y ${packages[*]}"

  say "installing ${packages[*]}"
  # shellcheck disable=SC2086 # the prefix is words
  $prefix apt-get update -q >&2 || say "the package lists could not be refreshed; going on with those that are here"
  # shellcheck disable=SC2086
  $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}" >&2 ||
    die "apt-get could not install ${packages[*]}"
  for need in "$@"; do
    "have_$need" || die "the $need that apt-get installed is not usable (Postgres has to be $oldest_postgres or newer)."
  done
}

# wish [pgbouncer]: the same for what the tests can do without; those that need it say that they are skipped.
wish() { (ensure "$@") || say "going on without $*"; }
