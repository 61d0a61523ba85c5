//! The packs of a loader: whether they can be mixed, how they share memory, and how each is read.

use packds_system::{counted, to_u64};
use std::sync::Arc;

use packds_format::{Classes, Field, Role, Store};

use super::error::LoadError;
use super::outputs::{BatchField, Outputs};
use crate::Pack;
use crate::fetch::{Access, Fetch, FetchOptions, choose, chunk_memory};
use crate::plan::{Schedule, Shuffled};

/// Minimum number of chunks to keep in memory if the order does not shuffle the samples of several chunks.
const CHUNKS_AHEAD: u64 = 64;

/// Columns that describe the items of an image field.
const DESCRIBING: [Role; 4] = [Role::Coding, Role::Height, Role::Width, Role::Channels];

/// Returns a property of a field as text, to compare it between packs.
type Tell = fn(&Field) -> String;

const fn store(store: Store) -> &'static str {
    match store {
        Store::Body => "body",
        Store::Column => "column",
    }
}

fn or_none(word: Option<&str>) -> String {
    word.unwrap_or("none").to_owned()
}

fn keypoints(field: &Field) -> String {
    let points = field.keypoints.as_ref();
    points.map_or("none".to_owned(), |points| format!("{} (swaps {:?})", points.names.join(", "), points.swaps))
}

fn normalization(field: &Field) -> String {
    field.normalize.as_ref().map_or("none".to_owned(), |by| {
        let applied = if by.applied { "applied" } else { "not applied" };
        format!("scale {}, mean {:?}, deviation {:?}, {applied}", by.scale, by.mean, by.std)
    })
}

/// Checks that each loaded field is the same and at the same position in all packs, and that class ids mean the same
/// classes.
pub(crate) fn check_alike(packs: &[Arc<Pack>], outputs: &Outputs) -> Result<(), LoadError> {
    let Some((first, others)) = packs.split_first() else {
        return Ok(());
    };
    let columns = outputs.fields.iter().filter_map(BatchField::column);
    let body = outputs.positions.iter();
    let body = body.filter_map(|position| first.schema().body().nth(*position));
    let masked = outputs.instance_masks.as_ref().map(|masks| masks.image_number);
    let numbers: Vec<usize> = columns.chain(body.map(|(number, _)| number)).chain(masked).collect();
    for other in others {
        for number in &numbers {
            check_field(first, other, *number)?;
        }
        check_classes(first, other, &numbers)?;
    }
    Ok(())
}

/// Checks that the loaded label fields have the same class names. A pack without names could mean any classes.
fn check_classes(first: &Pack, other: &Pack, numbers: &[usize]) -> Result<(), LoadError> {
    let all_expected = first.classes().map_err(|error| first.error(error))?;
    let all_found = other.classes().map_err(|error| other.error(error))?;
    let loaded = numbers.iter();
    for field in loaded.filter_map(|number| first.schema().fields().get(*number)) {
        let (expected, found) = (names(&all_expected, &field.name), names(&all_found, &field.name));
        if let Some((expected, found)) = first_difference(expected, found) {
            return Err(LoadError::OtherClasses {
                path: other.file_path().to_owned(),
                field: field.name.clone(),
                expected,
                found,
            });
        }
    }
    Ok(())
}

/// The class names of a field. Empty if it has none.
fn names<'a>(classes: &'a [Classes], field: &str) -> &'a [String] {
    let of_field = classes.iter().find(|classes| classes.field == field);
    of_field.map_or(&[], |classes| &classes.names)
}

/// The first difference between two lists of class names, as found in each list.
fn first_difference(expected: &[String], found: &[String]) -> Option<(String, String)> {
    let listed = |names: &[String]| match names.first() {
        None => "no class names".to_owned(),
        Some(name) => format!("{}, the first `{name}`", counted(names.len(), "class name")),
    };
    if expected.is_empty() != found.is_empty() {
        return Some((listed(expected), listed(found)));
    }
    let id = (0..expected.len().max(found.len())).find(|id| expected.get(*id) != found.get(*id))?;
    let told = |names: &[String]| match names.get(id) {
        None => format!("no class {id}"),
        Some(name) => format!("class {id} `{name}`"),
    };
    Some((told(expected), told(found)))
}

/// Verifies loaded columns and columns that describe images, so that damage is reported now, not as bad samples in
/// each batch.
pub(crate) fn check_columns(packs: &[Arc<Pack>], schedules: &[&Schedule], outputs: &Outputs) -> Result<(), LoadError> {
    for (pack, schedule) in packs.iter().zip(schedules) {
        let loaded = outputs.fields.iter().filter_map(BatchField::column);
        let described = outputs.fields.iter().flat_map(|field| {
            let of_field = |role| pack.schema().by_role(role, Some(&field.name));
            DESCRIBING.map(of_field).into_iter().flatten()
        });
        for number in loaded.chain(described.map(|(number, _)| number)) {
            pack.whole(pack.column_with(number, |samples| schedule.has_some(samples)))?;
        }
    }
    Ok(())
}

fn check_field(first: &Pack, other: &Pack, number: usize) -> Result<(), LoadError> {
    let Some(expected) = first.schema().fields().get(number) else {
        return Ok(());
    };
    let name = &expected.name;
    let place = |pack: &Pack| {
        let mut body = pack.schema().body();
        let in_body = body.position(|(_, field)| field.name == *name);
        let fields = pack.schema().fields();
        // Columns are numbered in the schema, other fields in the body.
        in_body.or_else(|| fields.iter().position(|field| field.name == *name))
    };
    let same = |what, expected: String, found: String| {
        if expected == found {
            return Ok(());
        }
        Err(LoadError::OtherFields { path: other.file_path().to_owned(), field: name.clone(), what, expected, found })
    };
    let of_name = other.schema().fields().iter().find(|f| f.name == *name);
    let Some(found) = of_name else {
        return same("field", "with this name".to_owned(), "none".to_owned());
    };
    let told: [(&'static str, Tell); 9] = [
        ("store", |f| store(f.store).to_owned()),
        ("kind", |f| f.kind.name().to_owned()),
        ("element type", |f| f.dtype.to_string()),
        ("shape", |f| format!("{:?}", f.shape)),
        ("role", |f| or_none(f.role.map(Role::name))),
        ("layout", |f| or_none(f.layout.as_deref())),
        ("color", |f| or_none(f.color.as_deref())),
        ("normalization", normalization),
        ("names of keypoints", keypoints),
    ];
    for (what, tell) in told {
        same(what, tell(expected), tell(found))?;
    }
    let place = |pack| place(pack).map_or_else(String::new, |place| place.to_string());
    same("place in the schema", place(first), place(other))
}

/// How each pack is read, with its share of the memory.
pub(crate) fn fetches(
    packs: &[Arc<Pack>],
    schedules: &[&Schedule],
    options: &FetchOptions,
) -> Result<Vec<Arc<Fetch>>, LoadError> {
    let lens: Vec<u64> = packs.iter().map(|pack| pack.file_len()).collect();
    let mut choices = Vec::with_capacity(packs.len());
    let mut needs = Vec::with_capacity(packs.len());
    for ((pack, schedule), beside) in packs.iter().zip(schedules).zip(smaller(&lens)) {
        let options = FetchOptions { beside, ..options.clone() };
        let choice = choose(pack, &options);
        needs.push(match choice.access {
            Access::Direct => Some(need(pack, schedule, &options.positions)?),
            Access::Auto | Access::Mapped => None,
        });
        choices.push((choice, options));
    }
    let mut shares = share_out(options.memory_bytes, &needs);
    // Mapped packs share the memory that no buffers use. It is for reading their first step.
    let left = options.memory_bytes.saturating_sub(shares.iter().sum());
    let mapped = needs.iter().filter(|need| need.is_none()).count();
    let each = left / to_u64(mapped).max(1);
    for (share, _) in shares.iter_mut().zip(&needs).filter(|(_, need)| need.is_none()) {
        *share = each;
    }
    let mut fetches = Vec::with_capacity(packs.len());
    for ((pack, (choice, mut options)), share) in packs.iter().zip(choices).zip(shares) {
        options.memory_bytes = share;
        fetches.push(Fetch::chosen(Arc::clone(pack), options, choice)?);
    }
    Ok(fetches)
}

/// The most memory that direct reads of a pack can use: enough for the whole pack in random order, for two windows in
/// the order `window`, and for some chunks ahead in other orders.
fn need(pack: &Pack, schedule: &Schedule, positions: &[usize]) -> Result<u64, LoadError> {
    let recipe = schedule.recipe();
    let wanted = match recipe.order.shuffled() {
        Shuffled::All => u64::MAX,
        Shuffled::Windows => u64::from(recipe.window).saturating_mul(2),
        Shuffled::Nothing => u64::from(recipe.lanes).saturating_mul(2).max(CHUNKS_AHEAD),
    };
    let chunk = chunk_memory(pack, positions)?;
    Ok(chunk.saturating_mul(wanted.min(pack.n_chunks())))
}

/// For each pack, the total size of all smaller packs. Smaller packs get memory first.
fn smaller(lens: &[u64]) -> Vec<u64> {
    let is_first = |a: (usize, u64), b: (usize, u64)| (a.1, a.0) < (b.1, b.0);
    let of = |own: (usize, &u64)| {
        let own = (own.0, *own.1);
        let others = lens.iter().copied().enumerate();
        others.filter(|other| is_first(*other, own)).fold(0, |sum: u64, other| sum.saturating_add(other.1))
    };
    lens.iter().enumerate().map(of).collect()
}

/// Divides a budget into equal shares, and limits each share to the need. Unused memory goes to the other packs. If all
/// needs are met, the rest is divided among the packs that have a need.
pub(crate) fn share_out(budget: u64, needs: &[Option<u64>]) -> Vec<u64> {
    let mut by_need: Vec<(u64, usize)> = needs.iter().enumerate().filter_map(|(i, need)| Some(((*need)?, i))).collect();
    by_need.sort_unstable();
    let mut shares = vec![0; needs.len()];
    let (mut left, mut waiting) = (budget, to_u64(by_need.len()));
    let all = waiting;
    for (need, i) in &by_need {
        let share = (left / waiting.max(1)).min(*need);
        left -= share;
        waiting -= 1;
        if let Some(own) = shares.get_mut(*i) {
            *own = share;
        }
    }
    for (_, i) in &by_need {
        if let Some(own) = shares.get_mut(*i) {
            *own += left / all.max(1);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_by_need_and_never_exceeded() {
        assert_eq!(share_out(100, &[Some(1000)]), [100]);
        assert_eq!(share_out(100, &[Some(10)]), [100]);
        assert_eq!(share_out(100, &[None, Some(10), None]), [0, 100, 0]);
        assert_eq!(share_out(100, &[Some(1000), Some(10)]), [90, 10]);
        assert_eq!(share_out(100, &[Some(70), Some(80), Some(10)]), [45, 45, 10]);
        assert_eq!(share_out(100, &[Some(30), Some(10)]), [60, 40]);
        assert_eq!(share_out(0, &[Some(3), Some(3)]), [0, 0]);
        assert_eq!(share_out(7, &[]), [0; 0]);
    }

    #[test]
    fn smaller_packs_come_first_and_of_equal_ones_the_earlier() {
        assert_eq!(smaller(&[30, 10, 20]), [30, 0, 10]);
        assert_eq!(smaller(&[5, 5]), [0, 5]);
    }
}
