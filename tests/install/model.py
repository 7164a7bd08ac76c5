"""A model on loopback that says one word, in the four languages that programs of agents speak to theirs."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORD = "Done."


class Model:
    """`with Model() as model:` answers at `model.url`; `model.shown` is all that it was shown."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.shown = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Model":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_GET(self) -> None:
        self._answer("{}", "application/json")

    def do_POST(self) -> None:
        self.model.shown += self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = self.path.partition("?")[0]
        events = next((events for end, events in ANSWERS.items() if path.endswith(end)), None)
        if events is None:
            self._answer("{}", "application/json")
        else:
            self._answer("".join(map(_event, events)), "text/event-stream")

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    def _answer(self, text: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def _event(value: Any) -> str:
    named = f"event: {value['type']}\n" if isinstance(value, dict) and "type" in value else ""
    return f"{named}data: {value if isinstance(value, str) else json.dumps(value)}\n\n"


_SAID = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": WORD}]}
_COUNTS = {"input_tokens": 1, "output_tokens": 1}
ANSWERS: dict[str, list[Any]] = {
    "/v1/messages": [
        {
            "type": "message_start",
            "message": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "x",
                "content": [],
                "usage": _COUNTS,
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORD}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    "/v1/responses": [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": _SAID},
        {"type": "response.completed", "response": {"id": "r", "usage": {**_COUNTS, "total_tokens": 2}}},
    ],
    "/v1/chat/completions": [
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": WORD}}]},
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    ],
    ":streamGenerateContent": [
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": WORD}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        }
    ],
}
