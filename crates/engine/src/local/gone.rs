//! Noticing that an Application is gone: by the watch, by a list that lacks it, or by a look that
//! finds none. All three may tell of the same one, and what they tell may be late.

use std::collections::BTreeSet;

use tiphys_cluster::ObjectName;
use tiphys_model::AppIx;
use tiphys_run::Input;

use super::drive::{Incoming, Local};
use crate::engine::RunError;
use crate::run_update::RunUpdate;

impl Local<'_> {
    /// Its Application is gone since this version. What it has applied may need a while longer.
    pub(super) fn gone(&mut self, app: AppIx, version: u64) {
        if let Some(first) = &mut self.first {
            first[app.position()] = None;
        } else if self.going.insert(app) {
            let (effects, incoming) = (self.effects.clone(), self.incoming.clone());
            let name = self.name(app);
            tokio::spawn(async move {
                let hooks = effects.await_gone(app, name.as_str()).await;
                incoming.send(Incoming::Gone(app, version, hooks)).unwrap_or_default();
            });
        }
    }

    /// A list lacks it, though it had been seen. It may have come anew since, so it is looked for.
    fn look_for(&mut self, app: AppIx) {
        if let Some(first) = &mut self.first {
            first[app.position()] = None;
            return;
        }
        let Some(seen) = self.driver.seen(app).map(|seen| seen.version) else { return };
        let (effects, incoming) = (self.effects.clone(), self.incoming.clone());
        let name = self.name(app);
        tokio::spawn(
            async move { effects.look_for(app, name.as_str(), Some(seen), &incoming).await },
        );
    }

    /// What had been seen and is not in a new list.
    pub(super) fn look_for_missing(&mut self, there: &BTreeSet<String>) {
        let missing = self.names.iter().filter(|(name, _)| !there.contains(*name));
        let missing: Vec<AppIx> = missing.map(|(_, app)| *app).collect();
        for app in missing {
            self.look_for(app);
        }
    }

    /// Somebody has looked for it, and there was none.
    pub(super) fn on_missing(&mut self, app: AppIx, before: Option<u64>) {
        match (self.driver.seen(app).map(|seen| seen.version), before) {
            (Some(seen), Some(before)) if seen == before => self.gone(app, seen + 1),
            // It has been seen since it was looked for.
            (Some(_), _) => self.look_for(app),
            (None, _) => {}
        }
    }

    /// It is gone, with all that it has applied but these hooks.
    pub(super) fn on_gone(
        &mut self,
        app: AppIx,
        version: u64,
        hooks: &[ObjectName],
    ) -> Result<(), RunError> {
        self.going.remove(&app);
        match self.driver.seen(app).map(|seen| seen.version) {
            None => Ok(()),
            // Made anew since; and perhaps gone again, while this one was going.
            Some(seen) if seen >= version => {
                self.look_for(app);
                Ok(())
            }
            Some(_) => {
                for hook in hooks {
                    let name = self.name(app);
                    let note = format!(
                        "{hook} stays: it is a hook of `{name}` that Argo CD does not delete"
                    );
                    (self.updates)(RunUpdate::Note(note));
                }
                self.step(Input::Observed { app, version, seen: None })
            }
        }
    }
}
