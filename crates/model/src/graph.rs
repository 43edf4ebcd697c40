//! The dependency graph: which app depends on which.
//!
//! Apps are numbers here ([`AppIx`]), edges are two flat arrays (compressed sparse rows), so a
//! walk over 100,000 apps touches memory in order and allocates nothing per app.

mod cycles;

use std::fmt;

/// The position of an app in the list that a [`Graph`] was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppIx(u32);

impl AppIx {
    /// Panics beyond 4 billion apps; the node budget of a platform file ends at 4 million.
    #[must_use]
    pub fn new(position: usize) -> Self {
        AppIx(u32::try_from(position).expect("a platform has fewer than 2^32 apps"))
    }

    #[must_use]
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for AppIx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Rows of neighbours, each sorted, in one flat array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rows {
    /// Row `i` is `neighbours[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    neighbours: Vec<AppIx>,
}

impl Rows {
    /// `edges` yields (row, neighbour); it is walked twice, once to count and once to place.
    fn new(rows: usize, edges: impl Iterator<Item = (AppIx, AppIx)> + Clone) -> Self {
        let mut starts = vec![0u32; rows + 1];
        for (row, _) in edges.clone() {
            starts[row.position() + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![AppIx(0); starts[rows] as usize];
        for (row, neighbour) in edges {
            let slot = &mut next[row.position()];
            neighbours[*slot as usize] = neighbour;
            *slot += 1;
        }
        for row in 0..rows {
            neighbours[starts[row] as usize..starts[row + 1] as usize].sort_unstable();
        }
        Rows { starts, neighbours }
    }

    fn row(&self, row: AppIx) -> &[AppIx] {
        let at = row.position();
        &self.neighbours[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// An edge of the graph: `dependant` depends on `dependency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub dependant: AppIx,
    pub dependency: AppIx,
}

/// Which app depends on which, in both directions. May contain cycles until asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    dependencies: Rows,
    dependants: Rows,
}

impl Graph {
    #[must_use]
    pub fn new(apps: usize, edges: &[Edge]) -> Self {
        Graph {
            dependencies: Rows::new(apps, edges.iter().map(|e| (e.dependant, e.dependency))),
            dependants: Rows::new(apps, edges.iter().map(|e| (e.dependency, e.dependant))),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.dependencies.starts.len() - 1
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn apps(&self) -> impl DoubleEndedIterator<Item = AppIx> + ExactSizeIterator + use<> {
        (0..self.len()).map(AppIx::new)
    }

    /// What `app` depends on, directly, in ascending order.
    #[must_use]
    pub fn dependencies(&self, app: AppIx) -> &[AppIx] {
        self.dependencies.row(app)
    }

    /// What depends on `app`, directly, in ascending order.
    #[must_use]
    pub fn dependants(&self, app: AppIx) -> &[AppIx] {
        self.dependants.row(app)
    }

    /// Every app after all of its dependencies. Shorter than the graph if there are cycles:
    /// apps in a cycle, and what depends on them, never get their turn.
    #[must_use]
    pub fn topological(&self) -> Vec<AppIx> {
        let mut missing: Vec<usize> = self.apps().map(|app| self.dependencies(app).len()).collect();
        let mut order: Vec<AppIx> =
            self.apps().filter(|app| missing[app.position()] == 0).collect();
        let mut next = 0;
        while let Some(&app) = order.get(next) {
            next += 1;
            for &dependant in self.dependants(app) {
                let left = &mut missing[dependant.position()];
                *left -= 1;
                if *left == 0 {
                    order.push(dependant);
                }
            }
        }
        order
    }

    /// One cycle for each knot of apps that depend on each other, as the path of dependencies
    /// from its smallest app back to it (which is not repeated at the end). Empty for a DAG.
    #[must_use]
    pub fn cycles(&self) -> Vec<Vec<AppIx>> {
        cycles::cycles(self)
    }
}
