//! Text files, compressed or not.

use super::source::{STDIN, open_file};
use crate::error::Error;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 16;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The path as messages call it.
pub(super) fn named(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from(STDIN) } else { path.to_owned() }
}

/// Opens a text file, or stdin for `-`. What gzip or zstd compressed is recognised by its first bytes, as no text begins so.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, Error> {
    let mut reader: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(open_file(path)?) };
    let mut start = Vec::new();
    reader.by_ref().take(4).read_to_end(&mut start).map_err(|error| Error::file(named(path), error))?;
    let reader = BufReader::with_capacity(BUFFER, Cursor::new(start.clone()).chain(reader));
    Ok(if start.starts_with(&GZIP) {
        Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(reader)))
    } else if start == ZSTD {
        Box::new(BufReader::with_capacity(BUFFER, ZstdFrames { state: Some(State::Between(reader)) }))
    } else {
        Box::new(reader)
    })
}

/// A piece of text as it stands, cut to a readable length.
pub(super) fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The concatenation of all frames, as the `zstd` program decompresses them; checksums are compared.
struct ZstdFrames<R: BufRead> {
    /// `None` after an error.
    state: Option<State<R>>,
}

type Frame<R> = StreamingDecoder<io::Chain<Cursor<[u8; 4]>, R>, FrameDecoder>;

enum State<R: BufRead> {
    Between(R),
    Inside(Box<Frame<R>>),
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(state) = self.state.take() {
            match state {
                State::Between(mut reader) => {
                    if reader.fill_buf()?.is_empty() {
                        self.state = Some(State::Between(reader));
                        return Ok(0);
                    }
                    self.state = Some(begin(reader)?);
                }
                State::Inside(mut frame) => {
                    let count = frame.read(buffer)?;
                    if count > 0 {
                        self.state = Some(State::Inside(frame));
                        return Ok(count);
                    }
                    let (said, is) = (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
                    if said.is_some() && said != is {
                        return Err(invalid("the checksum does not match"));
                    }
                    self.state = Some(State::Between(frame.into_inner().into_inner().1));
                }
            }
        }
        Ok(0)
    }
}

fn begin<R: BufRead>(mut reader: R) -> io::Result<State<R>> {
    let mut magic = [0; 4];
    reader.read_exact(&mut magic)?;
    // Frames for other programs, to be skipped: 0x184D2A50 to 0x184D2A5F, then a length.
    if magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18] {
        let mut length = [0; 4];
        reader.read_exact(&mut length)?;
        io::copy(&mut reader.by_ref().take(u32::from_le_bytes(length).into()), &mut io::sink())?;
        return Ok(State::Between(reader));
    }
    let frame = StreamingDecoder::new(Cursor::new(magic).chain(reader)).map_err(invalid)?;
    Ok(State::Inside(Box::new(frame)))
}

fn invalid(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {what}"))
}
