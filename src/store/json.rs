//! Columns of the type `json`, whose text comes back as it was written.
//!
//! sqlx's own `Json` declares every parameter as `jsonb`, which Postgres then turns into the column's `json`: keys are
//! sorted, numbers and white space respelled, and `\u0000` refused on the way.

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
