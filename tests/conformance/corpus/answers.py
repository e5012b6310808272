"""What webhooks answer, and what the model has to be told of it."""
import base64
import json
import struct
import zlib

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


def _png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\0"))
            + chunk(b"IEND", b""))


PNG = _png()
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
LONG = "".join(f"line {number}\n" for number in range(500))


def said(value):
    return 200, JSON, json.dumps(value, ensure_ascii=False).encode()


class Expected:
    """What the model is to see: an error, a text, an object (as one where there is a place, else as JSON), a picture."""

    def __init__(self, error=None, text=None, value=None, picture=None, options=None, cut=False):
        self.error, self.text, self.value, self.picture, self.options, self.cut = error, text, value, picture, options or {}, cut


def nested(levels):
    return {"a": nested(levels - 1)} if levels else 1


OBJECT = {"state": "shipped", "items": [1, 2.5, None], "to": {"city": "Zürich"}}

# By tool name: the answer, and what is expected of it.
ANSWERS = {
    "text": ((200, TEXT, "22°C and clear\n".encode()), Expected(text="22°C and clear\n")),
    "text_document": (said({"text": "two rows", "data": {"rows": [1, 2]}}), Expected(text="two rows")),
    "text_blank": ((200, TEXT, b" \n\t"), Expected(text="")),
    "text_empty": ((200, TEXT, b""), Expected(text="")),
    "document_empty": (said({"text": ""}), Expected(text="")),
    "no_content": ((204, None, b""), Expected(text="")),
    "text_long": ((200, TEXT, LONG.encode()), Expected(text=LONG)),
    "text_long_capped": ((200, TEXT, LONG.encode()), Expected(text="line 0\n", options={"max_result_chars": 100}, cut=True)),
    "text_latin": ((200, "text/plain; charset=iso-8859-1", "café".encode("latin-1")), Expected(text="café")),
    "text_html": ((200, "text/html", b"<p>x</p>"), Expected(text="<p>x</p>")),
    "object": (said(OBJECT), Expected(value=OBJECT)),
    "object_structured": (said(OBJECT), Expected(value=OBJECT, options={"result_type": "structured"})),
    "object_of_text_tool": (said({"a": 1}), Expected(text='{"a": 1}', options={"result_type": "text"})),
    "object_empty": (said({}), Expected(value={})),
    "object_output_error": (said({"output": 1, "error": {"x": 2}}), Expected(value={"output": 1, "error": {"x": 2}})),
    "object_empty_key": (said({"": 1, "a": {"": [2]}}), Expected(value={"": 1, "a": {"": [2]}})),
    "object_inner_empty_key": (said({"a": [{"": 1}]}), Expected(value={"a": [{"": 1}]})),
    "object_deep": (said(nested(60)), Expected(value=nested(60))),
    "error_too_deep": (said(nested(70)), Expected(error="64 levels")),
    "object_huge_number": ((200, JSON, b'{"a": 1e400}'), Expected(text="1e400")),
    "object_long_capped": (said({"rows": list(range(2000))}), Expected(text="rows", options={"max_result_chars": 100}, cut=True)),
    "object_checked": (said({"celsius": 22}), Expected(value={"celsius": 22}, options={
        "result_type": "structured", "output_schema": {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}})),
    "object_unfit": (said({"celsius": "warm"}), Expected(error="celsius", options={
        "result_type": "structured", "output_schema": {"type": "object", "properties": {"celsius": {"type": "number"}}}})),
    "list": (said([1, {"a": 2}]), Expected(value=[1, {"a": 2}])),
    "list_empty": (said([]), Expected(value=[])),
    "list_structured": (said([1]), Expected(error="object", options={"result_type": "structured"})),
    "string": (said("just text"), Expected(value="just text")),
    "string_empty": (said(""), Expected(value="")),
    "number": ((200, JSON, b"12345678901234567890.50"), Expected(text="12345678901234567890.50")),
    "boolean": (said(False), Expected(text="false")),
    "null": (said(None), Expected(text="null")),
    "error_document": (said({"error": "out of stock"}), Expected(error="out of stock")),
    "error_400": ((400, JSON, b'{"error": "no such city"}'), Expected(error="no such city")),
    "error_404_text": ((404, TEXT, b"nothing here"), Expected(error="404")),
    "error_422_json": ((422, JSON, b'{"field": "city"}'), Expected(error="422")),
    "error_500": ((500, TEXT, b"secret trace"), Expected(error="500")),
    "error_503_document": ((503, JSON, b'{"error": "closed today"}'), Expected(error="closed today")),
    "error_redirect": ((302, TEXT, b""), Expected(error="redirect")),
    "error_not_json": ((200, JSON, b"{broken"), Expected(error="JSON")),
    "error_binary": ((200, "application/octet-stream", b"\x00\x01"), Expected(error="octet-stream")),
    "error_blank": (said({"error": " "}), Expected(error="")),
    "picture_png": ((200, "image/png", PNG), Expected(picture=("image/png", PNG))),
    "picture_gif": ((200, "image/gif", GIF), Expected(picture=("image/gif", GIF))),
}
