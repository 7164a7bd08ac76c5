"""The ways into a hub. Each translates what it carries to JSON-RPC and back, and nothing more.

rpc.py          JSON-RPC 2.0 with one caller, whatever carries it
methods.py      what a caller may ask for: the operations, and what belongs to a connection
command.py      a command of the command line, run inside the hub
port.py         what to say of a port that cannot be had
unix.py         the socket in the home: one message on each line
zmq.py          ZeroMQ, for agents that hold a connection over TCP
http.py         HTTP, for programs and pages: the port; http_server.py, http_routes.py, http_events.py are behind it
metrics.py      what a hub counts, as Prometheus reads it
"""
