//! Game records: bytes are read or refused, and an accepted record is written and read as the same bytes.
#![no_main]

use azpy_core::record::GameRecord;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = GameRecord::from_bytes(bytes) {
        let written = record.to_bytes();
        assert_eq!(GameRecord::from_bytes(&written).unwrap().to_bytes(), written);
    }
});
