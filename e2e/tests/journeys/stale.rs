//! Apps whose new revision turns unhealthy right after the sync. Argo CD says that the sync has
//! succeeded while it still shows the health of the revision before: nobody may start on that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tiphys_e2e::{Site, World, count, figure};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Retry, Timeouts};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};

/// How many times: a soak sets `TIPHYS_E2E_STALE=50`.
const TIMES: usize = 2;
/// For what should go well, however busy the cluster is.
const WAIT_LIMIT: Duration = Duration::from_secs(600);
/// As many at once.
const TOGETHER: usize = 10;

pub(crate) async fn from_before_the_sync(world: Arc<World>) {
    let times = count("TIPHYS_E2E_STALE", TIMES);
    let together = times.min(TOGETHER);
    let mut site = Site::new(&world, "stale").await;
    let (mut tried, mut traps, mut generation) = (0, 0, 0);
    while tried < times {
        generation += 2;
        site.platform.apps = pairs(together, generation - 1, &well());
        site.commit("all is well");
        let file = site.platform_file();
        configure(&world, &file).await;
        deploy(&world, &file, 0).await;

        site.platform.apps = pairs(together, generation, &ailing(generation));
        let revision = site.commit("every first app turns unhealthy");
        let file = site.platform_file();
        let before = Mark::now(&world);
        let events = deploy(&world, &file, 1).await;
        let writes = before.writes(&site);
        let firsts: BTreeSet<String> = (0..together).map(first).collect();
        let synced: BTreeMap<String, usize> =
            writes.operations().into_iter().map(|(app, versions)| (app, versions.len())).collect();
        let once: BTreeMap<String, usize> = firsts.iter().map(|app| (app.clone(), 1)).collect();
        assert_eq!(synced, once, "no dependant is ever synced: {events:#?}");
        traps += writes.stale(revision.as_str()).intersection(&firsts).count();
        tried += together;
    }
    figure(&format!(
        "{tried} times unhealthy right after the sync, {traps} of them written as succeeded and \
         still Healthy: no dependant was synced"
    ));
    site.close().await;
}

fn first(number: usize) -> String {
    format!("stale-first-{number}")
}

fn well() -> (Behaviour, Duration) {
    (Behaviour::Healthy { after: Duration::ZERO }, WAIT_LIMIT)
}

/// In two ways, and not for longer than it takes to be sure.
fn ailing(generation: u32) -> (Behaviour, Duration) {
    let behaviour = match generation % 4 {
        0 => Behaviour::NeverHealthy,
        _ => Behaviour::Degrades { after: Duration::from_secs(1) },
    };
    (behaviour, Duration::from_secs(8))
}

/// Each first app with one that depends on it; all of them change with the generation.
fn pairs(count: usize, generation: u32, first_app: &(Behaviour, Duration)) -> Vec<AppSource> {
    let (behaviour, health) = first_app;
    let pair = |number: usize| {
        let mut one = AppSource::new(&first(number), behaviour.clone());
        one.timeouts = Some(Timeouts { sync: WAIT_LIMIT, health: *health });
        one.retry = Some(Retry { limit: 0, ..Retry::default() });
        let other = AppSource::new(&format!("stale-then-{number}"), Behaviour::ConfigOnly);
        let mut pair = [one, other.depends_on(&[&first(number)])];
        for app in &mut pair {
            app.generation = generation;
        }
        pair
    };
    (0..count).flat_map(pair).collect()
}
