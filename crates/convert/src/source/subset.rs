//! Selects samples of a listing: a few to inspect before a conversion, or those at given positions.

use std::sync::Arc;

use super::column::SourceColumn;
use super::listing::{Images, LabelLists, Labels, Listing, Masks, SourceField};
use super::paths::{FileTable, PathTable};
use super::portable::Portable;
use super::store::{Content, Store};
use crate::sample::SampleError;
use crate::survey::evenly;

impl Listing {
    /// Up to `n` evenly spaced samples, with their images, masks and labels. Other fields are left out.
    #[must_use]
    pub fn subset(&self, n: usize) -> Self {
        let places: Vec<usize> = evenly(self, n).collect();
        let picked = self.picked(&places);
        Self { columns: Vec::new(), fields: Vec::new(), warnings: Vec::new(), ignored: 0, ..picked }
    }

    /// The samples at these positions, with all their values.
    pub(super) fn picked(&self, places: &[usize]) -> Self {
        let shared: Arc<Vec<usize>> = Arc::new(places.to_vec());
        let picked = |store: &Arc<dyn Store>| -> Arc<dyn Store> {
            Arc::new(Picked { store: Arc::clone(store), places: Arc::clone(&shared) })
        };
        let masks = self.masks.as_ref().map(|masks| match masks {
            Masks::Files(files) => Masks::Files(files.picked(places)),
            Masks::Stored(store) => Masks::Stored(picked(store)),
            Masks::Runs(runs) => Masks::Runs(runs.picked(places)),
        });
        let faults = places.iter().enumerate().filter_map(|(idx, place)| Some((idx, self.faults.get(place)?.clone())));
        let column =
            |column: &SourceColumn| SourceColumn { name: column.name.clone(), values: column.values.picked(places) };
        let field = |field: &SourceField| SourceField { store: picked(&field.store), ..field.clone() };
        Self {
            labels: self.picked_labels(places),
            classes: self.classes.clone(),
            box_classes: self.box_classes.clone(),
            keypoints: self.keypoints.clone(),
            columns: self.columns.iter().map(column).collect(),
            fields: self.fields.iter().map(field).collect(),
            masks,
            mask_colors: self.mask_colors.clone(),
            images: match &self.images {
                Images::Files => Images::Files,
                Images::Stored(store) => Images::Stored(picked(store)),
            },
            metadata: self.metadata.clone(),
            faults: faults.collect(),
            unpacked: self.unpacked.clone(),
            unpacked_root: self.unpacked_root.clone(),
            warnings: self.warnings.clone(),
            ignored: self.ignored,
            ..Self::of_files(
                self.kind,
                &self.root,
                picked_paths(&self.paths, places),
                places.iter().map(|place| self.bytes[*place]).collect(),
            )
        }
    }

    fn picked_labels(&self, places: &[usize]) -> Labels {
        if self.has_labels() {
            return Labels::PerSample(places.iter().filter_map(|place| self.label(*place)).collect());
        }
        if !self.has_label_lists() {
            return Labels::None;
        }
        let mut lists = LabelLists::default();
        for place in places {
            lists.ids.extend(self.label_list(*place).unwrap_or_default());
            lists.ends.push(lists.ids.len());
        }
        Labels::Lists(lists)
    }
}

pub(super) fn picked_paths(paths: &PathTable, places: &[usize]) -> PathTable {
    let mut table = FileTable::default();
    places.iter().for_each(|place| table.push(&paths.path(*place)));
    table.paths
}

/// Some items of a store.
#[derive(Debug)]
struct Picked {
    store: Arc<dyn Store>,
    places: Arc<Vec<usize>>,
}

impl Picked {
    fn place(&self, idx: usize) -> usize {
        self.places.get(idx).copied().unwrap_or(usize::MAX)
    }
}

impl Store for Picked {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.store.bytes(self.place(idx))
    }

    fn content(&self, idx: usize) -> Content {
        self.store.content(self.place(idx))
    }

    fn is_uniform(&self) -> bool {
        self.store.is_uniform()
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        self.store.append(self.place(idx), limit, out)
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let places: Vec<usize> = places.iter().map(|place| self.place(*place)).collect();
        self.store.portable(&places)
    }
}
