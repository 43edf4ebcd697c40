//! What a run costs others: how long Argo CD takes to refresh their Applications meanwhile.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiphys_argocd::AppAddress;
use tiphys_e2e::{Site, World, count, figure};
use tiphys_lab::repository::{AppSource, Behaviour};

use super::{OTHERS, disperse, gather, many_apps, measure};
use crate::deploy::{arguments, configure};

/// Applications of others that are refreshed, one after the other.
const SAMPLED: usize = 10;

/// A platform that is brought in, left alone, and changed, beside thousands of Applications.
pub(crate) async fn keep_their_time(world: Arc<World>) {
    let apps = count("TIPHYS_E2E_APPS", 100);
    let neighbours = neighbours(&world).await;
    let crowd = neighbours.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
    disperse(&crowd).await;
    gather(&crowd).await;
    let mut site = many_apps(&world, "beside", apps).await;
    site.commit("many apps");
    let file = site.platform_file();
    configure(&world, &file).await;

    // Argo CD takes half a minute to take note of so many.
    sampled(&neighbours, tokio::time::sleep(Duration::from_secs(5))).await;
    let quiet = sampled(&neighbours, tokio::time::sleep(Duration::from_secs(20))).await;
    let run = || async {
        measure(&world, &arguments(&file)).await;
    };
    let first = sampled(&neighbours, run()).await;
    let nothing = sampled(&neighbours, run()).await;
    for app in site.platform.apps.iter_mut().rev().take(2) {
        app.generation += 1;
    }
    site.commit("two apps change");
    let two = sampled(&neighbours, run()).await;
    let quiet_again = sampled(&neighbours, tokio::time::sleep(Duration::from_secs(20))).await;
    let before = median(&quiet);
    for (what, times) in [
        ("nobody deploys", quiet),
        ("the first deployment", first),
        ("nothing to do", nothing),
        ("two apps changed", two),
        ("nobody deploys, again", quiet_again),
    ] {
        let median = median(&times);
        figure(&format!(
            "{what}: {} refreshes of others beside {OTHERS} idle ones, median {median:.3} s, \
             {:.2} times as long",
            times.len(),
            median / before
        ));
    }
    disperse(&crowd).await;
    site.close().await;
    neighbours.close().await;
}

/// Applications that are compared like any other.
async fn neighbours(world: &Arc<World>) -> Site {
    let mut site = Site::new(world, "neighbours").await;
    let name = |number: usize| format!("neighbours-{number}");
    site.platform.apps =
        (0..SAMPLED).map(|at| AppSource::new(&name(at), Behaviour::ConfigOnly)).collect();
    site.commit("neighbours");
    site.configure().await;
    for at in 0..SAMPLED {
        site.create_application(&name(at), "HEAD", true).await;
    }
    for at in 0..SAMPLED {
        site.until_healthy(&name(at)).await;
    }
    site
}

/// Refreshes the neighbours in turn for as long as something is done.
async fn sampled(neighbours: &Site, meanwhile: impl Future<Output = ()>) -> Vec<Duration> {
    let (mut times, mut ended) = (Vec::new(), false);
    let mut meanwhile = pin!(meanwhile);
    for at in (0..SAMPLED).cycle() {
        if ended {
            break;
        }
        let name = format!("neighbours-{at}");
        let began = Instant::now();
        let address = AppAddress::own(&name, &neighbours.platform.project);
        let refresh = neighbours.world.argocd.refresh(&address);
        let mut refresh = pin!(refresh);
        let refreshed = tokio::select! {
            refreshed = &mut refresh => refreshed,
            () = &mut meanwhile => {
                ended = true;
                refresh.await
            }
        };
        refreshed.expect("a refresh");
        times.push(began.elapsed());
    }
    times
}

fn median(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default().as_secs_f64()
}
