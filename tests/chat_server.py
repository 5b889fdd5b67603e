"""A local HTTP server that answers like an OpenAI-compatible endpoint."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer:
    """A server for tests that answers as a model: its address, its replies and the requests it got.

    Attributes:
        url: The address.
        requests: The path, the headers and the JSON body of each request.
        reply: A function that takes the prompt, or the whole JSON body if `whole` is true. It returns the
            text of the answer, or the HTTP response (status, headers, body), or None to cut the
            connection.
        whole: Whether `reply` takes the whole body.
        delay: Seconds before each answer.
        usage: A function that takes the JSON body and returns the token counts of the answer, or None.
    """

    def __init__(self):
        self.url, self.requests = "", []
        self.reply = lambda prompt: "Yes."
        self.whole, self.delay = False, 0.0
        self.usage = lambda body: {
            "prompt_tokens": 10 * len(body.get("messages", "1")), "completion_tokens": 7
        }  # fmt: skip


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_):
        """Print nothing when a client is killed."""


@contextlib.contextmanager
def chat_server():
    """Run a server during a `with` block."""
    state = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, dict(self.headers), body))
            if state.delay:
                time.sleep(state.delay)
            prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
            reply = state.reply(body if state.whole else prompt)
            if reply is None:
                self.close_connection = True
                return
            if isinstance(reply, str):
                choice = {"message": {"role": "assistant", "content": reply}}
                choice = choice if "messages" in body else {"text": reply}
                content = {"choices": [{**choice, "finish_reason": "stop"}], "usage": state.usage(body)}
                reply = 200, {}, json.dumps(content).encode()
            status, headers, data = reply
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            if int({"Content-Length": str(len(data)), **headers}["Content-Length"]) != len(data):
                self.close_connection = True

        def log_message(self, *_):
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
