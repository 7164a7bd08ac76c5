"""`python -m accord`, where the command is not on the path."""

from accord.cli.main import main

main()
