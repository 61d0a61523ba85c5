//! Opening, mapping and verifying packs
