//! Tests of the file format, one module per subject. They compare the code with docs/reference/format.md.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod first_touch;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod fuzz_bodies;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod large;
#[cfg(test)]
mod malformed;
#[cfg(test)]
mod malformed_cases;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod reference_reader;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sets;
#[cfg(test)]
mod spec;
#[cfg(test)]
mod support;
