//! `packds bench formats`: the same images from every format, in the same orders, on the same threads.

pub mod report;
