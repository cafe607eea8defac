//! Records of a file: one a line, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Lines of a file or stream, whatever it is compressed with.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    max_bytes: usize,
    line: Vec<u8>,
    consumed: Arc<AtomicU64>,
    total: Option<u64>,
}

/// What the next line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end (`\n` or `\r\n`).
    Record(&'a [u8]),
    /// A line longer than the limit; it was skipped.
    TooLong,
}

impl Lines {
    /// Lines of the file at `path`, zstd and gzip unpacked; a longer one than `max_bytes` is skipped.
    ///
    /// # Errors
    /// When the file cannot be opened or its begin cannot be read.
    pub fn open(path: &Path, max_bytes: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        Self::read(file, max_bytes, total)
    }

    /// Lines of any stream, e.g. standard input; `total` is its length where that is known.
    ///
    /// # Errors
    /// When its begin cannot be read.
    pub fn read(stream: impl Read + Send + 'static, max_bytes: usize, total: Option<u64>) -> io::Result<Self> {
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Counted { stream, consumed: Arc::clone(&consumed) };
        let reader = unpacked(BufReader::with_capacity(BUFFER_BYTES, counted))?;
        Ok(Self { reader, max_bytes, line: Vec::new(), consumed, total })
    }

    /// The next line; none at the end. The last one needs no line end.
    ///
    /// # Errors
    /// When reading or unpacking fails.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        // Room for the line's end, `\r\n`.
        let most = self.max_bytes.saturating_add(2);
        let read = (&mut self.reader).take(most as u64).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        let ended = self.line.ends_with(b"\n");
        if !ended && read == most {
            self.reader.skip_until(b'\n')?;
            return Ok(Some(Line::TooLong));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(if line.len() > self.max_bytes { Line::TooLong } else { Line::Record(line) }))
    }

    /// Bytes taken from the file so far, as they lie there.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Bytes of the whole file, where they are known.
    #[must_use]
    pub const fn total(&self) -> Option<u64> {
        self.total
    }
}

/// The stream unpacked, by its first bytes.
fn unpacked<R: Read + Send + 'static>(mut stream: BufReader<R>) -> io::Result<Box<dyn BufRead + Send>> {
    let head = stream.fill_buf()?;
    if head.starts_with(b"\x28\xb5\x2f\xfd") {
        let decoder = zstd::stream::read::Decoder::with_buffer(stream)?;
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    if head.starts_with(b"\x1f\x8b") {
        let decoder = flate2::bufread::MultiGzDecoder::new(stream);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    Ok(Box::new(stream))
}

/// Counts the bytes that pass.
struct Counted<R> {
    stream: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(bytes: &[u8], max_bytes: usize) -> Vec<Option<String>> {
        let mut lines = Lines::read(io::Cursor::new(bytes.to_vec()), max_bytes, None).unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push(match line {
                Line::Record(line) => Some(String::from_utf8_lossy(line).into_owned()),
                Line::TooLong => None,
            });
        }
        assert_eq!(lines.consumed(), bytes.len() as u64);
        seen
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    #[test]
    fn lines_end_with_a_line_feed_and_maybe_a_carriage_return() {
        assert_eq!(lines(b"", 9), some(&[]));
        assert_eq!(lines(b"a\nb\r\n\nc", 9), some(&["a", "b", "", "c"]));
        assert_eq!(lines(b"a\n", 9), some(&["a"]));
        assert_eq!(lines(b"a\rb\n\r\n", 9), some(&["a\rb", ""]));
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_is_whole() {
        let long = "x".repeat(3 * BUFFER_BYTES);
        let text = format!("abc\nabcd\nabc\r\nabcd\r\n{long}\nab\n{long}");
        assert_eq!(
            lines(text.as_bytes(), 3).iter().map(Option::is_none).collect::<Vec<_>>(),
            [false, true, false, true, true, false, true]
        );
        assert_eq!(lines(long.as_bytes(), long.len()), some(&[&long]));
    }

    #[test]
    fn packed_streams_are_unpacked_by_what_they_are() {
        let text = "{\"a\":1}\n".repeat(100_000);
        let plain = lines(text.as_bytes(), 99);
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        assert_eq!(lines(&zstd, 99), plain);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(lines(&gzip, 99), plain);
        let twice = [gzip.clone(), gzip.clone()].concat();
        assert_eq!(lines(&twice, 99).len(), 2 * plain.len());
        let mut cut = Lines::read(io::Cursor::new(zstd[..zstd.len() / 2].to_vec()), 99, None).unwrap();
        let failed = (0..=plain.len()).find_map(|_| cut.next_line().err());
        assert_eq!(failed.map(|error| error.kind()), Some(io::ErrorKind::UnexpectedEof));
    }
}
