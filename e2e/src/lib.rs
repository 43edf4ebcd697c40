//! What tests on a real cluster have in common: the cluster, and a site of its own for each test.

pub mod forge;
mod ground;
mod harness;
pub mod image;
pub mod inventory;
mod lots;
pub mod objects;
pub mod pod;
mod proxy;
mod record;
pub mod servers;
mod site;
pub mod tiphys;
mod wait;
mod world;

pub use ground::Ground;
pub use harness::{Case, Place, count, figure, main, seed};
pub use lots::Lots;
pub use proxy::{Proxy, Spoiled};
pub use record::{Recording, Written};
pub use site::{PlatformFile, Site, operation};
pub use wait::{until, until_within};
pub use world::World;
