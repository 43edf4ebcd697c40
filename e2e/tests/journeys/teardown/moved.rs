//! An app that moves from one platform to another.

use std::sync::Arc;

use kube::ResourceExt;
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::Behaviour;

use super::{app, teardown};
use crate::deploy::{configure, deploy};

/// It stays as it is when the platform that it came from goes, leftovers and all.
pub(crate) async fn is_not_taken_along(world: Arc<World>) {
    let mut from = Site::new(&world, "moved-from").await;
    let mut to = Site::new(&world, "moved-to").await;
    from.platform.apps = vec![
        app("moved-from-own", Behaviour::ConfigOnly, 60),
        app("moved-to-app", Behaviour::ConfigOnly, 60),
    ];
    from.commit("two apps");
    let file_from = from.platform_file();
    configure(&world, &file_from).await;
    deploy(&world, &file_from, 0).await;
    let maps = from.objects("v1", "ConfigMap", Some("moved-to-app"));
    let before = maps.get("moved-to-app").await.expect("it was deployed");

    to.platform.apps = vec![app("moved-to-app", Behaviour::ConfigOnly, 60)];
    to.commit("one of the apps");
    let file_to = to.platform_file();
    configure(&world, &file_to).await;
    deploy(&world, &file_to, 0).await;
    let application = to.application("moved-to-app").await;
    assert_eq!(application.spec.project, "moved-to", "it has moved");

    // The file that it moved from still names it, and so does the deployed graph.
    let told = teardown(&world, &file_from, &["--clean-leftovers"], 0).await;
    from.until_gone("moved-from-own").await;
    let after = maps.get("moved-to-app").await.expect("it is there");
    assert_eq!(after.uid(), before.uid(), "{}", told.stderr);
    let events = deploy(&world, &file_to, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["alreadyCurrent"], 1, "{events:#?}");
    from.close().await;
    to.close().await;
}
