"""A local HTTP server that answers like an OpenAI-compatible endpoint."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer:
    """The server's address, and the requests that it got.

    Attributes:
        url: The address.
        requests: The path, the headers and the JSON body of each request.
        reply: Takes the prompt and returns the answer, or (status, headers, body) of the HTTP response.
    """

    def __init__(self):
        self.url, self.requests = "", []
        self.reply = lambda prompt: "Yes."


@contextlib.contextmanager
def chat_server():
    """Run a server during a `with` block."""
    state = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, dict(self.headers), body))
            reply = state.reply(body["messages"][-1]["content"])
            if isinstance(reply, str):
                content = {"choices": [{"message": {"role": "assistant", "content": reply}}]}
                reply = 200, {}, json.dumps(content).encode()
            status, headers, data = reply
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
