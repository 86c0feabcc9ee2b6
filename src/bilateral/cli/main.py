"""Entry point of the command `bilateral`. If the extra `cli` is missing, it says so."""

import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    try:
        from bilateral.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "bilateral").partition(".")[0] == "bilateral":
            raise
        print(
            f'bilateral: the command line needs {error.name}: pip install "bilateral[cli]"',
            file=sys.stderr,
        )
        return 1
    return app.run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
