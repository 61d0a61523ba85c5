//! Facts about augmentation.

#![cfg(test)]
