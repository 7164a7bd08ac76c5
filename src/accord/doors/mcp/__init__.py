"""MCP for agents, over HTTP and over the socket in the home, which `accord mcp` leads to.

tools.py        the tools, made from the table of operations
resources.py    what can be read: the inbox, conversations, documents, tasks, the list of operations
changes.py      what is told to those who subscribed
calls.py        an operation, done for an agent
server.py       all of it on the official SDK, which takes most of a second to import ...
door.py         ... and is when the first caller comes
lines.py        a caller at the socket
"""
