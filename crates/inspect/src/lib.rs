//! Reading a cluster and what surrounds it, for `status`, `preflight` and dry runs.
//!
//! Writes nothing anywhere. What was read is judged in `tiphys-assess`.

mod forecast;
pub mod preflight;
pub mod status;

pub use forecast::{Forecast, forecast};
