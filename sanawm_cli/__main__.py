"""`python -m sanawm_cli` is `sanawm`."""

from sanawm_cli.cli.main import main

main()
