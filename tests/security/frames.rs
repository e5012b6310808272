//! HTTP/2 spelled out: a server that can say what no library would.

use std::io::{self, Read, Write};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

/// The flag that ends a stream, and acknowledges settings and pings.
pub(crate) const END: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// `:status: 200` and `content-type: text/plain`, as HPACK writes them.
pub(crate) const OK_HEAD: &[u8] = b"\x88\x0f\x10\x0atext/plain";

pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn write(to: &mut impl Write, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    to.write_all(&bytes)
}

pub(crate) fn read(from: &mut impl Read) -> io::Result<Frame> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    from.read_exact(&mut payload)?;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Ok(Frame { kind: head[3], flags: head[4], stream, payload })
}

/// Reads the client's preface and sends settings: pairs of an identifier and a value.
pub(crate) fn greet(with: &mut (impl Read + Write), settings: &[(u16, u32)]) -> io::Result<()> {
    with.read_exact(&mut [0; 24])?;
    let payload: Vec<u8> =
        settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    write(with, SETTINGS, 0, 0, &payload)
}

/// Reads one request to its end, and gives its stream and its body. Nothing in it is decoded.
pub(crate) fn request(with: &mut (impl Read + Write)) -> io::Result<(u32, Vec<u8>)> {
    let mut body = Vec::new();
    loop {
        let frame = read(with)?;
        match frame.kind {
            SETTINGS if frame.flags & END == 0 => write(with, SETTINGS, END, 0, &[])?,
            PING if frame.flags & END == 0 => write(with, PING, END, 0, &frame.payload)?,
            DATA => body.extend_from_slice(&frame.payload),
            _ => {}
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END != 0 {
            return Ok((frame.stream, body));
        }
    }
}
