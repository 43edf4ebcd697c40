//! Platforms of any size: layered random graphs, the same for the same size everywhere.

use std::fmt::Write;

const SEED: u64 = 0x0074_6970_6879_7321;
/// About the depth of the reference platform.
const LAYERS: usize = 12;
const STACKS: usize = 11;

/// Marsaglia's xorshift64: four lines, and the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % limit
    }
}

/// A platform file with this many apps, each with one to four dependencies below its layer.
/// One app in ten has timeouts of its own, one in twenty a health criterion.
pub(crate) fn platform(apps: usize) -> String {
    let mut random = Random(SEED);
    let mut text = String::from(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: { name: generated }\n\
         spec:\n  groups: [{ name: heavy, concurrency: 4 }]\n  stacks:\n",
    );
    for stack in 0..STACKS.min(apps) {
        text += &format!("    - name: stack-{stack}\n      apps:\n");
        for app in (stack..apps).step_by(STACKS) {
            write_app(&mut text, app, apps, &mut random);
        }
    }
    text
}

fn write_app(text: &mut String, app: usize, apps: usize, random: &mut Random) {
    let types = ["simple", "simple", "operator", "database-cluster"];
    let app_type = types[random.below(types.len())];
    let minutes = 1 + random.below(6);
    write!(
        text,
        "        - name: {}\n          type: {app_type}\n          typical: {minutes}m\n",
        name(app)
    )
    .expect("writing to a string cannot fail");
    if random.below(10) == 0 {
        text.push_str("          timeouts: { sync: 20m, health: 30m }\n          group: heavy\n");
    }
    if random.below(20) == 0 {
        text.push_str("          health:\n            - tcp: { service: main, port: 8080 }\n");
    }
    let below = app * LAYERS / apps * apps / LAYERS;
    if below > 0 {
        let mut dependencies: Vec<usize> =
            (0..=random.below(4)).map(|_| random.below(below)).collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        let names: Vec<String> = dependencies.into_iter().map(name).collect();
        text.push_str(&format!("          dependsOn: [{}]\n", names.join(", ")));
    }
}

fn name(app: usize) -> String {
    format!("app-{app:06}")
}
