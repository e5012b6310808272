//! `toolhook audit verify`: whether anybody rewrote what happened.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::process::{Ended, Scratch, finish, toolhook};

/// Runs statements as a superuser for whom no trigger fires: somebody who restored a copy and altered it.
fn tamper(url: &str, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let statements = format!("set session_replication_role = replica; {statement}");
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.unwrap();
        connection.close().await.unwrap();
    });
}

#[test]
fn k03_the_first_altered_or_missing_row_is_named() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let run = |line: &str| -> Ended {
        let words: Vec<&str> = line.split(' ').collect();
        finish(toolhook(&words).env("DATABASE_URL", &url))
    };
    run("audit verify").complains(1, &["toolhook migrate"]);
    run("migrate");
    assert_eq!(run("audit verify").out.lines().count(), 1, "nothing happened yet");
    for tenant in ["acme", "gone"] {
        assert_eq!(run(&format!("tenants create {tenant}")).code, Some(0));
    }
    for role in ["admin", "editor", "agent", "viewer"] {
        assert_eq!(run(&format!("keys create --role {role} --tenant acme")).code, Some(0));
    }
    run("keys create --role operator");
    run("tenants delete gone --yes");
    let whole = run("audit verify");
    assert_eq!(whole.code, Some(0), "{}{}", whole.out, whole.err);
    for (whose, rows) in [("acme", "5"), ("(operators)", "4"), ("(removed)", "2")] {
        let line = whole.out.lines().find(|line| line.contains(whose)).unwrap();
        assert_eq!(line.split_whitespace().nth(2), Some(rows), "{}", whole.out);
    }
    let acme = "(select id from tenants where name = 'acme')";
    let in_acme = format!("where tenant_id = {acme} and sequence");
    let damages = [
        ("update audit set actor = 'nobody'", "= 3", "row 3", "is not as it was written"),
        ("update audit set at = at + interval '1 microsecond'", "= 1", "row 1", "is not as it was written"),
        ("update audit set hash = repeat('a', 64)", "= 4", "row 4", "is not as it was written"),
        ("update audit set previous_hash = repeat('a', 64)", "= 4", "row 4", "does not follow"),
        ("update audit set sequence = 9", "= 5", "row 5", "is missing"),
        ("delete from audit", "= 2", "row 2", "is missing"),
        ("delete from audit", "> 3", "row 4", "is missing, and so are all after it"),
        ("delete from audit", "> 0", "row 1", "is missing"),
    ];
    for (damage, rows, row, reason) in damages {
        tamper(&url, "create table saved as select * from audit");
        tamper(&url, &format!("{damage} {in_acme} {rows}"));
        for command in ["audit verify", "audit verify --tenant acme"] {
            run(command).complains(1, &[row, "acme", reason]);
        }
        assert_eq!(run("audit verify --chain 00000000-0000-0000-0000-000000000000").code, Some(0));
        tamper(&url, "delete from audit; insert into audit select * from saved; drop table saved");
        assert_eq!(run("audit verify").code, Some(0), "{damage} {rows}");
    }
    // A whole chain that was taken away is missed because the operators' tells of its tenant.
    tamper(&url, "delete from audit a using audit_chains c where a.tenant_id = c.tenant_id and c.sequence = 2");
    tamper(&url, "delete from audit_chains where sequence = 2");
    run("audit verify").complains(1, &["(removed)", "row 1", "missing"]);
    run("audit verify --tenant nobody").complains(1, &["no tenant nobody"]);
    postgres.stop();
}
