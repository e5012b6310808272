//! Whether the walls between tenants stand: the two roles, and row-level security on every table of tenants' rows. What is asked
//! here is the catalogue, as whoever logged in; it says what would let one tenant's transaction see another's rows.

use super::{Store, StoreError};
use std::fmt;
use uuid::Uuid;

/// What is wrong with the walls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A role is not there.
    NoRole(String),
    /// The login may not take a role.
    NotTaken(String),
    /// A role is a superuser, or passes row-level security.
    Unbounded(String),
    /// A role owns something, and an owner can open it.
    Owns(String, String),
    /// A role is a member of another, and can do what that can.
    Member(String, String),
    /// Row-level security is not on, or not for the owner, on this table.
    Open(String),
    /// The role of one tenant has a policy that lets more through than that tenant's rows.
    Policy(String, String),
    /// The role of one tenant may empty a table, which no policy covers.
    Empties(String),
    /// The role of one tenant may use something that works with its owner's rights: a view, or a function.
    Borrows(String),
}

impl fmt::Display for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRole(role) => write!(
                out,
                "there is no role {role}: run `create role {role} nologin noinherit`, and the grants of migrations/0003_walls.sql again"
            ),
            Self::NotTaken(role) => write!(
                out,
                "the login of DATABASE_URL may not take the role {role}: let an administrator run `grant {role} to` that login"
            ),
            Self::Unbounded(role) => write!(
                out,
                "{role} is a superuser or passes row-level security: run `alter role {role} nosuperuser nobypassrls`"
            ),
            Self::Owns(role, what) => {
                write!(
                    out,
                    "{role} owns {what}: give it to another with `alter … owner to`, and grant {role} again what migrations/0003_walls.sql does"
                )
            }
            Self::Member(role, of) => {
                write!(out, "{role} is a member of {of}: run `revoke {of} from {role}`")
            }
            Self::Open(table) => write!(
                out,
                "row-level security is not forced on {table}: run `alter table {table} enable row level security, force row level security`"
            ),
            Self::Policy(table, policy) => write!(
                out,
                "the policy {policy} on {table} lets toolhook_app see more than one tenant: run `drop policy {policy} on {table}`"
            ),
            Self::Borrows(what) => write!(
                out,
                "toolhook_app may use {what}, which works with its owner's rights: run `revoke all on {what} from toolhook_app, public`"
            ),
            Self::Empties(table) => {
                write!(
                    out,
                    "toolhook_app may truncate {table}: run `revoke truncate on {table} from toolhook_app, public`"
                )
            }
        }
    }
}

/// Finds what is wrong with the walls; nothing, if they stand.
pub async fn breaches(store: &Store) -> Result<Vec<Breach>, StoreError> {
    let mut breaches = catalogued(store).await?;
    let missing = |breaches: &[Breach], role: &str| breaches.contains(&Breach::NoRole(role.to_owned()));
    for role in ["toolhook_app", "toolhook_system"] {
        let taken = if role == "toolhook_app" { store.scoped(Uuid::nil()).await } else { store.system().await };
        match taken {
            Ok(scope) => scope.commit().await?,
            Err(error) if error.is_refused_role() && missing(&breaches, role) => {}
            Err(error) if error.is_refused_role() => breaches.push(Breach::NotTaken(role.to_owned())),
            Err(error) => return Err(error),
        }
    }
    Ok(breaches)
}

async fn catalogued(store: &Store) -> Result<Vec<Breach>, StoreError> {
    // Grants to the role itself count, and not those to everybody: extensions give everybody tables of theirs to read.
    let found = sqlx::query!(
        r#"with wanted as (select unnest(array['toolhook_app', 'toolhook_system']) as name),
           roles as (select oid, rolname as name, rolsuper or rolbypassrls as unbounded from pg_roles
             where rolname in (select name from wanted)),
           relations as (
             select c.oid, c.oid::regclass::text as name, c.relkind, c.relrowsecurity and c.relforcerowsecurity as walled,
               exists (select from aclexplode(c.relacl) g join roles r on r.oid = g.grantee where r.name = 'toolhook_app')
               or exists (select from pg_attribute a, aclexplode(a.attacl) g join roles r on r.oid = g.grantee
                 where a.attrelid = c.oid and r.name = 'toolhook_app') as granted,
               c.relnamespace = 'public'::regnamespace and (c.relname in ('tenants', 'operator_keys') or exists (
                 select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped)) as tenants
             from pg_class c where c.relkind in ('r', 'p', 'v', 'm', 'f'))
           select 'no role' as "kind!", w.name as "subject!", '' as "detail!" from wanted w
             where not exists (select from roles r where r.name = w.name)
           union all select 'unbounded', name, '' from roles where unbounded
           union all select 'owns', r.name, c.oid::regclass::text from pg_class c join roles r on r.oid = c.relowner
             where c.relkind in ('r', 'p', 'v', 'm', 'f')
           union all select 'owns', r.name, p.oid::regprocedure::text from pg_proc p join roles r on r.oid = p.proowner
           union all select 'member', r.name, of.rolname from pg_auth_members m join roles r on r.oid = m.member
             join pg_roles of on of.oid = m.roleid
           union all select 'open', name, '' from relations where relkind in ('r', 'p') and (granted or tenants) and not walled
           union all select 'borrows', name, '' from relations where relkind in ('v', 'm', 'f') and granted
           union all select 'borrows', 'function ' || p.oid::regprocedure, '' from pg_proc p join roles r on r.name = 'toolhook_app'
             where p.prosecdef and p.pronamespace = 'public'::regnamespace and has_function_privilege(r.oid, p.oid, 'execute')
               and not r.unbounded and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
           union all select 'policy', n.name, p.polname
             from pg_policy p join relations n on n.oid = p.polrelid join roles r on r.name = 'toolhook_app'
             where p.polpermissive and not r.unbounded and (r.oid = any(p.polroles) or 0 = any(p.polroles))
               and (has_any_column_privilege(r.oid, n.oid, 'select, insert, update') or has_table_privilege(r.oid, n.oid, 'delete'))
               and exists (select from unnest(array[pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)]) e
                 where e <> '(' || case when n.name = 'tenants' then 'id' else 'tenant_id' end
                   || ' = (NULLIF(current_setting(''toolhook.tenant''::text, true), ''''::text))::uuid)')
           union all select 'empties', n.name, '' from relations n join roles r on r.name = 'toolhook_app'
             where n.relkind in ('r', 'p') and not r.unbounded and has_table_privilege(r.oid, n.oid, 'truncate')
           order by 1, 2, 3"#
    );
    let mut login = store.as_login().await?;
    let found = found.fetch_all(&mut *login).await?;
    login.commit().await?;
    Ok(found.into_iter().filter_map(|row| breach(&row.kind, row.subject, row.detail)).collect())
}

fn breach(kind: &str, subject: String, detail: String) -> Option<Breach> {
    Some(match kind {
        "no role" => Breach::NoRole(subject),
        "unbounded" => Breach::Unbounded(subject),
        "owns" => Breach::Owns(subject, detail),
        "member" => Breach::Member(subject, detail),
        "open" => Breach::Open(subject),
        "policy" => Breach::Policy(subject, detail),
        "empties" => Breach::Empties(subject),
        "borrows" => Breach::Borrows(subject),
        _ => return None,
    })
}
