//! A window with narrower rows: fewer bytes, looser upper bounds.

use super::super::sketch::Rows;
use super::key_counts::KeyCounts;
use super::portable::Window;

impl Window {
    /// This window as if it had been counted with rows of `2^width_log2` cells; as it is when its own are no wider.
    ///
    /// A cell of the narrower row is the sum of neighbours, since the column of a hash is the high bits of a product. So panes are
    /// bit for bit those of an engine with such rows and the same seed, and only with windows of that width it is merged.
    #[must_use]
    pub fn folded(&self, width_log2: u8) -> Self {
        let width_log2 = width_log2.max(1);
        if self.identity.width_log2 <= width_log2 {
            return self.clone();
        }
        let rows = Rows::new(usize::from(self.identity.depth), u32::from(width_log2), self.seed);
        let mut folded = self.clone();
        folded.identity.width_log2 = width_log2;
        folded.counts.fold_rows(rows);
        folded
    }
}

impl KeyCounts {
    fn fold_rows(&mut self, rows: Rows) {
        let by = self.sketch.rows().width_log2() - rows.width_log2();
        self.rings.iter_mut().flatten().for_each(|pane| pane.table.fold(by));
        self.sketch = self.sketch.folded(rows, by);
    }
}
