//! Support for tests and fuzz targets of `weft-host`. No part of the product.
//!
//! | module | contents |
//! |---|---|
//! | [`puppet`] | ranks that are threads of this process and write what a test tells them |
//! | [`device_input`] | the fuzz target `device`: any bytes, as what two ranks write into their devices |

pub mod device_input;
pub mod puppet;
