//! Argo CD's controller puts back into its cache what it has just written. What somebody has asked
//! for in between is gone from there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tiphys_argocd::AppAddress;
use tiphys_e2e::{Site, World, count, figure};
use tiphys_lab::repository::{AppSource, Behaviour};

const APPS: usize = 8;
/// How often each is refreshed; `TIPHYS_E2E_ROUNDS` is another number.
const ROUNDS: u32 = 20;
/// A refresh takes less, and our second request for one comes after this.
const MISSED: Duration = Duration::from_secs(5);

/// Each refresh ends with a write of the controller, and the next one follows at once.
pub(crate) async fn is_asked_for_again(world: Arc<World>) {
    let rounds = count("TIPHYS_E2E_ROUNDS", ROUNDS);
    let mut site = Site::new(&world, "fact-fresh").await;
    let names: Vec<String> = (0..APPS).map(|n| format!("fact-fresh-{n}")).collect();
    let apps = names.iter().map(|name| AppSource::new(name, Behaviour::ConfigOnly));
    site.platform.apps = apps.collect();
    let revision = site.commit("some apps");
    site.configure().await;
    for name in &names {
        site.create_application(name, revision.as_str(), false).await;
    }
    let (world, project) = (&world, &site.platform.project);
    let refreshes = names.iter().map(|name| async move {
        let mut missed = 0;
        for _ in 0..rounds {
            let began = Instant::now();
            let answer = world.argocd.refresh(&AppAddress::own(name, project)).await;
            answer.unwrap_or_else(|error| unreachable!("{name}: {error}"));
            missed += u32::from(began.elapsed() >= MISSED);
        }
        missed
    });
    let missed: u32 = join_all(refreshes).await.into_iter().sum();
    let all = u32::try_from(APPS).expect("a few") * rounds;
    figure(&format!("of {all} refreshes {missed} were missed and asked for again"));
    site.close().await;
}
