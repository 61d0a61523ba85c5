//! PyTorch's `.pt`, as `torch.save` writes it: a dictionary of tensors, with class names and the pack's metadata.

use packds_format::DType;

use super::pickle_writer::PickleWriter;
use super::placed::{
    CLASSES, PieceEncoder, Pieces, PlacedFile, Places, Planned, crc32_joined, hidden_notes, is_taken, planned,
};
use super::zip_file::{Member, directory};
use super::{Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

/// The folder that contains all members. PyTorch accepts any name.
const FOLDER: &str = "archive";

pub(crate) struct PtSink {
    arrays: Vec<Planned>,
    places: Places,
    /// All members in order. The checksums of array members are computed while their data is written.
    members: Vec<Member>,
    /// Number of members that precede the array members.
    n_before: usize,
    end: u64,
    lost: Vec<String>,
}

fn pickle(start: &SinkStart<'_>, arrays: &[Planned]) -> Vec<u8> {
    let mut out = PickleWriter::new();
    out.begin_dict();
    for (number, array) in arrays.iter().enumerate() {
        let (dtype, shape) = array.as_numbers();
        out.text(&array.name);
        out.tensor(dtype, &shape, &number.to_string());
    }
    let classes = start.metadata.class_names("label");
    if !classes.is_empty() && !is_taken(arrays, CLASSES) {
        out.text(CLASSES);
        out.texts(classes);
    }
    if !is_taken(arrays, METADATA_KEY) {
        out.text(METADATA_KEY);
        out.text(&start.metadata.to_text());
    }
    out.end_dict();
    out.finish()
}

impl Sink for PtSink {
    type Encoder = PieceEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let arrays = planned(start);
        let file = PlacedFile::open(start.path, start.target)?;
        let mut end = 0;
        let small =
            |name: &str, bytes: &[u8], end: &mut u64| file.write_member(&format!("{FOLDER}/{name}"), bytes, end);
        let pickle = small("data.pkl", &pickle(start, &arrays), &mut end)?;
        let mut members = vec![pickle, small("byteorder", b"little", &mut end)?];
        let n_before = members.len();
        let mut starts = Vec::new();
        for (number, array) in arrays.iter().enumerate() {
            let name = format!("{FOLDER}/data/{number}");
            let member = Member::stored(&name, array.bytes(), end);
            starts.push((member.data(), array.item_bytes));
            end = member.end();
            members.push(member);
        }
        members.push(small("version", b"3\n", &mut end)?);
        let lost = hidden_notes(start, &arrays, true);
        Ok(Self { arrays, places: Places { file, starts }, members, n_before, end, lost })
    }

    fn encoder(&self) -> PieceEncoder {
        PieceEncoder::new(&self.arrays, true, None)
    }

    fn write(&mut self, ready: Pieces) -> Result<(), ConvertError> {
        let members = self.members.iter_mut().skip(self.n_before);
        for (member, piece) in members.zip(&ready.pieces) {
            member.crc = crc32_joined(member.crc, piece.crc, piece.len);
        }
        self.places.write(&ready)
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        for member in self.members.iter().skip(self.n_before) {
            self.places.file.write_at(&member.local_header(), member.header)?;
        }
        let end = directory(&self.members, self.end);
        self.places.file.write_at(&end, self.end)?;
        let types = self.arrays.iter().map(|array| (&array.name, array.as_numbers().0));
        let newer = types.filter(|(_, dtype)| matches!(dtype, DType::U16 | DType::U32 | DType::U64));
        let note = |name, dtype| format!("field `{name}` for PyTorch before 2.3, which has no {dtype}");
        self.lost.extend(newer.map(|(name, dtype)| note(name, dtype)));
        Ok(self.lost)
    }
}
