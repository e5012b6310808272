//! Columns of the type `json`, whose text comes back as it was written.
//!
//! sqlx's own `Json` declares every parameter as `jsonb`, which Postgres then turns into the column's `json`: keys are
//! sorted, numbers and white space respelled, and `\u0000` refused on the way.

use super::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// `json` in every Postgres.
const JSON: Oid = Oid(114);

/// A value in a `json` column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T> Type<Postgres> for Json<T> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSON)
    }
}

impl<T: Serialize> Encode<'_, Postgres> for Json<T> {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        out.extend_from_slice(&serde_json::to_vec(&self.0)?);
        Ok(IsNull::No)
    }
}

impl<T: DeserializeOwned> Decode<'_, Postgres> for Json<T> {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(serde_json::from_slice(value.as_bytes()?)?))
    }
}

/// The text in a `json` column, which is read when its row is: a text that cannot be read is that row's fault alone, and
/// does not fail the statement that brings the others too.
#[derive(Clone, Debug)]
pub(super) struct JsonText(String);

impl Type<Postgres> for JsonText {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSON)
    }
}

impl Decode<'_, Postgres> for JsonText {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(value.as_str()?.to_owned()))
    }
}

impl JsonText {
    /// Reads the text; `column` of the row `row` of `table` is where it stands.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        table: &'static str,
        row: &str,
        column: &str,
    ) -> Result<Json<T>, StoreError> {
        let unreadable = |e: serde_json::Error| StoreError::inconsistent(table, row, format!("{column}: {e}"));
        serde_json::from_str(&self.0).map(Json).map_err(unreadable)
    }
}
