//! The plan as a graph for other programs: Graphviz and Mermaid.

use std::fmt::Write;

use tiphys_model::{AppIx, Plan, Role, StackName};

/// The stacks of a plan by name, each with its apps in start order.
fn stacks(plan: &Plan) -> Vec<(&StackName, Vec<AppIx>)> {
    let mut apps: Vec<AppIx> = plan.graph.apps().collect();
    apps.sort_by_key(|app| (&plan.app(*app).app.stack, *app));
    let runs = apps.chunk_by(|a, b| plan.app(*a).app.stack == plan.app(*b).app.stack);
    runs.map(|run| (&plan.app(run[0]).app.stack, run.to_vec())).collect()
}

fn on_critical_path(plan: &Plan, dependency: AppIx, dependant: AppIx) -> bool {
    plan.critical_path.windows(2).any(|pair| pair == [dependency, dependant])
}

/// Graphviz: stacks as clusters, the critical path bold. Arrows point at what waits.
#[must_use]
pub fn plan_dot(plan: &Plan) -> String {
    let mut out = String::new();
    let name = |app: AppIx| &plan.app(app).app.name;
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(&format!("digraph \"{}\" {{", plan.platform));
    line("  rankdir=LR;");
    line("  node [shape=box, style=rounded];");
    for (stack, apps) in stacks(plan) {
        line(&format!("  subgraph \"cluster_{stack}\" {{"));
        line(&format!("    label=\"{stack}\";"));
        for app in apps {
            let verified = plan.app(app).role == Role::Verify;
            let style = if verified { " [style=\"rounded,dashed\"]" } else { "" };
            line(&format!("    \"{}\"{style};", name(app)));
        }
        line("  }");
    }
    for app in plan.graph.apps() {
        for dependency in &plan.app(app).app.dependencies {
            let critical = on_critical_path(plan, dependency.app, app);
            let style = if critical { " [style=bold]" } else { "" };
            line(&format!("  \"{}\" -> \"{}\"{style};", name(dependency.app), name(app)));
        }
    }
    line("}");
    out
}

/// Mermaid: stacks as subgraphs, the critical path thick. Arrows point at what waits.
#[must_use]
pub fn plan_mermaid(plan: &Plan) -> String {
    let mut out = String::from("flowchart LR\n");
    // Names may contain what Mermaid reads as syntax (`end`, dots), so nodes are numbered.
    for (number, (stack, apps)) in stacks(plan).into_iter().enumerate() {
        let mut subgraph = format!("  subgraph s{number}[\"{stack}\"]\n");
        for app in apps {
            subgraph += &format!("    a{app}[\"{}\"]\n", plan.app(app).app.name);
        }
        out += &subgraph;
        out += "  end\n";
    }
    for app in plan.graph.apps() {
        for dependency in &plan.app(app).app.dependencies {
            let arrow = if on_critical_path(plan, dependency.app, app) { "==>" } else { "-->" };
            writeln!(out, "  a{} {arrow} a{app}", dependency.app)
                .expect("writing to a string cannot fail");
        }
    }
    out
}
