"""What proves an engine: checks that ship with accord and need no test framework."""
