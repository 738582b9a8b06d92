"""``python -m louvain_um`` is ``louvain-um``."""

from louvain_um.cli import main

if __name__ == "__main__":
    main()
