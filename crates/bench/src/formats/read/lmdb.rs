//! Reads LMDB through heed. Values are used in place in the mapped database, with one read transaction per thread.

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};
use packds_system::to_usize;

use super::Made;
use super::npy::header_bytes;
use crate::BenchError;
use crate::formats::candidate::{Batch, Open, Reader};
use crate::formats::order::Rows;

type Values = Database<'static, Bytes, Bytes>;

/// The values of an LMDB database. The key of an image consists of digits. Its label has a separate key.
pub(crate) fn lmdb(made: &Made) -> Result<Open, BenchError> {
    let digits = made.n_samples.saturating_sub(1).to_string().len().max(8);
    let made = made.clone();
    Ok(Box::new(move |threads| {
        let env = open(&made).map_err(|e| made.failed(e))?;
        let reader = || {
            let values = values(&env).map_err(|e| made.failed(e))?.ok_or_else(|| made.odd("no values"))?;
            let txn = env.clone().static_read_txn().map_err(|e| made.failed(e))?;
            Ok(Box::new(ByKey { made: made.clone(), digits, values, txn }) as _)
        };
        (0..threads).map(|_| reader()).collect()
    }))
}

/// Opens the database for reading. It needs no lock, because nothing writes to it.
fn open(made: &Made) -> Result<Env<WithoutTls>, heed::Error> {
    let bytes = to_usize(made.pixel_bytes());
    // This is more than the pixels need, even though values take whole pages. Unused address space takes no memory.
    let room = (bytes * 2 + (64 << 20)).next_multiple_of(1 << 20);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(room);
    // SAFETY: the flags open the database read-only and without locks. This program wrote the database into its own
    // folder, and nothing changes it while the benchmark runs.
    let options = unsafe { options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK) };
    // SAFETY: as above, the mapped file does not change.
    unsafe { options.open(&made.path) }
}

/// The unnamed database. `None` if there is none.
fn values(env: &Env<WithoutTls>) -> Result<Option<Values>, heed::Error> {
    let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| {
        let values = opener.open_database::<Bytes, Bytes>(txn, None)?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(values))
    })?;
    Ok(match opened {
        CommitOrAbort::Commit(values) => values,
        CommitOrAbort::Abort(()) => None,
    })
}

struct ByKey {
    made: Made,
    digits: usize,
    values: Values,
    txn: RoTxn<'static, WithoutTls>,
}

impl Reader for ByKey {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        let odd = || self.made.odd("a sample without image or label");
        for (sample, (pixels, label)) in rows.iter().zip(out.rows_mut()) {
            let key = format!("{sample:0digits$}", digits = self.digits);
            let value = |key: &str| {
                let value = self.values.get(&self.txn, key.as_bytes());
                value.map_err(|e| self.made.failed(e))?.ok_or_else(odd)
            };
            let image = value(&key)?;
            let header = header_bytes(image).unwrap_or(0);
            let found = image.get(header..).filter(|p| p.len() == pixels.len());
            pixels.copy_from_slice(found.ok_or_else(odd)?);
            let text = value(&format!("{key}/label.txt"))?;
            let text = std::str::from_utf8(text).ok();
            *label = text.and_then(|t| t.trim().parse().ok()).ok_or_else(odd)?;
        }
        Ok(())
    }
}
